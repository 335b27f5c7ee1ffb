//! Clients that hold memory: uploads that never end and answers that nobody reads. They hold what the budget has for them
//! and no more, and others are served beside them.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use orrery_testkit::{Client, EMULATOR_KEY, Signer, eventually};
use support::Server;
use support::direct::{CREATE, Connection, Place, READ, READ_FEED, authority, greeted};

mod support;

const MIB: u64 = 1024 * 1024;
const BUDGET: u64 = 128 * MIB;
const ITEMS: &str = "/dbs/db/colls/items/docs";
/// As many as it takes to hold several times the budget.
const HOLDERS: usize = 200;
const UPLOAD_BYTES: usize = 2_200_000;

fn world(arguments: &[&str]) -> Server {
    let server = Server::start(&[&["--memory-bytes", "128MiB", "--no-throttle"], arguments].concat());
    let mut client = Client::new(server.port());
    create(&mut client, "/dbs", r#"{"id":"db"}"#);
    let container = r#"{"id":"items","partitionKey":{"paths":["/key"],"kind":"Hash","version":2},
        "indexingPolicy":{"includedPaths":[],"excludedPaths":[{"path":"/*"}]}}"#;
    create(&mut client, "/dbs/db/colls", container);
    server
}

fn create(client: &mut Client, path: &str, body: &str) {
    let reply = client.send("POST", path, &[], body.as_bytes()).expect("an answer");
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
}

