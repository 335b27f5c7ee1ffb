//! `orrery advise`: which partition key fits a workload.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use orrery_advisor::limits::{SAMPLE_BYTES_MAX, SAMPLE_ITEMS_MAX};
use orrery_advisor::{Report, Settings, Workload, html, table};
use serde_json::Value;

use crate::client::Endpoint;

pub mod sampling;

mod live;

/// Bytes of a workload file, and of one line of a sample.
const WORKLOAD_BYTES_MAX: u64 = 16 * 1024 * 1024;
const LINE_BYTES_MAX: u64 = 8 * 1024 * 1024;

#[derive(Args)]
pub struct Advise {
    /// What is stored and how it is used, as JSON; `docs/advisor.md` describes it.
    #[arg(long, value_name = "FILE")]
    workload: PathBuf,

    /// Sample items, one JSON object on each line.
    #[arg(long, value_name = "FILE", conflicts_with = "database")]
    items: Option<PathBuf>,

    #[command(flatten)]
    endpoint: Endpoint,

    /// Take the sample from a container of this database, at the endpoint.
    #[arg(long, value_name = "NAME", requires = "container")]
    database: Option<String>,

    #[arg(long, value_name = "NAME", requires = "database")]
    container: Option<String>,

    /// Items to take from the container.
    #[arg(long, value_name = "N", default_value_t = sampling::ITEMS_DEFAULT)]
    sample: usize,

    /// A key to judge: `/a`, `/a,/b`, `/a+/b`, `/a+month(/time)`, `/a+suffix(10)`, `/a+hash(/b,10)`; may be given
    /// several times. Without any, those of the workload are judged, or the advisor proposes some.
    #[arg(long = "candidate", value_name = "KEY")]
    candidates: Vec<String>,

    /// Physical partitions to simulate.
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,

    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// A file for the report instead of the terminal.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For a terminal.
    Table,
    #[default]
    Json,
    /// One page with charts that needs nothing else.
    Html,
}

pub fn run(advise: Advise) -> anyhow::Result<()> {
    let workload = read_workload(&advise.workload)?;
    let sample = sample(&advise)?;
    let settings = Settings {
        today: today(),
        partitions: advise.partitions,
        candidates: advise.candidates.clone(),
        ..Settings::default()
    };
    let report = orrery_advisor::advise(&workload, &sample, &settings)?;
    let text = render(&report, advise.format)?;
    match &advise.out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => {
            // A reader that closed our standard output has read enough.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            Ok(())
        }
    }
}

pub fn render(report: &Report, format: Format) -> anyhow::Result<String> {
    Ok(match format {
        Format::Table => table(report),
        Format::Json => serde_json::to_string_pretty(report)? + "\n",
        Format::Html => html(report),
    })
}

/// Days since 1970-01-01.
pub fn today() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() / 86_400) as f64
}

fn read_workload(path: &Path) -> anyhow::Result<Workload> {
    let place = || format!("cannot read {}", path.display());
    if std::fs::metadata(path).with_context(place)?.len() > WORKLOAD_BYTES_MAX {
        bail!("{}: a workload has at most {WORKLOAD_BYTES_MAX} bytes", path.display());
    }
    let text = std::fs::read(path).with_context(place)?;
    Workload::from_json(&text).with_context(|| path.display().to_string())
}

fn sample(advise: &Advise) -> anyhow::Result<Vec<Value>> {
    if let Some(path) = &advise.items {
        return read_items(path);
    }
    let (Some(database), Some(container)) = (&advise.database, &advise.container) else {
        return Ok(Vec::new());
    };
    let wanted = advise.sample.clamp(1, SAMPLE_ITEMS_MAX);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(live::sample(&advise.endpoint, database, container, wanted))
}

fn read_items(path: &Path) -> anyhow::Result<Vec<Value>> {
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut reader = BufReader::new(file);
    let (mut items, mut bytes) = (Vec::new(), 0);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = std::io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        bytes += read;
        if read == 0 || items.len() == SAMPLE_ITEMS_MAX || bytes > SAMPLE_BYTES_MAX {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let item = serde_json::from_slice(&line);
        items.push(item.with_context(|| format!("{}, line {number}", path.display()))?);
    }
    if items.is_empty() {
        bail!("{} has no items", path.display());
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_items_and_a_bad_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("items.jsonl");
        std::fs::write(&path, "{\"id\":\"1\"}\n\n  {\"id\":\"2\"}").expect("the file is written");
        assert_eq!(read_items(&path).expect("two items").len(), 2);
        std::fs::write(&path, "{\"id\":\"1\"}\nnonsense\n").expect("the file is written");
        let error = format!("{:#}", read_items(&path).expect_err("a bad line"));
        assert!(error.contains("line 2"), "{error}");
    }
}
