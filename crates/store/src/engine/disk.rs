//! The engine that keeps its data in a directory: fjall, and what we put around it.
//!
//! fjall gives us an LSM tree per keyspace, one journal for all, and batches over all. What it
//! does not give, and this module adds:
//!
//! - **Snapshots that never change.** A flush or a merge that ends makes fjall's newest sequence
//!   number visible, even while a batch with a smaller one is being applied; a snapshot taken in that
//!   moment would see the batch arrive piece by piece. So only the committer takes snapshots, between
//!   batches, and readers share the latest one. That is also faster.
//! - **Sealing of write buffers and merging by our own threads**; see `janitor` and `compactor`.
//! - **A clean refusal when the disk is full**; see `space`.
//! - **Smooth slowing down.** When flushes or merges fall behind, fjall sleeps in steps of 100 ms. We
//!   slow commits down earlier and in small steps, so that it never comes to that.
//! - **A fast first start.** Creating a keyspace costs twenty syncs. The keyspaces of a new directory
//!   are created in the background and read as empty until then; `Log`, which most nodes never
//!   write, is created by its first write.
//! - **A restart without replay.** A clean stop flushes all write buffers, and then the journal can
//!   be emptied.

use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::{AbstractTree, PersistMode, Readable};
use parking_lot::{Mutex, RwLock};

use super::batch::Batch;
use super::compactor::Compactors;
use super::janitor::{Janitor, Leftovers};
use super::space::Space;
use super::tuning::Tuning;
use super::{EngineError, EngineStats, Keyspace, SyncMode};

/// The smallest bound on journals that fjall takes. Everything in them is replayed after a kill.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Bounds on the table files that are kept open.
const OPEN_TABLES_MIN: usize = 64;
const OPEN_TABLES_MAX: usize = 8 * 1024;
/// First-level runs from which commits are slowed down, and by how much for each further one.
/// fjall itself stops all writers at 30.
const RUNS_FREE: usize = 8;
const DELAY_PER_RUN: Duration = Duration::from_millis(2);
/// Sealed write buffers of one keyspace that commits wait for, and how long. fjall itself stops the
/// writer for 100 ms at 4.
const SEALED_MAX: usize = 3;
const SEALED_WAIT_MAX: Duration = Duration::from_millis(60);

/// How to open the engine in a directory.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    pub path: PathBuf,
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// The most disk the engine may use: an operator's quota. Commits beyond it are refused.
    pub disk_limit_bytes: Option<u64>,
    /// Free space that commits leave to flushes and merges; see `space`.
    pub reserve_bytes: u64,
    pub tuning: Tuning,
}

impl DiskOptions {
    pub fn new(path: impl Into<PathBuf>) -> DiskOptions {
        DiskOptions {
            path: path.into(),
            cache_bytes: 32 << 20,
            disk_limit_bytes: None,
            reserve_bytes: 512 << 20,
            tuning: Tuning::default(),
        }
    }
}

pub(super) struct Disk {
    shared: Arc<Shared>,
    compactors: Compactors,
    janitor: Janitor,
    space: Space,
    creator: Mutex<Option<JoinHandle<()>>>,
    delays: Durations,
    writes: Durations,
}

