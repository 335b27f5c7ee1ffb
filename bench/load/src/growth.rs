//! The same load on ever more items, and how long restarts take with that many.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::load::{self, Plan};
use crate::machine::mib;
use crate::report::{Line, Report, Wanted};
use crate::requests::{Container, Creates, RandomReads};
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::{Ground, Site};

const SECTION: &str = "Growth, 64 clients, durable";
const RESTARTS: &str = "Restart with all items";
const CLIENTS: usize = 64;
const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Reads before those that count: a server that has just started has nothing in its caches, and what
/// this section compares is what it costs to run, not to start.
const WARMING_READS_MAX: u64 = 2_000_000;
/// Limits on restarts, in milliseconds.
const CLEAN_MS: f64 = 300.0;
const KILLED_MS: f64 = 3000.0;
const WARMING_TIME_MAX: Duration = Duration::from_secs(180);
const STORM: Duration = Duration::from_secs(5);

/// What the load costs at the smallest size: requests a second and processor time, reads first.
struct Base {
    items: u64,
    rates: [f64; 2],
    micros: [f64; 2],
}

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let ground = Ground::new(&settings.server)?;
    let site = ground.start()?;
    site.create_database()?;
    site.create_container("growth", 1)?;
    site.stop();
    let (mut items, mut created, mut base) = (0, 0, None);
    for size in SIZES.into_iter().chain([settings.items()]).filter(|size| *size <= settings.items()) {
        if size <= items {
            continue;
        }
        fill(&ground, items, size, report)?;
        items = size;
        let site = ground.start()?;
        let container = site.container("growth");
        measure(settings, report, &site, &container, items, &mut created, &mut base)?;
        site.stop();
    }
    restarts(&ground, items, created, report)
}

fn fill(ground: &Ground, first: u64, end: u64, report: &mut Report) -> Result<()> {
    let site = ground.start_relaxed()?;
    let loaded = site.load(&site.container("growth"), first, end)?;
    let rate = (end - first) as f64 / loaded.seconds;
    let stopped = site.stop().as_secs_f64();
    report.add(
        Line::new(SECTION, format!("loaded {first} to {end}, batches of 100"))
            .figure("/s", rate)
            .figure("s to stop", stopped)
            .figure("MiB on disk", mib(ground.bytes())),
    );
    Ok(())
}

fn measure(
    settings: &Settings,
    report: &mut Report,
    site: &Site,
    container: &Container,
    items: u64,
    created: &mut u64,
    base: &mut Option<Base>,
) -> Result<()> {
    let plan = Plan { address: container.address, connections: CLIENTS, time: settings.round() };
    let (mut reads, mut creates) = (Rounds::default(), Rounds::default());
    // Writes leave work behind that is done in the background; reads are not to pay for it.
    site.rest();
    let warming = Plan { time: WARMING_TIME_MAX, ..plan };
    let mut turn = site
        .measure(warming, RandomReads::new(container, items, 0).at_most(WARMING_READS_MAX.min(2 * items)))?
        .outcome
        .requests;
    for _ in 0..settings.rounds() {
        let measured = site.measure(plan, RandomReads::new(container, items, turn))?;
        turn += measured.outcome.requests;
        reads.add(&measured);
    }
    for _ in 0..settings.rounds() {
        let measured = site.measure(plan, Creates::new(container, *created, u64::MAX))?;
        *created += measured.outcome.requests;
        creates.add(&measured);
    }
    let mut sides = [reads, creates];
    let base = base.get_or_insert(Base {
        items,
        rates: [sides[0].rate(), sides[1].rate()],
        micros: [sides[0].server_micros(), sides[1].server_micros()],
    });
    let allowed = (items as f64).ln() / (base.items as f64).ln();
    for (side, what) in ["reads", "creates"].into_iter().enumerate() {
        let rounds = &mut sides[side];
        // Sizes cannot take turns, so what others do meanwhile shows in the time that passes. The
        // processor time of the server shows less of it; both must stay within the limit.
        let cost = base.rates[side] / rounds.rate();
        let processor = rounds.server_micros() / base.micros[side];
        let line = rounds.line(SECTION, format!("{what} with {items} items"));
        report.add(match items == base.items {
            true => line,
            false => line
                .ratio(
                    format!("what log n allows over {} items", base.items),
                    cost / allowed,
                    Wanted::AtMost(1.0),
                )
                .ratio("the same by processor time", processor / allowed, Wanted::AtMost(1.0)),
        });
    }
    Ok(())
}

fn restarts(ground: &Ground, items: u64, created: u64, report: &mut Report) -> Result<()> {
    let total = items + created;
    let site = ground.start()?;
    restarted(report, &format!("after a clean stop, {total} items"), &site, CLEAN_MS);
    let container = site.container("growth");
    let storm = thread::spawn(move || {
        let plan = Plan { address: container.address, connections: CLIENTS, time: Duration::from_secs(60) };
        // It ends with an error when the server is killed, which is what it waits for.
        load::run(plan, Creates::new(&container, created, u64::MAX)).is_err()
    });
    thread::sleep(STORM);
    site.kill();
    let was_cut_off = storm.join().unwrap_or(false);
    anyhow::ensure!(was_cut_off, "the storm ended before the server was killed");
    let site = ground.start()?;
    restarted(report, "after SIGKILL in a write storm", &site, KILLED_MS);
    site.stop();
    Ok(())
}

fn restarted(report: &mut Report, what: &str, site: &Site, limit: f64) {
    let millis = site.first_answer.as_secs_f64() * 1000.0;
    report.add(Line::new(RESTARTS, what).figure("ms", millis).figure("MiB", mib(site.memory_bytes())).ratio(
        format!("{limit} ms"),
        millis / limit,
        Wanted::AtMost(1.0),
    ));
}
