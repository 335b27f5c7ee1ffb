//! Scripts: procedures beside batches that do the same, functions in filters, and reads beside a busy script.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use orrery_testkit::{Client, EMULATOR_KEY, Signer};
use serde_json::json;

use crate::latency::median;
use crate::load::{Plan, Source};
use crate::report::{Line, Report, Wanted};
use crate::requests::{Container, Reads};
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{DATABASE, Ground, Site};

pub const SECTION: &str = "Scripts, one physical partition";
pub const NAME: &str = "scripts";
pub const CLIENTS: usize = 8;
/// Items of one procedure, and of the batch it is held against.
const ITEMS_PER_CALL: u64 = 100;
/// Items that functions filter, and that are read beside a busy script.
const ITEMS: u64 = 100_000;
/// How much slower reads may be while a script uses a processor for five seconds.
const P99_BESIDE: f64 = 3.0;
const READERS: usize = 2;

const MAKE: &str = "function (pk, count) { \
    var made = 0, link = __.getSelfLink(); next(); \
    function next(err) { if (err) throw err; if (made == count) return __.response.setBody(made); \
    made++; __.createDocument(link, {id: '' + made, pk: pk, name: 'item', price: made * 1.5}, next) } }";
const EMPTY: &str = "function () { getContext().getResponse().setBody(1) }";
const BUSY: &str = "function () { var end = Date.now() + 4800; while (Date.now() < end) { } }";
const IS_OLD: &str = "function (age) { return age >= 45 }";

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start_relaxed()?;
    site.create_database()?;
    site.load(&site.create_container(NAME, 1)?, 0, ITEMS)?;
    site.stop();
    let site = ground.start()?;
    let container = site.container(NAME);
    create_scripts(&site)?;
    site.rest();
    beside(settings, report, &site, &container)?;
    calls(settings, report, &site, &container)?;
    filters(settings, report, &site)?;
    site.stop();
    Ok(())
}

pub fn create_scripts(site: &Site) -> Result<()> {
    for (kind, id, body) in [
        ("sprocs", "make", MAKE),
        ("sprocs", "empty", EMPTY),
        ("sprocs", "busy", BUSY),
        ("udfs", "isOld", IS_OLD),
    ] {
        let path = format!("/dbs/{DATABASE}/colls/{NAME}/{kind}");
        let body = json!({"id": id, "body": body}).to_string();
        let reply = site.client().send("POST", &path, &[], body.as_bytes())?;
        ensure!(reply.status == 201, "no script: {}", String::from_utf8_lossy(&reply.body));
    }
    Ok(())
}

/// Procedures that make items, batches that make the same ones, and procedures that do nothing.
fn calls(settings: &Settings, report: &mut Report, site: &Site, container: &Container) -> Result<()> {
    let plan = Plan { address: container.address, connections: CLIENTS, time: settings.round() };
    let (mut procedures, mut batches, mut empty) = (Rounds::default(), Rounds::default(), Rounds::default());
    for round in 0..settings.rounds() as u64 {
        batches.add(&site.measure(plan, Posts::new(container, PostsOf::Batch, 2 * round))?);
        procedures.add(&site.measure(plan, Posts::new(container, PostsOf::Make, 2 * round + 1))?);
        empty.add(&site.measure(plan, Posts::new(container, PostsOf::Empty, round))?);
    }
    let ratio = procedures.ratio_to(&batches);
    report.add(batches.line(SECTION, format!("batches of {ITEMS_PER_CALL} small items, {CLIENTS} clients")));
    report.add(
        procedures
            .line(SECTION, format!("procedures that create {ITEMS_PER_CALL} small items"))
            .ratio("batches", ratio, None),
    );
    report.add(empty.line(SECTION, "procedures that do nothing"));
    Ok(())
}

