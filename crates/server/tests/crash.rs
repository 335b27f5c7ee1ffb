//! Kill the server at any moment: nothing acknowledged is lost, no batch is torn, all accounts agree, and what was
//! unique still is.
//!
//! Each writer owns its keys, so it knows exactly what must be there: the last state that was acknowledged, or the
//! state that the one request in flight at the kill would have made. After every kill the data directory is checked
//! offline, and then by reading everything back through a restarted server.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use orrery_testkit::{Client, PATIENCE, Random, Reply, Server, has_reached};
use serde_json::{Value, json};

const ROUNDS: u32 = 50;
const WRITERS: usize = 8;
const KEYS_PER_WRITER: usize = 3;
const IDS_PER_KEY: usize = 6;
const BATCH_IDS: usize = 3;
/// A kill before so many writes of its round were acknowledged would prove little.
const WRITES_PER_KILL: u64 = 11;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

/// What an item may be: its version number, or nothing.
type State = Option<u64>;

/// One writer's belief about its own items in one container.
struct Writer {
    random: Random,
    container: &'static str,
    name: usize,
    acknowledged: HashMap<(String, String), State>,
    /// The request that the kill interrupted: all of these changes, or none.
    in_flight: Vec<((String, String), State)>,
    version: u64,
    lsn: HashMap<u32, u64>,
}

impl Writer {
    fn key(&mut self) -> String {
        format!("w{}-{}", self.name, self.random.below(KEYS_PER_WRITER))
    }

    /// Writes until the server is gone.
    fn storm(&mut self, port: u16, stop: &AtomicBool, acknowledged: &AtomicU64) {
        let mut client = Client::new(port);
        while !stop.load(Ordering::Relaxed) {
            let key = self.key();
            self.version += 1;
            let answered = if self.random.below(4) == 0 {
                self.batch(&mut client, &key)
            } else {
                self.single(&mut client, &key)
            };
            match answered {
                Ok(reply) => {
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    self.learn(&reply);
                }
                Err(_) => return,
            }
        }
    }

    fn state(&self, key: &str, id: &str) -> State {
        self.acknowledged.get(&(key.to_owned(), id.to_owned())).copied().flatten()
    }

    fn single(&mut self, client: &mut Client, key: &str) -> std::io::Result<Reply> {
        let id = format!("i{}", self.random.below(IDS_PER_KEY));
        let path = format!("/dbs/crash/colls/{}/docs", self.container);
        let item = format!("{path}/{id}");
        let mut body = document(key, &id, self.version);
        body["fill"] = "x".repeat(self.random.below(2000)).into();
        let body = body.to_string();
        let header = format!("[\"{key}\"]");
        let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
        let exists = self.state(key, &id).is_some();
        let choice = self.random.below(4);
        let (verb, path, after, status) = match (exists, choice) {
            (false, _) => ("POST", &path, Some(self.version), 201),
            (true, 0) => ("DELETE", &item, None, 204),
            _ => ("PUT", &item, Some(self.version), 200),
        };
        let place = (key.to_owned(), id.clone());
        self.in_flight = vec![(place, after)];
        let sent: &[u8] = if verb == "DELETE" { b"" } else { body.as_bytes() };
        let reply = client.send(verb, path, &headers, sent)?;
        assert_eq!(reply.status, status, "{verb} {path}: {}", String::from_utf8_lossy(&reply.body));
        self.settle();
        Ok(reply)
    }

    /// Upserts the batch items of a key together; they must always carry one version.
    fn batch(&mut self, client: &mut Client, key: &str) -> std::io::Result<Reply> {
        let path = format!("/dbs/crash/colls/{}/docs", self.container);
        let ids: Vec<String> = (0..BATCH_IDS).map(|n| format!("b{n}")).collect();
        let ops: Vec<_> = ids
            .iter()
            .map(|id| {
                let body = document(key, id, self.version);
                json!({"operationType": "Upsert", "resourceBody": body})
            })
            .collect();
        self.in_flight = ids.iter().map(|id| ((key.to_owned(), id.clone()), Some(self.version))).collect();
        let header = format!("[\"{key}\"]");
        let headers = [
            ("x-ms-documentdb-partitionkey", header.as_str()),
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", "True"),
        ];
        let reply = client.send("POST", &path, &headers, Value::from(ops).to_string().as_bytes())?;
        assert_eq!(reply.status, 200, "batch: {}", String::from_utf8_lossy(&reply.body));
        self.settle();
        Ok(reply)
    }

    fn settle(&mut self) {
        let in_flight = std::mem::take(&mut self.in_flight);
        self.acknowledged.extend(in_flight);
    }

    /// Remembers the LSN that the client was told; the server may never be behind it again.
    fn learn(&mut self, reply: &Reply) {
        let Some((range, lsn)) = reply.header("x-ms-session-token").and_then(session) else {
            panic!("a write without a session token");
        };
        let seen = self.lsn.entry(range).or_default();
        assert!(lsn > 0);
        *seen = lsn.max(*seen);
    }

