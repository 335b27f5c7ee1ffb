//! What a range is: all that is needed to find the way to it, and nothing that must be here for that.

use std::sync::Arc;

use orrery_doc::{Epk, EpkRange};

use super::Range;

/// Plain data, which the catalog publishes and every node may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The id that clients see; unique within the container.
    pub id: u32,
    /// What it holds of the key space.
    pub epk: EpkRange,
    /// Of the partition when it was opened: who asks for an older one has the wrong idea of it.
    pub epoch: u32,
    /// The ranges that were here before it, the oldest first.
    pub parents: Vec<u32>,
}

/// Which of the ranges holds a place. They stand in the order of the key space, which has no gaps.
pub(crate) fn route<'r>(ranges: &'r [Arc<Range>], epk: &Epk) -> &'r Arc<Range> {
    let place = ranges.partition_point(|range| range.descriptor.epk.min <= *epk);
    &ranges[place.saturating_sub(1)]
}

/// Which of the ranges that took the place of another holds a place; none if they do not go so far.
pub(super) fn successor<'r>(successors: &'r [Arc<Range>], epk: &Epk) -> Option<&'r Arc<Range>> {
    successors.iter().find(|range| range.descriptor.epk.contains(epk))
}
