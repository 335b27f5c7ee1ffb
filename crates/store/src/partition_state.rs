//! What a partition remembers from one transaction to the next, and how that is stored.
//!
//! ```text
//! version u8 | epoch u32 | lsn u64 | rids given u64 | items u64 | bytes u64 | time u64
//!            | regions u8 | for each: region u16, lsn u64
//! ```
//! States of before they had a version are the five numbers from the LSN on and nothing else: 40 bytes, a length that no state
//! with a version has. They are of epoch 0, and the next commit writes them anew.

use bytes::Bytes;

use crate::engine::{EngineError, Keyspace, Snapshot};
use crate::item::{TICKS_PER_SECOND, read_u16, read_u32, read_u64};
use crate::limits::{CLOCK_AHEAD_SECONDS_MAX, REGIONS_MAX};
use crate::{Lsn, keys};

/// Where a partition begins: that it was made counts as its first transaction. Clients take an LSN of zero for one that is not
/// known yet, and ask again.
pub const FIRST_LSN: Lsn = Lsn(1);

const VERSION: u8 = 1;
/// Of a state without a version.
const UNVERSIONED_BYTES: usize = 40;
/// Of a state before its regions.
const HEAD_BYTES: usize = 1 + 4 + 40 + 1;
const REGION_BYTES: usize = 2 + 8;

/// What changes with every transaction; stored in the same commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// Counts the times that another leader may have written on from an older state. LSNs skip far ahead then.
    pub epoch: u32,
    pub lsn: Lsn,
    /// At least as many as were given to items; some were given to transactions that came to nothing.
    pub rids_given: u64,
    pub items: u64,
    pub bytes: u64,
    /// Time of the last write. Times do not repeat, and they go back only when they were far ahead of the clock.
    pub time: u64,
    /// How far the logs of other regions are that write too, by region; empty where one region writes.
    pub regions: Vec<RegionLsn>,
}

/// How far the log of a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionLsn {
    pub region: u16,
    pub lsn: Lsn,
}

impl Default for PartitionState {
    fn default() -> PartitionState {
        let regions = Vec::new();
        PartitionState { epoch: 0, lsn: FIRST_LSN, rids_given: 0, items: 0, bytes: 0, time: 0, regions }
    }
}

impl PartitionState {
    /// The time of the next write.
    pub(crate) fn next_time(&self, now: u64) -> u64 {
        if is_ahead(self.time, now) { now } else { now.max(self.time + 1) }
    }

    /// The last LSN of which something is missing where nothing was recorded so far. In a partition that nobody has written to
    /// that is none: who has seen nothing of it has missed nothing.
    pub(crate) fn unrecorded(&self) -> Lsn {
        let is_unwritten = self.lsn == FIRST_LSN && self.rids_given == 0 && self.items == 0;
        if is_unwritten { Lsn(0) } else { self.lsn }
    }

