//! The engine that keeps its data in a directory: an LSM tree for each keyspace, and one journal for all.
//!
//! The trees are those of the `lsm-tree` crate. It gives us write buffers, tables, merges and reads at
//! a sequence number; the rest is ours, because how it is done decides how long a commit can take:
//!
//! - **The journal** ([`super::journal`]): batches over all keyspaces, made durable by one sync.
//! - **Commits that wait for no tree** ([`super::tree`]). A commit writes to the journal and fills the write
//!   buffers, and what makes it durable syncs the journal; none of these is behind a lock that a flush or a merge holds.
//! - **Flushing and merging by our own threads**; see `flusher` and `compactor`. When they fall behind,
//!   commits are slowed down early and in small steps.
//! - **Snapshots that never change** ([`super::points`]). Only the committer makes new ones, between batches,
//!   and readers share the latest. That is also fast.
//! - **A clean refusal when the disk is full**; see `space`.
//! - **A fast first start.** Creating a tree costs several syncs. The trees of a new directory are
//!   created in the background and read as empty until then; `Log`, which most nodes never write, is
//!   created by its first write.
//!
//! In the directory: `lock`, the folder `journal`, `mark`, which says how far the journal is durable, a folder for each
//! keyspace, and `manifest`, which says how all of these belong together.

use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lsm_tree::AbstractTree;
use parking_lot::Mutex;

use super::batch::Batch;
use super::compactor::Compactors;
use super::error::read_error;
use super::flusher::Flusher;
use super::points::Point;
use super::scan::TreeScan;
use super::shared::{Backlog, Shared};
use super::space::volume_bytes;
use super::tree::Tree;
use super::tuning::Tuning;
use super::{Access, EngineError, EngineStats, Keyspace, TornTail};

/// First-level runs from which commits are slowed down, and by how much for each further one.
const RUNS_FREE: usize = 12;
const DELAY_PER_RUN: Duration = Duration::from_millis(2);
/// How long a commit waits for a flush when a write buffer is larger than twice what it should be.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(60);

/// Free space that commits leave on a volume that is large enough; of a smaller one they leave half.
const RESERVE_BYTES: u64 = 512 << 20;

/// How to open the engine in a directory.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    pub path: PathBuf,
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// Memory for what was written and is not in tables yet, over all keyspaces.
    pub buffer_bytes: u64,
    /// Memory for merging tables.
    pub merge_bytes: u64,
    /// The most disk the engine may use: an operator's quota. Commits beyond it are refused.
    pub disk_limit_bytes: Option<u64>,
    /// Free space that commits leave to flushes and merges; see `space`.
    pub reserve_bytes: u64,
    pub tuning: Tuning,
}

impl DiskOptions {
    pub fn new(path: impl Into<PathBuf>) -> DiskOptions {
        let path = path.into();
        let volume = volume_bytes(&path).unwrap_or(u64::MAX);
        DiskOptions {
            path,
            cache_bytes: 32 << 20,
            buffer_bytes: 192 << 20,
            merge_bytes: 128 << 20,
            disk_limit_bytes: None,
            reserve_bytes: RESERVE_BYTES.min(volume / 2),
            tuning: Tuning::for_volume(volume),
        }
    }

    /// Sets the most disk that the engine may use; what is small gets small files.
    pub fn limit(&mut self, bytes: Option<u64>) {
        self.disk_limit_bytes = bytes;
        let volume = volume_bytes(&self.path).unwrap_or(u64::MAX);
        self.tuning = Tuning::for_volume(bytes.map_or(volume, |bytes| volume.min(bytes.saturating_mul(2))));
    }
}

pub(super) struct Disk {
    shared: Arc<Shared>,
    compactors: Compactors,
    flusher: Flusher,
    creator: Mutex<Option<JoinHandle<()>>>,
    commits: AtomicU64,
    delays: Durations,
    writes: Durations,
}

/// How often something took time, and how much.
#[derive(Default)]
struct Durations {
    count: AtomicU64,
    micros: AtomicU64,
    longest_micros: AtomicU64,
}

impl Durations {
    fn add(&self, time: Duration) {
        let micros = time.as_micros() as u64;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.longest_micros.fetch_max(micros, Ordering::Relaxed);
    }
}