/// A filter by a function over all items, beside one that no index serves either.
fn filters(settings: &Settings, report: &mut Report, site: &Site) -> Result<()> {
    let count = |filter: &str| -> Result<f64> {
        let began = Instant::now();
        let body = json!({"query": format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}")}).to_string();
        let headers = [
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-documentdb-query-enablecrosspartition", "True"),
            ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ];
        let path = format!("/dbs/{DATABASE}/colls/{NAME}/docs");
        let reply = site.client().send("POST", &path, &headers, body.as_bytes())?;
        ensure!(reply.status == 200, "{filter}: {}", String::from_utf8_lossy(&reply.body));
        Ok(began.elapsed().as_secs_f64())
    };
    let (mut by_function, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds() {
        plain.push(count("c.age + 0 >= 45")?);
        by_function.push(count("udf.isOld(c.age)")?);
    }
    let (by_function, plain) = (median(&by_function), median(&plain));
    report.add(Line::new(SECTION, format!("a filter without index over {ITEMS} items")).figure("s", plain));
    report.add(
        Line::new(SECTION, format!("a function in a filter over {ITEMS} items"))
            .figure("s", by_function)
            .figure("calls/s", ITEMS as f64 / by_function)
            .ratio("the filter without a function", by_function / plain, None),
    );
    Ok(())
}

/// Point reads while nothing else happens, and while a script of the same partition runs all the time.
fn beside(settings: &Settings, report: &mut Report, site: &Site, container: &Container) -> Result<()> {
    let plan = Plan { address: container.address, connections: READERS, time: settings.round() };
    let reads = Reads::of_loaded(container, ITEMS, ITEMS);
    let (mut idle, mut busy) = (Rounds::default(), Rounds::default());
    for _ in 0..settings.rounds() {
        idle.add(&site.measure(plan, reads.clone())?);
        let done = Arc::new(AtomicBool::new(false));
        let caller = call_busy(site, &done);
        busy.add(&site.measure(plan, reads.clone())?);
        done.store(true, Ordering::Relaxed);
        caller.join().expect("the caller does not panic")?;
    }
    let ratio = busy.p99_ms() / idle.p99_ms();
    report.add(idle.line(SECTION, format!("point reads, {READERS} clients, nothing else")));
    report.add(busy.line(SECTION, "point reads while a script runs for 5 s").ratio(
        "p99 without a script",
        ratio,
        Wanted::AtMost(P99_BESIDE),
    ));
    Ok(())
}

fn call_busy(site: &Site, done: &Arc<AtomicBool>) -> thread::JoinHandle<Result<()>> {
    let (mut client, done): (Client, _) = (site.client(), done.clone());
    thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            let path = format!("/dbs/{DATABASE}/colls/{NAME}/sprocs/busy");
            let key = ("x-ms-documentdb-partitionkey", "[\"k00000000\"]");
            let reply = client.send("POST", &path, &[key], b"[]")?;
            ensure!(reply.status == 200, "busy: {}", String::from_utf8_lossy(&reply.body));
        }
        Ok(())
    })
}

/// What a post does.
#[derive(Clone, Copy)]
pub enum PostsOf {
    Batch,
    Make,
    Empty,
}

/// Calls and batches, each in a logical partition of its own.
pub struct Posts {
    head: Vec<u8>,
    kind: PostsOf,
    round: u64,
    next: u64,
    body: String,
}

impl Posts {
    pub fn new(container: &Container, kind: PostsOf, round: u64) -> Posts {
        let below = match kind {
            PostsOf::Batch => "docs",
            PostsOf::Make => "sprocs/make",
            PostsOf::Empty => "sprocs/empty",
        };
        let path = format!("/dbs/{DATABASE}/colls/{NAME}/{below}");
        let (signer, mut head) = (Signer::new(EMULATOR_KEY), Vec::new());
        write!(
            head,
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\
             accept: application/json\r\ncontent-type: application/json\r\n",
            container.address,
            signer.authorization("POST", &path),
            signer.date(),
        )
        .expect("writing to memory does not fail");
        if matches!(kind, PostsOf::Batch) {
            head.extend_from_slice(
                b"x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\nprefer: return=minimal\r\n",
            );
        }
        Posts { head, kind, round, next: 0, body: String::new() }
    }

    fn write_body(&mut self, key: &str) {
        use std::fmt::Write as _;
        self.body.clear();
        match self.kind {
            PostsOf::Empty => self.body.push_str("[]"),
            PostsOf::Make => {
                write!(self.body, "[\"{key}\",{ITEMS_PER_CALL}]").expect("writing to memory does not fail");
            }
            PostsOf::Batch => {
                for number in 1..=ITEMS_PER_CALL {
                    self.body.push(if number == 1 { '[' } else { ',' });
                    write!(
                        self.body,
                        "{{\"operationType\":\"Create\",\"resourceBody\":{{\"id\":\"{number}\",\"pk\":\"{key}\",\
                         \"name\":\"item\",\"price\":{}}}}}",
                        number as f64 * 1.5
                    )
                    .expect("writing to memory does not fail");
                }
                self.body.push(']');
            }
        }
    }
}

impl Source for Posts {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let key = format!("s{}-{}", self.round, self.next);
        self.next += 1;
        self.write_body(&key);
        request.extend_from_slice(&self.head);
        write!(
            request,
            "x-ms-documentdb-partitionkey: [\"{key}\"]\r\ncontent-length: {}\r\n\r\n{}",
            self.body.len(),
            self.body
        )
        .expect("writing to memory does not fail");
        true
    }

    fn status(&self) -> u16 {
        200
    }
}
