//! Histories of a real server, recorded by clients at the same time and across a kill, against the checker of consistency
//! levels. One replica gives every level the strongest answers, so all levels must accept them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_testkit::levels::{Action, Broken, Event, History, Level, Place, Seen};
use orrery_testkit::{Client, Random, Reply, Server, wait_for};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_orrery");
const ITEMS: &str = "/dbs/d/colls/c/docs";
const PARTITION: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"p\"]");
const KEYS: [&str; 3] = ["x", "y", "z"];
const CLIENTS: usize = 6;
/// Answers before the kill, and after it.
const ANSWERS: u64 = 900;

const LEVELS: [Level; 5] = [
    Level::Strong,
    Level::Bounded { writes: 0, time: 0 },
    Level::Session,
    Level::ConsistentPrefix,
    Level::Eventual,
];

/// What all clients share.
struct Recorder {
    /// Moments, and values, each given once.
    clock: AtomicU64,
    answers: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    fn moment(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, session: usize, begin: u64, end: Option<u64>, action: Action) {
        let (session, partition) = (session.to_string(), String::new());
        self.events.lock().expect("nobody panics here").push(Event {
            session,
            partition,
            begin,
            end,
            action,
        });
    }
}

fn place(reply: &Reply, header: &str) -> Place {
    let lsn = reply.header(header).and_then(|lsn| lsn.parse().ok());
    Place::lsn(lsn.unwrap_or_else(|| panic!("{header} in {reply:?}")))
}

/// Sends requests until enough were answered, or the server is gone.
fn work(recorder: &Recorder, session: usize, port: u16, enough: u64, random: &mut Random) {
    let mut client = Client::new(port);
    while recorder.answers.load(Ordering::SeqCst) < enough {
        let is_answered = match random.below(5) {
            0 => write(recorder, session, &mut client, &[KEYS[random.below(KEYS.len())]]),
            1 => write(recorder, session, &mut client, &["x", "y"]),
            2 => read_all(recorder, session, &mut client),
            _ => read_one(recorder, session, &mut client, KEYS[random.below(KEYS.len())]),
        };
        if !is_answered {
            return;
        }
        recorder.answers.fetch_add(1, Ordering::SeqCst);
    }
}

