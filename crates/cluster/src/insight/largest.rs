//! The largest logical partitions that writes have met, with the exact sizes that the store keeps.
//!
//! A write that leaves its logical partition smaller than the smallest one listed changes nothing here and costs one
//! comparison.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use orrery_doc::{Epk, PartitionKey};
use parking_lot::Mutex;

/// How many each physical partition lists.
const LISTED: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct LargeKey {
    pub epk: Epk,
    /// The key as the JSON array that requests send.
    pub key: String,
    pub bytes: u64,
}

#[derive(Default)]
pub struct Largest {
    /// The size of the smallest one listed once the list is full; nobody below need look at it.
    least: AtomicU64,
    listed: Mutex<Vec<LargeKey>>,
}

impl Largest {
    /// A write has changed a logical partition from so many bytes to so many.
    pub fn sized(&self, epk: &Epk, key: &PartitionKey, before: u64, after: u64) {
        if before.max(after) < self.least.load(Relaxed) {
            return;
        }
        let mut listed = self.listed.lock();
        match listed.iter().position(|large| large.epk == *epk) {
            Some(place) if after == 0 => drop(listed.swap_remove(place)),
            Some(place) => listed[place].bytes = after,
            None if after == 0 => {}
            None if listed.len() < LISTED => listed.push(large(epk, key, after)),
            None => {
                let Some(least) = listed.iter_mut().min_by_key(|large| large.bytes) else { return };
                if after > least.bytes {
                    *least = large(epk, key, after);
                }
            }
        }
        let full = listed.len() == LISTED;
        let least = listed.iter().map(|large| large.bytes).min().filter(|_| full);
        self.least.store(least.unwrap_or(0), Relaxed);
    }

    /// In no order.
    pub fn list(&self) -> Vec<LargeKey> {
        self.listed.lock().clone()
    }

    /// Those of at least so many bytes; asked every second, and mostly there are none.
    pub fn above(&self, bytes: u64) -> Vec<LargeKey> {
        self.listed.lock().iter().filter(|large| large.bytes >= bytes).cloned().collect()
    }
}

fn large(epk: &Epk, key: &PartitionKey, bytes: u64) -> LargeKey {
    LargeKey { epk: epk.clone(), key: key.to_json(), bytes }
}

#[cfg(test)]
mod tests {
    use orrery_doc::KeyComponent;

    use super::*;

    fn sized(largest: &Largest, n: u64, before: u64, after: u64) {
        let key = PartitionKey(vec![KeyComponent::Number(n as f64)]);
        largest.sized(&Epk::from_bytes(&n.to_be_bytes()), &key, before, after);
    }

    fn sizes(largest: &Largest) -> Vec<u64> {
        let mut sizes: Vec<u64> = largest.list().iter().map(|large| large.bytes).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn the_largest_are_listed_in_whatever_order_they_grow() {
        let largest = Largest::default();
        for n in (0..1000).map(|n| n * 7919 % 1000) {
            sized(&largest, n, 0, n + 1);
        }
        assert_eq!(sizes(&largest), (985..=1000).collect::<Vec<_>>());
    }

    #[test]
    fn what_shrinks_or_goes_is_not_listed_with_its_old_size() {
        let largest = Largest::default();
        (0..16).for_each(|n| sized(&largest, n, 0, 100 + n));
        sized(&largest, 15, 115, 5);
        sized(&largest, 14, 114, 0);
        assert_eq!(sizes(&largest)[0], 5);
        assert_eq!(sizes(&largest).len(), 15);
        sized(&largest, 99, 0, 50);
        sized(&largest, 98, 0, 60);
        assert_eq!(sizes(&largest)[..2], [50, 60], "the small one made room");
    }
}
