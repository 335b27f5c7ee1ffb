//! Partitions, budgets and consistency as a client sees them, on a real server.

mod throughput;
mod world;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orrery_testkit::{Client, Server, wait_for};
use serde_json::json;
use world::{World, binary, charge};

/// Bytes of an item that costs more than 800 RU.
const LARGE: usize = 1_500_000;

#[test]
fn throughput_decides_how_many_partitions_a_container_starts_with() {
    let mut world = World::start(&[]);
    for (throughput, partitions) in [(400, 1), (10_000, 1), (12_000, 2), (24_000, 4), (30_000, 5)] {
        let id = format!("c{throughput}");
        world.container(&id, throughput);
        let ranges = world.ranges(&id);
        assert_eq!(ranges.len(), partitions, "{throughput}");
        assert_eq!(ranges[0]["minInclusive"], "");
        assert_eq!(ranges[partitions - 1]["maxExclusive"], "FF");
        for pair in ranges.windows(2) {
            assert_eq!(pair[0]["maxExclusive"], pair[1]["minInclusive"], "no gaps");
        }
    }
}

#[test]
fn the_range_feed_ends_in_not_modified() {
    let mut world = World::start(&[]);
    world.container("c", 24_000);
    let path = "/dbs/db/colls/c/pkranges";
    let first = world.send("GET", path, &[("a-im", "Incremental feed"), ("x-ms-max-item-count", "-1")], b"");
    assert_eq!((first.status, first.json()["_count"].as_u64()), (200, Some(4)));
    let etag = first.header("etag").expect("a continuation").to_owned();
    let second = world.send("GET", path, &[("a-im", "Incremental feed"), ("if-none-match", &etag)], b"");
    assert_eq!((second.status, second.body.len()), (304, 0));
}

#[test]
fn each_logical_partition_lives_on_one_range_and_all_feeds_agree() {
    let mut world = World::start(&["--no-throttle"]);
    world.container("c", 24_000);
    let mut served = HashMap::new();
    for n in 0..120 {
        let key = format!("k{}", n % 30);
        let reply = world.create("c", &key, &format!("i{n}"), 10);
        assert_eq!(reply.status, 201);
        let range = reply.header("x-ms-documentdb-partitionkeyrangeid").expect("a range").to_owned();
        assert_eq!(served.entry(key).or_insert(range.clone()), &range, "a key never moves");
    }
    assert_eq!(served.values().collect::<HashSet<_>>().len(), 4, "30 keys reach all four ranges");
    let all = world.drain("c", &[("x-ms-max-item-count", "7")]);
    let ids: HashSet<&str> = all.iter().filter_map(|item| item["id"].as_str()).collect();
    assert_eq!((all.len(), ids.len()), (120, 120), "nothing is missing and nothing comes twice");
    let mut by_range = 0;
    for range in world.ranges("c") {
        let id = range["id"].as_str().expect("an id").to_owned();
        let items =
            world.drain("c", &[("x-ms-documentdb-partitionkeyrangeid", &id), ("x-ms-max-item-count", "9")]);
        assert!(items.iter().all(|item| served[item["pk"].as_str().expect("a key")] == id));
        by_range += items.len();
        // Cutting the range anywhere gives two parts that make the whole again.
        let (min, max) = (range["minInclusive"].as_str().unwrap(), range["maxExclusive"].as_str().unwrap());
        let middle = format!("{:02X}", u8::from_str_radix(min.get(..2).unwrap_or("00"), 16).unwrap() + 8);
        let part = |world: &mut World, from: &str, to: &str| {
            let headers = [
                ("x-ms-documentdb-partitionkeyrangeid", id.as_str()),
                ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
                ("x-ms-start-epk", from),
                ("x-ms-end-epk", to),
            ];
            world.drain("c", &headers).len()
        };
        let parts = part(&mut world, min, &middle) + part(&mut world, &middle, max);
        assert_eq!(parts, items.len(), "range {id} cut at {middle}");
    }
    assert_eq!(by_range, 120);
    let gone =
        world.send("GET", "/dbs/db/colls/c/docs", &[("x-ms-documentdb-partitionkeyrangeid", "77")], b"");
    assert_eq!((gone.status, gone.sub_status()), (410, 1002));
}

