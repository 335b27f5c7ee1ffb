//! Compares an answer with the recorded one and says in words what differs.

use std::collections::{BTreeSet, HashMap};

use orrery_testkit::Reply;
use serde_json::Value;

use crate::exchange::Exchange;
use crate::headers::{self, Expectation};

/// System properties whose values the server makes up.
const MADE_UP: [&str; 3] = ["_rid", "_self", "_etag"];

/// Which value of ours stands for which recorded one.
#[derive(Default)]
pub struct Lessons(HashMap<String, String>);

impl Lessons {
    /// The value to send where the recorded client sent `recorded`.
    pub fn rewrite(&self, recorded: &str) -> String {
        self.0.get(recorded).map_or_else(|| recorded.to_owned(), String::clone)
    }

    /// Learns a pair, or checks it against what was learned before.
    fn agree(&mut self, recorded: &str, ours: &str) -> bool {
        let known = self.0.entry(recorded.to_owned()).or_insert_with(|| ours.to_owned());
        known == ours
    }
}

pub fn differences(exchange: &Exchange, reply: &Reply, lessons: &mut Lessons) -> Vec<String> {
    let mut found = Vec::new();
    if reply.status != exchange.status {
        found.push(format!("status {} instead of {}: {}", reply.status, exchange.status, reply.json()));
    } else {
        headers_differ(exchange, reply, lessons, &mut found);
        let ours = if reply.body.is_empty() { Value::Null } else { reply.json() };
        values_differ("body", &exchange.answer, &ours, lessons, &mut found);
    }
    found
        .iter()
        .map(|text| format!("{} {} {}: {text}", exchange.name, exchange.verb, exchange.path))
        .collect()
}

fn headers_differ(exchange: &Exchange, reply: &Reply, lessons: &mut Lessons, found: &mut Vec<String>) {
    for (name, recorded) in &exchange.answer_headers {
        let expectation = headers::expectation(exchange, name);
        let Some(ours) = reply.header(name) else {
            if expectation != Expectation::Absent {
                found.push(format!("header {name} is missing (recorded {recorded:?})"));
            }
            continue;
        };
        let agrees = match expectation {
            Expectation::Absent | Expectation::Present => true,
            Expectation::Learned => lessons.agree(recorded, ours),
            Expectation::Same => recorded == ours,
        };
        if !agrees {
            found.push(format!("header {name} is {ours:?}, recorded {recorded:?}"));
        }
    }
}

fn values_differ(path: &str, recorded: &Value, ours: &Value, lessons: &mut Lessons, found: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            let names: BTreeSet<&String> = recorded.keys().chain(ours.keys()).collect();
            for name in names {
                let path = format!("{path}.{name}");
                match (recorded.get(name), ours.get(name)) {
                    (Some(recorded), Some(ours)) => {
                        property_differs(&path, name, recorded, ours, lessons, found);
                    }
                    (Some(recorded), None) => found.push(format!("{path} is missing (recorded {recorded})")),
                    (None, ours) => found.push(format!("{path} is ours alone: {ours:?}")),
                }
            }
        }
        (Value::Array(recorded), Value::Array(ours)) => {
            if recorded.len() != ours.len() {
                found.push(format!("{path} has {} elements, recorded {}", ours.len(), recorded.len()));
            }
            for (place, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                values_differ(&format!("{path}[{place}]"), recorded, ours, lessons, found);
            }
        }
        _ if recorded == ours => {}
        _ => found.push(format!("{path} is {ours}, recorded {recorded}")),
    }
}

fn property_differs(
    path: &str,
    name: &str,
    recorded: &Value,
    ours: &Value,
    lessons: &mut Lessons,
    found: &mut Vec<String>,
) {
    match (recorded, ours) {
        (Value::String(recorded), Value::String(ours)) if MADE_UP.contains(&name) => {
            if recorded.len() != ours.len() || !lessons.agree(recorded, ours) {
                found.push(format!("{path} is {ours:?}, recorded {recorded:?}"));
            }
        }
        (Value::Number(_), Value::Number(_)) if name == "_ts" => {}
        _ => values_differ(path, recorded, ours, lessons, found),
    }
}
