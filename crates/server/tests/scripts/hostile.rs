//! Scripts that mean harm. They are stopped in time, leave nothing behind, and nobody else notices.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use orrery_testkit::{Client, wait_for};
use serde_json::json;

use crate::world::{World, execute, read, text};

/// When a client is answered at the latest, and what a busy machine without optimization may add.
const ANSWERED: Duration = Duration::from_millis(5_500);
const BUSY: Duration = Duration::from_secs(20);
/// What a point read may take while all of them run at once; a noisy machine may hold up a few.
const READ: Duration = Duration::from_secs(2);
const READS_IN_TIME_PERCENT: usize = 95;
const READS_MIN: usize = 10;
/// What the server may hold when they are gone.
const MEMORY_BYTES_MAX: u64 = 400 << 20;

/// Tests that measure time and use all of the machine come one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed has nothing that the next one needs.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each begins with a write, which must not be there at the end.
const HOSTILE: [(&str, &str, &[u16]); 10] = [
    ("endless loop", "for (;;) { }", &[408]),
    ("huge allocation", "var all = []; for (;;) { all.push(new Array(100000).fill(1)) }", &[400, 408]),
    ("long text", "var t = 'x'; for (;;) { t += t }", &[400]),
    ("deep recursion", "(function down(n) { return down(n + 1) + 1 })(0)", &[400]),
    ("regular expression", "/^(a+)+$/.test('a'.repeat(60) + 'b')", &[408]),
    (
        "million promises",
        "(function more() { for (var i = 0; i < 10; i++) Promise.resolve().then(more) })()",
        &[400, 408],
    ),
    (
        "endless callbacks",
        "(function again() { __.readDocument(__.getAltLink() + '/docs/none', again) })()",
        &[400, 408, 200],
    ),
    ("caught and caught again", "for (;;) { try { for (;;) { } } catch (e) { } }", &[408]),
    (
        "long comparisons",
        "var a = 'x'.repeat(10000000), b = 'x'.repeat(9999999) + 'y'; for (;;) { a < b }",
        &[400, 408],
    ),
    ("no way out", "this.constructor.constructor('return process')().exit()", &[400]),
];

#[test]
fn hostile_scripts_end_in_time_and_harm_nobody() {
    let _alone = alone();
    let mut world = World::start();
    world.create(&json!({"id": "good", "pk": "victim", "n": 1}), &[]);
    for (number, (_, body, _)) in HOSTILE.iter().enumerate() {
        let source =
            format!("function (pk) {{ __.createDocument(__.getSelfLink(), {{id: 'bad', pk: pk}}); {body} }}");
        world.script("sprocs", &format!("h{number}"), &source);
    }
    let port = world.server.port();
    let done = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let done = done.clone();
        move || read_on(port, &done)
    });
    // All at once, in several logical partitions of one physical partition, so that none waits for another.
    let callers: Vec<_> = (0..HOSTILE.len())
        .map(|number| {
            std::thread::spawn(move || {
                let (mut client, began) = (Client::new(port), Instant::now());
                let reply = execute(&mut client, &format!("h{number}"), &key(number), &json!([key(number)]));
                (reply, began.elapsed())
            })
        })
        .collect();
    let mut stopped = Vec::new();
    for (number, (caller, (name, _, statuses))) in callers.into_iter().zip(HOSTILE).enumerate() {
        let (reply, time) = caller.join().expect("no client fails");
        println!("{name}: {} after {} ms", reply.status, time.as_millis());
        assert!(statuses.contains(&reply.status), "{name}: {} {}", reply.status, text(&reply));
        assert!(time < ANSWERED + BUSY, "{name} was answered after {time:?}");
        stopped.extend((reply.status != 200).then_some(number));
    }
    done.store(true, Ordering::Relaxed);
    check_reads(reader.join().expect("reads go on"));
    for number in stopped {
        assert_eq!(world.read(&key(number), "bad").status, 404, "what a stopped script wrote is not there");
    }
    world.script("sprocs", "fine", "() => __.response.setBody('fine')");
    assert_eq!(world.execute("fine", "victim", json!([])).json(), json!("fine"));
    wait_for(|| match world.server.memory_bytes() {
        ..MEMORY_BYTES_MAX => Ok(()),
        bytes => Err(format!("the server holds {} MiB", bytes >> 20)),
    });
    assert!(world.server.is_alive());
}

#[test]
fn hostile_functions_end_their_query_and_nothing_else() {
    let _alone = alone();
    let mut world = World::start();
    for n in 0..20 {
        world.create(&json!({"id": n.to_string(), "pk": "a", "n": n}), &[]);
    }
    for (name, status, body) in [
        ("memory", 400, "var all = []; for (;;) { all.push(new Array(100000).fill(1)) }"),
        ("stack", 400, "return (function down(n) { return down(n + 1) + 1 })(0)"),
        ("time", 408, "for (;;) { }"),
    ] {
        world.script("udfs", name, &format!("function () {{ {body} }}"));
        let began = Instant::now();
        let reply = world.query("a", &format!("SELECT VALUE udf.{name}() FROM c"));
        assert_eq!(reply.status, status, "{name}: {}", text(&reply));
        assert!(began.elapsed() < ANSWERED + BUSY, "{name} was answered after {:?}", began.elapsed());
        assert_eq!(world.query("a", "SELECT VALUE COUNT(1) FROM c").json()["Documents"], json!([20]));
    }
}

/// The first one works where others read.
fn key(number: usize) -> String {
    if number == 0 { "victim".to_owned() } else { format!("k{number}") }
}

/// Reads one item until it is told to stop; how long each read took.
fn read_on(port: u16, done: &AtomicBool) -> Vec<Duration> {
    let (mut client, mut times) = (Client::new(port), Vec::new());
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        assert_eq!(read(&mut client, "victim", "good").json()["n"], 1);
        times.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    times
}

/// Nearly all reads took little time, and there were some.
fn check_reads(mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{} reads meanwhile, the slowest took {:?}", times.len(), times.last());
    assert!(times.len() >= READS_MIN, "only {} reads", times.len());
    let most = times[(times.len() - 1) * READS_IN_TIME_PERCENT / 100];
    assert!(most < READ, "one of twenty reads took {most:?}");
}
