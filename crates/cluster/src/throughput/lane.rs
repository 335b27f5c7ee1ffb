//! On whose behalf a request runs: what decides who is refused first when a budget is short.

use orrery_doc::Epk;
use serde::{Deserialize, Serialize};

/// Requests of low priority are refused while those of high priority still find something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    Low,
    #[default]
    High,
}

/// What a client says about its request. Where it says nothing, the container's defaults hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    pub priority: Option<Priority>,
    /// One of the throughput buckets, from 1 to 5.
    pub bucket: Option<u8>,
}

/// A request before a budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    pub lane: Lane,
    pub key: KeyMark,
}

/// Tells logical partitions apart in little room; the default stands for none in particular.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyMark(u64);

impl KeyMark {
    /// EPKs are hashes already, so folding them is enough; two keys that fold alike are taken for one.
    pub fn of(epk: &Epk) -> KeyMark {
        let fold = |mark: u64, chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mark.rotate_left(23) ^ u64::from_le_bytes(word)
        };
        KeyMark(epk.as_bytes().chunks(8).fold(0, fold).max(1))
    }

    pub fn is_one(self) -> bool {
        self.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::{Epk, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, epk};

    use super::*;

    #[test]
    fn marks_tell_keys_apart_and_no_key_is_none() {
        for version in [PartitionKeyVersion::V1, PartitionKeyVersion::V2] {
            let def = PartitionKeyDef { kind: PartitionKeyKind::Hash, version, paths: vec![] };
            let marks: std::collections::HashSet<u64> = (0..1000)
                .map(|n| {
                    let key = PartitionKey::from_header(&format!("[\"key {n}\"]")).expect("a key");
                    KeyMark::of(&epk(&def, &key)).0
                })
                .collect();
            assert_eq!(marks.len(), 1000);
        }
        assert!(KeyMark::of(&Epk::MIN).is_one());
        assert!(!KeyMark::default().is_one());
    }
}
