//! Which parts of a container's feed a sample is taken from.
//!
//! Items in key order would be those of a few logical partitions. In the order of their last write
//! they are a mixture, and places spread over the whole sequence are a fair one of old and new.

/// Items of a sample when nobody says how many.
pub const ITEMS_DEFAULT: usize = 2_000;
/// Items that are taken at one place.
pub const PAGE_ITEMS: usize = 25;

/// The places of one physical partition: after which LSNs to read a page, given the LSN it has come to and how many
/// items are wanted of it. A short sequence is read as a whole.
pub fn places(last: u64, wanted: usize) -> Vec<u64> {
    let pages = wanted.div_ceil(PAGE_ITEMS).max(1) as u64;
    let step = (last / pages).max(PAGE_ITEMS as u64);
    (0..pages).map(|page| page * step).take_while(|after| *after == 0 || *after < last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread_over_the_sequence() {
        assert_eq!(places(0, 100), [0]);
        assert_eq!(places(60, 1000), [0, 25, 50]);
        assert_eq!(places(1_000_000, 100), [0, 250_000, 500_000, 750_000]);
        assert_eq!(places(u64::MAX, 1), [0]);
    }
}
