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
mod completions;
mod config;
mod create;
mod delete;
mod endpoints;
mod entra;
mod explorer;
mod front;
mod gateways;
mod greeting;
mod hosts;
mod job;
mod keys;
mod limits;
mod list;
mod listener;
mod logs;
mod manage;
mod metrics;
mod modes;
mod otlp;
mod partition;
mod ports;
mod proxies;
mod query;
mod ready;
mod rotation;
mod rows;
mod seed;
mod serve;
mod shell;
mod signals;
mod sockets;
mod style;
mod throughput;
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
    /// Ask a container with SQL and print its rows.
    Query(query::Query),
    /// Ask containers with SQL and look around, line after line.
    Shell(shell::Shell),
    /// Make a database or container.
    Create(create::Create),
    /// Remove a database or container with all that is in it.
    Delete(delete::Delete),
    /// List databases or containers.
    List(list::List),
    /// Show and change what a database or container may use.
    Throughput(throughput::Throughput),
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
    /// Say whether a server takes requests; ends with 1 if it does not.
    Ready(ready::Ready),
    /// Print what a shell needs to complete this command.
    Completions(completions::Completions),
    /// Print the manual page, or write those of all subcommands.
    Man(completions::Man),
    /// Print the version.
    Version,
}

fn main() -> ExitCode {
    let started = Instant::now();
    allocator::give_back_soon();
    allocator::take_small_pages(true);
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
    let matches = config::load(command(), &line)?;
    match CommandLine::from_arg_matches(&matches)?.command {
        Command::Serve(config) => serve::run(*config, started),
        Command::Verify(config) => verify::run(*config),
        Command::Query(query) => query::run(query),
        Command::Shell(shell) => shell::run(shell),
        Command::Create(create) => create::run(create),
        Command::Delete(delete) => delete::run(delete),
        Command::List(list) => list::run(list),
        Command::Throughput(throughput) => throughput::run(throughput),
        Command::Partition(partition) => partition::run(partition),
        Command::Top(top) => top::run(top),
        Command::Job(job) => job::run(job),
        Command::Rekey(rekey) => job::rekey(rekey),
        Command::Export(export) => transfer::export(export),
        Command::Import(import) => transfer::import(import),
        Command::Advise(question) => advise::run(*question),
        Command::Ready(ready) => ready::run(ready),
        Command::Completions(completions) => completions::run(completions, command()),
        Command::Man(man) => completions::man(man, command()),
        Command::Version => {
            println!("orrery {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    }
}

/// The whole command line. `verify` reads the server's configuration, of which little concerns it.
fn command() -> clap::Command {
    CommandLine::command().mut_subcommand("verify", |verify| {
        verify.mut_args(|option| {
            let is_shown = verify::OPTIONS.contains(&option.get_id().as_str());
            option.hide(!is_shown)
        })
    })
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
