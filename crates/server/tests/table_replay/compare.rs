//! Compares an answer with the recorded one and says in words what differs.

use std::collections::BTreeSet;

use orrery_testkit::Reply;
use serde_json::Value;

use crate::recording::{Answer, Exchange};

/// Which text of ours stands for which recorded one.
#[derive(Default)]
pub struct Lessons(Vec<(String, String)>);

impl Lessons {
    /// A part of a request with our values in it.
    pub fn rewrite(&self, recorded: &str) -> String {
        self.0.iter().fold(recorded.to_owned(), |text, (recorded, ours)| text.replace(recorded, ours))
    }

    fn learn(&mut self, recorded: &str, ours: &str) {
        self.0.push((recorded.to_owned(), ours.to_owned()));
    }

    /// A continuation comes back as a parameter, of which clients encode what they like.
    fn learn_token(&mut self, name: &str, path: &str, ours: &str) {
        let found = path
            .split(['?', '&'])
            .find(|pair| pair.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
        if let Some(pair) = found {
            self.learn(pair, &format!("{name}={ours}"));
        }
    }
}

pub fn differences(exchange: &Exchange, reply: &Reply, lessons: &mut Lessons) -> Vec<String> {
    let mut found = Vec::new();
    let ours = String::from_utf8_lossy(&reply.body).into_owned();
    if reply.status != exchange.status {
        found.push(format!("status {} instead of {}: {ours}", reply.status, exchange.status));
    } else {
        headers_differ(exchange, reply, lessons, &mut found);
        match &exchange.answer {
            Answer::Nothing if reply.body.is_empty() => {}
            Answer::Nothing => found.push(format!("a body: {ours}")),
            Answer::Json(recorded) => values_differ("body", recorded, &reply.json(), &mut found),
            Answer::Text(recorded) if recorded.starts_with("--") => {
                batches_differ(recorded, &ours, &mut found)
            }
            Answer::Text(_) => {}
        }
    }
    found
        .iter()
        .map(|text| format!("{} {} {}: {text}", exchange.name, exchange.verb, exchange.path))
        .collect()
}

fn headers_differ(exchange: &Exchange, reply: &Reply, lessons: &mut Lessons, found: &mut Vec<String>) {
    for (name, recorded) in &exchange.answer_headers {
        // Our answers are framed by their length, and a body without one has no type.
        if matches!(
            name.as_str(),
            "transfer-encoding" | "content-length" | "server" | "x-ms-request-id" | "date"
        ) {
            continue;
        }
        let Some(ours) = reply.header(name) else {
            found.push(format!("header {name} is missing (recorded {recorded:?})"));
            continue;
        };
        let is_same = match name.as_str() {
            "etag" => {
                lessons.learn(recorded, ours);
                is_version(ours)
            }
            "location" => path_of(recorded) == path_of(ours),
            // Errors came with one level or another, whatever was asked for.
            "content-type" if reply.status >= 400 => ours.starts_with("application/json"),
            "content-type" => type_of(recorded) == type_of(ours),
            name if name.starts_with("x-ms-continuation-") => true,
            _ => recorded == ours,
        };
        if !is_same {
            found.push(format!("header {name} is {ours:?}, recorded {recorded:?}"));
        }
    }
    let has_more = |headers: &[(String, String)]| {
        headers.iter().any(|(name, _)| name.to_lowercase().starts_with("x-ms-continuation-next"))
    };
    if has_more(&reply.headers) && !has_more(&exchange.answer_headers) {
        found.push("there is a continuation".to_owned());
    }
}

/// Teaches what the next page is asked with.
pub fn learn_continuation(exchange: &Exchange, next: &Exchange, reply: &Reply, lessons: &mut Lessons) {
    for (header, name) in [
        ("x-ms-continuation-nextpartitionkey", "NextPartitionKey"),
        ("x-ms-continuation-nexttablename", "NextTableName"),
    ] {
        let was_told = exchange.answer_headers.iter().any(|(name, _)| name == header);
        if let Some(ours) = reply.header(header).filter(|_| was_told) {
            lessons.learn_token(name, &next.path, ours);
        }
    }
}

/// Without what a boundary adds.
fn type_of(text: &str) -> String {
    text.split("; boundary=").next().unwrap_or_default().replace(' ', "")
}

fn path_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.find('/').map_or("", |start| &rest[start..])
}

