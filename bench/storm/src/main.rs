//! A write storm against the storage engine.
//!
//! Sixty-four clients write, one committer merges what has queued up and commits it with one sync,
//! as the node does. Then the same items are updated; then the engine settles, stops and starts
//! again, after a clean stop and after a kill. The figures go to standard output; the targets they
//! are held against are in `docs/decisions/0002-storage-engine-tuning.md`.

mod clients;
mod fill;
mod histogram;
mod process;
mod restart;
mod workload;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use clients::{Kind, Outcome, Plan};
use orrery_store::engine::{DiskOptions, Engine, Tuning};

#[derive(Parser, Clone)]
#[command(about = "Write storm against the storage engine")]
pub struct Settings {
    /// What to do; all but `storm` are what the storm starts in processes of its own.
    #[arg(value_enum, default_value = "storm")]
    task: Task,
    /// An empty or absent directory on the disk to be measured.
    #[arg(long)]
    dir: PathBuf,
    /// Seconds of inserts.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Stop inserting after this many items.
    #[arg(long, default_value_t = u64::MAX)]
    items: u64,
    /// Seconds of updates.
    #[arg(long, default_value_t = 60)]
    update_seconds: u64,
    /// Stop updating after this many writes.
    #[arg(long, default_value_t = u64::MAX)]
    updates: u64,
    #[arg(long, default_value_t = 64)]
    clients: u64,
    /// Writes a second; 0 is as fast as possible.
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Do not wait for the disk.
    #[arg(long)]
    relaxed: bool,
    /// Seconds of storm before the kill; 0 leaves the kill out.
    #[arg(long, default_value_t = 10)]
    kill_after: u64,
    #[arg(long, default_value_t = 32)]
    cache_mib: u64,
    /// Free space that the engine leaves alone.
    #[arg(long, default_value_t = 512)]
    reserve_mib: u64,
    /// Engine knobs to try, as `name=value`; see `Tuning`.
    #[arg(long, value_delimiter = ',')]
    tune: Vec<String>,
    #[arg(long, default_value_t = 0)]
    first_item: u64,
    #[arg(long, default_value_t = 0)]
    first_lsn: u64,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
enum Task {
    Storm,
    Open,
    Insert,
    Update,
    /// Fills a small disk and checks that the engine comes back.
    Fill,
}

fn main() -> Result<()> {
    let settings = Settings::parse();
    let dir = settings.dir.clone();
    match settings.task {
        Task::Storm => storm(&settings, &dir),
        Task::Open => restart::open_and_report(&settings, &dir),
        Task::Insert => storm_until_killed(&settings, &dir, Kind::Insert),
        Task::Update => storm_until_killed(&settings, &dir, Kind::Update),
        Task::Fill => fill::fill(&settings, &dir),
    }
}

fn storm(settings: &Settings, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let empty = dir.join("empty");
    let full = dir.join("full");
    restart::measure(settings, &empty, "first start")?;
    restart::measure(settings, &empty, "second start, still empty")?;

    let engine = Arc::new(Engine::open(settings.options(&full))?);
    let inserted = clients::run(&engine, settings.plan(Kind::Insert, 0, 0));
    report("insert", &engine, &inserted);
    let updated = if settings.update_seconds > 0 {
        let updated = clients::run(&engine, settings.plan(Kind::Update, inserted.items, inserted.lsn));
        report("update", &engine, &updated);
        updated
    } else {
        inserted
    };
    settle(&engine, updated.items);
    let began = Instant::now();
    engine.close()?;
    println!("clean stop: {:.0} ms", began.elapsed().as_secs_f64() * 1000.0);
    drop(engine);

    restart::measure(settings, &full, &format!("restart with {} items", updated.items))?;
    if settings.kill_after > 0 {
        let next = (updated.items, updated.lsn);
        restart::kill_and_measure(settings, &full, settings.kill_after, "insert", next)?;
        restart::measure(settings, &full, "restart after that")?;
    }
    Ok(())
}

fn storm_until_killed(settings: &Settings, dir: &Path, kind: Kind) -> Result<()> {
    let engine = Arc::new(Engine::open(settings.options(dir))?);
    let mut plan = settings.plan(kind, settings.first_item, settings.first_lsn);
    plan.announce = true;
    plan.seconds = u64::MAX;
    clients::run(&engine, plan);
    Ok(())
}

/// Waits until background work has come to rest, and compares the disk with what is alive.
fn settle(engine: &Engine, items: u64) {
    let began = Instant::now();
    let mut last = (engine.stats().compactions, engine.disk_bytes());
    let mut quiet_since = Instant::now();
    while quiet_since.elapsed() < Duration::from_secs(3) && began.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(100));
        let now = (engine.stats().compactions, engine.disk_bytes());
        if now != last {
            quiet_since = Instant::now();
            last = now;
        }
    }
    let live = items * workload::LIVE_BYTES_PER_ITEM;
    println!(
        "settled after {:.1} s: disk {:.0} MiB, live data {:.0} MiB, ratio {:.2}; memory {:.0} MiB; {:?}",
        began.elapsed().as_secs_f64() - 3.0,
        process::mib(engine.disk_bytes()),
        process::mib(live),
        engine.disk_bytes() as f64 / live as f64,
        process::mib(process::resident()),
        engine.stats(),
    );
}

