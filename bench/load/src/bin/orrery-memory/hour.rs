//! Updates and reads over live data that stays the same.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use orrery_testkit::{Client, Random, Server};
use serde_json::{Value, json};

use crate::Hour;
use crate::gauge::{Figures, MIB, Used, used};
use crate::site;

const ITEM_BYTES: u64 = 1024;
/// The time after which memory must not grow any more.
const SETTLED_MINUTES: usize = 5;
/// Memory is flat when the highest of its second half is at most so many percent of that of the first.
const FLAT_PERCENT: u64 = 110;

#[derive(Default)]
struct Counts {
    operations: AtomicU64,
    failures: AtomicU64,
    stop: AtomicBool,
}

pub fn run(hour: &Hour) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let options: Vec<&str> = hour.options.iter().map(String::as_str).collect();
    let server =
        Server::start_on(&hour.server, folder.path(), &[&["--no-throttle"], options.as_slice()].concat());
    let mut client = Client::new(server.port());
    site::create(&mut client, "/dbs", &[], &json!({"id": "db"}))?;
    site::container(&mut client, "items", 10_000)?;
    let items = hour.live_mib * MIB / ITEM_BYTES;
    fill(server.port(), items, hour.clients)?;
    println!("{items} items, {} clients, {} operations a second; all in MiB", hour.clients, hour.rate);
    println!("minute  operations  failures  resident  anonymous  cache  buffers  pinned  tables");
    let counts = Counts::default();
    let seen = thread::scope(|scope| {
        for number in 0..hour.clients {
            let (counts, port) = (&counts, server.port());
            scope.spawn(move || work(port, items, hour, number, counts));
        }
        let seen = watch(hour.minutes, &server, &counts);
        counts.stop.store(true, Ordering::Relaxed);
        seen
    });
    let failures = counts.failures.load(Ordering::Relaxed);
    ensure!(!seen.is_empty(), "there was no minute to look at");
    Ok(judge(&seen, hour.most_mib, failures))
}

fn item(number: u64, random: &mut Random) -> Value {
    // Half of it can be compressed, as data is.
    let noise: String = random.bytes(256).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"id": number.to_string(), "key": number.to_string(), "noise": noise, "text": "some words ".repeat(30),
        "number": random.below(1_000_000), "kind": random.below(100)})
}

fn fill(port: u16, items: u64, clients: u64) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let part = |client: u64| {
            let mut random = Random::new(client);
            let mut connection = Client::new(port);
            (client..items).step_by(clients as usize).try_for_each(|number| {
                site::load(&mut connection, "items", &number.to_string(), &item(number, &mut random))
            })
        };
        let threads: Vec<_> = (0..clients).map(|client| scope.spawn(move || part(client))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })
}

fn work(port: u16, items: u64, hour: &Hour, number: u64, counts: &Counts) {
    let (mut client, mut random) = (Client::new(port), Random::new(1_000 + number));
    let pause = Duration::from_secs_f64(hour.clients as f64 / hour.rate.max(1) as f64);
    let mut due = Instant::now();
    while !counts.stop.load(Ordering::Relaxed) {
        let chosen = random.below(items as usize) as u64;
        let id = chosen.to_string();
        let status = match random.one_in(2) {
            true => site::upsert(&mut client, "items", &id, &item(chosen, &mut random)),
            false => {
                let key = json!([id]).to_string();
                let path = format!("{}/{id}", site::docs("items"));
                client.send("GET", &path, &[(site::KEY, &key)], b"").map_or(0, |reply| reply.status)
            }
        };
        counts.operations.fetch_add(1, Ordering::Relaxed);
        counts.failures.fetch_add(u64::from(status != 200), Ordering::Relaxed);
        due += pause;
        // A client that is behind does not hurry: the load is meant to be light.
        match due.checked_duration_since(Instant::now()) {
            Some(rest) => thread::sleep(rest),
            None => due = Instant::now(),
        }
    }
}

fn watch(minutes: u64, server: &Server, counts: &Counts) -> Vec<Used> {
    let began = Instant::now();
    let look = |minute: u64| {
        thread::sleep(Duration::from_secs(60 * minute).saturating_sub(began.elapsed()));
        let (used, figures) = (used(server.id()), Figures::of(server.port()));
        println!(
            "{minute:>6}  {:>10}  {:>8}  {:>8}  {:>9}  {:>5}  {:>7}  {:>6}  {:>6}",
            counts.operations.load(Ordering::Relaxed),
            counts.failures.load(Ordering::Relaxed),
            used.resident / MIB,
            used.anonymous / MIB,
            figures.mib("orrery_engine_cache_bytes"),
            figures.mib("orrery_engine_memtable_bytes"),
            figures.mib("orrery_engine_pinned_bytes"),
            figures.mib("orrery_engine_table_bytes"),
        );
        used
    };
    (1..=minutes).map(look).collect()
}

/// Says whether memory became flat below the bound, and nothing failed.
fn judge(seen: &[Used], most_mib: u64, failures: u64) -> bool {
    let settled = &seen[SETTLED_MINUTES.min(seen.len() - 1)..];
    let highest = |part: &[Used]| part.iter().map(|used| used.resident).max().unwrap_or(0) / MIB;
    let (first, second) = settled.split_at(settled.len() / 2);
    let is_flat = first.is_empty() || highest(second) * 100 <= highest(first) * FLAT_PERCENT;
    println!(
        "after {SETTLED_MINUTES} minutes: at most {} MiB, flat: {is_flat}, failures: {failures}",
        highest(settled)
    );
    highest(settled) < most_mib && is_flat && failures == 0
}
