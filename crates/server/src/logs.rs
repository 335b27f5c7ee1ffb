//! Where log lines go and what they look like.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// The storage engine reports each flush as news; that is for those who work on it.
const QUIET: &str = "lsm_tree=warn";

/// Starts logging to standard error; standard output is kept for the line that says "ready".
pub fn start(config: &Config) -> anyhow::Result<()> {
    // An operator who wants the engine's own lines asks for them by name: a later directive wins.
    let filter = format!("{QUIET},{}", config.log);
    let filter = EnvFilter::try_new(filter).context("--log is not a valid filter")?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().init(),
    }
    // A panic is a defect; it must be found in the log like every other event.
    std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panic")));
    Ok(())
}
