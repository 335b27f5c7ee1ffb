//! Starting: how long until the first answer, and what an idle server holds.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::latency::median;
use crate::machine::mib;
use crate::report::{Line, Report, Wanted};
use crate::settings::Settings;
use crate::site::Ground;

const SECTION: &str = "Start, from exec to the first answer, and idle memory";
const STARTS: usize = 5;
/// Limits: milliseconds to the first answer, MiB of memory, MiB of the binary.
const FIRST_ANSWER_MS: f64 = 100.0;
const MEMORY_MIB: f64 = 60.0;
const BINARY_MIB: f64 = 60.0;
/// An idle server is one that has had time to finish what its start began.
const IDLE: Duration = Duration::from_secs(2);

pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let binary = mib(fs::metadata(&settings.server)?.len());
    report.add(Line::new(SECTION, "binary").figure("MiB", binary).ratio(
        format!("{BINARY_MIB} MiB"),
        binary / BINARY_MIB,
        Wanted::AtMost(1.0),
    ));
    let ground = Ground::new(&settings.server)?;
    let site = ground.start()?;
    let first = site.first_answer.as_secs_f64() * 1000.0;
    report.add(Line::new(SECTION, "first start, in an empty folder").figure("ms", first).ratio(
        format!("{FIRST_ANSWER_MS} ms"),
        first / FIRST_ANSWER_MS,
        Wanted::AtMost(1.0),
    ));
    site.create_database()?;
    site.create_container("c0", 1)?;
    site.stop();
    starts(&ground, "1 container", report)?;
    let site = ground.start()?;
    for number in 1..settings.containers {
        site.create_container(&format!("c{number}"), 1)?;
    }
    site.stop();
    starts(&ground, &format!("{} containers", settings.containers), report)
}

fn starts(ground: &Ground, what: &str, report: &mut Report) -> Result<()> {
    let (mut answers, mut memories) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let site = ground.start()?;
        answers.push(site.first_answer.as_secs_f64() * 1000.0);
        thread::sleep(IDLE);
        memories.push(mib(site.memory_bytes()));
        site.stop();
    }
    let (answer, memory) = (median(&answers), median(&memories));
    report.add(
        Line::new(SECTION, format!("{what}, median of {STARTS} starts"))
            .figure("ms", answer)
            .figure("MiB", memory)
            .ratio(format!("{FIRST_ANSWER_MS} ms"), answer / FIRST_ANSWER_MS, Wanted::AtMost(1.0))
            .ratio(format!("{MEMORY_MIB} MiB"), memory / MEMORY_MIB, Wanted::AtMost(1.0)),
    );
    Ok(())
}
