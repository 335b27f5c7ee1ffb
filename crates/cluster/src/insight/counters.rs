//! What the path of requests touches: counters of one physical partition that only ever grow.
//!
//! Everything that needs time is done elsewhere, once a second: see [`super::history`]. A request pays for a few
//! additions without a lock, and while its partition is not busy for one look at the sketch of keys. A busy partition
//! samples: of the requests beyond the first [`EXACT_PER_SECOND`] of a second, one in [`SAMPLED`] is looked at, chosen
//! at random, and counts for all of them. What is then told of a key with `n` requests is off by about the square
//! root of `SAMPLED * n`: 4 % at 10,000 requests.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use orrery_doc::{Epk, EpkRange, PartitionKey, PartitionKeyDef, epk};
use parking_lot::Mutex;

use super::history::History;
use super::largest::Largest;
use super::place::{BUCKETS, Scale, Span};
use super::sketch::{KeySketches, Load, hash_of};
use crate::catalog::Container;
use crate::error::{Error, ErrorKind};
use crate::request::Scope;
use crate::world::World;

const EXACT_PER_SECOND: u32 = 256;
const SAMPLED: u64 = 16;

/// One switch for the process: benchmarks measure what the accounting costs by doing without it.
static ON: AtomicBool = AtomicBool::new(true);

pub(super) fn switch(on: bool) {
    ON.store(on, Relaxed);
}

fn is_on() -> bool {
    ON.load(Relaxed)
}

/// The counters of one physical partition.
pub struct RangeInsight {
    world: World,
    pub(super) span: Span,
    requests: AtomicU64,
    /// Hundredths of request units, their resolution.
    hundredths: AtomicU64,
    throttled: AtomicU64,
    buckets: [Bucket; BUCKETS],
    /// Requests that named a key since the last second began.
    keyed_this_second: AtomicU32,
    /// Whether there is room for a sketch of its keys; until the first second is over there is.
    sketched: AtomicBool,
    pub(super) keys: Mutex<KeySketches>,
    pub(super) largest: Largest,
    pub(super) history: Mutex<History>,
}

#[derive(Default)]
struct Bucket {
    hundredths: AtomicU64,
    requests: AtomicU64,
}

/// All counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub requests: u64,
    pub hundredths: u64,
    pub throttled: u64,
    pub buckets: [(u64, u64); BUCKETS],
}

impl RangeInsight {
    pub fn new(def: &PartitionKeyDef, range: &EpkRange, world: World) -> RangeInsight {
        RangeInsight {
            world,
            span: Span::new(Scale::of(def), range),
            requests: AtomicU64::new(0),
            hundredths: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            buckets: Default::default(),
            keyed_this_second: AtomicU32::new(0),
            sketched: AtomicBool::new(true),
            keys: Mutex::default(),
            largest: Largest::default(),
            history: Mutex::default(),
        }
    }

    /// A request was served for so many units.
    pub fn charged(&self, units: f64) {
        if is_on() {
            self.requests.fetch_add(1, Relaxed);
            self.hundredths.fetch_add(hundredths(units), Relaxed);
        }
    }

    /// That request was for one logical partition.
    pub fn keyed(&self, epk: &Epk, key: &PartitionKey, units: f64) {
        if !is_on() {
            return;
        }
        let bucket = &self.buckets[self.span.bucket(epk)];
        bucket.requests.fetch_add(1, Relaxed);
        bucket.hundredths.fetch_add(hundredths(units), Relaxed);
        self.sample(epk, key, Load { units, requests: 1.0, throttled: 0.0 });
    }

    /// That request went through all of the partition: it warms every bucket alike.
    pub fn scanned(&self, units: f64) {
        if is_on() {
            let each = hundredths(units) / BUCKETS as u64;
            for bucket in &self.buckets {
                bucket.hundredths.fetch_add(each, Relaxed);
            }
        }
    }

    /// A request was refused because the budget is spent.
    pub fn throttled(&self) {
        if is_on() {
            self.throttled.fetch_add(1, Relaxed);
        }
    }

    /// That request was for a part of the key space: one logical partition, or several.
    pub(crate) fn scoped(&self, container: &Container, scope: &Scope, units: f64) {
        match scope {
            Scope::Key(key) if key.components().len() == container.definition.key.paths.len() => {
                self.keyed(&epk(&container.definition.key, key), key, units);
            }
            _ => self.scanned(units),
        }
    }

