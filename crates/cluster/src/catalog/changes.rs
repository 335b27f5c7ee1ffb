//! Changing the catalog: one change at a time, durable in partition 0 before anybody sees it.

use std::cell::RefCell;
use std::sync::Arc;

use orrery_doc::{Doc, Epk, boundaries};
use orrery_store::limits::{SHARED_THROUGHPUT_CONTAINERS_MAX, THROUGHPUT_DEFAULT};
use orrery_store::{Action, Etag, Fault, Item, ItemId, Op, Outcome, Partition, Precondition, Target, Txn};

use super::apply::Change;
use super::indexes::IndexChange;
use super::load::Builder;
use super::record::{
    ContainerRecord, Counters, DatabaseRecord, DroppedRecord, IndexRecord, OfferRecord, RangeIndexRecord,
    RangeRecord, RangesRecord, Record, RecordId, to_json,
};
use super::{Catalog, Container, ContainerDefinition, Database};
use crate::db::Db;
use crate::error::{Error, ErrorKind, QuotaKind, Result};
use crate::offer;
use crate::options::OpenError;
use crate::range::WriteError;
use crate::request::Throughput;
use crate::resource::ResourceKind;
use crate::rid::Rid;

impl Db {
    pub async fn create_database(
        &self,
        id: &str,
        body: Doc,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>> {
        let id = id.to_owned();
        self.carry(|db| async move { db.make_database(&id, body, throughput).await }).await
    }

    async fn make_database(
        &self,
        id: &str,
        body: Doc,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>> {
        self.check_throughput(throughput)?;
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        if self.catalog().database(id).is_some() {
            return Err(ErrorKind::AlreadyExists(ResourceKind::Database).into());
        }
        let rid = Rid::database(take(&mut next.database));
        let record = DatabaseRecord { rid, body: to_json(&body)? };
        let offer = throughput.map(|throughput| new_offer(&mut next, rid, throughput));
        let mut records = vec![Record::Database(record)];
        records.extend(offer.map(Record::Offer));
        let catalog = self.change_catalog(&mut counters, next, records, vec![]).await?;
        let database = catalog.database_by_rid(rid).cloned();
        Ok(database.ok_or(ErrorKind::NotFound(ResourceKind::Database))?)
    }

    pub async fn delete_database(&self, rid: Rid, if_match: Option<Etag>) -> Result<()> {
        self.carry(|db| async move { db.drop_database(rid, if_match).await }).await
    }

    async fn drop_database(&self, rid: Rid, if_match: Option<Etag>) -> Result<()> {
        let mut counters = self.inner.control.lock().await;
        let catalog = self.catalog();
        let database = catalog.database_by_rid(rid).cloned();
        let database = database.ok_or(ErrorKind::NotFound(ResourceKind::Database))?;
        check_version(if_match, database.resource.etag)?;
        let containers: Vec<Arc<Container>> = database.all_containers().cloned().collect();
        let mut gone = vec![RecordId::Database(rid)];
        gone.extend(catalog.offer_of(rid).map(|offer| RecordId::Offer(offer.rid)));
        gone.extend(catalog.child_records(rid));
        containers.iter().for_each(|container| gone.extend(removed_ids(container, &catalog)));
        let dropped = containers.iter().map(|container| Record::Dropped(dropped(container))).collect();
        let next = counters.clone();
        self.change_catalog(&mut counters, next, dropped, gone).await?;
        containers.iter().for_each(|container| self.purge_later(container));
        Ok(())
    }

    pub async fn create_container(
        &self,
        database: Rid,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        self.carry(move |db| async move { db.make_container(database, definition, throughput).await }).await
    }

    async fn make_container(
        &self,
        database: Rid,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        self.check_throughput(throughput)?;
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        let catalog = self.catalog();
        let owner = catalog.database_by_rid(database).cloned();
        let owner = owner.ok_or(ErrorKind::OwnerNotFound(ResourceKind::Database))?;
        if owner.container(&definition.id).is_some() {
            return Err(ErrorKind::AlreadyExists(ResourceKind::Container).into());
        }
        catalog.check_encryption_keys(database, &definition)?;
        let throughput = self.own_throughput(&owner, throughput)?;
        let shared = catalog.offer_of(database).map(|offer| offer.throughput);
        let record = new_container(&mut next, database, &definition)?;
        let ranges = self.new_ranges(&mut next, &record, &definition, throughput.or(shared));
        let offer = throughput.map(|throughput| new_offer(&mut next, record.rid, throughput));
        let index = new_index(&mut next, &ranges);
        let rid = record.rid;
        let mut records = vec![Record::Container(record), Record::Index(index), Record::Ranges(ranges)];
        records.extend(offer.map(Record::Offer));
        let catalog = self.change_catalog(&mut counters, next, records, vec![]).await?;
        container_of(&catalog, rid)
    }

    /// The throughput that a new container gets for itself; none when it shares, or on a serverless account.
    fn own_throughput(&self, owner: &Database, asked: Option<Throughput>) -> Result<Option<Throughput>> {
        if self.account().serverless || asked.is_some() {
            return Ok(asked);
        }
        if owner.budget.is_none() {
            return Ok(Some(Throughput::Manual(THROUGHPUT_DEFAULT)));
        }
        let sharing = owner.containers().filter(|container| container.shared_budget.is_some()).count();
        if sharing >= SHARED_THROUGHPUT_CONTAINERS_MAX {
            let message = format!(
                "The number of containers in a shared throughput database is limited to {SHARED_THROUGHPUT_CONTAINERS_MAX}."
            );
            return Err(ErrorKind::QuotaExceeded(QuotaKind::SharedThroughputContainers, message).into());
        }
        Ok(None)
    }

    /// The first partitions of a container, which have no past.
    pub(super) fn new_ranges(
        &self,
        next: &mut Counters,
        record: &ContainerRecord,
        definition: &ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> RangesRecord {
        let units = throughput.map_or(0, Throughput::ceiling);
        let count = offer::initial_partitions(units, &self.inner.options.limits);
        let mut edges = vec![Epk::MIN];
        edges.extend(boundaries(&definition.key, count));
        edges.push(Epk::max());
        let range = |(id, pair): (usize, &[Epk])| RangeRecord {
            id: id as u32,
            partition: next.take_partition(),
            min: pair[0].to_hex(),
            max: pair[1].to_hex(),
            parents: vec![],
            sources: vec![],
        };
        let ranges = edges.windows(2).enumerate().map(range).collect();
        RangesRecord { rid: record.rid, ranges, next_range: count, gone: vec![] }
    }

    /// Changes what may change; the gateway has checked that the rest is as it was.
    pub async fn replace_container(
        &self,
        rid: Rid,
        definition: ContainerDefinition,
        if_match: Option<Etag>,
    ) -> Result<Arc<Container>> {
        self.carry(move |db| async move { db.change_container(rid, definition, if_match).await }).await
    }

    async fn change_container(
        &self,
        rid: Rid,
        definition: ContainerDefinition,
        if_match: Option<Etag>,
    ) -> Result<Arc<Container>> {
        let mut counters = self.inner.control.lock().await;
        let current = container_of(&self.catalog(), rid)?;
        check_version(if_match, current.resource.etag)?;
        // These depend on jobs, which may have come or gone since the client's definition was read, and on the server.
        let definition = ContainerDefinition {
            api: current.definition.api,
            order: current.definition.order,
            is_followed: current.definition.is_followed,
            previous_key: current.definition.previous_key.clone(),
            retention_default: current.definition.retention_default,
            ..definition
        };
        let record = ContainerRecord {
            rid,
            number: current.number,
            api: definition.api,
            order: definition.order,
            body: to_json(&definition.body)?,
            rids: current.rid_generation,
        };
        let mut next = counters.clone();
        let index = IndexChange::plan(&current, &definition, &mut next)?;
        let mut records = vec![Record::Container(record)];
        records.extend(index.records());
        let catalog = self.change_catalog(&mut counters, next, records, vec![]).await?;
        let container = container_of(&catalog, rid)?;
        if index.starts_build {
            self.build_index_later(&container);
        }
        self.erase_indexes_later(&container, index.retired);
        drop(counters);
        if container.definition.retention().is_some() && current.definition.retention().is_none() {
            // A group that is under way does not record its writes; who reads from now on must not meet it.
            self.wait_until_all_settled(&container).await;
        }
        Ok(container)
    }

    pub async fn delete_container(&self, rid: Rid, if_match: Option<Etag>) -> Result<()> {
        self.carry(|db| async move { db.drop_container(rid, if_match).await }).await
    }

    async fn drop_container(&self, rid: Rid, if_match: Option<Etag>) -> Result<()> {
        let mut counters = self.inner.control.lock().await;
        let catalog = self.catalog();
        let container = container_of(&catalog, rid)?;
        check_version(if_match, container.resource.etag)?;
        let gone = removed_ids(&container, &catalog);
        let next = counters.clone();
        let dropped = vec![Record::Dropped(dropped(&container))];
        self.change_catalog(&mut counters, next, dropped, gone).await?;
        self.purge_later(&container);
        Ok(())
    }

    fn check_throughput(&self, throughput: Option<Throughput>) -> Result<()> {
        match throughput {
            Some(_) if self.account().serverless => Err(Error::invalid(
                "Setting offer throughput or autopilot on container is not supported for serverless accounts.",
            )),
            Some(throughput) => offer::check(throughput),
            None => Ok(()),
        }
    }

    /// Stores a change, and shows readers what it makes of the catalog.
    pub(super) async fn change_catalog(
        &self,
        counters: &mut Counters,
        next: Counters,
        put: Vec<Record>,
        gone: Vec<RecordId>,
    ) -> Result<Arc<Catalog>> {
        self.change_catalog_with(counters, next, (put, gone), vec![]).await
    }

    /// The same for a caller who has opened the partitions that the records name.
    pub(super) async fn change_catalog_with(
        &self,
        counters: &mut Counters,
        next: Counters,
        (put, gone): (Vec<Record>, Vec<RecordId>),
        opened: Vec<Partition>,
    ) -> Result<Arc<Catalog>> {
        let written = self.store(counters, next, &put, &gone).await?;
        let stored: Vec<RecordId> = put.iter().map(Record::id).collect();
        let change = Change::stored(&written[..put.len()], gone);
        let snapshot = self.inner.committer.snapshot_owned();
        let builder = Builder {
            options: &self.inner.options,
            snapshot: &snapshot,
            memory: &self.inner.memory,
            opened: RefCell::new(opened),
        };
        let before = self.catalog();
        let mut catalog = Catalog::clone(&before);
        let applied = change.and_then(|change| catalog.apply(change, &builder));
        drop(builder);
        match applied {
            Ok(()) => {
                let catalog = Arc::new(catalog);
                self.inner.catalog.store(catalog.clone());
                Ok(catalog)
            }
            Err(error) if stored.iter().any(|id| before.has(id)) => {
                tracing::error!(%error, "a change of the catalog was stored and takes effect at the next start");
                Err(ErrorKind::from(Fault::Damaged(error.to_string())).into())
            }
            Err(error) => Err(self.take_back(counters, stored, &error).await),
        }
    }

    /// Writes records, deletes others and the counters as they are next, all in one transaction of partition 0. From then on
    /// the numbers are taken, whatever becomes of the change.
    pub(super) async fn store(
        &self,
        counters: &mut Counters,
        next: Counters,
        put: &[Record],
        gone: &[RecordId],
    ) -> Result<Vec<Item>> {
        // What was dropped is noted, to be erased.
        let is_note = |record: &Record| matches!(record, Record::Dropped(_) | Record::Retired(_));
        let frees = !gone.is_empty() && put.iter().all(is_note);
        let upsert = |record: &Record| op(&record.id(), Action::Upsert(record.to_doc()));
        let mut ops: Vec<Op> = put.iter().map(upsert).collect();
        ops.push(upsert(&Record::Counters(next.clone())));
        ops.extend(gone.iter().map(|id| op(id, Action::Delete)));
        let txn = Txn { scope: Epk::MIN, key: None, ops, now: self.world().now() };
        let (range, committer) = (&self.inner.catalog_range, &self.inner.committer);
        let written = match frees {
            true => range.write_to_free(committer, txn).await,
            false => range.write(committer, txn).await,
        };
        match written {
            Ok(done) => {
                *counters = next;
                Ok(done.outcomes.into_iter().map(|outcome: Outcome| outcome.item).collect())
            }
            Err(WriteError::Refused(refusal)) => Err(ErrorKind::from(*refusal).into()),
            Err(WriteError::Unwritten(kind)) => Err(kind.into()),
        }
    }

    /// Removes records that are stored and cannot be brought to life, so that neither a start nor the client's next try meets
    /// them. Answers with what the client is told.
    async fn take_back(&self, counters: &mut Counters, stored: Vec<RecordId>, error: &OpenError) -> Error {
        let next = counters.clone();
        if let Err(error) = self.store(counters, next, &[], &stored).await {
            tracing::error!(error = %error.kind, "a change of the catalog that failed could not be taken back");
        }
        ErrorKind::from(Fault::Damaged(error.to_string())).into()
    }
}

/// A container that should be there.
pub(super) fn container_of(catalog: &Catalog, rid: Rid) -> Result<Arc<Container>> {
    let container = catalog.container_by_rid(rid).cloned();
    Ok(container.ok_or(ErrorKind::NotFound(ResourceKind::Container))?)
}

/// The item of the catalog that keeps a record.
pub(super) fn record_target(id: &RecordId) -> Target {
    Target::Id(ItemId::new(id.to_string()).expect("the ids of records are short"))
}

fn op(id: &RecordId, action: Action) -> Op {
    Op {
        target: record_target(id),
        action,
        precondition: Precondition::None,
        indexed: false,
        unlinked: false,
    }
}

fn take(counter: &mut u32) -> u32 {
    *counter += 1;
    *counter - 1
}

fn new_offer(next: &mut Counters, target: Rid, throughput: Throughput) -> OfferRecord {
    let rid = Rid::offer(take(&mut next.offer));
    let mut record =
        OfferRecord { rid, target, autoscale: false, throughput: 0, increment_percent: None, highest: 0 };
    record.set(throughput);
    record
}

pub(super) fn check_version(if_match: Option<Etag>, current: Etag) -> Result<()> {
    match if_match {
        Some(etag) if etag != current => Err(ErrorKind::PreconditionFailed.into()),
        _ => Ok(()),
    }
}

pub(super) fn new_container(
    next: &mut Counters,
    database: Rid,
    definition: &ContainerDefinition,
) -> Result<ContainerRecord> {
    let number = take(&mut next.container);
    let rid = Rid::container(database, number);
    Ok(ContainerRecord {
        rid,
        number,
        api: definition.api,
        order: definition.order,
        body: to_json(&definition.body)?,
        rids: next.take_generation(),
    })
}

/// The first indexes of a container, which are complete because there are no items.
pub(super) fn new_index(next: &mut Counters, ranges: &RangesRecord) -> IndexRecord {
    let index = |range: &RangeRecord| RangeIndexRecord {
        id: range.id,
        active: next.take_generation(),
        building: None,
        borrowed: false,
        merging: false,
    };
    IndexRecord { rid: ranges.rid, ranges: ranges.ranges.iter().map(index).collect(), made_by: None }
}

pub(super) fn removed_ids(container: &Container, catalog: &Catalog) -> Vec<RecordId> {
    let rid = container.resource.rid;
    let mut ids = vec![RecordId::Container(rid), RecordId::Index(rid), RecordId::Ranges(rid)];
    ids.extend(catalog.offer_of(rid).map(|offer| RecordId::Offer(offer.rid)));
    ids.extend(container.has_throughput_record().then_some(RecordId::Throughput(rid)));
    ids.extend(catalog.child_records(rid));
    ids
}

pub(super) fn dropped(container: &Container) -> DroppedRecord {
    let (mut partitions, mut generations) = (Vec::new(), vec![container.rid_generation]);
    for range in &container.ranges {
        let spec = &range.replica.partition.spec;
        partitions.extend(spec.sources.iter().map(|source| source.number).chain([spec.number]));
        let schema = range.replica.schema.load();
        generations.push(schema.index.generation);
        generations.extend(schema.building.as_ref().map(|index| index.generation));
    }
    for list in [&mut partitions, &mut generations] {
        list.sort_unstable();
        list.dedup();
    }
    DroppedRecord { number: container.number, partitions, generations }
}

#[cfg(test)]
mod tests;