#[test]
fn a_full_logical_partition_answers_403_1014_also_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let args = ["--no-throttle", "--logical-partition-bytes", "16KiB"];
    let mut world = World::on(Server::start_on(binary(), directory.path(), &args));
    world.container("c", 400);
    let sizes: Vec<u16> = (0..20).map(|n| world.create("c", "hot", &format!("i{n}"), 1000).status).collect();
    let stored = sizes.iter().take_while(|status| **status == 201).count();
    assert_eq!(stored, 15, "fifteen items of about 1 KiB fit into 16 KiB: {sizes:?}");
    assert!(sizes[stored..].iter().all(|status| *status == 403));
    assert!(world.metric("orrery_logical_partition_near_limit_total") >= 2.0, "from 80 % on it is counted");
    assert!(world.metric("orrery_logical_partition_full_total") >= 5.0);
    world.server.kill();
    let mut world = World::on(Server::start_on(binary(), directory.path(), &args));
    let refused = world.create("c", "hot", "again", 1000);
    assert_eq!((refused.status, refused.sub_status()), (403, 1014), "the size survives a kill");
    assert_eq!(world.create("c", "cold", "other", 1000).status, 201, "other keys are not concerned");
    assert_eq!(world.with_key("DELETE", "c", "hot", "i0", &[], b"").status, 204);
    assert_eq!(world.create("c", "hot", "again", 900).status, 201, "room that was freed is room");
}

#[test]
fn a_spent_budget_answers_429_with_an_honest_wait() {
    let mut world = World::start(&[]);
    world.container("c", 400);
    let begin = Instant::now();
    let (mut spent, mut refused) = (0.0, None);
    for n in 0..400 {
        let reply = world.create("c", "k", &format!("i{n}"), 200_000);
        match reply.status {
            201 => spent += charge(&reply),
            status => {
                assert_eq!((status, reply.sub_status()), (429, 3200));
                refused = reply.header("x-ms-retry-after-ms").and_then(|text| text.parse::<u64>().ok());
                break;
            }
        }
    }
    let wait = refused.expect("400 RU/s do not last for 400 large writes in a moment");
    let seconds = begin.elapsed().as_secs_f64();
    // What was banked while idle may be spent at up to 3,000 RU/s, never more.
    assert!(spent <= 3_000.0 * (seconds + 1.0), "{spent} RU in {seconds} s");
    std::thread::sleep(Duration::from_millis(wait + 20));
    assert_eq!(
        world.create("c", "k", "after", 800).status,
        201,
        "after the wait of {wait} ms there is budget"
    );
    assert!(world.metric("orrery_throttled_total") >= 1.0);
}

#[test]
fn a_hot_partition_is_throttled_alone() {
    let mut world = World::start(&["--partition-throughput", "1000"]);
    world.container("c", 2_000);
    let ranges = world.ranges("c").len();
    assert!(ranges >= 2, "{ranges}");
    let mut home = HashMap::new();
    for n in 0..40 {
        let key = format!("k{n}");
        let reply = world.create("c", &key, "probe", 1);
        if let Some(range) = reply.header("x-ms-documentdb-partitionkeyrangeid") {
            home.insert(range.to_owned(), key);
        }
    }
    let keys: Vec<&String> = home.values().collect();
    let (hot, cold) = (keys[0].clone(), keys[1].clone());
    // A large item costs most of what the partition gives in a second, so the debt outlasts the next request.
    let throttled = (0..200).any(|n| {
        let large = world.create("c", &hot, &format!("h{n}"), LARGE);
        large.status == 429 || world.create("c", &hot, &format!("s{n}"), 1).status == 429
    });
    assert!(throttled, "the hot partition must run out");
    assert_eq!(world.create("c", &cold, "fine", 100).status, 201, "its neighbour has its own budget");
}

