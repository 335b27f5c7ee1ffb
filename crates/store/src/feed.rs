//! Changes in the order of their LSNs.
//!
//! Two feeds are read the same way. The feed of latest versions has one entry for each live item, under its last write;
//! the history has one for each write. A reader remembers how far he has come and nothing else.

use orrery_doc::EpkRange;

use crate::history::{HistoryBounds, HistoryEntry, StoredEntry};
use crate::limits::{FEED_SORTED_BYTES_MAX, FEED_SORTED_ITEMS_MAX};
use crate::lineage::{Entries, Sequence, Source};
use crate::view::{damaged, parse_place, read_item};
use crate::{Item, ItemKey, Lsn, OpError, Scan, View};

/// Entries of the feed that are walked in the time in which one item is looked at and sorted.
const ENTRIES_PER_ITEM: u64 = 8;

/// How far a reader of changes has come: up to and with this place of this transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedCursor {
    pub lsn: Lsn,
    pub place: u16,
}

impl FeedCursor {
    /// Behind everything that a transaction did.
    pub fn after(lsn: Lsn) -> FeedCursor {
        FeedCursor { lsn, place: u16::MAX }
    }

    /// Whether nothing of the cursor's transaction is left.
    pub fn is_whole(self) -> bool {
        self.place == u16::MAX
    }

    /// The first key that the reader has not seen.
    pub(crate) fn next(self) -> (u64, u16) {
        match self.place.checked_add(1) {
            Some(place) => (self.lsn.0, place),
            None => (self.lsn.0.saturating_add(1), 0),
        }
    }
}

impl View<'_> {
    /// The latest versions of items of `range` that were written after `after`, oldest write first. Expired items and
    /// entries of other parts of the key space are shown without their item, so that the reader can stop there too.
    pub fn changes(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<Item>) -> Scan,
    ) -> Result<(), OpError> {
        self.feed_entries(after, |at, key| {
            let item = match range.contains(&key.epk) {
                true => Some(self.fed_item(&key)?).filter(|item| !self.lifetimes.is_over(&item.header)),
                false => None,
            };
            Ok(visit(at, item))
        })
    }

    /// As [`View::changes`], when `range` is that of one logical partition. A small one among many writes is found by
    /// its items, which are then brought into order: walking the feed would mean to look at everybody's writes.
    pub fn changes_of_key(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<Item>) -> Scan,
    ) -> Result<(), OpError> {
        let size = self.logical_size(&range.min)?;
        let is_small = size.items <= FEED_SORTED_ITEMS_MAX && size.bytes <= FEED_SORTED_BYTES_MAX;
        let writes = self.lsn().0.saturating_sub(after.lsn.0);
        if !is_small || writes / ENTRIES_PER_ITEM <= size.items {
            return self.changes(range, after, visit);
        }
        let mut found = Vec::new();
        self.scan(range, None, |key, item| {
            let at = FeedCursor { lsn: item.header.lsn, place: item.header.place };
            if at > after && at.lsn <= self.lsn() {
                found.push((at, key));
            }
            Scan::Continue
        })?;
        found.sort_unstable_by_key(|(at, _)| *at);
        for (at, key) in found {
            if visit(at, Some(self.fed_item(&key)?)) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The entries of the feed behind a cursor.
    pub(crate) fn feed_entries(
        &self,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, ItemKey) -> Result<Scan, OpError>,
    ) -> Result<(), OpError> {
        for entry in self.entries(Sequence::Latest, after) {
            let entry = entry?;
            if visit(entry.at, parse_place(&entry.value)?)? == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The snapshot may hold more than the LSN that the answer names; that belongs to the next page.
    fn entries(&self, sequence: Sequence, after: FeedCursor) -> Entries {
        self.partition.spec.entries(self.snapshot, sequence, after, self.lsn())
    }

    /// The entries of one of the sequences that make up the feed.
    pub(crate) fn feed_entries_of(
        &self,
        source: &Source,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, ItemKey) -> Result<Scan, OpError>,
    ) -> Result<(), OpError> {
        for entry in self.partition.spec.entries_of(self.snapshot, source, after, self.lsn()) {
            let entry = entry?;
            if visit(entry.at, parse_place(&entry.value)?)? == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The item that an entry of the feed names, whether it is expired or not.
    pub(crate) fn fed_item(&self, key: &ItemKey) -> Result<Item, OpError> {
        let item = read_item(self.partition, self.snapshot, key)?;
        item.ok_or_else(|| OpError::Damaged("a feed entry without its item".into()))
    }

    /// Which part of the history is there; none when nothing was ever recorded.
    pub fn history_bounds(&self) -> Result<Option<HistoryBounds>, OpError> {
        HistoryBounds::read(self.snapshot, self.partition.spec.number).map_err(damaged)
    }

    /// Every write to items of `range` after `after`, as [`View::changes`] shows it. The caller must have compared
    /// `after` with [`View::history_bounds`].
    pub fn history(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<HistoryEntry>) -> Scan,
    ) -> Result<(), OpError> {
        for entry in self.entries(Sequence::History, after) {
            let entry = entry?;
            let entry = StoredEntry::parse(&entry.key, entry.value)?;
            let at = entry.at();
            let entry = if range.contains(&entry.epk) { Some(entry.decode()?) } else { None };
            if visit(at, entry) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The last transaction before a moment. After a merge it may be an earlier one: the partitions of before had each
    /// their own LSNs, and nothing may be left out.
    pub fn lsn_before(&self, time: u64) -> Result<Lsn, OpError> {
        let mut found = self.lsn();
        for source in self.partition.spec.sequences() {
            let last = source.to.min(self.lsn());
            let before = self.lsn_before_in(&source, last, time)?;
            if before < last {
                found = found.min(before);
            }
        }
        Ok(found)
    }

    /// In one sequence times grow with LSNs, so a search by halves finds it.
    fn lsn_before_in(&self, source: &Source, last: Lsn, time: u64) -> Result<Lsn, OpError> {
        let (mut low, mut high) = (source.after.0, last.0);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let mut written = None;
            self.feed_entries_of(source, FeedCursor::after(Lsn(middle - 1)), |_, key| {
                written = Some(self.fed_item(&key)?.header.time);
                Ok(Scan::Stop)
            })?;
            // What was overwritten since has left the feed; its place is taken by a later write.
            match written {
                Some(written) if written < time => low = middle,
                _ => high = middle - 1,
            }
        }
        Ok(Lsn(low))
    }
}
