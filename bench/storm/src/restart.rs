//! Restarts, measured from a fresh process: after a clean stop, and after a kill in mid-storm.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use orrery_store::engine::{Engine, Keyspace};

use crate::workload;
use crate::{Settings, process};

/// What a child reports after opening a directory.
pub fn open_and_report(settings: &Settings, dir: &Path) -> Result<()> {
    let before = process::resident();
    let began = Instant::now();
    let engine = Engine::open(settings.options(dir))?;
    let opened = began.elapsed();
    let snapshot = engine.snapshot();
    let first = snapshot.keys(Keyspace::Meta, std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, false);
    let _ = first.take(1).count();
    let read = began.elapsed();
    thread::sleep(Duration::from_millis(500));
    println!(
        "open {:.1} ms, first read after {:.1} ms, memory {:.1} MiB (process before open {:.1})",
        opened.as_secs_f64() * 1000.0,
        read.as_secs_f64() * 1000.0,
        process::mib(process::resident()),
        process::mib(before),
    );
    drop(snapshot);
    engine.close()?;
    Ok(())
}

/// Opens a directory in a process of its own and prints what it says.
pub fn measure(settings: &Settings, dir: &Path, label: &str) -> Result<()> {
    let output = settings.child("open", dir)?.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("{label}: {}", String::from_utf8_lossy(&output.stdout).trim());
    Ok(())
}

/// Starts a storm in a child, kills it, opens the directory and checks every acknowledged write.
pub fn kill_and_measure(
    settings: &Settings,
    dir: &Path,
    seconds: u64,
    kind: &str,
    next: (u64, u64),
) -> Result<()> {
    let mut command: Command = settings.child(kind, dir)?;
    command.args(["--first-item", &next.0.to_string(), "--first-lsn", &next.1.to_string()]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().context("the child's output")?).lines();
    let collector = thread::spawn(move || {
        let mut acknowledged = HashSet::new();
        for line in lines.map_while(Result::ok) {
            // A line cut short by the kill may hold part of a number; it ends without its newline,
            // which `lines` hides, so each line carries a closing mark.
            let Some(lsns) = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix(" .")) else {
                continue;
            };
            acknowledged.extend(lsns.split(' ').filter_map(|lsn| lsn.parse::<u64>().ok()));
        }
        acknowledged
    });
    thread::sleep(Duration::from_secs(seconds));
    child.kill()?;
    child.wait()?;
    let acknowledged = collector.join().expect("the collector ends");
    measure_and_check(settings, dir, &acknowledged)
}

fn measure_and_check(settings: &Settings, dir: &Path, acknowledged: &HashSet<u64>) -> Result<()> {
    let began = Instant::now();
    let engine = Arc::new(Engine::open(settings.options(dir))?);
    let opened = began.elapsed();
    let snapshot = engine.snapshot();
    let mut missing = 0;
    for lsn in acknowledged {
        let Some(key) = snapshot.get(Keyspace::Feed, &workload::feed_key(*lsn))? else {
            missing += 1;
            continue;
        };
        if !snapshot.contains(Keyspace::Item, &key)? {
            missing += 1;
        }
    }
    println!(
        "reopen after SIGKILL: {:.0} ms; {} acknowledged writes of the killed process, {missing} missing",
        opened.as_secs_f64() * 1000.0,
        acknowledged.len(),
    );
    ensure!(missing == 0, "acknowledged writes were lost");
    engine.close()?;
    Ok(())
}
