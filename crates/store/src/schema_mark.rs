//! Record `V`: which indexes a partition keeps up, as its own sequence of commits says.
//!
//! The catalog says what a partition is to do; this says what it does. It is written with the first group that is worked out
//! under other indexes than the group before, so that the holder of a copy of the partition knows, at each of its LSNs, which
//! index was whole and which was under way.
//!
//! ```text
//! version u8 | schema version u64 | active generation u32 | building generation u32
//! ```

use bytes::Bytes;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::item::{read_u32, read_u64};
use crate::{Schema, keys};

const VERSION: u8 = 1;
const BYTES: usize = 1 + 8 + 4 + 4;
/// No index that is being built has this number: it belongs to the catalog.
const NO_GENERATION: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaMark {
    /// Counts the changes of what follows.
    pub version: u64,
    pub active: u32,
    pub building: Option<u32>,
}

impl SchemaMark {
    /// What is to be written when a group was worked out under this schema; none when `stored` says it already.
    pub(crate) fn after(stored: Option<SchemaMark>, schema: &Schema) -> Option<SchemaMark> {
        let active = schema.index.generation;
        let building = schema.building.as_ref().map(|index| index.generation);
        match stored {
            Some(stored) if (stored.active, stored.building) == (active, building) => None,
            stored => {
                Some(SchemaMark { version: stored.map_or(0, |mark| mark.version) + 1, active, building })
            }
        }
    }

    pub(crate) fn read(snapshot: &Snapshot, partition: u32) -> Result<Option<SchemaMark>, EngineError> {
        let stored = snapshot.get(Keyspace::Meta, &keys::schema_mark(partition))?;
        let decode = |bytes: Bytes| {
            SchemaMark::decode(&bytes).ok_or_else(|| {
                EngineError::Corrupt(format!("the schema record of partition {partition} is not readable"))
            })
        };
        stored.map(decode).transpose()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BYTES);
        out.push(VERSION);
        out.extend_from_slice(&self.version.to_be_bytes());
        out.extend_from_slice(&self.active.to_be_bytes());
        out.extend_from_slice(&self.building.unwrap_or(NO_GENERATION).to_be_bytes());
        out
    }

    /// `None` when the bytes are not a record of a version that this build knows.
    pub fn decode(bytes: &[u8]) -> Option<SchemaMark> {
        match bytes.first()? {
            &VERSION if bytes.len() == BYTES => Some(SchemaMark {
                version: read_u64(bytes, 1),
                active: read_u32(bytes, 9),
                building: Some(read_u32(bytes, 13)).filter(|generation| *generation != NO_GENERATION),
            }),
            _ => None,
        }
    }
}
