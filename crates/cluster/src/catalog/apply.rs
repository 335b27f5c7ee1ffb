//! What the stored records make of the catalog.
//!
//! The catalog is data: a start applies all records to an empty one, and every change applies what it has just stored to the one
//! before. Nothing else makes or changes what readers are shown, so a restart finds what was shown, and a follower of the
//! records of partition 0 comes to the same catalog.
//!
//! ```text
//!   a change ── records ──▶ partition 0 ── as stored ──▶ apply ──▶ readers
//!   a start  ──────────────     "       ── all of it ──▶   "
//! ```
//!
//! Within a change what goes comes first; then what others depend on: jobs decide which containers are hidden and followed, and
//! offers what partitions may use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use orrery_store::{Item, ItemHeader, Schema};

use super::account::AccountRecord;
use super::children::load_child;
use super::indexes::Policies;
use super::load::{Builder, make_offer};
use super::record::{
    ChildRecord, ContainerRecord, DatabaseRecord, IndexRecord, OfferRecord, RangesRecord, Record, RecordId,
};
use super::{Catalog, Container, ContainerDefinition};
use crate::copy::JobRecord;
use crate::options::OpenError;
use crate::range::Range;
use crate::rid::Rid;
use crate::throttle::Budget;
use crate::throughput::Settings;

/// A transaction of partition 0, as it was stored.
pub(super) struct Change {
    pub put: Vec<(Record, ItemHeader)>,
    pub gone: Vec<RecordId>,
}

impl Change {
    /// Records as they are read back, which is how a start will find them.
    pub fn stored(items: &[Item], gone: Vec<RecordId>) -> Result<Change, OpenError> {
        let record = |item: &Item| Ok((Record::from_doc(&item.doc)?, item.header));
        let put = items.iter().map(record).collect::<Result<_, String>>();
        Ok(Change { put: put.map_err(OpenError::Catalog)?, gone })
    }
}

type Stored<T> = (T, ItemHeader);

/// What a change says of one container.
#[derive(Default)]
pub(super) struct ContainerParts {
    pub container: Option<Stored<ContainerRecord>>,
    pub ranges: Option<Stored<RangesRecord>>,
    pub index: Option<IndexRecord>,
    pub settings: Option<Settings>,
}

/// The records of a change, in the order in which they are applied.
#[derive(Default)]
struct Sorted {
    account: Option<AccountRecord>,
    jobs: Vec<JobRecord>,
    databases: Vec<Stored<DatabaseRecord>>,
    offers: Vec<Stored<OfferRecord>>,
    containers: BTreeMap<Rid, ContainerParts>,
    children: Vec<Stored<ChildRecord>>,
}

/// Containers and databases that have to be looked at again when all records are applied.
#[derive(Default)]
struct Touched {
    /// A job about them has come, changed or gone.
    by_jobs: BTreeSet<Rid>,
    /// What they may use has changed, or what shares it.
    by_throughput: BTreeSet<Rid>,
}

/// What a change means for ranges and budgets that are in use already. It happens when all records have been applied: until then
/// readers are shown the catalog of before, and if one of the records fails they keep it.
#[derive(Default)]
struct InUse(Vec<Effect>);

enum Effect {
    Schema(Arc<Range>, Arc<Schema>),
    Rate(Arc<Budget>, f64),
    /// The container's budgets, by the units of its own offer.
    Budgets(Arc<Container>, Option<u32>),
}

impl InUse {
    fn set_schema(&mut self, range: &Arc<Range>, schema: Schema) {
        self.0.push(Effect::Schema(range.clone(), Arc::new(schema)));
    }

    /// The schema that a range will have.
    fn schema_of(&self, range: &Arc<Range>) -> Arc<Schema> {
        let set = self.0.iter().rev().find_map(|effect| match effect {
            Effect::Schema(of, schema) if Arc::ptr_eq(of, range) => Some(schema.clone()),
            _ => None,
        });
        set.unwrap_or_else(|| range.replica.schema.load_full())
    }

    fn happen(self, builder: &Builder<'_>) {
        for effect in self.0 {
            match effect {
                Effect::Schema(range, schema) => range.replica.schema.store(schema),
                Effect::Rate(budget, rate) => budget.set_rate(rate, builder.memory.world().monotonic()),
                Effect::Budgets(container, units) => {
                    container.set_budgets(units, builder.options, builder.memory.world().monotonic());
                }
            }
        }
    }
}

impl Sorted {
    fn of(records: Vec<Stored<Record>>) -> Sorted {
        let mut sorted = Sorted::default();
        for (record, header) in records {
            sorted.add(record, header);
        }
        sorted
    }

