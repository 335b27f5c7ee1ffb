//! Merging two neighbouring physical partitions while they are in use.
//!
//! Two partitions have two indexes. Both build their part of a third one, as they would for a changed policy; when it is
//! complete, writers pause for a moment, and one partition takes the place of the two.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::EpkRange;

use crate::catalog::{Container, RangeIndexRecord, Succession};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::range::Range;
use crate::resource::ResourceKind;

/// How long to wait for indexes that are being built.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

impl Db {
    /// Makes one range of two that lie side by side; returns its id.
    pub async fn merge(&self, container: &Arc<Container>, left: u32, right: u32) -> Result<u32> {
        let container = container.clone();
        self.carry(move |db| async move { db.merge_ranges(&container, left, right).await }).await
    }

    async fn merge_ranges(&self, container: &Arc<Container>, left: u32, right: u32) -> Result<u32> {
        let _alone = self.inner.balance.turn().await;
        let rid = container.resource.rid;
        let container = self.await_indexes(container).await?;
        let pair = self.neighbours(&container, left, right)?;
        let ids = [pair[0].id, pair[1].id];
        let generation = self.set_merging(rid, ids, true).await?;
        let merged = self.build_and_merge(&pair, &container, generation).await;
        match &merged {
            Ok(id) => tracing::info!(
                database = container.database_id,
                container = container.resource.id,
                left,
                right,
                child = id,
                "two partitions were merged"
            ),
            Err(_) => {
                pair.iter().for_each(|range| range.release(&self.inner.committer));
                // Without the mark they are as they were; if it cannot be taken away now, the next start will.
                let _ = self.set_merging(rid, ids, false).await;
            }
        }
        merged
    }

    /// Ends merges that a restart interrupted.
    pub(crate) fn abandon_merges_later(&self) {
        let db = self.clone();
        tokio::spawn(async move {
            for container in db.catalog().containers() {
                let is_merging = |range: &&Arc<Range>| {
                    range.schema.load().building.as_ref().is_some_and(|index| index.is_shared)
                };
                for range in container.ranges.iter().filter(is_merging) {
                    let _ = db.set_merging(container.resource.rid, [range.id; 2], false).await;
                }
            }
        });
    }

    /// Waits until no index of the container is being built.
    async fn await_indexes(&self, container: &Container) -> Result<Arc<Container>> {
        let began = Instant::now();
        loop {
            let current = self.catalog().container_by_rid(container.resource.rid).cloned();
            let current = current.ok_or(ErrorKind::NotFound(ResourceKind::Container))?;
            if current.builds().is_empty() {
                return Ok(current);
            }
            if began.elapsed() > PATIENCE {
                return Err(ErrorKind::Overloaded.into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn neighbours(&self, container: &Container, left: u32, right: u32) -> Result<[Arc<Range>; 2]> {
        let range = |id| container.range_by_id(id).cloned().ok_or(ErrorKind::RangeGone);
        let mut pair = [range(left)?, range(right)?];
        pair.sort_by(|a, b| a.epk().min.cmp(&b.epk().min));
        if pair[0].epk().max != pair[1].epk().min {
            return Err(Error::invalid("Only partitions that lie side by side in the key space are merged."));
        }
        if pair.iter().any(|range| range.schema.load().keeps_history) {
            return Err(ErrorKind::Unsupported("Merging partitions that keep all versions").into());
        }
        if pair.iter().any(|range| range.partition.history().is_some()) {
            return Err(ErrorKind::Overloaded.into());
        }
        let bytes = pair.iter().map(|range| range.partition.state().bytes).sum::<u64>();
        if bytes > self.inner.options.limits.partition_bytes {
            return Err(Error::invalid("The two partitions hold more than one may."));
        }
        Ok(pair)
    }

    async fn build_and_merge(
        &self,
        pair: &[Arc<Range>; 2],
        container: &Container,
        generation: u32,
    ) -> Result<u32> {
        for range in pair {
            if !self.build_range(range, generation).await {
                return Err(ErrorKind::Overloaded.into());
            }
        }
        let mut counters = self.inner.control.lock().await;
        let reserved = self.reserve(&mut counters, 1).await?;
        let rid = container.resource.rid;
        let container = self.catalog().container_by_rid(rid).cloned().ok_or(ErrorKind::RangeGone)?;
        for range in pair {
            range.hold().await;
            let schema = range.schema.load();
            // A policy that was replaced meanwhile wants other indexes.
            let is_built = schema.building.as_ref().is_some_and(|index| index.generation == generation);
            // What is left of a history is known by the partition only, and nobody else would ever erase it.
            if !is_built || schema.keeps_history || range.partition.history().is_some() {
                return Err(ErrorKind::Overloaded.into());
            }
        }
        let whole = EpkRange { min: pair[0].epk().min.clone(), max: pair[1].epk().max.clone() };
        let spec = Succession::child(&container, pair, 0, whole, &reserved);
        let index = RangeIndexRecord {
            id: spec.rid_prefix,
            active: generation,
            building: None,
            borrowed: false,
            merging: false,
        };
        let snapshot = self.inner.committer.snapshot_owned();
        let states = tokio::task::block_in_place(|| {
            orrery_store::merge([&pair[0].partition, &pair[1].partition], &snapshot, generation, &spec)
        });
        let states = states.map_err(|error| ErrorKind::Op { place: 0, error })?;
        let id = spec.rid_prefix;
        let succession = Succession { old: pair.to_vec(), new: vec![(spec, index)] };
        self.succeed(&mut counters, rid, succession, states).await?;
        Ok(id)
    }
}
