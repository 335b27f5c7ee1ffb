//! What the metrics page shows.

use std::sync::atomic::Ordering;

use orrery_store::engine::EngineStats;

use crate::db::Db;
use crate::insight::AlertKind;
use crate::memory::{Consumer, MemoryUse};
use crate::rid::Rid;

pub struct Stats {
    pub engine: EngineStats,
    pub commit_groups: u64,
    pub commit_batches: u64,
    pub commit_refused: u64,
    pub ranges: Vec<RangeStats>,
    pub alerts: Vec<AlertStats>,
    /// The budget, and how each of its consumers stands.
    pub memory_bytes: u64,
    pub memory: [MemoryUse; Consumer::COUNT],
}

/// Alerts of one kind.
pub struct AlertStats {
    pub kind: AlertKind,
    pub current: usize,
    pub raised: u64,
}

/// One physical partition.
pub struct RangeStats {
    pub database: String,
    pub container: String,
    /// For readers who must not know the names.
    pub container_rid: Rid,
    pub range_id: u32,
    pub items: u64,
    pub bytes: u64,
    pub lsn: u64,
    pub requests: u64,
    /// RU/s that it may use; zero means any.
    pub throughput: f64,
    /// Of the last ten seconds.
    pub units_per_second: f64,
    pub largest_logical_bytes: u64,
    /// The most RU that any second used.
    pub units_per_second_highest: f64,
    pub units_total: f64,
    pub throttled: u64,
    pub writes_near_limit: u64,
    pub writes_over_limit: u64,
    pub items_expired: u64,
}

impl Db {
    pub fn stats(&self) -> Stats {
        let counters = &self.inner.committer.counters;
        let catalog = self.catalog();
        let second = self.insight_second();
        let ranges = catalog.containers().flat_map(|container| {
            container.led().map(|(range, lead)| {
                let state = range.replica.partition.state();
                let usage = lead.budget.usage();
                RangeStats {
                    database: container.database_id.clone(),
                    container: container.resource.id.clone(),
                    container_rid: container.resource.rid,
                    range_id: range.descriptor.id,
                    items: state.items,
                    bytes: state.bytes,
                    lsn: state.lsn.0,
                    requests: lead.insight.totals().requests,
                    throughput: lead.budget.rate(),
                    units_per_second: lead.insight.units_per_second(second),
                    largest_logical_bytes: lead.insight.largest_bytes(),
                    units_per_second_highest: usage.highest,
                    units_total: usage.total,
                    throttled: usage.throttled,
                    writes_near_limit: lead.counters.writes_near_limit.load(Ordering::Relaxed),
                    writes_over_limit: lead.counters.writes_over_limit.load(Ordering::Relaxed),
                    items_expired: lead.counters.items_expired.load(Ordering::Relaxed),
                }
            })
        });
        let engine = self.inner.committer.engine().stats();
        Stats {
            memory_bytes: self.inner.memory.shares().budget,
            memory: self.memory_use(&engine),
            engine,
            commit_groups: counters.groups.load(Ordering::Relaxed),
            commit_batches: counters.batches.load(Ordering::Relaxed),
            commit_refused: counters.refused.load(Ordering::Relaxed),
            ranges: ranges.collect(),
            alerts: self.alert_stats(),
        }
    }

    /// The engine keeps to its shares by itself, so it is asked.
    fn memory_use(&self, engine: &EngineStats) -> [MemoryUse; Consumer::COUNT] {
        self.inner.memory.usage().map(|usage| {
            let used_bytes = match usage.consumer {
                Consumer::WriteBuffers => engine.memtable_bytes,
                Consumer::Cache => engine.cache_bytes,
                _ => return usage,
            };
            MemoryUse { used_bytes, highest_bytes: used_bytes.max(usage.highest_bytes), ..usage }
        })
    }

    fn alert_stats(&self) -> Vec<AlertStats> {
        let current = self.alerts();
        let of_kind = |kind: AlertKind| AlertStats {
            kind,
            current: current.iter().filter(|alert| alert.kind == kind).count(),
            raised: self.alerts_raised(kind),
        };
        AlertKind::ALL.into_iter().map(of_kind).collect()
    }
}