    fn add(&mut self, record: Record, header: ItemHeader) {
        match record {
            Record::Account(record) => self.account = Some(record),
            Record::Job(record) => self.jobs.push(*record),
            Record::Database(record) => self.databases.push((record, header)),
            Record::Offer(record) => self.offers.push((record, header)),
            Record::Container(record) => {
                let rid = record.rid;
                self.parts(rid).container = Some((record, header));
            }
            Record::Ranges(record) => {
                let rid = record.rid;
                self.parts(rid).ranges = Some((record, header));
            }
            Record::Index(record) => {
                let rid = record.rid;
                self.parts(rid).index = Some(record);
            }
            Record::Throughput(record) => {
                let rid = record.rid;
                self.parts(rid).settings = Some(record.settings);
            }
            Record::Child(record) => self.children.push((record, header)),
            // Numbers, use and unfinished work are no part of what readers are shown.
            Record::Counters(_) | Record::Hours(_) | Record::Retired(_) | Record::Dropped(_) => {}
        }
    }

    fn parts(&mut self, rid: Rid) -> &mut ContainerParts {
        self.containers.entry(rid).or_default()
    }
}

impl Catalog {
    /// Takes over what was stored. After an error the catalog is worth nothing, and nothing that is in use has changed.
    pub(super) fn apply(&mut self, change: Change, builder: &Builder<'_>) -> Result<(), OpenError> {
        let (mut touched, mut in_use) = (Touched::default(), InUse::default());
        change.gone.iter().for_each(|id| self.forget(id, &mut touched));
        let sorted = Sorted::of(change.put);
        if let Some(account) = sorted.account {
            self.account = Arc::new(account);
        }
        for job in sorted.jobs {
            touched.by_jobs.extend([job.source, job.target]);
            self.put_job(job);
        }
        for (record, header) in sorted.databases {
            self.put_database(builder.database(record, &header).map_err(OpenError::Catalog)?);
        }
        for (record, header) in sorted.offers {
            touched.by_throughput.insert(record.target);
            self.provision(&record, builder, &mut in_use);
            self.put_offer(make_offer(&record, &header));
        }
        for (rid, parts) in sorted.containers {
            if parts.ranges.is_some() || parts.settings.is_some() {
                touched.by_throughput.insert(rid);
            }
            self.change_container(rid, parts, builder, &mut in_use)?;
        }
        touched.by_jobs.iter().for_each(|rid| self.refresh(*rid, &mut in_use));
        touched.by_throughput.iter().for_each(|rid| self.settle_budgets(*rid, &mut in_use));
        for (record, header) in sorted.children {
            self.put_child(load_child(&record, &header).map_err(OpenError::Catalog)?);
        }
        in_use.happen(builder);
        Ok(())
    }

    /// Whether what a record is about is there.
    pub(super) fn has(&self, id: &RecordId) -> bool {
        match id {
            RecordId::Database(rid) => self.databases.contains_key(rid),
            RecordId::Container(rid) | RecordId::Ranges(rid) | RecordId::Index(rid) => {
                self.containers.contains_key(rid)
            }
            RecordId::Offer(rid) => self.offers.contains_key(rid),
            RecordId::Job(id) => self.jobs.contains_key(id),
            RecordId::Retired(_) | RecordId::Dropped(_) => false,
            RecordId::Child(rid) => self.has_child(*rid),
            RecordId::Counters | RecordId::Account => true,
            RecordId::Throughput(_) | RecordId::Hours(_) => true,
        }
    }

    fn forget(&mut self, id: &RecordId, touched: &mut Touched) {
        match id {
            RecordId::Database(rid) => self.remove_database(*rid),
            RecordId::Container(rid) => self.remove_container(*rid),
            RecordId::Offer(rid) => {
                if let Some(offer) = self.offers.remove(rid) {
                    self.offers_by_target.remove(&offer.target);
                    touched.by_throughput.insert(offer.target);
                }
            }
            RecordId::Throughput(rid) => {
                if let Some(container) = self.containers.get(rid) {
                    self.put_container(Container {
                        throughput: Arc::default(),
                        ..Container::clone(container)
                    });
                    touched.by_throughput.insert(*rid);
                }
            }
            RecordId::Child(rid) => self.remove_child(*rid),
            RecordId::Job(id) => {
                if let Some(job) = self.jobs.remove(id) {
                    touched.by_jobs.extend([job.source, job.target]);
                }
            }
            // They go with their container, or are no part of what readers are shown.
            RecordId::Ranges(_) | RecordId::Index(_) => {}
            RecordId::Counters | RecordId::Account | RecordId::Hours(_) => {}
            RecordId::Retired(_) | RecordId::Dropped(_) => {}
        }
    }

