//! What a server refuses, for people and for those who look at the place of a fault.

use std::fmt;

use http::StatusCode;
use serde_json::Value;

/// An answer that says no.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    why: String,
    /// What is wrong with the text of a query, if that is why.
    pub faults: Vec<Fault>,
}

/// Something wrong in the text of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub message: String,
    /// From and to, in units of UTF-16, as the protocol counts.
    pub place: Option<(usize, usize)>,
}

impl Refusal {
    pub fn of(status: StatusCode, json: &Value) -> Refusal {
        let message = json["message"].as_str().unwrap_or("no reason given");
        let (text, inner) = inner(message);
        let faults: Vec<Fault> = inner.iter().flat_map(errors).filter_map(fault).collect();
        let sentences: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        let why = if sentences.is_empty() { text } else { sentences.join("; ") };
        Refusal { status, why, faults }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the server answered {}: {}", self.status.as_u16(), self.why)
    }
}

impl std::error::Error for Refusal {}

/// The protocol puts JSON into its messages (`Message: {"Errors":["…"]}`), and behind it who answered when; people want
/// the sentences.
fn inner(message: &str) -> (String, Option<Value>) {
    let lines = message.lines().take_while(|line| !line.starts_with("ActivityId:"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let inner = text.strip_prefix("Message:").unwrap_or(&text).trim();
    (inner.to_owned(), serde_json::from_str(inner).ok())
}

fn errors(json: &Value) -> impl Iterator<Item = &Value> {
    json["Errors"].as_array().or_else(|| json["errors"].as_array()).into_iter().flatten()
}

fn fault(error: &Value) -> Option<Fault> {
    let message = error.as_str().or_else(|| error["message"].as_str())?.trim().to_owned();
    let number =
        |name: &str| error["location"][name].as_u64().and_then(|number| usize::try_from(number).ok());
    Some(Fault { message, place: number("start").zip(number("end")) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_sentences_and_their_places_are_found() {
        let refusal = |message: &str| Refusal::of(StatusCode::BAD_REQUEST, &json!({"message": message}));
        let query = refusal(
            "Message: {\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":3,\"end\":9},\"code\":\"SC1001\",\
             \"message\":\"Syntax error\"}]}\r\nActivityId: 1",
        );
        assert_eq!(query.to_string(), "the server answered 400: Syntax error");
        assert_eq!(query.faults, [Fault { message: "Syntax error".into(), place: Some((3, 9)) }]);
        let listed = refusal("Message: {\"Errors\":[\"One.\",\"Two.\"]}\r\nActivityId: 1");
        assert_eq!(listed.to_string(), "the server answered 400: One.; Two.");
        assert_eq!(refusal("Plain.").to_string(), "the server answered 400: Plain.");
        assert_eq!(
            Refusal::of(StatusCode::NOT_FOUND, &json!(7)).to_string(),
            "the server answered 404: no reason given"
        );
    }
}
