//! A query as clients send it: `{"query":"SELECT ...","parameters":[{"name":"@a","value":1}]}`.

use orrery_cluster::limits::JSON_DEPTH_MAX;
use orrery_doc::{Value, json};
use orrery_query::Parameters;

use crate::errors::Refusal;

pub(crate) struct QuerySpec {
    pub text: String,
    pub parameters: Parameters,
}

impl QuerySpec {
    /// Old clients send the text alone, as one JSON string.
    pub fn parse(body: &[u8]) -> Result<QuerySpec, Refusal> {
        let doc = json::parse(body, JSON_DEPTH_MAX).map_err(|error| {
            Refusal::bad_request(format!("The query request is not valid JSON: {error}."))
        })?;
        let text = match doc.root() {
            Value::Str(text) => text,
            root => root.get("query").as_str().unwrap_or_default(),
        };
        if text.trim().is_empty() {
            return Err(Refusal::bad_request("The query request has no query text."));
        }
        let parameters = Parameters::from_value(doc.root().get("parameters"))?;
        Ok(QuerySpec { text: text.to_owned(), parameters })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcome(body: &str) -> Result<String, u16> {
        QuerySpec::parse(body.as_bytes())
            .map(|spec| spec.text)
            .map_err(|refusal| refusal.wire().status.as_u16())
    }

    #[test]
    fn bodies_hold_text_and_parameters() {
        for (body, wanted) in [
            (r#"{"query":"SELECT 1"}"#, Ok("SELECT 1")),
            (r#""SELECT 1""#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":null}"#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":[{"name":"@a","value":[1]}]}"#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":[{"name":"a"}]}"#, Err(400)),
            (r#"{"query":"SELECT 1","parameters":{}}"#, Err(400)),
            (r#"{"query":" "}"#, Err(400)),
            (r#"{"query":1}"#, Err(400)),
            ("{}", Err(400)),
            ("", Err(400)),
            ("SELECT 1", Err(400)),
        ] {
            assert_eq!(outcome(body).as_deref(), wanted.as_ref().map(|text| *text), "{body}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = QuerySpec::parse(&body);
        }
    }
}
