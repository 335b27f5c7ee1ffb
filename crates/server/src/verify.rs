//! `orrery verify`: reads a whole data directory and says whether it holds together.

use anyhow::{Context, anyhow, bail, ensure};
use orrery_cluster::Db;

use crate::config::Config;
use crate::logs;

pub fn run(config: Config) -> anyhow::Result<()> {
    logs::start(&config)?;
    let place = config.data_dir.display().to_string();
    ensure!(!config.in_memory, "there is nothing to verify in memory");
    ensure!(config.data_dir.is_dir(), "there is no data directory {place}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let findings = runtime.block_on(async {
        let db =
            Db::open(config.database()).with_context(|| format!("cannot open the database in {place}"))?;
        let findings = report(&db);
        db.close().await;
        findings
    })?;
    if findings > 0 {
        bail!("{findings} findings in {place}");
    }
    Ok(())
}

/// Prints a line for each physical partition and each finding, and counts the findings.
fn report(db: &Db) -> anyhow::Result<u64> {
    let mut findings = 0;
    let ranges = db.verify().map_err(|error| anyhow!("cannot read everything: {}", error.kind))?;
    for range in ranges {
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
        findings += result.findings_total;
    }
    Ok(findings)
}
