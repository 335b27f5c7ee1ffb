//! Who splits and merges without being asked.
//!
//! A partition splits when it holds more than it may, and when its container is provisioned with more than its partitions
//! can give. Neighbours merge when for some time they have been provisioned with a small part of what they could give.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_store::limits::SPLIT_CHILDREN_MAX;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::task::JoinHandle;

use crate::catalog::{Catalog, Container};
use crate::db::Db;
use crate::offer;
use crate::rid::Rid;
use crate::world::World;

/// How long a partition may be too large before the balancer looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// Partitions are too many when they are provisioned with less than this part of what they could give.
const COLD_PART: u32 = 10;

/// One change of ranges at a time, and the task that decides on splits and merges.
#[derive(Default)]
pub(crate) struct Balance {
    turn: Mutex<()>,
    wake: Notify,
}

/// A container that has too many partitions.
struct Cold {
    since: Instant,
    /// Answers whether two were merged.
    merge: Option<JoinHandle<bool>>,
}

impl Cold {
    fn is_merging(&self) -> bool {
        self.merge.as_ref().is_some_and(|merge| !merge.is_finished())
    }

    /// After a merge that came to nothing some time passes before the next.
    async fn settle(&mut self, world: &World) {
        if let Some(merge) = self.merge.take()
            && !merge.await.unwrap_or(false)
        {
            self.since = world.monotonic();
        }
    }
}

impl Balance {
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

impl Db {
    /// Has the task look now instead of some seconds later.
    pub fn rebalance_later(&self) {
        self.inner.balance.wake.notify_one();
    }

    /// Starts the task; it ends with the database.
    pub(crate) fn balance_later(&self) {
        let (inner, balance) = (Arc::downgrade(&self.inner), self.inner.balance.clone());
        let world = self.world().clone();
        self.world().spawn(async move {
            let mut known = HashMap::new();
            loop {
                let _ = world.timeout(INTERVAL, balance.wake.notified()).await;
                let Some(db) = Db::alive(&inner) else { return };
                db.rebalance(&mut known).await;
            }
        });
    }

    /// Looks at every container once.
    async fn rebalance(&self, known: &mut HashMap<Rid, Cold>) {
        let catalog = self.catalog();
        for container in catalog.containers() {
            while let Some((range, children)) = self.next_split(container) {
                if let Err(error) = self.split(container, range, children).await {
                    tracing::warn!(range, error = %error.kind, "a partition could not be split");
                    break;
                }
            }
        }
        let cold: Vec<_> =
            catalog.containers().filter(|container| self.is_cold(&catalog, container)).collect();
        let is_cold = |rid: &Rid| cold.iter().any(|container| container.resource.rid == *rid);
        known.retain(|rid, cold| is_cold(rid) || cold.is_merging());
        for container in cold {
            let rid = container.resource.rid;
            let since = self.world().monotonic();
            let cold = known.entry(rid).or_insert(Cold { since, merge: None });
            if cold.is_merging() {
                continue;
            }
            cold.settle(self.world()).await;
            if self.world().since(cold.since) < self.inner.options.limits.merge_after {
                continue;
            }
            // It builds an index, and a range that has to split meanwhile cannot wait for that.
            cold.merge = coldest_pair(container).map(|pair| self.merge_later(container, pair));
        }
    }

    fn merge_later(&self, container: &Arc<Container>, (left, right): (u32, u32)) -> JoinHandle<bool> {
        let (db, container) = (self.clone(), container.clone());
        self.world().spawn(async move {
            let merged = db.merge(&container, left, right).await;
            if let Err(error) = &merged {
                tracing::warn!(left, right, error = %error.kind, "two partitions could not be merged");
            }
            merged.is_ok()
        })
    }

    /// The range that is to be split next, and into how many.
    fn next_split(&self, container: &Container) -> Option<(u32, u32)> {
        let catalog = self.catalog();
        let container = catalog.container_by_rid(container.resource.rid)?;
        let limits = &self.inner.options.limits;
        let bytes = |range: &Arc<crate::range::Range>| range.replica.partition.state().bytes;
        let largest =
            container.ranges.iter().max_by_key(|range| (bytes(range), range.replica.partition.lsn()))?;
        let is_full = |range: &&Arc<crate::range::Range>| {
            bytes(range) > limits.partition_bytes
                && range.replica.partition.holds_several(&self.inner.committer.snapshot_owned())
        };
        if let Some(full) = container.ranges.iter().find(is_full) {
            return Some((full.descriptor.id, 2));
        }
        let offer = catalog.offer_of(container.resource.rid)?;
        let needed = offer::least_partitions(offer.throughput.ceiling(), limits);
        let there = container.ranges.len() as u32;
        if needed <= there {
            return None;
        }
        // All of them in turn, each into as many as bring the whole to what is needed.
        let missing = needed - there;
        let children = (missing.div_ceil(there) + 1).min(missing + 1).clamp(2, SPLIT_CHILDREN_MAX);
        let oldest = container.ranges.iter().min_by_key(|range| range.descriptor.parents.len())?;
        let choice = if bytes(largest) > 0 { largest } else { oldest };
        Some((choice.descriptor.id, children))
    }

    fn is_cold(&self, catalog: &Catalog, container: &Container) -> bool {
        let limits = &self.inner.options.limits;
        let Some(offer) = catalog.offer_of(container.resource.rid) else { return false };
        let there = container.ranges.len() as u32;
        let given = offer.throughput.ceiling();
        let first = offer::initial_partitions(given, limits);
        // What came with the container stays: nobody asked for fewer.
        there > first
            && container.ranges.iter().all(|range| !range.descriptor.parents.is_empty())
            && given < there * (limits.partition_throughput / COLD_PART)
            && container.definition.retention().is_none()
            && coldest_pair(container).is_some_and(|pair| self.fits_one(container, pair))
    }

    fn fits_one(&self, container: &Container, (left, right): (u32, u32)) -> bool {
        let bytes = |id| container.range_by_id(id).map_or(0, |range| range.replica.partition.state().bytes);
        bytes(left) + bytes(right) < self.inner.options.limits.partition_bytes / 2
    }
}

/// The two neighbours that hold least.
fn coldest_pair(container: &Container) -> Option<(u32, u32)> {
    let bytes = |pair: &&[Arc<crate::range::Range>]| -> u64 {
        pair.iter().map(|range| range.replica.partition.state().bytes).sum()
    };
    container.ranges.windows(2).min_by_key(bytes).map(|pair| (pair[0].descriptor.id, pair[1].descriptor.id))
}
