//! Dividing a partition, and joining two, without moving an item.
//!
//! Items, sizes of logical partitions, rids and unique keys stand under the container and sort by key: the partition that owns a
//! range of the key space finds them there. What has to be written for a new partition is only its state: how far it is,
//! what it holds, which part of the history is there. How much a child holds is found out beforehand, from the sizes
//! of the logical partitions; while that goes on, the partition remembers which of them are written to, and these
//! are corrected in the end, when nobody writes.

use std::ops::Bound;

use orrery_doc::{Epk, EpkRange, PartitionKeyDef, boundary_between, divide};

use crate::engine::{Batch, EngineError, Keyspace, Snapshot};
use crate::{Fault, LogicalSize, Partition, PartitionSpec, PartitionState, PathCounts, keys};

/// Bytes before the EPK in the key of a logical partition's size.
const SIZE_HEAD_BYTES: usize = 5;

/// Where a partition is to be divided, and what each part held when that was worked out.
#[derive(Debug)]
pub struct SplitPlan {
    cuts: Vec<Epk>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    items: i64,
    bytes: i64,
}

impl Part {
    fn add(&mut self, size: &LogicalSize) {
        self.items += size.items as i64;
        self.bytes += size.bytes as i64;
    }

    fn take(&mut self, size: &LogicalSize) {
        self.items -= size.items as i64;
        self.bytes -= size.bytes as i64;
    }
}

impl SplitPlan {
    /// Divides the stored bytes evenly, and where there are none, the key space. Between this and [`split`] the
    /// partition remembers what is written.
    pub fn make(
        partition: &Partition,
        snapshot: impl FnOnce() -> std::sync::Arc<Snapshot>,
        key: &PartitionKeyDef,
        children: u32,
    ) -> Result<(SplitPlan, std::sync::Arc<Snapshot>), Fault> {
        partition.watch();
        let snapshot = snapshot();
        let range = &partition.spec.range;
        let total = partition.state_at(&snapshot)?.bytes;
        let mut cuts = by_bytes(partition, &snapshot, total, children)?;
        if cuts.len() + 1 < children as usize {
            // Too few logical partitions: what they lack in bytes is filled up by key space.
            cuts.extend(divide(key, range, children));
            cuts.sort();
            cuts.dedup();
            while cuts.len() + 1 > children as usize {
                cuts.pop();
            }
        }
        cuts.retain(|cut| range.min < *cut && *cut < range.max);
        let mut plan = SplitPlan { parts: vec![Part::default(); cuts.len() + 1], cuts };
        visit_sizes(partition, &snapshot, |epk, size| {
            let place = plan.place_of(epk);
            plan.parts[place].add(size);
        })?;
        Ok((plan, snapshot))
    }

    /// The ranges of the parts; one when the partition cannot be divided.
    pub fn ranges(&self, range: &EpkRange) -> Vec<EpkRange> {
        let mut edges = vec![range.min.clone()];
        edges.extend(self.cuts.iter().cloned());
        edges.push(range.max.clone());
        edges.windows(2).map(|pair| EpkRange { min: pair[0].clone(), max: pair[1].clone() }).collect()
    }

    fn place_of(&self, epk: &Epk) -> usize {
        self.cuts.partition_point(|cut| cut <= epk)
    }
}

impl Partition {
    /// Whether there is more than one logical partition, so that a split could divide the bytes.
    pub fn holds_several(&self, snapshot: &Snapshot) -> bool {
        let (lower, upper) = keys::logical_size_range(self.spec.container, &self.spec.range);
        snapshot
            .keys(Keyspace::Meta, Bound::Included(&lower), Bound::Excluded(&upper), false)
            .nth(1)
            .is_some()
    }
}

/// Cuts between logical partitions that leave about the same number of bytes in each part.
fn by_bytes(
    partition: &Partition,
    snapshot: &Snapshot,
    total: u64,
    children: u32,
) -> Result<Vec<Epk>, EngineError> {
    let mut cuts: Vec<Epk> = Vec::new();
    let (mut before, mut last): (u64, Option<Epk>) = (0, None);
    visit_sizes(partition, snapshot, |epk, size| {
        let wanted = u128::from(total) * (cuts.len() as u128 + 1) / u128::from(children);
        let after = before + size.bytes;
        // The cut comes before the logical partition that crosses the mark if that is nearer to it.
        let is_nearer = u128::from(before + after) >= wanted * 2;
        if let Some(last) = last.as_ref().filter(|_| is_nearer && cuts.len() + 1 < children as usize) {
            cuts.push(boundary_between(last, epk));
        }
        before = after;
        last = Some(epk.clone());
    })?;
    Ok(cuts)
}

