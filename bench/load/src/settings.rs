//! What a run measures, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
#[command(
    about = "Measures a server against bare HTTP, its bare storage engine, PostgreSQL and Azurite, in one run"
)]
pub struct Settings {
    #[command(subcommand)]
    pub role: Option<Role>,
    /// The sections to run; all when none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Section>,
    /// Another build of the server. Every section then runs both in turns, and the older one against itself.
    #[arg(long, value_name = "BINARY")]
    pub before: Option<PathBuf>,
    /// Items to grow the database to; a million, or 200,000 with --before.
    #[arg(long)]
    items: Option<u64>,
    /// Items that queries run over; a million, or 100,000 with --before.
    #[arg(long)]
    query_items: Option<u64>,
    /// Containers of the larger start.
    #[arg(long, default_value_t = 200)]
    pub containers: u32,
    /// GiB in the partition that is split.
    #[arg(long, default_value_t = 1.0)]
    pub split_gib: f64,

    /// Seconds of each round of load; 4, or 0.2 with --before.
    #[arg(long)]
    seconds: Option<f64>,
    /// Rounds of each side of a comparison; 3, or 60 (at least 9) with --before.
    #[arg(long)]
    rounds: Option<usize>,
    /// The server's binary.
    #[arg(long, env = "ORRERY_BIN", default_value = "target/release/orrery")]
    pub server: PathBuf,
    /// PostgreSQL's programs; looked for where Debian puts them when not named.
    #[arg(long)]
    pub postgres: Option<PathBuf>,
    /// Azurite's program for tables; looked for where `.ci/tools bench` puts it when not named.
    #[arg(long)]
    pub azurite: Option<PathBuf>,
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
    Direct,
    Partitions,
    Growth,
    Queries,
    Scripts,
    Insight,
    Copy,
    Splits,
    Fairness,
    Tables,
}

impl Settings {
    pub fn wants(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }

    pub fn round(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.unwrap_or_else(|| self.usually(4.0, 0.2)))
    }

    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or_else(|| self.usually(3, 60))
    }

    pub fn items(&self) -> u64 {
        self.items.unwrap_or_else(|| self.usually(1_000_000, 200_000))
    }

    pub fn query_items(&self) -> u64 {
        self.query_items.unwrap_or_else(|| self.usually(1_000_000, 100_000))
    }

    /// Two builds are compared in many short turns rather than in a few long ones.
    fn usually<T>(&self, alone: T, with_another: T) -> T {
        if self.before.is_some() { with_another } else { alone }
    }
}
