//! `make bench`: one run on one machine, every figure as a ratio to a peer or a ceiling of the same run.
//!
//! Absolute figures say more about the machine and its other users than about a program. So each
//! load runs in turns with what it is compared with, under the same client, and the ratios are what
//! to read. Everything runs on loopback, in processes and folders that the run itself makes and ends.

mod bare;
mod before;
mod copy;
mod creates;
mod direct;
mod engine;
mod fairness;
mod growth;
mod insight;
mod item;
mod latency;
mod load;
mod machine;
mod partitions;
mod postgres;
mod queries;
mod reads;
mod report;
mod requests;
mod rntbd;
mod rounds;
mod scripts;
mod settings;
mod site;
mod splits;
mod start;
mod tables;
mod tls;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;

use crate::machine::Busy;
use crate::report::Report;
use crate::settings::{Role, Section, Settings};

fn main() -> Result<ExitCode> {
    let settings = Settings::parse();
    if let Some(Role::Bare) = settings.role {
        return bare::serve().map(|()| ExitCode::SUCCESS);
    }
    ensure!(settings.server.exists(), "{} is not there; run `make build`", settings.server.display());
    println!("{} processors; the load runs on them too", machine::cores());
    let mut report = Report::default();
    let (began, busy) = (Instant::now(), Busy::now());
    let name = match &settings.before {
        Some(older) => {
            before::run(&settings, older, &mut report)?;
            "before.json"
        }
        None => {
            for (section, run) in SECTIONS {
                if settings.wants(section) {
                    run(&settings, &mut report)?;
                }
            }
            "bench.json"
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let others = Busy::now().others_since(&busy) / (seconds * machine::cores() as f64);
    println!("\nthe run took {:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0);
    let has_held = report.finish(&settings.out.join(name), others)?;
    // Limits against peers are for people to weigh; a build that falls behind the one before it is a failure.
    let is_failure = settings.before.is_some() && !has_held;
    Ok(if is_failure { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

type Run = fn(&Settings, &mut Report) -> Result<()>;

const SECTIONS: [(Section, Run); 13] = [
    (Section::Start, start::run),
    (Section::Reads, reads::run),
    (Section::Creates, creates::run),
    (Section::Direct, direct::run),
    (Section::Partitions, partitions::run),
    (Section::Growth, growth::run),
    (Section::Queries, queries::run),
    (Section::Scripts, scripts::run),
    (Section::Insight, insight::run),
    (Section::Copy, copy::run),
    (Section::Splits, splits::run),
    (Section::Fairness, fairness::run),
    (Section::Tables, tables::run),
];
