//! Giving the partitions of a container their budgets.

use std::sync::Arc;
use std::time::Instant;

use orrery_store::limits::SERVERLESS_THROUGHPUT;

use super::shares::{self, Member};
use crate::catalog::Container;
use crate::options::DbOptions;
use crate::range::{Lead, Range};
use crate::throttle::{BudgetUsage, Terms};

/// What one physical partition may use, and what it has refused.
#[derive(Clone, Copy, Debug)]
pub struct PartitionBudget {
    pub id: u32,
    /// RU/s; zero means unlimited.
    pub rate: f64,
    /// Its part of the container's throughput.
    pub part: f64,
    pub usage: BudgetUsage,
}

impl Container {
    /// In the order of the key space.
    pub fn partition_budgets(&self) -> Vec<PartitionBudget> {
        let budget = |(range, lead, part): (&Arc<Range>, &Lead, f64)| PartitionBudget {
            id: range.descriptor.id,
            rate: lead.budget.rate(),
            part,
            usage: lead.budget.usage(),
        };
        self.led_parts().map(budget).collect()
    }

    /// Sets all budgets by what the container's own offer gives, if it has one, and by its settings. To be called
    /// whenever the offer, the settings or the partitions have changed.
    pub(crate) fn set_budgets(&self, throughput: Option<u32>, options: &DbOptions, now: Instant) {
        for (_, lead, part) in self.led_parts() {
            lead.budget.set(self.terms(throughput, part, options), now);
        }
    }

    /// The partitions that are led here, in the order of the key space.
    pub(crate) fn led(&self) -> impl Iterator<Item = (&Arc<Range>, &Lead)> {
        self.ranges.iter().filter_map(|range| Some((range, range.lead().ok()?)))
    }

    /// The same, each with its part of the container's throughput.
    pub(crate) fn led_parts(&self) -> impl Iterator<Item = (&Arc<Range>, &Lead, f64)> {
        let parts = self.ranges.iter().zip(self.parts());
        parts.filter_map(|(range, part)| Some((range, range.lead().ok()?, part)))
    }

    /// The part of the container's throughput that each partition has, in the order of the key space.
    pub(crate) fn parts(&self) -> Vec<f64> {
        shares::parts(&self.throughput.shares, &self.members())
    }

    pub(crate) fn members(&self) -> Vec<Member<'_>> {
        self.ranges
            .iter()
            .map(|range| Member { id: range.descriptor.id, parents: &range.descriptor.parents })
            .collect()
    }

    /// A partition never gets more than one can give, whatever the offer says.
    fn terms(&self, throughput: Option<u32>, part: f64, options: &DbOptions) -> Terms {
        let ceiling = match options.account.serverless {
            true => f64::from(SERVERLESS_THROUGHPUT),
            false => f64::from(options.limits.partition_throughput),
        };
        let rate = throughput.map_or(ceiling, |units| (f64::from(units) * part).min(ceiling));
        Terms {
            rate: if options.throttle { rate } else { 0.0 },
            ceiling,
            default_priority: self.throughput.default_priority,
            default_bucket: self.throughput.default_bucket(),
            bucket_parts: self.throughput.bucket_parts(),
        }
    }
}
