//! What a partition must know of its container: the key, and which indexes its items have.
//!
//! An index is a *generation*: a number that all of its entries start with, and the policy they were made by. Readers
//! use the active one. While another is being built, writers keep up both, and readers learn of the new one only
//! when it is complete.

use std::sync::Arc;

use orrery_doc::PartitionKeyDef;

use crate::indexing::{Composite, IndexingPolicy, Step, Tuple};
use crate::ttl::{DefaultTtl, Lifetimes};
use crate::unique::UniqueKeys;

#[derive(Clone, Debug)]
pub struct Schema {
    pub key: PartitionKeyDef,
    /// The index that readers use.
    pub index: Arc<ActiveIndex>,
    /// The index that will take its place.
    pub building: Option<IndexGeneration>,
    pub ttl: DefaultTtl,
    pub unique: UniqueKeys,
    /// Whether every version and delete is recorded.
    pub keeps_history: bool,
    /// Whether the history also tells what a write replaced: who copies the items elsewhere, under another key, must
    /// find the copy of the version before.
    pub keeps_replaced: bool,
}

/// An index: the prefix of its entries, and what they hold.
#[derive(Clone, Debug)]
pub struct IndexGeneration {
    pub generation: u32,
    /// Whether another partition builds its own part of it, because the two are about to be merged.
    pub is_shared: bool,
    pub policy: Arc<IndexingPolicy>,
}

/// The index that queries may use.
///
/// Two policies decide what they may rely on: the one that the entries were made by, and the one that the container
/// has now. What was taken out of a policy is still in the index for a while, but is no longer offered.
#[derive(Clone, Debug)]
pub struct ActiveIndex {
    pub generation: u32,
    /// Whether the entries are those of a partition that was split: others use them too, and path counts are
    /// only partly known.
    pub is_borrowed: bool,
    /// What the entries were made by.
    pub policy: Arc<IndexingPolicy>,
    /// What the container's definition says.
    current: Arc<IndexingPolicy>,
    composites: Vec<Composite>,
    tuples: Vec<Tuple>,
}

impl Schema {
    /// A partition with one complete index that follows the container's policy.
    pub fn new(key: PartitionKeyDef, generation: u32, policy: IndexingPolicy) -> Schema {
        let policy = Arc::new(policy);
        let index = Arc::new(ActiveIndex::new(generation, policy.clone(), policy));
        Schema {
            key,
            index,
            building: None,
            ttl: DefaultTtl::Off,
            unique: UniqueKeys::default(),
            keeps_history: false,
            keeps_replaced: false,
        }
    }

    /// Which items are there at a moment.
    pub fn lifetimes(&self, now: u64) -> Lifetimes {
        Lifetimes::at(self.ttl, now)
    }
}

impl ActiveIndex {
    pub fn new(generation: u32, policy: Arc<IndexingPolicy>, current: Arc<IndexingPolicy>) -> ActiveIndex {
        let is_kept = |composite: &&Composite| current.composites().contains(composite);
        let composites = policy.composites().iter().filter(is_kept).cloned().collect();
        let is_kept = |tuple: &&Tuple| current.tuples().contains(tuple);
        let tuples = policy.tuples().iter().filter(is_kept).cloned().collect();
        ActiveIndex { generation, is_borrowed: false, policy, current, composites, tuples }
    }

    /// The same, shared with other partitions until this one has its own.
    pub fn borrowed(self, is_borrowed: bool) -> ActiveIndex {
        ActiveIndex { is_borrowed, ..self }
    }

    /// Whether every value at this path is in the index.
    pub fn covers(&self, path: &[Step<'_>]) -> bool {
        let is_same = Arc::ptr_eq(&self.policy, &self.current);
        self.policy.covers(path) && (is_same || self.current.covers(path) && self.agrees(path))
    }

    /// Whether a computed value is still computed as it was when the entries were made.
    fn agrees(&self, path: &[Step<'_>]) -> bool {
        match path {
            [Step::Computed(name), ..] => self.policy.computed(name) == self.current.computed(name),
            _ => true,
        }
    }

    /// Whether the cells of every shape at this path are in the index.
    pub fn is_spatial(&self, path: &[Step<'_>]) -> bool {
        self.policy.is_spatial(path) && self.current.is_spatial(path)
    }

    /// The composite indexes that a query may use.
    pub fn composites(&self) -> &[Composite] {
        &self.composites
    }

    /// The tuple indexes that a query may use.
    pub fn tuples(&self) -> &[Tuple] {
        &self.tuples
    }
}
