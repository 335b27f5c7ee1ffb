//! Every version and every delete of a partition's items, kept for a while.
//!
//! The feed of latest versions needs no history: it is an index of the live items by their last write. A reader who
//! wants each version needs what the items no longer tell. So where a container asks for it, each write leaves an
//! entry under its LSN, in the same commit as the write itself: an entry is there exactly if the write is.
//! A group of transactions has one net effect on an item, but one entry for each of its writes.
//!
//! What is there has two ends. New entries follow the LSN. The *floor* is the last LSN of which something may be
//! missing: because it was written before the container kept a history, while it had stopped to, or because it is older
//! than the container wants to keep. A reader that has seen less than the floor is told so, since it would miss something.
//! Entries at or below the floor are erased in small steps, among the writes of the partition.
//!
//! LSNs of a child partition continue above those of its parent, and an entry names its place in the key space. So
//! a reader of a child first reads the part of the parent's history that lies in the child's range, then the child's own.

use bytes::Bytes;
use orrery_doc::Epk;

use crate::engine::{Batch, EngineError, Keyspace, Snapshot};
use crate::feed::FeedCursor;
use crate::group::{Removal, Write};
use crate::item::{TICKS_PER_SECOND, read_u64};
use crate::limits::{HISTORY_PASSED_PER_STEP, RETENTION_MINUTES_MAX, SIBLINGS_PASSED_AT_ONCE};
use crate::lineage::{Entries, Entry, Sequence};
use crate::net_effect::Version;
use crate::partition_state::is_ahead;
use crate::view::read_item;
use crate::{
    Fault, Item, ItemId, ItemKey, Lsn, Partition, PartitionSpec, PartitionState, Scan, Schema, View, keys,
};

const FORMAT: u8 = 1;
/// Added to the kind of an entry that has the replaced version before the new one: its id and the item, each with its
/// length.
const WITH_REPLACED: u8 = 0x40;
/// The same without the id, which older builds left to the document: all of their items were of the NoSQL API, whose
/// documents tell it.
const WITH_REPLACED_ALONE: u8 = 0x80;
/// Format, kind, time, previous LSN and the length of the place.
const HEAD_BYTES: usize = 20;

/// What happened to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Replaced,
    Deleted,
    /// Deleted because its time to live was over.
    Expired,
}

/// One change of one item.
#[derive(Clone, Debug)]
pub struct HistoryEntry {
    pub at: FeedCursor,
    pub kind: ChangeKind,
    /// Time of the change in units of 100 ns since 1970.
    pub time: u64,
    /// The change before this one; none for a new item.
    pub previous: Option<Lsn>,
    pub key: ItemKey,
    /// The new version, or the one that was deleted.
    pub item: Item,
    /// The version that this one replaced, where the schema asks for it.
    pub replaced: Option<Replaced>,
}

/// A version that another took the place of.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Another one than that of the new version if the item was given a new id.
    pub id: ItemId,
    pub item: Item,
}

/// Entries that are passed to find one whose time can be believed.
const AHEAD_LOOKED_AT: usize = 1_000;

/// Which part of a partition's history is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBounds {
    /// Everything above this LSN is there.
    pub floor: Lsn,
    /// Nothing below this LSN is there.
    pub erased: Lsn,
}

/// What a group adds to the history and erases from it.
pub(crate) struct HistoryMove {
    from: Option<HistoryBounds>,
    to: Option<HistoryBounds>,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    erased: Vec<Bytes>,
}

impl HistoryMove {
    pub fn new(from: Option<HistoryBounds>) -> HistoryMove {
        HistoryMove { from, to: from, entries: Vec::new(), erased: Vec::new() }
    }