#[test]
fn containers_of_a_database_share_its_throughput() {
    let mut world = World::start(&[]);
    let headers = [("x-ms-offer-throughput", "400")];
    assert_eq!(world.send("POST", "/dbs", &headers, br#"{"id":"shared"}"#).status, 201);
    for id in ["a", "b"] {
        let body =
            json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}).to_string();
        assert_eq!(world.send("POST", "/dbs/shared/colls", &[], body.as_bytes()).status, 201);
    }
    // The debt of a large item outlasts the next requests, unless the machine takes a break just then.
    let both_refused = (0..20).any(|n| {
        create_large(&mut world, "/dbs/shared/colls/a/docs", &format!("large{n}"));
        let headers = [("x-ms-documentdb-partitionkey", "[\"k\"]")];
        let own = world.send("GET", "/dbs/shared/colls/a/docs/large0", &headers, b"");
        let other = world.send("GET", "/dbs/shared/colls/b/docs/1", &headers, b"");
        (own.status, other.status) == (429, 429)
    });
    assert!(both_refused, "what one container spent is gone for the other too");
}

/// Waits until there is budget for it.
fn create_large(world: &mut World, path: &str, id: &str) {
    let headers = [("x-ms-documentdb-partitionkey", "[\"k\"]")];
    let body = json!({"id": id, "pk": "k", "fill": "x".repeat(LARGE)}).to_string();
    wait_for(|| match world.send("POST", path, &headers, body.as_bytes()).status {
        201 => Ok(()),
        429 => Err("budget never comes back".to_owned()),
        status => panic!("answered with {status}"),
    });
}

#[test]
fn charges_follow_the_table_and_explain_themselves() {
    let mut world = World::start(&[]);
    world.container("c", 10_000);
    let created = world.create("c", "k", "small", 100);
    let terms = 3.0;
    assert_eq!(charge(&created), ((4.95 + 0.2 * (terms - 1.0)) * 100.0_f64).round() / 100.0);
    let explain = [("x-orrery-explain-charge", "true")];
    let read = world.with_key("GET", "c", "k", "small", &explain, b"");
    assert_eq!(charge(&read), 1.0);
    let lines: serde_json::Value =
        serde_json::from_str(read.header("x-orrery-charge").expect("an explanation")).expect("JSON");
    assert_eq!(lines["total"].as_f64(), Some(1.0));
    assert_eq!(lines["lines"].as_array().map(Vec::len), Some(1));
    world.create("c", "k", "large", 64 * 1024 - 42);
    let large = world.with_key("GET", "c", "k", "large", &[], b"");
    assert!((charge(&large) - 4.76).abs() < 0.02, "{}", charge(&large));
    let missing = world.with_key("GET", "c", "k", "nothing", &[], b"");
    assert_eq!((missing.status, charge(&missing)), (404, 1.0));
}

#[test]
fn strong_reads_cost_twice_and_requests_may_only_weaken() {
    let mut world = World::start(&["--consistency", "Strong"]);
    world.container("c", 10_000);
    world.create("c", "k", "i", 10);
    assert_eq!(charge(&world.with_key("GET", "c", "k", "i", &[], b"")), 2.0);
    let weaker = [("x-ms-consistency-level", "Eventual")];
    assert_eq!(charge(&world.with_key("GET", "c", "k", "i", &weaker, b"")), 1.0);
    let mut session = World::start(&[]);
    session.container("c", 10_000);
    session.create("c", "k", "i", 10);
    let stronger = [("x-ms-consistency-level", "Strong")];
    assert_eq!(session.with_key("GET", "c", "k", "i", &stronger, b"").status, 400);
}

#[test]
fn session_tokens_grow_and_those_of_the_future_are_refused() {
    let mut world = World::start(&[]);
    world.container("c", 10_000);
    let mut last = 0;
    for n in 0..5 {
        let reply = world.create("c", "k", &n.to_string(), 10);
        let token = reply.header("x-ms-session-token").expect("a token").to_owned();
        let lsn: u64 = token.rsplit('#').next().and_then(|text| text.parse().ok()).expect("an LSN");
        assert!(lsn > last, "{token}");
        last = lsn;
    }
    let now = format!("0:-1#{last}");
    assert_eq!(world.with_key("GET", "c", "k", "1", &[("x-ms-session-token", &now)], b"").status, 200);
    let future = format!("0:-1#{}", last + 10);
    let reply = world.with_key("GET", "c", "k", "1", &[("x-ms-session-token", &future)], b"");
    assert_eq!((reply.status, reply.sub_status()), (404, 1002));
}

