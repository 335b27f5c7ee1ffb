//! Checking a whole data directory, offline or at rest.

use orrery_store::engine::{Engine, Snapshot};
use orrery_store::{Partition, Verification};

use crate::catalog::{Loaded, catalog_spec};
use crate::db::{Db, catalog_range};
use crate::error::{ErrorKind, Result};
use crate::memory::Memory;
use crate::options::{DbOptions, OpenError, disk_options};
use crate::range::Range;

/// What the catalog's own partition is called.
const CATALOG: &str = "(catalog)";

/// What a check of one physical partition found.
#[derive(Debug)]
pub struct RangeVerification {
    pub database: String,
    pub container: String,
    pub range_id: u32,
    pub lsn: u64,
    pub result: Verification,
}

/// What a check of a directory found that nobody uses.
#[derive(Debug, Default)]
pub struct DirectoryVerification {
    pub ranges: Vec<RangeVerification>,
    /// What is wrong beside what the partitions found.
    pub findings: Vec<String>,
}

impl DirectoryVerification {
    pub fn findings_total(&self) -> u64 {
        let of_ranges: u64 = self.ranges.iter().map(|range| range.result.findings_total).sum();
        of_ranges + self.findings.len() as u64
    }

    fn add(&mut self, range: &Range, (database, container): (&str, &str), snapshot: &Snapshot) {
        match range.replica.partition.verify(snapshot, &range.replica.schema.load()) {
            Ok(result) => self.ranges.push(RangeVerification {
                database: database.to_owned(),
                container: container.to_owned(),
                range_id: range.descriptor.id,
                lsn: range.replica.partition.lsn().0,
                result,
            }),
            Err(error) => {
                let number = range.descriptor.id;
                self.findings.push(format!("{database}/{container} range {number} cannot be read: {error}"));
            }
        }
    }
}

/// Compares everything that is derived from items with the items, whole tables with their checksums, and the parts of the
/// directory with each other. Changes nothing: there is no background work, and nothing is written.
pub fn verify_directory(options: &DbOptions) -> std::result::Result<DirectoryVerification, OpenError> {
    let Some(disk) = disk_options(options) else { return Ok(DirectoryVerification::default()) };
    let inspection = Engine::inspect(&disk);
    let mut found = DirectoryVerification { ranges: Vec::new(), findings: inspection.findings };
    let opened = match inspection.engine {
        // Tables may be damaged besides.
        Err(error) if !found.findings.is_empty() => {
            found.findings.push(error.to_string());
            return Ok(found);
        }
        opened => opened,
    };
    let snapshot = opened?.snapshot();
    let partition = Partition::open(catalog_spec(), &snapshot)?;
    let memory = Memory::new(options.memory);
    let loaded = match Loaded::read(&partition, &snapshot, options, &memory) {
        Ok(loaded) => loaded,
        Err(error) => {
            found.findings.push(error.to_string());
            return Ok(found);
        }
    };
    found.add(&catalog_range(partition, options, &memory), ("", CATALOG), &snapshot);
    for container in loaded.catalog.containers() {
        for range in &container.ranges {
            found.add(range, (&container.database_id, &container.resource.id), &snapshot);
        }
    }
    Ok(found)
}

impl Db {
    /// Compares everything derived from items with the items; reads all data once.
    pub fn verify(&self) -> Result<Vec<RangeVerification>> {
        let mut found = Vec::new();
        for container in self.catalog().containers() {
            for range in &container.ranges {
                let (_, snapshot, schema) = range.replica.schema_point(&self.inner.committer)?;
                let result = range.replica.partition.verify(&snapshot, &schema);
                let result = result.map_err(ErrorKind::from)?;
                found.push(RangeVerification {
                    database: container.database_id.clone(),
                    container: container.resource.id.clone(),
                    range_id: range.descriptor.id,
                    lsn: range.replica.partition.lsn().0,
                    result,
                });
            }
        }
        Ok(found)
    }
}