impl Disk {
    pub fn open(options: DiskOptions) -> Result<Disk, EngineError> {
        let shared = Arc::new(Shared::open(&options, Access::Own)?);
        let missing = Keyspace::ALL.into_iter().filter(|keyspace| *keyspace != Keyspace::Log);
        let missing: Vec<_> = missing.filter(|keyspace| shared.existing(*keyspace).is_none()).collect();
        Ok(Disk {
            compactors: Compactors::start(&shared),
            flusher: Flusher::start(&shared),
            creator: Mutex::new(create_in_background(&shared, missing)),
            shared,
            commits: AtomicU64::new(0),
            delays: Durations::default(),
            writes: Durations::default(),
        })
    }

    /// Opens a directory for reading, without any background work, and checks whole tables.
    pub fn inspect(options: &DiskOptions) -> (Result<Disk, EngineError>, Vec<String>) {
        let shared = match Shared::open(options, Access::Look) {
            Err(EngineError::Locked(path)) => return (Err(EngineError::Locked(path)), Vec::new()),
            opened => opened,
        };
        let mut findings = Shared::check_tables(options);
        let disk = shared.map(|shared| {
            let shared = Arc::new(shared);
            Disk {
                compactors: Compactors::none(),
                flusher: Flusher::none(),
                creator: Mutex::new(None),
                shared,
                commits: AtomicU64::new(0),
                delays: Durations::default(),
                writes: Durations::default(),
            }
        });
        if let Ok(disk) = &disk {
            findings.extend(disk.remarks());
            findings.extend(disk.torn_tail().map(|torn| torn.to_string()));
        }
        (disk, findings)
    }

    pub fn commit(&self, batch: Batch) -> Result<(), EngineError> {
        let shared = &self.shared;
        shared.writer.lock().check()?;
        if batch.is_empty() {
            return Ok(());
        }
        let (journal, buffered) = shared.held_bytes();
        let admitted = shared.space.admit(batch.bytes() as u64, journal + buffered, batch.frees());
        admitted.inspect_err(|_| self.make_room())?;
        self.slow_down(batch.buffered_bytes())?;
        shared.found().map_err(|error| shared.space.translate(error))?;
        for keyspace in Keyspace::ALL {
            if batch.writes.iter().any(|write| write.keyspace == keyspace) {
                shared.create(keyspace).map_err(|error| shared.space.translate(error))?;
            }
        }
        let began = Instant::now();
        let largest = shared.write(batch).map_err(|error| shared.space.translate(error))?;
        self.writes.add(began.elapsed());
        self.commits.fetch_add(1, Ordering::Relaxed);
        if largest >= shared.tuning.memtable_bytes {
            self.flusher.wake();
        }
        self.compactors.wake();
        Ok(())
    }

    /// After a refusal: what write buffers and the journal hold twice goes to tables.
    fn make_room(&self) {
        self.shared.want_flush();
        self.flusher.wake();
    }

    /// Lets background work catch up, in steps too small for a client to notice. Only where it is far
    /// behind are there no more commits until it has caught up.
    fn slow_down(&self, coming: u64) -> Result<(), EngineError> {
        let began = Instant::now();
        let runs = self.shared.existing_trees().map(|(_, tree)| tree.runs()).max().unwrap_or(0);
        let steps = runs.saturating_sub(RUNS_FREE) as u32;
        if steps > 0 {
            thread::sleep(DELAY_PER_RUN * steps);
        }
        let mut waited = false;
        loop {
            let is_behind = match self.shared.backlog(coming)? {
                Backlog::None => false,
                Backlog::Large => began.elapsed() < FLUSH_WAIT_MAX,
                Backlog::TooLarge => true,
            };
            if !is_behind {
                break;
            }
            self.flusher.wake();
            waited = true;
            thread::sleep(Duration::from_millis(1));
        }
        if steps > 0 || waited {
            self.delays.add(began.elapsed());
        }
        Ok(())
    }

    pub fn snapshot(&self) -> DiskSnapshot {
        DiskSnapshot { shared: Arc::clone(&self.shared), point: self.shared.points.latest() }
    }

