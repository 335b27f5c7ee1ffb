//! Session tokens: what a client has seen, and whether a range is that far.
//!
//! A token names ranges, and for each the version of the account's regions, the LSN, and how far the log of each region was.
//! Versions come before LSNs: after a region was added, removed or lost, LSNs of before and after are not comparable. A token
//! of a newer version names a state that this server has not reached; one of an older version has been superseded, and
//! asks for nothing.

use orrery_store::{Lsn, RegionLsn};

/// The version of an account that has had one region only.
pub const SINGLE_REGION_VERSION: i64 = -1;

/// What a client has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken {
    pub ranges: Vec<RangeToken>,
}

/// What a client has seen of one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeToken {
    pub range: u32,
    /// Counts changes of the account's regions. Old clients send an LSN without one.
    pub version: Option<i64>,
    pub lsn: Lsn,
    /// How far the log of each region was; -1 where nothing had come of it.
    pub regions: Vec<(u64, i64)>,
}

/// How far a range is.
#[derive(Clone, Copy, Debug)]
pub struct RangeProgress<'a> {
    /// Of the account's regions.
    pub version: i64,
    pub lsn: Lsn,
    /// How far the log of each region is, where several regions write.
    pub regions: Option<&'a [RegionLsn]>,
}

impl SessionToken {
    /// Whether the client has seen something of a range, or of those it was split from, that is not there yet.
    pub(crate) fn is_ahead(&self, range: u32, parents: &[u32], here: RangeProgress<'_>) -> bool {
        let named = |token: &&RangeToken| token.range == range || parents.contains(&token.range);
        self.ranges.iter().filter(named).any(|token| token.is_ahead(here))
    }
}

impl RangeToken {
    pub fn is_ahead(&self, here: RangeProgress<'_>) -> bool {
        // Some clients write a zero for the version of an account with one region.
        let is_one_region = here.version == SINGLE_REGION_VERSION && self.version == Some(0);
        match self.version {
            Some(version) if version > here.version && !is_one_region => true,
            Some(version) if version < here.version => false,
            _ => self.lsn > here.lsn || here.regions.is_some_and(|regions| self.misses(regions)),
        }
    }

    /// Whether some region's log was further. A region that nobody here knows of is.
    fn misses(&self, regions: &[RegionLsn]) -> bool {
        let reached = |id: u64| regions.iter().find(|entry| u64::from(entry.region) == id);
        self.regions.iter().any(|(id, seen)| match u64::try_from(*seen) {
            Ok(seen) => reached(*id).is_none_or(|entry| entry.lsn.0 < seen),
            Err(_) => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(version: impl Into<Option<i64>>, lsn: u64, regions: &[(u64, i64)]) -> RangeToken {
        RangeToken { range: 3, version: version.into(), lsn: Lsn(lsn), regions: regions.to_vec() }
    }

    #[test]
    fn versions_come_before_lsns() {
        for (mine, version, lsn, is_ahead) in [
            (-1, Some(-1), 10, false),
            (-1, Some(-1), 11, true),
            (-1, Some(0), 10, false),
            (-1, Some(0), 11, true),
            (-1, Some(1), 0, true),
            (-1, None, 10, false),
            (-1, None, 11, true),
            (0, Some(-1), 99, false),
            (0, Some(0), 11, true),
            (2, Some(1), 99, false),
            (2, Some(2), 10, false),
            (2, Some(2), 11, true),
            (2, Some(3), 0, true),
        ] {
            let here = RangeProgress { version: mine, lsn: Lsn(10), regions: None };
            assert_eq!(token(version, lsn, &[]).is_ahead(here), is_ahead, "{mine} {version:?} {lsn}");
        }
    }

    #[test]
    fn where_several_regions_write_each_of_them_counts() {
        let regions = [RegionLsn { region: 1, lsn: Lsn(5) }, RegionLsn { region: 2, lsn: Lsn(7) }];
        for (named, is_ahead) in [
            (&[][..], false),
            (&[(1, 5), (2, 7)], false),
            (&[(1, 6)], true),
            (&[(1, 5), (2, 8)], true),
            (&[(3, 0)], true),
            (&[(3, -1)], false),
        ] {
            let of_many = RangeProgress { version: 4, lsn: Lsn(10), regions: Some(&regions) };
            assert_eq!(token(4, 10, named).is_ahead(of_many), is_ahead, "{named:?}");
            assert!(!token(3, 10, named).is_ahead(of_many), "{named:?} of an older version");
            let of_one = RangeProgress { regions: None, ..of_many };
            assert!(!token(4, 10, named).is_ahead(of_one), "{named:?} where one region writes");
        }
    }

    #[test]
    fn a_token_of_a_parent_counts_and_one_of_a_stranger_does_not() {
        let session = SessionToken { ranges: vec![token(-1, 11, &[])] };
        let here = RangeProgress { version: -1, lsn: Lsn(10), regions: None };
        assert!(session.is_ahead(3, &[], here) && session.is_ahead(9, &[1, 3], here));
        assert!(!session.is_ahead(9, &[1], here));
    }
}