fn report(phase: &str, engine: &Engine, outcome: &Outcome) {
    let writes = outcome.latency.total();
    println!(
        "{phase}: {writes} writes in {:.1} s, {:.0}/s, {:.1} a group; p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms, longest {:.0} ms",
        outcome.seconds,
        writes as f64 / outcome.seconds,
        writes as f64 / outcome.groups.max(1) as f64,
        outcome.latency.quantile_ms(0.5),
        outcome.latency.quantile_ms(0.99),
        outcome.latency.quantile_ms(0.999),
        outcome.latency.longest_ms(),
    );
    println!(
        "  {:.0} us of processor and {:.1} KiB to disk for each, clients included",
        outcome.processor * 1e6 / writes.max(1) as f64,
        outcome.written as f64 / 1024.0 / writes.max(1) as f64,
    );
    let over = |limit: f64| outcome.stalls.iter().filter(|stall| stall.0 > limit).count();
    let longest: Vec<_> =
        outcome.stalls.iter().take(6).map(|(gap, at)| format!("{gap:.0} ms at {at:.1} s")).collect();
    println!(
        "  stalls over 50 ms: {}, over 100 ms: {}; longest: {}",
        over(50.0),
        over(100.0),
        longest.join(", ")
    );
    println!(
        "  point reads beside it: p50 {:.3} ms, p99 {:.2} ms, longest {:.1} ms; memory {:.0} MiB (peak {:.0}); disk {:.0} MiB; {:?}",
        outcome.reads.quantile_ms(0.5),
        outcome.reads.quantile_ms(0.99),
        outcome.reads.longest_ms(),
        process::mib(process::resident()),
        process::mib(process::peak()),
        process::mib(engine.disk_bytes()),
        engine.stats(),
    );
}

fn tune(tuning: &mut Tuning, name: &str, value: u64) {
    match name {
        "memtable-mib" => tuning.memtable_bytes = value << 20,
        "table-mib" => tuning.table_bytes = value << 20,
        "level0" => tuning.level0_threshold = value as u8,
        "ratio" => tuning.level_ratio_max = value as f64,
        "compactors" => tuning.compactors = value as usize,
        "block-kib" => tuning.block_bytes = (value << 10) as u32,
        _ => panic!("there is no knob {name}"),
    }
}

impl Settings {
    fn options(&self, dir: &Path) -> DiskOptions {
        let mut options = DiskOptions::new(dir);
        options.cache_bytes = self.cache_mib << 20;
        options.reserve_bytes = self.reserve_mib << 20;
        for knob in &self.tune {
            let (name, value) = knob.split_once('=').expect("a knob is name=value");
            tune(&mut options.tuning, name, value.parse().expect("a knob's value is a number"));
        }
        options
    }

    fn plan(&self, kind: Kind, items: u64, lsn: u64) -> Plan {
        let (seconds, writes) = match kind {
            Kind::Insert => (self.seconds, self.items),
            Kind::Update => (self.update_seconds, self.updates),
        };
        Plan {
            kind,
            clients: self.clients,
            seconds,
            writes,
            rate: self.rate,
            relaxed: self.relaxed,
            items,
            lsn,
            announce: false,
        }
    }

    /// This program again, with another task.
    fn child(&self, task: &str, dir: &Path) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe().context("the path of this program")?);
        command.arg(task).arg("--dir").arg(dir);
        command.args(["--cache-mib", &self.cache_mib.to_string()]);
        command.args(["--reserve-mib", &self.reserve_mib.to_string()]);
        command.args(["--clients", &self.clients.to_string()]);
        if !self.tune.is_empty() {
            command.args(["--tune", &self.tune.join(",")]);
        }
        Ok(command)
    }
}
