//! A real server under measurement: its process, its folder, its containers.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use orrery_testkit::{Client, Reply, Server};
use serde_json::json;
use tempfile::TempDir;

use crate::load::{self, Outcome, Plan, Source, Wire};
use crate::machine::{self, Threads};
use crate::requests::{Batches, Container};

pub const DATABASE: &str = "bench";
/// The counter of syncs: each makes one group of transactions durable.
pub const GROUPS: &str = "orrery_commit_groups_total";
/// RU/s that start a container with so many physical partitions.
const UNITS_PER_PARTITION: u32 = 6_000;
/// Connections that load items in batches; each has its own logical partition under way.
const LOADERS: usize = 8;
/// Processor time of a second below which a server does nothing. It is at rest when that has lasted for longer than
/// it waits before it tidies up.
const AT_REST: f64 = 0.05;
const QUIET_SECONDS: u32 = 4;
/// How long it may take to get there.
const REST_SECONDS_MAX: u32 = 1_200;

/// A folder for data that outlives the servers on it, removed at the end.
pub struct Ground {
    binary: PathBuf,
    folder: TempDir,
}

pub struct Site {
    server: Server,
    /// From the start of the process to its first answer.
    pub first_answer: Duration,
}

/// A load with what it cost.
pub struct Measured {
    pub outcome: Outcome,
    /// Processor time of the server for one request, in microseconds.
    pub server_micros: f64,
}

impl Ground {
    pub fn new(binary: &Path) -> Result<Ground> {
        let folder = tempfile::Builder::new().prefix("orrery-bench-").tempdir()?;
        Ok(Ground { binary: binary.to_owned(), folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn bytes(&self) -> u64 {
        machine::folder_bytes(self.folder.path())
    }

    /// Starts a durable server and asks it for its account.
    pub fn start(&self) -> Result<Site> {
        self.start_with(&[])
    }

    /// A server that does not wait for the disk, for loading.
    pub fn start_relaxed(&self) -> Result<Site> {
        self.start_with(&["--durability", "relaxed"])
    }

    pub fn start_with(&self, args: &[&str]) -> Result<Site> {
        let began = Instant::now();
        let server = Server::start_on(
            &self.binary,
            self.folder(),
            &[&["--no-throttle", "--log", "error"], args].concat(),
        );
        let reply = Client::new(server.port()).send("GET", "/", &[], b"")?;
        let first_answer = began.elapsed();
        ensure!(reply.status == 200, "the account cannot be read: {}", reply.status);
        Ok(Site { server, first_answer })
    }
}

impl Site {
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The port of the Table API; the server was started with it.
    pub fn table_port(&self) -> Result<u16> {
        self.server.table_port().context("the server has no port for tables")
    }

    /// SIGKILL, and another server on the same folder.
    pub fn kill_and_start(&mut self, ground: &Ground) -> Result<()> {
        let id = self.id().to_string();
        let sent = std::process::Command::new("kill").args(["-KILL", &id]).status()?;
        ensure!(sent.success(), "SIGKILL could not be sent");
        while self.server.is_alive() {
            thread::sleep(Duration::from_millis(1));
        }
        *self = ground.start()?;
        Ok(())
    }

    pub fn id(&self) -> u32 {
        self.server.id()
    }

    pub fn memory_bytes(&self) -> u64 {
        self.server.memory_bytes()
    }

    pub fn container(&self, name: &str) -> Container {
        Container::new(self.server.port(), DATABASE, name)
    }

    pub fn create_database(&self) -> Result<()> {
        let body = json!({"id": DATABASE}).to_string();
        let reply = self.client().send("POST", "/dbs", &[], body.as_bytes())?;
        ensure!(reply.status == 201, "no database: {}", String::from_utf8_lossy(&reply.body));
        Ok(())
    }

    pub fn create_container(&self, name: &str, partitions: u32) -> Result<Container> {
        let body = json!({"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let units = (UNITS_PER_PARTITION * partitions).to_string();
        let path = format!("/dbs/{DATABASE}/colls");
        let headers = [("x-ms-offer-throughput", units.as_str())];
        let reply = self.client().send("POST", &path, &headers, body.to_string().as_bytes())?;
        ensure!(reply.status == 201, "no container: {}", String::from_utf8_lossy(&reply.body));
        Ok(self.container(name))
    }

    /// The ids of a container's physical partitions.
    pub fn range_ids(&self, name: &str) -> Result<Vec<String>> {
        let reply = self.client().send("GET", &format!("/dbs/{DATABASE}/colls/{name}/pkranges"), &[], b"")?;
        let feed = reply.json();
        let ranges = feed["PartitionKeyRanges"].as_array().map_or(&[][..], Vec::as_slice);
        ensure!(!ranges.is_empty(), "no ranges: {}", String::from_utf8_lossy(&reply.body));
        Ok(ranges.iter().filter_map(|range| range["id"].as_str().map(str::to_owned)).collect())
    }

    /// One item, as a client gets it.
    pub fn read(&self, container: &Container, item: &crate::item::Address) -> Result<Reply> {
        let key = format!("[\"{}\"]", item.key);
        let path = format!("{}/{}", container.items, item.id);
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        let reply = self.client().send("GET", &path, &headers, b"")?;
        ensure!(reply.status == 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        Ok(reply)
    }

    /// Puts the items from `first` up to `end` there, in batches.
    pub fn load(&self, container: &Container, first: u64, end: u64) -> Result<Outcome> {
        let plan = Plan { address: container.address, connections: LOADERS, time: Duration::from_secs(7200) };
        load::run(plan, Batches::new(container, first, end))
    }

    pub fn measure(&self, plan: Plan, source: impl Source + 'static) -> Result<Measured> {
        measure(self.id(), plan, source)
    }

    pub fn measure_over(&self, wire: &Wire, plan: Plan, source: impl Source + 'static) -> Result<Measured> {
        measure_over(self.id(), wire, plan, source)
    }

    /// Waits until the server does nothing by itself, but not for ever.
    pub fn rest(&self) {
        let mut quiet = 0;
        for _ in 0..REST_SECONDS_MAX {
            let before = machine::processor_seconds(self.id());
            thread::sleep(Duration::from_secs(1));
            let is_quiet = machine::processor_seconds(self.id()) - before < AT_REST;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if quiet == QUIET_SECONDS {
                return;
            }
        }
    }

    /// A counter of the metrics page.
    pub fn metric(&self, name: &str) -> Result<f64> {
        let reply = self.client().send("GET", "/metrics", &[], b"")?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| anyhow::anyhow!("the metrics page has no {name}"))
    }

    pub fn stop(self) -> Duration {
        let began = Instant::now();
        self.server.stop();
        began.elapsed()
    }

    pub fn kill(self) {
        self.server.kill();
    }

    pub fn client(&self) -> Client {
        Client::new(self.server.port())
    }
}

/// Runs a load against a process and looks at what it used.
pub fn measure(process: u32, plan: Plan, source: impl Source + 'static) -> Result<Measured> {
    measure_over(process, &Wire::Http, plan, source)
}

fn measure_over(process: u32, wire: &Wire, plan: Plan, source: impl Source + 'static) -> Result<Measured> {
    let before = Threads::of(process);
    let outcome = load::run_over(wire, plan, source)?;
    let used = before.seconds_since();
    let server_micros = used * 1e6 / outcome.requests.max(1) as f64;
    Ok(Measured { outcome, server_micros })
}
