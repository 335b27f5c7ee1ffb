//! What a page cost: work by count, and time by kind.

use std::time::Duration;

use orrery_store::{Item, Meter};

use crate::world::World;

/// The clock is asked for one item in so many, and its answer stands for the others.
const ITEMS_PER_SAMPLE: u32 = 16;

/// Where the time of a page went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryTimes {
    /// Reading index entries.
    pub index_lookup: Duration,
    /// Fetching items.
    pub document_load: Duration,
    /// Running the program over them.
    pub evaluation: Duration,
}

impl QueryTimes {
    pub(super) fn add(&mut self, other: QueryTimes) {
        self.index_lookup += other.index_lookup;
        self.document_load += other.document_load;
        self.evaluation += other.evaluation;
    }
}

#[derive(Clone)]
pub(super) struct Tally {
    world: World,
    pub meter: Meter,
    index_lookup: Duration,
    /// Time of loads that was taken as a whole, and what of the evaluation was part of it.
    scanning: Duration,
    evaluated_meanwhile: Duration,
    loads: Sampled,
    evaluations: Sampled,
}

/// Work that is done many times and measured now and then.
#[derive(Clone, Default)]
struct Sampled {
    count: u32,
    time: Duration,
}

impl Tally {
    pub fn new(world: &World) -> Tally {
        Tally {
            world: world.clone(),
            meter: Meter::default(),
            index_lookup: Duration::ZERO,
            scanning: Duration::ZERO,
            evaluated_meanwhile: Duration::ZERO,
            loads: Sampled::default(),
            evaluations: Sampled::default(),
        }
    }

    pub fn loaded(&mut self, item: &Item) {
        self.meter.items_scanned += 1;
        self.meter.bytes_scanned += u64::from(item.header.json_bytes);
    }

    /// Does some work with the index and takes its time.
    pub fn looking_up<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = self.world.monotonic();
        let found = work();
        self.index_lookup += self.world.since(start);
        found
    }

    /// Adds the time of a scan, of which some was spent on evaluation.
    pub fn scanned(&mut self, time: Duration) {
        let evaluated = self.evaluations.total();
        self.scanning += time.saturating_sub(evaluated.saturating_sub(self.evaluated_meanwhile));
        self.evaluated_meanwhile = evaluated;
    }

    /// Fetches one item and takes its time, now and then.
    pub fn loading<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.loads.measure(&self.world, work)
    }

    /// Evaluates one item and takes its time, now and then.
    pub fn evaluating<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.evaluations.measure(&self.world, work)
    }

    pub fn times(&self) -> QueryTimes {
        QueryTimes {
            index_lookup: self.index_lookup,
            document_load: self.scanning + self.loads.total(),
            evaluation: self.evaluations.total(),
        }
    }
}

impl Sampled {
    fn measure<T>(&mut self, world: &World, work: impl FnOnce() -> T) -> T {
        let number = self.count;
        self.count += 1;
        if !number.is_multiple_of(ITEMS_PER_SAMPLE) {
            return work();
        }
        let start = world.monotonic();
        let done = work();
        self.time += world.since(start);
        done
    }

    fn total(&self) -> Duration {
        let samples = self.count.div_ceil(ITEMS_PER_SAMPLE).max(1);
        self.time * self.count / samples
    }
}