    pub(crate) fn read(snapshot: &Snapshot, partition: u32) -> Result<PartitionState, EngineError> {
        match snapshot.get(Keyspace::Meta, &keys::partition_state(partition))? {
            Some(bytes) => PartitionState::decode(&bytes).ok_or_else(|| {
                EngineError::Corrupt(format!("the state of partition {partition} is not readable"))
            }),
            None => Ok(PartitionState::default()),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        assert!(self.regions.len() <= REGIONS_MAX, "an account has few regions");
        let mut out = Vec::with_capacity(HEAD_BYTES + REGION_BYTES * self.regions.len());
        out.push(VERSION);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        for number in [self.lsn.0, self.rids_given, self.items, self.bytes, self.time] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.push(self.regions.len() as u8);
        for RegionLsn { region, lsn } in &self.regions {
            out.extend_from_slice(&region.to_be_bytes());
            out.extend_from_slice(&lsn.0.to_be_bytes());
        }
        out
    }

    /// `None` when the bytes are not a state of a version that this build knows.
    pub fn decode(bytes: &Bytes) -> Option<PartitionState> {
        if bytes.len() == UNVERSIONED_BYTES {
            let mut state = PartitionState::numbers(bytes);
            // Partitions began at zero then, and an empty one may have stored that.
            state.lsn = state.lsn.max(FIRST_LSN);
            return Some(state);
        }
        match bytes.first()? {
            &VERSION => PartitionState::decode_versioned(bytes),
            _ => None,
        }
    }

    fn decode_versioned(bytes: &[u8]) -> Option<PartitionState> {
        let (head, regions) = bytes.split_at_checked(HEAD_BYTES)?;
        if regions.len() != usize::from(head[HEAD_BYTES - 1]) * REGION_BYTES {
            return None;
        }
        let region = |bytes: &[u8]| RegionLsn { region: read_u16(bytes, 0), lsn: Lsn(read_u64(bytes, 2)) };
        let regions = regions.chunks_exact(REGION_BYTES).map(region).collect();
        let state =
            PartitionState { epoch: read_u32(head, 1), regions, ..PartitionState::numbers(&head[5..]) };
        (state.lsn >= FIRST_LSN).then_some(state)
    }

    /// The five numbers that every version has.
    fn numbers(bytes: &[u8]) -> PartitionState {
        PartitionState {
            lsn: Lsn(read_u64(bytes, 0)),
            rids_given: read_u64(bytes, 8),
            items: read_u64(bytes, 16),
            bytes: read_u64(bytes, 24),
            time: read_u64(bytes, 32),
            ..PartitionState::default()
        }
    }

    /// How far each region's log is in the partition that two become.
    pub(crate) fn joined_regions(&self, other: &PartitionState) -> Vec<RegionLsn> {
        let mut regions = [&self.regions[..], &other.regions[..]].concat();
        // The highest of each region comes first.
        regions.sort_by(|a, b| a.region.cmp(&b.region).then(b.lsn.cmp(&a.lsn)));
        regions.dedup_by_key(|entry| entry.region);
        regions
    }
}

/// Whether a time is so far ahead of the clock that the clock must have been wrong when it was given.
pub fn is_ahead(time: u64, now: u64) -> bool {
    time > now.saturating_add(CLOCK_AHEAD_SECONDS_MAX * TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> PartitionState {
        let regions = vec![RegionLsn { region: 2, lsn: Lsn(9) }, RegionLsn { region: 5, lsn: Lsn(7) }];
        PartitionState { epoch: 3, lsn: Lsn(4), rids_given: 5, items: 6, bytes: 7, time: 8, regions }
    }

    #[test]
    fn a_state_reads_back() {
        for state in [PartitionState::default(), state()] {
            assert_eq!(PartitionState::decode(&state.encode().into()), Some(state));
        }
    }

    #[test]
    fn a_state_without_a_version_is_of_epoch_zero_and_an_empty_one_opens_at_one() {
        let old = |lsn: u64| -> Bytes {
            [lsn, 5, 6, 7, 8].into_iter().flat_map(u64::to_be_bytes).collect::<Vec<u8>>().into()
        };
        let wanted = PartitionState { epoch: 0, regions: vec![], ..state() };
        assert_eq!(PartitionState::decode(&old(4)), Some(wanted));
        assert_eq!(PartitionState::decode(&old(0)).expect("a state").lsn, FIRST_LSN);
        assert_eq!(PartitionState::decode(&old(1)).expect("a state").lsn, FIRST_LSN);
    }

    #[test]
    fn other_versions_and_lengths_are_refused() {
        let bytes = state().encode();
        for end in (0..bytes.len()).filter(|end| *end != UNVERSIONED_BYTES) {
            assert_eq!(PartitionState::decode(&bytes[..end].to_vec().into()), None, "{end} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(PartitionState::decode(&longer.into()), None);
        let newer = [&[VERSION + 1], &bytes[1..]].concat();
        assert_eq!(PartitionState::decode(&newer.into()), None);
        let before_the_first = PartitionState { lsn: Lsn(0), ..state() };
        assert_eq!(PartitionState::decode(&before_the_first.encode().into()), None);
    }

    #[test]
    fn merged_partitions_are_as_far_as_either() {
        let other = PartitionState { regions: vec![RegionLsn { region: 5, lsn: Lsn(70) }], ..state() };
        let wanted = vec![RegionLsn { region: 2, lsn: Lsn(9) }, RegionLsn { region: 5, lsn: Lsn(70) }];
        assert_eq!(state().joined_regions(&other), wanted);
        assert_eq!(other.joined_regions(&state()), wanted);
    }
}
