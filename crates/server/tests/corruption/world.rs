//! The directories that are damaged: one of a server that was stopped, and one of a server that was killed.
//!
//! Files are small, so that little data makes many: write buffers of 32 KiB, segments of twice that. Each directory has older
//! copies of itself: one of before the last start, and one of the same life.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use orrery_testkit::{Client, Random, Reply, Server, eventually};
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::reads::{self, Reads};
use crate::{OPTIONS, binary};

pub const COLLECTION: &str = "/dbs/corruption/colls/items";
pub const KEY_HEADER: &str = "x-ms-documentdb-partitionkey";
/// Items of each phase.
const PHASE: u64 = 150;

/// A directory, and what a server on it must answer.
pub struct Base {
    pub name: &'static str,
    pub directory: PathBuf,
    /// What it was at earlier times.
    pub older: Vec<PathBuf>,
    pub ids: Vec<(String, String)>,
    pub expected: Answers,
    /// The highest LSN that a client was told.
    pub acknowledged: u64,
    /// Whom its clients trust.
    pub authority: Vec<u8>,
    /// What a start and the comparison read.
    pub reads: Reads,
}

/// What was acknowledged: for each id its key and its version.
type Model = BTreeMap<String, (String, u64)>;

struct Builder {
    folder: PathBuf,
    data: PathBuf,
    model: Model,
    random: Random,
    version: u64,
    acknowledged: u64,
}

/// Lets a server live, stop, live and be killed.
pub fn build(folder: &Path, seed: u64) -> Vec<Base> {
    let data = folder.join("data");
    let mut builder = Builder {
        folder: folder.to_owned(),
        data,
        model: Model::new(),
        random: Random::new(seed),
        version: 0,
        acknowledged: 0,
    };
    let server = builder.start();
    create(server.port());
    builder.write(&server, 0);
    builder.rest();
    server.stop();
    let first = builder.copy("first");

    let server = builder.start();
    builder.write(&server, PHASE);
    builder.rest();
    let second = builder.copy("second");
    builder.write(&server, 2 * PHASE);
    server.stop();
    let stopped = builder.base("stopped", vec![first.clone(), second.clone()]);

    let server = builder.start();
    builder.write(&server, 3 * PHASE);
    builder.rest();
    builder.write(&server, 4 * PHASE);
    let third = builder.copy("third");
    builder.write(&server, 4 * PHASE + 40);
    server.kill();
    let killed = builder.base("killed", vec![first, second, third]);
    vec![stopped, killed]
}

