//! Which parts of a container's feed a sample is taken from.
//!
//! Items in key order would be those of a few logical partitions. In the order of their last write
//! they are a mixture, and places spread over the whole sequence are a fair one of old and new.

/// Items of a sample when nobody says how many.
pub const ITEMS_DEFAULT: usize = 2_000;
/// Items that are taken at one place.
pub const PAGE_ITEMS: usize = 25;

/// A walk over the places of one physical partition that meets no item twice. Where most writes were overwritten,
/// a page reaches beyond the next places; the walk then goes on behind it, so that it still finds what there is.
pub struct Walk {
    places: std::vec::IntoIter<u64>,
    last: u64,
    reached: u64,
}

impl Walk {
    /// `last` is the LSN that the partition has come to.
    pub fn over(last: u64, wanted: usize) -> Walk {
        Walk { places: places(last, wanted).into_iter(), last, reached: 0 }
    }

    /// After which LSN to read the next page.
    pub fn next_place(&mut self) -> Option<u64> {
        let place = self.places.next()?.max(self.reached);
        (place == 0 || place < self.last).then_some(place)
    }

    /// A page ended here; an empty one where nothing is left ends at the end.
    pub fn came_to(&mut self, lsn: u64) {
        self.reached = self.reached.max(lsn);
    }
}

/// The places of one physical partition: after which LSNs to read a page, given the LSN it has come to and how many
/// items are wanted of it. A short sequence is read as a whole.
fn places(last: u64, wanted: usize) -> Vec<u64> {
    let pages = wanted.div_ceil(PAGE_ITEMS).max(1) as u64;
    let step = (last / pages).max(PAGE_ITEMS as u64);
    (0..pages).map(|page| page * step).take_while(|after| *after == 0 || *after < last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The LSNs of the items that a walk takes of a partition that holds items with these LSNs.
    fn taken(live: &[u64], last: u64, wanted: usize) -> Vec<u64> {
        let mut walk = Walk::over(last, wanted);
        let mut taken = Vec::new();
        while let Some(after) = walk.next_place() {
            let page: Vec<u64> = live.iter().copied().filter(|lsn| *lsn > after).take(PAGE_ITEMS).collect();
            let full = page.len() == PAGE_ITEMS;
            walk.came_to(page.last().copied().filter(|_| full).unwrap_or(last));
            taken.extend(page);
        }
        taken
    }

    #[test]
    fn no_item_is_taken_twice_where_most_writes_were_overwritten() {
        let newest: Vec<u64> = (999_001..=1_000_000).collect();
        assert_eq!(taken(&newest, 1_000_000, 2_000), newest, "all of the few items, each once");
        let sparse: Vec<u64> = (0..100).map(|n| n * 10_000 + 1).collect();
        assert_eq!(taken(&sparse, 1_000_000, 2_000), sparse);
        let all: Vec<u64> = (1..=10_000).collect();
        let spread = taken(&all, 10_000, 100);
        assert_eq!((spread.len(), spread[25], spread[99]), (100, 2_501, 7_525), "places stay spread");
        assert!(taken(&[], 5_000, 100).is_empty(), "there is nothing to take");
    }

    #[test]
    fn places_are_spread_over_the_sequence() {
        assert_eq!(places(0, 100), [0]);
        assert_eq!(places(60, 1000), [0, 25, 50]);
        assert_eq!(places(1_000_000, 100), [0, 250_000, 500_000, 750_000]);
        assert_eq!(places(u64::MAX, 1), [0]);
    }
}