    /// Adds the writes of one transaction, in their order, on request with what they replaced.
    pub fn record(
        &mut self,
        spec: &PartitionSpec,
        lsn: Lsn,
        time: u64,
        writes: &[Write],
        keeps_replaced: bool,
    ) {
        let mut moved = None;
        for (place, write) in writes.iter().enumerate() {
            let before = write.before.as_ref();
            let is_moved = before.is_some_and(|from| is_move(from, writes.get(place + 1)));
            let before = before.map(|version| (&write.key.id, version));
            let (kind, previous, item) = match (before, &write.after) {
                // An item that gets another id stays the same resource: what follows tells of it.
                (Some(_), None) if is_moved => {
                    moved = before;
                    continue;
                }
                (Some((_, gone)), None) if write.removal == Removal::Expiry => {
                    (ChangeKind::Expired, before, gone.item())
                }
                (Some((_, gone)), None) => (ChangeKind::Deleted, before, gone.item()),
                (_, Some(new)) => {
                    let before = before.or(moved.take());
                    let kind = if before.is_some() { ChangeKind::Replaced } else { ChangeKind::Created };
                    (kind, before, new.item())
                }
                (None, None) => continue,
            };
            let replaced = previous.filter(|_| keeps_replaced && kind == ChangeKind::Replaced);
            let replaced = replaced.map(|(id, version)| (id, version.item()));
            let previous = previous.map(|(_, version)| version.item().header.lsn);
            let key = keys::history(spec.number, lsn.0, place as u16).to_vec();
            self.entries.push((key, encode(kind, time, previous, &write.key, item, replaced)));
        }
    }

    /// Erases what nobody can or wants to read any more, up to so many entries.
    pub fn erase(
        &mut self,
        spec: &PartitionSpec,
        snapshot: &Snapshot,
        keep_since: Option<u64>,
        entries_max: usize,
    ) -> Result<(), Fault> {
        let Some(bounds) = &mut self.to else { return Ok(()) };
        let (begun, mut passed, mut complete) = (bounds.erased, 0, true);
        let mut outlived = bounds.floor;
        for entry in scan(snapshot, spec, bounds.erased) {
            let Entry { at, key, value, is_own } = entry?;
            let is_due = at.lsn <= outlived
                || match keep_since {
                    Some(since) => match outlived_from(snapshot, spec, at.lsn, time_of(&value), since)? {
                        Some(lsn) => {
                            outlived = lsn;
                            true
                        }
                        None => false,
                    },
                    None => true,
                };
            // The next step begins with the transaction in which this one ends, which therefore must be another one.
            let is_far = passed >= HISTORY_PASSED_PER_STEP && bounds.erased > begun;
            if !is_due || is_far || self.erased.len() == entries_max {
                complete = !is_due;
                break;
            }
            bounds.erased = at.lsn;
            if is_own {
                bounds.floor = bounds.floor.max(at.lsn);
                self.erased.push(key);
            } else {
                passed += SIBLINGS_PASSED_AT_ONCE;
            }
        }
        if complete && keep_since.is_none() {
            self.to = None;
        }
        Ok(())
    }

    /// Puts everything into the batch; the state is that before the group, the LSN that after it.
    pub fn finish(
        self,
        spec: &PartitionSpec,
        is_kept: bool,
        (before, after): (&PartitionState, Lsn),
        batch: &mut Batch,
    ) -> Option<HistoryBounds> {
        let has_written = after > before.lsn;
        let to = match self.to {
            None if is_kept && has_written => {
                let floor = before.unrecorded();
                Some(HistoryBounds { floor, erased: floor })
            }
            // Nobody recorded these writes, so nobody may read across them.
            Some(bounds) if !is_kept && has_written => Some(HistoryBounds { floor: after, ..bounds }),
            unchanged => unchanged,
        };
        for (key, value) in self.entries {
            batch.put(Keyspace::Feed, key, value);
        }
        for key in self.erased {
            batch.delete(Keyspace::Feed, key);
        }
        if to != self.from {
            let key = keys::history_bounds(spec.number).to_vec();
            match to {
                Some(bounds) => batch.put(Keyspace::Meta, key, bounds.encode()),
                None => batch.delete(Keyspace::Meta, key),
            }
        }
        to
    }
}

/// Whether the next write is the other half of giving an item another id.
fn is_move(from: &Version, next: Option<&Write>) -> bool {
    let to = next.filter(|next| next.before.is_none()).and_then(|next| next.after.as_ref());
    to.is_some_and(|to| to.item().header.rid == from.item().header.rid)
}

impl HistoryBounds {
    pub(crate) fn read(snapshot: &Snapshot, partition: u32) -> Result<Option<HistoryBounds>, EngineError> {
        let stored = snapshot.get(Keyspace::Meta, &keys::history_bounds(partition))?;
        let decode = |bytes: Bytes| match bytes.len() {
            16 => Ok(HistoryBounds { floor: Lsn(read_u64(&bytes, 0)), erased: Lsn(read_u64(&bytes, 8)) }),
            _ => Err(EngineError::Corrupt(format!(
                "the history of partition {partition} has unreadable bounds"
            ))),
        };
        stored.map(decode).transpose()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        [self.floor.0.to_be_bytes(), self.erased.0.to_be_bytes()].concat()
    }

