//! What an operator should know before users notice: a logical partition that will soon be full, a physical one that
//! does most of the work, requests that are refused.
//!
//! Conditions are looked at once a second. An alert is raised when its condition holds and is over when the condition
//! has not held for a minute, so that a condition which comes and goes is told once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::windows::Slot;
use crate::catalog::Container;
use crate::rid::Rid;

/// Alerts that can be raised at the same time.
const ALERTS_MAX: usize = 1_000;
/// Seconds that conditions look back, and after which an alert is over.
pub const LOOKED_BACK: usize = 10;
const OVER_AFTER: u64 = 60;
/// Refused requests in that time below which nobody is told.
const THROTTLED_MIN: u32 = 10;
/// How many times the mean of its container's partitions a hot one does at least.
const HOT_TIMES_MEAN: f64 = 2.0;
/// Events that a listener may be late by.
const EVENTS_WAITING: usize = 256;

/// When to raise which alert, in percent; zero never does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlertSettings {
    /// Of the size that a logical partition may have.
    pub logical_partition_percent: f64,
    /// Of the throughput of a partition that does more than its share.
    pub hot_partition_percent: f64,
    /// Of all requests to a partition.
    pub throttled_percent: f64,
}

impl Default for AlertSettings {
    fn default() -> AlertSettings {
        AlertSettings { logical_partition_percent: 80.0, hot_partition_percent: 80.0, throttled_percent: 5.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertKind {
    LogicalPartitionNearLimit,
    HotPartition,
    Throttling,
}

impl AlertKind {
    pub const ALL: [AlertKind; 3] =
        [AlertKind::LogicalPartitionNearLimit, AlertKind::HotPartition, AlertKind::Throttling];

    pub fn name(self) -> &'static str {
        match self {
            AlertKind::LogicalPartitionNearLimit => "logical-partition-near-limit",
            AlertKind::HotPartition => "hot-partition",
            AlertKind::Throttling => "throttling",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    pub kind: AlertKind,
    pub database: String,
    pub container: String,
    pub range_id: u32,
    /// The logical partition that it is about, if it is about one.
    pub key: Option<String>,
    /// What was measured, and what it is measured against; bytes, request units per second, or percent.
    pub value: f64,
    pub limit: f64,
    /// Seconds since 1970: when it was raised, and when its condition held last.
    pub since: u64,
    pub seen: u64,
}

impl Alert {
    pub fn message(&self) -> String {
        let percent = if self.limit > 0.0 { self.value / self.limit * 100.0 } else { 0.0 };
        let range = self.range_id;
        match self.kind {
            AlertKind::LogicalPartitionNearLimit => format!(
                "The logical partition {} has {percent:.0} % of the bytes that it may have.",
                self.key.as_deref().unwrap_or("[]")
            ),
            AlertKind::HotPartition => format!(
                "Partition {range} uses {percent:.0} % of its throughput, far more than the others of its container."
            ),
            AlertKind::Throttling => {
                format!("Partition {range} refuses {:.0} % of its requests with 429.", self.value)
            }
        }
    }
}

/// An alert was raised, or is over.
#[derive(Clone, Debug)]
pub struct AlertEvent {
    pub alert: Alert,
    pub raised: bool,
}

type AlertId = (AlertKind, Rid, u32, Option<String>);

pub struct Alerts {
    current: Mutex<BTreeMap<AlertId, Alert>>,
    raised: [AtomicU64; AlertKind::ALL.len()],
    events: broadcast::Sender<AlertEvent>,
}

impl Default for Alerts {
    fn default() -> Alerts {
        let (events, _) = broadcast::channel(EVENTS_WAITING);
        Alerts { current: Mutex::default(), raised: Default::default(), events }
    }
}

impl Alerts {
    pub fn list(&self) -> Vec<Alert> {
        self.current.lock().values().cloned().collect()
    }

    pub fn listen(&self) -> broadcast::Receiver<AlertEvent> {
        self.events.subscribe()
    }

    /// How often alerts of a kind were raised since the start.
    pub fn raised_total(&self, kind: AlertKind) -> u64 {
        self.raised[kind as usize].load(Relaxed)
    }

    /// A condition holds.
    fn hold(&self, container: &Container, range_id: u32, found: Found, second: u64) {
        let mut current = self.current.lock();
        let id = (found.kind, container.resource.rid, range_id, found.key);
        if let Some(alert) = current.get_mut(&id) {
            (alert.value, alert.limit, alert.seen) = (found.value, found.limit, second);
            return;
        }
        if current.len() >= ALERTS_MAX {
            return;
        }
        let alert = Alert {
            kind: found.kind,
            database: container.database_id.clone(),
            container: container.resource.id.clone(),
            range_id,
            key: id.3.clone(),
            value: found.value,
            limit: found.limit,
            since: second,
            seen: second,
        };
        current.insert(id, alert.clone());
        drop(current);
        self.raised[found.kind as usize].fetch_add(1, Relaxed);
        self.tell(AlertEvent { alert, raised: true });
    }

    /// Ends the alerts whose condition has not held for long enough.
    pub fn end_second(&self, second: u64) {
        let mut over = Vec::new();
        self.current.lock().retain(|_, alert| {
            let stays = second.saturating_sub(alert.seen) < OVER_AFTER;
            if !stays {
                over.push(alert.clone());
            }
            stays
        });
        over.into_iter().for_each(|alert| self.tell(AlertEvent { alert, raised: false }));
    }

    fn tell(&self, event: AlertEvent) {
        let Alert { database, container, range_id: range, key, .. } = &event.alert;
        let (kind, what) = (event.alert.kind.name(), event.alert.message());
        match event.raised {
            true => tracing::warn!(kind, database, container, range, key, what, "alert raised"),
            false => tracing::info!(kind, database, container, range, key, "alert over"),
        }
        // An error says that nobody listens.
        let _ = self.events.send(event);
    }

    /// Looks at all partitions of a container.
    pub fn examine(&self, container: &Container, settings: &AlertSettings, limit: u64, second: u64) {
        let seen: Vec<Slot> = container
            .led()
            .map(|(_, lead)| {
                let history = lead.insight.history.lock();
                history
                    .rings
                    .as_ref()
                    .map_or(Slot::default(), |rings| rings.windows.last(second, LOOKED_BACK))
            })
            .collect();
        let mean = seen.iter().map(|slot| f64::from(slot.units)).sum::<f64>() / seen.len().max(1) as f64;
        for ((range, lead), slot) in container.led().zip(&seen) {
            let hot = hot(slot, mean, lead.budget.rate(), settings).filter(|_| seen.len() > 1);
            for found in throttling(slot, settings).into_iter().chain(hot) {
                self.hold(container, range.descriptor.id, found, second);
            }
            if settings.logical_partition_percent > 0.0 {
                let near = limit as f64 * settings.logical_partition_percent / 100.0;
                for large in lead.insight.largest.above(near as u64) {
                    let kind = AlertKind::LogicalPartitionNearLimit;
                    let (value, limit) = (large.bytes as f64, limit as f64);
                    self.hold(
                        container,
                        range.descriptor.id,
                        Found { kind, key: Some(large.key), value, limit },
                        second,
                    );
                }
            }
        }
    }
}

struct Found {
    kind: AlertKind,
    key: Option<String>,
    value: f64,
    limit: f64,
}

fn throttling(slot: &Slot, settings: &AlertSettings) -> Option<Found> {
    let all = f64::from(slot.requests) + f64::from(slot.throttled);
    let percent = f64::from(slot.throttled) / all.max(1.0) * 100.0;
    let threshold = settings.throttled_percent;
    let holds = threshold > 0.0 && slot.throttled >= THROTTLED_MIN && percent >= threshold;
    holds.then_some(Found { kind: AlertKind::Throttling, key: None, value: percent, limit: threshold })
}

fn hot(slot: &Slot, mean: f64, rate: f64, settings: &AlertSettings) -> Option<Found> {
    let units = f64::from(slot.units);
    let per_second = units / LOOKED_BACK as f64;
    let threshold = rate * settings.hot_partition_percent / 100.0;
    let holds = threshold > 0.0 && per_second >= threshold && units >= HOT_TIMES_MEAN * mean;
    holds.then_some(Found { kind: AlertKind::HotPartition, key: None, value: per_second, limit: rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(requests: u32, throttled: u32, units: f32) -> Slot {
        Slot { requests, throttled, units, ..Slot::default() }
    }

    #[test]
    fn refusals_count_when_they_are_many() {
        let settings = AlertSettings::default();
        for (requests, throttled, holds) in
            [(100, 0, false), (100, 9, false), (1000, 20, false), (100, 10, true), (0, 50, true)]
        {
            let found = throttling(&slot(requests, throttled, 0.0), &settings);
            assert_eq!(found.is_some(), holds, "{requests} and {throttled}");
        }
        let never = AlertSettings { throttled_percent: 0.0, ..settings };
        assert!(throttling(&slot(0, 1000, 0.0), &never).is_none());
    }

    #[test]
    fn a_partition_is_hot_when_it_works_hard_and_the_others_do_not() {
        let settings = AlertSettings::default();
        let busy = slot(1, 0, 4000.0);
        assert!(hot(&busy, 1000.0, 400.0, &settings).is_some());
        assert!(hot(&busy, 3000.0, 400.0, &settings).is_none(), "all are busy");
        assert!(hot(&busy, 1000.0, 1000.0, &settings).is_none(), "it has room");
        assert!(hot(&busy, 1000.0, 0.0, &settings).is_none(), "it has no limit");
    }
}
