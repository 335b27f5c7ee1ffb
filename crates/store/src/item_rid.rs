//! The number behind an item's `_rid`: which partition gave it, in which region, and the how-many-eth it was.
//!
//! ```text
//! 4 bits for the kind of resource | 20 bits partition | 4 bits region | 36 bits count
//! ```
//! Counts had 40 bits before regions had a place. None has ever come near 36, so the old numbers are those of region 0.

use crate::limits::{RID_COUNT_MAX, RID_PARTITION_MAX, RID_REGION_MAX};

const REGION_AT: u32 = 36;
const PARTITION_AT: u32 = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemRid {
    /// The partition's `rid_prefix`.
    pub partition: u32,
    pub region: u8,
    pub count: u64,
}

impl ItemRid {
    pub fn encode(self) -> u64 {
        assert!(self.count <= RID_COUNT_MAX, "a partition gives fewer rids than fit into 36 bits");
        assert!(self.region <= RID_REGION_MAX, "a region fits into 4 bits");
        u64::from(self.partition & RID_PARTITION_MAX) << PARTITION_AT
            | u64::from(self.region) << REGION_AT
            | self.count
    }

    pub fn decode(rid: u64) -> ItemRid {
        ItemRid {
            partition: (rid >> PARTITION_AT) as u32 & RID_PARTITION_MAX,
            region: (rid >> REGION_AT) as u8 & RID_REGION_MAX,
            count: rid & RID_COUNT_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rids_of_partitions_and_regions_differ_and_read_back() {
        let mut seen = std::collections::BTreeSet::new();
        for partition in [0, 1, RID_PARTITION_MAX] {
            for region in [0, 1, RID_REGION_MAX] {
                for count in [1, 2, RID_COUNT_MAX] {
                    let rid = ItemRid { partition, region, count };
                    assert_eq!(ItemRid::decode(rid.encode()), rid);
                    assert!(seen.insert(rid.encode()), "{rid:?}");
                    assert_eq!(rid.encode() >> 60, 0, "the kind of resource has its place");
                }
            }
        }
    }

    #[test]
    fn region_zero_keeps_the_old_numbers() {
        let old = |partition: u64, count: u64| count | partition << 40;
        for (partition, count) in [(0, 1), (7, 1 << 20), (0xF_FFFF, RID_COUNT_MAX)] {
            let rid = ItemRid { partition: partition as u32, region: 0, count };
            assert_eq!(rid.encode(), old(partition, count));
        }
    }

    #[test]
    #[should_panic(expected = "36 bits")]
    fn a_count_never_reaches_into_the_region() {
        ItemRid { partition: 1, region: 0, count: RID_COUNT_MAX + 1 }.encode();
    }
}