/// Writes one item, or several in one transaction.
fn write(recorder: &Recorder, session: usize, client: &mut Client, keys: &[&str]) -> bool {
    let writes: Vec<(String, u64)> = keys.iter().map(|key| ((*key).to_owned(), recorder.moment())).collect();
    let items: Vec<Value> = writes.iter().map(|(key, n)| json!({"id": key, "pk": "p", "n": n})).collect();
    let begin = recorder.moment();
    let sent = match items.as_slice() {
        [item] => {
            let headers = [PARTITION, ("x-ms-documentdb-is-upsert", "true")];
            client.send("POST", ITEMS, &headers, item.to_string().as_bytes())
        }
        items => {
            let headers =
                [PARTITION, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
            let upsert = |item: &Value| json!({"operationType": "Upsert", "resourceBody": item});
            let body = Value::from(items.iter().map(upsert).collect::<Vec<_>>());
            client.send("POST", ITEMS, &headers, body.to_string().as_bytes())
        }
    };
    let (end, is_answered) = (recorder.moment(), sent.is_ok());
    let action = match sent {
        Ok(reply) if reply.status < 300 => Action::Write { writes, place: Some(place(&reply, "lsn")) },
        Ok(reply) => {
            assert_eq!(reply.status, 429, "{reply:?}");
            Action::Refused { writes }
        }
        Err(_) => Action::Write { writes, place: None },
    };
    recorder.record(session, begin, is_answered.then_some(end), action);
    is_answered
}

fn read_one(recorder: &Recorder, session: usize, client: &mut Client, key: &str) -> bool {
    let begin = recorder.moment();
    let Ok(reply) = client.send("GET", &format!("{ITEMS}/{key}"), &[PARTITION], b"") else { return false };
    let end = recorder.moment();
    let value = match reply.status {
        200 => Some((reply.json()["n"].as_u64().expect("a number"), place(&reply, "x-ms-item-lsn"))),
        404 => None,
        _ => return true,
    };
    let seen = vec![Seen { key: key.to_owned(), value }];
    recorder.record(session, begin, Some(end), Action::Read { seen, at: place(&reply, "lsn") });
    true
}

/// Reads all items by one query. Its rows have no LSNs; they are filled in when the places of the writes are known.
fn read_all(recorder: &Recorder, session: usize, client: &mut Client) -> bool {
    let headers =
        [PARTITION, ("x-ms-documentdb-isquery", "True"), ("content-type", "application/query+json")];
    let begin = recorder.moment();
    let Ok(reply) = client.send("POST", ITEMS, &headers, br#"{"query":"SELECT c.id, c.n FROM c"}"#) else {
        return false;
    };
    let end = recorder.moment();
    if reply.status != 200 {
        return true;
    }
    let body = reply.json();
    let rows = body["Documents"].as_array().expect("rows");
    let value_of = |key: &str| rows.iter().find(|row| row["id"] == key)?["n"].as_u64();
    let seen = |key: &str| {
        let value = value_of(key).map(|value| (value, Place::default()));
        Seen { key: key.to_owned(), value }
    };
    let seen = KEYS.into_iter().map(seen).collect();
    recorder.record(session, begin, Some(end), Action::Read { seen, at: place(&reply, "lsn") });
    true
}

/// Gives what queries have seen its places. What nobody knows the place of cannot be judged.
fn placed(events: Vec<Event>) -> History {
    let mut places: HashMap<u64, Place> = HashMap::new();
    for event in &events {
        match &event.action {
            Action::Write { writes, place: Some(place) } => {
                places.extend(writes.iter().map(|(_, value)| (*value, *place)));
            }
            Action::Read { seen, .. } => {
                let told = seen.iter().filter_map(|seen| seen.value);
                places.extend(told.filter(|(_, place)| *place != Place::default()));
            }
            _ => {}
        }
    }
    let mut history = History::default();
    for mut event in events {
        if let Action::Read { seen, .. } = &mut event.action {
            for (value, place) in seen.iter_mut().filter_map(|seen| seen.value.as_mut()) {
                *place = places.get(value).copied().unwrap_or_default();
            }
            if seen.iter().any(|seen| seen.value.is_some_and(|(_, place)| place == Place::default())) {
                continue;
            }
        }
        history.push(event);
    }
    history
}

fn clients(recorder: &Recorder, first: usize, port: u16, enough: u64, seed: u64, meanwhile: impl FnOnce()) {
    std::thread::scope(|scope| {
        for session in first..first + CLIENTS {
            let mut random = Random::new(seed + session as u64);
            scope.spawn(move || work(recorder, session, port, enough, &mut random));
        }
        meanwhile();
    });
}

fn recorded() -> History {
    let seed = Random::from_environment().seed();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_on(Path::new(BINARY), directory.path(), &[]);
    let mut client = Client::new(server.port());
    let made = client.send("POST", "/dbs", &[], br#"{"id":"d"}"#).expect("an answer");
    assert_eq!(made.status, 201);
    let body = br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let made =
        client.send("POST", "/dbs/d/colls", &[("x-ms-offer-throughput", "10000")], body).expect("an answer");
    assert_eq!(made.status, 201);
    // Values and moments begin at 1.
    let recorder =
        Recorder { clock: AtomicU64::new(1), answers: AtomicU64::new(0), events: Mutex::default() };
    let port = server.port();
    clients(&recorder, 0, port, u64::MAX, seed, || {
        wait_for(|| match recorder.answers.load(Ordering::SeqCst) {
            answers if answers >= ANSWERS => Ok(()),
            answers => Err(format!("{answers} answers")),
        });
        server.kill();
    });
    let server = Server::start_on(Path::new(BINARY), directory.path(), &[]);
    let enough = recorder.answers.load(Ordering::SeqCst) + ANSWERS;
    clients(&recorder, CLIENTS, server.port(), enough, seed, || {});
    server.stop();
    let mut events = recorder.events.into_inner().expect("nobody panicked");
    events.sort_by_key(|event| event.begin);
    placed(events)
}

#[test]
fn what_clients_record_keeps_all_levels_and_a_change_to_it_does_not() {
    let history = recorded();
    let count = |is: fn(&Action) -> bool| history.events.iter().filter(|event| is(&event.action)).count();
    let writes = count(|action| matches!(action, Action::Write { place: Some(_), .. }));
    let unknown = count(|action| matches!(action, Action::Write { place: None, .. }));
    let reads = count(|action| matches!(action, Action::Read { .. }));
    println!("{writes} acknowledged writes, {unknown} of unknown fate, {reads} reads");
    assert!(writes > 100 && reads > 100);
    for level in LEVELS {
        let checked = history.check(level);
        assert_eq!(checked, Ok(()), "{level:?}:\n{history}");
    }

    // The same history with one answer of long ago at its end.
    let is_read = |event: &&Event| match &event.action {
        Action::Read { seen, .. } => seen.len() == 1 && seen[0].value.is_some(),
        _ => false,
    };
    let mut late = history.events.iter().find(is_read).expect("a read").clone();
    let end = history.events.iter().filter_map(|event| event.end).max().unwrap_or_default();
    (late.begin, late.end) = (end + 1, Some(end + 2));
    let mut changed = history.clone();
    changed.push(late);
    for level in LEVELS {
        let broken = changed.check(level).err().map(|violation| violation.broken);
        let wanted = match level {
            Level::Strong => Some(Broken::Stale),
            Level::Bounded { .. } => Some(Broken::TooManyWritesBehind),
            // Its session ended long before.
            Level::Session => Some(Broken::MonotonicReads),
            Level::ConsistentPrefix | Level::Eventual => None,
        };
        assert_eq!(broken.is_some(), wanted.is_some(), "{level:?}: {broken:?}");
        if level != Level::Session {
            assert_eq!(broken, wanted);
        }
    }
}