fn visit_sizes(
    partition: &Partition,
    snapshot: &Snapshot,
    mut visit: impl FnMut(&Epk, &LogicalSize),
) -> Result<(), EngineError> {
    let spec = &partition.spec;
    let (lower, upper) = keys::logical_size_range(spec.container, &spec.range);
    for entry in snapshot.range(Keyspace::Meta, Bound::Included(&lower), Bound::Excluded(&upper), false) {
        let (key, value) = entry?;
        let epk = key.get(SIZE_HEAD_BYTES..).and_then(|place| Epk::decode_key(place));
        let (Some((epk, _)), Some(size)) = (epk, LogicalSize::decode(&value)) else {
            return Err(EngineError::Corrupt("the size of a logical partition is not readable".into()));
        };
        visit(&epk, &size);
    }
    Ok(())
}

/// The state of each child. Nobody may write to the partition from before `after` was taken until the children
/// have taken its place. `None` when too much was written since the plan was made.
pub fn split(
    partition: &Partition,
    plan: &SplitPlan,
    (before, after): (&Snapshot, &Snapshot),
    generation: u32,
    children: &[PartitionSpec],
) -> Result<Option<Batch>, Fault> {
    let Some(touched) = partition.end_watch() else { return Ok(None) };
    let mut parts = plan.parts.clone();
    for epk in touched {
        let part = &mut parts[plan.place_of(&epk)];
        let size = |snapshot: &Snapshot| LogicalSize::read(snapshot, partition.spec.container, &epk);
        part.take(&size(before)?);
        part.add(&size(after)?);
    }
    let state = partition.state_at(after)?;
    let counted = parts.iter().fold(Part::default(), |sum, part| Part {
        items: sum.items + part.items,
        bytes: sum.bytes + part.bytes,
    });
    if (counted.items, counted.bytes) != (state.items as i64, state.bytes as i64) {
        return Err(Fault::Damaged(format!("the parts of a partition hold {counted:?}, not {state:?}")));
    }
    let counts = partition.path_counts_at(after, generation)?;
    let mut batch = Batch::new();
    for (child, part) in children.iter().zip(parts) {
        let held = PartitionState {
            items: part.items.max(0) as u64,
            bytes: part.bytes.max(0) as u64,
            rids_given: 0,
            ..state.clone()
        };
        batch.put(Keyspace::Meta, keys::partition_state(child.number).to_vec(), held.encode());
        counts.of_part(state.items, held.items).write(child.number, generation, &mut batch);
        if let Some(bounds) = partition.history() {
            batch.put(Keyspace::Meta, keys::history_bounds(child.number).to_vec(), bounds.encode());
        }
    }
    Ok(Some(batch))
}

/// The state of the partition that two neighbours become, once both have built their part of an index.
pub fn merge(
    parts: [&Partition; 2],
    snapshot: &Snapshot,
    generation: u32,
    child: &PartitionSpec,
) -> Result<Batch, Fault> {
    let [left, right] = parts;
    let states = [left.state_at(snapshot)?, right.state_at(snapshot)?];
    let state = PartitionState {
        epoch: states[0].epoch.max(states[1].epoch),
        regions: states[0].joined_regions(&states[1]),
        lsn: states[0].lsn.max(states[1].lsn),
        rids_given: 0,
        items: states[0].items + states[1].items,
        bytes: states[0].bytes + states[1].bytes,
        time: states[0].time.max(states[1].time),
    };
    let counts = |partition: &Partition| PathCounts::read(snapshot, partition.spec.number, generation);
    let joined = counts(left)?.joined(&counts(right)?);
    let mut batch = Batch::new();
    batch.put(Keyspace::Meta, keys::partition_state(child.number).to_vec(), state.encode());
    joined.write(child.number, generation, &mut batch);
    Ok(batch)
}
