//! What a run measures, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(about = "Measures a server against bare HTTP, its bare storage engine and PostgreSQL, in one run")]
pub struct Settings {
    #[command(subcommand)]
    pub role: Option<Role>,
    /// The sections to run; all when none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Section>,
    /// Items to grow the database to in the last section.
    #[arg(long, default_value_t = 1_000_000)]
    pub items: u64,
    /// Items that queries run over.
    #[arg(long, default_value_t = 1_000_000)]
    pub query_items: u64,
    /// Containers of the larger start.
    #[arg(long, default_value_t = 200)]
    pub containers: u32,
    /// GiB in the partition that is split.
    #[arg(long, default_value_t = 1.0)]
    pub split_gib: f64,

    /// Seconds of each round of load.
    #[arg(long, default_value_t = 4.0)]
    pub seconds: f64,
    /// Rounds of each side of a comparison.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// The server's binary.
    #[arg(long, env = "ORRERY_BIN", default_value = "target/release/orrery")]
    pub server: PathBuf,
    /// PostgreSQL's programs; looked for where Debian puts them when not named.
    #[arg(long)]
    pub postgres: Option<PathBuf>,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "bench/out")]
    pub out: PathBuf,
}

#[derive(Subcommand)]
pub enum Role {
    /// The bare HTTP server that reads are held against; started by the run itself.
    #[command(hide = true)]
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    Start,
    Reads,
    Creates,
    Partitions,
    Growth,
    Queries,
    Scripts,
    Insight,
    Copy,
    Splits,
}

impl Settings {
    pub fn wants(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }

    pub fn round(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}
