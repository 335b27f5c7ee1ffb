//! The headers that this protocol looks at, read once.

use http::{HeaderMap, Method};

use crate::errors::Refusal;
use crate::respond::NO_CONTENT;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Headers<'a> {
    pub authorization: Option<&'a str>,
    pub x_ms_date: Option<&'a str>,
    pub date: Option<&'a str>,
    pub content_md5: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub accept: Option<&'a str>,
    pub prefer: Option<&'a str>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub method_override: Option<&'a str>,
    pub version: Option<&'a str>,
    pub host: Option<&'a str>,
    pub client_request: Option<&'a str>,
    /// The page that a browser asks for, and what it is about to ask with.
    pub origin: Option<&'a str>,
    pub asked_method: Option<&'a str>,
    pub asked_headers: Option<&'a str>,
    /// RU/s of a table that is created.
    pub throughput: Option<&'a str>,
}

impl<'a> Headers<'a> {
    pub fn read(map: &'a HeaderMap) -> Result<Headers<'a>, Refusal> {
        let get = |name: &str| match map.get(name).map(|value| value.to_str()) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => {
                Err(Refusal::invalid("One of the HTTP headers specified in the request is not valid."))
            }
        };
        Ok(Headers {
            authorization: get("authorization")?,
            x_ms_date: get("x-ms-date")?,
            date: get("date")?,
            content_md5: get("content-md5")?,
            content_type: get("content-type")?,
            accept: get("accept")?,
            prefer: get("prefer")?,
            if_match: get("if-match")?,
            if_none_match: get("if-none-match")?,
            method_override: get("x-http-method")?,
            version: get("x-ms-version")?,
            host: get("host")?,
            client_request: get("x-ms-client-request-id")?,
            origin: get("origin")?,
            asked_method: get("access-control-request-method")?,
            asked_headers: get("access-control-request-headers")?,
            throughput: get("x-ms-offer-throughput")?,
        })
    }

    /// What is to be done: some clients send POST and say in a header what they mean.
    pub fn verb(&self, method: &Method) -> Result<Verb, Refusal> {
        let name = match self.method_override.filter(|_| *method == Method::POST) {
            Some(name) => name,
            None => method.as_str(),
        };
        Verb::of(name).ok_or_else(|| crate::errors::Own::MethodNotAllowed.into())
    }

    /// Whether the client wants no entity back.
    pub fn wants_no_content(&self) -> bool {
        wants_no_content(self.prefer)
    }
}

/// The same of a preference, which a part of a batch has for itself.
pub(crate) fn wants_no_content(prefer: Option<&str>) -> bool {
    prefer.is_some_and(|text| text.eq_ignore_ascii_case(NO_CONTENT))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    /// PATCH and MERGE are one.
    Merge,
    Delete,
}

impl Verb {
    fn of(name: &str) -> Option<Verb> {
        Some(match name {
            "GET" => Verb::Get,
            "POST" => Verb::Post,
            "PUT" => Verb::Put,
            "PATCH" | "MERGE" => Verb::Merge,
            "DELETE" => Verb::Delete,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_may_mean_something_else() {
        let meaning = |method: &str, overridden| {
            let headers = Headers { method_override: overridden, ..Headers::default() };
            headers.verb(&Method::from_bytes(method.as_bytes()).expect("a method")).ok()
        };
        assert_eq!(meaning("POST", Some("MERGE")), Some(Verb::Merge));
        assert_eq!(meaning("POST", Some("DELETE")), Some(Verb::Delete));
        assert_eq!(meaning("PATCH", None), Some(Verb::Merge));
        assert_eq!(meaning("MERGE", None), Some(Verb::Merge));
        assert_eq!(meaning("GET", Some("DELETE")), Some(Verb::Get));
        assert_eq!(meaning("TRACE", None), None);
    }
}
