//! The server under attack, and what is asked of it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use orrery_testkit::{Client, Random, Reply, Server};
use tempfile::TempDir;

use crate::request::Request;

pub struct Target {
    server: Server,
    pub client: Client,
    directory: TempDir,
    seed: u64,
    statuses: BTreeMap<String, usize>,
    /// Whether what is not supported may be refused with 501, as the Table API does.
    may_lack: bool,
}

impl Target {
    pub fn start(random: &Random) -> Target {
        Target::start_at(random, false)
    }

    /// The port of the Table API is the one under attack; it answers requests of both protocols.
    pub fn start_with_tables(random: &Random) -> Target {
        Target::start_at(random, true)
    }

    fn start_at(random: &Random, tables: bool) -> Target {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let data = directory.path().join("data");
        let arguments = [
            // Refusals for lack of budget would hide all others, and waiting for the disk tests nothing here.
            "--no-throttle",
            "--durability=relaxed",
            "--cache-bytes=16MiB",
            "--log=warn",
            if tables { "--table-port=0" } else { "--table-port=none" },
            "--data-dir",
            data.to_str().expect("a temporary path is text"),
        ];
        let log = directory.path().join("log");
        let binary = Path::new(env!("CARGO_BIN_EXE_orrery"));
        let server = Server::start_logged(binary, &arguments, &log);
        let client = Client::new(server.table_port().unwrap_or(server.port()));
        let seed = random.seed();
        Target { server, client, directory, seed, statuses: BTreeMap::new(), may_lack: tables }
    }

    /// Sends a request that deserves any answer but 5xx. Hanging up is an answer too, silence is not.
    pub fn send(&mut self, group: &str, request: &Request) {
        if request.on_the_wire.is_some() {
            // What follows a broken request on its connection is broken too.
            self.client.disconnect();
        }
        let message = request.to_bytes();
        let mut answer = self.client.send_bytes(&message);
        if answer.as_ref().is_err_and(|error| !is_silence(error)) {
            // A server may close a connection after a request whose body it had no use for; this one gets its own.
            answer = self.client.send_bytes(&message);
        }
        match answer {
            Ok(reply) => self.judge(group, request, &reply),
            Err(error) if is_silence(&error) => self.fail(group, request, "no answer"),
            Err(_) => {
                *self.statuses.entry("hung up".to_owned()).or_default() += 1;
                // A panic ends a connection in the same way.
                self.assert_sound(group, request);
            }
        }
    }

    pub fn judge(&mut self, group: &str, request: &Request, reply: &Reply) {
        *self.statuses.entry(reply.status.to_string()).or_default() += 1;
        if reply.status >= 500 && !(self.may_lack && reply.status == 501) {
            let answer = format!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body));
            self.fail(group, request, &answer);
        }
    }

    /// The server still runs, did not panic, and serves good requests.
    pub fn check(&mut self, group: &str) {
        let good = Request::new("GET", "/dbs", &[], "");
        self.assert_sound(group, &good);
        self.client.disconnect();
        self.client.signer().renew();
        let reply = self.client.send("GET", "/dbs", &[], b"").expect("a good request is answered");
        assert_eq!(reply.status, 200, "after {group}, seed {}", self.seed);
        self.restore();
        let item = r#"{"id":"good","pk":"good"}"#;
        let headers = [("x-ms-documentdb-partitionkey", "[\"good\"]"), ("x-ms-documentdb-is-upsert", "true")];
        let reply = self.client.send("POST", "/dbs/fixed/colls/plain/docs", &headers, item.as_bytes());
        let reply = reply.expect("a good request is answered");
        assert!(matches!(reply.status, 200 | 201), "after {group}, seed {}: {}", self.seed, reply.json());
    }

    /// A request changed at random may be a good one that deletes what the others need.
    fn restore(&mut self) {
        let container = r#"{"id":"plain","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        for (path, body) in [("/dbs", r#"{"id":"fixed"}"#), ("/dbs/fixed/colls", container)] {
            let reply =
                self.client.send("POST", path, &[], body.as_bytes()).expect("a good request is answered");
            assert!(matches!(reply.status, 201 | 409), "seed {}: {}", self.seed, reply.json());
        }
    }

    fn assert_sound(&mut self, group: &str, request: &Request) {
        if !self.server.is_alive() {
            self.fail(group, request, "the server ended");
        }
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        if let Some(panic) = log.lines().find(|line| line.contains("panicked")) {
            self.fail(group, request, panic);
        }
    }

    fn fail(&self, group: &str, request: &Request, what: &str) -> ! {
        panic!("{group}, seed {}: {what}\n  {}", self.seed, request.describe());
    }

    pub fn memory_bytes(&self) -> u64 {
        self.server.memory_bytes()
    }

    pub fn take_statuses(&mut self) -> String {
        let statuses = std::mem::take(&mut self.statuses);
        let words: Vec<String> =
            statuses.iter().map(|(status, count)| format!("{status} x {count}")).collect();
        words.join(", ")
    }
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
