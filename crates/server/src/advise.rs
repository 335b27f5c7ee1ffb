//! `orrery advise`: which partition key fits a workload.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use orrery_advisor::limits::SAMPLE_ITEMS_MAX;
use orrery_advisor::{Inquiry, Report, Settings, Workload, advise, html, table};

use crate::client::{Endpoint, Place, on_runtime};
use file::ItemFile;

mod file;
mod live;
mod sampling;

/// Bytes of a workload file.
const WORKLOAD_BYTES_MAX: u64 = 16 * 1024 * 1024;

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

    /// Items to take from the container: by default 20,000, and 2,000 where the endpoint is no Orrery.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=SAMPLE_ITEMS_MAX as i64))]
    sample: Option<u32>,

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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For a terminal.
    Table,
    #[default]
    Json,
    /// One page with charts that needs nothing else.
    Html,
}

pub fn run(asked: Advise) -> anyhow::Result<()> {
    let workload = read_workload(&asked.workload)?;
    let text = match (asked.place(), &asked.items) {
        (Some(place), _) => on_runtime(live::answer(&asked, workload, &place))?,
        (None, Some(path)) => asked.answer_about(&ItemFile::open(path)?, workload)?,
        (None, None) => render(&advise(&workload, &[], &asked.settings())?, asked.format)?,
    };
    match &asked.out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => {
            // A reader that closed our standard output has read enough.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            Ok(())
        }
    }
}

impl Advise {
    fn settings(&self) -> Settings {
        Settings {
            today: today(),
            partitions: self.partitions,
            candidates: self.candidates.clone(),
            ..Settings::default()
        }
    }

    /// The container that the question is about, if it is about one.
    fn place(&self) -> Option<Place> {
        let (database, container) = (self.database.clone()?, self.container.clone()?);
        Some(Place { endpoint: self.endpoint.clone(), database, container })
    }

    fn answer_about(&self, file: &ItemFile, mut workload: Workload) -> anyhow::Result<String> {
        workload.items.stored.get_or_insert(file.items as f64);
        let settings = self.settings();
        let sample = file.sample()?;
        let inquiry = Inquiry::new(&workload, &sample, &settings)?;
        let mut census = inquiry.census(Vec::new());
        file.count(&mut census)?;
        render(&inquiry.answer(Some(census))?, self.format)
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
