//! The engine that keeps its data in a directory: fjall, and what we put around it.

use std::io;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fjall::{AbstractTree, KeyspaceCreateOptions, PersistMode, Readable};
use parking_lot::{Mutex, RwLock};

use super::batch::Batch;
use super::{EngineError, EngineStats, Keyspace, SyncMode};

/// How to open the engine in a directory.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    pub path: PathBuf,
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// The most disk the engine may use; an operator's quota. Commits beyond it are refused.
    pub disk_limit_bytes: Option<u64>,
    pub tuning: Tuning,
}

impl DiskOptions {
    pub fn new(path: impl Into<PathBuf>) -> DiskOptions {
        DiskOptions {
            path: path.into(),
            cache_bytes: 32 << 20,
            disk_limit_bytes: None,
            tuning: Tuning::default(),
        }
    }
}

/// Knobs that the storm benchmark turns. Servers use the defaults.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub workers: usize,
    pub memtable_bytes: u64,
    pub table_bytes: u64,
    pub level0_threshold: u8,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { workers: 2, memtable_bytes: 16 << 20, table_bytes: 16 << 20, level0_threshold: 4 }
    }
}

pub(super) struct Disk {
    shared: Arc<Shared>,
    /// Taken after each commit and handed out to every reader until the next one; see `snapshot`.
    latest: RwLock<DiskSnapshot>,
    /// Whether the engine was closed; held while a commit is under way.
    closed: Mutex<bool>,
    disk_limit: AtomicU64,
    commits: AtomicU64,
    refused: AtomicU64,
}

struct Shared {
    database: fjall::Database,
    keyspaces: [fjall::Keyspace; Keyspace::ALL.len()],
    path: PathBuf,
}

