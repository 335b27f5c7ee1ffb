//! The physical partitions of a container, as the server makes them: the key space is cut evenly for the throughput,
//! and then by size, between logical partitions and never through one.
//!
//! This is where hierarchical keys show what they are: all items with the same first level lie side by side, so they
//! share one physical partition until they are too many for it.

use std::collections::BTreeSet;
use std::ops::Range;

use orrery_doc::{Epk, EpkRange, PartitionKeyDef, boundaries};

use crate::limits;

pub struct Layout {
    /// Where each partition starts; the first at the start of the key space.
    starts: Vec<Epk>,
}

impl Layout {
    /// `epks` are those of items that have `each` bytes; a partition has at most `most` if that can be.
    pub fn new(
        definition: &PartitionKeyDef,
        partitions: u32,
        mut epks: Vec<Epk>,
        each: f64,
        most: f64,
    ) -> Layout {
        epks.sort_unstable();
        let mut starts = vec![Epk::MIN];
        starts.extend(boundaries(definition, partitions));
        let mut layout = Layout { starts };
        // More partitions than can be simulated become fewer and larger ones.
        let most = most.max(epks.len() as f64 * each / f64::from(limits::PARTITIONS_MAX / 2));
        let mut whole = BTreeSet::new();
        while layout.len() < limits::PARTITIONS_MAX as usize {
            let sizes = (0..layout.len()).map(|at| (layout.inside(at, &epks), at));
            let open = sizes.filter(|(inside, _)| !whole.contains(&epks_start(&epks, inside)));
            let fullest = open.max_by_key(|(inside, at)| (inside.len(), usize::MAX - at));
            let Some((inside, at)) = fullest.filter(|(inside, _)| inside.len() as f64 * each > most) else {
                break;
            };
            match middle(&epks, inside.clone()) {
                Some(boundary) => layout.starts.insert(at + 1, epks[boundary].clone()),
                // One logical partition that is too large for a physical one; nothing can be done.
                None => drop(whole.insert(epks_start(&epks, &inside))),
            }
        }
        layout
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn locate(&self, epk: &Epk) -> usize {
        self.starts.partition_point(|start| start <= epk).saturating_sub(1)
    }

    /// The partitions that a range touches.
    pub fn touched(&self, range: &EpkRange) -> Range<usize> {
        let first = self.locate(&range.min);
        let behind = self.starts.partition_point(|start| *start < range.max);
        first..behind.max(first + 1)
    }

    fn inside(&self, partition: usize, epks: &[Epk]) -> Range<usize> {
        let from = epks.partition_point(|epk| *epk < self.starts[partition]);
        let to = match self.starts.get(partition + 1) {
            Some(next) => epks.partition_point(|epk| epk < next),
            None => epks.len(),
        };
        from..to
    }
}

/// What tells a partition from others as long as it is not divided.
fn epks_start(epks: &[Epk], inside: &Range<usize>) -> Option<Epk> {
    epks.get(inside.start).cloned()
}

/// The place closest to the middle where one logical partition ends and the next begins.
fn middle(epks: &[Epk], inside: Range<usize>) -> Option<usize> {
    let middle = (inside.start + inside.end) / 2;
    let is_boundary = |at: &usize| *at > inside.start && *at < inside.end && epks[at - 1] != epks[*at];
    let after = (middle..inside.end).find(is_boundary);
    let before = (inside.start..middle).rev().find(is_boundary);
    match (before, after) {
        (Some(before), Some(after)) if middle - before < after - middle => Some(before),
        (before, None) => before,
        (_, after) => after,
    }
}

#[cfg(test)]
mod tests {
    use orrery_doc::{
        KeyComponent, PartitionKey, PartitionKeyKind, PartitionKeyVersion, Path, epk, prefix_range,
    };

    use super::*;

    fn definition(levels: usize) -> PartitionKeyDef {
        let kind = if levels == 1 { PartitionKeyKind::Hash } else { PartitionKeyKind::MultiHash };
        PartitionKeyDef { kind, version: PartitionKeyVersion::V2, paths: vec![Path::default(); levels] }
    }

    fn key(parts: &[&str]) -> PartitionKey {
        PartitionKey(parts.iter().map(|part| KeyComponent::Str((*part).to_owned())).collect())
    }

    #[test]
    fn many_keys_are_spread_evenly() {
        let definition = definition(1);
        let layout = Layout::new(&definition, 8, Vec::new(), 0.0, 1.0);
        let mut counts = [0; 8];
        for n in 0..8000 {
            counts[layout.locate(&epk(&definition, &key(&[&n.to_string()])))] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_logical_partition_is_never_divided_but_a_prefix_is() {
        let of = |levels: usize| {
            let definition = definition(levels);
            let full = |user: String| key(&["huge", &user][..levels]);
            let epks = (0..1000).map(|user| epk(&definition, &full(user.to_string()))).collect();
            let layout = Layout::new(&definition, 2, epks, 1.0, 100.0);
            let touched = layout.touched(&prefix_range(&definition, &key(&["huge"])));
            (layout.len(), touched.len())
        };
        assert_eq!(of(1), (2, 1));
        let (partitions, touched) = of(2);
        assert!(partitions > 10 && touched >= partitions - 2, "{touched} of {partitions}");
    }
}
