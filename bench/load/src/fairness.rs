//! Heavy queries beside light ones: the server on one processor, the load on another, and 150 clients that group.
//!
//! The light ones are point reads and queries for one item, of another container. Heavy queries may slow them down, but not
//! by more than ten times, or to more than 25 ms, whichever is more.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use orrery_testkit::{EMULATOR_KEY, Signer};
use serde_json::json;

use crate::item::{self, Address};
use crate::load::{self, Plan, Source};
use crate::report::{Line, Report, Wanted};
use crate::requests::{Container, Reads};
use crate::settings::Settings;
use crate::site::Ground;

const SECTION: &str = "Fairness: server on one processor, load on the other";
const HEAVY: &str = "heavy";
const LIGHT: &str = "light";
const HEAVY_ITEMS: u64 = 5_000;
const LIGHT_ITEMS: u64 = 1_000;
const ATTACKERS: usize = 150;
const READERS: usize = 2;
/// Seconds that the attack has to get going.
const BEFORE: Duration = Duration::from_secs(3);
/// How much slower the light ones may be, and what is fast enough in any case.
const TIMES_SLOWER: f64 = 10.0;
const FAST_ENOUGH_MS: f64 = 25.0;

const GROUP_BY: &str = "SELECT c.city, c.age, COUNT(1) AS n, MAX(c.score) AS m FROM c GROUP BY c.city, c.age";
const EVERYWHERE: &str = "x-ms-documentdb-partitionkeyrangeid: 0\r\n\
     x-ms-documentdb-query-enablecrosspartition: True\r\n";

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    // Asked before this process is kept to one of them.
    let cores = crate::machine::cores();
    if cores < 2 {
        report.add(Line::new(SECTION, "left out").note("it needs two processors"));
        return Ok(());
    }
    let ground = Ground::new(&settings.server)?;
    let site = ground.start_relaxed()?;
    site.create_database()?;
    site.load(&site.create_container(HEAVY, 1)?, 0, HEAVY_ITEMS)?;
    site.load(&site.create_container(LIGHT, 1)?, 0, LIGHT_ITEMS)?;
    site.rest();
    site.stop();
    // The server counts its processors when it starts, so it must start where it is to stay.
    pin(std::process::id(), 0)?;
    let site = ground.start();
    pin(std::process::id(), 1)?;
    let site = site?;
    let (heavy, light) = (site.container(HEAVY), site.container(LIGHT));
    let alone = Light::measure(settings, &light)?;
    let stop = Arc::new(AtomicBool::new(false));
    let attack = {
        let (stop, heavy) = (stop.clone(), heavy.clone());
        thread::spawn(move || {
            // Longer than anybody waits; the source ends it.
            let plan =
                Plan { address: heavy.address, connections: ATTACKERS, time: Duration::from_secs(3600) };
            load::run(plan, Queries::new(&heavy, EVERYWHERE, GROUP_BY, Some(stop)))
        })
    };
    thread::sleep(BEFORE);
    let beside = Light::measure(settings, &light);
    stop.store(true, Ordering::Relaxed);
    let attacked = attack.join().expect("the attack does not panic")?;
    let beside = beside?;
    pin_to(std::process::id(), &format!("0-{}", cores - 1))?;
    report.add(
        Line::new(SECTION, format!("GROUP BY over {HEAVY_ITEMS} items, {ATTACKERS} clients"))
            .figure("a second", attacked.rate()),
    );
    for (what, alone, beside) in
        [("point reads", alone.reads, beside.reads), ("one-item queries", alone.queries, beside.queries)]
    {
        let limit = (alone * TIMES_SLOWER).max(FAST_ENOUGH_MS);
        report.add(
            Line::new(SECTION, format!("{what} of another container"))
                .figure("ms p99 alone", alone)
                .figure("ms p99 beside", beside)
                .figure("ms limit", limit)
                .ratio("the limit", beside / limit, Wanted::AtMost(1.0)),
        );
    }
    site.stop();
    Ok(())
}

/// The p99 of light requests, in milliseconds.
struct Light {
    reads: f64,
    queries: f64,
}

impl Light {
    fn measure(settings: &Settings, container: &Container) -> Result<Light> {
        let plan = Plan { address: container.address, connections: READERS, time: settings.round() };
        let mut reads = load::run(plan, Reads::of_loaded(container, LIGHT_ITEMS, LIGHT_ITEMS))?;
        let Address { key, id } = item::loaded(LIGHT_ITEMS / 2);
        let place = format!("x-ms-documentdb-partitionkey: [\"{key}\"]\r\n");
        let one = format!("SELECT * FROM c WHERE c.id = '{id}'");
        let mut queries = load::run(plan, Queries::new(container, &place, &one, None))?;
        Ok(Light { reads: reads.latency.quantile_ms(0.99), queries: queries.latency.quantile_ms(0.99) })
    }
}

/// One query, again and again.
struct Queries {
    request: Vec<u8>,
    stop: Option<Arc<AtomicBool>>,
}

impl Queries {
    fn new(container: &Container, place: &str, text: &str, stop: Option<Arc<AtomicBool>>) -> Queries {
        let body = json!({"query": text}).to_string();
        Queries { request: container.query(&Signer::new(EMULATOR_KEY), place, &body), stop }
    }
}

impl Source for Queries {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        request.extend_from_slice(&self.request);
        !self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn status(&self) -> u16 {
        200
    }

    /// Those who attack may be told to come again.
    fn accepts(&self, status: u16) -> bool {
        status == 200 || (self.stop.is_some() && status == 429)
    }
}

/// Keeps a process with all of its threads, and what it starts, on one processor.
fn pin(process: u32, processor: usize) -> Result<()> {
    pin_to(process, &processor.to_string())
}

fn pin_to(process: u32, processors: &str) -> Result<()> {
    let pinned = Command::new("taskset").args(["-acp", processors, &process.to_string()]).output()?;
    ensure!(pinned.status.success(), "taskset: {}", String::from_utf8_lossy(&pinned.stderr));
    Ok(())
}
