//! A host of a few items in memory.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;

use orrery_script::{
    Answer, Collection, Feed, Finished, Host, Limits, Program, Quota, Reply, ScriptError, Write, WriteKind,
    call_procedure,
};
use serde_json::{Value, json};

#[derive(Default)]
pub struct Shelf {
    pub items: BTreeMap<String, Value>,
    pub writes: Vec<String>,
    pub queries: Vec<String>,
    /// Operations that are still accepted; all of them when it is absent.
    pub accepted: Option<u32>,
    pub made: u32,
}

impl Shelf {
    pub fn of(items: &[Value]) -> Shelf {
        let mut shelf = Shelf::default();
        for item in items {
            shelf.put(item.clone());
        }
        shelf
    }

    fn put(&mut self, item: Value) -> Answer {
        let id = item["id"].as_str().expect("items of tests have ids").to_owned();
        let mut item = item;
        item["_self"] = json!(format!("dbs/d/colls/c/docs/{id}"));
        let body = item.to_string();
        self.items.insert(id, item);
        Answer::done(Reply { body, ..Reply::default() })
    }

    fn spend(&mut self) -> bool {
        match &mut self.accepted {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

fn id_of(link: &str) -> &str {
    link.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

impl Host for Shelf {
    fn collection(&self) -> Collection {
        Collection {
            self_link: "dbs/AA==/colls/AAAA==/".into(),
            alt_link: "dbs/d/colls/c".into(),
            quota: Quota { most: "collectionSize=10;".into(), used: "collectionSize=1;".into() },
        }
    }

    fn read(&mut self, link: &str, if_none_match: Option<&str>) -> Answer {
        if !self.spend() {
            return Answer::NotAccepted;
        }
        match self.items.get(id_of(link)) {
            None => Answer::refused(404, "Resource Not Found"),
            Some(item) if item["_etag"].as_str().is_some_and(|etag| Some(etag) == if_none_match) => {
                Answer::done(Reply { not_modified: true, ..Reply::default() })
            }
            Some(item) => Answer::done(Reply { body: item.to_string(), ..Reply::default() }),
        }
    }

    fn page(&mut self, feed: Feed<'_>) -> Answer {
        if !self.spend() {
            return Answer::NotAccepted;
        }
        self.queries.extend(feed.query.map(str::to_owned));
        if feed.query.is_some_and(|query| query.contains("BROKEN")) {
            return Answer::refused(400, "Syntax error");
        }
        let skip: usize = feed.continuation.map_or(0, |text| text.parse().expect("tokens are ours"));
        let size = feed.page_size.unwrap_or(100) as usize;
        let page: Vec<&Value> = self.items.values().skip(skip).take(size).collect();
        let more = skip + page.len() < self.items.len();
        let continuation = more.then(|| (skip + page.len()).to_string());
        let body = serde_json::to_string(&page).expect("items are JSON");
        Answer::done(Reply { body, continuation, not_modified: false })
    }

    fn write(&mut self, write: Write<'_>) -> Answer {
        if !self.spend() {
            return Answer::NotAccepted;
        }
        self.writes.push(format!("{:?}", write.kind));
        if write.kind == WriteKind::Delete {
            return match self.items.remove(id_of(write.link)) {
                Some(_) => Answer::done(Reply::default()),
                None => Answer::refused(404, "Resource Not Found"),
            };
        }
        let Ok(mut item) = serde_json::from_str::<Value>(write.body) else {
            return Answer::refused(400, "The body is not JSON");
        };
        if !item.is_object() {
            return Answer::refused(400, "The body is not an object");
        }
        if item["id"].is_null() {
            if write.options.disable_automatic_id {
                return Answer::refused(400, "The id is missing");
            }
            self.made += 1;
            item["id"] = json!(format!("made{}", self.made));
        }
        let known = item["id"].as_str().and_then(|id| self.items.get(id));
        match (write.kind, known) {
            (WriteKind::Create, Some(_)) => {
                Answer::refused(409, "Resource with specified id or name already exists.")
            }
            (WriteKind::Replace, None) => Answer::refused(404, "Resource Not Found"),
            (_, Some(old))
                if write.options.etag.is_some() && old["_etag"].as_str() != write.options.etag.as_deref() =>
            {
                Answer::refused(412, "One of the specified pre-condition is not met.")
            }
            _ => self.put(item),
        }
    }
}

pub fn program(source: &str) -> Program {
    Program::compile("test", source, &Limits::default()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

pub fn finish(source: &str, arguments: Value, shelf: Shelf, limits: &Limits) -> Finished<Shelf> {
    call_procedure(&program(source), arguments.to_string().as_bytes(), true, shelf, limits)
}

/// The body that a procedure sets, null if it sets none.
pub fn execute(source: &str, arguments: Value, shelf: Shelf) -> (Result<Value, ScriptError>, Shelf) {
    let finished = finish(source, arguments, shelf, &Limits::default());
    let body = finished.result.map(|output| match output.body {
        Some(body) => serde_json::from_slice(&body).expect("bodies are JSON"),
        None => Value::Null,
    });
    (body, finished.host)
}

pub fn body(source: &str) -> Value {
    execute(source, json!([]), Shelf::default())
        .0
        .unwrap_or_else(|error| panic!("{source}: {}", error.text()))
}
