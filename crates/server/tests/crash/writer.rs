//! Writers that own their keys, so that each knows exactly what must be there: what was acknowledged, and perhaps what
//! the one request under way would have made of it.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use orrery_testkit::{Client, Random, Reply};
use serde_json::{Value, json};

const WRITERS: usize = 8;
const KEYS_PER_WRITER: usize = 3;
const IDS_PER_KEY: usize = 6;
const BATCH_IDS: usize = 3;

/// Microseconds of the system's clock, which is also the one that calls of the system are dated with.
pub type Moment = u64;

pub fn now() -> Moment {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    now.as_micros() as Moment
}

/// The key and the id of an item.
type Place = (String, String);
/// What an item may be: its version number, or nothing.
type State = Option<u64>;
type Changes = Vec<(Place, State)>;

/// One request.
pub struct Step {
    sent: Moment,
    /// When the writer knew that it was carried out.
    pub answered: Option<Moment>,
    /// What it makes of items: all of it, or nothing.
    changes: Changes,
    /// The partition and the log sequence number that the answer told.
    session: Option<(u32, u64)>,
}

pub struct Writer {
    random: Random,
    version: u64,
    /// The largest item that it writes, in bytes of filling.
    pub fill_max: usize,
    belief: Belief,
    history: Vec<Step>,
}

/// What a writer knows of its own items at some moment.
#[derive(Clone)]
pub struct Belief {
    name: usize,
    container: &'static str,
    acknowledged: HashMap<Place, State>,
    /// The request under way: all of these changes, or none.
    in_flight: Changes,
    /// The server may never be behind what clients were told.
    lsn: HashMap<u32, u64>,
}

/// A few writers on two containers.
pub fn some(seed: u64) -> Vec<Writer> {
    let writer = |name: usize| Writer {
        random: Random::new(seed + name as u64 + 1),
        version: 0,
        fill_max: 2000,
        belief: Belief::new(name, if name.is_multiple_of(2) { "one" } else { "four" }),
        history: Vec::new(),
    };
    (0..WRITERS).map(writer).collect()
}

impl Writer {
    pub fn history(&self) -> &[Step] {
        &self.history
    }

