//! A writer that knows exactly what it has written.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use orrery_testkit::{Client, Random, Reply};
use serde_json::{Value, json};

const KEYS: usize = 2;
const IDS: usize = 4;
const BATCH_IDS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Create,
    Replace,
    Delete,
}

/// One change of one item. A delete carries the version that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: Kind,
    pub id: String,
    pub version: u64,
}

/// Owns some partition keys; nobody else writes to them.
pub struct Writer {
    pub container: &'static str,
    /// What happened to each partition key, in order.
    pub logs: HashMap<String, Vec<Event>>,
    name: usize,
    random: Random,
    version: u64,
    items: HashMap<(String, String), u64>,
    /// The request that a kill interrupted: all of these changes, or none.
    in_flight: Option<(String, Vec<Event>)>,
}

impl Writer {
    pub fn new(name: usize, container: &'static str, seed: u64) -> Writer {
        Writer {
            container,
            logs: HashMap::new(),
            name,
            random: Random::new(seed + name as u64 + 1),
            version: 0,
            items: HashMap::new(),
            in_flight: None,
        }
    }

    pub fn key_of(writer: usize, key: usize) -> String {
        format!("w{writer}-{key}")
    }

    /// Writes until the server is gone.
    pub fn storm(&mut self, port: u16, stop: &AtomicBool, acknowledged: &AtomicU64) {
        let mut client = Client::new(port);
        while !stop.load(Ordering::Relaxed) {
            let key = Writer::key_of(self.name, self.random.below(KEYS));
            let answered = match self.random.below(4) {
                0 => self.batch(&mut client, &key),
                _ => self.single(&mut client, &key),
            };
            let Ok(reply) = answered else { return };
            assert!(reply.status < 300, "{}: {}", reply.status, String::from_utf8_lossy(&reply.body));
            acknowledged.fetch_add(1, Ordering::Relaxed);
            self.happened();
        }
    }

    fn single(&mut self, client: &mut Client, key: &str) -> io::Result<Reply> {
        let id = format!("i{}", self.random.below(IDS));
        let stored = self.items.get(&(key.to_owned(), id.clone())).copied();
        let (verb, kind) = match (stored, self.random.below(3)) {
            (None, _) => ("POST", Kind::Create),
            (Some(_), 0) => ("DELETE", Kind::Delete),
            (Some(_), _) => ("PUT", Kind::Replace),
        };
        let version = if kind == Kind::Delete { stored.unwrap_or_default() } else { self.next_version() };
        let body =
            json!({"id": id, "pk": key, "version": version, "fill": "x".repeat(self.random.below(500))});
        let body = if kind == Kind::Delete { String::new() } else { body.to_string() };
        let path = match kind {
            Kind::Create => self.docs(),
            _ => format!("{}/{id}", self.docs()),
        };
        self.in_flight = Some((key.to_owned(), vec![Event { kind, id, version }]));
        client.send(verb, &path, &[("x-ms-documentdb-partitionkey", &header(key))], body.as_bytes())
    }

    /// Writes several items at once: one of them is replaced in the same transaction, another one deleted.
    fn batch(&mut self, client: &mut Client, key: &str) -> io::Result<Reply> {
        let (mut events, mut operations) = (Vec::new(), Vec::new());
        for number in 0..BATCH_IDS {
            let id = format!("b{number}");
            let is_stored = self.items.contains_key(&(key.to_owned(), id.clone()));
            let kind = if is_stored { Kind::Replace } else { Kind::Create };
            self.upsert(kind, key, &id, &mut events, &mut operations);
            match number {
                0 => self.upsert(Kind::Replace, key, &id, &mut events, &mut operations),
                1 => {
                    operations.push(json!({"operationType": "Delete", "id": id}));
                    events.push(Event { kind: Kind::Delete, id, version: self.version });
                }
                _ => {}
            }
        }
        self.in_flight = Some((key.to_owned(), events));
        let headers = [
            ("x-ms-documentdb-partitionkey", header(key)),
            ("x-ms-cosmos-is-batch-request", "True".to_owned()),
            ("x-ms-cosmos-batch-atomic", "True".to_owned()),
        ];
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        client.send("POST", &self.docs(), &headers, Value::from(operations).to_string().as_bytes())
    }

    fn upsert(
        &mut self,
        kind: Kind,
        key: &str,
        id: &str,
        events: &mut Vec<Event>,
        operations: &mut Vec<Value>,
    ) {
        let version = self.next_version();
        let body = json!({"id": id, "pk": key, "version": version});
        operations.push(json!({"operationType": "Upsert", "resourceBody": body}));
        events.push(Event { kind, id: id.to_owned(), version });
    }

    /// After a kill: finds out whether the interrupted request took effect.
    pub fn settle(&mut self, client: &mut Client) {
        let Some((key, events)) = self.in_flight.clone() else { return };
        // The last event on its item decides what is stored after it.
        let last = events.last().expect("a request has events");
        let path = format!("{}/{}", self.docs(), last.id);
        let reply = client.send("GET", &path, &[("x-ms-documentdb-partitionkey", &header(&key))], b"");
        let reply = reply.expect("the server is up");
        let stored = (reply.status == 200).then(|| reply.json()["version"].as_u64().expect("a version"));
        let expected = (last.kind != Kind::Delete).then_some(last.version);
        match stored == expected {
            true => self.happened(),
            false => self.in_flight = None,
        }
    }

    fn happened(&mut self) {
        let Some((key, events)) = self.in_flight.take() else { return };
        for event in &events {
            let place = (key.clone(), event.id.clone());
            match event.kind {
                Kind::Delete => self.items.remove(&place),
                _ => self.items.insert(place, event.version),
            };
        }
        self.logs.entry(key).or_default().extend(events);
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn docs(&self) -> String {
        format!("/dbs/storm/colls/{}/docs", self.container)
    }
}

fn header(key: &str) -> String {
    format!("[\"{key}\"]")
}
