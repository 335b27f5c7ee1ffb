//! Items in the order in which they were created, where there are few of them.
//!
//! Items lie in key order, and their rids tell the order of creation. Two ways lead from one to the other, and the
//! cheaper one is taken:
//!
//! - The entries of rids are walked, and each item is fetched by its place. That is cheap for the first few items, and
//!   in vain where most entries are of items that lie elsewhere. So the walk has a bound, and where it reaches it the
//!   other way goes on behind the last item.
//! - The items are scanned in key order, and the oldest of those that are not out yet are sorted. What is held has a
//!   bound as well: what goes beyond it has its turn in another scan. So large items, few of which can be held, are fetched
//!   one by one.
//!
//! A reader who has begun in this order goes on in it when there are many items by now; then only the first way is left.
//!
//! Where an index has named the items that can matter, the same two ways lead over those alone: the entries of rids are walked
//! and only members are fetched, or all members are fetched and the oldest of them sorted.

use orrery_doc::EpkRange;

use crate::index::Places;
use crate::limits::{CREATION_BYTES_MAX, CREATION_ITEMS_MAX, CREATION_SORTED_BYTES};
use crate::view::{Scan, View};
use crate::{Fault, Item};

/// To fetch a small item is as much work as to scan so many; a large one is hardly dearer.
const FETCH_FOR_SCANS: u64 = 4;
const FETCH_LARGE_FOR_SCANS: u64 = 2;
const LARGE_BYTES: u64 = 1024;
/// To fetch an item of this size is no more work than to scan it.
const HUGE_BYTES: u64 = 4 * 1024;
/// So many entries of rids are as much work as one item of a scan.
const ENTRIES_FOR_SCAN: u64 = 4;
/// Entries that may be walked whatever the size of the part.
const ENTRIES_MIN: u64 = 64;

/// Which items of a part are visited.
#[derive(Clone, Copy)]
pub enum Members<'a> {
    All,
    /// Those at these places, which are in key order.
    At(&'a Places),
}

impl Members<'_> {
    fn has(self, place: &[u8]) -> bool {
        match self {
            Members::All => true,
            Members::At(places) => places.contains(place),
        }
    }
}

/// What is known of a part of the key space before its items are looked at.
#[derive(Clone, Copy, Debug)]
pub struct PartSize {
    /// Items in it, and their bytes, at most.
    pub items: u64,
    pub bytes: u64,
    /// Items of the whole partition.
    pub partition_items: u64,
}

impl PartSize {
    /// Whether the order of creation costs little.
    pub fn is_small(&self) -> bool {
        self.items <= CREATION_ITEMS_MAX && self.bytes <= CREATION_BYTES_MAX
    }

    fn fetch_cost(&self) -> u64 {
        match self.bytes >= self.items * LARGE_BYTES {
            true => FETCH_LARGE_FOR_SCANS,
            false => FETCH_FOR_SCANS,
        }
    }

    /// Whether the oldest items are found without looking at all of them, when about so many are wanted.
    pub fn finds_oldest_soon(&self, wanted: Option<usize>) -> bool {
        self.bound(wanted).is_some()
    }

    /// How far to walk over rids before a scan is cheaper; none if it is from the beginning.
    fn bound(&self, wanted: Option<usize>) -> Option<Bound> {
        let entries = self.items * ENTRIES_FOR_SCAN + ENTRIES_MIN;
        if !self.is_small() {
            return Some(Bound { fetches: u64::MAX, entries: u64::MAX });
        }
        if self.bytes >= self.items * HUGE_BYTES {
            return Some(Bound { fetches: u64::MAX, entries });
        }
        let favours = wanted.is_some_and(|wanted| self.favours_rids(wanted));
        favours.then(|| Bound { fetches: self.items / self.fetch_cost() + 1, entries })
    }

    /// The same for so many members. What cannot be held at once has to be fetched again and again to be sorted.
    fn bound_among(&self, members: u64, wanted: Option<usize>) -> Option<Bound> {
        let bytes = members * (self.bytes / self.items.max(1));
        let to_sort = members * self.fetch_cost() * (1 + bytes / CREATION_SORTED_BYTES);
        let wanted = wanted.map_or(members, |wanted| members.min(wanted as u64));
        let to_walk = wanted * self.fetch_cost() + self.partition_items / ENTRIES_FOR_SCAN;
        let entries = to_sort * ENTRIES_FOR_SCAN;
        (to_walk < to_sort).then_some(Bound { fetches: u64::MAX, entries })
    }

    /// Whether to fetch so many items by their rids is less work than to scan all.
    fn favours_rids(&self, wanted: usize) -> bool {
        let entries = self.partition_items / self.items.max(1) + 1;
        let each = self.fetch_cost() + entries / ENTRIES_FOR_SCAN;
        (wanted as u64).saturating_mul(each) < self.items
    }
}

/// How far a walk over rids may go before a scan is cheaper.
struct Bound {
    fetches: u64,
    entries: u64,
}

/// The items behind a rid that were created first, as many as there is room for.
struct Oldest {
    after: Option<u64>,
    room: u64,
    items: Vec<Item>,
    bytes: u64,
    is_cut: bool,
}

impl Oldest {
    fn new(after: Option<u64>) -> Oldest {
        Oldest::within(after, CREATION_SORTED_BYTES)
    }

