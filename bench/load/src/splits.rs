//! A large partition splits under a steady client: how long the client waits, and how many bytes are written for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use orrery_testkit::Client;
use serde_json::json;

use crate::report::{Line, Report, Wanted};
use crate::settings::Settings;
use crate::site::{DATABASE, Ground, Site};
use crate::{item, machine};

const SECTION: &str = "Split of a large partition under a steady client";
const LOADERS: u64 = 8;
const ITEM_BYTES: u64 = 100_000;
/// The longest gap between two acknowledged writes, in milliseconds.
const GAP_MS: f64 = 250.0;
/// What a split may write, as a part of what the partition holds.
const WRITTEN: f64 = 0.001;
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(5);

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let bytes = settings.split_gib * 1024.0 * 1024.0 * 1024.0;
    let ground = Ground::new(&settings.server)?;
    let site = ground.start_relaxed()?;
    site.create_database()?;
    site.create_container("large", 1)?;
    let items = (bytes / ITEM_BYTES as f64) as u64;
    load(site.port(), items)?;
    site.stop();
    let site = ground.start()?;
    site.rest();
    let stop = Arc::new(AtomicBool::new(false));
    let steady = Steady::start(site.port(), stop.clone());
    thread::sleep(BEFORE);
    let written = machine::written_bytes(site.id());
    let began = Instant::now();
    let children = split(&site)?;
    let took = began.elapsed();
    let written = machine::written_bytes(site.id()) - written;
    let during = steady.longest_since(began);
    thread::sleep(AFTER);
    let after = steady.longest_since(began);
    let before = steady.longest_until(began);
    stop.store(true, Ordering::Relaxed);
    let ours = steady.bytes_since(began, began + took);
    report.add(
        Line::new(SECTION, format!("{:.1} GiB in {items} items, into {children}", settings.split_gib))
            .figure("ms for the split", took.as_secs_f64() * 1e3)
            .figure("ms longest gap in it", during)
            .figure("ms longest gap until 5 s later", after)
            .figure("ms longest gap before", before)
            .ratio("the 250 ms that are allowed", after / GAP_MS, Wanted::AtMost(1.0))
            .ratio(
                "what is there, by bytes written besides the client's",
                written as f64 / bytes,
                Wanted::AtMost(WRITTEN),
            )
            .note(format!("{written} bytes written meanwhile, about {ours} of them for the client")),
    );
    steady.join();
    site.stop();
    Ok(())
}

/// Items in many logical partitions.
fn load(port: u16, items: u64) -> Result<()> {
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..LOADERS {
            scope.spawn(|| {
                let mut client = Client::new(port);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= items {
                        return;
                    }
                    let mut text = String::with_capacity(ITEM_BYTES as usize);
                    item::write_text(number + 1, ITEM_BYTES as usize, &mut text);
                    let place = (format!("k{}", number % 10_000), format!("i{number}"));
                    if put(&mut client, &place.0, &place.1, &text) != 201 {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    ensure!(failed.load(Ordering::Relaxed) == 0, "some items could not be written");
    Ok(())
}

fn put(client: &mut Client, pk: &str, id: &str, text: &str) -> u16 {
    let key = format!("[\"{pk}\"]");
    let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    let body = json!({"id": id, "pk": pk, "text": text}).to_string();
    let path = format!("/dbs/{DATABASE}/colls/large/docs");
    client.send("POST", &path, &headers, body.as_bytes()).map_or(0, |reply| reply.status)
}

fn split(site: &Site) -> Result<usize> {
    let range = site.range_ids("large")?.remove(0);
    let path = format!("/_orrery/dbs/{DATABASE}/colls/large/partitions/{range}/split");
    let reply = Client::new(site.port()).send("POST", &path, &[], br#"{"children":2}"#)?;
    ensure!(reply.status == 200, "{}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    Ok(site.range_ids("large")?.len())
}

/// A client that writes one item after the other and remembers when each was acknowledged.
struct Steady {
    acknowledged: Arc<std::sync::Mutex<Vec<Instant>>>,
    thread: thread::JoinHandle<()>,
}

impl Steady {
    fn start(port: u16, stop: Arc<AtomicBool>) -> Steady {
        let acknowledged = Arc::new(std::sync::Mutex::new(Vec::new()));
        let times = acknowledged.clone();
        let thread = thread::spawn(move || {
            let mut client = Client::new(port);
            let mut number = 0u64;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let status = put(&mut client, &format!("k{}", number % 10_000), "steady", "x");
                assert!(status == 200 || status == 201, "a steady client was told {status}");
                times.lock().expect("nobody panics with it").push(Instant::now());
            }
        });
        Steady { acknowledged, thread }
    }

    /// In milliseconds; the gap that is going on counts.
    fn longest_since(&self, moment: Instant) -> f64 {
        let times = self.acknowledged.lock().expect("nobody panics with it");
        let first = times.partition_point(|time| *time < moment).saturating_sub(1);
        longest(&times[first..])
    }

    fn longest_until(&self, moment: Instant) -> f64 {
        let times = self.acknowledged.lock().expect("nobody panics with it");
        longest(&times[..times.partition_point(|time| *time < moment)])
    }

    /// What the client's own writes put on disk, roughly: a page of the journal each.
    fn bytes_since(&self, from: Instant, to: Instant) -> u64 {
        let times = self.acknowledged.lock().expect("nobody panics with it");
        times.iter().filter(|time| (from..to).contains(time)).count() as u64 * 4096
    }

    fn join(self) {
        self.thread.join().expect("the steady client does not panic");
    }
}

fn longest(times: &[Instant]) -> f64 {
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).fold(0.0, f64::max)
}
