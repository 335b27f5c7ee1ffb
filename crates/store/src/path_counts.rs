//! How many items of a partition have a value at a path.
//!
//! A query that sorts by a path can read the index in order, but items without a value there have no entry. When
//! as many items have one as there are items, nothing is missing and nothing else need be looked at.
//!
//! Only paths that lead through no array are counted, because there one item has one term. A partition counts a limited
//! number of paths, those that came first: a path without a count is not known to be anywhere or nowhere. A count that is
//! there has been kept from the first item on, so it never goes away again, not even at zero.
//!
//! Counts are stored in pages of several, in the order in which the paths came. Properties that occur together come
//! together, so a group of writes usually changes one page and not one key for each property.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Bound;
use std::sync::Arc;

use crate::engine::{Batch, EngineError, Keyspace, Snapshot};
use crate::indexing::path_hash;
use crate::item::read_u64;
use crate::keys;
use crate::limits::PATHS_COUNTED_MAX;

/// Counts in one page.
const PAGE_COUNTS: usize = 32;
const COUNT_BYTES: usize = 16;

type ByPath<T> = HashMap<u64, T, BuildHasherDefault<PathHasher>>;

/// The counts of one index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Path hashes and counts, in the order in which the paths came.
    counts: Vec<(u64, u64)>,
    places: ByPath<usize>,
}

/// By how much a group of writes changes each count.
#[derive(Debug, Default)]
pub(crate) struct PathDeltas(ByPath<i64>);

/// Counts after a group of writes: the place of each, its path and its new value.
#[derive(Debug, Default)]
pub(crate) struct PathCountChange(Vec<(usize, u64, u64)>);

impl PathDeltas {
    pub fn add(&mut self, path: u64, delta: i64) {
        *self.0.entry(path).or_default() += delta;
    }
}

impl PathCounts {
    /// The number of items that have a term at this path; `None` when nobody counts it.
    pub fn get(&self, path: u64) -> Option<u64> {
        self.places.get(&path).map(|place| self.counts[*place].1)
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Path hashes and counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().copied()
    }

    /// What a snapshot holds for one index.
    pub fn read(snapshot: &Snapshot, partition: u32, generation: u32) -> Result<PathCounts, EngineError> {
        let mut all = PathCounts::read_prefix(snapshot, &keys::path_counts(partition, generation))?;
        Ok(all.remove(&generation).unwrap_or_default())
    }

    /// What a snapshot holds for all indexes of a partition.
    pub(crate) fn read_all(
        snapshot: &Snapshot,
        partition: u32,
    ) -> Result<HashMap<u32, Arc<PathCounts>>, EngineError> {
        let all = PathCounts::read_prefix(snapshot, &keys::path_counts_of_all(partition))?;
        Ok(all.into_iter().map(|(generation, counts)| (generation, Arc::new(counts))).collect())
    }

    fn read_prefix(snapshot: &Snapshot, prefix: &[u8]) -> Result<HashMap<u32, PathCounts>, EngineError> {
        let mut all: HashMap<u32, PathCounts> = HashMap::new();
        let upper = keys::after_prefix(prefix);
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        for page in snapshot.range(Keyspace::Meta, Bound::Included(prefix), upper, false) {
            let (key, page) = page?;
            let generation = key.get(5..9).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            let (Some(generation), true) = (generation, page.len().is_multiple_of(COUNT_BYTES)) else {
                return Err(EngineError::Corrupt("a page of path counts is not readable".into()));
            };
            let counts = all.entry(u32::from_be_bytes(generation)).or_default();
            for count in page.chunks_exact(COUNT_BYTES) {
                counts.set(counts.len(), read_u64(count, 0), read_u64(count, 8));
            }
        }
        Ok(all)
    }

