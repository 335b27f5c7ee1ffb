//! What a server's memory does: an hour of updates and reads over little data, and the worst mix of clients under the limits
//! of a container.
//!
//! ```text
//! orrery-memory hour --server target/release/orrery
//! orrery-memory worst --server target/release/orrery
//! ```
//!
//! Both print a line a minute, run for any number of minutes, and end with 1 when something is not as it should be.

mod attackers;
mod gauge;
mod group;
mod healthy;
mod hour;
mod site;
mod worst;
mod writers;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use attackers::Attack;

#[derive(Parser)]
#[command(
    name = "orrery-memory",
    about = "What a server's memory does for an hour, and under the worst mix of clients."
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Updates and reads over live data that stays the same: resident memory must become flat.
    Hour(Hour),
    /// Queries, scripts, writers, uploads and unread answers beside a healthy client, in control groups of several sizes.
    Worst(Worst),
}

#[derive(Args)]
pub struct Hour {
    /// The server to run.
    #[arg(long)]
    pub server: PathBuf,
    #[arg(long, default_value_t = 60)]
    pub minutes: u64,
    /// Live data, in MiB of items.
    #[arg(long, default_value_t = 100)]
    pub live_mib: u64,
    #[arg(long, default_value_t = 8)]
    pub clients: u64,
    /// Operations a second, of all clients together; half of them are updates.
    #[arg(long, default_value_t = 1_500)]
    pub rate: u64,
    /// What resident memory must stay below after five minutes, in MiB.
    #[arg(long, default_value_t = 350)]
    pub most_mib: u64,
    /// Options for the server, after `--`.
    #[arg(last = true)]
    pub options: Vec<String>,
}

#[derive(Args)]
pub struct Worst {
    /// The server to run.
    #[arg(long)]
    pub server: PathBuf,
    /// Minutes for each limit.
    #[arg(long, default_value_t = 10)]
    pub minutes: u64,
    /// Limits of the control groups, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "256,512,1024")]
    pub limits_mib: Vec<u64>,
    /// How many clients of each kind there are, as a part of the usual number in percent.
    #[arg(long, default_value_t = 100)]
    pub clients_percent: usize,
    /// Kinds of attackers to leave out, to find out which of them holds memory.
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<Attack>,
    /// Options for the server, after `--`.
    #[arg(last = true)]
    pub options: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let is_good = match Arguments::parse().what {
        What::Hour(hour) => hour::run(&hour)?,
        What::Worst(worst) => worst::run(&worst)?,
    };
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