    /// Compares what is stored with what must be, and settles the request that was in flight.
    fn check(&mut self, client: &mut Client, round: u32) {
        let stored = self.read_all(client);
        let all_or_none: Vec<bool> =
            self.in_flight.iter().map(|(place, after)| stored.get(place).copied() == *after).collect();
        let happened = all_or_none.iter().all(|&done| done) && !all_or_none.is_empty();
        for (place, after) in &self.in_flight {
            let found = stored.get(place).copied();
            let before = self.acknowledged.get(place).copied().flatten();
            let expected = if happened { *after } else { before };
            assert_eq!(found, expected, "round {round}: {place:?} is torn or lost");
        }
        if happened {
            self.settle();
        }
        self.in_flight.clear();
        let expected: HashMap<_, _> = self
            .acknowledged
            .iter()
            .filter_map(|(place, state)| state.map(|version| (place.clone(), version)))
            .collect();
        assert_eq!(stored, expected, "round {round}: writer {} of {}", self.name, self.container);
        if let Some(((key, id), version)) = expected.iter().next() {
            self.probe(client, key, id, *version, round);
        }
        for (range, lsn) in &self.lsn {
            let token = format!("{range}:-1#{lsn}");
            let key = format!("[\"w{}-0\"]", self.name);
            let headers =
                [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-session-token", token.as_str())];
            let path = format!("/dbs/crash/colls/{}/docs/i0", self.container);
            let reply = client.send("GET", &path, &headers, b"").expect("the server is up");
            assert_ne!(
                reply.sub_status(),
                1002,
                "round {round}: LSN {lsn} of range {range} was acknowledged"
            );
        }
    }

    /// Tries to take the unique value of an item that is there.
    fn probe(&self, client: &mut Client, key: &str, id: &str, version: u64, round: u32) {
        let mut body = document(key, id, version);
        body["id"] = "probe".into();
        let header = format!("[\"{key}\"]");
        let headers = [("x-ms-documentdb-partitionkey", header.as_str())];
        let path = format!("/dbs/crash/colls/{}/docs", self.container);
        let reply = client.send("POST", &path, &headers, body.to_string().as_bytes());
        let reply = reply.expect("the server is up");
        let refusal = (reply.status, reply.sub_status());
        assert_eq!(refusal, (409, 3301), "round {round}: the unique value of {id} was forgotten");
    }

    fn read_all(&self, client: &mut Client) -> HashMap<(String, String), u64> {
        let mut stored = HashMap::new();
        for key in 0..KEYS_PER_WRITER {
            let key = format!("w{}-{key}", self.name);
            let header = format!("[\"{key}\"]");
            let headers =
                [("x-ms-documentdb-partitionkey", header.as_str()), ("x-ms-max-item-count", "1000")];
            let path = format!("/dbs/crash/colls/{}/docs", self.container);
            let reply = client.send("GET", &path, &headers, b"").expect("the server is up");
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
            assert_eq!(reply.header("x-ms-continuation"), None);
            for item in reply.json()["Documents"].as_array().expect("a feed") {
                let id = item["id"].as_str().expect("an id").to_owned();
                stored.insert((key.clone(), id), item["version"].as_u64().expect("a version"));
            }
        }
        stored
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

fn create_containers(port: u16) {
    let mut client = Client::new(port);
    let reply = client.send("POST", "/dbs", &[], br#"{"id":"crash"}"#).expect("the server is up");
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    for (id, throughput) in [("one", "400"), ("four", "24000")] {
        let body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/unique"]}]},
            "defaultTtl": -1,
        });
        let headers = [("x-ms-offer-throughput", throughput)];
        let reply = client.send("POST", "/dbs/crash/colls", &headers, body.to_string().as_bytes());
        let reply = reply.expect("the server is up");
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    }
}

fn writers(seed: u64) -> Vec<Writer> {
    (0..WRITERS)
        .map(|name| Writer {
            random: Random::new(seed + name as u64 + 1),
            container: if name % 2 == 0 { "one" } else { "four" },
            name,
            acknowledged: HashMap::new(),
            in_flight: Vec::new(),
            version: 0,
            lsn: HashMap::new(),
        })
        .collect()
}

/// The offline check: sizes, counts, feed, index, unique values and ends must agree with the items.
fn verify(directory: &Path) {
    let output = Command::new(binary()).args(["verify", "--data-dir"]).arg(directory).output();
    let output = output.expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "verify: {text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nothing_acknowledged_is_lost_to_sigkill() {
    let mut random = Random::from_environment();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut server = Server::start_on(binary(), directory.path(), &["--no-throttle"]);
    create_containers(server.port());
    let mut writers = writers(random.seed());
    let acknowledged = AtomicU64::new(0);
    for round in 0..ROUNDS {
        let stop = AtomicBool::new(false);
        let port = server.port();
        let enough = acknowledged.load(Ordering::Relaxed) + WRITES_PER_KILL;
        let worth_it = std::thread::scope(|scope| {
            for writer in &mut writers {
                scope.spawn(|| writer.storm(port, &stop, &acknowledged));
            }
            std::thread::sleep(Duration::from_millis(20 + random.below(200) as u64));
            let worth_it = has_reached(&acknowledged, enough);
            server.kill();
            stop.store(true, Ordering::Relaxed);
            worth_it
        });
        assert!(worth_it, "round {round}: fewer than {WRITES_PER_KILL} writes in {PATIENCE:?}");
        if round % 10 == 0 {
            verify(directory.path());
        }
        server = Server::start_on(binary(), directory.path(), &["--no-throttle"]);
        let mut client = Client::new(server.port());
        writers.iter_mut().for_each(|writer| writer.check(&mut client, round));
    }
    server.stop();
    verify(directory.path());
    let total = acknowledged.into_inner();
    println!("{ROUNDS} kills, {total} acknowledged writes, 0 lost");
    assert!(total > u64::from(ROUNDS) * 10, "only {total} writes were acknowledged: the test proves little");
}