#[test]
fn readers_never_see_half_a_batch() {
    let mut world = World::start(&["--no-throttle"]);
    world.container("c", 400);
    let port = world.server.port();
    let done = AtomicBool::new(false);
    let batch = |version: usize| {
        let op = |n: usize| json!({"operationType": "Upsert", "resourceBody": {"id": n.to_string(), "pk": "k", "v": version}});
        serde_json::Value::from((0..10).map(op).collect::<Vec<_>>()).to_string()
    };
    let headers = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    assert_eq!(world.with_key("POST", "c", "k", "", &headers, batch(0).as_bytes()).status, 200);
    let pages = std::thread::scope(|scope| {
        let reader = |_| {
            scope.spawn(|| {
                let mut client = Client::new(port);
                let mut pages = 0;
                while !done.load(Ordering::Relaxed) {
                    let headers = [("x-ms-documentdb-partitionkey", "[\"k\"]")];
                    let reply = client.send("GET", "/dbs/db/colls/c/docs", &headers, b"").expect("up");
                    let found = reply.json();
                    let items = found["Documents"].as_array().expect("a feed");
                    let versions: HashSet<u64> = items.iter().filter_map(|item| item["v"].as_u64()).collect();
                    assert_eq!((items.len(), versions.len()), (10, 1), "a torn batch: {versions:?}");
                    pages += 1;
                }
                pages
            })
        };
        let readers: Vec<_> = (0..3).map(reader).collect();
        for version in 1..200 {
            let reply = world.with_key("POST", "c", "k", "", &headers, batch(version).as_bytes());
            assert_eq!(reply.status, 200);
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("no torn batch")).sum::<u32>()
    });
    assert!(pages > 10, "only {pages} pages were read");
}

#[test]
fn changes_come_once_each_and_the_feed_ends_in_not_modified() {
    let mut world = World::start(&["--no-throttle"]);
    world.container("c", 400);
    for n in 0..10 {
        world.create("c", "k", &n.to_string(), 10);
    }
    world.with_key("PUT", "c", "k", "3", &[], br#"{"id":"3","pk":"k","changed":true}"#);
    let mut read = |from: Option<&str>| {
        let mut headers = vec![
            ("a-im", "Incremental feed"),
            ("x-ms-max-item-count", "4"),
            ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ];
        headers.extend(from.map(|etag| ("if-none-match", etag)));
        let reply = world.send("GET", "/dbs/db/colls/c/docs", &headers, b"");
        let etag = reply.header("etag").expect("every answer carries the continuation").to_owned();
        for name in ["x-ms-session-token", "lsn", "x-ms-request-charge", "x-ms-activity-id"] {
            assert!(reply.header(name).is_some(), "{}: {name}", reply.status);
        }
        let ids = reply.json()["Documents"].as_array().map(|items| {
            items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        });
        (reply.status, etag, ids.unwrap_or_default())
    };
    let (mut seen, mut etag) = (Vec::new(), None::<String>);
    let last = loop {
        let (status, next, ids) = read(etag.as_deref());
        etag = Some(next);
        match status {
            200 => seen.extend(ids),
            status => break status,
        }
        assert!(seen.len() <= 10, "{seen:?}");
    };
    assert_eq!((last, seen.join("")), (304, "0124567893".to_owned()), "the changed item comes last");
    assert_eq!(read(Some("*")).0, 304, "from now on there is nothing yet");
    assert_eq!(read(etag.as_deref()).0, 304);
}

#[test]
fn a_serverless_account_has_no_offers() {
    let mut world = World::start(&["--serverless"]);
    let body = br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    assert_eq!(world.send("POST", "/dbs/db/colls", &[("x-ms-offer-throughput", "400")], body).status, 400);
    assert_eq!(world.send("POST", "/dbs/db/colls", &[], body).status, 201);
    assert_eq!(world.create("c", "k", "i", 10).status, 201);
}