fn is_version(text: &str) -> bool {
    text.strip_prefix("W/\"datetime'")
        .and_then(|rest| rest.strip_suffix("'\""))
        .is_some_and(|time| is_time(&time.replace("%3A", ":")) && time.contains("%3A"))
}

/// `2022-05-06T00:47:47.9267336Z`
fn is_time(text: &str) -> bool {
    text.len() == 28 && text.ends_with('Z') && text.as_bytes()[19] == b'.'
}

fn values_differ(path: &str, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            let names: BTreeSet<&String> = recorded.keys().chain(ours.keys()).collect();
            for name in names {
                let path = format!("{path}.{name}");
                match (recorded.get(name), ours.get(name)) {
                    (Some(recorded), Some(ours)) => property_differs(&path, name, recorded, ours, found),
                    (Some(recorded), None) => found.push(format!("{path} is missing (recorded {recorded})")),
                    (None, ours) => found.push(format!("{path} is ours alone: {ours:?}")),
                }
            }
        }
        (Value::Array(recorded), Value::Array(ours)) => {
            if recorded.len() != ours.len() {
                found.push(format!("{path} has {} elements, recorded {}", ours.len(), recorded.len()));
            }
            // The service promises no order.
            let (mut recorded, mut ours) = (recorded.clone(), ours.clone());
            recorded.sort_by_key(key_of);
            ours.sort_by_key(key_of);
            for (place, (recorded, ours)) in recorded.iter().zip(&ours).enumerate() {
                values_differ(&format!("{path}[{place}]"), recorded, ours, found);
            }
        }
        // A number with a point is another type of the protocol than one without.
        _ if recorded == ours && recorded.is_f64() == ours.is_f64() => {}
        _ => found.push(format!("{path} is {ours}, recorded {recorded}")),
    }
}

fn key_of(row: &Value) -> String {
    format!("{} {} {}", row["TableName"], row["PartitionKey"], row["RowKey"])
}

fn property_differs(path: &str, name: &str, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    let (Value::String(told), Value::String(text)) = (recorded, ours) else {
        return values_differ(path, recorded, ours, found);
    };
    let is_same = match name {
        "odata.metadata" | "odata.id" => path_of(told) == path_of(text),
        "odata.etag" => is_version(text),
        "odata.type" => told.split('.').next_back() == text.split('.').next_back(),
        "Timestamp" => is_time(text),
        "value" if path.ends_with(".message.value") => sentence(told) == sentence(text),
        _ => told == text,
    };
    if !is_same {
        found.push(format!("{path} is {text:?}, recorded {told:?}"));
    }
}

/// An error's text without the request that it names.
fn sentence(text: &str) -> &str {
    let named = ["ActivityId:", "RequestID:"].iter().filter_map(|name| text.find(name)).min();
    text[..named.unwrap_or(text.len())].trim()
}

fn batches_differ(recorded: &str, ours: &str, found: &mut Vec<String>) {
    let (recorded, ours) = (parts(recorded), parts(ours));
    if recorded.len() != ours.len() {
        found.push(format!("{} parts, recorded {}", ours.len(), recorded.len()));
    }
    for (place, (recorded, ours)) in recorded.iter().zip(&ours).enumerate() {
        if recorded != ours {
            found.push(format!("part {place} is {ours:?}, recorded {recorded:?}"));
        }
    }
}

/// Of each part: its status, the names of its headers, and the sentence of its error.
fn parts(text: &str) -> Vec<(String, Vec<String>, String)> {
    let text = text.replace("\r\n", "\n");
    let answers = text.split("HTTP/1.1 ").skip(1);
    answers
        .map(|answer| {
            let (head, body) = answer.split_once("\n\n").unwrap_or((answer, ""));
            let mut lines = head.lines();
            let status = lines.next().unwrap_or_default().trim().to_owned();
            let names =
                lines.filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_lowercase());
            let mut names: Vec<String> =
                names.filter(|name| !matches!(name.as_str(), "content-type")).collect();
            names.sort();
            let body: Value = serde_json::from_str(body.split("\n--").next().unwrap_or_default().trim())
                .unwrap_or_default();
            let error = &body["odata.error"];
            let said = error["message"]["value"].as_str().map(sentence).unwrap_or_default();
            (status, names, format!("{} {said}", error["code"]))
        })
        .collect()
}
