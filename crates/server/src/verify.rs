//! `orrery verify`: reads a whole data directory and says whether it holds together.
//!
//! Nothing in the directory is changed, so it may be on a disk that is mounted read-only. Every finding is a failure.

use anyhow::{Context, bail, ensure};
use orrery_cluster::verify::{DirectoryVerification, verify_directory};

use crate::config::Config;
use crate::job::spinner;
use crate::logs;

/// Options of the server that mean something here; help shows no others.
pub const OPTIONS: [&str; 6] = ["config", "data_dir", "memory_bytes", "cache_bytes", "log", "log_format"];

pub fn run(config: Config) -> anyhow::Result<()> {
    logs::start(&config)?;
    let place = config.data_dir.display().to_string();
    ensure!(!config.in_memory, "there is nothing to verify in memory");
    ensure!(!config.data_dir.is_file(), "{place} is a file; --data-dir names a folder");
    ensure!(config.data_dir.is_dir(), "there is no data directory {place}");
    let progress = spinner(format!("checking {place}"));
    let found = verify_directory(&config.database());
    progress.finish_and_clear();
    let found = found.with_context(|| format!("cannot open the database in {place}"))?;
    report(&found);
    match found.findings_total() {
        0 => Ok(()),
        findings => bail!("{findings} findings in {place}"),
    }
}

/// Prints a line for each physical partition and each finding.
fn report(found: &DirectoryVerification) {
    for range in &found.ranges {
        let result = &range.result;
        println!(
            "{}/{} range {}: lsn {}, {} items, {} bytes, {} logical partitions, {} findings",
            range.database,
            range.container,
            range.range_id,
            range.lsn,
            result.items,
            result.bytes,
            result.logical_partitions,
            result.findings_total
        );
        result.findings.iter().for_each(|finding| println!("    {finding}"));
    }
    found.findings.iter().for_each(|finding| println!("{finding}"));
}
