//! Bad input, in bulk: whatever a client sends, the server answers with a refusal or an honest result.
//!
//! A real server gets thousands of broken, absurd and half-right requests. It may never answer 5xx, never panic
//! (its log is read for that), never fall silent, and its memory may not grow with what it was sent. Half-right
//! requests matter most: they are signed, and begin as requests that work, so that they reach the code behind the
//! first check. The seed is printed; `ORRERY_TEST_SEED` repeats a run and `ORRERY_HOSTILE_REQUESTS` makes it longer,
//! and `ORRERY_HOSTILE_GROUP` keeps to one group.

mod json;
mod junk;
mod queries;
mod request;
mod samples;
mod tables;
mod target;
mod wire;

use std::time::{Duration, Instant};

use orrery_testkit::Random;
use request::Request;
use samples::Samples;
use target::Target;

/// Requests per group and round, unless the environment asks for more.
const REQUESTS: usize = 1_200;
/// What a round may add to memory that counts as settled.
const SETTLED_BYTES: u64 = 8 * 1024 * 1024;
/// Caches, write buffers and the allocator fill up in steps, so memory has this many rounds to settle.
const ROUNDS_MAX: usize = 8;
/// What no run may need in all, however it settles.
const MEMORY_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A request that takes longer, without any optimization, deserves a look.
const SLOW: Duration = Duration::from_secs(1);

const VERBS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"];

type Group<S> = (&'static str, fn(&mut Random, &S) -> Request);

const GROUPS: [Group<Samples>; 9] = [
    ("authorization", authorization),
    ("paths", path),
    ("resource ids", resource_id),
    ("headers", header),
    ("bodies of bytes", bytes),
    ("bodies of JSON", structure),
    ("queries", query),
    ("changed at random", changed),
    ("changed on the wire", on_the_wire),
];

#[test]
fn bad_requests_are_refused_and_leave_no_trace() {
    let mut random = Random::from_environment();
    let mut target = Target::start(&random);
    let samples = Samples::collect(&mut target);
    memory_settles(&mut target, |target| {
        for group in &GROUPS {
            run(group, requests(), target, &mut random, &samples);
        }
    });
}

#[test]
fn bad_requests_about_tables_are_refused_and_leave_no_trace() {
    let mut random = Random::from_environment();
    let mut target = Target::start_with_tables(&random);
    let samples = tables::Samples::collect(&mut target);
    memory_settles(&mut target, |target| {
        for group in &tables::GROUPS {
            run(group, requests() / 2, target, &mut random, &samples);
        }
    });
}

#[test]
fn connections_that_break_the_protocol_harm_nobody_else() {
    let random = Random::from_environment();
    for start in [Target::start, Target::start_with_tables] {
        let mut target = start(&random);
        let samples = Samples::collect(&mut target);
        memory_settles(&mut target, |target| wire::break_the_protocol(target, &samples, 3));
    }
}

fn requests() -> usize {
    let asked = std::env::var("ORRERY_HOSTILE_REQUESTS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(REQUESTS)
}

/// Repeats a round until one adds next to nothing. What leaks adds its share to every round, and is found
/// by that, however much a server takes before it has seen everything once.
fn memory_settles(target: &mut Target, mut round: impl FnMut(&mut Target)) {
    round(target);
    let mut seen = vec![target.memory_bytes()];
    for _ in 1..ROUNDS_MAX {
        round(target);
        let (before, after) = (seen[seen.len() - 1], target.memory_bytes());
        seen.push(after);
        println!("memory: {} KiB, {} KiB after one more round", before / 1024, after / 1024);
        assert!(after < MEMORY_BYTES_MAX, "memory of {after} bytes");
        if after < before + SETTLED_BYTES {
            return;
        }
    }
    panic!("memory grows with every round: {seen:?}");
}

fn run<S>(group: &Group<S>, requests: usize, target: &mut Target, random: &mut Random, samples: &S) {
    let (name, make) = group;
    if std::env::var("ORRERY_HOSTILE_GROUP").is_ok_and(|only| only != *name) {
        return;
    }
    let begin = Instant::now();
    let mut slowest = (Duration::ZERO, None);
    for _ in 0..requests {
        let request = make(random, samples);
        let sent = Instant::now();
        target.send(name, &request);
        if sent.elapsed() > slowest.0 {
            slowest = (sent.elapsed(), Some(request));
        }
    }
    target.check(name);
    let (time, statuses) = (begin.elapsed(), target.take_statuses());
    println!("{name}: {requests} requests in {time:?}, {} KiB; {statuses}", target.memory_bytes() / 1024);
    if let (time, Some(request)) = slowest
        && time > SLOW
    {
        println!("  slowest, {time:?}: {}", request.describe());
    }
}

/// A request that works, but for who sent it and when.
fn authorization(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.requests).clone();
    request.sign(&samples.signer);
    let name = *random.pick(&["authorization", "authorization", "x-ms-date", "date", "x-ms-version"]);
    let value = request.header(name).unwrap_or_default().to_vec();
    let value = match random.below(7) {
        0 => junk::text(random),
        1 => junk::percent_decode(&value),
        2 => value[..random.below(value.len())].to_vec(),
        3 => [b"type%3dresource%26ver%3d1%26sig%3d".to_vec(), junk::text(random)].concat(),
        4 => junk::repeated(random, 60_000),
        5 => [b"type%3daad%26ver%3d1.0%26sig%3d".to_vec(), junk::text(random)].concat(),
        _ => junk::mutate(random, &value),
    };
    request.set_header(name, value);
    request
}

fn path(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.requests).clone();
    request.path = match random.below(6) {
        0 => [b"/".to_vec(), junk::path_text(random)].concat(),
        1 => junk::repeated(random, 30_000),
        2 => b"/dbs/x/colls".repeat(random.below(200)),
        3 => {
            let escapes =
                ["%", "%2", "%00", "%2f", "%c3%28", "%ff%fe", "%25%32%66", "..%2f", "%u0041", "/./", "//"];
            let escape = random.pick(&escapes).as_bytes().to_vec();
            junk::insert(random, &request.path, &escape)
        }
        4 => {
            let mut segments: Vec<Vec<u8>> =
                request.path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
            let place = random.below(segments.len());
            segments[place] = junk::path_text(random);
            segments.join(&b'/')
        }
        _ => junk::mutate(random, &request.path),
    };
    request.spare_resources();
    request.sign(&samples.signer);
    request
}

