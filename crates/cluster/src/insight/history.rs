//! Once a second the counters become history: what was added since the second before goes into the rings.
//!
//! Only partitions that serve requests have rings, and no more than [`HISTORIES_MAX`] of them; the counters of the
//! others are still exact, but nobody can tell when they grew. A container has rings of its own, which get the sum of
//! its partitions. So they go on when a partition splits, while its children start with empty ones.

use std::collections::HashMap;
use std::sync::Arc;

use super::counters::{RangeInsight, Totals};
use super::place::BUCKETS;
use super::windows::{Cell, Heat, HeatWindows, Slot, Windows};
use crate::catalog::Container;

/// Partitions that have rings, and a sketch of their keys; each takes about 50 kB at most.
pub const HISTORIES_MAX: usize = 2_048;
/// Rings in which nothing was counted for so long hold nothing.
const KEPT_SECONDS: u64 = 25 * 3_600;

/// What one partition has been seen to do.
#[derive(Default)]
pub struct History {
    last: Totals,
    pub rings: Option<Box<Rings>>,
}

pub struct Rings {
    pub windows: Windows,
    pub heat: HeatWindows,
    touched: u64,
}

impl Rings {
    fn new(second: u64) -> Rings {
        Rings { windows: Windows::default(), heat: HeatWindows::default(), touched: second }
    }
}

impl RangeInsight {
    /// Ends a second: what was counted in it, if anything was. `room` says whether there may be one more with rings.
    fn end_second(&self, second: u64, bytes: u64, room: bool) -> Option<Slot> {
        if self.is_untouched() {
            return None;
        }
        self.begin_second();
        let totals = self.totals();
        let mut history = self.history.lock();
        let slot = difference(&history.last, &totals, bytes);
        let busy = slot.requests > 0 || slot.throttled > 0 || slot.units > 0.0;
        if busy && history.rings.is_none() && room {
            history.rings = Some(Box::new(Rings::new(second)));
        }
        let heat = heat_difference(&history.last, &totals);
        history.last = totals;
        self.sketch_keys(history.rings.is_some());
        let Some(rings) = &mut history.rings else { return busy.then_some(slot) };
        if busy {
            rings.touched = second;
        }
        rings.windows.add(second, &slot);
        rings.heat.add(second, &heat);
        if second.saturating_sub(rings.touched) > KEPT_SECONDS {
            history.rings = None;
            self.sketch_keys(false);
        } else {
            self.keys.lock().turn(second + 1);
        }
        busy.then_some(slot)
    }
}

fn difference(before: &Totals, after: &Totals, bytes: u64) -> Slot {
    let less = |after: u64, before: u64| after.saturating_sub(before);
    let units = less(after.hundredths, before.hundredths) as f32 / 100.0;
    Slot {
        requests: less(after.requests, before.requests).min(u64::from(u32::MAX)) as u32,
        throttled: less(after.throttled, before.throttled).min(u64::from(u32::MAX)) as u32,
        units,
        highest: units,
        bytes,
    }
}

fn heat_difference(before: &Totals, after: &Totals) -> Heat {
    let mut heat = [Cell::default(); BUCKETS];
    for ((cell, after), before) in heat.iter_mut().zip(&after.buckets).zip(&before.buckets) {
        cell.units = after.0.saturating_sub(before.0) as f32 / 100.0;
        cell.requests = after.1.saturating_sub(before.1).min(u64::from(u32::MAX)) as u32;
    }
    heat
}

/// What one container has been seen to do, whatever its partitions were.
#[derive(Default)]
pub struct Observed {
    pub windows: Windows,
    pub requests: u64,
    pub hundredths: u64,
    pub throttled: u64,
    /// The partitions of the second before: one that has gone since is counted a last time.
    ranges: HashMap<u32, Arc<RangeInsight>>,
}

impl Observed {
    /// Ends a second for all partitions of a container.
    pub fn end_second(&mut self, container: &Container, second: u64, histories: &mut usize) {
        let mut sum = Slot::default();
        let mut ranges = HashMap::with_capacity(container.ranges.len());
        for (range, lead) in container.led() {
            let bytes = range.replica.partition.state().bytes;
            let slot = lead.insight.end_second(second, bytes, *histories < HISTORIES_MAX);
            *histories += usize::from(lead.insight.history.lock().rings.is_some());
            sum.beside(&slot.unwrap_or(Slot { bytes, ..Slot::default() }));
            self.ranges.remove(&range.descriptor.id);
            ranges.insert(range.descriptor.id, lead.insight.clone());
        }
        for gone in std::mem::replace(&mut self.ranges, ranges).into_values() {
            let last = gone.end_second(second, 0, false);
            sum.beside(&last.unwrap_or_default());
        }
        self.requests += u64::from(sum.requests);
        self.throttled += u64::from(sum.throttled);
        self.hundredths += (f64::from(sum.units) * 100.0).round() as u64;
        self.windows.add(second, &sum);
    }
}

/// Whether any partition of a container has ever served a request.
pub fn is_used(container: &Container) -> bool {
    container.led().any(|(_, lead)| !lead.insight.is_untouched())
}
