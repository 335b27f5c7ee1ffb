//! The indexes of a container: which one its readers use, which one is being built, and the step from one to the other.
//!
//! The indexes of all partitions of a container are one record of the catalog. A replaced policy starts a new generation in
//! each partition; when all are complete, one durable change makes them active and names the old ones for erasing.
//! A partition that comes from a split goes on with the index of its parent, together with its siblings, and builds its
//! own in the same way.

use std::collections::HashSet;
use std::sync::Arc;

use orrery_store::indexing::IndexingPolicy;
use orrery_store::{ActiveIndex, IndexGeneration, Schema};

use super::changes::container_of;
use super::definition::index_paths;
use super::record::{Counters, IndexRecord, RangeIndexRecord, Record, RetiredRecord, to_doc, to_json};
use super::{Container, ContainerDefinition};
use crate::db::Db;
use crate::error::Result;
use crate::range::Range;
use crate::rid::Rid;

/// What the indexes of a container are made by.
pub(super) struct Policies {
    active: Arc<IndexingPolicy>,
    /// Of the definition; what is being built follows it.
    current: Arc<IndexingPolicy>,
}

/// How replacing a container's definition changes its indexes.
pub(super) struct IndexChange {
    pub record: IndexRecord,
    pub retired: Vec<RetiredRecord>,
    pub starts_build: bool,
}

impl Policies {
    pub fn of(
        record: &IndexRecord,
        definition: &ContainerDefinition,
    ) -> std::result::Result<Policies, String> {
        let current = Arc::new(definition.indexing.clone());
        let active = match &record.made_by {
            None => current.clone(),
            Some(made_by) => {
                let policy = index_paths::compile(&to_doc(made_by)?);
                Arc::new(policy.map_err(|error| error.kind.to_string())?)
            }
        };
        Ok(Policies { active, current })
    }

    pub fn schema(&self, definition: &ContainerDefinition, index: &RangeIndexRecord) -> Schema {
        let active = ActiveIndex::new(index.active, self.active.clone(), self.current.clone());
        let active = active.borrowed(index.borrowed);
        let building = index.building.map(|generation| IndexGeneration {
            generation,
            is_shared: index.merging,
            policy: self.current.clone(),
        });
        Schema {
            key: definition.key.clone(),
            index: Arc::new(active),
            building,
            ttl: definition.ttl(),
            unique: definition.unique_keys(),
            keeps_history: definition.is_followed || definition.retention().is_some(),
            keeps_replaced: definition.is_followed,
        }
    }
}

impl IndexChange {
    /// Works out what a new definition means for the indexes; takes generations from `next`.
    pub fn plan(
        container: &Container,
        definition: &ContainerDefinition,
        next: &mut Counters,
    ) -> Result<IndexChange> {
        let schema = container.ranges[0].replica.schema.load_full();
        let wanted = &definition.indexing;
        let mut record = container.index_record();
        let mut starts_build = false;
        let is_served = wanted.gives_same_terms(&schema.index.policy);
        // What is being built was for the definition that is replaced now.
        let is_wanted = container.definition.indexing.gives_same_terms(wanted);
        for index in &mut record.ranges {
            // What is there serves, so a build for another policy has lost its purpose, unless it is to end a loan.
            let is_due = !is_served || index.borrowed;
            if index.building.is_some() && is_due && is_wanted && !index.merging {
                continue;
            }
            index.building = is_due.then(|| next.take_generation());
            index.merging = false;
            starts_build |= is_due;
        }
        if is_served {
            record.made_by = None;
        } else if record.made_by.is_none() {
            record.made_by = Some(index_paths::index_part(&to_json(&container.definition.body)?));
        }
        let retired = container.retired_by(&record);
        Ok(IndexChange { record, retired, starts_build })
    }

    /// The records to store.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let retired = self.retired.iter().cloned().map(Record::Retired);
        std::iter::once(Record::Index(self.record.clone())).chain(retired)
    }
}

