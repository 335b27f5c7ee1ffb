//! What an operator sets for a container besides its offer.

use orrery_store::limits::THROUGHPUT_BUCKETS;
use serde::{Deserialize, Serialize};

use super::lane::Priority;
use crate::error::{Error, Result};

/// The default is what every container starts with: equal shares, no buckets, high priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Parts of the throughput by partition, as they were when a client set them; empty when all are equal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketLimit>,
    /// The priority of requests that name none.
    pub default_priority: Priority,
}

/// The part of a container's throughput that one physical partition has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Of the partition.
    pub id: u32,
    pub part: f64,
}

/// What requests of one throughput bucket may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BucketLimit {
    /// From 1 to 5.
    pub id: u8,
    #[serde(rename = "maxThroughputPercentage")]
    pub percent: u8,
    /// Requests that name no bucket belong to this one.
    #[serde(rename = "isDefaultBucket", default)]
    pub is_default: bool,
}

impl Settings {
    pub fn is_custom(&self) -> bool {
        !self.shares.is_empty()
    }

    /// Refuses buckets that do not exist or say nothing.
    pub fn check_buckets(buckets: &[BucketLimit]) -> Result<()> {
        let most = THROUGHPUT_BUCKETS as u8;
        for (place, bucket) in buckets.iter().enumerate() {
            if !(1..=most).contains(&bucket.id) {
                return Err(Error::invalid(format!("The id of a throughput bucket is from 1 to {most}.")));
            }
            if !(1..=100).contains(&bucket.percent) {
                return Err(Error::invalid(
                    "The maxThroughputPercentage of a throughput bucket is from 1 to 100.",
                ));
            }
            if buckets[..place].iter().any(|other| other.id == bucket.id) {
                return Err(Error::invalid(format!("The throughput bucket {} is there twice.", bucket.id)));
            }
        }
        if buckets.iter().filter(|bucket| bucket.is_default).count() > 1 {
            return Err(Error::invalid("Only one throughput bucket can be the default."));
        }
        Ok(())
    }

    pub(super) fn default_bucket(&self) -> Option<u8> {
        self.buckets.iter().find(|bucket| bucket.is_default).map(|bucket| bucket.id)
    }

    pub(super) fn bucket_parts(&self) -> [f64; THROUGHPUT_BUCKETS] {
        let mut parts = [0.0; THROUGHPUT_BUCKETS];
        for bucket in &self.buckets {
            if let Some(part) = parts.get_mut(usize::from(bucket.id).wrapping_sub(1)) {
                *part = f64::from(bucket.percent) / 100.0;
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(id: u8, percent: u8, is_default: bool) -> BucketLimit {
        BucketLimit { id, percent, is_default }
    }

    #[test]
    fn buckets_are_five_and_their_parts_are_percents() {
        assert!(Settings::check_buckets(&[bucket(1, 1, true), bucket(5, 100, false)]).is_ok());
        for (buckets, why) in [
            (vec![bucket(0, 10, false)], "from 1 to 5"),
            (vec![bucket(6, 10, false)], "from 1 to 5"),
            (vec![bucket(1, 0, false)], "from 1 to 100"),
            (vec![bucket(1, 101, false)], "from 1 to 100"),
            (vec![bucket(1, 10, false), bucket(1, 20, false)], "twice"),
            (vec![bucket(1, 10, true), bucket(2, 20, true)], "Only one"),
        ] {
            let error = Settings::check_buckets(&buckets).expect_err(why);
            assert!(error.kind.to_string().contains(why), "{}", error.kind);
        }
    }

    #[test]
    fn settings_are_stored_in_few_bytes_and_read_back() {
        let plain = serde_json::to_string(&Settings::default()).expect("JSON");
        assert_eq!(plain, r#"{"defaultPriority":"High"}"#);
        let settings = Settings {
            shares: vec![Share { id: 3, part: 0.25 }],
            buckets: vec![bucket(2, 30, true)],
            default_priority: Priority::Low,
        };
        let text = serde_json::to_string(&settings).expect("JSON");
        assert_eq!(serde_json::from_str::<Settings>(&text).expect("settings"), settings);
        assert_eq!(serde_json::from_str::<Settings>("{}").expect("settings"), Settings::default());
    }
}