impl Disk {
    pub fn open(options: DiskOptions) -> Result<Disk, EngineError> {
        let database = fjall::Database::builder(&options.path)
            .cache_size(options.cache_bytes)
            .worker_threads(options.tuning.workers)
            .max_journaling_size(64 << 20)
            .open()
            .map_err(|error| open_error(error, &options.path))?;
        let mut keyspaces = Vec::with_capacity(Keyspace::ALL.len());
        for keyspace in Keyspace::ALL {
            let handle = database
                .keyspace(keyspace.name(), || create_options(&options.tuning))
                .map_err(|error| open_error(error, &options.path))?;
            keyspaces.push(handle);
        }
        let keyspaces =
            keyspaces.try_into().unwrap_or_else(|_| unreachable!("one handle was pushed per keyspace"));
        let shared = Arc::new(Shared { database, keyspaces, path: options.path });
        Ok(Disk {
            latest: RwLock::new(DiskSnapshot::take(&shared)),
            shared,
            closed: Mutex::new(false),
            disk_limit: AtomicU64::new(options.disk_limit_bytes.unwrap_or(u64::MAX)),
            commits: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    pub fn commit(&self, batch: Batch, sync: SyncMode) -> Result<(), EngineError> {
        let closed = self.closed.lock();
        if *closed {
            return Err(EngineError::Stopped("it was closed".into()));
        }
        self.admit(&batch)?;
        let mode = match sync {
            SyncMode::Durable => PersistMode::SyncData,
            SyncMode::Relaxed => PersistMode::Buffer,
        };
        let database = &self.shared.database;
        let mut writes =
            fjall::OwnedWriteBatch::with_capacity(database.clone(), batch.len()).durability(Some(mode));
        for write in batch.writes {
            let keyspace = self.shared.keyspace(write.keyspace);
            match write.value {
                Some(value) => writes.insert(keyspace, write.key, value),
                None => writes.remove(keyspace, write.key),
            }
        }
        writes.commit().map_err(write_error)?;
        *self.latest.write() = DiskSnapshot::take(&self.shared);
        self.commits.fetch_add(1, Ordering::Relaxed);
        drop(closed);
        Ok(())
    }

    fn admit(&self, batch: &Batch) -> Result<(), EngineError> {
        let limit = self.disk_limit.load(Ordering::Relaxed);
        if limit == u64::MAX {
            return Ok(());
        }
        let used = self.disk_bytes();
        if used + batch.bytes() as u64 > limit {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(EngineError::DiskFull { used, free: limit.saturating_sub(used) });
        }
        Ok(())
    }

    pub fn snapshot(&self) -> DiskSnapshot {
        self.latest.read().clone()
    }

    pub fn persist(&self) -> Result<(), EngineError> {
        let database = &self.shared.database;
        database.persist(PersistMode::SyncData).map_err(write_error)
    }

    pub fn close(&self) -> Result<(), EngineError> {
        let mut closed = self.closed.lock();
        if *closed {
            return Ok(());
        }
        *closed = true;
        for keyspace in &self.shared.keyspaces {
            keyspace.rotate_memtable_and_wait().map_err(write_error)?;
        }
        self.persist()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.shared.database.disk_space().unwrap_or(0)
    }

    pub fn free_disk_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::statvfs(&self.shared.path).ok()?;
        Some(stat.f_bavail * stat.f_frsize)
    }

    pub fn set_disk_limit(&self, bytes: Option<u64>) {
        let bytes = bytes.unwrap_or(u64::MAX);
        self.disk_limit.store(bytes, Ordering::Relaxed);
    }

    pub fn stats(&self) -> EngineStats {
        let database = &self.shared.database;
        let trees = || self.shared.keyspaces.iter().map(|keyspace| &keyspace.tree);
        EngineStats {
            commits: self.commits.load(Ordering::Relaxed),
            refused_disk_full: self.refused.load(Ordering::Relaxed),
            journal_bytes: database.journal_disk_space().unwrap_or(0),
            memtable_bytes: database.write_buffer_size(),
            level0_runs: trees().map(|t| t.l0_run_count()).max().unwrap_or(0) as u64,
            tables: trees().map(|t| t.table_count() as u64).sum(),
            compactions: database.compactions_completed() as u64,
            cache_bytes: database.cache_size(),
            ..EngineStats::default()
        }
    }
}

impl Shared {
    fn keyspace(&self, keyspace: Keyspace) -> &fjall::Keyspace {
        &self.keyspaces[keyspace as usize]
    }
}

fn create_options(tuning: &Tuning) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(tuning.memtable_bytes).compaction_strategy(Arc::new(
        fjall::compaction::Leveled::default()
            .with_l0_threshold(tuning.level0_threshold)
            .with_table_target_size(tuning.table_bytes),
    ))
}

#[derive(Clone)]
pub(super) struct DiskSnapshot {
    shared: Arc<Shared>,
    snapshot: Arc<fjall::Snapshot>,
}

impl DiskSnapshot {
    fn take(shared: &Arc<Shared>) -> DiskSnapshot {
        DiskSnapshot { snapshot: Arc::new(shared.database.snapshot()), shared: Arc::clone(shared) }
    }

    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let value = self.snapshot.get(self.shared.keyspace(keyspace), key);
        Ok(value.map_err(read_error)?.map(Bytes::from))
    }

    pub fn contains(&self, keyspace: Keyspace, key: &[u8]) -> Result<bool, EngineError> {
        let keyspace = self.shared.keyspace(keyspace);
        let found = self.snapshot.contains_key(keyspace, key);
        found.map_err(read_error)
    }

    pub fn range(&self, keyspace: Keyspace, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<fjall::Iter> {
        let keyspace = self.shared.keyspace(keyspace);
        let bounds = (lower, upper);
        Some(self.snapshot.range::<&[u8], _>(keyspace, bounds))
    }
}

fn open_error(error: fjall::Error, path: &std::path::Path) -> EngineError {
    match error {
        fjall::Error::Locked => EngineError::Locked(path.to_owned()),
        other => read_error(other),
    }
}

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
