//! The recordings: which are replayed, which are not and why, and how they are read.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Folders of recordings, each in call order.
pub const SCENARIOS: [&str; 5] = [
    "database_operations",
    "document_operations",
    "query_operations",
    "trigger_operations",
    "user_operations",
];

/// Exchanges that cannot take place with our server, and why.
const CANNOT_HAPPEN: [(&str, &str); 1] =
    [("query_operations/2", "it asks for the page after the last one, which our server does not offer")];

pub struct Exchange {
    pub name: String,
    pub verb: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub status: u16,
    pub answer_headers: Vec<(String, String)>,
    pub answer: Value,
}

/// The folder beside the project, if this machine has it.
pub fn recordings() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/nosql-recorded-gateway");
    folder.is_dir().then_some(folder)
}

pub fn load(folder: &Path, scenario: &str) -> Vec<Exchange> {
    let folder = folder.join(scenario);
    let exchanges: Vec<Exchange> =
        (0..).map_while(|number| read(&folder.join(format!("{number}.json")), scenario, number)).collect();
    assert!(!exchanges.is_empty(), "{} has no exchanges", folder.display());
    exchanges
}

pub fn left_out(exchange: &Exchange) -> Option<&'static str> {
    CANNOT_HAPPEN.iter().find(|(name, _)| *name == exchange.name).map(|(_, reason)| *reason)
}

fn read(path: &Path, scenario: &str, number: u32) -> Option<Exchange> {
    let text = std::fs::read_to_string(path).ok()?;
    let recorded: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (request, response) = (&recorded["request"], &recorded["response"]);
    let body = &request["body"];
    Some(Exchange {
        name: format!("{scenario}/{number}"),
        verb: text_of(&request["method"]),
        path: text_of(&request["uri"]),
        headers: headers(&request["headers"]),
        body: if body.is_null() { String::new() } else { body.to_string() },
        status: response["status"].as_u64().expect("a status is a number") as u16,
        answer_headers: headers(&response["headers"]),
        answer: response["body"].clone(),
    })
}

fn headers(value: &Value) -> Vec<(String, String)> {
    let object = value.as_object().expect("headers are an object");
    object.iter().map(|(name, value)| (name.clone(), text_of(value))).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().expect("a recorded text").to_owned()
}
