//! Writers that go on while something happens to their container, and that know what must be in it afterwards.
//!
//! Items are numbered, and what an item of a number and a version looks like is fixed. Each writer owns a share of the
//! numbers, so the last version that it got acknowledged is what must be there. A writer whose request broke off sends it
//! again until it is answered; all of its requests may be repeated.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Client, Random, Reply, wait_for};

/// Items of one logical partition when they are loaded.
const ITEMS_PER_KEY: u64 = 50;
const PAGE_ITEMS: &str = "1000";
const PAD: &str =
    "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";

/// A container and the numbered items that were loaded into it.
#[derive(Clone, Debug)]
pub struct Field {
    pub database: String,
    pub container: String,
    /// How many items were loaded.
    pub items: u64,
}

/// Items that were read, by number: their version and a hash of all that they say.
pub type Found = HashMap<u64, (u64, u64)>;

/// What the writers have changed: the version of an item, or nothing where it was deleted.
pub type Model = HashMap<u64, Option<u64>>;

pub struct Crowd {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    writers: Vec<JoinHandle<Model>>,
}

impl Field {
    fn path(&self) -> String {
        format!("/dbs/{}/colls/{}", self.database, self.container)
    }

    /// The item of a number. Its city changes with its version; its key and its region never do.
    pub fn item(&self, number: u64, version: u64) -> Value {
        let keys = (self.items / ITEMS_PER_KEY).max(1);
        json!({
            "id": format!("i{number}"),
            "pk": format!("p{}", number % keys),
            "city": format!("c{}", (number * 7 + version) % 997),
            "region": format!("r{}", number % 977),
            "n": version,
            "pad": PAD,
        })
    }

    /// Fills the container with version 0 of all items, in batches.
    pub fn load(&self, port: u16, threads: u64) {
        let keys = (self.items / ITEMS_PER_KEY).max(1);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut client = Client::new(port);
                    for key in (thread..keys).step_by(threads as usize) {
                        self.load_key(&mut client, key, keys);
                    }
                });
            }
        });
    }

    fn load_key(&self, client: &mut Client, key: u64, keys: u64) {
        let numbers: Vec<u64> = (key..self.items).step_by(keys as usize).collect();
        for numbers in numbers.chunks(ITEMS_PER_KEY as usize) {
            let op = |number: &u64| json!({"operationType": "Upsert", "resourceBody": self.item(*number, 0)});
            let body = Value::from(numbers.iter().map(op).collect::<Vec<_>>()).to_string();
            let header = json!([format!("p{key}")]).to_string();
            let headers = [
                ("x-ms-documentdb-partitionkey", header.as_str()),
                ("x-ms-cosmos-is-batch-request", "True"),
                ("x-ms-cosmos-batch-atomic", "True"),
            ];
            let path = format!("{}/docs", self.path());
            let reply = client.send("POST", &path, &headers, body.as_bytes()).expect("the server is there");
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        }
    }

    /// All items of a container, by number; what is there twice is an error.
    pub fn read(&self, port: u16, container: &str) -> Found {
        let mut client = Client::new(port);
        let base = format!("/dbs/{}/colls/{container}", self.database);
        let ranges = client.send("GET", &format!("{base}/pkranges"), &[], b"").expect("the server is there");
        let mut found = HashMap::new();
        for range in ranges.json()["PartitionKeyRanges"].as_array().expect("ranges") {
            let range = range["id"].as_str().expect("an id").to_owned();
            let mut continuation: Option<String> = None;
            loop {
                let mut headers = vec![
                    ("x-ms-documentdb-partitionkeyrangeid", range.as_str()),
                    ("x-ms-max-item-count", PAGE_ITEMS),
                ];
                headers.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
                let reply =
                    client.send("GET", &format!("{base}/docs"), &headers, b"").expect("the server is there");
                assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
                let mut page = reply.json();
                for mut item in page["Documents"].as_array_mut().expect("items").drain(..) {
                    strip(&mut item);
                    let number = item["id"].as_str().and_then(|id| id[1..].parse().ok()).expect("a number");
                    assert!(
                        found.insert(number, fingerprint(&item)).is_none(),
                        "item {number} is there twice"
                    );
                }
                continuation = reply.header("x-ms-continuation").map(str::to_owned);
                if continuation.is_none() {
                    break;
                }
            }
        }
        found
    }

    /// What is not as it must be, in words; the first few.
    pub fn compare(&self, found: &Found, model: &Model) -> Vec<String> {
        let mut findings = Vec::new();
        let mut expected = 0;
        let most = model.keys().copied().max().unwrap_or(0).max(self.items) + 1;
        for number in 0..most {
            let loaded = (number < self.items).then_some(0);
            let version = model.get(&number).copied().unwrap_or(loaded);
            expected += u64::from(version.is_some());
            let wanted = version.map(|version| fingerprint(&self.item(number, version)));
            if found.get(&number) != wanted.as_ref() {
                findings.push(format!("item {number}: {:?} instead of {wanted:?}", found.get(&number)));
            }
        }
        if found.len() as u64 != expected {
            findings.push(format!("{} items instead of {expected}", found.len()));
        }
        findings.truncate(10);
        findings
    }
}

fn fingerprint(item: &Value) -> (u64, u64) {
    let mut hasher = DefaultHasher::new();
    item.to_string().hash(&mut hasher);
    (item["n"].as_u64().unwrap_or(u64::MAX), hasher.finish())
}

fn strip(item: &mut Value) {
    if let Some(item) = item.as_object_mut() {
        item.retain(|name, _| !name.starts_with('_'));
    }
}