impl Db {
    /// Makes the indexes active that were built, of ranges and generations. Answers false when the container no
    /// longer waits for them.
    pub(crate) async fn finish_index_build(&self, rid: Rid, builds: &[(u32, u32)]) -> Result<bool> {
        let mut counters = self.inner.control.lock().await;
        let Some(current) = self.catalog().container_by_rid(rid).cloned() else { return Ok(false) };
        if current.builds() != builds {
            return Ok(false);
        }
        let mut record = current.index_record();
        record.made_by = None;
        for index in record.ranges.iter_mut().filter(|index| !index.merging) {
            if let Some(built) = index.building.take() {
                index.active = built;
                index.borrowed = false;
            }
        }
        let retired = current.retired_by(&record);
        let mut records = vec![Record::Index(record)];
        records.extend(retired.iter().cloned().map(Record::Retired));
        let next = counters.clone();
        let catalog = self.change_catalog(&mut counters, next, records, vec![]).await?;
        self.erase_indexes_later(&container_of(&catalog, rid)?, retired);
        Ok(true)
    }
}

impl Container {
    /// How much of the index that the policy asks for is there, in percent; 100 when queries use it.
    pub fn index_progress(&self) -> u8 {
        if self.index_made_by.is_none() {
            // What is being built all the same is no other index, only a copy in another place.
            return 100;
        }
        let (mut built, mut items, mut building) = (0, 0, false);
        for range in &self.ranges {
            let in_range = range.replica.partition.state().items;
            items += in_range;
            let schema = range.replica.schema.load();
            let Some(index) = &schema.building else { continue };
            building = true;
            let build = range.replica.partition.build_of(index.generation);
            built += if build.is_complete() { in_range } else { build.items.min(in_range) };
        }
        match building {
            true => (built * 100 / items.max(1)).min(99) as u8,
            false => 100,
        }
    }

    /// The ids of ranges whose index is being built, and its generation; not those that are being merged.
    pub(crate) fn builds(&self) -> Vec<(u32, u32)> {
        let building = |range: &Arc<Range>| {
            let schema = range.replica.schema.load();
            let index = schema.building.as_ref().filter(|index| !index.is_shared)?;
            Some((range.descriptor.id, index.generation))
        };
        self.ranges.iter().filter_map(building).collect()
    }

    /// Whether a partition still uses the index of the one that it was split from.
    pub fn borrows_indexes(&self) -> bool {
        self.ranges.iter().any(|range| range.replica.schema.load().index.is_borrowed)
    }

    pub(super) fn index_record(&self) -> IndexRecord {
        let index = |range: &Arc<Range>| {
            let schema = range.replica.schema.load();
            RangeIndexRecord {
                id: range.descriptor.id,
                active: schema.index.generation,
                building: schema.building.as_ref().map(|index| index.generation),
                borrowed: schema.index.is_borrowed,
                merging: schema.building.as_ref().is_some_and(|index| index.is_shared),
            }
        };
        IndexRecord {
            rid: self.resource.rid,
            ranges: self.ranges.iter().map(index).collect(),
            made_by: self.index_made_by.clone(),
        }
    }

    /// The indexes that are in use now, and by nobody once the record has taken effect.
    pub(super) fn retired_by(&self, record: &IndexRecord) -> Vec<RetiredRecord> {
        let used: HashSet<u32> = record
            .ranges
            .iter()
            .flat_map(|index| std::iter::once(index.active).chain(index.building))
            .collect();
        let mut retired: Vec<RetiredRecord> = Vec::new();
        for range in &self.ranges {
            let schema = range.replica.schema.load();
            let building = schema.building.as_ref().map(|index| index.generation);
            let number = range.replica.partition.spec.number;
            for generation in std::iter::once(schema.index.generation).chain(building) {
                if used.contains(&generation) {
                    continue;
                }
                match retired.iter_mut().find(|record| record.generation == generation) {
                    Some(record) => record.partitions.push(number),
                    None => retired.push(RetiredRecord { partitions: vec![number], generation }),
                }
            }
        }
        retired
    }
}

#[cfg(test)]
mod tests;
