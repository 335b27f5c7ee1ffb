//! The physical partitions of a container, as the catalog changes them: some ranges go, others take their place.
//!
//! The numbers of the new partitions are reserved first, so that they are never given again. Then their states are
//! written, which nobody knows yet, and the record of the catalog makes them the container's. A crash in between leaves
//! some hundred bytes without an owner.

use std::sync::Arc;

use orrery_store::engine::{Batch, EngineError};
use orrery_store::limits::{GONE_RANGES_MAX, PARENTS_MAX};
use orrery_store::{Fault, Partition, PartitionSpec};

use super::changes::container_of;
use super::record::{Counters, GoneRecord, IndexRecord, RangeIndexRecord, RangeRecord, RangesRecord, Record};
use super::{Container, GoneRange};
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::range::Range;
use crate::rid::Rid;

/// Numbers for ranges that are about to come.
pub(crate) struct Reserved {
    pub partitions: Vec<u32>,
    pub generations: Vec<u32>,
}

/// Ranges that take the place of others.
pub(crate) struct Succession {
    /// Those that go.
    pub old: Vec<Arc<Range>>,
    /// Those that come, in the order of the key space, and the index that each begins with.
    pub new: Vec<(PartitionSpec, RangeIndexRecord)>,
}

impl Succession {
    /// A new range over a part of the key space that the old ones held.
    pub fn child(
        container: &Container,
        old: &[Arc<Range>],
        place: usize,
        range: orrery_doc::EpkRange,
        reserved: &Reserved,
    ) -> PartitionSpec {
        let sources = old
            .iter()
            .flat_map(|old| old.replica.partition.spec.bequeath(&range, old.replica.partition.lsn()));
        PartitionSpec {
            number: reserved.partitions[place],
            container: container.number,
            rid_generation: container.rid_generation,
            rid_prefix: container.next_range + place as u32,
            sources: orrery_store::join(sources.collect()),
            range,
        }
    }
}

impl Db {
    /// Takes numbers for so many new ranges, durably: what is written under them is never taken for another range's.
    pub(crate) async fn reserve(&self, counters: &mut Counters, count: usize) -> Result<Reserved> {
        let mut next = counters.clone();
        let reserved = Reserved {
            partitions: (0..count).map(|_| next.take_partition()).collect(),
            generations: (0..count).map(|_| next.take_generation()).collect(),
        };
        self.store(counters, next, &[], &[]).await?;
        Ok(reserved)
    }

    /// Writes the states of the new ranges and makes them the container's. The old ones must be held; they are handed
    /// over when this succeeds.
    pub(crate) async fn succeed(
        &self,
        counters: &mut Counters,
        container: Rid,
        succession: Succession,
        states: Batch,
    ) -> Result<Arc<Container>> {
        let current = self.catalog().container_by_rid(container).cloned().ok_or(ErrorKind::RangeGone)?;
        self.inner.committer.commit(states).await.map_err(Fault::from)?;
        let snapshot = self.inner.committer.snapshot_owned();
        let open = |(spec, _): &(PartitionSpec, RangeIndexRecord)| Partition::open(spec.clone(), &snapshot);
        let partitions: std::result::Result<Vec<Partition>, _> = succession.new.iter().map(open).collect();
        let damaged = |error: EngineError| Fault::Damaged(error.to_string());
        let partitions = partitions.map_err(|error| ErrorKind::from(damaged(error)))?;
        let index = index_record(&current, &succession);
        let retired = current.retired_by(&index);
        let mut records = vec![Record::Ranges(ranges_record(&current, &succession)), Record::Index(index)];
        records.extend(retired.iter().cloned().map(Record::Retired));
        let next = counters.clone();
        let catalog = self.change_catalog_with(counters, next, (records, vec![]), partitions).await?;
        let container = container_of(&catalog, container)?;
        let is_new = |range: &&Arc<Range>| {
            succession.new.iter().any(|(spec, _)| spec.rid_prefix == range.descriptor.id)
        };
        let new: Vec<Arc<Range>> = container.ranges.iter().filter(is_new).cloned().collect();
        assert_eq!(new.len(), succession.new.len(), "the catalog has all that was stored");
        for old in &succession.old {
            old.hand_over(&new, &self.inner.committer);
        }
        self.erase_indexes_later(&container, retired);
        self.forget_later(succession.old.iter().map(|old| old.replica.partition.spec.number).collect());
        Ok(container)
    }

    /// Lets two neighbours build their parts of one index, or lets them stop.
    pub(crate) async fn set_merging(&self, container: Rid, ranges: [u32; 2], merges: bool) -> Result<u32> {
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        let catalog = self.catalog();
        let current = catalog.container_by_rid(container).cloned().ok_or(ErrorKind::RangeGone)?;
        let generation = if merges { next.take_generation() } else { 0 };
        let mut record = current.index_record();
        for index in record.ranges.iter_mut().filter(|index| ranges.contains(&index.id)) {
            if merges && index.building.is_some() || !merges && !index.merging {
                return Err(ErrorKind::Overloaded.into());
            }
            index.building = merges.then_some(generation);
            index.merging = merges;
        }
        let retired = current.retired_by(&record);
        let mut records = vec![Record::Index(record)];
        records.extend(retired.iter().cloned().map(Record::Retired));
        self.change_catalog(&mut counters, next, records, vec![]).await?;
        self.erase_indexes_later(&current, retired);
        Ok(generation)
    }
}

/// The ranges that a new one comes from, as far as they are remembered.
fn parents(old: &[Arc<Range>]) -> Vec<u32> {
    let mut parents: Vec<u32> = old
        .iter()
        .flat_map(|old| old.descriptor.parents.iter().copied().chain([old.descriptor.id]))
        .collect();
    parents.sort_unstable();
    parents.dedup();
    parents.drain(..parents.len().saturating_sub(PARENTS_MAX));
    parents
}

fn is_old(old: &[Arc<Range>], id: u32) -> bool {
    old.iter().any(|range| range.descriptor.id == id)
}

fn ranges_record(current: &Container, succession: &Succession) -> RangesRecord {
    let kept = current.ranges.iter().filter(|range| !is_old(&succession.old, range.descriptor.id));
    let mut ranges: Vec<RangeRecord> = kept.map(|range| RangeRecord::of(range)).collect();
    let parents = parents(&succession.old);
    let new = succession.new.iter().map(|(spec, _)| RangeRecord::new(spec.rid_prefix, spec, parents.clone()));
    ranges.extend(new);
    let next_range = current.next_range + succession.new.len() as u32;
    let gone = gone(current, &succession.old).iter().map(GoneRecord::of).collect();
    RangesRecord { rid: current.resource.rid, ranges, next_range, gone }
}

fn index_record(current: &Container, succession: &Succession) -> IndexRecord {
    let mut record = current.index_record();
    record.ranges.retain(|index| !is_old(&succession.old, index.id));
    record.ranges.extend(succession.new.iter().map(|(_, index)| index.clone()));
    record
}

/// The ranges that are remembered once the old ones have gone as well.
fn gone(current: &Container, old: &[Arc<Range>]) -> Vec<GoneRange> {
    let newly = old.iter().map(|range| GoneRange { id: range.descriptor.id, range: range.epk().clone() });
    let mut gone: Vec<GoneRange> = current.gone.iter().cloned().chain(newly).collect();
    gone.drain(..gone.len().saturating_sub(GONE_RANGES_MAX));
    gone
}