fn create(port: u16) {
    let mut client = Client::new(port);
    let body = json!({"id": "items", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    for (path, body) in [("/dbs", json!({"id": "corruption"})), ("/dbs/corruption/colls", body)] {
        let reply = client.send("POST", path, &[], body.to_string().as_bytes()).expect("the server is up");
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    }
}

/// Creates an item and deletes it again; tells the LSN of its creation, or nothing where the server refused.
pub fn write_and_delete(port: u16) -> Result<Option<u64>, String> {
    let mut client = Client::new(port);
    let key = (KEY_HEADER, r#"["key-1"]"#);
    let docs = format!("{COLLECTION}/docs");
    let mut send = |verb: &str, path: &str, body: &[u8]| {
        client.send(verb, path, &[key], body).map_err(|error| error.to_string())
    };
    let created = send("POST", &docs, br#"{"id":"new","pk":"key-1"}"#)?;
    let deleted = send("DELETE", &format!("{docs}/new"), b"")?;
    match (created.status, deleted.status) {
        (201, 204) => Ok(Some(lsn_of(&created))),
        (500.., _) | (201, 500..) => Ok(None),
        other => Err(format!("a new item and its deletion were answered with {other:?}")),
    }
}

fn lsn_of(reply: &Reply) -> u64 {
    let token = reply.header("x-ms-session-token").expect("every write has a session token");
    let lsn = token.rsplit('#').next().and_then(|lsn| lsn.parse().ok());
    lsn.unwrap_or_else(|| panic!("{token} has no LSN"))
}

impl Builder {
    fn start(&self) -> Server {
        Server::start_on(binary(), &self.data, &OPTIONS)
    }

    /// Creates items from a number on, and replaces and deletes some of those before.
    fn write(&mut self, server: &Server, from: u64) {
        let mut client = Client::new(server.port());
        for number in from..from + PHASE {
            let id = format!("item-{number}");
            self.put(&mut client, &id, number);
            let other = format!("item-{}", self.random.below(number as usize + 1));
            if !self.model.contains_key(&other) {
                continue;
            }
            match number % 8 {
                0 => self.delete(&mut client, &other),
                1 | 2 => self.put(&mut client, &other, number),
                _ => {}
            }
        }
    }

    fn put(&mut self, client: &mut Client, id: &str, number: u64) {
        self.version += 1;
        let key = self.model.get(id).map_or_else(|| format!("key-{}", number % 23), |(key, _)| key.clone());
        let text = format!("{:x} ", self.random.number()).repeat(8);
        let body = json!({"id": id, "pk": key, "number": number, "version": self.version, "text": text});
        let headers = [(KEY_HEADER, &json!([key]).to_string()[..]), ("x-ms-documentdb-is-upsert", "true")];
        let path = format!("{COLLECTION}/docs");
        let reply =
            client.send("POST", &path, &headers, body.to_string().as_bytes()).expect("the server is up");
        assert!(matches!(reply.status, 200 | 201), "{}", String::from_utf8_lossy(&reply.body));
        self.acknowledged = self.acknowledged.max(lsn_of(&reply));
        self.model.insert(id.to_owned(), (key, self.version));
    }

    fn delete(&mut self, client: &mut Client, id: &str) {
        let (key, _) = self.model.remove(id).expect("it was looked up");
        let key = json!([key]).to_string();
        let reply = client.send("DELETE", &format!("{COLLECTION}/docs/{id}"), &[(KEY_HEADER, &key)], b"");
        let reply = reply.expect("the server is up");
        assert_eq!(reply.status, 204);
        self.acknowledged = self.acknowledged.max(lsn_of(&reply));
    }

    /// Waits until write buffers are in tables and merges have come to an end.
    fn rest(&self) {
        let names = || {
            let mut names: Vec<PathBuf> =
                files(&self.data).into_iter().filter(|path| !path.starts_with("journal")).collect();
            names.sort();
            names
        };
        let mut before = names();
        eventually("tables come to rest", || {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            let now = names();
            std::mem::replace(&mut before, now.clone()) == now
        });
    }

    /// Copies the directory as it is, also under a live server that has nothing to do.
    fn copy(&self, name: &str) -> PathBuf {
        let to = self.folder.join(name);
        copy_all(&self.data, &to);
        to
    }

    fn base(&self, name: &'static str, older: Vec<PathBuf>) -> Base {
        let directory = self.copy(name);
        let ids: Vec<(String, String)> =
            self.model.iter().map(|(id, (key, _))| (id.clone(), key.clone())).collect();
        let place = self.folder.join("reading");
        copy_all(&directory, &place);
        let (expected, reads) = reads::of(&place, |port| Answers::gather(port, &ids));
        fs::remove_dir_all(&place).expect("our own folder");
        for part in ["scan", "index", "feed"] {
            assert_eq!(self.found(expected.documents(part)), self.model, "{name}: {part}");
        }
        let acknowledged = self.acknowledged;
        let authority = fs::read(directory.join("tls/ca.pem")).expect("every directory has an authority");
        Base { name, directory, older, ids, expected, acknowledged, authority, reads }
    }

    fn found(&self, documents: &[Value]) -> Model {
        let text = |document: &Value, name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let entry = |document: &Value| {
            (text(document, "id"), (text(document, "pk"), document["version"].as_u64().unwrap_or(0)))
        };
        documents.iter().map(entry).collect()
    }
}

/// All files below a folder, by their paths in it.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path().strip_prefix(folder).expect("it is below").to_owned()),
            }
        }
    }
    found.sort();
    found
}

/// Copies a directory. Tables are linked: nobody writes to a table that is there.
pub fn copy_all(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(&path);
        fs::create_dir_all(target.parent().expect("it is below")).expect("a temporary folder");
        let is_table = path.parent().is_some_and(|folder| folder.ends_with("tables"));
        let is_linked = is_table && fs::hard_link(from.join(&path), &target).is_ok();
        if !is_linked {
            // A file may go while a live server's directory is copied.
            let _ = fs::copy(from.join(&path), &target);
        }
    }
}