    /// Writes until it is stopped or the server is gone.
    pub fn storm(&mut self, port: u16, stop: &AtomicBool, acknowledged: &AtomicU64) {
        let mut client = Client::new(port);
        while !stop.load(Ordering::Relaxed) {
            let key = format!("w{}-{}", self.belief.name, self.random.below(KEYS_PER_WRITER));
            self.version += 1;
            let answered = if self.random.one_in(4) {
                self.batch(&mut client, &key)
            } else {
                self.single(&mut client, &key)
            };
            if answered.is_err() {
                return;
            }
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn single(&mut self, client: &mut Client, key: &str) -> io::Result<()> {
        let id = format!("i{}", self.random.below(IDS_PER_KEY));
        let path = self.belief.items();
        let item = format!("{path}/{id}");
        let mut body = document(key, &id, self.version);
        let length = self.random.below(self.fill_max);
        body["fill"] = filling(&mut self.random, length).into();
        let place = (key.to_owned(), id);
        let exists = self.belief.acknowledged.get(&place).copied().flatten().is_some();
        let (verb, path, after, status) = match (exists, self.random.below(4)) {
            (false, _) => ("POST", &path, Some(self.version), 201),
            (true, 0) => ("DELETE", &item, None, 204),
            _ => ("PUT", &item, Some(self.version), 200),
        };
        let sent = if verb == "DELETE" { String::new() } else { body.to_string() };
        let header = format!("[\"{key}\"]");
        let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
        self.step(vec![(place, after)], status, || client.send(verb, path, &headers, sent.as_bytes()))
    }

    /// Upserts the batch items of a key together; they must always carry one version.
    fn batch(&mut self, client: &mut Client, key: &str) -> io::Result<()> {
        let ids: Vec<String> = (0..BATCH_IDS).map(|n| format!("b{n}")).collect();
        let upsert =
            |id: &String| json!({"operationType": "Upsert", "resourceBody": document(key, id, self.version)});
        let body = Value::from(ids.iter().map(upsert).collect::<Vec<_>>()).to_string();
        let changes = ids.into_iter().map(|id| ((key.to_owned(), id), Some(self.version))).collect();
        let header = format!("[\"{key}\"]");
        let headers = [
            ("x-ms-documentdb-partitionkey", header.as_str()),
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", "True"),
        ];
        let path = self.belief.items();
        self.step(changes, 200, || client.send("POST", &path, &headers, body.as_bytes()))
    }

    /// Sends a request and remembers what became of it.
    fn step(
        &mut self,
        changes: Changes,
        status: u16,
        send: impl FnOnce() -> io::Result<Reply>,
    ) -> io::Result<()> {
        self.belief.in_flight.clone_from(&changes);
        self.history.push(Step { sent: now(), answered: None, changes, session: None });
        let reply = send()?;
        assert_eq!(reply.status, status, "{}", String::from_utf8_lossy(&reply.body));
        let session = reply.header("x-ms-session-token").and_then(session);
        assert!(session.is_some(), "a write without a session token");
        self.answer(session);
        Ok(())
    }

    fn answer(&mut self, session: Option<(u32, u64)>) {
        let step = self.history.last_mut().expect("a request was sent");
        (step.answered, step.session) = (Some(now()), session);
        self.belief.learn(step);
    }

    /// Compares what is stored with what must be, and finds out what became of the request that was interrupted. Once
    /// that was seen it may not be undone either.
    pub fn settle(&mut self, client: &mut Client) -> Result<(), String> {
        let happened = self.belief.check(client)?;
        match (self.belief.in_flight.is_empty(), happened) {
            (true, _) => {}
            (false, true) => self.answer(None),
            (false, false) => {
                self.belief.in_flight.clear();
                self.history.pop();
            }
        }
        Ok(())
    }

    /// What the writer knew at a moment.
    pub fn belief_at(&self, moment: Moment) -> Belief {
        let mut belief = Belief::new(self.belief.name, self.belief.container);
        for step in self.history.iter().filter(|step| step.sent <= moment) {
            match step.answered.is_some_and(|answered| answered <= moment) {
                true => belief.learn(step),
                false => belief.in_flight.clone_from(&step.changes),
            }
        }
        belief
    }
}

impl Belief {
    fn new(name: usize, container: &'static str) -> Belief {
        let (acknowledged, lsn) = (HashMap::new(), HashMap::new());
        Belief { name, container, acknowledged, in_flight: Changes::new(), lsn }
    }

    fn learn(&mut self, step: &Step) {
        self.in_flight.clear();
        self.acknowledged.extend(step.changes.iter().cloned());
        if let Some((range, lsn)) = step.session {
            let seen = self.lsn.entry(range).or_default();
            *seen = lsn.max(*seen);
        }
    }

    fn items(&self) -> String {
        format!("/dbs/crash/colls/{}/docs", self.container)
    }

    /// Compares what is stored with what must be. Tells whether the request under way was carried out.
    pub fn check(&self, client: &mut Client) -> Result<bool, String> {
        let stored = self.read_all(client)?;
        let is_done = |(place, after): &(Place, State)| stored.get(place).copied() == *after;
        let happened = !self.in_flight.is_empty() && self.in_flight.iter().all(is_done);
        let mut states = self.acknowledged.clone();
        if happened {
            states.extend(self.in_flight.iter().cloned());
        }
        let expected: HashMap<Place, u64> =
            states.into_iter().filter_map(|(place, state)| Some((place, state?))).collect();
        if stored != expected {
            let differs = |place: &&Place| stored.get(*place) != expected.get(*place);
            let mut places: Vec<_> = stored.keys().chain(expected.keys()).filter(differs).collect();
            places.sort();
            places.dedup();
            let told = places.iter().map(|place| {
                format!("{place:?} is {:?} instead of {:?}", stored.get(*place), expected.get(*place))
            });
            let told: Vec<String> = told.take(5).collect();
            return Err(format!(
                "writer {} of {}: {}; under way: {:?}",
                self.name,
                self.container,
                told.join(", "),
                self.in_flight
            ));
        }
        if let Some(((key, id), version)) = expected.iter().next() {
            self.probe(client, key, id, *version)?;
        }
        self.check_sessions(client)?;
        Ok(happened)
    }

    fn read_all(&self, client: &mut Client) -> Result<HashMap<Place, u64>, String> {
        let mut stored = HashMap::new();
        for key in 0..KEYS_PER_WRITER {
            let key = format!("w{}-{key}", self.name);
            let header = format!("[\"{key}\"]");
            let headers =
                [("x-ms-documentdb-partitionkey", header.as_str()), ("x-ms-max-item-count", "1000")];
            let reply = client.send("GET", &self.items(), &headers, b"").expect("the server is up");
            if reply.status != 200 {
                return Err(format!("{key}: {}", String::from_utf8_lossy(&reply.body)));
            }
            assert_eq!(reply.header("x-ms-continuation"), None);
            for item in reply.json()["Documents"].as_array().expect("a feed") {
                let id = item["id"].as_str().expect("an id").to_owned();
                stored.insert((key.clone(), id), item["version"].as_u64().expect("a version"));
            }
        }
        Ok(stored)
    }

    /// Tries to take the unique value of an item that is there.
    fn probe(&self, client: &mut Client, key: &str, id: &str, version: u64) -> Result<(), String> {
        let mut body = document(key, id, version);
        body["id"] = "probe".into();
        let header = format!("[\"{key}\"]");
        let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
        let reply = client.send("POST", &self.items(), &headers, body.to_string().as_bytes());
        let reply = reply.expect("the server is up");
        match (reply.status, reply.sub_status()) {
            (409, 3301) => Ok(()),
            other => Err(format!("the unique value of {id} was forgotten: {other:?}")),
        }
    }

    fn check_sessions(&self, client: &mut Client) -> Result<(), String> {
        for (range, lsn) in &self.lsn {
            let token = format!("{range}:-1#{lsn}");
            let key = format!("[\"w{}-0\"]", self.name);
            let headers =
                [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-session-token", token.as_str())];
            let path = format!("{}/i0", self.items());
            let reply = client.send("GET", &path, &headers, b"").expect("the server is up");
            if reply.sub_status() == 1002 {
                return Err(format!("LSN {lsn} of range {range} was acknowledged, and is not there"));
            }
        }
        Ok(())
    }
}

/// An item that has, besides its version, a unique value and an end of its own.
fn document(key: &str, id: &str, version: u64) -> Value {
    json!({"id": id, "pk": key, "version": version, "unique": format!("{id}:{version}"), "ttl": 86_400})
}

fn session(token: &str) -> Option<(u32, u64)> {
    let (range, rest) = token.split_once(':')?;
    let lsn = rest.rsplit('#').next()?;
    Some((range.parse().ok()?, lsn.parse().ok()?))
}

/// A text that cannot be packed, so that what is written is as large as what was sent.
fn filling(random: &mut Random, length: usize) -> String {
    random.bytes(length).into_iter().map(|byte| char::from(b'0' + byte % 64)).collect()
}
