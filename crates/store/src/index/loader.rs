//! Fetching the items of a list of places in key order.
//!
//! Places that lie far apart are looked up one by one. Where they are dense, as when a condition holds for a
//! third of the items, walking the items is several times cheaper than searching for each. The loader cannot
//! know beforehand, so it tries to walk now and then, and goes on as long as it finds what it looks for.

use std::ops::Bound;

use super::ReadResult;
use crate::engine::{Keyspace, Scan, Snapshot};
use crate::{Fault, Item};

/// Items to walk over before a search is cheaper.
const STEPS_MAX: usize = 8;
/// Searches between two attempts to walk; more after each that failed.
const SEARCHES_MIN: u32 = 16;
const SEARCHES_MAX: u32 = 1024;

pub struct ItemLoader<'v> {
    snapshot: &'v Snapshot,
    /// The key being looked up; its first bytes are the container's.
    key: Vec<u8>,
    upper: Vec<u8>,
    walk: Option<Scan>,
    searches: u32,
    searches_before_walk: u32,
}

impl<'v> ItemLoader<'v> {
    pub(crate) fn new(snapshot: &'v Snapshot, container: u32) -> ItemLoader<'v> {
        ItemLoader {
            snapshot,
            key: container.to_be_bytes().to_vec(),
            upper: container.saturating_add(1).to_be_bytes().to_vec(),
            walk: None,
            searches: 0,
            searches_before_walk: SEARCHES_MIN,
        }
    }

    /// Says that so many places among so many items will be asked for. Where they are sparse, no walk is tried.
    pub fn expect(&mut self, places: usize, items: u64) {
        let is_sparse = (places as u64).saturating_mul(STEPS_MAX as u64) < items;
        self.searches_before_walk = if is_sparse { u32::MAX } else { SEARCHES_MIN };
    }

    /// The item at a place that an index entry of the same snapshot named. Places must come in key order.
    pub fn load(&mut self, place: &[u8]) -> ReadResult<Item> {
        self.key.truncate(4);
        self.key.extend_from_slice(place);
        if let Some(found) = self.walk_on()? {
            return Ok(found);
        }
        let found = self.snapshot.get(Keyspace::Item, &self.key)?;
        let item = decode(&found.ok_or_else(without_item)?)?;
        self.searches += 1;
        if self.searches >= self.searches_before_walk {
            self.searches = 0;
            let (lower, upper) =
                (Bound::Excluded(self.key.as_slice()), Bound::Excluded(self.upper.as_slice()));
            self.walk = Some(self.snapshot.range(Keyspace::Item, lower, upper, false));
        }
        Ok(item)
    }

    /// The same for places in any order.
    pub fn find(&mut self, place: &[u8]) -> ReadResult<Item> {
        self.key.truncate(4);
        self.key.extend_from_slice(place);
        let found = self.snapshot.get(Keyspace::Item, &self.key)?;
        decode(&found.ok_or_else(without_item)?)
    }

    /// Walks to the wanted key, if it is near.
    fn walk_on(&mut self) -> ReadResult<Option<Item>> {
        let Some(walk) = &mut self.walk else { return Ok(None) };
        for _ in 0..STEPS_MAX {
            let Some((key, value)) = walk.next().transpose()? else { break };
            if key.as_ref() == self.key.as_slice() {
                self.searches_before_walk = SEARCHES_MIN;
                return decode(&value).map(Some);
            }
            if key.as_ref() > self.key.as_slice() {
                break;
            }
        }
        self.walk = None;
        self.searches_before_walk = self.searches_before_walk.saturating_mul(2).min(SEARCHES_MAX);
        Ok(None)
    }
}

fn decode(bytes: &bytes::Bytes) -> ReadResult<Item> {
    Item::decode(bytes).map_err(|error| Fault::Damaged(error.to_string()))
}

fn without_item() -> Fault {
    Fault::Damaged("an index entry without its item".into())
}
