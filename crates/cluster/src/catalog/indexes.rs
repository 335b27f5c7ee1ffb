//! The indexes of a container: which one its readers use, which one is being built, and the step from one to the other.
//!
//! All partitions of a container are in the same phase, because the phase is one record of the catalog. A replaced
//! policy starts a new generation in each partition; when all are complete, one durable change makes them active and
//! names the old ones for erasing.

use std::sync::Arc;

use orrery_store::indexing::IndexingPolicy;
use orrery_store::{ActiveIndex, IndexGeneration, Schema};

use super::definition::index_paths;
use super::record::{Counters, IndexRecord, RangeIndexRecord, Record, RetiredRecord, to_doc, to_json};
use super::{Catalog, Container, ContainerDefinition};
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
    policies: Policies,
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
        let building =
            index.building.map(|generation| IndexGeneration { generation, policy: self.current.clone() });
        Schema {
            key: definition.key.clone(),
            index: Arc::new(active),
            building,
            ttl: definition.ttl(),
            unique: definition.unique_keys(),
            keeps_history: definition.retention().is_some(),
        }
    }

    /// Lets writers and readers know.
    fn apply(&self, record: &IndexRecord, definition: &ContainerDefinition, ranges: &[Arc<Range>]) {
        for range in ranges {
            if let Some(index) = record.ranges.iter().find(|index| index.id == range.id) {
                range.schema.store(Arc::new(self.schema(definition, index)));
            }
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
        let schema = container.ranges[0].schema.load_full();
        let wanted = Arc::new(definition.indexing.clone());
        let mut record = container.index_record();
        let (mut retired, mut starts_build) = (Vec::new(), false);
        let mut active = schema.index.policy.clone();
        if wanted.gives_same_terms(&active) {
            // What is there serves, so a build for another policy has lost its purpose.
            for index in &mut record.ranges {
                let building = index.building.take();
                retired.extend(building.map(|generation| container.retire(index.id, generation)));
            }
            record.made_by = None;
            active = wanted.clone();
        } else if !schema.building.as_ref().is_some_and(|index| index.policy.gives_same_terms(&wanted)) {
            for index in &mut record.ranges {
                let building = index.building.replace(next.take_generation());
                retired.extend(building.map(|generation| container.retire(index.id, generation)));
            }
            if record.made_by.is_none() {
                record.made_by = Some(index_paths::index_part(&to_json(&container.definition.body)?));
            }
            starts_build = true;
        }
        let policies = Policies { active, current: wanted };
        Ok(IndexChange { record, retired, starts_build, policies })
    }

    /// The records to store.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let retired = self.retired.iter().cloned().map(Record::Retired);
        std::iter::once(Record::Index(self.record.clone())).chain(retired)
    }

    pub fn apply(&self, container: &Container) {
        self.policies.apply(&self.record, &container.definition, &container.ranges);
    }
}

impl Db {
    /// Makes the indexes active that were built as `generations`, in the order of the ranges. Answers false when
    /// the container no longer waits for them.
    pub(crate) async fn finish_index_build(&self, rid: Rid, generations: &[u32]) -> Result<bool> {
        let mut counters = self.inner.control.lock().await;
        let mut catalog = Catalog::clone(&self.catalog());
        let Some(current) = catalog.container_by_rid(rid).cloned() else { return Ok(false) };
        if current.building_generations() != generations {
            return Ok(false);
        }
        let mut record = current.index_record();
        record.made_by = None;
        let mut retired = Vec::new();
        for index in &mut record.ranges {
            if let Some(built) = index.building.take() {
                let old = std::mem::replace(&mut index.active, built);
                retired.push(current.retire(index.id, old));
            }
        }
        let mut records = vec![Record::Index(record.clone())];
        records.extend(retired.iter().cloned().map(Record::Retired));
        let next = counters.clone();
        self.store(&next, records, vec![]).await?;
        let policy = Arc::new(current.definition.indexing.clone());
        let policies = Policies { active: policy.clone(), current: policy };
        policies.apply(&record, &current.definition, &current.ranges);
        let container =
            catalog.put_container(Container { index_made_by: None, ..Container::clone(&current) });
        self.publish(&mut counters, next, catalog);
        self.erase_indexes_later(&container, retired);
        Ok(true)
    }
}

impl Container {
    /// How much of the index that the policy asks for is there, in percent; 100 when queries use it.
    pub fn index_progress(&self) -> u8 {
        let (mut built, mut items, mut building) = (0, 0, false);
        for range in &self.ranges {
            let in_range = range.partition.state().items;
            items += in_range;
            let schema = range.schema.load();
            let Some(index) = &schema.building else { continue };
            building = true;
            let build = range.partition.build_of(index.generation);
            built += if build.is_complete() { in_range } else { build.items.min(in_range) };
        }
        match building {
            true => (built * 100 / items.max(1)).min(99) as u8,
            false => 100,
        }
    }

    /// The generations that are being built, in the order of the ranges; empty when none are.
    pub(crate) fn building_generations(&self) -> Vec<u32> {
        let building =
            |range: &Arc<Range>| range.schema.load().building.as_ref().map(|index| index.generation);
        self.ranges.iter().filter_map(building).collect()
    }

    pub(super) fn index_record(&self) -> IndexRecord {
        let index = |range: &Arc<Range>| {
            let schema = range.schema.load();
            let building = schema.building.as_ref().map(|index| index.generation);
            RangeIndexRecord { id: range.id, active: schema.index.generation, building }
        };
        IndexRecord {
            rid: self.resource.rid,
            ranges: self.ranges.iter().map(index).collect(),
            made_by: self.index_made_by.clone(),
        }
    }

    fn retire(&self, range: u32, generation: u32) -> RetiredRecord {
        let range = self.range_by_id(range).expect("an index belongs to a range of its container");
        RetiredRecord { partition: range.partition.spec.number, generation }
    }
}

#[cfg(test)]
mod tests;
