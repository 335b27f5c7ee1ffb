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
use super::{EngineError, tables};

pub(super) struct Tree {
    pub tree: AnyTree,
    /// Overlapping runs in the first level.
    runs: AtomicUsize,
    /// Bytes in the write buffer that is being flushed.
    sealed_bytes: AtomicU64,
    /// Fingerprints of its tables, by id.
    prints: Mutex<HashMap<u64, u64>>,
}

impl Tree {
    /// Opens a tree whose tables have these fingerprints.
    pub fn open(config: lsm_tree::Config, prints: HashMap<u64, u64>) -> Result<Tree, EngineError> {
        let tree = config.open().map_err(read_error)?;
        let runs = AtomicUsize::new(tree.l0_run_count());
        Ok(Tree { tree, runs, sealed_bytes: AtomicU64::new(0), prints: Mutex::new(prints) })
    }

    /// What the manifest is to say of the tree as it is now.
    pub fn note(&self) -> io::Result<TreeNote> {
        // Held to the end: as long as somebody has the version, its tables are not deleted.
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
