//! `orrery verify`: checks a data directory while no server uses it.

use std::path::PathBuf;

use anyhow::{Context, bail};
use orrery_cluster::limits::PartitionLimits;
use orrery_cluster::{Account, Consistency, Db, DbOptions, Durability, Storage};

/// Plenty for a single pass over everything.
const CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Check that sizes, counts, feed and index of a stopped server's data agree with its items.
#[derive(clap::Args)]
pub struct VerifyOptions {
    /// The data directory.
    #[arg(long, env = "ORRERY_DATA_DIR", value_name = "DIR", default_value = "orrery-data")]
    data_dir: PathBuf,
}

pub fn run(options: &VerifyOptions) -> anyhow::Result<()> {
    let place = options.data_dir.display();
    if !options.data_dir.is_dir() {
        bail!("{place} is not a directory");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let db =
            Db::open(database(options)).with_context(|| format!("cannot open the database in {place}"))?;
        let outcome = report(&db);
        db.close().await;
        outcome
    })
}

fn report(db: &Db) -> anyhow::Result<()> {
    let mut findings = 0;
    for range in db.verify().map_err(|error| anyhow::anyhow!("{}", error.kind))? {
        let result = &range.result;
        println!(
            "{}/{} range {}: {} items in {} logical partitions, {} bytes, LSN {}, {} findings",
            range.database,
            range.container,
            range.range_id,
            result.items,
            result.logical_partitions,
            result.bytes,
            range.lsn,
            result.findings_total
        );
        result.findings.iter().for_each(|finding| println!("  {finding}"));
        findings += result.findings_total;
    }
    if findings > 0 {
        bail!("{findings} disagreements found");
    }
    println!("everything agrees");
    Ok(())
}

fn database(options: &VerifyOptions) -> DbOptions {
    DbOptions {
        storage: Storage::Disk {
            path: options.data_dir.clone(),
            cache_bytes: CACHE_BYTES,
            disk_bytes_max: None,
        },
        durability: Durability::Durable,
        limits: PartitionLimits::default(),
        throttle: false,
        account: Account {
            name: "localhost".into(),
            region: String::new(),
            consistency: Consistency::Session,
            serverless: false,
        },
    }
}
