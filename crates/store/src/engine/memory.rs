//! The engine that keeps everything in memory: a B-tree of versions per keyspace.
//!
//! Each commit gets a sequence number, and each key keeps the versions that a snapshot may still read:
//! the newest one, and those that a live snapshot sees. A superseded version cannot be dropped while
//! a snapshot needs it, and nobody would come back for it later, so the commit that superseded it
//! queues the key; later commits take keys from the queue once no live snapshot is older than the
//! superseding version. Each queued entry is taken once, so pruning is paid for by the write that
//! caused it.
//!
//! A scan holds the keyspace's lock for a bounded number of entries at a time and copies out only
//! handles, so a long scan neither blocks the committer nor copies the data.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::batch::{Batch, Write};
use super::{EngineError, EngineStats, Keyspace};

/// Entries copied out under one hold of a keyspace's lock. The first hold copies few, since most
/// scans are short.
const CHUNK_FIRST: usize = 16;
const CHUNK_MAX: usize = 256;
/// Entries visited under one hold, counting those that the snapshot does not see.
const VISITS_MAX: usize = 1024;

type Tree = BTreeMap<Bytes, Versions>;

#[derive(Default)]
pub(super) struct Memory {
    trees: [RwLock<Tree>; Keyspace::ALL.len()],
    /// The newest commit that snapshots may see.
    visible: AtomicU64,
    /// Sequence numbers of live snapshots, with how many there are of each.
    live: Mutex<BTreeMap<u64, usize>>,
    /// Held by the committer: keys with superseded versions, oldest first.
    superseded: Mutex<VecDeque<Superseded>>,
    commits: AtomicU64,
    closed: AtomicBool,
}

struct Superseded {
    by: u64,
    keyspace: Keyspace,
    key: Bytes,
}

/// Versions of one key, oldest first. Nearly every key has one, hence no vector for it.
enum Versions {
    One(Version),
    Many(Vec<Version>),
}

#[derive(Clone)]
struct Version {
    sequence: u64,
    /// `None` is a deletion.
    value: Option<Bytes>,
}

impl Memory {
    pub fn commit(&self, batch: Batch) -> Result<(), EngineError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(EngineError::Stopped("it was closed".into()));
        }
        // The queue's lock also keeps two committers apart.
        let mut superseded = self.superseded.lock();
        let sequence = self.visible.load(Ordering::Acquire) + 1;
        for write in batch.writes {
            self.apply(write, sequence, &mut superseded);
        }
        self.visible.store(sequence, Ordering::Release);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.prune(&mut superseded);
        Ok(())
    }

    fn apply(&self, write: Write, sequence: u64, superseded: &mut VecDeque<Superseded>) {
        let Write { keyspace, key, value } = write;
        let version = Version { sequence, value };
        let mut tree = self.tree(keyspace).write();
        match tree.get_mut(&key) {
            Some(versions) => versions.push(version),
            // There is nothing to delete, and nothing for a later prune to do.
            None if version.value.is_none() => return,
            None => {
                tree.insert(key, Versions::One(version));
                return;
            }
        }
        drop(tree);
        superseded.push_back(Superseded { by: sequence, keyspace, key });
    }

    fn prune(&self, superseded: &mut VecDeque<Superseded>) {
        let oldest = self.oldest_readable();
        while superseded.front().is_some_and(|entry| entry.by <= oldest) {
            let entry = superseded.pop_front().expect("the front was just seen");
            let mut tree = self.tree(entry.keyspace).write();
            if let Some(versions) = tree.get_mut(&entry.key)
                && !versions.prune(oldest)
            {
                tree.remove(&entry.key);
            }
        }
    }

    /// The oldest sequence number that anybody reads at, now or later.
    fn oldest_readable(&self) -> u64 {
        let live = self.live.lock();
        match live.first_key_value() {
            Some((sequence, _)) => *sequence,
            None => self.visible.load(Ordering::Acquire),
        }
    }

    pub fn snapshot(memory: &Arc<Memory>) -> Arc<MemorySnapshot> {
        // The number is read under the lock that pruning takes, so no version can be pruned between
        // reading the number and registering it.
        let mut live = memory.live.lock();
        let sequence = memory.visible.load(Ordering::Acquire);
        *live.entry(sequence).or_default() += 1;
        drop(live);
        Arc::new(MemorySnapshot { memory: Arc::clone(memory), sequence })
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub fn stats(&self) -> EngineStats {
        EngineStats { commits: self.commits.load(Ordering::Relaxed), ..EngineStats::default() }
    }

    fn tree(&self, keyspace: Keyspace) -> &RwLock<Tree> {
        &self.trees[keyspace as usize]
    }

    #[cfg(test)]
    pub fn version_count(&self) -> usize {
        let trees = self.trees.iter().map(|tree| {
            let tree = tree.read();
            tree.values().map(|v| v.as_slice().len()).sum::<usize>()
        });
        trees.sum()
    }
}

