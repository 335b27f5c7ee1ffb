//! What a container holds, kept up as its partitions are written to. Every answer tells it, and none must ask all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_store::{Partition, PartitionState};

use crate::catalog::Usage;

/// The sums over all partitions of one container, which share it.
#[derive(Default)]
pub(crate) struct Totals {
    items: AtomicU64,
    bytes: AtomicU64,
}

impl Totals {
    /// The sums over partitions that nothing is written to yet.
    pub fn of<'p>(partitions: impl IntoIterator<Item = &'p Partition>) -> Arc<Totals> {
        let totals = Totals::default();
        let nothing = Usage::default();
        partitions.into_iter().for_each(|partition| totals.moved(nothing, Usage::of(&partition.state())));
        Arc::new(totals)
    }

    /// One partition held this, and now holds that.
    pub fn moved(&self, before: Usage, after: Usage) {
        // Sums of differences are right whatever wraps around in between.
        self.items.fetch_add(after.items.wrapping_sub(before.items), Ordering::Relaxed);
        self.bytes.fetch_add(after.bytes.wrapping_sub(before.bytes), Ordering::Relaxed);
    }

    pub fn usage(&self) -> Usage {
        Usage { items: self.items.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

impl Usage {
    pub(crate) fn of(state: &PartitionState) -> Usage {
        Usage { items: state.items, bytes: state.bytes }
    }

    pub(crate) fn sum(parts: impl IntoIterator<Item = Usage>) -> Usage {
        parts.into_iter().fold(Usage::default(), |sum, part| Usage {
            items: sum.items + part.items,
            bytes: sum.bytes + part.bytes,
        })
    }
}
