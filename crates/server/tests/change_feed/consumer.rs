//! A consumer that goes on from its last continuation, whatever happens to the server.

use std::collections::HashMap;

use orrery_testkit::{Client, Reply};
use serde_json::Value;

use crate::writer::{Event, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Latest,
    All,
}

/// A part of a container that is read with one continuation.
pub struct Feed {
    scope: Vec<(&'static str, String)>,
    continuation: Option<String>,
}

/// What a consumer was told.
struct Seen {
    event: Event,
    lsn: u64,
    previous: Option<u64>,
}

/// Reads all of its feeds again and again.
pub struct Consumer {
    pub container: &'static str,
    /// Set when it reads one partition key only.
    pub key: Option<String>,
    mode: Mode,
    feeds: Vec<Feed>,
    /// By partition key.
    seen: HashMap<String, Vec<Seen>>,
    polls: usize,
}

fn feed(scope: Vec<(&'static str, String)>) -> Feed {
    Feed { scope, continuation: None }
}

fn ranges(client: &mut Client, container: &str) -> Vec<Value> {
    let path = format!("/dbs/storm/colls/{container}/pkranges");
    let reply = client.send("GET", &path, &[], b"").expect("the server is up");
    reply.json()["PartitionKeyRanges"].as_array().expect("ranges").clone()
}

/// One feed for each physical partition, by its id.
pub fn feeds_of_ranges(client: &mut Client, container: &str) -> Vec<Feed> {
    let id = |range: &Value| range["id"].as_str().expect("an id").to_owned();
    let scope = |range| vec![("x-ms-documentdb-partitionkeyrangeid", id(range))];
    ranges(client, container).iter().map(|range| feed(scope(range))).collect()
}

/// Two feeds for each physical partition, by parts of the key space.
pub fn feeds_of_parts(client: &mut Client, container: &str) -> Vec<Feed> {
    let mut feeds = Vec::new();
    for range in ranges(client, container) {
        let end = |name: &str| range[name].as_str().expect("a bound").to_owned();
        let (min, max) = (end("minInclusive"), end("maxExclusive"));
        // Hashes of this kind start with two zero bits.
        let byte =
            |text: &str| text.get(..2).map_or(0, |hex| u32::from_str_radix(hex, 16).expect("hex")).min(0x40);
        let middle = format!("{:02X}", (byte(&min) + byte(&max)) / 2);
        for (min, max) in [(min, middle.clone()), (middle, max)] {
            feeds.push(feed(vec![
                ("x-ms-read-key-type", "EffectivePartitionKeyRange".to_owned()),
                ("x-ms-start-epk", min),
                ("x-ms-end-epk", max),
            ]));
        }
    }
    feeds
}

pub fn feeds_of_key(key: &str) -> Vec<Feed> {
    vec![feed(vec![("x-ms-documentdb-partitionkey", format!("[\"{key}\"]"))])]
}

impl Consumer {
    pub fn new(container: &'static str, mode: Mode, feeds: Vec<Feed>, key: Option<String>) -> Consumer {
        Consumer { container, key, mode, feeds, seen: HashMap::new(), polls: 0 }
    }

    /// Takes the first continuation of each feed: from now on.
    pub fn begin(&mut self, client: &mut Client) {
        for feed in 0..self.feeds.len() {
            let reply = self.read(client, feed).expect("the server is up");
            assert_eq!(reply.status, 304, "{}", String::from_utf8_lossy(&reply.body));
        }
    }

    /// Reads one page of each feed; does nothing when the server is gone.
    pub fn poll(&mut self, client: &mut Client) {
        for feed in 0..self.feeds.len() {
            let _ = self.read(client, feed);
        }
    }

    /// Reads until nothing is left.
    pub fn drain(&mut self, client: &mut Client) {
        for feed in 0..self.feeds.len() {
            while self.read(client, feed).expect("the server is up").status == 200 {}
        }
    }

    fn read(&mut self, client: &mut Client, feed: usize) -> std::io::Result<Reply> {
        self.polls += 1;
        let page = (1 + self.polls * 7 % 23).to_string();
        let mode = if self.mode == Mode::All { "Full-Fidelity Feed" } else { "Incremental Feed" };
        let Feed { scope, continuation } = &self.feeds[feed];
        let mut headers = vec![("a-im", mode), ("x-ms-max-item-count", page.as_str())];
        headers.push(("if-none-match", continuation.as_deref().unwrap_or("*")));
        if self.mode == Mode::All {
            headers.push(("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15"));
        }
        headers.extend(scope.iter().map(|(name, value)| (*name, value.as_str())));
        let path = format!("/dbs/storm/colls/{}/docs", self.container);
        let reply = client.send("GET", &path, &headers, b"")?;
        assert!(matches!(reply.status, 200 | 304), "{}", String::from_utf8_lossy(&reply.body));
        let etag = reply.header("etag").expect("a continuation comes with every answer").to_owned();
        self.feeds[feed].continuation = Some(etag);
        if reply.status == 200 {
            for change in reply.json()["Documents"].as_array().expect("a feed") {
                self.note(change);
            }
        }
        Ok(reply)
    }

    fn note(&mut self, change: &Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let number = |value: &Value| value.as_u64().expect("a number");
        let (kind, item, lsn, previous) = match self.mode {
            Mode::Latest => (Kind::Create, change, number(&change["_lsn"]), None),
            Mode::All => {
                let metadata = &change["metadata"];
                let kind = match metadata["operationType"].as_str() {
                    Some("create") => Kind::Create,
                    Some("replace") => Kind::Replace,
                    Some("delete") => Kind::Delete,
                    other => panic!("{other:?} is no operation"),
                };
                let item = if kind == Kind::Delete { &change["previous"] } else { &change["current"] };
                if kind == Kind::Delete {
                    assert_eq!(
                        (&metadata["id"], &metadata["partitionKey"]["pk"]),
                        (&item["id"], &item["pk"])
                    );
                    assert_eq!(metadata["timeToLiveExpired"], false);
                }
                (kind, item, number(&metadata["lsn"]), metadata["previousImageLSN"].as_u64())
            }
        };
        let event = Event { kind, id: text(&item["id"]), version: number(&item["version"]) };
        self.seen.entry(text(&item["pk"])).or_default().push(Seen { event, lsn, previous });
    }

    /// As if it had been told these, one transaction each.
    pub fn pretend(&mut self, key: &str, events: &[Event]) {
        let seen =
            |(lsn, event): (usize, &Event)| Seen { event: event.clone(), lsn: lsn as u64, previous: None };
        self.seen.insert(key.to_owned(), events.iter().enumerate().map(seen).collect());
    }

    pub fn seen(&self) -> usize {
        self.seen.values().map(Vec::len).sum()
    }

    /// Compares what was seen with what was written to each partition key.
    pub fn check(&self, written: &HashMap<&str, &[Event]>) {
        let whose =
            |key: &str| format!("{:?} of {}, key {key}, reads {:?}", self.mode, self.container, self.key);
        for key in self.seen.keys() {
            assert!(written.contains_key(key.as_str()), "{}: nobody wrote there", whose(key));
        }
        for (key, events) in written {
            let seen = self.seen.get(*key).map_or(&[][..], Vec::as_slice);
            let order = seen.windows(2).all(|pair| pair[0].lsn <= pair[1].lsn);
            assert!(order, "{}: out of order", whose(key));
            match self.mode {
                Mode::Latest => check_latest(events, seen, &whose(key)),
                Mode::All => check_all(events, seen, &whose(key)),
            }
        }
    }
}

/// Versions of an item only grow, each was written, and the last one is the one that stayed.
fn check_latest(events: &[Event], seen: &[Seen], whose: &str) {
    let written = |id: &str, version| {
        events.iter().any(|event| event.id == id && event.version == version && event.kind != Kind::Delete)
    };
    let mut latest = HashMap::new();
    for Seen { event, .. } in seen {
        assert!(written(&event.id, event.version), "{whose}: {event:?} was never acknowledged");
        let before = latest.insert(event.id.as_str(), event.version);
        assert!(before.is_none_or(|before| before < event.version), "{whose}: {event:?} came twice");
    }
    let mut stayed = HashMap::new();
    for event in events {
        match event.kind {
            Kind::Delete => stayed.remove(event.id.as_str()),
            _ => stayed.insert(event.id.as_str(), event.version),
        };
    }
    for (id, version) in stayed {
        assert_eq!(latest.get(id), Some(&version), "{whose}: the last version of {id} is missing");
    }
}

/// Exactly what was written, in that order, and each change names the one before it.
fn check_all(events: &[Event], seen: &[Seen], whose: &str) {
    let shown: Vec<&Event> = seen.iter().map(|seen| &seen.event).collect();
    let expected: Vec<&Event> = events.iter().collect();
    if let Some(place) = (0..expected.len().max(shown.len())).find(|i| expected.get(*i) != shown.get(*i)) {
        panic!("{whose}: change {place} is {:?} and should be {:?}", shown.get(place), expected.get(place));
    }
    let mut lsns = HashMap::new();
    for Seen { event, lsn, previous } in seen {
        let before = match event.kind {
            Kind::Delete => lsns.remove(event.id.as_str()),
            _ => lsns.insert(event.id.as_str(), *lsn),
        };
        assert_eq!(*previous, before, "{whose}: the change before {event:?}");
    }
}