impl Versions {
    fn as_slice(&self) -> &[Version] {
        match self {
            Versions::One(version) => std::slice::from_ref(version),
            Versions::Many(versions) => versions,
        }
    }

    fn push(&mut self, version: Version) {
        match self {
            Versions::One(first) if first.sequence == version.sequence => *first = version,
            Versions::One(first) => *self = Versions::Many(vec![first.clone(), version]),
            Versions::Many(versions) => match versions.last_mut() {
                Some(last) if last.sequence == version.sequence => *last = version,
                _ => versions.push(version),
            },
        }
    }

    /// The value at a sequence number.
    fn at(&self, sequence: u64) -> Option<&Bytes> {
        let versions = self.as_slice().iter().rev();
        let mut seen = versions.skip_while(|version| version.sequence > sequence);
        seen.next()?.value.as_ref()
    }

    /// Drops what nobody at or after `oldest` can see. Returns whether anything is left to see.
    fn prune(&mut self, oldest: u64) -> bool {
        let versions = self.as_slice();
        let seen = versions.partition_point(|version| version.sequence <= oldest);
        // All but the newest of those that `oldest` sees are hidden by it; it, too, goes when it is
        // a deletion, which reads the same as no version at all.
        let mut keep_from = seen.saturating_sub(1);
        if versions[keep_from].value.is_none() && versions[keep_from].sequence <= oldest {
            keep_from += 1;
        }
        match &versions[keep_from..] {
            [] => return false,
            [last] => *self = Versions::One(last.clone()),
            rest if keep_from > 0 => *self = Versions::Many(rest.to_vec()),
            _ => {}
        }
        true
    }
}

pub(super) struct MemorySnapshot {
    memory: Arc<Memory>,
    sequence: u64,
}

impl MemorySnapshot {
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Option<Bytes> {
        let tree = self.memory.tree(keyspace).read();
        tree.get(key)?.at(self.sequence).cloned()
    }
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut live = self.memory.live.lock();
        let count = live.get_mut(&self.sequence).expect("a live snapshot is registered");
        *count -= 1;
        if *count == 0 {
            live.remove(&self.sequence);
        }
    }
}

/// A scan in progress.
pub(super) struct Cursor {
    snapshot: Arc<MemorySnapshot>,
    keyspace: Keyspace,
    lower: Bound<Bytes>,
    upper: Bound<Bytes>,
    reverse: bool,
    chunk: VecDeque<(Bytes, Bytes)>,
    chunk_len: usize,
    done: bool,
}

impl Cursor {
    pub fn new(
        snapshot: Arc<MemorySnapshot>,
        keyspace: Keyspace,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        reverse: bool,
    ) -> Cursor {
        Cursor {
            snapshot,
            keyspace,
            lower: lower.map(Bytes::copy_from_slice),
            upper: upper.map(Bytes::copy_from_slice),
            reverse,
            chunk: VecDeque::new(),
            chunk_len: CHUNK_FIRST,
            done: false,
        }
    }

    /// Copies the next entries out and moves the bound past the last entry visited.
    fn fill(&mut self) {
        let tree = self.snapshot.memory.tree(self.keyspace).read();
        let bounds = (self.lower.as_ref().map(Bytes::as_ref), self.upper.as_ref().map(Bytes::as_ref));
        if super::scan::is_empty(bounds.0, bounds.1) {
            self.done = true;
            return;
        }
        let mut range = tree.range::<[u8], _>(bounds);
        let mut last = None;
        for _ in 0..VISITS_MAX {
            let entry = if self.reverse { range.next_back() } else { range.next() };
            let Some((key, versions)) = entry else {
                self.done = true;
                break;
            };
            last = Some(key.clone());
            if let Some(value) = versions.at(self.snapshot.sequence) {
                self.chunk.push_back((key.clone(), value.clone()));
                if self.chunk.len() >= self.chunk_len {
                    break;
                }
            }
        }
        drop(tree);
        self.chunk_len = (self.chunk_len * 4).min(CHUNK_MAX);
        if let Some(key) = last {
            if self.reverse {
                self.upper = Bound::Excluded(key);
            } else {
                self.lower = Bound::Excluded(key);
            }
        }
    }
}

impl Iterator for Cursor {
    type Item = (Bytes, Bytes);

    fn next(&mut self) -> Option<(Bytes, Bytes)> {
        while self.chunk.is_empty() && !self.done {
            self.fill();
        }
        self.chunk.pop_front()
    }
}