    /// A request for one logical partition was refused: for want of budget, or after some work that it pays for.
    pub fn refused(&self, epk: &Epk, key: &PartitionKey, error: &Error) {
        if !is_on() {
            return;
        }
        match (&error.kind, &error.receipt) {
            (ErrorKind::Throttled { .. }, _) => {
                self.sample(epk, key, Load { units: 0.0, requests: 1.0, throttled: 1.0 });
            }
            (kind, Some(receipt)) if kind.place().is_some() => self.keyed(epk, key, receipt.charge.total()),
            _ => {}
        }
    }

    /// A write has changed a logical partition from so many bytes to so many.
    pub fn sized(&self, epk: &Epk, key: &PartitionKey, (before, after): (u64, u64)) {
        if is_on() {
            self.largest.sized(epk, key, before, after);
        }
    }

    fn sample(&self, epk: &Epk, key: &PartitionKey, load: Load) {
        let times = match self.keyed_this_second.fetch_add(1, Relaxed) < EXACT_PER_SECOND {
            true if self.sketched.load(Relaxed) => 1.0,
            false if self.world.random().is_multiple_of(SAMPLED) && self.sketched.load(Relaxed) => {
                SAMPLED as f64
            }
            _ => return,
        };
        let load = Load {
            units: load.units * times,
            requests: load.requests * times,
            throttled: load.throttled * times,
        };
        self.keys.lock().add(hash_of(epk.as_bytes()), key, load);
    }

    /// Keeps a sketch of keys, or none.
    pub(super) fn sketch_keys(&self, keeps: bool) {
        if self.sketched.swap(keeps, Relaxed) && !keeps {
            *self.keys.lock() = KeySketches::default();
        }
    }

    pub(super) fn begin_second(&self) {
        self.keyed_this_second.store(0, Relaxed);
    }

    /// Whether anything was ever counted here; cheaper than reading it all.
    pub(super) fn is_untouched(&self) -> bool {
        self.requests.load(Relaxed) == 0 && self.throttled.load(Relaxed) == 0
    }

    /// Request units a second, of the ten seconds before this one.
    pub(crate) fn units_per_second(&self, second: u64) -> f64 {
        let history = self.history.lock();
        let units = history.rings.as_ref().map_or(0.0, |rings| rings.windows.last(second, 10).units);
        (f64::from(units) * 10.0).round() / 100.0
    }

    /// The size of the largest logical partition that a write has met.
    pub(crate) fn largest_bytes(&self) -> u64 {
        self.largest.list().iter().map(|large| large.bytes).max().unwrap_or(0)
    }

    pub fn totals(&self) -> Totals {
        let bucket = |place: usize| {
            let bucket: &Bucket = &self.buckets[place];
            (bucket.hundredths.load(Relaxed), bucket.requests.load(Relaxed))
        };
        Totals {
            requests: self.requests.load(Relaxed),
            hundredths: self.hundredths.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            buckets: std::array::from_fn(bucket),
        }
    }
}

fn hundredths(units: f64) -> u64 {
    (units * 100.0 + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use orrery_doc::{KeyComponent, PartitionKeyKind, PartitionKeyVersion, Path, epk};

    use super::*;
    use crate::insight::sketch::Window;

    fn def() -> PartitionKeyDef {
        let paths = vec![Path::parse_property("/k").expect("a path")];
        PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths }
    }

    #[test]
    fn a_busy_partition_is_sampled_and_still_told_rightly() {
        let def = def();
        let insight = RangeInsight::new(&def, &EpkRange::full(), World::Real);
        let hot = PartitionKey(vec![KeyComponent::Str("hot".into())]);
        let hot_epk = epk(&def, &hot);
        for n in 0..40_000 {
            let cold = PartitionKey(vec![KeyComponent::Number(f64::from(n))]);
            let (epk, key) = if n % 4 == 0 { (hot_epk.clone(), &hot) } else { (epk(&def, &cold), &cold) };
            insight.charged(1.0);
            insight.keyed(&epk, key, 1.0);
        }
        let totals = insight.totals();
        assert_eq!((totals.requests, totals.hundredths), (40_000, 4_000_000), "totals are exact");
        assert_eq!(totals.buckets.iter().map(|bucket| bucket.1).sum::<u64>(), 40_000);
        let entries = insight.keys.lock().window(Window::Minute, 0).into_entries();
        let found = entries.iter().find(|entry| &*entry.key == "[\"hot\"]").expect("the hot key is found");
        assert!((8_000.0..12_000.0).contains(&found.requests), "{found:?}");
    }
}
