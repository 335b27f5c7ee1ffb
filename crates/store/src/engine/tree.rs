//! One keyspace on disk: an LSM tree, and the figures that a commit needs without waiting for it.
//!
//! The tree has a lock that its readers share, and that a flush or a merge takes alone while it syncs
//! its list of tables, five times one after the other. A commit that asked the tree for its write buffer
//! would wait for all of that. So the committer holds on to the write buffers itself ([`super::writer::Buffer`]),
//! and what it wants to know of tables is kept here in counters.

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lsm_tree::{AbstractTree, AnyTree};

use super::EngineError;
use super::error::read_error;

pub(super) struct Tree {
    pub tree: AnyTree,
    /// Overlapping runs in the first level.
    runs: AtomicUsize,
    /// Bytes in the write buffer that is being flushed.
    sealed_bytes: AtomicU64,
}

impl Tree {
    pub fn open(config: lsm_tree::Config) -> Result<Tree, EngineError> {
        let tree = config.open().map_err(read_error)?;
        let runs = AtomicUsize::new(tree.l0_run_count());
        Ok(Tree { tree, runs, sealed_bytes: AtomicU64::new(0) })
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
