//! One table that clients of the Table API and of the NoSQL API write at the same time, while its partitions split and
//! the server is killed.
//!
//! Each writer has partition keys of its own and writes every entity by either protocol as chance has it, alone and in
//! batches. After each kill both protocols must show what was acknowledged, and of the one request under way all or
//! nothing. In the end so must the change feed and the pages of a query over all partitions.

mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use orrery_testkit::{PATIENCE, Random, Server, eventually, has_reached};
use serde_json::Value;
use writer::{Clients, Place, Writer};

const OPTIONS: [&str; 3] = ["--no-throttle", "--table-port", "0"];
const WRITERS: usize = 4;
const ROUNDS: usize = 8;
/// A kill before so many writes of its round were acknowledged would prove little.
const WRITES_PER_KILL: u64 = 60;
const TABLE: &str = "/dbs/TablesDB/colls/shared";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

#[test]
fn two_protocols_share_a_table_through_splits_and_kills() {
    let mut random = Random::from_environment();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut server = Server::start_on(binary(), directory.path(), &OPTIONS);
    let made = Clients::of(&server).table("POST", "/Tables", br#"{"TableName":"shared"}"#);
    assert_eq!(made.expect("the server is up").status, 201);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|name| Writer::new(name, random.seed())).collect();
    let mut splits = 0;
    for round in 0..ROUNDS {
        let pause = Duration::from_millis(20 + random.below(100) as u64);
        splits += storm(server, &mut writers, &mut random, pause);
        orrery_testkit::verify(binary(), directory.path()).unwrap_or_else(|text| panic!("{text}"));
        server = Server::start_on(binary(), directory.path(), &OPTIONS);
        let mut clients = Clients::of(&server);
        for writer in &mut writers {
            writer.settle(&mut clients).unwrap_or_else(|finding| panic!("round {round}: {finding}"));
        }
    }
    assert!(splits >= ROUNDS / 2, "only {splits} splits: the test proves little");
    let mut clients = Clients::of(&server);
    let wanted: BTreeMap<Place, u64> = writers.iter().flat_map(Writer::entities).collect();
    assert_eq!(
        pages(&mut clients),
        wanted.clone().into_iter().collect::<Vec<_>>(),
        "in the order of both keys"
    );
    // A split leaves the feed to the children a moment later.
    eventually("the change feed has the last version of each entity", || changes(&mut clients) == wanted);
    server.stop();
    orrery_testkit::verify(binary(), directory.path()).unwrap_or_else(|text| panic!("{text}"));
}

/// Lets all writers write, splits a partition under their hands, and kills the server; returns how many were split.
fn storm(server: Server, writers: &mut [Writer], random: &mut Random, pause: Duration) -> usize {
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let ports = Clients::ports(&server);
    let (worth_it, splits) = std::thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| writer.storm(Clients::at(ports), &stop, &acknowledged));
        }
        std::thread::sleep(pause);
        let splits = split(&mut Clients::at(ports), random);
        let worth_it = has_reached(&acknowledged, WRITES_PER_KILL);
        server.kill();
        stop.store(true, Ordering::Relaxed);
        (worth_it, splits)
    });
    assert!(worth_it, "fewer than {WRITES_PER_KILL} writes in {PATIENCE:?}");
    splits
}

fn split(clients: &mut Clients, random: &mut Random) -> usize {
    let ranges = ranges(clients);
    let range = random.pick(&ranges);
    let path = format!("/_orrery{TABLE}/partitions/{range}/split");
    let reply = clients.nosql.send("POST", &path, &[], br#"{"children":2}"#).expect("the server is up");
    // A partition that has hardly any keys yet cannot be split, which is no fault.
    usize::from(reply.status == 200)
}

fn ranges(clients: &mut Clients) -> Vec<String> {
    let reply = clients.nosql.send("GET", &format!("{TABLE}/pkranges"), &[], b"").expect("the server is up");
    let feed = reply.json();
    let ranges = feed["PartitionKeyRanges"].as_array().expect("a feed");
    ranges.iter().map(|range| range["id"].as_str().expect("an id").to_owned()).collect()
}

/// All entities by a query over all partitions, page by page.
fn pages(clients: &mut Clients) -> Vec<(Place, u64)> {
    let (mut found, mut next) = (Vec::new(), String::new());
    for _ in 0..10_000 {
        let path = format!("/shared()?$top=7{next}");
        let reply = clients.table("GET", &path, b"").expect("the server is up");
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        for row in reply.json()["value"].as_array().expect("rows") {
            let text = |name: &str| row[name].as_str().expect("a text").to_owned();
            found.push(((text("PartitionKey"), text("RowKey")), text("n").parse().expect("a number")));
        }
        let Some(token) = reply.header("x-ms-continuation-nextpartitionkey") else { return found };
        next = format!("&NextPartitionKey={token}");
        if let Some(row) = reply.header("x-ms-continuation-nextrowkey") {
            next.push_str(&format!("&NextRowKey={row}"));
        }
    }
    panic!("the query never ends")
}

/// The last version of each entity as the change feed has it, by physical partition.
fn changes(clients: &mut Clients) -> BTreeMap<Place, u64> {
    let mut found = BTreeMap::new();
    for range in ranges(clients) {
        let mut continuation = None::<String>;
        loop {
            let mut headers = vec![
                ("a-im", "Incremental Feed"),
                ("x-ms-max-item-count", "13"),
                ("x-ms-documentdb-partitionkeyrangeid", range.as_str()),
            ];
            headers.extend(continuation.as_deref().map(|token| ("if-none-match", token)));
            let reply =
                clients.nosql.send("GET", &format!("{TABLE}/docs"), &headers, b"").expect("the server is up");
            if reply.status == 304 {
                break;
            }
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
            continuation = reply.header("etag").map(str::to_owned);
            for item in reply.json()["Documents"].as_array().expect("a feed") {
                found.insert(place_of(item), writer::number_of(item).expect("an entity"));
            }
        }
    }
    found
}

fn place_of(item: &Value) -> Place {
    let text = |name: &str| item[name].as_str().expect("a text").to_owned();
    (text("$pk"), text("id"))
}
