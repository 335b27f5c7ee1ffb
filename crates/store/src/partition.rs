//! One physical partition: what identifies it, what it remembers, and how its state moves on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_doc::{Epk, EpkRange};
use parking_lot::Mutex;

use crate::build::Build;
use crate::engine::{Batch, EngineError, Keyspace, Snapshot};
use crate::limits::{LEAP_LSNS, SIZES_CACHED_MAX, SPLIT_TOUCHED_MAX};
use crate::{
    FeedCursor, HistoryBounds, ItemRid, LogicalSize, Lsn, PartitionState, PathCounts, Prepared, SchemaMark,
    Source, keys,
};

/// The region whose partitions these are, as long as the account has one.
pub(crate) const REGION: u8 = 0;

/// What never changes in the life of a partition.
#[derive(Clone, Debug)]
pub struct PartitionSpec {
    /// Unique on the node; the prefix of its feed and state.
    pub number: u32,
    /// The container whose items these are.
    pub container: u32,
    /// The prefix of its rid entries, which belong to no index and stay when indexes change. Partitions of one
    /// container share it: its entries name their place in the key space.
    pub rid_generation: u32,
    pub range: EpkRange,
    /// Makes the rids of sibling partitions differ.
    pub rid_prefix: u32,
    /// Partitions that were before this one and whose entries it goes on reading.
    pub sources: Vec<Source>,
}

/// What is to be published of a group that was applied, once it is durable.
#[must_use]
pub struct Applied {
    lsn: Lsn,
    /// The logical partitions that it wrote to.
    touched: Vec<Epk>,
}

pub struct Partition {
    pub spec: PartitionSpec,
    /// The LSN that readers may see, which may be behind the state.
    published: AtomicU64,
    rids_given: AtomicU64,
    state: Mutex<PartitionState>,
    sizes: Mutex<HashMap<Epk, LogicalSize>>,
    /// By generation.
    counts: Mutex<HashMap<u32, Arc<PathCounts>>>,
    build: Mutex<Option<Build>>,
    history: Mutex<Option<HistoryBounds>>,
    /// Which indexes the last group kept up.
    schema: Mutex<Option<SchemaMark>>,
    passed: Mutex<Passed>,
    /// Logical partitions written to since a split began to watch.
    touched: Mutex<Option<Touched>>,
}

/// For sequences of the feed, by number: up to this write no item of the partition lives by the container's default.
pub(crate) type PassedWrites = HashMap<u32, FeedCursor>;

/// What was passed, in every snapshot that holds at least `as_of`, and up to a moment: items were passed too whose time
/// was ahead of the clock.
#[derive(Default)]
struct Passed {
    writes: Arc<PassedWrites>,
    as_of: Lsn,
    until: u64,
}

/// Logical partitions that were written to, as long as they are not too many.
#[derive(Default)]
struct Touched {
    keys: HashSet<Epk>,
    too_many: bool,
}

impl Touched {
    fn add(&mut self, keys: impl Iterator<Item = Epk>) {
        if !self.too_many {
            self.keys.extend(keys);
            self.too_many = self.keys.len() > SPLIT_TOUCHED_MAX;
        }
    }

    fn all(self) -> Option<HashSet<Epk>> {
        (!self.too_many).then_some(self.keys)
    }
}

impl Partition {
    /// Opens a partition at the state that the last commit left, or at its beginning.
    pub fn open(spec: PartitionSpec, snapshot: &Snapshot) -> Result<Partition, EngineError> {
        let state = PartitionState::read(snapshot, spec.number)?;
        let counts = PathCounts::read_all(snapshot, spec.number)?;
        let build = Build::read(snapshot, spec.number)?;
        let history = HistoryBounds::read(snapshot, spec.number)?;
        let schema = SchemaMark::read(snapshot, spec.number)?;
        Ok(Partition {
            spec,
            counts: Mutex::new(counts),
            build: Mutex::new(build),
            history: Mutex::new(history),
            schema: Mutex::new(schema),
            passed: Mutex::new(Passed::default()),
            published: AtomicU64::new(state.lsn.0),
            rids_given: AtomicU64::new(state.rids_given),
            state: Mutex::new(state),
            touched: Mutex::new(None),
            sizes: Mutex::new(HashMap::new()),
        })
    }

