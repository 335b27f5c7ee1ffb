//! `--before BINARY`: two builds of the server in turns, so that a change is judged by what it costs.
//!
//! The machine is shared and has few processors, so no figure of a run is worth anything beside one of another run, or
//! even of another minute. Three servers are therefore up at once, each on a folder that it filled itself: the build
//! before, the build under test, and the build before once more. One round measures each of them for a fifth of a second,
//! and the order changes from round to round, so that every side goes first, second and last equally often, after each
//! of the others. What disturbs a round disturbs its neighbours alike: each round gives a ratio of the new build to the
//! older one and one of the older one to itself, and a line shows the medians of both. The second is what the noise of
//! this run makes of two equal programs. A line falls short when the new build is below 0.97 of the older one and also
//! below what the older one is of itself.
//!
//! All ratios are turned so that more is better for the new build: requests a second as they are, times, processor
//! time and memory upside down.

mod contest;
mod creates;
mod growth;
mod partitions;
mod queries;
mod reads;
mod scripts;
mod start;
mod turns;

use std::path::Path;

use anyhow::{Result, ensure};

use crate::report::Report;
use crate::settings::{Section, Settings};
use contest::Contest;

/// With fewer, a median says little.
const ROUNDS_MIN: usize = 9;

type Run = fn(&mut Contest<'_>) -> Result<()>;

/// The sections that compare builds; the others compare options, or measure one long event.
const SECTIONS: [(Section, Run); 7] = [
    (Section::Start, start::run),
    (Section::Reads, reads::run),
    (Section::Creates, creates::run),
    (Section::Partitions, partitions::run),
    (Section::Growth, growth::run),
    (Section::Queries, queries::run),
    (Section::Scripts, scripts::run),
];

pub fn run(settings: &Settings, older: &Path, report: &mut Report) -> Result<()> {
    ensure!(older.exists(), "{} is not there", older.display());
    ensure!(settings.rounds() >= ROUNDS_MIN, "--before wants at least {ROUNDS_MIN} rounds");
    for section in &settings.only {
        let is_known = SECTIONS.iter().any(|(known, _)| known == section);
        ensure!(is_known, "{section:?} cannot be compared with another build; run it without --before");
    }
    println!("{} in turns with {} and that with itself", settings.server.display(), older.display());
    let mut contest = Contest::new(settings, older, report);
    for (section, run) in SECTIONS {
        if settings.wants(section) {
            run(&mut contest)?;
        }
    }
    Ok(())
}