    /// Whether there is something to erase.
    pub fn is_outlived(
        &self,
        snapshot: &Snapshot,
        spec: &PartitionSpec,
        keep_since: u64,
    ) -> Result<bool, Fault> {
        for entry in scan(snapshot, spec, self.erased) {
            let entry = entry?;
            // Passing others' old entries is worth a step as well, but not those where the last one ended.
            if entry.is_own || entry.at.lsn > self.erased {
                let lsn = entry.at.lsn;
                let outlived = outlived_from(snapshot, spec, lsn, time_of(&entry.value), keep_since)?;
                return Ok(lsn <= self.floor || outlived.is_some());
            }
        }
        Ok(false)
    }
}

/// Up to which LSN everything is older than a moment, if that holds for an entry. One that was written while the clock
/// was far ahead seems young for years; it is as old as the next one whose time can be believed, at least.
fn outlived_from(
    snapshot: &Snapshot,
    spec: &PartitionSpec,
    lsn: Lsn,
    time: u64,
    keep_since: u64,
) -> Result<Option<Lsn>, Fault> {
    // No container keeps its history longer, so it is not later than this now.
    let latest = keep_since.saturating_add(RETENTION_MINUTES_MAX as u64 * 60 * TICKS_PER_SECOND);
    if !is_ahead(time, latest) {
        return Ok((time < keep_since).then_some(lsn));
    }
    for entry in scan(snapshot, spec, lsn).take(AHEAD_LOOKED_AT) {
        let entry = entry?;
        let time = time_of(&entry.value);
        if !is_ahead(time, latest) {
            return Ok((time < keep_since).then_some(entry.at.lsn));
        }
    }
    Ok(None)
}

/// Entries from an LSN on.
fn scan(snapshot: &Snapshot, spec: &PartitionSpec, from: Lsn) -> Entries {
    let before = FeedCursor::after(Lsn(from.0.saturating_sub(1)));
    spec.walk(snapshot, Sequence::History, before, Lsn(u64::MAX))
}

pub(crate) fn encode(
    kind: ChangeKind,
    time: u64,
    previous: Option<Lsn>,
    key: &ItemKey,
    item: &Item,
    replaced: Option<(&ItemId, &Item)>,
) -> Vec<u8> {
    let place = &keys::item(0, key)[4..];
    let item = item.encode();
    let mut out = Vec::with_capacity(HEAD_BYTES + place.len() + item.len());
    let with_replaced = if replaced.is_some() { WITH_REPLACED } else { 0 };
    let kind = match kind {
        ChangeKind::Created => 1,
        ChangeKind::Replaced => 2,
        ChangeKind::Deleted => 3,
        ChangeKind::Expired => 4,
    };
    out.extend_from_slice(&[FORMAT, kind | with_replaced]);
    out.extend_from_slice(&time.to_be_bytes());
    // The first transaction of a partition is number one.
    out.extend_from_slice(&previous.map_or(0, |lsn| lsn.0).to_be_bytes());
    out.extend_from_slice(&(place.len() as u16).to_be_bytes());
    out.extend_from_slice(place);
    if let Some((id, replaced)) = replaced {
        out.extend_from_slice(&(id.len() as u16).to_be_bytes());
        out.extend_from_slice(id.as_bytes());
        let replaced = replaced.encode();
        out.extend_from_slice(&(replaced.len() as u32).to_be_bytes());
        out.extend_from_slice(&replaced);
    }
    out.extend_from_slice(&item);
    out
}

/// Zero, which is older than everything, for bytes that are not an entry.
fn time_of(value: &[u8]) -> u64 {
    if value.len() < HEAD_BYTES { 0 } else { read_u64(value, 2) }
}

pub(crate) fn parse_key(key: &[u8]) -> Result<FeedCursor, Fault> {
    keys::parse_history(key)
        .map(|(lsn, place)| FeedCursor { lsn: Lsn(lsn), place })
        .ok_or_else(|| Fault::Damaged("a key of the history".into()))
}