/// Paths by RID, most of them of nothing.
fn resource_id(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.requests).clone();
    let kinds = ["dbs", "colls", "docs"];
    let depth = 1 + random.below(kinds.len());
    let mut path = Vec::new();
    for kind in &kinds[..depth] {
        let rid = random.pick(&samples.rids).clone().into_bytes();
        let rid = match random.below(4) {
            0 => junk::rid(random),
            1 => junk::mutate(random, &rid),
            _ => rid,
        };
        path.extend_from_slice(format!("/{kind}/").as_bytes());
        path.extend_from_slice(&rid);
    }
    if random.one_in(3) {
        path.extend_from_slice(random.pick(&["/docs", "/colls", "/pkranges", "/conflicts"]).as_bytes());
    }
    request.path = path;
    request.spare_resources();
    request.sign(&samples.signer);
    request
}

/// A request that works, with one or two headers that do not.
fn header(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.requests).clone();
    for _ in 0..1 + random.below(2) {
        let (name, values) = random.pick(&samples.headers);
        let value = random.pick(values).as_bytes().to_vec();
        let value = match random.below(5) {
            0 => junk::text(random),
            1 => json::nasty(random, 3).to_string().into_bytes(),
            2 => value,
            _ => junk::mutate(random, &value),
        };
        request.set_header(name, value);
    }
    request.sign(&samples.signer);
    request
}

fn bytes(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.with_body).clone();
    request.body = json::broken(random, &request.body);
    request.sign(&samples.signer);
    request
}

/// JSON that can be read, with surprises in it.
fn structure(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.with_body).clone();
    request.body = json::surprise(random, &request.body);
    request.sign(&samples.signer);
    request
}

fn query(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.queries).clone();
    request.body = queries::body(random);
    request.sign(&samples.signer);
    request
}

/// A request that works, changed in several places, then signed.
fn changed(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.requests).clone();
    for _ in 0..1 + random.below(3) {
        match random.below(5) {
            0 => request.path = junk::mutate(random, &request.path),
            1 => request.body = json::surprise(random, &request.body),
            2 => request.verb = *random.pick(&VERBS),
            3 => {
                let (name, values) = random.pick(&samples.headers);
                request.set_header(name, random.pick(values).as_bytes().to_vec());
            }
            _ => request.body = json::broken(random, &request.body),
        }
    }
    request.spare_resources();
    request.sign(&samples.signer);
    request
}

/// A signed request whose bytes change on their way.
fn on_the_wire(random: &mut Random, samples: &Samples) -> Request {
    let mut request = random.pick(&samples.requests).clone();
    request.sign(&samples.signer);
    request.change_on_the_wire(random);
    request
}
