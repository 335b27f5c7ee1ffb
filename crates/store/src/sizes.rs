//! Exact sizes of logical partitions.

use bytes::Bytes;
use orrery_doc::Epk;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::item::read_u64;
use crate::owner::{DIGEST_BYTES, Owner};
use crate::{Lsn, keys};

/// Three numbers, which is all that is stored where the owner is not known.
const NUMBERS_BYTES: usize = 24;

/// What a logical partition holds; written in the same commit as the items it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogicalSize {
    pub bytes: u64,
    pub items: u64,
    /// The last transaction that wrote here.
    pub lsn: Lsn,
    /// Whose items they are.
    pub owner: Owner,
}

impl LogicalSize {
    /// Changes with every write, but for one thing: empty is empty. Nothing is stored of an empty logical partition,
    /// so when it was last written is not known, and does not matter.
    pub fn version(&self) -> Lsn {
        if self.items == 0 { Lsn(0) } else { self.lsn }
    }

    /// Takes note of the owner of items that are about to be counted too.
    pub(crate) fn admit(&mut self, owner: Owner) {
        self.owner = if self.items == 0 { owner } else { self.owner.and(owner) };
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
        let mut out = Vec::with_capacity(NUMBERS_BYTES + DIGEST_BYTES);
        for number in [self.bytes, self.items, self.lsn.0] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        if let Owner::One(digest) = self.owner {
            out.extend_from_slice(&digest);
        }
        out
    }

    /// `None` when the bytes are not a size of this format.
    pub fn decode(bytes: &Bytes) -> Option<LogicalSize> {
        let owner = match bytes.get(NUMBERS_BYTES..)? {
            [] => Owner::Unknown,
            digest => Owner::One(digest.try_into().ok()?),
        };
        let number = |at| read_u64(bytes, at);
        Some(LogicalSize { bytes: number(0), items: number(8), lsn: Lsn(number(16)), owner })
    }
}
