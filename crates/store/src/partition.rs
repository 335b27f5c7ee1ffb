//! One physical partition: what identifies it, what it remembers, and how its state moves on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use orrery_doc::{Epk, EpkRange, PartitionKeyDef};
use parking_lot::Mutex;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::indexing::IndexingPolicy;
use crate::item::read_u64;
use crate::limits::SIZES_CACHED_MAX;
use crate::{LogicalSize, Lsn, Prepared, keys};

/// What never changes in the life of a partition.
#[derive(Clone, Debug)]
pub struct PartitionSpec {
    /// Unique on the node; the prefix of its feed and state.
    pub number: u32,
    /// The container whose items these are.
    pub container: u32,
    /// The prefix of its index entries.
    pub generation: u32,
    pub range: EpkRange,
    /// Makes the rids of sibling partitions differ.
    pub rid_prefix: u32,
}

/// What a partition must know of its container to write items.
#[derive(Clone, Debug)]
pub struct Schema {
    pub key: PartitionKeyDef,
    pub indexing: IndexingPolicy,
}

/// What changes with every transaction; stored in the same commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionState {
    pub lsn: Lsn,
    pub rids_given: u64,
    pub items: u64,
    pub bytes: u64,
    /// Time of the last write: times never repeat or go back.
    pub time: u64,
}

pub struct Partition {
    pub spec: PartitionSpec,
    published: AtomicU64,
    state: Mutex<PartitionState>,
    sizes: Mutex<HashMap<Epk, LogicalSize>>,
}

impl Partition {
    /// Opens a partition at the state that the last commit left, or at its beginning.
    pub fn open(spec: PartitionSpec, snapshot: &Snapshot) -> Result<Partition, EngineError> {
        let stored = snapshot.get(Keyspace::Meta, &keys::partition_state(spec.number))?;
        let state = match stored {
            Some(bytes) => PartitionState::decode(&bytes).ok_or_else(|| {
                EngineError::Corrupt(format!("state of partition {} is not readable", spec.number))
            })?,
            None => PartitionState::default(),
        };
        Ok(Partition {
            spec,
            published: AtomicU64::new(state.lsn.0),
            state: Mutex::new(state),
            sizes: Mutex::new(HashMap::new()),
        })
    }

    /// The newest transaction that readers may see.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.published.load(Ordering::Acquire))
    }

    pub fn state(&self) -> PartitionState {
        *self.state.lock()
    }

    /// The size of a logical partition, as of the last commit.
    pub fn logical_size(&self, epk: &Epk, snapshot: &Snapshot) -> Result<LogicalSize, EngineError> {
        if let Some(size) = self.sizes.lock().get(epk) {
            return Ok(*size);
        }
        let stored = snapshot.get(Keyspace::Meta, &keys::logical_size(self.spec.container, epk))?;
        Ok(stored.as_ref().and_then(LogicalSize::decode).unwrap_or_default())
    }

    /// Makes a durable group visible: the caller has committed its batch and published the snapshot.
    pub fn publish(&self, prepared: Prepared) {
        let mut state = self.state.lock();
        assert!(prepared.state.lsn >= state.lsn, "the LSN of a partition never goes back");
        *state = prepared.state;
        let mut sizes = self.sizes.lock();
        if sizes.len() + prepared.sizes.len() > SIZES_CACHED_MAX {
            sizes.clear();
        }
        sizes.extend(prepared.sizes);
        self.published.store(state.lsn.0, Ordering::Release);
    }

    /// The rid of the `count`-th item created here: 40 bits of count, 20 of partition.
    pub(crate) fn rid(&self, count: u64) -> u64 {
        (count & 0xFF_FFFF_FFFF) | u64::from(self.spec.rid_prefix & 0xF_FFFF) << 40
    }
}

impl PartitionState {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(40);
        for number in [self.lsn.0, self.rids_given, self.items, self.bytes, self.time] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out
    }

    pub fn decode(bytes: &Bytes) -> Option<PartitionState> {
        (bytes.len() == 40).then(|| PartitionState {
            lsn: Lsn(read_u64(bytes, 0)),
            rids_given: read_u64(bytes, 8),
            items: read_u64(bytes, 16),
            bytes: read_u64(bytes, 24),
            time: read_u64(bytes, 32),
        })
    }
}
