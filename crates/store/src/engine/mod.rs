//! The storage engine under a node: ordered bytes in five keyspaces, written in atomic batches and
//! read through snapshots.
//!
//! Two engines stand behind one type. [`Engine::open`] keeps its data in a directory, in an LSM tree;
//! [`Engine::in_memory`] keeps it in B-trees, for the simulator, the unit tests and `--in-memory`.
//! They are the arms of an enum and not implementations of a trait: nobody else will ever write a
//! third one outside this room, and a type parameter would otherwise reach every caller.
//!
//! What a caller may rely on, whichever engine it got:
//!
//! - A [`Batch`] is seen whole or not at all, over all keyspaces, by every snapshot and after every
//!   crash. Inside a batch the last write to a key wins.
//! - A [`Snapshot`] never changes, costs a few hundred nanoseconds, and holds no lock that a commit
//!   waits for. Long-lived snapshots keep old versions alive, so they should not live for ever.
//! - A committed batch survives the end of the process, and that of the machine once a later
//!   [`Engine::persist`] has returned. Batches become durable in their order.
//! - One thread commits. Readers never wait for it.

mod access;
mod batch;
mod blocks;
mod compactor;
mod directory;
mod disk;
mod error;
mod flusher;
mod journal;
mod layout;
mod manifest;
mod memory;
mod mirror;
mod packing;
mod points;
mod scan;
mod shape;
mod shared;
mod space;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod tuning;
mod writer;

use std::fmt;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use access::Access;
pub use batch::Batch;
pub use disk::DiskOptions;
pub use error::EngineError;
pub use scan::{Keys, Scan};
pub use tuning::Tuning;

/// The forms of the engine's own files, for `docs/format.md`.
#[cfg(test)]
pub(crate) fn golden() -> Vec<crate::golden::Form> {
    let mut forms = journal::golden::forms();
    forms.push(manifest::golden());
    forms
}

/// The forms of values that the engine packs, for `docs/format.md`.
#[cfg(test)]
pub(crate) fn golden_values() -> Vec<crate::golden::Form> {
    packing::golden()
}

/// The five keyspaces of a node. They are fixed for its life, because a keyspace has a cost of its
/// own (files, a write buffer) and containers must be free to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Keyspace {
    /// Documents, in the order of container, partition key and id.
    Item,
    /// Index terms; nearly all values are empty.
    Index,
    /// One entry per live item, by log sequence number.
    Feed,
    /// The replication log; empty on a node without followers.
    Log,
    /// Catalog, partition descriptors, counters.
    Meta,
}

impl Keyspace {
    pub const ALL: [Keyspace; 5] =
        [Keyspace::Item, Keyspace::Index, Keyspace::Feed, Keyspace::Log, Keyspace::Meta];

    /// The name under which the keyspace is stored. Changing one is a disk format change.
    pub fn name(self) -> &'static str {
        match self {
            Keyspace::Item => "item",
            Keyspace::Index => "index",
            Keyspace::Feed => "feed",
            Keyspace::Log => "log",
            Keyspace::Meta => "meta",
        }
    }
}

/// The end of the journal was being written when the process or the machine stopped, and was left out. It had never been
/// known to be durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub file: PathBuf,
    /// Where in the file what was left out begins.
    pub offset: u64,
    /// That of the last batch that was read, of all keyspaces.
    pub sequence: u64,
}

impl fmt::Display for TornTail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}, byte {}: torn tail: the end of the journal, after sequence number {}, was being written when the server \
             stopped, and is left out at the next start",
            self.file.display(),
            self.offset,
            self.sequence
        )
    }
}

/// Figures for `/metrics`. The in-memory engine reports zeros where it has nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Batches committed since the engine was opened.
    pub commits: u64,
    /// Commits refused because the disk or the quota was full.
    pub refused_disk_full: u64,
    /// Commits that were slowed down because flushes or compactions were behind.
    pub delayed: u64,
    /// Time spent in those delays.
    pub delayed_micros: u64,
    /// The longest of those delays.
    pub delayed_longest_micros: u64,
    /// The longest time that one step took of journalling and applying a batch and of syncing.
    pub write_longest_micros: u64,
    /// Bytes held in journals that are not yet superseded by flushed tables.
    pub journal_bytes: u64,
    /// Bytes held in write buffers.
    pub memtable_bytes: u64,
    /// Largest number of overlapping runs in the first level of any keyspace.
    pub level0_runs: u64,
    /// Table files over all keyspaces.
    pub tables: u64,
    /// Compactions finished since the engine was opened.
    pub compactions: u64,
    /// Bytes held by the block cache.
    pub cache_bytes: u64,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes of filters and of the upper parts of indexes, which every open table keeps in memory.
    pub pinned_bytes: u64,
}

/// What a look at a directory has found.
pub struct Inspection {
    /// For reading; or why a server would not start.
    pub engine: Result<Engine, EngineError>,
    /// What is not as it should be.
    pub findings: Vec<String>,
}

/// An open engine. Share it behind an `Arc`.
pub struct Engine {
    kind: Kind,
}

enum Kind {
    Disk(Box<disk::Disk>),
    Memory(Arc<memory::Memory>),
}

impl Engine {
    /// Opens the engine in a directory, creating it when it is empty, and takes the directory's lock.
    pub fn open(options: DiskOptions) -> Result<Engine, EngineError> {
        Ok(Engine { kind: Kind::Disk(Box::new(disk::Disk::open(options)?)) })
    }

