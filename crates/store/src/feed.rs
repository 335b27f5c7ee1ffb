//! Changes in the order of their LSNs.
//!
//! Three feeds are read the same way. The feed of latest versions has one entry for each live item, under its last write;
//! the history has one for each write; the conflicts have one for each write that lost against another. A reader
//! remembers the last cursor and nothing else.

use orrery_doc::EpkRange;

use crate::conflict::Conflict;
use crate::history::{HistoryBounds, HistoryEntry, StoredEntry};
use crate::limits::{FEED_SORTED_BYTES_MAX, FEED_SORTED_ITEMS_MAX};
use crate::lineage::{Entries, Entry, Sequence, Source};
use crate::view::{parse_place, read_item};
use crate::{Fault, Item, ItemKey, Lsn, Scan, View};

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

/// An entry of the feed of latest versions.
pub(crate) struct Fed {
    pub at: FeedCursor,
    pub key: ItemKey,
    pub is_own: bool,
}

impl Fed {
    fn parse(entry: &Entry) -> Result<Fed, Fault> {
        Ok(Fed { at: entry.at, key: parse_place(&entry.value)?, is_own: entry.is_own })
    }
}

impl View<'_> {
    /// The latest versions of items of `range` that were written after `after`, oldest write first. Expired items and
    /// entries of other parts of the key space are shown without their item, so that the reader can stop there too;
    /// of those of sibling partitions, one in so many.
    pub fn changes(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<Item>) -> Scan,
    ) -> Result<(), Fault> {
        for entry in self.walk(Sequence::Latest, after) {
            let Fed { at, key, is_own } = Fed::parse(&entry?)?;
            let item = match is_own && range.contains(&key.epk) {
                true => Some(self.fed_item(&key)?).filter(|item| !self.is_over(item)),
                false => None,
            };
            if visit(at, item) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// As [`View::changes`], when `range` is that of one logical partition. A small one among many writes is found by
    /// its items, which are then brought into order: walking the feed would mean to look at everybody's writes.
    pub fn changes_of_key(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<Item>) -> Scan,
    ) -> Result<(), Fault> {
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

    /// Where the items lie whose last write was this transaction.
    pub fn last_written_by(&self, lsn: Lsn) -> Result<Vec<ItemKey>, Fault> {
        let after = FeedCursor::after(Lsn(lsn.0.saturating_sub(1)));
        let entries = self.partition.spec.entries(self.snapshot, Sequence::Latest, after, lsn);
        entries.map(|entry| parse_place(&entry?.value)).collect()
    }

    /// The snapshot may hold more than the LSN that the answer names; that belongs to the next page.
    fn walk(&self, sequence: Sequence, after: FeedCursor) -> Entries {
        self.partition.spec.walk(self.snapshot, sequence, after, self.lsn())
    }

    /// The entries of one of the sequences that make up the feed.
    pub(crate) fn feed_entries_of(
        &self,
        source: &Source,
        after: FeedCursor,
        mut visit: impl FnMut(Fed) -> Result<Scan, Fault>,
    ) -> Result<(), Fault> {
        for entry in self.partition.spec.walk_of(self.snapshot, source, after, self.lsn()) {
            if visit(Fed::parse(&entry?)?)? == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The item that an entry of the feed names, whether it is expired or not.
    pub(crate) fn fed_item(&self, key: &ItemKey) -> Result<Item, Fault> {
        let item = read_item(self.partition, self.snapshot, key)?;
        item.ok_or_else(|| Fault::Damaged("a feed entry without its item".into()))
    }

    /// Which part of the history is there; none when nothing was ever recorded.
    pub fn history_bounds(&self) -> Result<Option<HistoryBounds>, Fault> {
        Ok(HistoryBounds::read(self.snapshot, self.partition.spec.number)?)
    }

    /// Every write to items of `range` after `after`, as [`View::changes`] shows it. The caller must have compared
    /// `after` with [`View::history_bounds`].
    pub fn history(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<HistoryEntry>) -> Scan,
    ) -> Result<(), Fault> {
        for entry in self.walk(Sequence::History, after) {
            let entry = entry?;
            let is_own = entry.is_own;
            let entry = StoredEntry::parse(&entry.key, entry.value)?;
            let at = entry.at();
            let entry = if is_own && range.contains(&entry.epk) { Some(entry.decode()?) } else { None };
            let entry = entry.filter(|entry| !self.is_foreign(&entry.item));
            if visit(at, entry) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// Writes to items of `range` that lost against others, as [`View::changes`] shows what won.
    pub fn conflicts(
        &self,
        range: &EpkRange,
        after: FeedCursor,
        mut visit: impl FnMut(FeedCursor, Option<Conflict>) -> Scan,
    ) -> Result<(), Fault> {
        for entry in self.walk(Sequence::Conflicts, after) {
            let Entry { at, key, value, is_own } = entry?;
            let conflict = if is_own { Some(Conflict::decode(&key, &value)?) } else { None };
            let is_foreign =
                |conflict: &Conflict| conflict.item.as_ref().is_some_and(|item| self.is_foreign(item));
            let conflict =
                conflict.filter(|conflict| range.contains(&conflict.key.epk) && !is_foreign(conflict));
            if visit(at, conflict) == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    /// The last transaction before a moment. After a merge it may be an earlier one: the partitions of before had each
    /// their own LSNs, and nothing may be left out.
    pub fn lsn_before(&self, time: u64) -> Result<Lsn, Fault> {
        let mut found = self.lsn();
        for source in self.partition.spec.sequences() {
            if let Some(before) = self.lsn_before_in(&source, time)? {
                found = found.min(before);
            }
        }
        Ok(found)
    }

    /// The last LSN before the first entry of a sequence that is not older than a moment; none when all are older. In
    /// one sequence times grow with LSNs, so a search by halves finds it. It looks at siblings' entries too: their
    /// times tell as much, and nobody has to walk past them.
    fn lsn_before_in(&self, source: &Source, time: u64) -> Result<Option<Lsn>, Fault> {
        let (mut low, mut high) = (source.after.0, source.to.min(self.lsn()).0);
        let mut is_found = false;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let after = FeedCursor::after(Lsn(middle - 1));
            let entry = self.partition.spec.first_of_any(self.snapshot, source, after, self.lsn())?;
            // What was overwritten since has left the feed; its place is taken by a later write.
            let written = match entry {
                Some(entry) => Some(self.fed_item(&parse_place(&entry.value)?)?.header.time),
                None => None,
            };
            if written.is_some_and(|written| written < time) {
                low = middle;
            } else {
                high = middle - 1;
                is_found |= written.is_some();
            }
        }
        Ok(is_found.then_some(Lsn(low)))
    }
}
