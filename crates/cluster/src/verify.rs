//! Checking a whole data directory, offline or at rest.

use orrery_store::Verification;

use crate::db::Db;
use crate::error::{ErrorKind, Result};

/// What a check of one physical partition found.
#[derive(Debug)]
pub struct RangeVerification {
    pub database: String,
    pub container: String,
    pub range_id: u32,
    pub lsn: u64,
    pub result: Verification,
}

impl Db {
    /// Compares everything derived from items with the items; reads all data once.
    pub fn verify(&self) -> Result<Vec<RangeVerification>> {
        let mut found = Vec::new();
        for container in self.catalog().containers() {
            for range in &container.ranges {
                let (_, snapshot, schema) = range.schema_point(&self.inner.committer)?;
                let result = range.partition.verify(&snapshot, &schema);
                let result = result.map_err(|error| ErrorKind::Op { place: 0, error })?;
                found.push(RangeVerification {
                    database: container.database_id.clone(),
                    container: container.resource.id.clone(),
                    range_id: range.id,
                    lsn: range.partition.lsn().0,
                    result,
                });
            }
        }
        Ok(found)
    }
}
