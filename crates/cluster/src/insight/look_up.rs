//! Looking up the largest logical partitions among the sizes that the store keeps.

use std::ops::Bound;
use std::sync::Arc;

use orrery_doc::{Epk, EpkRange, PartitionKey};
use orrery_store::engine::{Keyspace, Snapshot};
use orrery_store::{Fault, LogicalSize, Scan, keys};

use super::report::LargePartitionKey;
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, Result};

/// Sizes of logical partitions that one look-up reads at most.
const SIZES_READ_MAX: usize = 1_000_000;

impl Db {
    /// The largest logical partitions of all, looked up among the sizes that the store keeps. The second value says
    /// whether there were too many to look at all of them.
    pub async fn look_up_largest_keys(
        &self,
        container: &Arc<Container>,
        count: usize,
    ) -> Result<(Vec<LargePartitionKey>, bool)> {
        let _permit = self.inner.look_ups.acquire().await.map_err(|_| Fault::Stopping)?;
        let (db, container) = (self.clone(), container.clone());
        let found = self.world().aside(move || db.read_sizes(&container, count));
        found.await.map_err(|_| Error::from(Fault::Stopping))?
    }

    fn read_sizes(&self, container: &Container, count: usize) -> Result<(Vec<LargePartitionKey>, bool)> {
        let snapshot = self.inner.committer.snapshot_owned();
        let mut found: Vec<LargePartitionKey> = Vec::new();
        let mut read = 0;
        'ranges: for range in &container.ranges {
            let (lower, upper) = keys::logical_size_range(container.number, range.epk());
            let (lower, upper) = (Bound::Included(lower.as_slice()), Bound::Excluded(upper.as_slice()));
            for entry in snapshot.range(Keyspace::Meta, lower, upper, false) {
                let (key, value) = entry.map_err(|error| damaged(&error))?;
                read += 1;
                // A byte for the kind of record and four of the container stand before the EPK.
                let epk = key.get(5..).and_then(Epk::decode_key).map(|(epk, _)| epk);
                let (Some(epk), Some(size)) = (epk, LogicalSize::decode(&value)) else { continue };
                let (bytes, items) = (size.bytes, Some(size.items));
                found.push(LargePartitionKey { range_id: range.descriptor.id, epk, key: None, bytes, items });
                if found.len() >= 2 * count {
                    keep_largest(&mut found, count);
                }
                if read >= SIZES_READ_MAX {
                    break 'ranges;
                }
            }
        }
        keep_largest(&mut found, count);
        for large in &mut found {
            large.key = self.key_at(container, &snapshot, &large.epk)?;
        }
        Ok((found, read >= SIZES_READ_MAX))
    }

    /// The key of a logical partition, as one of its items has it.
    fn key_at(&self, container: &Container, snapshot: &Snapshot, epk: &Epk) -> Result<Option<String>> {
        let range = container.range_of(epk);
        let view = range.replica.view(snapshot, range.replica.partition.lsn());
        let behind = epk.next().unwrap_or_else(Epk::max);
        let mut key = None;
        view.scan(&EpkRange::new(epk.clone(), behind), None, |_, item| {
            key = Some(PartitionKey::extract(&container.definition.key, item.doc.as_ref()).to_json());
            Scan::Stop
        })
        .map_err(Error::from)?;
        Ok(key)
    }
}

fn keep_largest(found: &mut Vec<LargePartitionKey>, count: usize) {
    found.sort_by_key(|large| std::cmp::Reverse(large.bytes));
    found.truncate(count);
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    let error = Fault::Damaged(error.to_string());
    error.into()
}