    /// Works out new counts and writes the pages they are in. Nothing changes here until the batch is durable.
    pub(crate) fn change(
        &self,
        deltas: &PathDeltas,
        counts_new: bool,
        partition: u32,
        generation: u32,
        batch: &mut Batch,
    ) -> PathCountChange {
        let mut changed: Vec<(usize, u64, u64)> = Vec::new();
        let mut new: Vec<(u64, u64)> = Vec::new();
        for (&path, &delta) in &deltas.0 {
            match self.places.get(&path) {
                Some(&place) if delta != 0 => {
                    changed.push((place, path, self.counts[place].1.saturating_add_signed(delta)));
                }
                None if delta > 0 && counts_new => new.push((path, delta as u64)),
                _ => {}
            }
        }
        // Sorted, so that every replica gives the same paths the same places. What every item has comes first: without
        // its count nobody could tell whether all items are in the index.
        let always = [path_hash(&["id"]), path_hash(&["_ts"])];
        new.sort_unstable_by_key(|(path, _)| (!always.contains(path), *path));
        new.truncate(PATHS_COUNTED_MAX.saturating_sub(self.len()));
        let places = self.len()..;
        changed.extend(places.zip(new).map(|(place, (path, count))| (place, path, count)));
        changed.sort_unstable();
        let pages: BTreeSet<usize> = changed.iter().map(|(place, ..)| place / PAGE_COUNTS).collect();
        for page in pages {
            let mut key = keys::path_counts(partition, generation);
            key.extend_from_slice(&(page as u16).to_be_bytes());
            batch.put(Keyspace::Meta, key, self.encode_page(page, &changed));
        }
        PathCountChange(changed)
    }

    /// Writes all pages.
    pub(crate) fn write(&self, partition: u32, generation: u32, batch: &mut Batch) {
        for page in 0..self.len().div_ceil(PAGE_COUNTS) {
            let mut key = keys::path_counts(partition, generation);
            key.extend_from_slice(&(page as u16).to_be_bytes());
            batch.put(Keyspace::Meta, key, self.encode_page(page, &[]));
        }
    }

    /// What is certain of a part of the items, when these are the counts of all of them: what all have, and what none has.
    pub(crate) fn of_part(&self, items: u64, part: u64) -> PathCounts {
        let certain = self.iter().filter(|(_, count)| *count == items || *count == 0);
        let mut counts = PathCounts::default();
        for (path, count) in certain {
            counts.set(counts.len(), path, if count == 0 { 0 } else { part });
        }
        counts
    }

    /// The counts of two disjoint sets of items. A path that only one of them counts is one that no item of the other
    /// has, unless the other had no room for more.
    pub(crate) fn joined(&self, other: &PathCounts) -> PathCounts {
        let mut counts = PathCounts::default();
        let is_open = |counts: &PathCounts| counts.len() < PATHS_COUNTED_MAX;
        for (path, count) in self.iter() {
            if let Some(theirs) = other.get(path).or(is_open(other).then_some(0)) {
                counts.set(counts.len(), path, count + theirs);
            }
        }
        for (path, count) in other.iter().filter(|(path, _)| self.get(*path).is_none()) {
            if is_open(self) && is_open(&counts) {
                counts.set(counts.len(), path, count);
            }
        }
        counts
    }

    fn encode_page(&self, page: usize, changed: &[(usize, u64, u64)]) -> Vec<u8> {
        let start = page * PAGE_COUNTS;
        let old = self.counts.get(start..).unwrap_or_default();
        let mut counts = old[..old.len().min(PAGE_COUNTS)].to_vec();
        let first = changed.partition_point(|(place, ..)| *place < start);
        for &(place, path, count) in changed[first..].iter().take_while(|c| c.0 < start + PAGE_COUNTS) {
            // New places follow the old ones without a gap, in this order.
            match counts.get_mut(place - start) {
                Some(slot) => *slot = (path, count),
                None => counts.push((path, count)),
            }
        }
        let bytes = counts.iter().flat_map(|(path, count)| [path.to_be_bytes(), count.to_be_bytes()]);
        bytes.flatten().collect()
    }

    pub(crate) fn apply(&mut self, change: PathCountChange) {
        for (place, path, count) in change.0 {
            self.set(place, path, count);
        }
    }

    fn set(&mut self, place: usize, path: u64, count: u64) {
        match self.counts.get_mut(place) {
            Some(slot) => *slot = (path, count),
            None => {
                self.counts.push((path, count));
                self.places.insert(path, place);
            }
        }
    }
}

/// Path hashes are mixed well already.
#[derive(Default)]
pub(crate) struct PathHasher(u64);

impl Hasher for PathHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
