//! What the committer holds: the journal, and the write buffers that it fills.

use std::io;
use std::sync::{Arc, OnceLock};

use lsm_tree::{AbstractTree, InternalValue, Memtable, ValueType};

use super::batch::Write;
use super::error;
use super::journal::{Floors, Journal, JournalPlace};
use super::tree::Tree;
use super::{Access, EngineError, Keyspace};

pub(super) struct Writer {
    pub journal: Journal,
    pub buffers: [Option<Buffer>; Keyspace::ALL.len()],
    /// Why no more commits are taken.
    stopped: Option<String>,
}

impl Writer {
    /// Opens the journal and fills write buffers with what the trees lack.
    pub fn open(
        place: &JournalPlace,
        access: Access,
        trees: &[OnceLock<Tree>; Keyspace::ALL.len()],
    ) -> Result<Writer, EngineError> {
        let mut buffers: [Option<Buffer>; Keyspace::ALL.len()] = Default::default();
        let journal = Journal::open(place, access, &mut |sequence, writes| {
            for write in writes {
                let index = write.keyspace as usize;
                // A tree is created before a batch for it is journalled.
                let Some(tree) = trees[index].get() else {
                    let name = write.keyspace.name();
                    return Err(EngineError::Corrupt(format!("the folder {name} is missing")));
                };
                buffers[index].get_or_insert_with(|| Buffer::of(tree)).insert(sequence, write);
            }
            Ok(())
        })?;
        Ok(Writer { journal, buffers, stopped: None })
    }

    /// Takes no more commits, because that is wanted. Returns whether none were taken before.
    pub fn close(&mut self) -> bool {
        self.stopped.replace("it was closed".into()).is_some()
    }

    pub fn check(&self) -> Result<(), EngineError> {
        match &self.stopped {
            Some(reason) => Err(EngineError::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    /// For each keyspace, the first sequence number that is not in tables; `next` is given to a batch
    /// that is not in any buffer yet.
    pub fn floors(&self, next: u64) -> Floors {
        let floor = |buffer: &Option<Buffer>| buffer.as_ref().and_then(Buffer::floor);
        std::array::from_fn(|index| floor(&self.buffers[index]).unwrap_or(next))
    }

    /// The first sequence number that is in no table.
    pub fn oldest_needed(&self) -> u64 {
        self.floors(self.journal.last() + 1).into_iter().min().unwrap_or(0)
    }

    pub fn largest_buffer(&self) -> u64 {
        self.buffers.iter().flatten().map(|buffer| buffer.table.size()).max().unwrap_or(0)
    }

    pub fn buffered_bytes(&self) -> u64 {
        self.buffers.iter().flatten().map(|buffer| buffer.table.size()).sum()
    }

    /// What a failed write to the journal means. Where there was no room, the next batch is written
    /// over what this one left; everything else is beyond us.
    pub fn refuse(&mut self, error: io::Error) -> EngineError {
        if self.journal.has_failed() || !error::is_want_of_room(&error) {
            return self.stop(&error);
        }
        EngineError::Io(error)
    }

    /// Takes no more commits: after a failed sync nobody knows what is on disk. What was acknowledged
    /// was synced before, and is read back when the engine is opened again.
    pub fn stop(&mut self, error: &io::Error) -> EngineError {
        let reason = error.to_string();
        self.stopped.get_or_insert_with(|| reason.clone());
        EngineError::Stopped(reason)
    }
}

/// The write buffer that the committer fills, and what is not yet in tables of it and of the one before.
pub(super) struct Buffer {
    pub table: Arc<Memtable>,
    /// The first sequence number in the buffer.
    since: Option<u64>,
    /// The first sequence number in the buffer that is being flushed.
    sealed_since: Option<u64>,
}

impl Buffer {
    pub fn of(tree: &Tree) -> Buffer {
        Buffer { table: tree.tree.active_memtable(), since: None, sealed_since: None }
    }

    pub fn insert(&mut self, sequence: u64, write: Write) {
        self.since.get_or_insert(sequence);
        let (kind, value) = match write.value {
            Some(value) => (ValueType::Value, value),
            None => (ValueType::Tombstone, bytes::Bytes::new()),
        };
        self.table.insert(InternalValue::from_components(write.key, value, sequence, kind));
    }

    /// Goes on in the buffer that the tree has put in place of this one. Called between batches.
    pub fn replace(&mut self, table: Arc<Memtable>) {
        self.table = table;
        self.sealed_since = self.sealed_since.or(self.since.take());
    }

    /// The buffer before this one is in tables.
    pub fn flushed(&mut self) {
        self.sealed_since = None;
    }

    /// Whether a flush has begun and not ended.
    pub fn is_half_flushed(&self) -> bool {
        self.sealed_since.is_some()
    }

    /// The first sequence number that is not in tables.
    pub fn floor(&self) -> Option<u64> {
        self.sealed_since.or(self.since)
    }
}
