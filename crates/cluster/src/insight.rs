//! What partitions hold and use, for those who look after them.
//!
//! ```text
//!   a request ──▶ counters (atomics of its partition) ──once a second──▶ rings: 60 s, 60 min, 24 h
//!             └─▶ sketch of keys (a sample when busy)  ──once a minute──▶ minute, hour, day
//!   a write   ──▶ largest logical partitions (exact sizes)
//! ```
//!
//! The path of requests does nothing but add: no clock, no allocation unless a key is new to the sketch. A task turns
//! sums into history every second and looks whether an alert must be raised. All of it lives in memory and starts
//! anew with the server. Each level has a fixed size, so the whole has one: see [`history::HISTORIES_MAX`].

mod alerts;
mod counters;
mod history;
mod largest;
mod look_up;
mod observe;
mod place;
mod recorder;
mod report;
mod sketch;
mod windows;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::db::{Db, Inner};
use crate::rid::Rid;

pub use alerts::{Alert, AlertEvent, AlertKind, AlertSettings};
pub use counters::RangeInsight;
pub use place::BUCKETS;
pub use recorder::{KnownPath, Operations, Recorded, Recording, Touch, Touched};
pub use report::{
    ContainerInsight, HeatRows, HotBy, HotPartitionKey, LargePartitionKey, PartitionInsight, Use,
};
pub use sketch::Window;
pub use windows::{Cell, Slot};

use alerts::Alerts;
use history::Observed;
use recorder::Recorder;

/// What is known about all partitions.
#[derive(Default)]
pub struct Insight {
    containers: Mutex<HashMap<Rid, Observed>>,
    alerts: Alerts,
    recorder: Recorder,
    settings: ArcSwap<AlertSettings>,
    /// The second up to which everything is counted, since 1970.
    second: AtomicU64,
}

impl Db {
    /// Starts the task that counts seconds; it ends with the database.
    pub(crate) fn observe_partitions_later(&self) {
        let inner = Arc::downgrade(&self.inner);
        let world = self.world().clone();
        self.inner.insight.second.store(world.unix_time().as_secs(), Relaxed);
        self.world().spawn(async move {
            loop {
                let part = Duration::from_nanos(u64::from(world.unix_time().subsec_nanos()));
                world.sleep(Duration::from_secs(1).saturating_sub(part)).await;
                let Some(inner) = inner.upgrade() else { return };
                end_second(&inner, world.unix_time().as_secs());
            }
        });
    }

    /// The second up to which everything is counted, since 1970.
    pub(crate) fn insight_second(&self) -> u64 {
        self.inner.insight.second.load(Relaxed)
    }

    /// From now on alerts are raised by these rules.
    pub fn set_alerts(&self, settings: AlertSettings) {
        self.inner.insight.settings.store(Arc::new(settings));
    }

    /// Switches the accounting of all databases of this process, for benchmarks that measure its cost.
    pub fn switch_insight(on: bool) {
        counters::switch(on);
    }

    /// Alerts whose conditions hold, or have just held.
    pub fn alerts(&self) -> Vec<Alert> {
        self.inner.insight.alerts.list()
    }

    pub fn alerts_raised(&self, kind: AlertKind) -> u64 {
        self.inner.insight.alerts.raised_total(kind)
    }

    /// Tells of alerts from now on; who listens too slowly misses some.
    pub fn alert_events(&self) -> broadcast::Receiver<AlertEvent> {
        self.inner.insight.alerts.listen()
    }
}

/// Counts what happened in the seconds before this one.
fn end_second(inner: &Inner, now: u64) {
    let insight = &inner.insight;
    if now <= insight.second.load(Relaxed) {
        return;
    }
    let (settings, limit) = (**insight.settings.load(), inner.options.limits.logical_partition_bytes);
    let catalog = inner.catalog.load();
    let mut containers = insight.containers.lock();
    let mut histories = 0;
    for container in catalog.containers() {
        let rid = container.resource.rid;
        if !containers.contains_key(&rid) && !history::is_used(container) {
            continue;
        }
        let observed = containers.entry(rid).or_default();
        observed.end_second(container, now - 1, &mut histories);
        insight.alerts.examine(container, &settings, limit, now);
    }
    containers.retain(|rid, _| catalog.container_by_rid(*rid).is_some());
    drop(containers);
    insight.second.store(now, Relaxed);
    insight.alerts.end_second(now);
}

#[cfg(test)]
mod tests;
