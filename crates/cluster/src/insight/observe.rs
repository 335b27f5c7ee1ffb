//! Reading what was counted.

use std::sync::Arc;

use super::report::{
    ContainerInsight, HeatRows, HotBy, HotPartitionKey, LargePartitionKey, PartitionInsight, Use,
};
use super::sketch::Window;
use super::windows::{Heat, SECONDS, Slot, Windows};
use crate::catalog::Container;
use crate::db::Db;
use crate::range::{Lead, Range};

impl Db {
    /// The physical partitions of a container, in the order of the key space, with a window of what they did.
    pub fn container_insight(&self, container: &Arc<Container>, window: Window) -> ContainerInsight {
        let until = self.insight_second();
        let partitions = container.led().map(|led| partition_insight(led, window, until)).collect();
        ContainerInsight { window, until, whole: self.whole(container, window, until), partitions }
    }

    fn whole(&self, container: &Container, window: Window, until: u64) -> Use {
        let containers = self.inner.insight.containers.lock();
        let Some(observed) = containers.get(&container.resource.rid) else {
            return Use { window: slots(None, window, until), ..Use::default() };
        };
        Use {
            requests_total: observed.requests,
            units_total: observed.hundredths as f64 / 100.0,
            throttled_total: observed.throttled,
            ten_seconds: observed.windows.last(until, 10),
            minute: observed.windows.last(until, SECONDS),
            window: slots(Some(&observed.windows), window, until),
        }
    }

    /// How warm each part of the key space was, in seconds of the last minute or minutes of the last hour.
    pub fn heat(&self, container: &Arc<Container>, window: Window) -> (u64, Vec<HeatRows>) {
        let until = self.insight_second();
        let rows = |(range, lead): (&Arc<Range>, &Lead)| {
            let history = lead.insight.history.lock();
            let columns: Vec<Heat> = match (&history.rings, window) {
                (None, _) => vec![Heat::default(); SECONDS],
                (Some(rings), Window::Minute) => rings.heat.seconds.until(until.saturating_sub(1)),
                (Some(rings), _) => rings.heat.minutes.until(until.saturating_sub(1) / 60),
            };
            let row = |bucket: usize| columns.iter().map(|heat| heat[bucket]).collect();
            HeatRows {
                id: range.descriptor.id,
                share: lead.insight.span.share(),
                rows: (0..super::BUCKETS).map(row).collect(),
            }
        };
        (until, container.led().map(rows).collect())
    }

    /// The logical partitions that did the most, hottest first.
    pub fn hottest_keys(
        &self,
        container: &Arc<Container>,
        window: Window,
        by: HotBy,
        count: usize,
    ) -> Vec<HotPartitionKey> {
        let until = self.insight_second();
        let mut keys = Vec::new();
        for (range, lead) in container.led() {
            let sketch = lead.insight.keys.lock().window(window, until);
            keys.extend(sketch.into_entries().into_iter().map(|entry| HotPartitionKey {
                range_id: range.descriptor.id,
                key: entry.key.to_string(),
                units: entry.units,
                requests: entry.requests,
                throttled: entry.throttled,
                error: entry.error,
            }));
        }
        let weight = |key: &HotPartitionKey| match by {
            // Refused requests cost nothing, but say as much as those that did.
            HotBy::Units => key.units + key.throttled,
            HotBy::Requests => key.requests,
            HotBy::Throttled => key.throttled,
        };
        keys.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        keys.truncate(count);
        keys
    }

    /// The largest logical partitions that writes have met since the start, largest first.
    pub fn largest_keys(&self, container: &Arc<Container>, count: usize) -> Vec<LargePartitionKey> {
        let mut keys = Vec::new();
        for (range, lead) in container.led() {
            keys.extend(lead.insight.largest.list().into_iter().map(|large| LargePartitionKey {
                range_id: range.descriptor.id,
                epk: large.epk,
                key: Some(large.key),
                bytes: large.bytes,
                items: None,
            }));
        }
        keys.sort_by_key(|large| std::cmp::Reverse(large.bytes));
        keys.truncate(count);
        keys
    }
}

fn partition_insight((range, lead): (&Arc<Range>, &Lead), window: Window, until: u64) -> PartitionInsight {
    let state = range.replica.partition.state();
    let totals = lead.insight.totals();
    let history = lead.insight.history.lock();
    let windows = history.rings.as_ref().map(|rings| &rings.windows);
    let last = |count: usize| windows.map_or(Slot::default(), |windows| windows.last(until, count));
    PartitionInsight {
        id: range.descriptor.id,
        range: range.epk().clone(),
        share: lead.insight.span.share(),
        parents: range.descriptor.parents.clone(),
        lsn: state.lsn,
        items: state.items,
        bytes: state.bytes,
        throughput: lead.budget.rate(),
        use_of: Use {
            requests_total: totals.requests,
            units_total: totals.hundredths as f64 / 100.0,
            throttled_total: totals.throttled,
            ten_seconds: last(10),
            minute: last(SECONDS),
            window: slots(windows, window, until),
        },
    }
}

fn slots(windows: Option<&Windows>, window: Window, until: u64) -> Vec<Slot> {
    let empty = Windows::default();
    let windows = windows.unwrap_or(&empty);
    let last = until.saturating_sub(1);
    match window {
        Window::Minute => windows.seconds.until(last),
        Window::Hour => windows.minutes.until(last / 60),
        Window::Day => windows.hours.until(last / 3_600),
    }
}
