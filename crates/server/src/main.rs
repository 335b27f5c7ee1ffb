//! The `orrery` command: reads its line, and runs one subcommand.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::Config;

mod admin;
mod advise;
mod allocator;
mod client;
mod config;
mod endpoints;
mod entra;
mod explorer;
mod front;
mod gateways;
mod hosts;
mod job;
mod keys;
mod limits;
mod listener;
mod logs;
mod manage;
mod metrics;
mod modes;
mod partition;
mod ports;
mod rotation;
mod serve;
mod signals;
mod sockets;
mod tls;
mod top;
mod transfer;
mod verify;
mod webhook;

#[derive(Parser)]
#[command(name = "orrery", version, about, propagate_version = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server. This is also what `orrery` without a subcommand does.
    Serve(Box<Config>),
    /// Check that everything in a data directory agrees with the items in it; no server may be using it.
    Verify(Box<Config>),
    /// List, split and merge the partitions of a running server.
    Partition(partition::Partition),
    /// Watch the partitions of a running server in the terminal.
    Top(top::Top),
    /// Copy containers of a running server, and see how that goes.
    Job(job::Job),
    /// Give a container of a running server another partition key while it is in use.
    Rekey(job::Rekey),
    /// Read all items of a container into a file.
    Export(transfer::Export),
    /// Write the items of files into a container.
    Import(transfer::Import),
    /// Compare partition keys for a workload.
    Advise(Box<advise::Advise>),
    /// Print the version.
    Version,
}

fn main() -> ExitCode {
    let started = Instant::now();
    allocator::give_back_soon();
    orrery_cluster::let_threads_give_back(allocator::give_back_of_this_thread);
    match run(started) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("orrery: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(started: Instant) -> anyhow::Result<()> {
    let line = with_subcommand(std::env::args_os().collect());
    let matches = config::load(CommandLine::command(), &line)?;
    match CommandLine::from_arg_matches(&matches)?.command {
        Command::Serve(config) => serve::run(*config, started),
        Command::Verify(config) => verify::run(*config),
        Command::Partition(partition) => partition::run(partition),
        Command::Top(top) => top::run(top),
        Command::Job(job) => job::run(job),
        Command::Rekey(rekey) => job::rekey(rekey),
        Command::Export(export) => transfer::export(export),
        Command::Import(import) => transfer::import(import),
        Command::Advise(question) => advise::run(*question),
        Command::Version => {
            println!("orrery {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    }
}

/// Puts `serve` in front of the options when no subcommand is named, so that plain `orrery` serves.
fn with_subcommand(mut line: Vec<OsString>) -> Vec<OsString> {
    let first = line.get(1).and_then(|word| word.to_str()).unwrap_or("--");
    let asks_for_help = matches!(first, "-h" | "--help" | "-V" | "--version");
    if first.starts_with('-') && !asks_for_help {
        let at = line.len().min(1);
        line.insert(at, "serve".into());
    }
    line
}
