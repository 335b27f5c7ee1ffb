//! Erasing what dropped containers and replaced indexes left behind, in small steps, also across restarts.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use orrery_store::engine::{Batch, Keyspace};
use orrery_store::keys;

use super::Container;
use super::load::Unfinished;
use super::record::{DroppedRecord, Record, RetiredRecord};
use crate::committer::CommitError;
use crate::db::Db;
use crate::error::ErrorKind;
use crate::range::{Range, WriteError};

/// Keys that one step erases; small enough that writers do not notice.
const KEYS_PER_STEP: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(20);
/// Before trying again on a full disk.
const PAUSE_FULL: Duration = Duration::from_millis(500);

impl Db {
    /// Closes the ranges of a dropped container, waits until they are quiet, then erases their keys.
    pub(super) fn purge_later(&self, container: &Arc<Container>) {
        container.ranges.iter().for_each(|range| range.close(&self.inner.committer));
        let (db, container) = (self.clone(), container.clone());
        let record = super::changes::dropped(&container);
        self.world().spawn(async move {
            while !container.ranges.iter().all(|range| range.is_quiet()) {
                db.world().sleep(PAUSE).await;
            }
            db.purge(record).await;
        });
    }

    /// Goes on with what a restart interrupted.
    pub(crate) fn resume_purges(&self, unfinished: Unfinished) {
        for record in unfinished.dropped {
            let db = self.clone();
            self.world().spawn(async move { db.purge(record).await });
        }
        let db = self.clone();
        self.world().spawn(async move {
            for record in unfinished.retired {
                db.erase_index(record).await;
            }
        });
    }

    /// Erases indexes that no schema names any more, once nobody writes to them.
    pub(super) fn erase_indexes_later(&self, container: &Arc<Container>, retired: Vec<RetiredRecord>) {
        if retired.is_empty() {
            return;
        }
        let (db, container) = (self.clone(), container.clone());
        self.world().spawn(async move {
            if !db.wait_until_all_settled(&container).await {
                return;
            }
            for record in retired {
                db.erase_index(record).await;
            }
        });
    }

    /// Erases the states of partitions that others have succeeded. Their sequences stay: successors read them.
    pub(super) fn forget_later(&self, partitions: Vec<u32>) {
        let db = self.clone();
        self.world().spawn(async move {
            for (keyspace, prefix) in partitions.into_iter().flat_map(state_prefixes) {
                if db.erase(keyspace, &prefix).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Waits for all groups that may be under way with an older schema; false when the server stops.
    pub(super) async fn wait_until_all_settled(&self, container: &Container) -> bool {
        for range in &container.ranges {
            if !self.wait_until_settled(range).await {
                return false;
            }
        }
        true
    }

    /// Waits for the group that may be under way with an older schema; false when the server stops.
    async fn wait_until_settled(&self, range: &Arc<Range>) -> bool {
        loop {
            match range.settle(&self.inner.committer).await {
                Err(WriteError::Unwritten(kind)) if kind.is_stopping() => return false,
                Err(WriteError::Unwritten(ErrorKind::RangeGone)) if range.is_quiet() => return true,
                Err(_) => self.world().sleep(PAUSE).await,
                Ok(_) => return true,
            }
        }
    }

    async fn erase_index(&self, record: RetiredRecord) {
        let mut prefixes = vec![(Keyspace::Index, record.generation.to_be_bytes().to_vec())];
        let counts = |partition: &u32| (Keyspace::Meta, keys::path_counts(*partition, record.generation));
        prefixes.extend(record.partitions.iter().map(counts));
        self.erase_all(prefixes, Record::Retired(record)).await;
    }

    async fn purge(&self, record: DroppedRecord) {
        let container = record.number.to_be_bytes();
        let mut sizes = vec![b'S'];
        sizes.extend_from_slice(&container);
        let mut prefixes = vec![(Keyspace::Item, container.to_vec()), (Keyspace::Meta, sizes)];
        for partition in &record.partitions {
            prefixes.push((Keyspace::Feed, partition.to_be_bytes().to_vec()));
            prefixes.push((Keyspace::Feed, keys::history_of(*partition).to_vec()));
            prefixes.push((Keyspace::Feed, keys::conflicts_of(*partition).to_vec()));
            prefixes.extend(state_prefixes(*partition));
        }
        for generation in &record.generations {
            prefixes.push((Keyspace::Index, generation.to_be_bytes().to_vec()));
        }
        self.erase_all(prefixes, Record::Dropped(record)).await;
    }

    /// Erases everything under the prefixes, and then the record that asked for it.
    async fn erase_all(&self, prefixes: Vec<(Keyspace, Vec<u8>)>, record: Record) {
        for (keyspace, prefix) in prefixes {
            if self.erase(keyspace, &prefix).await.is_err() {
                // The record stays, so the next start goes on from here.
                return;
            }
        }
        let mut counters = self.inner.control.lock().await;
        let next = counters.clone();
        if let Err(error) = self.store(&mut counters, next, &[], &[record.id()]).await {
            tracing::warn!(error = %error.kind, "a finished purge could not be recorded");
        }
    }

    /// Erases what starts with `prefix`; nobody writes there any more.
    async fn erase(&self, keyspace: Keyspace, prefix: &[u8]) -> Result<(), CommitError> {
        let upper = keys::after_prefix(prefix);
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        // Each step goes on behind the last: what it deleted is still in the engine's way for a while.
        let mut from = Bound::Included(Bytes::copy_from_slice(prefix));
        loop {
            let snapshot = self.inner.committer.snapshot_owned();
            let lower = from.as_ref().map(Bytes::as_ref);
            let (mut batch, mut last) = (Batch::new(), None);
            for key in snapshot.keys(keyspace, lower, upper, false).take(KEYS_PER_STEP) {
                let key = key.map_err(|error| {
                    tracing::error!(%error, "what is to be erased could not be read");
                    CommitError::Stopping
                })?;
                batch.delete(keyspace, key.clone());
                last = Some(key);
            }
            drop(snapshot);
            batch.set_frees(true);
            let Some(last) = last else { return Ok(()) };
            let pause = match self.inner.committer.commit(batch).await {
                Ok(()) => {
                    from = Bound::Excluded(last);
                    PAUSE
                }
                // Erasing is what makes room again, so it must not give up.
                Err(CommitError::DiskFull) => PAUSE_FULL,
                Err(CommitError::Stopping) => return Err(CommitError::Stopping),
            };
            self.world().sleep(pause).await;
        }
    }
}

/// What a partition keeps besides its sequences.
fn state_prefixes(partition: u32) -> [(Keyspace, Vec<u8>); 5] {
    [
        (Keyspace::Meta, keys::partition_state(partition).to_vec()),
        (Keyspace::Meta, keys::build(partition).to_vec()),
        (Keyspace::Meta, keys::history_bounds(partition).to_vec()),
        (Keyspace::Meta, keys::schema_mark(partition).to_vec()),
        (Keyspace::Meta, keys::path_counts_of_all(partition)),
    ]
}
