//! Reading a partition at one moment.

use std::ops::Bound;
use std::sync::Arc;

use orrery_doc::{Epk, EpkRange};

use crate::engine::{Keyspace, Snapshot};
use crate::index::{IndexReader, ItemLoader, PlaceRange, key_at};
use crate::{
    Fault, Item, ItemId, ItemKey, Lifetimes, LogicalSize, Lsn, Partition, PartitionState, PathCounts, Target,
    WholeKey, keys,
};

/// Bytes before the place in an item key.
const CONTAINER_BYTES: usize = 4;

/// A consistent snapshot of one partition, without what is expired or not the reader's; any thread may hold it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) partition: &'a Partition,
    pub(crate) snapshot: &'a Snapshot,
    lsn: Lsn,
    pub(crate) lifetimes: Lifetimes,
    /// Items of other keys are not there.
    pub(crate) only: Option<WholeKey<'a>>,
}

/// Where a scan goes on: after this key.
pub type Position = ItemKey;

impl<'a> View<'a> {
    /// `lsn` must have been read before the snapshot was taken, so that the snapshot holds at least that much.
    /// `lifetimes` are those of the partition's schema at the time of the request.
    pub fn new(partition: &'a Partition, snapshot: &'a Snapshot, lsn: Lsn, lifetimes: Lifetimes) -> View<'a> {
        View { partition, snapshot, lsn, lifetimes, only: None }
    }

    /// The same for a reader who asks for one key, when its place may hold items of others too.
    pub fn only(self, key: Option<WholeKey<'a>>) -> View<'a> {
        View { only: key, ..self }
    }

    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The item, and its id when it was addressed by its rid.
    pub fn item(&self, epk: &Epk, target: &Target) -> Result<Option<Item>, Fault> {
        let item = match target {
            Target::Id(id) => read_item_of(self.partition, self.snapshot, epk, id)?,
            Target::Rid(rid) => match find_rid(self.partition, self.snapshot, *rid)? {
                Some(key) if key.epk == *epk => read_item(self.partition, self.snapshot, &key)?,
                _ => return Ok(None),
            },
        };
        Ok(item.filter(|item| !self.is_over(item)))
    }

    /// Whether an item is not there for this reader: expired, or that of another key in the same place. Those that an
    /// index names may be.
    pub fn is_over(&self, item: &Item) -> bool {
        self.lifetimes.is_over(&item.header) || self.is_foreign(item)
    }

    /// Whether an item is that of another key in the same place.
    pub(crate) fn is_foreign(&self, item: &Item) -> bool {
        self.only.is_some_and(|key| !key.is_of(&item.doc))
    }

    /// The item with this rid, wherever it lies in the partition.
    pub fn item_of_rid(&self, rid: u64) -> Result<Option<Item>, Fault> {
        match self.key_of_rid(rid)? {
            Some(key) => self.item(&key.epk, &Target::Id(key.id)),
            None => Ok(None),
        }
    }

    /// Where the item with this rid lies.
    pub fn key_of_rid(&self, rid: u64) -> Result<Option<ItemKey>, Fault> {
        find_rid(self.partition, self.snapshot, rid)
    }

    /// Items of `range` in key order, after `from` if given, until `visit` says stop.
    pub fn scan(
        &self,
        range: &EpkRange,
        from: Option<&Position>,
        mut visit: impl FnMut(ItemKey, Item) -> Scan,
    ) -> Result<(), Fault> {
        let mut failure = None;
        self.scan_places(range, from, |place, item| match key_at(place) {
            Some(key) => visit(key, item),
            None => {
                failure = Some(Fault::Damaged("an item key".into()));
                Scan::Stop
            }
        })?;
        failure.map_or(Ok(()), Err)
    }

    /// As [`View::scan`], with the encoded place of each item: taking a key apart for every item is waste when
    /// only the last one will be remembered.
    pub fn scan_places(
        &self,
        range: &EpkRange,
        from: Option<&Position>,
        mut visit: impl FnMut(&[u8], Item) -> Scan,
    ) -> Result<(), Fault> {
        self.scan_stored(range, from, |place, item| match self.is_over(&item) {
            true => Scan::Continue,
            false => visit(place, item),
        })
    }

    /// As [`View::scan_places`], with the items that are stored and not there, which [`View::is_over`] tells: who has to
    /// stop in time must be able to stop among them too.
    pub fn scan_stored(
        &self,
        range: &EpkRange,
        from: Option<&Position>,
        mut visit: impl FnMut(&[u8], Item) -> Scan,
    ) -> Result<(), Fault> {
        let container = self.partition.spec.container;
        let (lower, upper) = keys::item_range(container, range);
        let start = from.map(|position| keys::item(container, position)).filter(|start| *start >= lower);
        let lower = match &start {
            Some(start) => Bound::Excluded(start.as_slice()),
            None => Bound::Included(lower.as_slice()),
        };
        for entry in self.snapshot.range(Keyspace::Item, lower, Bound::Excluded(&upper), false) {
            let (key, value) = entry?;
            let place = key.get(CONTAINER_BYTES..).ok_or_else(|| Fault::Damaged("an item key".into()))?;
            let item = Item::decode(&value)?;
            if visit(place, item) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// How many items lie in `range`; they are not looked at, unless some may not be there.
    pub fn count_items(&self, range: &EpkRange) -> Result<u64, Fault> {
        if self.may_hold_expired()? {
            let mut count = 0;
            self.scan_places(range, None, |_, _| {
                count += 1;
                Scan::Continue
            })?;
            return Ok(count);
        }
        let mut count = 0;
        self.scan_keys(range, |_| {
            count += 1;
            Scan::Continue
        })?;
        Ok(count)
    }

    /// The encoded places of all items that are stored in `range`, in key order. The items are not read, so those that
    /// [`View::is_over`] would tell are among them.
    pub fn scan_keys(&self, range: &EpkRange, mut visit: impl FnMut(&[u8]) -> Scan) -> Result<(), Fault> {
        let (lower, upper) = keys::item_range(self.partition.spec.container, range);
        for key in self.snapshot.keys(Keyspace::Item, Bound::Included(&lower), Bound::Excluded(&upper), false)
        {
            let key = key?;
            let place = key.get(CONTAINER_BYTES..).ok_or_else(|| Fault::Damaged("an item key".into()))?;
            if visit(place) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The index of one generation, for the part of the key space that lies in `range` and behind `from`.
    pub fn index(&self, generation: u32, range: &EpkRange, from: Option<&Position>) -> IndexReader<'a> {
        let rids = self.partition.spec.rid_generation;
        IndexReader::new(self.snapshot, generation, rids, PlaceRange::new(range, from))
    }

    /// Fetches items by the places that an index of this view names.
    pub fn loader(&self) -> ItemLoader<'a> {
        ItemLoader::new(self.snapshot, self.partition.spec.container)
    }

    /// What the partition holds, as of this view and not of the newest commit.
    pub fn state(&self) -> Result<PartitionState, Fault> {
        let stored = self.snapshot.get(Keyspace::Meta, &keys::partition_state(self.partition.spec.number));
        match stored? {
            Some(bytes) => PartitionState::decode(&bytes)
                .ok_or_else(|| Fault::Damaged("the state of a partition".into())),
            None => Ok(PartitionState::default()),
        }
    }

    /// How many items have a value at each path of an index, as of this view, whose state is given.
    pub fn path_counts(&self, state: &PartitionState, generation: u32) -> Result<Arc<PathCounts>, Fault> {
        Ok(self.partition.path_counts_of(self.snapshot, state.lsn, generation)?)
    }

    /// The part of the key space that the partition holds.
    pub fn range(&self) -> &'a EpkRange {
        &self.partition.spec.range
    }

    /// What a logical partition holds, as of this view.
    pub fn logical_size(&self, epk: &Epk) -> Result<LogicalSize, Fault> {
        Ok(LogicalSize::read(self.snapshot, self.partition.spec.container, epk)?)
    }
}

pub(crate) fn parse_place(bytes: &[u8]) -> Result<ItemKey, Fault> {
    key_at(bytes).ok_or_else(|| Fault::Damaged("a stored key".into()))
}

/// Whether a scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    Continue,
    Stop,
}