/// The place of the item that an entry is about.
pub(crate) fn place_in(value: &[u8]) -> Result<&[u8], Fault> {
    let wrong = || Fault::Damaged("an entry of the history".into());
    match value.first() {
        Some(&FORMAT) if value.len() >= HEAD_BYTES => {
            let place_bytes = usize::from(u16::from_be_bytes([value[18], value[19]]));
            value.get(HEAD_BYTES..HEAD_BYTES + place_bytes).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// An entry taken apart as far as needed to know whom it concerns.
pub(crate) struct StoredEntry {
    at: FeedCursor,
    value: Bytes,
    place_bytes: usize,
    pub epk: Epk,
}

impl StoredEntry {
    pub fn parse(key: &[u8], value: Bytes) -> Result<StoredEntry, Fault> {
        let wrong = || Fault::Damaged("an entry of the history".into());
        let at = parse_key(key)?;
        let place = place_in(&value)?;
        let place_bytes = place.len();
        let (epk, _) = Epk::decode_key(place).ok_or_else(wrong)?;
        Ok(StoredEntry { at, place_bytes, epk, value })
    }

    pub fn at(&self) -> FeedCursor {
        self.at
    }

    pub fn decode(self) -> Result<HistoryEntry, Fault> {
        let wrong = || Fault::Damaged("an entry of the history".into());
        let mut end = HEAD_BYTES + self.place_bytes;
        let (_, id) = Epk::decode_key(&self.value[HEAD_BYTES..end]).ok_or_else(wrong)?;
        let id = ItemId::new(id).map_err(|_| wrong())?;
        let kind = match self.value[1] & !(WITH_REPLACED | WITH_REPLACED_ALONE) {
            1 => ChangeKind::Created,
            2 => ChangeKind::Replaced,
            3 => ChangeKind::Deleted,
            4 => ChangeKind::Expired,
            _ => return Err(wrong()),
        };
        let previous = Some(read_u64(&self.value, 10)).filter(|lsn| *lsn > 0).map(Lsn);
        let mut part = |length_bytes: usize| -> Result<Bytes, Fault> {
            let length = self.value.get(end..end + length_bytes).ok_or_else(wrong)?;
            let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            let (from, to) = (end + length_bytes, end + length_bytes + length);
            self.value.get(from..to).ok_or_else(wrong)?;
            end = to;
            Ok(self.value.slice(from..to))
        };
        let replaced = match self.value[1] & (WITH_REPLACED | WITH_REPLACED_ALONE) {
            WITH_REPLACED => {
                let id = ItemId::new(part(2)?).map_err(|_| wrong())?;
                Some(Replaced { id, item: Item::decode(&part(4)?)? })
            }
            WITH_REPLACED_ALONE => {
                let item = Item::decode(&part(4)?)?;
                let told = item.doc.root().get("id").as_str().and_then(|id| ItemId::new(id).ok());
                Some(Replaced { id: told.unwrap_or_else(|| id.clone()), item })
            }
            _ => None,
        };
        let item = Item::decode(&self.value.slice(end..))?;
        let time = read_u64(&self.value, 2);
        let key = ItemKey { epk: self.epk, id };
        Ok(HistoryEntry { at: self.at, kind, time, previous, key, item, replaced })
    }
}

impl Partition {
    /// Compares the history with the items: where it is kept, the last write of each item that it reaches back to must
    /// be there, and nothing may be newer than the partition.
    pub(crate) fn verify_history(
        &self,
        view: &View<'_>,
        schema: &Schema,
        mut find: impl FnMut(String),
    ) -> Result<(), Fault> {
        let Some(bounds) = view.history_bounds()? else { return Ok(()) };
        let (mut newest, mut behind) = (Lsn(0), 0);
        view.changes(&self.spec.range, FeedCursor::after(bounds.floor), |_, item| {
            behind += u64::from(item.is_some());
            Scan::Continue
        })?;
        let mut found = 0;
        for entry in scan(view.snapshot, &self.spec, bounds.erased) {
            let entry = entry?;
            if !entry.is_own {
                continue;
            }
            let entry = StoredEntry::parse(&entry.key, entry.value)?.decode()?;
            newest = newest.max(entry.at.lsn);
            let is_write = matches!(entry.kind, ChangeKind::Created | ChangeKind::Replaced);
            if is_write && entry.at.lsn > bounds.floor {
                let stored = read_item(self, view.snapshot, &entry.key)?;
                found += u64::from(stored.is_some_and(|item| item.header.etag == entry.item.header.etag));
            }
        }
        if newest > view.lsn() {
            find(format!("the history reaches to {newest:?}, but the partition is at {:?}", view.lsn()));
        }
        if schema.keeps_history && found != behind {
            find(format!("the history has the last write of {found} items, and {behind} were written since"));
        }
        Ok(())
    }
}
