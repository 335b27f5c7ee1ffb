//! The account's record: its regions.
//!
//! An account that runs in one place has one region, and its name is what the operator calls it at each start. Ids of regions
//! are never given twice: items, rids, session tokens and logs name regions by them.

use serde::{Deserialize, Serialize};

use crate::session::SINGLE_REGION_VERSION;

/// The regions of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountRecord {
    /// Counts changes of the regions, as session tokens tell it: -1 as long as there was one only.
    pub version: i64,
    /// In the order in which they were added.
    pub regions: Vec<RegionRecord>,
    /// The next free id for a region.
    pub next_region: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionRecord {
    pub id: u16,
    pub name: String,
    /// Where clients reach it; none where that is what they dialled.
    pub endpoint: Option<String>,
    pub write: bool,
    /// The lowest is asked first, and takes over first.
    pub priority: u32,
}

impl AccountRecord {
    /// An account as it begins, in one region.
    pub fn first(region: &str) -> AccountRecord {
        let name = region.to_owned();
        let regions = vec![RegionRecord { id: 0, name, endpoint: None, write: true, priority: 0 }];
        AccountRecord { version: SINGLE_REGION_VERSION, regions, next_region: 1 }
    }

    /// The same with the name that the operator has given at this start, if there is one region.
    pub fn named(mut self, region: &str) -> AccountRecord {
        if let [only] = &mut self.regions[..] {
            region.clone_into(&mut only.name);
        }
        self
    }

    /// In the order in which clients are to ask them.
    pub fn readable(&self) -> Vec<&RegionRecord> {
        let mut regions: Vec<&RegionRecord> = self.regions.iter().collect();
        regions.sort_by_key(|region| (region.priority, region.id));
        regions
    }

    pub fn writable(&self) -> Vec<&RegionRecord> {
        self.readable().into_iter().filter(|region| region.write).collect()
    }

    pub fn is_written_in_many(&self) -> bool {
        self.regions.iter().filter(|region| region.write).count() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_told_by_priority_and_one_region_takes_the_name_of_the_start() {
        let mut account = AccountRecord::first("South").named("North");
        assert_eq!(account.regions[0].name, "North");
        assert!(!account.is_written_in_many());
        let region = |id: u16, priority: u32| RegionRecord {
            id,
            name: id.to_string(),
            endpoint: None,
            write: id == 2,
            priority,
        };
        account.regions.extend([region(1, 7), region(2, 3)]);
        let names = |regions: Vec<&RegionRecord>| {
            regions.into_iter().map(|region| region.name.clone()).collect::<Vec<_>>()
        };
        let account = account.named("East");
        assert_eq!(names(account.readable()), ["North", "2", "1"]);
        assert_eq!(names(account.writable()), ["North", "2"]);
        assert!(account.is_written_in_many());
    }
}