pub(crate) fn read_item(
    partition: &Partition,
    snapshot: &Snapshot,
    key: &ItemKey,
) -> Result<Option<Item>, Fault> {
    read_item_of(partition, snapshot, &key.epk, &key.id)
}

fn read_item_of(
    partition: &Partition,
    snapshot: &Snapshot,
    epk: &Epk,
    id: &ItemId,
) -> Result<Option<Item>, Fault> {
    match snapshot.get(Keyspace::Item, &keys::item_of(partition.spec.container, epk, id))? {
        Some(bytes) => Item::decode(&bytes).map(Some).map_err(|e| Fault::Damaged(e.to_string())),
        None => Ok(None),
    }
}

/// The item that carries this rid, by its index term.
pub(crate) fn find_rid(
    partition: &Partition,
    snapshot: &Snapshot,
    rid: u64,
) -> Result<Option<ItemKey>, Fault> {
    let prefix = keys::index_prefix(partition.spec.rid_generation, keys::RID_PATH, &rid.to_be_bytes());
    let upper = keys::after_prefix(&prefix).expect("an index prefix is never all ones");
    let mut found = snapshot.keys(Keyspace::Index, Bound::Included(&prefix), Bound::Excluded(&upper), false);
    let Some(key) = found.next() else { return Ok(None) };
    let key = key?;
    parse_place(&key[prefix.len()..]).map(Some)
}