    /// What the containers of a database share, if the offer is a database's.
    fn provision(&mut self, record: &OfferRecord, builder: &Builder<'_>, in_use: &mut InUse) {
        let Some(database) = self.databases.get_mut(&record.target) else { return };
        match &database.budget {
            Some(budget) => in_use.0.push(Effect::Rate(budget.clone(), builder.rate(record.throughput))),
            None => Arc::make_mut(database).budget = Some(builder.budget(record.throughput)),
        }
    }

    fn change_container(
        &mut self,
        rid: Rid,
        parts: ContainerParts,
        builder: &Builder<'_>,
        in_use: &mut InUse,
    ) -> Result<(), OpenError> {
        let container = match self.containers.get(&rid).cloned() {
            Some(current) => self.changed(&current, parts, builder, in_use)?,
            // What is left of a container that is no more.
            None if parts.container.is_none() => return Ok(()),
            None => builder.container(rid, parts, self)?,
        };
        self.put_container(container);
        Ok(())
    }

    /// A container after some of its records have changed. What was live stays: partitions, queues and budgets.
    fn changed(
        &self,
        current: &Container,
        parts: ContainerParts,
        builder: &Builder<'_>,
        in_use: &mut InUse,
    ) -> Result<Container, OpenError> {
        let mut container = current.clone();
        let is_redefined = parts.container.is_some();
        if let Some((record, header)) = parts.container {
            (container.resource, container.definition) = builder.definition(&record, &header, self)?;
        }
        let before = current.index_record();
        let index = parts.index.unwrap_or_else(|| before.clone());
        let policies = Policies::of(&index, &container.definition).map_err(OpenError::Catalog)?;
        container.index_made_by.clone_from(&index.made_by);
        if let Some(ranges) = parts.ranges {
            let units = self.offer_of(current.resource.rid).map(|offer| offer.throughput.ceiling());
            builder.exchange_ranges(&mut container, ranges, (&index, &policies), units)?;
        }
        if let Some(settings) = parts.settings {
            container.throughput = Arc::new(settings);
        }
        let is_other_policy = is_redefined || before.made_by != index.made_by;
        for range in &container.ranges {
            let of_range = |record: &IndexRecord| {
                record.ranges.iter().find(|one| one.id == range.descriptor.id).cloned()
            };
            let (old, new) = (of_range(&before), of_range(&index));
            // A schema that is replaced ends the group that is being worked out, so it is only where it differs.
            if let Some(new) = new.filter(|new| is_other_policy || old.is_some_and(|old| old != *new)) {
                in_use.set_schema(range, policies.schema(&container.definition, &new));
            }
        }
        Ok(container)
    }

    /// Brings what depends on jobs in line with them. Groups that are under way may not know it yet.
    fn refresh(&mut self, rid: Rid, in_use: &mut InUse) {
        let Some(current) = self.containers.get(&rid).cloned() else { return };
        let (is_followed, previous_key) = (self.is_followed(rid), self.previous_key(rid));
        let is_hidden = self.is_hidden(rid);
        let definition = &current.definition;
        let is_same = definition.is_followed == is_followed && definition.previous_key == previous_key;
        if is_same && current.is_hidden == is_hidden {
            return;
        }
        let definition = ContainerDefinition { is_followed, previous_key, ..definition.clone() };
        if !is_same {
            let keeps_history = is_followed || definition.retention().is_some();
            for range in &current.ranges {
                let schema = Schema::clone(&in_use.schema_of(range));
                in_use.set_schema(range, Schema { keeps_history, keeps_replaced: is_followed, ..schema });
            }
        }
        self.put_container(Container { definition, is_hidden, ..Container::clone(&current) });
    }

    /// Gives a container what its own offer says, or its part of what its database shares.
    fn settle_budgets(&mut self, rid: Rid, in_use: &mut InUse) {
        let Some(current) = self.containers.get(&rid).cloned() else { return };
        let units = self.offer_of(rid).map(|offer| offer.throughput.ceiling());
        in_use.0.push(Effect::Budgets(current.clone(), units));
        let shared = self.databases.get(&current.database).and_then(|database| database.budget.clone());
        let shared_budget = shared.filter(|_| units.is_none());
        if shared_budget.is_some() != current.shared_budget.is_some() {
            self.put_container(Container { shared_budget, ..Container::clone(&current) });
        }
    }
}

#[cfg(test)]
mod tests;
