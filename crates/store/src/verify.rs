//! Checking that everything derived from the items agrees with them.
//!
//! Sizes, counts, feed entries and index terms are written in the same commit as the items, so any disagreement
//! means lost or torn data. Crash tests and operators ask this of a data directory.

use std::collections::HashMap;
use std::ops::Bound;

use orrery_doc::Epk;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::group::item_index_keys;
use crate::view::{Scan, View};
use crate::{Item, ItemKey, LogicalSize, OpError, Partition, Schema, keys};

/// Findings beyond this many are only counted.
const FINDINGS_MAX: usize = 100;

#[derive(Debug, Default)]
pub struct Verification {
    pub items: u64,
    pub bytes: u64,
    pub logical_partitions: u64,
    pub findings: Vec<String>,
    pub findings_total: u64,
}

impl Verification {
    fn find(&mut self, text: impl FnOnce() -> String) {
        self.findings_total += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(text());
        }
    }
}

impl Partition {
    /// Reads the whole partition at one snapshot; memory grows with the number of logical partitions only.
    pub fn verify(&self, snapshot: &Snapshot, schema: &Schema) -> Result<Verification, OpError> {
        let mut report = Verification::default();
        let mut sizes = HashMap::<Epk, LogicalSize>::new();
        let (mut index_entries, mut failure) = (0, None);
        let view = View::new(self, snapshot, self.lsn());
        view.scan(&self.spec.range, None, |key, item| {
            report.items += 1;
            report.bytes += u64::from(item.header.json_bytes);
            let size = sizes.entry(key.epk.clone()).or_default();
            size.bytes += u64::from(item.header.json_bytes);
            size.items += 1;
            match self.verify_item(snapshot, schema, &key, &item, &mut report) {
                Ok(entries) => {
                    index_entries += entries;
                    Scan::Continue
                }
                Err(error) => {
                    failure = Some(error);
                    Scan::Stop
                }
            }
        })?;
        failure.map_or(Ok(()), |error| Err(OpError::Damaged(error.to_string())))?;
        let derived = self.verify_totals(snapshot, &sizes, index_entries, &mut report);
        derived.map_err(|error| OpError::Damaged(error.to_string()))?;
        report.logical_partitions = sizes.len() as u64;
        Ok(report)
    }

    /// The feed entry and the index terms of one item; returns how many index entries it has.
    fn verify_item(
        &self,
        snapshot: &Snapshot,
        schema: &Schema,
        key: &ItemKey,
        item: &Item,
        report: &mut Verification,
    ) -> Result<u64, EngineError> {
        if item.header.lsn > self.lsn() {
            report.find(|| {
                format!(
                    "{}: written at {:?}, but the partition is at {:?}",
                    key.id,
                    item.header.lsn,
                    self.lsn()
                )
            });
        }
        let feed = snapshot
            .get(Keyspace::Feed, &keys::feed(self.spec.number, item.header.lsn.0, item.header.place))?;
        let expected = &keys::item(self.spec.container, key)[4..];
        if feed.as_deref() != Some(expected) {
            report.find(|| format!("{}: its feed entry is missing or names another item", key.id));
        }
        let terms = item_index_keys(self.spec.generation, key, item, schema);
        for term in &terms {
            if !snapshot.contains(Keyspace::Index, term)? {
                report.find(|| format!("{}: an index term is missing", key.id));
            }
        }
        Ok(terms.len() as u64)
    }

    fn verify_totals(
        &self,
        snapshot: &Snapshot,
        sizes: &HashMap<Epk, LogicalSize>,
        index_entries: u64,
        report: &mut Verification,
    ) -> Result<(), EngineError> {
        let state = self.state();
        if (state.items, state.bytes) != (report.items, report.bytes) {
            let found = (report.items, report.bytes);
            report.find(|| {
                format!("items and bytes are {found:?}, accounted {:?}", (state.items, state.bytes))
            });
        }
        for (epk, size) in sizes {
            let stored = snapshot.get(Keyspace::Meta, &keys::logical_size(self.spec.container, epk))?;
            let stored = stored.as_ref().and_then(LogicalSize::decode).unwrap_or_default();
            if (stored.bytes, stored.items) != (size.bytes, size.items) {
                report.find(|| format!("logical partition {epk}: {size:?}, accounted {stored:?}"));
            }
        }
        let feed = count(snapshot, Keyspace::Feed, &self.spec.number.to_be_bytes())?;
        if feed != report.items {
            report.find(|| format!("{feed} feed entries do not fit the items"));
        }
        let index = count(snapshot, Keyspace::Index, &self.spec.generation.to_be_bytes())?;
        if index != index_entries {
            report.find(|| format!("{index} index entries, {index_entries} expected"));
        }
        Ok(())
    }
}

fn count(snapshot: &Snapshot, keyspace: Keyspace, prefix: &[u8]) -> Result<u64, EngineError> {
    let upper = keys::after_prefix(prefix);
    let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    snapshot
        .keys(keyspace, Bound::Included(prefix), upper, false)
        .try_fold(0, |sum, key| key.map(|_| sum + 1))
}