    /// The newest transaction that readers may see.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.published.load(Ordering::Acquire))
    }

    /// As the last group left it that was applied, which is perhaps not durable yet.
    pub fn state(&self) -> PartitionState {
        self.state.lock().clone()
    }

    /// The state that a snapshot holds, which is of the same moment as everything else in it.
    pub fn state_at(&self, snapshot: &Snapshot) -> Result<PartitionState, EngineError> {
        PartitionState::read(snapshot, self.spec.number)
    }

    /// How many items have a value at each counted path, as of a snapshot. Compare with the items of
    /// [`Partition::state_at`]: they differ at the path `id` when some items were kept out of the index.
    pub fn path_counts_at(
        &self,
        snapshot: &Snapshot,
        generation: u32,
    ) -> Result<Arc<PathCounts>, EngineError> {
        let stored = self.state_at(snapshot)?;
        self.path_counts_of(snapshot, stored.lsn, generation)
    }

    /// The same for a caller who knows the LSN of the snapshot's state.
    pub(crate) fn path_counts_of(
        &self,
        snapshot: &Snapshot,
        lsn: Lsn,
        generation: u32,
    ) -> Result<Arc<PathCounts>, EngineError> {
        let state = self.state.lock();
        // An index that readers may use changes with the LSN only, so at the same LSN it is the same.
        let remembered = self.counts.lock().get(&generation).filter(|_| state.lsn == lsn).cloned();
        drop(state);
        match remembered {
            Some(counts) => Ok(counts),
            None => PathCounts::read(snapshot, self.spec.number, generation).map(Arc::new),
        }
    }

    /// Up to which writes no item of a snapshot with this LSN lives by the container's default. Only a search has found
    /// out, so it is not known again after a restart.
    pub(crate) fn passed_at(&self, lsn: Lsn, now: u64) -> (Arc<PassedWrites>, u64) {
        let passed = self.passed.lock();
        // An item that was rewritten or deleted since lay before that point, and older snapshots still hold it.
        match lsn >= passed.as_of && now < passed.until {
            true => (passed.writes.clone(), passed.until),
            false => (Arc::default(), u64::MAX),
        }
    }

    pub(crate) fn set_passed(&self, writes: PassedWrites, as_of: Lsn, until: u64) {
        *self.passed.lock() = Passed { writes: Arc::new(writes), as_of, until };
    }

    /// How far an index that is being built has come.
    pub fn build_of(&self, generation: u32) -> Build {
        let build = self.build.lock().clone().filter(|build| build.generation == generation);
        build.unwrap_or_else(|| Build::start(generation))
    }

    /// Which part of the history is there; none when nothing of it was recorded or left.
    pub fn history(&self) -> Option<HistoryBounds> {
        *self.history.lock()
    }

    /// Which indexes the last group kept up; none when there was no group yet, or none by a build that says so.
    pub fn schema_mark(&self) -> Option<SchemaMark> {
        *self.schema.lock()
    }

    pub(crate) fn with_counts<T>(&self, read: impl FnOnce(&HashMap<u32, Arc<PathCounts>>) -> T) -> T {
        read(&self.counts.lock())
    }

    /// The size of a logical partition, as of the last group that was applied.
    pub fn logical_size(&self, epk: &Epk, snapshot: &Snapshot) -> Result<LogicalSize, EngineError> {
        if let Some(size) = self.sizes.lock().get(epk) {
            return Ok(*size);
        }
        LogicalSize::read(snapshot, self.spec.container, epk)
    }

    /// From now on remembers which logical partitions are written to.
    pub(crate) fn watch(&self) {
        *self.touched.lock() = Some(Touched::default());
    }

    /// Ends watching; `None` when nobody watched, or too many were written to.
    pub(crate) fn end_watch(&self) -> Option<HashSet<Epk>> {
        self.touched.lock().take().and_then(Touched::all)
    }

    /// A split that was planned will not come.
    pub fn forget_plan(&self) {
        self.end_watch();
    }

    /// Takes over a group whose batch the engine has: the next group goes on from it. Readers see nothing of it yet.
    pub fn apply(&self, prepared: Prepared) -> Applied {
        let mut state = self.state.lock();
        assert!(prepared.state.lsn >= state.lsn, "the LSN of a partition never goes back");
        *state = prepared.state;
        let applied = Applied { lsn: state.lsn, touched: prepared.sizes.keys().cloned().collect() };
        let mut sizes = self.sizes.lock();
        if sizes.len() + prepared.sizes.len() > SIZES_CACHED_MAX {
            sizes.clear();
        }
        sizes.extend(prepared.sizes);
        let mut counts = self.counts.lock();
        // What is no longer kept up is no longer counted.
        counts.retain(|generation, _| prepared.counts.iter().any(|(kept, _)| kept == generation));
        for (generation, change) in prepared.counts {
            Arc::make_mut(counts.entry(generation).or_default()).apply(change);
        }
        if prepared.schema.is_some() {
            *self.schema.lock() = prepared.schema;
        }
        if prepared.build.is_some() {
            *self.build.lock() = prepared.build;
        }
        *self.history.lock() = prepared.history;
        applied
    }

    /// Makes a group visible: it is durable, and the caller has published a snapshot with it.
    pub fn publish(&self, applied: Applied) {
        // Not sooner: a split that begins to watch and takes a snapshot then must find a write in the one or the other.
        if let Some(touched) = &mut *self.touched.lock() {
            touched.add(applied.touched.into_iter());
        }
        let before = self.published.swap(applied.lsn.0, Ordering::Release);
        assert!(before <= applied.lsn.0, "groups are published in their order");
    }

    /// Puts the partition a long way ahead, in a batch that the caller commits before anything is served. What was given
    /// to writes that are lost, and that a reader may have seen, is then never given again. Returns the LSNs before
    /// and after.
    pub fn leap(&self, batch: &mut Batch) -> (Lsn, Lsn) {
        let epoch = self.state.lock().epoch;
        self.skip(epoch, batch)
    }

    /// Begins a new epoch, in a batch that the caller commits before anything is served: another leader may have gone on from
    /// an older state of this partition, and what was given to writes there is never given here. Returns the LSNs before and after.
    pub fn enter_epoch(&self, epoch: u32, batch: &mut Batch) -> (Lsn, Lsn) {
        assert!(epoch > self.state.lock().epoch, "epochs of a partition grow");
        self.skip(epoch, batch)
    }

    fn skip(&self, epoch: u32, batch: &mut Batch) -> (Lsn, Lsn) {
        let mut state = self.state.lock();
        let before = state.lsn;
        state.epoch = epoch;
        state.lsn.0 += LEAP_LSNS;
        state.rids_given += LEAP_LSNS;
        self.rids_given.store(state.rids_given, Ordering::Relaxed);
        self.published.store(state.lsn.0, Ordering::Release);
        batch.put(Keyspace::Meta, keys::partition_state(self.spec.number).to_vec(), state.encode());
        (before, state.lsn)
    }

    /// A rid that no other item of this partition has. Transactions that are worked out beside the write path take theirs
    /// before they are committed, so the count is not a part of the group.
    pub(crate) fn next_rid(&self) -> u64 {
        let count = self.rids_given.fetch_add(1, Ordering::Relaxed) + 1;
        ItemRid { partition: self.spec.rid_prefix, region: REGION, count }.encode()
    }

    /// How many were given, to be stored with the items that have them.
    pub(crate) fn rids_given(&self) -> u64 {
        self.rids_given.load(Ordering::Relaxed)
    }
}