    /// Looks at a directory without changing anything in it: nothing is written, flushed, merged, or made durable. What
    /// the journal holds goes to memory. Reads all tables.
    pub fn inspect(options: &DiskOptions) -> Inspection {
        let (disk, findings) = disk::Disk::inspect(options);
        Inspection { engine: disk.map(|disk| Engine { kind: Kind::Disk(Box::new(disk)) }), findings }
    }

    /// An engine whose data ends with the process.
    pub fn in_memory() -> Engine {
        Engine { kind: Kind::Memory(Arc::new(memory::Memory::default())) }
    }

    /// Applies a batch atomically. Called by one thread; see the module's head for what holds when it
    /// returns. After an error nothing of the batch is visible.
    pub fn commit(&self, batch: Batch) -> Result<(), EngineError> {
        if batch.is_oversized() {
            return Err(EngineError::Oversized);
        }
        match &self.kind {
            Kind::Disk(disk) => disk.commit(batch),
            Kind::Memory(memory) => memory.commit(batch),
        }
    }

    /// A consistent view over all keyspaces, as of the last commit.
    pub fn snapshot(&self) -> Snapshot {
        let kind = match &self.kind {
            Kind::Disk(disk) => SnapshotKind::Disk(disk.snapshot()),
            Kind::Memory(memory) => SnapshotKind::Memory(memory::Memory::snapshot(memory)),
        };
        Snapshot { kind }
    }

    /// Makes everything committed so far durable.
    pub fn persist(&self) -> Result<(), EngineError> {
        match &self.kind {
            Kind::Disk(disk) => disk.persist(),
            Kind::Memory(_) => Ok(()),
        }
    }

    /// Stops cleanly: later commits are refused, write buffers are flushed, and the next open has
    /// nothing to replay. Snapshots stay readable. The directory's lock is released when the engine
    /// and its snapshots are dropped.
    pub fn close(&self) -> Result<(), EngineError> {
        match &self.kind {
            Kind::Disk(disk) => disk.close(),
            Kind::Memory(memory) => {
                memory.close();
                Ok(())
            }
        }
    }

    /// What was left out of the journal when it was opened. As long as nothing was committed since, the next start finds
    /// the same.
    pub fn torn_tail(&self) -> Option<TornTail> {
        match &self.kind {
            Kind::Disk(disk) => disk.torn_tail(),
            Kind::Memory(_) => None,
        }
    }

    /// What else was not as it should be when the engine was opened, and does no harm.
    pub fn remarks(&self) -> Vec<String> {
        match &self.kind {
            Kind::Disk(disk) => disk.remarks(),
            Kind::Memory(_) => Vec::new(),
        }
    }

    /// Whether batches are refused at present unless they make room.
    pub fn is_full(&self) -> bool {
        match &self.kind {
            Kind::Disk(disk) => disk.is_full(),
            Kind::Memory(_) => false,
        }
    }

    /// Bytes the engine occupies on disk.
    pub fn disk_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Disk(disk) => disk.disk_bytes(),
            Kind::Memory(_) => 0,
        }
    }

    /// Bytes the file system can still give to us; `None` when there is no file system.
    pub fn free_disk_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::Disk(disk) => disk.free_disk_bytes(),
            Kind::Memory(_) => None,
        }
    }

    /// Changes the operator's limit on disk use; `None` removes it.
    pub fn set_disk_limit(&self, bytes: Option<u64>) {
        if let Kind::Disk(disk) = &self.kind {
            disk.set_disk_limit(bytes);
        }
    }

    pub fn stats(&self) -> EngineStats {
        match &self.kind {
            Kind::Disk(disk) => disk.stats(),
            Kind::Memory(memory) => memory.stats(),
        }
    }
}

/// A consistent, unchanging view over all keyspaces. Cheap to clone, and free to cross threads.
#[derive(Clone)]
pub struct Snapshot {
    kind: SnapshotKind,
}

#[derive(Clone)]
enum SnapshotKind {
    Disk(disk::DiskSnapshot),
    Memory(Arc<memory::MemorySnapshot>),
}

impl Snapshot {
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let stored = match &self.kind {
            SnapshotKind::Disk(snapshot) => snapshot.get(keyspace, key)?,
            SnapshotKind::Memory(snapshot) => snapshot.get(keyspace, key),
        };
        stored.map(|value| packing::unpack(keyspace, key, value)).transpose()
    }

    pub fn contains(&self, keyspace: Keyspace, key: &[u8]) -> Result<bool, EngineError> {
        match &self.kind {
            SnapshotKind::Disk(snapshot) => snapshot.contains(keyspace, key),
            SnapshotKind::Memory(snapshot) => Ok(snapshot.get(keyspace, key).is_some()),
        }
    }

    /// Entries between two bounds, in key order or against it. The scan owns what it needs, so it may
    /// outlive the snapshot value and cross threads. Bounds that cross yield nothing.
    pub fn range(&self, keyspace: Keyspace, lower: Bound<&[u8]>, upper: Bound<&[u8]>, reverse: bool) -> Scan {
        if scan::is_empty(lower, upper) {
            return Scan::empty(keyspace);
        }
        match &self.kind {
            SnapshotKind::Disk(snapshot) => {
                Scan::disk(keyspace, snapshot.range(keyspace, lower, upper), reverse)
            }
            SnapshotKind::Memory(snapshot) => {
                let cursor = memory::Cursor::new(Arc::clone(snapshot), keyspace, lower, upper, reverse);
                Scan::memory(keyspace, cursor)
            }
        }
    }

    /// As [`Snapshot::range`], without reading the values.
    pub fn keys(&self, keyspace: Keyspace, lower: Bound<&[u8]>, upper: Bound<&[u8]>, reverse: bool) -> Keys {
        Keys::new(self.range(keyspace, lower, upper, reverse))
    }
}
