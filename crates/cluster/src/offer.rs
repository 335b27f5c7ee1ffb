//! Throughput that a database or container is provisioned with.

use orrery_store::Etag;
use orrery_store::limits::{
    AUTOSCALE_MIN, AUTOSCALE_STEP, PartitionLimits, SHARED_THROUGHPUT_CONTAINERS_MAX, THROUGHPUT_MAX,
    THROUGHPUT_MIN, THROUGHPUT_STEP,
};

use crate::error::{Error, Result};
use crate::request::Throughput;
use crate::rid::Rid;

#[derive(Clone, Debug)]
pub struct Offer {
    pub rid: Rid,
    /// The database or container that this throughput is for.
    pub target: Rid,
    /// Its self link, such as `dbs/…/colls/…/`.
    pub target_link: String,
    pub throughput: Throughput,
    /// The most that was ever provisioned.
    pub highest: u32,
    pub etag: Etag,
    pub ts: u64,
}

/// Refuses values that the service does not provision.
pub fn check(throughput: Throughput) -> Result<()> {
    let (units, least, step) = match throughput {
        Throughput::Manual(units) => (units, THROUGHPUT_MIN, THROUGHPUT_STEP),
        Throughput::Autoscale { max, .. } => (max, AUTOSCALE_MIN, AUTOSCALE_STEP),
    };
    if (least..=THROUGHPUT_MAX).contains(&units) && units.is_multiple_of(step) {
        return Ok(());
    }
    if units < least {
        return Err(Error::invalid(format!(
            "Requested throughput {units} is less than required minimum throughput {least}."
        )));
    }
    Err(Error::invalid(format!(
        "The offer should have valid throughput values between {least} and {THROUGHPUT_MAX} inclusive in increments of {step}."
    )))
}

/// How low an offer may go: a hundredth, or a tenth for autoscale, of the most it ever had, and enough for what is
/// stored and for the containers that share it.
pub fn minimum(throughput: Throughput, highest: u32, bytes: u64, sharing: u32) -> u32 {
    let further = sharing.saturating_sub(SHARED_THROUGHPUT_CONTAINERS_MAX as u32);
    let gigabytes = bytes.div_ceil(1024 * 1024 * 1024).min(u64::from(u32::MAX / 10)) as u32;
    match throughput {
        Throughput::Manual(_) => {
            let shared = THROUGHPUT_MIN + further.saturating_mul(THROUGHPUT_STEP);
            let least = shared.max(highest / 100).max(gigabytes);
            least.next_multiple_of(THROUGHPUT_STEP)
        }
        Throughput::Autoscale { .. } => {
            let shared = AUTOSCALE_MIN + further.saturating_mul(AUTOSCALE_STEP);
            let least = shared.max(highest / 10).max(gigabytes.saturating_mul(10));
            least.next_multiple_of(AUTOSCALE_STEP)
        }
    }
}

/// Physical partitions of a new container: one while one can carry the load, then with room to grow.
pub fn initial_partitions(throughput: u32, limits: &PartitionLimits) -> u32 {
    if throughput <= limits.partition_throughput {
        return 1;
    }
    (f64::from(throughput) / limits.new_partition_throughput()).ceil() as u32
}

/// Fewest partitions that can carry a throughput.
pub fn least_partitions(throughput: u32, limits: &PartitionLimits) -> u32 {
    throughput.div_ceil(limits.partition_throughput.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_containers_get_the_partitions_that_the_service_gives() {
        let limits = PartitionLimits::default();
        for (throughput, partitions) in
            [(400, 1), (10_000, 1), (10_100, 2), (12_000, 2), (24_000, 4), (30_000, 5)]
        {
            assert_eq!(initial_partitions(throughput, &limits), partitions, "{throughput}");
            assert!(partitions >= least_partitions(throughput, &limits));
        }
    }

    fn autoscale(max: u32) -> Throughput {
        Throughput::Autoscale { max, increment_percent: None }
    }

    #[test]
    fn offers_keep_to_steps_and_bounds() {
        for units in [400, 500, 1_000_000] {
            assert!(check(Throughput::Manual(units)).is_ok(), "{units}");
        }
        for units in [0, 300, 450, 1_000_100] {
            assert!(check(Throughput::Manual(units)).is_err(), "{units}");
        }
        assert!(check(autoscale(1000)).is_ok());
        assert!(check(autoscale(1500)).is_err());
    }

    #[test]
    fn what_was_once_provisioned_limits_how_low_one_may_go() {
        const GB: u64 = 1024 * 1024 * 1024;
        let manual = Throughput::Manual(400);
        for (throughput, highest, bytes, sharing, least) in [
            (manual, 400, 0, 0, 400),
            (manual, 100_000, 0, 0, 1_000),
            (manual, 45_600, 0, 0, 500),
            (manual, 400, 500 * GB, 0, 500),
            (manual, 400, 500 * GB + 1, 0, 600),
            (manual, 400, 0, 25, 400),
            (manual, 400, 0, 30, 900),
            (autoscale(1_000), 50_000, 0, 0, 5_000),
            (autoscale(1_000), 5_500, 0, 0, 1_000),
            (autoscale(1_000), 1_000, 150 * GB, 0, 2_000),
            (autoscale(1_000), 1_000, 0, 27, 3_000),
        ] {
            assert_eq!(
                minimum(throughput, highest, bytes, sharing),
                least,
                "{throughput:?} {highest} {bytes}"
            );
        }
    }
}
