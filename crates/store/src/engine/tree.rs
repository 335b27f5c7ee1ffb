//! One keyspace on disk: an LSM tree, and the figures that a commit needs without waiting for it.
//!
//! The tree has a lock that its readers share, and that a flush or a merge takes alone while it syncs
//! its list of tables, five times one after the other. A commit that asked the tree for its write buffer
//! would wait for all of that. So the committer holds on to the write buffers itself ([`super::writer::Buffer`]),
//! and what it wants to know of tables is kept here in counters.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lsm_tree::{AbstractTree, AnyTree};
use parking_lot::Mutex;

use super::error::read_error;
use super::manifest::TreeNote;
use super::tuning::Tuning;
use super::{EngineError, shape, tables};

pub(super) struct Tree {
    pub tree: AnyTree,
    /// Overlapping runs in the first level.
    runs: AtomicUsize,
    /// Bytes in the write buffer that is being flushed.
    sealed_bytes: AtomicU64,
    /// Fingerprints of its tables, by id.
    prints: Mutex<HashMap<u64, u64>>,
    /// The largest block of each table in the first level, by id.
    blocks: Mutex<HashMap<u64, u64>>,
    /// The largest block in the first level, and the largest ones of all its runs together.
    largest_block: AtomicU64,
    runs_bytes: AtomicU64,
}

impl Tree {
    /// Opens a tree whose tables have these fingerprints.
    pub fn open(config: lsm_tree::Config, prints: HashMap<u64, u64>) -> Result<Tree, EngineError> {
        let tree = config.open().map_err(read_error)?;
        let tree = Tree {
            tree,
            runs: AtomicUsize::default(),
            sealed_bytes: AtomicU64::default(),
            prints: Mutex::new(prints),
            blocks: Mutex::default(),
            largest_block: AtomicU64::default(),
            runs_bytes: AtomicU64::default(),
        };
        tree.count_runs();
        Ok(tree)
    }

    /// What the manifest is to say of the tree as it is now.
    pub fn note(&self) -> io::Result<TreeNote> {
        // Held to the end: as long as a reader has the version, its tables are not deleted.
        let version = self.tree.current_version();
        let mut prints = self.prints.lock();
        let mut known = HashMap::with_capacity(prints.len());
        for table in version.iter_tables() {
            let print = match prints.get(&table.id()) {
                Some(print) => *print,
                None => tables::fingerprint(&tables::table_path(self.path(), table.id()))?,
            };
            known.insert(table.id(), print);
        }
        *prints = known;
        Ok(tables::note(version.id(), &prints))
    }

    pub fn path(&self) -> &Path {
        &self.tree.tree_config().path
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// To be called when tables have come or gone.
    pub fn count_runs(&self) {
        self.runs.store(self.tree.l0_run_count(), Ordering::Relaxed);
        let version = self.tree.current_version();
        let mut known = self.blocks.lock();
        let mut blocks = HashMap::new();
        let (mut largest, mut sum) = (0, 0);
        for run in version.l0().iter() {
            let mut of_run = 0;
            for table in run.iter() {
                let block = known.get(&table.id()).copied().unwrap_or_else(|| shape::largest_block(table));
                blocks.insert(table.id(), block);
                of_run = of_run.max(block);
            }
            largest = largest.max(of_run);
            sum += of_run;
        }
        *known = blocks;
        self.largest_block.store(largest, Ordering::Relaxed);
        self.runs_bytes.store(sum, Ordering::Relaxed);
    }

    /// Runs from which the first level is merged, where a merge may take so much memory.
    pub fn level0_threshold(&self, tuning: &Tuning, memory: u64) -> u8 {
        shape::level0_threshold(tuning, memory, self.largest_block.load(Ordering::Relaxed))
    }

    /// Whether commits have to wait for a merge of the first level, lest it take more memory than it may.
    pub fn is_behind(&self, tuning: &Tuning, memory: u64) -> bool {
        // With more runs than this there is a merge to wait for.
        self.runs_bytes.load(Ordering::Relaxed) > shape::runs_bytes_max(memory)
            && self.runs() > usize::from(self.level0_threshold(tuning, memory))
    }

    /// What is kept in memory of each table.
    pub fn pinned_bytes(&self) -> u64 {
        (self.tree.pinned_filter_size() + self.tree.pinned_block_index_size()) as u64
    }

    pub fn sealed_bytes(&self) -> u64 {
        self.sealed_bytes.load(Ordering::Relaxed)
    }

    pub fn set_sealed_bytes(&self, bytes: u64) {
        self.sealed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Drops versions of the tree that nobody reads any more. A failure leaves a small file behind,
    /// which the next start removes.
    pub fn forget_versions(&self, oldest_read: u64) {
        let _ = self.tree.get_version_history_lock().maintenance(self.path(), oldest_read);
    }
}