/// Table files that may stay open: half of what the process may have, the rest being its connections'.
/// A table that is not open costs a call to the system for every block that is read from it.
fn open_tables() -> usize {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let half = allowed.map_or(OPEN_TABLES_MAX, |files| files as usize / 2);
    half.clamp(OPEN_TABLES_MIN, OPEN_TABLES_MAX)
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

/// What snapshots and background threads hold on to.
pub(super) struct Shared {
    pub database: fjall::Database,
    pub tuning: Tuning,
    path: PathBuf,
    pub leftovers: Leftovers,
    /// Grows with every commit.
    pub commits: AtomicU64,
    keyspaces: [OnceLock<fjall::Keyspace>; Keyspace::ALL.len()],
    /// Taken between commits and handed out to every reader until the next one.
    latest: RwLock<Arc<fjall::Snapshot>>,
    /// Whether the engine was closed; held while a commit is under way.
    closed: Mutex<bool>,
}

impl Disk {
    pub fn open(options: DiskOptions) -> Result<Disk, EngineError> {
        let database = fjall::Database::builder(&options.path)
            .cache_size(options.cache_bytes)
            .max_cached_files(Some(open_tables()))
            .worker_threads(1)
            .max_journaling_size(JOURNAL_BYTES)
            .open()
            .map_err(|error| open_error(error, &options.path))?;
        let shared = Arc::new(Shared {
            latest: RwLock::new(Arc::new(database.snapshot())),
            database,
            tuning: options.tuning,
            path: options.path.clone(),
            leftovers: Leftovers::default(),
            commits: AtomicU64::new(0),
            keyspaces: Default::default(),
            closed: Mutex::new(false),
        });
        let mut missing = Vec::new();
        for keyspace in [Keyspace::Meta, Keyspace::Item, Keyspace::Index, Keyspace::Feed, Keyspace::Log] {
            if shared.database.keyspace_exists(keyspace.name()) {
                shared.create(keyspace)?;
            } else if keyspace != Keyspace::Log {
                missing.push(keyspace);
            }
        }
        Ok(Disk {
            compactors: Compactors::start(&shared),
            janitor: Janitor::start(&shared),
            space: Space::new(&options.path, options.reserve_bytes, options.disk_limit_bytes),
            creator: Mutex::new(create_in_background(&shared, missing)),
            shared,
            delays: Durations::default(),
            writes: Durations::default(),
        })
    }

    pub fn commit(&self, batch: Batch, sync: SyncMode) -> Result<(), EngineError> {
        let closed = self.shared.closed.lock();
        if *closed {
            return Err(EngineError::Stopped("it was closed".into()));
        }
        self.space.admit(batch.bytes() as u64, self.shared.database.write_buffer_size())?;
        self.slow_down();
        let mode = match sync {
            SyncMode::Durable => PersistMode::SyncData,
            SyncMode::Relaxed => PersistMode::Buffer,
        };
        let database = &self.shared.database;
        let mut writes = fjall::OwnedWriteBatch::with_capacity(database.clone(), batch.len());
        for write in batch.writes {
            let keyspace = self.shared.create(write.keyspace)?;
            match write.value {
                Some(value) => writes.insert(keyspace, write.key, value),
                None => writes.remove(keyspace, write.key),
            }
        }
        // The batch is journalled and synced before it is applied, so nobody sees it too early; the
        // journal's lock, which is held meanwhile, is not one that readers take.
        let began = Instant::now();
        writes.durability(Some(mode)).commit().map_err(write_error)?;
        self.writes.add(began.elapsed());
        self.shared.replace_latest();
        drop(closed);
        if self.shared.leftovers.hold_buffers(&self.shared) >= self.shared.tuning.memtable_bytes {
            self.janitor.wake();
        }
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.compactors.wake();
        Ok(())
    }

    /// Lets background work catch up, in steps too small for a client to notice.
    fn slow_down(&self) {
        let began = Instant::now();
        let runs = self.shared.trees().map(|tree| tree.l0_run_count()).max().unwrap_or(0);
        let steps = runs.saturating_sub(RUNS_FREE) as u32;
        if steps > 0 {
            thread::sleep(DELAY_PER_RUN * steps);
        }
        let mut waited = false;
        while self.shared.buffers_are_full() && began.elapsed() < SEALED_WAIT_MAX {
            waited = true;
            thread::sleep(Duration::from_millis(1));
        }
        if steps > 0 || waited {
            self.delays.add(began.elapsed());
        }
    }

    pub fn snapshot(&self) -> DiskSnapshot {
        let snapshot = Arc::clone(&self.shared.latest.read());
        DiskSnapshot { shared: Arc::clone(&self.shared), snapshot }
    }

    pub fn persist(&self) -> Result<(), EngineError> {
        let database = &self.shared.database;
        database.persist(PersistMode::SyncData).map_err(write_error)
    }

    pub fn close(&self) -> Result<(), EngineError> {
        let mut closed = self.shared.closed.lock();
        if *closed {
            return Ok(());
        }
        *closed = true;
        self.compactors.stop();
        if let Some(creator) = self.creator.lock().take() {
            let _ = creator.join();
        }
        self.shared.flush()?;
        self.persist()?;
        self.shared.empty_journal()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.space.used()
    }

    pub fn free_disk_bytes(&self) -> Option<u64> {
        self.space.free()
    }

    pub fn set_disk_limit(&self, bytes: Option<u64>) {
        self.space.set_limit(bytes);
    }

    pub fn stats(&self) -> EngineStats {
        let database = &self.shared.database;
        let trees = || self.shared.trees();
        EngineStats {
            commits: self.shared.commits.load(Ordering::Relaxed),
            refused_disk_full: self.space.refused(),
            delayed: self.delays.count.load(Ordering::Relaxed),
            delayed_micros: self.delays.micros.load(Ordering::Relaxed),
            delayed_longest_micros: self.delays.longest_micros.load(Ordering::Relaxed),
            write_longest_micros: self.writes.longest_micros.load(Ordering::Relaxed),
            journal_bytes: database.journal_disk_space().unwrap_or(0),
            memtable_bytes: database.write_buffer_size(),
            level0_runs: trees().map(|tree| tree.l0_run_count()).max().unwrap_or(0) as u64,
            tables: trees().map(|tree| tree.table_count() as u64).sum(),
            compactions: self.compactors.merges(),
            cache_bytes: database.cache_size(),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.compactors.join();
        self.janitor.join();
        if let Some(creator) = self.creator.lock().take() {
            let _ = creator.join();
        }
    }
}

/// Creates the keyspaces of a new directory while the server already answers.
fn create_in_background(shared: &Arc<Shared>, missing: Vec<Keyspace>) -> Option<JoinHandle<()>> {
    if missing.is_empty() {
        return None;
    }
    let shared = Arc::clone(shared);
    let thread = thread::Builder::new().name("keyspaces".into()).spawn(move || {
        for keyspace in missing {
            // The commit that needs the keyspace tries again and reports what went wrong.
            if shared.create(keyspace).is_err() {
                return;
            }
        }
    });
    thread.ok()
}

impl Shared {
    /// The keyspace, unless nothing was ever written to it.
    pub fn existing(&self, keyspace: Keyspace) -> Option<&fjall::Keyspace> {
        self.keyspaces[keyspace as usize].get()
    }

    fn create(&self, keyspace: Keyspace) -> Result<&fjall::Keyspace, EngineError> {
        let slot = &self.keyspaces[keyspace as usize];
        if let Some(handle) = slot.get() {
            return Ok(handle);
        }
        // Two threads may get here; fjall creates the keyspace once and gives both the same.
        let options = || self.tuning.create_options(keyspace);
        let handle = self.database.keyspace(keyspace.name(), options).map_err(read_error)?;
        Ok(slot.get_or_init(|| handle))
    }

    /// Hands readers a new snapshot. The caller holds the commit lock, so no batch is half applied.
    fn replace_latest(&self) {
        let snapshot = Arc::new(self.database.snapshot());
        let previous = std::mem::replace(&mut *self.latest.write(), snapshot);
        // Closing a snapshot may make fjall clean up; not while readers wait.
        drop(previous);
    }

    /// As the end of a commit does, for times without commits. A commit under way will do it itself.
    pub fn refresh_latest(&self) {
        if let Some(_between_commits) = self.closed.try_lock() {
            self.replace_latest();
        }
    }

    /// The oldest sequence number that somebody may still read at, as far as fjall has found out.
    pub fn oldest_read(&self) -> u64 {
        self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc()
    }

    fn handles(&self) -> impl Iterator<Item = &fjall::Keyspace> {
        self.keyspaces.iter().filter_map(OnceLock::get)
    }

    fn trees(&self) -> impl Iterator<Item = &fjall::AnyTree> {
        self.handles().map(|keyspace| &keyspace.tree)
    }

    /// Whether some keyspace cannot take more before a flush has ended.
    fn buffers_are_full(&self) -> bool {
        let too_large = 2 * self.tuning.memtable_bytes;
        self.trees().any(|tree| {
            tree.sealed_memtable_count() >= SEALED_MAX || tree.active_memtable().size() >= too_large
        })
    }

    /// Writes all write buffers out and waits for it.
    fn flush(&self) -> Result<(), EngineError> {
        for keyspace in self.handles() {
            keyspace.rotate_memtable().map_err(write_error)?;
        }
        while self.trees().any(|tree| tree.sealed_memtable_count() > 0) || self.database.journal_count() > 1 {
            // This fails once a flush has failed; the journals then still hold what was not flushed.
            self.database.persist(PersistMode::Buffer).map_err(write_error)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Empties the journal when everything in it is in tables. fjall would keep it and read it all at
    /// the next start, to find each entry flushed already.
    fn empty_journal(&self) -> Result<(), EngineError> {
        let pending =
            |tree: &fjall::AnyTree| !tree.active_memtable().is_empty() || tree.sealed_memtable_count() > 0;
        if self.trees().any(pending) {
            return Ok(());
        }
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                let journal = std::fs::OpenOptions::new().write(true).open(path)?;
                journal.set_len(0)?;
                journal.sync_all()?;
            }
        }
        Ok(())
    }
}

#[derive(Clone)]
pub(super) struct DiskSnapshot {
    shared: Arc<Shared>,
    snapshot: Arc<fjall::Snapshot>,
}

impl DiskSnapshot {
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let Some(keyspace) = self.shared.existing(keyspace) else { return Ok(None) };
        let value = self.snapshot.get(keyspace, key).map_err(read_error)?;
        Ok(value.map(Bytes::from))
    }

    pub fn contains(&self, keyspace: Keyspace, key: &[u8]) -> Result<bool, EngineError> {
        let Some(keyspace) = self.shared.existing(keyspace) else { return Ok(false) };
        self.snapshot.contains_key(keyspace, key).map_err(read_error)
    }

    pub fn range(&self, keyspace: Keyspace, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<fjall::Iter> {
        let keyspace = self.shared.existing(keyspace)?;
        let bounds = (lower, upper);
        Some(self.snapshot.range::<&[u8], _>(keyspace, bounds))
    }
}

fn open_error(error: fjall::Error, path: &Path) -> EngineError {
    match error {
        fjall::Error::Locked => EngineError::Locked(path.to_owned()),
        other => read_error(other),
    }
}

/// After a failed write fjall takes no more of them: what it had half written is cut off when it is
/// opened again.
fn write_error(error: fjall::Error) -> EngineError {
    EngineError::Stopped(error.to_string())
}

pub(super) fn read_error(error: fjall::Error) -> EngineError {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => io_error(error),
        fjall::Error::Poisoned => EngineError::Stopped("an earlier write failed".into()),
        other => EngineError::Corrupt(other.to_string()),
    }
}

fn io_error(error: io::Error) -> EngineError {
    match error.kind() {
        // A file that ends too early or does not parse was written whole once.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => EngineError::Corrupt(error.to_string()),
        _ => EngineError::Io(error),
    }
}
