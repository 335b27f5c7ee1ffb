//! What a page cost: work by count, and time by kind.

use std::time::{Duration, Instant};

use orrery_store::{Item, Meter};

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

#[derive(Default)]
pub(super) struct Tally {
    pub meter: Meter,
    pub times: QueryTimes,
    loads: u32,
    feeds: u32,
}

impl Tally {
    pub fn loaded(&mut self, item: &Item) {
        self.meter.items_scanned += 1;
        self.meter.bytes_scanned += u64::from(item.header.json_bytes);
    }

    /// Does some work with the index and takes its time.
    pub fn looking_up<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let found = work();
        self.times.index_lookup += start.elapsed();
        found
    }

    /// Fetches one item and takes its time, now and then.
    pub fn loading<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.loads += 1;
        sampled(self.loads, &mut self.times.document_load, work)
    }

    /// Evaluates one item and takes its time, now and then.
    pub fn evaluating<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.feeds += 1;
        sampled(self.feeds, &mut self.times.evaluation, work)
    }
}

fn sampled<T>(number: u32, total: &mut Duration, work: impl FnOnce() -> T) -> T {
    // The first of a page is measured too, for most pages are small.
    if number % ITEMS_PER_SAMPLE != 1 {
        return work();
    }
    let start = Instant::now();
    let done = work();
    *total += start.elapsed() * ITEMS_PER_SAMPLE;
    done
}
