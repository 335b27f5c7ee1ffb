//! Clients that want more than their part.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use orrery_testkit::{Client, EMULATOR_KEY, Random, Signer};
use serde_json::json;

use crate::site;

pub const KEY: &str = "k";
const UPLOAD_BYTES: usize = 2_200_000;

/// The kinds of attackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Attack {
    Group,
    Distinct,
    Order,
    Join,
    Udf,
    Scripts,
    Imports,
    Uploads,
    Readers,
    Numbers,
    Batches,
    Expiry,
    Fillers,
}

/// How the attackers were answered: by kind and status.
#[derive(Default)]
pub struct Answers(Mutex<BTreeMap<(Attack, u16), u64>>);

impl Answers {
    pub fn add(&self, kind: Attack, status: u16) {
        *self.0.lock().expect("nobody panics here").entry((kind, status)).or_default() += 1;
    }

    pub fn line(&self) -> String {
        let answers = self.0.lock().expect("nobody panics here");
        let parts: Vec<_> =
            answers.iter().map(|((kind, status), count)| format!("{kind:?} {status}: {count}")).collect();
        parts.join(", ")
    }
}

/// Queries that hold much; the last ones call a function of the container.
pub const QUERIES: [(Attack, &str); 7] = [
    (
        Attack::Group,
        "SELECT a.name, b.name AS other, COUNT(1) AS n, MAX(c.text) AS t FROM c JOIN a IN c.tags JOIN b IN c.tags \
      GROUP BY a.name, b.name",
    ),
    (
        Attack::Group,
        "SELECT c.id, ARRAY_CONCAT(c.tags, c.tags, c.tags) AS wide, COUNT(1) AS n FROM c GROUP BY c.id, \
      ARRAY_CONCAT(c.tags, c.tags, c.tags)",
    ),
    (
        Attack::Distinct,
        "SELECT DISTINCT VALUE CONCAT(c.text, a.name, b.name) FROM c JOIN a IN c.tags JOIN b IN c.tags",
    ),
    (Attack::Order, "SELECT * FROM c ORDER BY c.unindexed.deep DESC"),
    (Attack::Order, "SELECT VALUE c.text FROM c ORDER BY c.number"),
    (
        Attack::Join,
        "SELECT c.text, a.name, b.name AS second, d.name AS third FROM c JOIN a IN c.tags JOIN b IN c.tags JOIN d IN c.tags",
    ),
    (Attack::Udf, "SELECT VALUE udf.wide(c) FROM c"),
];

pub fn query(port: u16, number: usize, stop: &AtomicBool, answers: &Answers) {
    let mut client = Client::new(port);
    let (kind, text) = QUERIES[number % QUERIES.len()];
    let body = json!({"query": text}).to_string();
    let key = json!([KEY]).to_string();
    // Half of them ask over all partitions, and the server merges.
    let scope = match number / QUERIES.len() % 2 {
        0 => (site::KEY, key.as_str()),
        _ => ("x-orrery-query-merge", "true"),
    };
    let headers = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-query-enablecrosspartition", "true"),
        ("x-ms-max-item-count", "-1"),
        scope,
    ];
    while !stop.load(Ordering::Relaxed) {
        let status = client
            .send("POST", &site::docs("wide"), &headers, body.as_bytes())
            .map_or(0, |reply| reply.status);
        answers.add(kind, status);
        rest(status);
    }
}

pub fn script(port: u16, stop: &AtomicBool, answers: &Answers) {
    let mut client = Client::new(port);
    let key = json!([KEY]).to_string();
    while !stop.load(Ordering::Relaxed) {
        let reply = client.send("POST", "/dbs/db/colls/wide/sprocs/hold", &[(site::KEY, &key)], b"[]");
        let status = reply.map_or(0, |reply| reply.status);
        answers.add(Attack::Scripts, status);
        rest(status);
    }
}

/// Large items, and batches of many.
pub fn import(port: u16, number: usize, stop: &AtomicBool, answers: &Answers) {
    let (mut client, mut random) = (Client::new(port), Random::new(number as u64));
    let key = json!([format!("import-{number}")]).to_string();
    while !stop.load(Ordering::Relaxed) {
        let id = format!("{number}-{}", random.below(20));
        let status = if random.one_in(2) {
            let item = json!({"id": id, "key": format!("import-{number}"), "text": "y".repeat(1_900_000)});
            site::upsert(&mut client, "imports", &format!("import-{number}"), &item)
        } else {
            let operation = |place: usize| {
                let body = json!({"id": format!("{id}-{place}"), "key": format!("import-{number}"), "text": "z".repeat(15_000)});
                json!({"operationType": "Upsert", "resourceBody": body})
            };
            let body = serde_json::Value::from_iter((0..100).map(operation)).to_string();
            let headers = [
                (site::KEY, key.as_str()),
                ("x-ms-cosmos-is-batch-request", "true"),
                ("x-ms-cosmos-batch-atomic", "true"),
            ];
            client
                .send("POST", &site::docs("imports"), &headers, body.as_bytes())
                .map_or(0, |reply| reply.status)
        };
        answers.add(Attack::Imports, status);
        rest(status);
    }
}

/// Throttled clients come again at once, but not without end in a moment.
pub fn rest(status: u16) {
    match status {
        200..300 => {}
        _ => thread::sleep(Duration::from_millis(20)),
    }
}

fn head(port: u16, verb: &str, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let signer = Signer::new(EMULATOR_KEY);
    let mut head = format!(
        "{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: {}\r\nx-ms-date: {}\r\n\
         x-ms-version: 2020-07-15\r\ncontent-length: {length}\r\n",
        signer.authorization(verb, path),
        signer.date()
    );
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str("\r\n");
    head.into_bytes()
}

/// Connections that send and never finish, or ask and never read. One that is closed is opened again.
pub fn hold(port: u16, count: usize, uploads: bool, stop: &AtomicBool) {
    let key = json!([KEY]).to_string();
    let message = match uploads {
        true => {
            let mut message = head(port, "POST", &site::docs("wide"), &[(site::KEY, &key)], UPLOAD_BYTES);
            message.resize(message.len() + UPLOAD_BYTES - 1, b' ');
            message
        }
        false => head(port, "GET", &site::docs("wide"), &[("x-ms-max-item-count", "-1")], 0),
    };
    let open = || -> Option<(TcpStream, usize)> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((stream, 0))
    };
    let mut connections: Vec<Option<(TcpStream, usize)>> = (0..count).map(|_| open()).collect();
    while !stop.load(Ordering::Relaxed) {
        for connection in &mut connections {
            let is_over = match connection {
                Some((stream, sent)) => !push(stream, &message, sent, uploads),
                None => true,
            };
            if is_over {
                *connection = open();
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Sends what the socket takes; false if the other side is done with it.
fn push(stream: &mut TcpStream, message: &[u8], sent: &mut usize, uploads: bool) -> bool {
    while *sent < message.len() {
        match stream.write(&message[*sent..]) {
            Ok(count) => *sent += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(_) => return false,
        }
    }
    // An upload that was answered is over. An answer that nobody reads is over when the connection is, and that shows
    // when something is sent.
    let mut first = [0; 1];
    match (stream.peek(&mut first), uploads) {
        (Ok(0), _) | (Ok(_), true) => false,
        (Err(error), _) => error.kind() == std::io::ErrorKind::WouldBlock,
        (Ok(_), false) => stream.take_error().is_ok_and(|error| error.is_none()),
    }
}
