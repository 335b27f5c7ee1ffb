//! Queries that were told that a range which they name is gone.
//!
//! A client that is told looks for the ranges that are there now. The Python SDK then asks the old range once more, and
//! when that fails too it begins the ranges anew among those that it has begun already, and returns rows twice. So no
//! query is told the same thing twice: the second time it is answered for what the range held.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use orrery_cluster::Rid;
use orrery_cluster::limits::TOLD_QUERIES_MAX;
use parking_lot::Mutex;

/// The latest queries that were told, by hash: one that is forgotten or mistaken for another is still answered right.
#[derive(Default)]
pub(crate) struct Told {
    hasher: RandomState,
    latest: Mutex<VecDeque<u64>>,
}

impl Told {
    /// Whether a query has been told before that this range is gone. It counts as told from now on.
    pub fn before(&self, query: &str, container: Rid, range: u32) -> bool {
        let told = self.hasher.hash_one((query, container, range));
        let mut latest = self.latest.lock();
        if latest.contains(&told) {
            return true;
        }
        if latest.len() == TOLD_QUERIES_MAX {
            latest.pop_front();
        }
        latest.push_back(told);
        false
    }
}