fn item(id: &str, bytes: usize) -> String {
    format!(r#"{{"id":"{id}","key":"k","text":"{}"}}"#, "x".repeat(bytes))
}

fn put_item(client: &mut Client, id: &str, bytes: usize) -> u16 {
    let headers = [("x-ms-documentdb-partitionkey", r#"["k"]"#), ("x-ms-documentdb-is-upsert", "true")];
    client.send("POST", ITEMS, &headers, item(id, bytes).as_bytes()).map_or(0, |reply| reply.status)
}

/// The head of a signed request for the items, and whatever follows it.
fn head(port: u16, verb: &str, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let signer = Signer::new(EMULATOR_KEY);
    let authorization = signer.authorization(verb, path);
    let mut head = format!(
        "{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: {authorization}\r\nx-ms-date: {}\r\n\
         x-ms-version: 2020-07-15\r\ncontent-length: {length}\r\n",
        signer.date()
    );
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str("\r\n");
    head.into_bytes()
}

/// Anonymous memory, the highest that was seen.
struct Gauge {
    highest: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Gauge {
    fn start(server: &Server) -> Gauge {
        let (highest, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let status = format!("/proc/{}/status", server.pid());
        let (seen, stopped) = (Arc::clone(&highest), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&status).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
                let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
                seen.fetch_max(kib.unwrap_or(0) * 1024, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        Gauge { highest, stop, thread: Some(thread) }
    }

    fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a healthy client does; every answer must be a good one.
fn live_beside(server: &Server, time: Duration) {
    let mut client = Client::new(server.port());
    let began = Instant::now();
    let mut rounds = 0;
    while began.elapsed() < time || rounds < 10 {
        let id = format!("healthy-{}", rounds % 10);
        assert!([200, 201].contains(&put_item(&mut client, &id, 1_000)), "a small item is taken");
        let key = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
        let read = client.send("GET", &format!("{ITEMS}/{id}"), &key, b"").expect("an answer");
        assert_eq!(read.status, 200);
        let query = [
            ("x-ms-documentdb-isquery", "true"),
            ("content-type", "application/query+json"),
            ("x-ms-documentdb-partitionkey", r#"["k"]"#),
        ];
        let text = format!(r#"{{"query":"SELECT VALUE c.id FROM c WHERE c.id = '{id}'"}}"#);
        let found = client.send("POST", ITEMS, &query, text.as_bytes()).expect("an answer");
        assert_eq!((found.status, found.json()["Documents"][0].as_str()), (200, Some(id.as_str())));
        rounds += 1;
    }
}

/// Sends what the sockets take, again and again, but never the last byte of any.
struct Uploads(Vec<(TcpStream, Vec<u8>, usize)>);

impl Uploads {
    fn start(server: &Server, count: usize) -> Uploads {
        let port = server.port();
        let headers = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
        let mut message = head(port, "POST", ITEMS, &headers, UPLOAD_BYTES);
        message.resize(message.len() + UPLOAD_BYTES - 1, b' ');
        let open = |_| {
            let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
            stream.set_nonblocking(true).expect("sockets need not block");
            (stream, message.clone(), 0)
        };
        Uploads((0..count).map(open).collect())
    }

    fn push(&mut self) {
        for (stream, message, sent) in &mut self.0 {
            while *sent < message.len() {
                match stream.write(&message[*sent..]) {
                    Ok(count) => *sent += count,
                    Err(_) => break,
                }
            }
        }
    }

    /// The statuses of answers so far, of those who got one.
    fn statuses(&mut self) -> Vec<u16> {
        let status = |stream: &mut TcpStream| {
            let mut start = [0; 12];
            match stream.peek(&mut start) {
                Ok(12) => std::str::from_utf8(&start[9..]).ok()?.parse().ok(),
                _ => None,
            }
        };
        self.0.iter_mut().filter_map(|(stream, ..)| status(stream)).collect()
    }
}

#[test]
fn uploads_that_do_not_end_leave_room_for_others() {
    let server = world(&[]);
    let gauge = Gauge::start(&server);
    let mut uploads = Uploads::start(&server, HOLDERS);
    let began = Instant::now();
    thread::scope(|scope| {
        let healthy = scope.spawn(|| live_beside(&server, Duration::from_secs(8)));
        while !healthy.is_finished() {
            uploads.push();
            thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    // They gave up or were given up long before a body may take, so that others had their turn.
    eventually("uploads are refused, or given up where others want their place", || {
        uploads.push();
        let statuses = uploads.statuses();
        let all_known = statuses.iter().all(|status| [408, 429].contains(status));
        assert!(all_known, "{statuses:?}");
        statuses.contains(&408) && statuses.contains(&429)
    });
    println!("answers after {:?}", began.elapsed());
    drop(uploads);
    let mut client = Client::new(server.port());
    eventually("a large item is taken again", || put_item(&mut client, "large", 1_900_000) == 201);
}

/// Asks for something large on many connections and reads nothing of it.
fn hold_answers(server: &Server, path: &str, headers: &[(&str, &str)]) -> Vec<TcpStream> {
    let request = head(server.port(), "GET", path, headers, 0);
    let ask = |_| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a connection");
        stream.write_all(&request).expect("a request is small");
        stream
    };
    (0..HOLDERS).map(ask).collect()
}

fn check_answers(path: &str, headers: &[(&str, &str)]) {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    for number in 0..40 {
        assert_eq!(put_item(&mut client, &format!("part-{number}"), 100_000), 201);
    }
    assert_eq!(put_item(&mut client, "large", 1_900_000), 201);
    let gauge = Gauge::start(&server);
    let holders = hold_answers(&server, path, headers);
    live_beside(&server, Duration::from_secs(8));
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    drop(holders);
    let key = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
    eventually("a large item is read again", || {
        let reply = client.send("GET", &format!("{ITEMS}/large"), &key, b"");
        reply.is_ok_and(|reply| reply.status == 200 && reply.body.len() > 1_900_000)
    });
}

#[test]
fn pages_that_nobody_reads_leave_room_for_others() {
    check_answers(ITEMS, &[("x-ms-max-item-count", "-1")]);
}

#[test]
fn items_that_nobody_reads_leave_room_for_others() {
    check_answers(&format!("{ITEMS}/large"), &[("x-ms-documentdb-partitionkey", r#"["k"]"#)]);
}

/// One who reads slowly but does is not cut off where nobody wants the memory.
#[test]
fn a_slow_reader_gets_all_of_its_page() {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    for number in 0..30 {
        assert_eq!(put_item(&mut client, &format!("part-{number}"), 100_000), 201);
    }
    let request =
        head(server.port(), "GET", ITEMS, &[("x-ms-max-item-count", "-1"), ("connection", "close")], 0);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a connection");
    stream.write_all(&request).expect("a request is small");
    let (mut all, mut piece) = (0, vec![0; 256 * 1024]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => all += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("after {all} bytes: {error}"),
        }
        thread::sleep(Duration::from_millis(200));
    }
    assert!(all > 500_000, "{all} bytes");
}

/// Clients that each do the same again and again, until `live_beside` is done; what they were answered.
fn beside_many(
    server: &Server,
    clients: usize,
    act: impl Fn(&mut Client, usize, usize) -> u16 + Sync,
) -> Vec<u16> {
    let stop = AtomicBool::new(false);
    let work = |number: usize| {
        let (mut client, mut answers) = (Client::new(server.port()), Vec::new());
        while !stop.load(Ordering::Relaxed) {
            answers.push(act(&mut client, number, answers.len()));
        }
        answers
    };
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || work(number))).collect();
        live_beside(server, Duration::from_secs(8));
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().expect("no client panics")).collect()
    })
}

/// The engine of a function takes its memory on whatever thread runs the query; with the query it is over.
#[test]
fn functions_that_hold_memory_give_it_back_on_every_thread() {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    let function = r#"{"id":"hold","body":"function (c) { let all = []; for (let i = 0; i < 40000; i++) all.push(c.id + i); return all.length; }"}"#;
    create(&mut client, "/dbs/db/colls/items/udfs", function);
    for number in 0..50 {
        assert_eq!(put_item(&mut client, &format!("part-{number}"), 100), 201);
    }
    let gauge = Gauge::start(&server);
    let query = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-partitionkey", r#"["k"]"#),
    ];
    let answers = beside_many(&server, 24, |client, _, _| {
        let reply = client.send("POST", ITEMS, &query, br#"{"query":"SELECT VALUE udf.hold(c) FROM c"}"#);
        reply.map_or(0, |reply| reply.status)
    });
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    assert!(answers.contains(&200), "{answers:?}");
}
/// On its way from the socket to the tables a large item exists several times over, and so does the one that it replaces.
#[test]
fn large_items_that_are_written_at_once_keep_to_the_budget() {
    let server = world(&[]);
    let gauge = Gauge::start(&server);
    let batch = |number: usize, round: usize| {
        let operation = |place: usize| {
            let id = format!("{number}-{}-{place}", round % 10);
            format!(r#"{{"operationType":"Upsert","resourceBody":{}}}"#, item(&id, 15_000))
        };
        format!("[{}]", (0..100).map(operation).collect::<Vec<_>>().join(","))
    };
    let headers = [
        ("x-ms-documentdb-partitionkey", r#"["k"]"#),
        ("x-ms-cosmos-is-batch-request", "true"),
        ("x-ms-cosmos-batch-atomic", "true"),
    ];
    let answers = beside_many(&server, 8, |client, number, round| match (number + round) % 2 {
        0 => put_item(client, &format!("large-{number}-{}", round % 10), 1_900_000),
        _ => {
            let reply = client.send("POST", ITEMS, &headers, batch(number, round).as_bytes());
            reply.map_or(0, |reply| reply.status)
        }
    });
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    assert!(answers.iter().all(|status| [200, 201, 429].contains(status)), "{answers:?}");
    assert!(answers.iter().filter(|status| **status != 429).count() > 20, "{answers:?}");
}

/// An item with so many terms.
fn numbers(id: &str, first: usize, count: usize) -> String {
    let all: Vec<String> = (first..first + count).map(|number| number.to_string()).collect();
    format!(r#"{{"id":"{id}","key":"k","all":[{}]}}"#, all.join(","))
}

/// A term of the index takes many times what it has in the text.
#[test]
fn items_of_many_terms_keep_to_the_budget() {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    let container = r#"{"id":"numbers","partitionKey":{"paths":["/key"],"kind":"Hash","version":2}}"#;
    create(&mut client, "/dbs/db/colls", container);
    let gauge = Gauge::start(&server);
    let headers = [("x-ms-documentdb-partitionkey", r#"["k"]"#), ("x-ms-documentdb-is-upsert", "true")];
    let answers = beside_many(&server, 6, |client, number, round| {
        // What has a term for each of its numbers, and one that has too many.
        let count = if (number + round) % 3 == 0 { 150_000 } else { 12_000 };
        let item = numbers(&format!("{number}-{}", round % 3), round * 1_000, count);
        let reply = client.send("POST", "/dbs/db/colls/numbers/docs", &headers, item.as_bytes());
        reply.map_or(0, |reply| reply.status)
    });
    println!("{} MiB were used", gauge.highest() / MIB);
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    assert!(answers.iter().all(|status| [200, 201, 413, 429].contains(status)), "{answers:?}");
    for status in [201, 413] {
        assert!(answers.contains(&status), "{status} is not among {answers:?}");
    }
}

/// A large page is resident as a whole as soon as one byte of it is used.
#[test]
fn a_small_budget_is_not_spent_on_large_pages() {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    for number in 0..10 {
        assert_eq!(put_item(&mut client, &format!("large-{number}"), 1_900_000), 201);
    }
    let pages = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", server.pid())).expect("its pages");
    let line = pages.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).expect("a line for them");
    let large: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    // The allocator has one or two before the program begins.
    assert!(large <= 4 * 1024, "{large} KiB");
}

/// A few bytes for each of many large items.
#[test]
fn batches_that_load_large_items_keep_to_the_budget() {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    for number in 0..60 {
        assert_eq!(put_item(&mut client, &format!("large-{number}"), 1_900_000), 201);
    }
    let gauge = Gauge::start(&server);
    let headers = [
        ("x-ms-documentdb-partitionkey", r#"["k"]"#),
        ("x-ms-cosmos-is-batch-request", "true"),
        ("x-ms-cosmos-batch-atomic", "true"),
    ];
    let operations = |count: usize, operation: &str| {
        let one = |number: usize| operation.replace('#', &number.to_string());
        format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","))
    };
    let patch = r##"{"operationType":"Patch","id":"large-#","resourceBody":{"operations":[{"op":"set","path":"/n","value":1}]}}"##;
    let answers = beside_many(&server, 6, |client, number, round| {
        let body = match (number + round) % 3 {
            0 => operations(60, patch),
            1 => operations(60, r##"{"operationType":"Delete","id":"large-#"}"##),
            _ => operations(1, patch),
        };
        let reply = client.send("POST", ITEMS, &headers, body.as_bytes());
        reply.map_or(0, |reply| reply.status)
    });
    println!("{} MiB were used", gauge.highest() / MIB);
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    // The operation at which there was too much has its own status inside.
    assert!(answers.iter().all(|status| [200, 207, 413, 429].contains(status)), "{answers:?}");
    assert!(answers.contains(&200), "one item after the other can be changed: {answers:?}");
}

/// Sends as much of this as each connection takes, and reads nothing.
fn push_frames(connections: &mut [(Connection, usize)], bytes: &[u8]) {
    for (connection, sent) in connections {
        while *sent < bytes.len() {
            let end = bytes.len().min(*sent + 16 * 1024);
            // What is full now may have room later; what is closed stays so.
            let Ok(count) = connection.write(&bytes[*sent..end]) else { break };
            *sent += count;
            if connection.flush().is_err() {
                break;
            }
        }
    }
}

fn check_direct(connections: usize, bytes: impl Fn(&Place) -> Vec<u8>) {
    let server = world(&[]);
    let mut client = Client::new(server.port());
    for number in 0..40 {
        assert_eq!(put_item(&mut client, &format!("part-{number}"), 100_000), 201);
    }
    assert_eq!(put_item(&mut client, "large", 1_900_000), 201);
    let (place, authority) = (Place::of(&server, ITEMS), authority(&server));
    let bytes = bytes(&place);
    let mut holders: Vec<_> = (0..connections)
        .map(|_| {
            let connection = greeted(&server, &authority).expect("a connection");
            connection.sock.set_nonblocking(true).expect("sockets need not block");
            (connection, 0)
        })
        .collect();
    let gauge = Gauge::start(&server);
    thread::scope(|scope| {
        let healthy = scope.spawn(|| live_beside(&server, Duration::from_secs(8)));
        while !healthy.is_finished() {
            push_frames(&mut holders, &bytes);
            thread::sleep(Duration::from_millis(20));
        }
    });
    println!("{} MiB were used", gauge.highest() / MIB);
    assert!(gauge.highest() < BUDGET * 11 / 10, "{} MiB were used", gauge.highest() / MIB);
    drop(holders);
    let key = [("x-ms-documentdb-partitionkey", r#"["k"]"#)];
    eventually("a large item is read again", || {
        let reply = client.send("GET", &format!("{ITEMS}/large"), &key, b"");
        reply.is_ok_and(|reply| reply.status == 200 && reply.body.len() > 1_900_000)
    });
}

/// Far more requests than a connection may have at once, for what is large, and none of the answers is read.
#[test]
fn answers_in_direct_mode_that_nobody_reads_leave_room_for_others() {
    check_direct(40, |place| {
        (0..300)
            .flat_map(|number| match number % 3 {
                0 => place.ask(READ_FEED, "get", None).number(0x04, u32::MAX).numbered(number),
                _ => place.ask(READ, "get", Some("large")).numbered(number),
            })
            .collect()
    });
}

/// The same, asked for with headers that are as long as they may be.
#[test]
fn long_headers_in_direct_mode_leave_room_for_others() {
    const UNHEARD_OF: u16 = 0x7FF0;
    let padding = "x".repeat(60_000);
    check_direct(20, |place| {
        (0..300)
            .flat_map(|number| {
                let feed = place.ask(READ_FEED, "get", None).number(0x04, u32::MAX);
                feed.text(UNHEARD_OF, &padding).numbered(number)
            })
            .collect()
    });
}

/// Payloads that are announced and never end, for several times what the budget has for bodies.
#[test]
fn payloads_in_direct_mode_that_do_not_end_leave_room_for_others() {
    check_direct(60, |place| {
        let body = item("endless", UPLOAD_BYTES);
        let mut frame = place.ask(CREATE, "post", None).body(&body).numbered(1);
        frame.pop();
        frame
    });
}
