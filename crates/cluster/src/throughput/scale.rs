//! What an offer comes to at this moment: how low it may go, whether it is carried out, and what is scaled to.

use std::time::Instant;

use orrery_store::limits::PartitionLimits;

use crate::catalog::{Catalog, Usage};
use crate::db::Db;
use crate::offer::{self, Offer};
use crate::request::Throughput;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferStatus {
    /// The least that may be asked for now.
    pub minimum: u32,
    /// There are not enough physical partitions yet to give what was asked for.
    pub is_pending: bool,
    /// What the resource runs at: autoscale follows what is used, between a tenth of its ceiling and all of it.
    pub current: u32,
    pub bytes: u64,
}

impl Db {
    /// How an offer of a catalog stands now.
    pub fn offer_status(&self, catalog: &Catalog, offer: &Offer) -> OfferStatus {
        OfferStatus {
            minimum: catalog.minimum(offer, offer.throughput),
            is_pending: catalog.is_pending(offer, &self.options().limits),
            current: match offer.throughput {
                Throughput::Manual(units) => units,
                Throughput::Autoscale { max, .. } => {
                    let used = catalog.units_in_use(offer, max, self.world().monotonic()).ceil() as u32;
                    used.clamp(max / 10, max)
                }
            },
            bytes: catalog.usage_under(offer).bytes,
        }
    }
}

impl Catalog {
    /// The least that a resource may be changed to; another kind of offer has another least.
    pub fn minimum(&self, offer: &Offer, asked: Throughput) -> u32 {
        let sharing = self.database_by_rid(offer.target).map_or(0, |database| {
            database.containers().filter(|container| container.shared_budget.is_some()).count()
        });
        offer::minimum(asked, offer.highest, self.usage_under(offer).bytes, sharing as u32)
    }

    pub(crate) fn is_pending(&self, offer: &Offer, limits: &PartitionLimits) -> bool {
        let container = self.container_by_rid(offer.target);
        let needed = offer::least_partitions(offer.throughput.ceiling(), limits) as usize;
        container.is_some_and(|container| container.ranges.len() < needed)
    }

    /// What lies in the container, or in all containers that share.
    fn usage_under(&self, offer: &Offer) -> Usage {
        if let Some(container) = self.container_by_rid(offer.target) {
            return container.usage();
        }
        let Some(database) = self.database_by_rid(offer.target) else { return Usage::default() };
        let sharing = database.containers().filter(|container| container.shared_budget.is_some());
        sharing.map(|container| container.usage()).fold(Usage::default(), |sum, usage| Usage {
            items: sum.items + usage.items,
            bytes: sum.bytes + usage.bytes,
        })
    }

    /// Each partition is scaled for itself, between a tenth of its share and all of it.
    fn units_in_use(&self, offer: &Offer, max: u32, now: Instant) -> f64 {
        let max = f64::from(max);
        if let Some(container) = self.container_by_rid(offer.target) {
            return container
                .led_parts()
                .map(|(_, lead, part)| lead.budget.current(now).clamp(max * part / 10.0, max * part))
                .sum();
        }
        let budget = self.database_by_rid(offer.target).and_then(|database| database.budget.as_ref());
        budget.map_or(0.0, |budget| budget.current(now))
    }
}