    fn within(after: Option<u64>, room: u64) -> Oldest {
        Oldest { after, room, items: Vec::new(), bytes: 0, is_cut: false }
    }

    fn take(&mut self, item: Item) {
        if self.after.is_some_and(|after| item.header.rid <= after) {
            return;
        }
        self.bytes += bytes_of(&item);
        self.items.push(item);
        // Twice the room, so that what is sorted is worth it.
        if self.bytes > 2 * self.room {
            self.cut();
        }
    }

    /// The items in their order, and whether others were left out for want of room.
    fn into_sorted(mut self) -> (Vec<Item>, bool) {
        self.cut();
        (self.items, self.is_cut)
    }

    fn cut(&mut self) {
        self.items.sort_unstable_by_key(|item| item.header.rid);
        let mut sum = 0;
        let fit = self.items.iter().take_while(|item| {
            sum += bytes_of(item);
            sum <= self.room
        });
        // The first one is taken whatever its size.
        let kept = fit.count().max(1);
        self.is_cut |= kept < self.items.len();
        self.items.truncate(kept);
        self.bytes = self.items.iter().map(bytes_of).sum();
    }
}

fn bytes_of(item: &Item) -> u64 {
    u64::from(item.header.json_bytes) + size_of::<Item>() as u64
}

impl View<'_> {
    /// The `members` of `range` in the order of their creation, behind the one with the rid `after`, until `visit` says
    /// stop. About so many are wanted; `None` for all. As with [`View::scan_stored`], [`View::is_over`] tells which are not
    /// there for the reader.
    pub fn scan_created(
        &self,
        range: &EpkRange,
        after: Option<u64>,
        members: Members<'_>,
        size: PartSize,
        wanted: Option<usize>,
        mut visit: impl FnMut(Item) -> Scan,
    ) -> Result<(), Fault> {
        let mut after = after;
        let bound = match members {
            Members::All => size.bound(wanted),
            Members::At(places) => size.bound_among(places.len() as u64, wanted),
        };
        if let Some(bound) = bound
            && self.walk_rids(range, &mut after, members, bound, &mut visit)?
        {
            return Ok(());
        }
        loop {
            let mut oldest = Oldest::new(after);
            self.load_members(range, members, size, |item| oldest.take(item))?;
            let (items, is_cut) = oldest.into_sorted();
            for item in items {
                after = Some(item.header.rid);
                if visit(item) == Scan::Stop {
                    return Ok(());
                }
            }
            if !is_cut {
                return Ok(());
            }
        }
    }

    /// In key order.
    fn load_members(
        &self,
        range: &EpkRange,
        members: Members<'_>,
        size: PartSize,
        mut take: impl FnMut(Item),
    ) -> Result<(), Fault> {
        let places = match members {
            Members::At(places) => places,
            Members::All => {
                return self.scan_stored(range, None, |_, item| {
                    take(item);
                    Scan::Continue
                });
            }
        };
        let mut loader = self.loader();
        loader.expect(places.len(), size.items);
        places.iter().try_for_each(|place| loader.load(place).map(&mut take))
    }

    /// Returns whether nothing is left to do; else `after` is the last item that was passed.
    fn walk_rids(
        &self,
        range: &EpkRange,
        after: &mut Option<u64>,
        members: Members<'_>,
        mut bound: Bound,
        visit: &mut impl FnMut(Item) -> Scan,
    ) -> Result<bool, Fault> {
        // No generation of other entries is asked for.
        let reader = self.index(0, range, None);
        let mut rids = reader.rids(after.map(|rid| rid + 1), false);
        let mut loader = self.loader();
        while bound.fetches > 0 {
            let Some(entry) = rids.next_within(&mut bound.entries)? else { return Ok(bound.entries > 0) };
            *after = Some(entry.rid());
            if !members.has(entry.place()) {
                continue;
            }
            if visit(loader.find(entry.place())?) == Scan::Stop {
                return Ok(true);
            }
            bound.fetches -= 1;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_are_fetched_and_many_are_scanned() {
        let size = PartSize { items: 1_000, bytes: 100_000, partition_items: 1_000 };
        assert!(size.favours_rids(11) && !size.favours_rids(400));
        let elsewhere = PartSize { partition_items: 1_000_000, ..size };
        assert!(!elsewhere.favours_rids(11), "nearly all entries are of other items");
        let large = PartSize { bytes: 4_000_000, ..size };
        assert!(large.favours_rids(400));
        let huge = PartSize { items: 40, bytes: 4_000_000, partition_items: 40 };
        assert!(huge.bound(None).is_some() && size.bound(None).is_none(), "few that are huge can be held");
    }

    #[test]
    fn few_members_are_sorted_and_many_are_met_on_the_walk() {
        let size = PartSize { items: 4_900, bytes: 490_000, partition_items: 4_900 };
        assert!(size.bound_among(1_000, Some(101)).is_some() && size.bound_among(200, Some(101)).is_none());
        assert!(size.bound_among(1_000, None).is_none(), "all of them have to be fetched either way");
        let elsewhere = PartSize { partition_items: 1_000_000, ..size };
        assert!(elsewhere.bound_among(1_000, Some(101)).is_none(), "nearly all entries are of other items");
        let large = PartSize { bytes: 16_000_000, ..size };
        assert!(large.bound_among(1_000, None).is_some(), "they cannot be held at once");
    }
}
