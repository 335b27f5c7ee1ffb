//! Exact sizes of logical partitions.

use bytes::Bytes;
use orrery_doc::Epk;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::item::read_u64;
use crate::{Lsn, keys};

/// What a logical partition holds; written in the same commit as the items it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogicalSize {
    pub bytes: u64,
    pub items: u64,
    /// The last transaction that wrote here.
    pub lsn: Lsn,
}

impl LogicalSize {
    /// Changes with every write, but for one thing: empty is empty. Nothing is stored of an empty logical partition,
    /// so when it was last written is not known, and does not matter.
    pub fn version(&self) -> Lsn {
        if self.items == 0 { Lsn(0) } else { self.lsn }
    }

    /// What a snapshot holds; nothing is stored of an empty logical partition. What does not read back is not taken for empty.
    pub(crate) fn read(snapshot: &Snapshot, container: u32, epk: &Epk) -> Result<LogicalSize, EngineError> {
        match snapshot.get(Keyspace::Meta, &keys::logical_size(container, epk))? {
            Some(bytes) => LogicalSize::decode(&bytes).ok_or_else(|| {
                EngineError::Corrupt(format!("the size of logical partition {epk} is not readable"))
            }),
            None => Ok(LogicalSize::default()),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        for number in [self.bytes, self.items, self.lsn.0] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out
    }

    /// `None` when the bytes are not a size of this format.
    pub fn decode(bytes: &Bytes) -> Option<LogicalSize> {
        (bytes.len() == 24).then(|| LogicalSize {
            bytes: read_u64(bytes, 0),
            items: read_u64(bytes, 8),
            lsn: Lsn(read_u64(bytes, 16)),
        })
    }
}