impl Crowd {
    /// Starts writers that together make so many writes in a second. The port may change when the server starts anew.
    pub fn start(field: &Field, port: Arc<AtomicU16>, writers: u64, rate: f64) -> Crowd {
        Crowd::start_with(field, port, writers, rate, &Model::new())
    }

    /// The same where others have written before.
    pub fn start_with(field: &Field, port: Arc<AtomicU16>, writers: u64, rate: f64, before: &Model) -> Crowd {
        let stop = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        let start = |number| {
            let writer = Writer {
                field: field.clone(),
                port: port.clone(),
                client: Client::new(port.load(Ordering::Relaxed)),
                random: Random::new(number + 1),
                number,
                of: writers,
                rid: String::new(),
                keys: Vec::new(),
                model: before.clone(),
            };
            let (stop, written) = (stop.clone(), written.clone());
            spawn(move || writer.run(&stop, &written, rate / writers as f64))
        };
        let writers = (0..writers).map(start).collect();
        Crowd { stop, written, writers }
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Lets the writers finish what they are at, and returns what they know.
    pub fn stop(self) -> Model {
        self.stop.store(true, Ordering::Relaxed);
        let mut model = Model::new();
        for writer in self.writers {
            model.extend(writer.join().expect("a writer ends well"));
        }
        model
    }
}

struct Writer {
    field: Field,
    port: Arc<AtomicU16>,
    client: Client,
    random: Random,
    number: u64,
    of: u64,
    /// What the client knows of its container, as an SDK would.
    rid: String,
    keys: Vec<String>,
    model: Model,
}

impl Writer {
    fn run(mut self, stop: &AtomicBool, written: &AtomicU64, rate: f64) -> Model {
        let began = Instant::now();
        let mut done = 0u32;
        while !stop.load(Ordering::Relaxed) {
            self.turn();
            done += 1;
            written.fetch_add(1, Ordering::Relaxed);
            let due = began + Duration::from_secs_f64(f64::from(done) / rate);
            sleep(due.saturating_duration_since(Instant::now()));
        }
        let (number, of) = (self.number, self.of);
        self.model.retain(|item, _| item % of == number);
        self.model
    }

    fn turn(&mut self) {
        let share = (self.field.items + self.field.items / 10) / self.of;
        let number = self.random.below(share.max(1) as usize) as u64 * self.of + self.number;
        let loaded = (number < self.field.items).then_some(0);
        let version = self.model.get(&number).copied().unwrap_or(loaded);
        match version {
            Some(version) if self.random.below(4) == 0 => {
                let item = self.field.item(number, version);
                self.insist(&item, true);
                self.model.insert(number, None);
            }
            version => {
                // Versions only grow, also across deletes: two versions of an item are never alike.
                let next =
                    version.map_or(1_000_000 + self.random.below(1_000_000) as u64, |version| version + 1);
                let item = self.field.item(number, next);
                self.insist(&item, false);
                self.model.insert(number, Some(next));
            }
        }
    }

    /// Sends a request until it is carried out.
    fn insist(&mut self, item: &Value, deletes: bool) {
        wait_for(|| {
            let reply = self.attempt(item, deletes).map_err(|error| {
                self.client = Client::new(self.port.load(Ordering::Relaxed));
                format!("a write is not carried out: {error}")
            })?;
            let (status, sub_status) = (reply.status, reply.sub_status());
            let answer = || format!("{status}/{sub_status}: {}", String::from_utf8_lossy(&reply.body));
            match (status, sub_status) {
                (200 | 201 | 204, _) => return Ok(()),
                // Carried out before the answer was lost.
                (404, 0) if deletes => return Ok(()),
                (404, _) | (410, _) | (400, 1001 | 1024) => self.keys.clear(),
                (429 | 449 | 503, _) => {}
                _ => panic!("{}", answer()),
            }
            Err(format!("a write is not carried out: {}", answer()))
        });
    }

    /// Sends a request once, as one for the container that is there now.
    fn attempt(&mut self, item: &Value, deletes: bool) -> std::io::Result<Reply> {
        if self.keys.is_empty() {
            self.learn()?;
        }
        self.send(item, deletes)
    }

    /// Asks what the container is like now.
    fn learn(&mut self) -> std::io::Result<()> {
        let reply = self.client.send("GET", &self.field.path(), &[], b"")?;
        let body = reply.json();
        let paths = body["partitionKey"]["paths"].as_array().into_iter().flatten();
        self.keys = paths.filter_map(|path| path.as_str().map(|path| path[1..].to_owned())).collect();
        self.rid = body["_rid"].as_str().unwrap_or_default().to_owned();
        if self.keys.is_empty() { Err(std::io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    fn send(&mut self, item: &Value, deletes: bool) -> std::io::Result<Reply> {
        let key: Vec<&Value> = self.keys.iter().map(|name| &item[name.as_str()]).collect();
        let key = json!(key).to_string();
        let mut headers = vec![
            ("x-ms-documentdb-partitionkey", key.as_str()),
            ("x-ms-cosmos-intended-collection-rid", self.rid.as_str()),
        ];
        let docs = format!("{}/docs", self.field.path());
        if deletes {
            let path = format!("{docs}/{}", item["id"].as_str().expect("an id"));
            return self.client.send("DELETE", &path, &headers, b"");
        }
        headers.push(("x-ms-documentdb-is-upsert", "True"));
        self.client.send("POST", &docs, &headers, item.to_string().as_bytes())
    }
}
