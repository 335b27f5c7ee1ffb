//! How far the index that is being built has come.
//!
//! An index is built from the items in the order of their keys, step by step, each step as part of a group of
//! writes. So at every moment the new index holds exactly the items up to one key: a write before that key is a
//! change of the index like any other, and a write behind it does not concern the index yet. Nothing has to be
//! reconciled at the end, and a restart goes on from the stored key.

use std::ops::Bound;

use bytes::Bytes;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::item::{read_u32, read_u64};
use crate::{Fault, Item, ItemKey, PartitionSpec, keys};

/// Which items the index that is being built holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    pub generation: u32,
    /// Items that were visited; what progress is measured by.
    pub items: u64,
    pub reached: Reached,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    Nothing,
    /// Up to and with the item of this EPK and id, as they stand in keys.
    Place(Vec<u8>),
    Everything,
}

/// The next items of a build.
pub(crate) struct BuildStep {
    pub items: Vec<(ItemKey, Item)>,
    pub reached: Reached,
}

impl BuildStep {
    fn up_to(self, place: Vec<u8>) -> BuildStep {
        BuildStep { reached: Reached::Place(place), ..self }
    }
}

impl Build {
    pub fn start(generation: u32) -> Build {
        Build { generation, items: 0, reached: Reached::Nothing }
    }

    pub fn is_complete(&self) -> bool {
        self.reached == Reached::Everything
    }

    pub(crate) fn read(snapshot: &Snapshot, partition: u32) -> Result<Option<Build>, EngineError> {
        let stored = snapshot.get(Keyspace::Meta, &keys::build(partition))?;
        let decode = |bytes: Bytes| {
            Build::decode(&bytes).ok_or_else(|| {
                EngineError::Corrupt(format!("the index build of partition {partition} is not readable"))
            })
        };
        stored.map(decode).transpose()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&self.items.to_be_bytes());
        match &self.reached {
            Reached::Nothing => out.push(0),
            Reached::Place(place) => {
                out.push(1);
                out.extend_from_slice(place);
            }
            Reached::Everything => out.push(2),
        }
        out
    }

    pub(crate) fn decode(bytes: &Bytes) -> Option<Build> {
        let reached = match bytes.get(12)? {
            0 => Reached::Nothing,
            1 => Reached::Place(bytes[13..].to_vec()),
            2 => Reached::Everything,
            _ => return None,
        };
        Some(Build { generation: read_u32(bytes, 0), items: read_u64(bytes, 4), reached })
    }
}

impl Reached {
    /// Whether the item of this place is in the index.
    pub fn holds(&self, place: &[u8]) -> bool {
        match self {
            Reached::Nothing => false,
            Reached::Place(reached) => place <= reached.as_slice(),
            Reached::Everything => true,
        }
    }

    /// Reads the items that come next: so many of them, so many bytes, and what is admitted, but one at least.
    pub(crate) fn step(
        &self,
        spec: &PartitionSpec,
        snapshot: &Snapshot,
        (items_max, bytes_max): (usize, usize),
        admit: &mut dyn FnMut(&ItemKey, &Item) -> Result<(), Fault>,
    ) -> Result<BuildStep, Fault> {
        let damaged = |text: String| Fault::Damaged(text);
        let mut step = BuildStep { items: Vec::new(), reached: Reached::Everything };
        let (first, upper) = keys::item_range(spec.container, &spec.range);
        let after = match self {
            Reached::Nothing => None,
            Reached::Place(place) => Some([&spec.container.to_be_bytes(), place.as_slice()].concat()),
            Reached::Everything => return Ok(step),
        };
        let lower = after.as_deref().map_or(Bound::Included(first.as_slice()), Bound::Excluded);
        let (mut bytes, mut last) = (0, Vec::new());
        for entry in snapshot.range(Keyspace::Item, lower, Bound::Excluded(&upper), false) {
            let (key, value) = entry?;
            let (_, item_key) = keys::parse_item(&key).ok_or_else(|| damaged("an item key".into()))?;
            let item = Item::decode(&value).map_err(|error| damaged(error.to_string()))?;
            let place = key[4..].to_vec();
            if let Err(refused) = admit(&item_key, &item) {
                return if step.items.is_empty() { Err(refused) } else { Ok(step.up_to(last)) };
            }
            bytes += value.len();
            step.items.push((item_key, item));
            if step.items.len() >= items_max || bytes >= bytes_max {
                return Ok(step.up_to(place));
            }
            last = place;
        }
        Ok(step)
    }
}
