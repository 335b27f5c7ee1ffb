//! A partition key range: one physical partition, in three parts that go different ways once there are several nodes.
//!
//! ```text
//!              what it is                     who has it               who needs nothing else
//!   descriptor id, place, epoch, parents      every node               who routes
//!   replica    partition, schema, LSN         the nodes with a copy    who reads what was published
//!   lead       queue, budget, insight         one of these nodes       who writes, admits and counts
//! ```

mod descriptor;
mod held;
mod lead;
mod leader;
mod queue;
mod replica;
#[cfg(test)]
mod tests;
mod totals;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use orrery_doc::{Epk, EpkRange};
use orrery_store::limits::PartitionLimits;
use orrery_store::{Etag, Lsn, Partition, Schema};

use crate::insight::RangeInsight;
use crate::memory::Memory;
use crate::throttle::Budget;

use descriptor::successor;
use lead::Leadership;

pub use descriptor::Descriptor;
pub(crate) use descriptor::route;
pub(crate) use held::Held;
pub use lead::{Lead, NoLead};
pub use queue::{Answer, WriteError};
pub use replica::Replica;
pub(crate) use totals::Totals;

pub struct Range {
    pub descriptor: Descriptor,
    pub replica: Replica,
    leadership: Leadership,
}

/// Whether nothing may be erased of a history from before a moment, or of all of it: a job follows it, which needs
/// every entry however old it is, or it is kept after all.
pub(crate) fn wants_history(schema: &Schema, keep_since: Option<u64>) -> bool {
    schema.keeps_replaced || schema.keeps_history && keep_since.is_none()
}

/// What a client may know of a range.
#[derive(Clone, Debug)]
pub struct RangeInfo {
    pub id: u32,
    pub range: EpkRange,
    pub parents: Vec<u32>,
    pub lsn: Lsn,
    pub throughput_fraction: f64,
    pub etag: Etag,
    pub ts: u64,
}

/// What makes a range besides its partition.
pub struct RangeParts {
    pub id: u32,
    pub parents: Vec<u32>,
    pub schema: Schema,
    pub rate: f64,
    pub limits: PartitionLimits,
    pub totals: Arc<Totals>,
    pub memory: Memory,
}

impl Range {
    /// A range that is led here.
    pub fn new(partition: Partition, parts: RangeParts) -> Range {
        let world = parts.memory.world().clone();
        let insight = RangeInsight::new(&parts.schema.key, &partition.spec.range, world.clone());
        let budget = Budget::new(parts.rate, world.monotonic());
        let lead = Lead::new(budget, insight, parts.limits, parts.memory);
        let descriptor = Descriptor {
            id: parts.id,
            epk: partition.spec.range.clone(),
            epoch: partition.state().epoch,
            parents: parts.parents,
        };
        let replica = Replica {
            partition,
            schema: ArcSwap::from_pointee(parts.schema),
            totals: parts.totals,
            world,
            successors: OnceLock::new(),
        };
        Range { descriptor, replica, leadership: Leadership::Here(lead) }
    }

    /// The same range where another node leads it.
    #[cfg(test)]
    pub fn led_elsewhere(self) -> Range {
        Range { leadership: Leadership::Elsewhere, ..self }
    }

    pub fn epk(&self) -> &EpkRange {
        &self.descriptor.epk
    }

    /// What the leader has, if this node leads.
    #[inline]
    pub fn lead(&self) -> Result<&Lead, NoLead> {
        match &self.leadership {
            Leadership::Here(lead) => Ok(lead),
            Leadership::Elsewhere => Err(NoLead::Elsewhere),
        }
    }

    /// Adds to what is known of its requests, where that is kept.
    #[inline]
    pub fn note(&self, what: impl FnOnce(&RangeInsight)) {
        if let Ok(lead) = self.lead() {
            what(&lead.insight);
        }
    }

    /// The range that a key belongs to now: this one, or the successor of it.
    pub fn current(self: &Arc<Self>, epk: &Epk) -> Arc<Range> {
        let mut range = self;
        while let Some(next) = range.replica.successors.get().and_then(|list| successor(list, epk)) {
            range = next;
        }
        range.clone()
    }
}
