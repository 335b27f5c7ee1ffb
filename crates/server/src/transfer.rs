//! `orrery export` and `orrery import`: items between files and a running endpoint, ours or any other of the protocol.
//!
//! Both keep a small state file beside the data, so that what was interrupted goes on where it stopped. Both hold a
//! bounded number of items in memory, whatever the size of the files.

mod export;
mod import;
mod items;
mod state;
mod wire;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::client::Place;

pub use items::{Items, KeyPaths, Members, line_of, of_page};

/// The most that may go on at once.
const PARALLEL_MAX: u16 = 256;

#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    place: Place,
    /// The file to write; `-` is the standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// One item on each line, or one JSON array.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Partitions that are read at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=i64::from(PARALLEL_MAX)))]
    parallel: u16,
    /// Keep `_rid`, `_self`, `_etag`, `_attachments` and `_ts`.
    #[arg(long)]
    keep_system: bool,
}

#[derive(Args)]
pub struct Import {
    #[command(flatten)]
    place: Place,
    /// Files of JSON lines or JSON arrays.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Writes that are under way at once. Those of one logical partition keep their order.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=i64::from(PARALLEL_MAX)))]
    parallel: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Array,
}

/// Keeps a second transfer away from a file and the state beside it, for as long as the file is open. Not all file systems
/// can do that; then the user must know.
fn lock(file: &File, path: &Path) -> anyhow::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            bail!("another export or import works with {}; wait for it, or stop it", path.display())
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

pub fn export(export: Export) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(export::run(export))
}

pub fn import(import: Import) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(import::run(import))
}
