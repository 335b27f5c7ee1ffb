//! What the port of the Table API costs while nobody uses it, against a server without it.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::latency::median;
use crate::load::Plan;
use crate::machine::mib;
use crate::report::{Line, Report, Wanted};
use crate::requests::Reads;
use crate::rounds::Rounds;
use crate::settings::Settings;
use crate::site::Ground;

const SECTION: &str = "All ports on, nobody there, against NoSQL alone";
const STARTS: usize = 11;
/// Limits: milliseconds more to the first answer, MiB more of memory.
const MORE_MS: f64 = 5.0;
const MORE_MIB: f64 = 1.0;
/// The share of the reads of a server without other ports that have to be left.
const READS: f64 = 0.97;
/// An idle server is one that has had time to finish what its start began.
const IDLE: Duration = Duration::from_secs(1);
const ITEMS: u64 = 10_000;
const CLIENTS: usize = 64;

const WITH: [&str; 2] = ["--table-port", "0"];
const WITHOUT: [&str; 2] = ["--table-port", "none"];

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let grounds = [Ground::new(&settings.server)?, Ground::new(&settings.server)?];
    starts(&grounds, report)?;
    reads(settings, &grounds, report)
}

fn starts(grounds: &[Ground; 2], report: &mut Report) -> Result<()> {
    let (mut times, mut memories) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..STARTS {
        for (place, (ground, ports)) in grounds.iter().zip([WITH, WITHOUT]).enumerate() {
            let site = ground.start_with(&ports)?;
            times[place].push(site.first_answer.as_secs_f64() * 1000.0);
            thread::sleep(IDLE);
            memories[place].push(mib(site.memory_bytes()));
            site.stop();
        }
    }
    let more_ms = median(&differences(&times));
    let more_mib = median(&differences(&memories));
    let line = Line::new(SECTION, format!("start and idle memory, median of {STARTS} pairs"))
        .figure("ms more", more_ms)
        .figure("ms without", median(&times[1]))
        .figure("MiB more", more_mib)
        .figure("MiB without", median(&memories[1]))
        .ratio(format!("{MORE_MS} ms"), more_ms / MORE_MS, Wanted::AtMost(1.0))
        .ratio(format!("{MORE_MIB} MiB"), more_mib / MORE_MIB, Wanted::AtMost(1.0));
    report.add(line);
    Ok(())
}

/// Pair by pair: what disturbs one disturbs its neighbour alike.
fn differences(sides: &[Vec<f64>; 2]) -> Vec<f64> {
    sides[0].iter().zip(&sides[1]).map(|(with, without)| with - without).collect()
}

fn reads(settings: &Settings, grounds: &[Ground; 2], report: &mut Report) -> Result<()> {
    let sites = [grounds[0].start_with(&WITH)?, grounds[1].start_with(&WITHOUT)?];
    let mut sources = Vec::new();
    for site in &sites {
        site.create_database()?;
        let container = site.create_container("reads", 1)?;
        site.load(&container, 0, ITEMS)?;
        site.rest();
        sources.push((container.address, Reads::of_loaded(&container, ITEMS, ITEMS)));
    }
    let mut rounds = [Rounds::default(), Rounds::default()];
    // Many short turns, in an order that changes: the difference is small.
    let turns = 8 * settings.rounds();
    for turn in 0..turns {
        for place in [turn % 2, 1 - turn % 2] {
            let (address, source) = &sources[place];
            let plan = Plan { address: *address, connections: CLIENTS, time: settings.round() / 8 };
            rounds[place].add(&sites[place].measure(plan, source.clone())?);
        }
    }
    let [mut with, without] = rounds;
    report.add(
        with.line(SECTION, "point reads of items by NoSQL")
            .ratio("a server without other ports", with.ratio_to(&without), Wanted::AtLeast(READS))
            .ratio(
                "a server without other ports, by processor",
                with.processor_ratio_to(&without),
                Wanted::AtLeast(READS),
            ),
    );
    for site in sites {
        site.stop();
    }
    Ok(())
}
