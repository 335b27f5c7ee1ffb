//! Merging two neighbouring physical partitions while they are in use.
//!
//! Two partitions have two indexes. Both build their part of a third one, as they would for a changed policy; when it is
//! complete, writers pause for a moment, and one partition takes the place of the two.
//!
//! Building takes its time, and nobody waits for it. A range that is marked as merging enters no other merge; when it
//! splits, or when its container's policy changes or the container goes, the merge ends without a result.

use std::sync::Arc;
use std::time::Duration;

use orrery_doc::EpkRange;
use orrery_store::PartitionSpec;

use crate::catalog::{Container, Counters, RangeIndexRecord, Succession};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::range::Range;
use crate::resource::ResourceKind;
use crate::rid::Rid;

/// How long to wait for indexes that are being built.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the two may take to build theirs.
const BUILD_PATIENCE: Duration = Duration::from_secs(60 * 60);
const PAUSE: Duration = Duration::from_millis(10);

impl Db {
    /// Makes one range of two that lie side by side; returns its id.
    pub async fn merge(&self, container: &Arc<Container>, left: u32, right: u32) -> Result<u32> {
        let container = container.clone();
        self.carry(move |db| async move { db.merge_ranges(&container, left, right).await }).await
    }

    async fn merge_ranges(&self, container: &Arc<Container>, left: u32, right: u32) -> Result<u32> {
        let rid = container.resource.rid;
        self.await_indexes(rid).await?;
        let (pair, generation) = self.begin_merge(rid, left, right).await?;
        let merged = match self.build_both(&pair, generation).await {
            true => self.end_merge(rid, &pair, generation).await,
            false => Err(ErrorKind::Overloaded.into()),
        };
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
                // Without the mark they are as they were; if it cannot be taken away now, the next start will.
                let _ = self.set_merging(rid, [pair[0].descriptor.id, pair[1].descriptor.id], false).await;
            }
        }
        merged
    }

    /// Ends merges that a restart interrupted.
    pub(crate) fn abandon_merges_later(&self) {
        let db = self.clone();
        self.world().spawn(async move {
            for container in db.catalog().containers() {
                let is_merging = |range: &&Arc<Range>| {
                    range.replica.schema.load().building.as_ref().is_some_and(|index| index.is_shared)
                };
                for range in container.ranges.iter().filter(is_merging) {
                    let _ = db.set_merging(container.resource.rid, [range.descriptor.id; 2], false).await;
                }
            }
        });
    }

    /// Waits until no index of the container is being built.
    async fn await_indexes(&self, container: Rid) -> Result<()> {
        let began = self.world().monotonic();
        loop {
            let current = self.catalog().container_by_rid(container).cloned();
            let current = current.ok_or(ErrorKind::NotFound(ResourceKind::Container))?;
            if current.builds().is_empty() {
                return Ok(());
            }
            if self.world().since(began) > PATIENCE {
                return Err(ErrorKind::Overloaded.into());
            }
            self.world().sleep(PAUSE).await;
        }
    }

    fn neighbours(&self, container: &Container, left: u32, right: u32) -> Result<[Arc<Range>; 2]> {
        let range = |id| container.range_by_id(id).cloned().ok_or(ErrorKind::RangeGone);
        let mut pair = [range(left)?, range(right)?];
        pair.sort_by(|a, b| a.epk().min.cmp(&b.epk().min));
        if pair[0].epk().max != pair[1].epk().min {
            return Err(Error::invalid("Only partitions that lie side by side in the key space are merged."));
        }
        if pair.iter().any(|range| range.replica.schema.load().keeps_history) {
            return Err(ErrorKind::Unsupported("Merging partitions that keep all versions").into());
        }
        if pair.iter().any(|range| range.replica.partition.history().is_some()) {
            return Err(ErrorKind::Overloaded.into());
        }
        let bytes = pair.iter().map(|range| range.replica.partition.state().bytes).sum::<u64>();
        if bytes > self.inner.options.limits.partition_bytes {
            return Err(Error::invalid("The two partitions hold more than one may."));
        }
        Ok(pair)
    }

    /// Marks two neighbours as merging; answers with the generation of the index that both are to build.
    async fn begin_merge(&self, rid: Rid, left: u32, right: u32) -> Result<([Arc<Range>; 2], u32)> {
        let _alone = self.inner.balance.turn().await;
        let container = self.catalog().container_by_rid(rid).cloned();
        let container = container.ok_or(ErrorKind::NotFound(ResourceKind::Container))?;
        let pair = self.neighbours(&container, left, right)?;
        let generation = self.set_merging(rid, [pair[0].descriptor.id, pair[1].descriptor.id], true).await?;
        Ok((pair, generation))
    }

    /// False when there is no use in going on. Others split, merge and cut over meanwhile.
    async fn build_both(&self, pair: &[Arc<Range>; 2], generation: u32) -> bool {
        let build = async {
            let Ok(_permit) = self.inner.index_builds.acquire().await else { return false };
            self.build_range(&pair[0], generation).await && self.build_range(&pair[1], generation).await
        };
        self.world().timeout(BUILD_PATIENCE, build).await.unwrap_or(false)
    }

    /// The moment in which nobody writes to the two.
    async fn end_merge(&self, rid: Rid, pair: &[Arc<Range>; 2], generation: u32) -> Result<u32> {
        let _alone = self.inner.balance.turn().await;
        let mut counters = self.inner.control.lock().await;
        let container = self.catalog().container_by_rid(rid).cloned().ok_or(ErrorKind::RangeGone)?;
        let is_there = |range: &Arc<Range>| {
            container.range_by_id(range.descriptor.id).is_some_and(|current| Arc::ptr_eq(current, range))
        };
        // Who has split meanwhile has handed over its queue, and nobody may hold or release it.
        if !pair.iter().all(is_there) {
            return Err(ErrorKind::RangeGone.into());
        }
        let reserved = self.reserve(&mut counters, 1).await?;
        for range in pair {
            range.hold().await?;
        }
        let whole = EpkRange { min: pair[0].epk().min.clone(), max: pair[1].epk().max.clone() };
        let spec = Succession::child(&container, pair, 0, whole, &reserved);
        let merged = self.succeed_pair(&mut counters, rid, pair, generation, spec).await;
        if merged.is_err() {
            pair.iter().for_each(|range| range.release(&self.inner.committer));
        }
        merged
    }

    /// Puts one range into the place of two that are held.
    async fn succeed_pair(
        &self,
        counters: &mut Counters,
        container: Rid,
        pair: &[Arc<Range>; 2],
        generation: u32,
        spec: PartitionSpec,
    ) -> Result<u32> {
        for range in pair {
            let schema = range.replica.schema.load();
            // A policy that was replaced meanwhile wants other indexes.
            let is_built = schema.building.as_ref().is_some_and(|index| index.generation == generation);
            // What is left of a history is known by the partition only, and nobody else would ever erase it.
            if !is_built || schema.keeps_history || range.replica.partition.history().is_some() {
                return Err(ErrorKind::Overloaded.into());
            }
        }
        let index = RangeIndexRecord {
            id: spec.rid_prefix,
            active: generation,
            building: None,
            borrowed: false,
            merging: false,
        };
        let snapshot = self.inner.committer.snapshot_owned();
        let states = self.world().blocking(|| {
            orrery_store::merge(
                [&pair[0].replica.partition, &pair[1].replica.partition],
                &snapshot,
                generation,
                &spec,
            )
        });
        let states = states.map_err(ErrorKind::from)?;
        let id = spec.rid_prefix;
        let succession = Succession { old: pair.to_vec(), new: vec![(spec, index)] };
        self.succeed(counters, container, succession, states).await?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
