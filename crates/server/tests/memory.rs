//! The memory budget holds, whatever queries ask for, and those who ask for little do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use orrery_testkit::Client;
use serde_json::json;
use support::Server;

mod support;

const MIB: u64 = 1024 * 1024;
const BUDGET_MIB: u64 = 192;
const ATTACKERS: usize = 10;
/// Queries that each attacker sends.
const ROUNDS: usize = 4;

/// Queries over small items that would hold a gigabyte and more.
const ATTACKS: [&str; 8] = [
    "SELECT c.numbers, a, b, COUNT(1) AS n FROM c JOIN a IN c.numbers JOIN b IN c.numbers GROUP BY c.numbers, a, b, c.id",
    "SELECT MAKELIST(c.numbers) AS l FROM c JOIN a IN c.numbers JOIN b IN c.numbers",
    "SELECT DISTINCT c.numbers, a, b, c.id FROM c JOIN a IN c.numbers JOIN b IN c.numbers OFFSET 1000000 LIMIT 1",
    "SELECT c.numbers, a, b FROM c JOIN a IN c.numbers JOIN b IN c.numbers ORDER BY c.n OFFSET 900000 LIMIT 1",
    "SELECT VALUE COUNT(1) FROM (SELECT c, a, b FROM c JOIN a IN c.numbers JOIN b IN c.numbers) AS x",
    "SELECT ARRAY(SELECT c, a FROM a IN c.numbers JOIN b IN c.numbers) AS l FROM c",
    "SELECT VALUE MAKESET({a: a, b: b, c: c.id, all: c.numbers}) FROM c JOIN a IN c.numbers JOIN b IN c.numbers",
    "SELECT VALUE LENGTH(CONCAT(x, x, x, x)) FROM (SELECT VALUE CONCAT(z, z, z, z, z, z, z, z) FROM \
     (SELECT VALUE CONCAT(y, y, y, y, y, y, y, y) FROM (SELECT VALUE REPLICATE(c.id, 1400) FROM c JOIN a IN c.numbers) \
     AS y) AS z) AS x",
];

fn send(client: &mut Client, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    client.send(verb, path, headers, body.as_bytes()).expect("the server answers").status
}

fn set_up(server: &Server) {
    let mut client = Client::new(server.port());
    assert_eq!(send(&mut client, "POST", "/dbs", &[], r#"{"id":"d"}"#), 201);
    for name in ["attacked", "quiet"] {
        let body = json!({"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        assert_eq!(send(&mut client, "POST", "/dbs/d/colls", &[], &body.to_string()), 201);
    }
    let numbers: Vec<u32> = (0..400).collect();
    for n in 0..30 {
        let item = json!({"id": format!("item-{n}"), "pk": "k", "n": n, "numbers": numbers}).to_string();
        let key = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
        assert_eq!(send(&mut client, "POST", "/dbs/d/colls/attacked/docs", &key, &item), 201);
    }
}

fn query(client: &mut Client, container: &str, text: &str) -> u16 {
    let headers = [
        ("x-ms-documentdb-partitionkey", r#"["k"]"#),
        ("x-ms-documentdb-isquery", "True"),
        ("content-type", "application/query+json"),
    ];
    let body = json!({"query": text}).to_string();
    send(client, "POST", &format!("/dbs/d/colls/{container}/docs"), &headers, &body)
}

/// Memory that is not backed by files.
fn anonymous_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux tells");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// Creates, reads and asks for items, one after the other, until it is told to stop; how often.
fn healthy(port: u16, stop: &AtomicBool) -> usize {
    let mut client = Client::new(port);
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let key = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
        let item = json!({"id": format!("{done}"), "pk": "k", "text": "x".repeat(1000)}).to_string();
        assert_eq!(send(&mut client, "POST", "/dbs/d/colls/quiet/docs", &key, &item), 201);
        assert_eq!(send(&mut client, "GET", &format!("/dbs/d/colls/quiet/docs/{done}"), &key, ""), 200);
        assert_eq!(query(&mut client, "quiet", &format!("SELECT * FROM c WHERE c.id = '{done}'")), 200);
        assert_eq!(query(&mut client, "quiet", "SELECT VALUE COUNT(1) FROM c"), 200);
        done += 1;
    }
    done
}

#[test]
fn queries_that_want_everything_stay_within_the_budget_and_harm_nobody_else() {
    let budget = format!("{BUDGET_MIB}MiB");
    let server = Server::start(&["--memory-bytes", &budget, "--no-throttle", "--log", "error"]);
    set_up(&server);
    let (port, process) = (server.port(), server.pid());
    let stop = Arc::new(AtomicBool::new(false));
    let highest = Arc::new(AtomicU64::new(0));
    let watch = {
        let (stop, highest) = (stop.clone(), highest.clone());
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                highest.fetch_max(anonymous_bytes(process), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        })
    };
    let quiet = {
        let stop = stop.clone();
        thread::spawn(move || healthy(port, &stop))
    };
    let refused = Arc::new(AtomicUsize::new(0));
    let attackers: Vec<_> = (0..ATTACKERS)
        .map(|n| {
            let refused = refused.clone();
            thread::spawn(move || {
                let mut client = Client::new(port);
                for round in 0..ROUNDS {
                    let text = ATTACKS[(n + round) % ATTACKS.len()];
                    let status = query(&mut client, "attacked", text);
                    assert!([200, 400, 408, 429].contains(&status), "{status}: {text}");
                    refused.fetch_add(usize::from(status != 200), Ordering::Relaxed);
                }
            })
        })
        .collect();
    let attacked: Vec<_> = attackers.into_iter().map(thread::JoinHandle::join).collect();
    stop.store(true, Ordering::Relaxed);
    watch.join().expect("the server lives");
    let done = quiet.join().expect("a quiet client sees no error");
    attacked.into_iter().for_each(|ended| ended.expect("only expected answers"));
    let highest = highest.load(Ordering::Relaxed) / MIB;
    println!("highest: {highest} MiB of {BUDGET_MIB}; {done} quiet rounds; {refused:?} refused");
    assert!(highest <= BUDGET_MIB + BUDGET_MIB / 10, "{highest} MiB of {BUDGET_MIB}");
    assert!(refused.load(Ordering::Relaxed) > 0, "some of these queries are larger than the server");
}

#[test]
fn a_budget_that_is_too_small_to_work_with_is_refused() {
    let (status, said) = Server::start_refused(&["serve", "--memory-bytes", "10MiB"]);
    assert!(!status.success());
    assert!(said.contains("must be at least 128MiB"), "{said}");
}
