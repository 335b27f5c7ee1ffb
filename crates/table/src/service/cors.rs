//! Which pages of other origins may ask what: browsers ask beforehand, and read in each answer whether the page may see it.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY,
};
use http::{HeaderName, HeaderValue, StatusCode};
use orrery_cluster::Catalog;

use crate::errors::{Own, Refusal};
use crate::headers::Headers;
use crate::limits::CORS_ORIGINS_MAX;
use crate::respond::Reply;
use crate::xml::Element;

/// What pages of some origins may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    origins: Vec<String>,
    methods: Vec<String>,
    /// Names of headers, or beginnings of them that end with a star.
    allowed: Vec<String>,
    exposed: Vec<String>,
    max_age: u32,
}

const METHODS: [&str; 9] = ["DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT", "CONNECT"];

type Told = Vec<(HeaderName, HeaderValue)>;

impl Rule {
    pub fn read(element: &Element) -> Result<Rule, Own> {
        if element.name != "CorsRule" {
            return Err(Own::InvalidXml);
        }
        let list = |name: &str| {
            let parts = element.text_of(name).split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<String>>()
        };
        let rule = Rule {
            origins: list("AllowedOrigins"),
            methods: list("AllowedMethods"),
            allowed: list("AllowedHeaders"),
            exposed: list("ExposedHeaders"),
            max_age: element.text_of("MaxAgeInSeconds").parse().map_err(|_| Own::InvalidXmlValue)?,
        };
        let is_method = |method: &String| METHODS.contains(&method.to_ascii_uppercase().as_str());
        let is_wrong = rule.origins.is_empty()
            || rule.origins.len() > CORS_ORIGINS_MAX
            || rule.methods.is_empty()
            || !rule.methods.iter().all(is_method);
        if is_wrong { Err(Own::InvalidXmlValue) } else { Ok(rule) }
    }

    fn allows(&self, origin: &str, method: &str) -> bool {
        let origins = |allowed: &String| allowed == "*" || allowed.eq_ignore_ascii_case(origin);
        self.origins.iter().any(origins)
            && self.methods.iter().any(|allowed| allowed.eq_ignore_ascii_case(method))
    }

    fn allows_header(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(start) => name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
            None => allowed.eq_ignore_ascii_case(name),
        })
    }

    /// What tells a browser that the page of an origin may.
    fn told(&self, origin: &str) -> Told {
        match self.origins.iter().any(|allowed| allowed == "*") {
            true => told([(ACCESS_CONTROL_ALLOW_ORIGIN, "*")]),
            false => told([
                (ACCESS_CONTROL_ALLOW_ORIGIN, origin),
                (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
                (VARY, "Origin"),
            ]),
        }
    }
}

fn told<const N: usize>(pairs: [(HeaderName, &str); N]) -> Told {
    let valid = |(name, value): (HeaderName, &str)| Some((name, HeaderValue::from_str(value).ok()?));
    pairs.into_iter().filter_map(valid).collect()
}

/// Answers the question that a browser asks before it sends what a page of another origin wants. It is not signed.
pub(crate) fn preflight(catalog: &Catalog, headers: &Headers<'_>) -> Result<Reply, Refusal> {
    let (Some(origin), Some(method)) = (headers.origin, headers.asked_method) else {
        return Err(Own::NoPreflight.into());
    };
    let asked = || headers.asked_headers.unwrap_or_default().split(',').map(str::trim);
    let rules = super::current(catalog).rules();
    let rule = rules.iter().find(|rule| {
        rule.allows(origin, method) && asked().all(|name| name.is_empty() || rule.allows_header(name))
    });
    let rule = rule.ok_or(Own::CorsRefused)?;
    let mut reply = Reply::empty(StatusCode::OK);
    reply.headers = rule.told(origin);
    reply.headers.extend(told([
        (ACCESS_CONTROL_ALLOW_METHODS, method),
        (ACCESS_CONTROL_ALLOW_HEADERS, headers.asked_headers.unwrap_or_default()),
        (ACCESS_CONTROL_MAX_AGE, &rule.max_age.to_string()),
    ]));
    Ok(reply)
}

/// What the answer to a request of a page tells its browser. Without a rule for it the request is carried out all the
/// same, and the browser keeps the answer from the page.
pub(crate) fn of_answer(catalog: &Catalog, origin: &str, method: &str) -> Told {
    let rules = super::current(catalog).rules();
    let Some(rule) = rules.iter().find(|rule| rule.allows(origin, method)) else { return Vec::new() };
    let mut headers = rule.told(origin);
    if !rule.exposed.is_empty() {
        headers.extend(told([(ACCESS_CONTROL_EXPOSE_HEADERS, &*rule.exposed.join(","))]));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml;

    fn rule(origins: &str, methods: &str, allowed: &str) -> Rule {
        let text = format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
             <AllowedHeaders>{allowed}</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders>\
             <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
        );
        Rule::read(&xml::parse(text.as_bytes()).expect("XML")).expect("a rule")
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        let named = rule("http://a.example, http://b.example", "get,MERGE", "content-type,x-ms-*");
        for (origin, method, wanted) in [
            ("http://a.example", "GET", true),
            ("http://B.example", "merge", true),
            ("http://a.example", "PUT", false),
            ("http://c.example", "GET", false),
        ] {
            assert_eq!(named.allows(origin, method), wanted, "{origin} {method}");
        }
        assert!(named.allows_header("X-MS-Date") && named.allows_header("Content-Type"));
        assert!(!named.allows_header("x-m") && !named.allows_header("authorization"));
        assert!(rule("*", "GET", "*").allows_header("anything"));
    }

    #[test]
    fn only_a_named_origin_is_told_back() {
        let names = |told: Told| told.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(rule("*", "GET", "").told("http://a.example")), [ACCESS_CONTROL_ALLOW_ORIGIN]);
        assert_eq!(
            names(rule("http://a.example", "GET", "").told("http://a.example")),
            [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_ALLOW_CREDENTIALS, VARY]
        );
    }
}
