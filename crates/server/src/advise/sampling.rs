//! Which places of a container's feed a sample is taken from, where nothing but the feed can be asked.
//!
//! Items that lie side by side in the feed were often loaded together and are alike, so each is taken at a place of its own: the
//! sequence of a partition is cut into as many parts as items are wanted, and one is taken behind a place in each, chosen
//! by chance. Where old writes were overwritten there are gaps, and what follows one is more likely to be met; that
//! much this sample is worse than the one that a server takes of its own items.

use orrery_advisor::Chance;

/// A walk over the places of one physical partition that meets no item twice.
pub struct Walk<'a> {
    last: u64,
    parts: u64,
    part: u64,
    reached: u64,
    chance: &'a mut Chance,
}

impl Walk<'_> {
    /// `last` is the LSN that the partition has come to.
    pub fn over(last: u64, wanted: usize, chance: &mut Chance) -> Walk<'_> {
        Walk { last, parts: (wanted as u64).min(last), part: 0, reached: 0, chance }
    }

    /// After which LSN to read the next item.
    pub fn next_place(&mut self) -> Option<u64> {
        let bound = |part: u64| (u128::from(self.last) * u128::from(part) / u128::from(self.parts)) as u64;
        if self.part == self.parts {
            return None;
        }
        let (from, to) = (bound(self.part), bound(self.part + 1));
        self.part += 1;
        let place = (from + self.chance.below(to - from)).max(self.reached);
        (place < self.last).then_some(place)
    }

    /// The item stood here; where nothing is left, this is the end.
    pub fn came_to(&mut self, lsn: u64) {
        self.reached = self.reached.max(lsn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The LSNs of the items that a walk takes of a partition that holds items with these LSNs.
    fn taken(live: &[u64], last: u64, wanted: usize) -> Vec<u64> {
        let mut chance = Chance::new(3);
        let mut walk = Walk::over(last, wanted, &mut chance);
        let mut taken = Vec::new();
        while let Some(after) = walk.next_place() {
            let found = live.iter().copied().find(|lsn| *lsn > after);
            walk.came_to(found.unwrap_or(last));
            taken.extend(found);
        }
        taken
    }

    #[test]
    fn no_item_is_taken_twice_where_most_writes_were_overwritten() {
        let sparse: Vec<u64> = (0..100).map(|n| n * 10_000 + 1).collect();
        let mut found = taken(&sparse, 1_000_000, 2_000);
        let all = found.len();
        found.dedup();
        assert_eq!(found.len(), all);
        assert!(all > 90, "nearly all of the few items: {all}");
        assert!(
            taken(&[], 5_000, 100).is_empty() && taken(&[], 0, 100).is_empty(),
            "there is nothing to take"
        );
    }

    #[test]
    fn items_that_were_loaded_group_by_group_are_met_in_all_groups() {
        let live: Vec<u64> = (1..=100_000).collect();
        let groups: std::collections::BTreeSet<u64> =
            taken(&live, 100_000, 2_000).iter().map(|lsn| lsn / 100).collect();
        assert!(groups.len() > 850, "{} of 1,000 groups", groups.len());
    }
}
