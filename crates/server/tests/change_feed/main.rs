//! The change feed under a storm of writes and kills.
//!
//! Writers create, replace and delete items, alone and in batches, while the server is killed again and again. Consumers
//! read both feeds all the time, by physical partition, by parts of the key space and by single partition keys, with
//! nothing but the last continuation to go on from. In the end each consumer must have seen what was acknowledged:
//! of the latest versions the last one of every item, of all versions every single one, in the order of the writes of
//! each partition key.
//!
//! `ORRERY_STORM_SECONDS` makes the storm longer.

mod consumer;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use consumer::{Consumer, Mode, feeds_of_key, feeds_of_parts, feeds_of_ranges};
use orrery_testkit::{Client, PATIENCE, Random, Server, has_reached};
use serde_json::json;
use writer::{Event, Writer};

const WRITERS: usize = 6;
const CONTAINERS: [(&str, &str); 2] = [("one", "400"), ("four", "24000")];
const STORM: Duration = Duration::from_secs(12);
/// A kill before so many writes of its round were acknowledged would prove little.
const WRITES_PER_KILL: u64 = 11;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn start(directory: &Path) -> Server {
    Server::start_on(binary(), directory, &["--no-throttle"])
}

fn create_containers(client: &mut Client) {
    let reply = client.send("POST", "/dbs", &[], br#"{"id":"storm"}"#).expect("the server is up");
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    for (id, throughput) in CONTAINERS {
        let body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "changeFeedPolicy": {"retentionDuration": 600},
        });
        let headers = [("x-ms-offer-throughput", throughput)];
        let reply = client.send("POST", "/dbs/storm/colls", &headers, body.to_string().as_bytes());
        let reply = reply.expect("the server is up");
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    }
}

/// Consumers of both modes over the whole container, twice, and over one partition key.
fn consumers(client: &mut Client) -> Vec<Consumer> {
    let mut consumers = Vec::new();
    for (writer, (container, _)) in CONTAINERS.into_iter().enumerate() {
        let key = Writer::key_of(writer, 0);
        for mode in [Mode::Latest, Mode::All] {
            for (feeds, key) in [
                (feeds_of_ranges(client, container), None),
                (feeds_of_parts(client, container), None),
                (feeds_of_key(&key), Some(key.clone())),
            ] {
                let mut consumer = Consumer::new(container, mode, feeds, key);
                consumer.begin(client);
                consumers.push(consumer);
            }
        }
    }
    consumers
}

/// The offline check: everything derived from the items, the feeds included, must agree with them.
fn verify(directory: &Path) {
    orrery_testkit::verify(binary(), directory).unwrap_or_else(|text| panic!("{text}"));
}

/// Writes and reads until the kill.
fn round(
    server: Server,
    length: Duration,
    writers: &mut [Writer],
    consumers: &mut [Consumer],
    count: &AtomicU64,
) {
    let stop = AtomicBool::new(false);
    let port = server.port();
    let enough = count.load(Ordering::Relaxed) + WRITES_PER_KILL;
    let worth_it = std::thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| writer.storm(port, &stop, count));
        }
        for group in consumers.chunks_mut(3) {
            scope.spawn(|| {
                let mut client = Client::new(port);
                while !stop.load(Ordering::Relaxed) {
                    group.iter_mut().for_each(|consumer| consumer.poll(&mut client));
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
        std::thread::sleep(length);
        let worth_it = has_reached(count, enough);
        server.kill();
        stop.store(true, Ordering::Relaxed);
        worth_it
    });
    assert!(worth_it, "fewer than {WRITES_PER_KILL} writes in {PATIENCE:?}");
}

#[test]
fn consumers_see_what_was_acknowledged_across_kills() {
    let seconds = std::env::var("ORRERY_STORM_SECONDS").ok().and_then(|text| text.parse().ok());
    let storm = seconds.map_or(STORM, Duration::from_secs);
    let mut random = Random::from_environment();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut server = start(directory.path());
    let mut client = Client::new(server.port());
    create_containers(&mut client);
    let mut consumers = consumers(&mut client);
    let writer = |name| Writer::new(name, CONTAINERS[name % CONTAINERS.len()].0, random.seed());
    let mut writers: Vec<Writer> = (0..WRITERS).map(writer).collect();
    let acknowledged = AtomicU64::new(0);
    let (begin, mut kills) = (Instant::now(), 0);
    while begin.elapsed() < storm {
        let length = Duration::from_millis(50 + random.below(450) as u64);
        round(server, length, &mut writers, &mut consumers, &acknowledged);
        kills += 1;
        if kills % 8 == 0 {
            verify(directory.path());
        }
        server = start(directory.path());
        client = Client::new(server.port());
        writers.iter_mut().for_each(|writer| writer.settle(&mut client));
    }
    let mut seen = 0;
    for consumer in &mut consumers {
        consumer.drain(&mut client);
        let written = written_to(&writers, consumer);
        consumer.check(&written);
        seen += consumer.seen();
    }
    server.stop();
    verify(directory.path());
    let total = acknowledged.into_inner();
    println!(
        "{kills} kills, {total} acknowledged writes, {seen} changes seen by {} consumers",
        consumers.len()
    );
    assert!(total > kills * 10, "only {total} writes were acknowledged: the test proves little");
}

/// What was written to each partition key that a consumer reads.
fn written_to<'a>(writers: &'a [Writer], consumer: &Consumer) -> HashMap<&'a str, &'a [Event]> {
    let of_container = writers.iter().filter(|writer| writer.container == consumer.container);
    let logs = of_container.flat_map(|writer| &writer.logs);
    let concerned = logs.filter(|(key, _)| consumer.key.as_ref().is_none_or(|only| only == *key));
    concerned.map(|(key, events)| (key.as_str(), events.as_slice())).collect()
}

/// The comparison itself must notice what it looks for.
#[test]
fn a_change_that_is_missing_or_out_of_order_is_found() {
    let event = |id: &str, version| Event { kind: writer::Kind::Create, id: id.to_owned(), version };
    let written = [event("a", 1), event("b", 2), event("c", 3)];
    let judge = |seen: &[Event]| {
        std::panic::catch_unwind(|| {
            let mut consumer = Consumer::new("one", Mode::All, Vec::new(), None);
            consumer.pretend("k", seen);
            consumer.check(&HashMap::from([("k", &written[..])]));
        })
    };
    assert!(judge(&written).is_ok());
    assert!(judge(&written[..2]).is_err(), "the last one is missing");
    assert!(judge(&[event("a", 1), event("c", 3)]).is_err(), "one is missing");
    assert!(judge(&[event("b", 2), event("a", 1), event("c", 3)]).is_err(), "two have changed places");
}