    pub fn persist(&self) -> Result<(), EngineError> {
        let began = Instant::now();
        let mut writer = self.shared.writer.lock();
        let synced = writer.journal.sync();
        self.writes.add(began.elapsed());
        synced.map_err(|error| writer.stop(&error))
    }

    pub fn close(&self) -> Result<(), EngineError> {
        let was_stopped = {
            let mut writer = self.shared.writer.lock();
            writer.close()
        };
        if was_stopped {
            return Ok(());
        }
        self.compactors.stop();
        if let Some(creator) = self.creator.lock().take() {
            let _ = creator.join();
        }
        self.flusher.join();
        self.shared.flush_all()
    }

    pub fn torn_tail(&self) -> Option<TornTail> {
        self.shared.writer.lock().journal.torn_tail().cloned()
    }

    pub fn remarks(&self) -> Vec<String> {
        self.shared.remarks()
    }

    pub fn is_full(&self) -> bool {
        self.shared.space.is_full()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.shared.space.used()
    }

    pub fn free_disk_bytes(&self) -> Option<u64> {
        self.shared.space.free()
    }

    pub fn set_disk_limit(&self, bytes: Option<u64>) {
        self.shared.space.set_limit(bytes);
    }

    pub fn stats(&self) -> EngineStats {
        let trees = || self.shared.existing_trees().map(|(_, tree)| tree);
        let (journal_bytes, memtable_bytes) = self.shared.held_bytes();
        EngineStats {
            commits: self.commits.load(Ordering::Relaxed),
            refused_disk_full: self.shared.space.refused(),
            delayed: self.delays.count.load(Ordering::Relaxed),
            delayed_micros: self.delays.micros.load(Ordering::Relaxed),
            delayed_longest_micros: self.delays.longest_micros.load(Ordering::Relaxed),
            write_longest_micros: self.writes.longest_micros.load(Ordering::Relaxed),
            journal_bytes,
            memtable_bytes,
            level0_runs: trees().map(Tree::runs).max().unwrap_or(0) as u64,
            tables: trees().map(|tree| tree.tree.table_count() as u64).sum(),
            compactions: self.compactors.merges(),
            cache_bytes: self.shared.blocks.bytes(),
            table_bytes: trees().map(|tree| tree.tree.disk_space()).sum(),
            pinned_bytes: trees().map(Tree::pinned_bytes).sum(),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.compactors.join();
        self.flusher.join();
        if let Some(creator) = self.creator.lock().take() {
            let _ = creator.join();
        }
    }
}

/// Creates the trees of a new directory while the server already answers.
fn create_in_background(shared: &Arc<Shared>, missing: Vec<Keyspace>) -> Option<JoinHandle<()>> {
    if missing.is_empty() {
        return None;
    }
    let shared = Arc::clone(shared);
    let thread = thread::Builder::new().name("keyspaces".into()).spawn(move || {
        if shared.found().is_err() {
            return;
        }
        for keyspace in missing {
            // The commit that needs the tree tries again and reports what went wrong.
            if shared.create(keyspace).is_err() {
                return;
            }
        }
    });
    thread.ok()
}

#[derive(Clone)]
pub(super) struct DiskSnapshot {
    shared: Arc<Shared>,
    point: Arc<Point>,
}

impl DiskSnapshot {
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let Some(tree) = self.shared.existing(keyspace) else { return Ok(None) };
        let value = tree.tree.get(key, self.point.sequence).map_err(read_error)?;
        Ok(value.map(Bytes::from))
    }

    pub fn contains(&self, keyspace: Keyspace, key: &[u8]) -> Result<bool, EngineError> {
        let Some(tree) = self.shared.existing(keyspace) else { return Ok(false) };
        tree.tree.contains_key(key, self.point.sequence).map_err(read_error)
    }

    pub fn range(&self, keyspace: Keyspace, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<TreeScan> {
        let tree = self.shared.existing(keyspace)?;
        let iter = tree.tree.range::<&[u8], _>((lower, upper), self.point.sequence, None);
        Some(TreeScan { iter, _shared: Arc::clone(&self.shared) })
    }
}
