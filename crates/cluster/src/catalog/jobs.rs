//! Jobs that copy containers, as records of the catalog, and the exchange of one container for another.
//!
//! Two things depend on the jobs that are under way and are therefore not stored with containers: whether a container
//! records all changes, because a job follows it, and whether it is hidden, because it is going to take the
//! place of another.

use std::sync::Arc;

use orrery_doc::{Epk, PartitionKeyDef};
use orrery_store::limits::JOBS_MAX;
use orrery_store::{Lifetimes, Schema, View};

use super::changes::{dropped, new_container, new_index, record_target, removed_ids};
use super::load::make_offer;
use super::record::{ChildRecord, Counters, OfferRecord, Record, ThroughputRecord, to_doc, to_json};
use super::{Catalog, ChildKind, Container, ContainerDefinition, children};
use crate::copy::{JobKind, JobRecord, JobState};
use crate::db::Db;
use crate::error::{Error, ErrorKind, QuotaKind, Result};
use crate::resource::ResourceKind;
use crate::rid::Rid;
use crate::throughput::Settings;

/// What hangs below containers.
const BELOW_CONTAINERS: [ChildKind; 4] =
    [ChildKind::Procedure, ChildKind::Trigger, ChildKind::Function, ChildKind::ContainerSetting];

pub(super) fn record_id(id: &str) -> String {
    format!("job:{id}")
}

impl Catalog {
    /// In the order of their ids, which is that of their creation.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<JobRecord>> {
        self.jobs.values()
    }

    pub fn job(&self, id: &str) -> Option<&Arc<JobRecord>> {
        self.jobs.get(id)
    }

    pub(super) fn put_job(&mut self, job: JobRecord) -> Arc<JobRecord> {
        let job = Arc::new(job);
        self.jobs.insert(job.id.clone(), job.clone());
        job
    }

    /// Whether a job follows the changes of a container.
    pub(super) fn is_followed(&self, container: Rid) -> bool {
        self.jobs().any(|job| job.source == container && job.follows())
    }

    /// Whether a container is still in the making.
    pub(super) fn is_hidden(&self, container: Rid) -> bool {
        self.jobs().any(|job| job.target == container && job.kind == JobKind::Rekey && !job.state.is_over())
    }

    /// The container that has taken the place of this one with another partition key, for as long as the job that did it is
    /// remembered.
    pub fn successor(&self, container: Rid) -> Option<Rid> {
        let is_it = |job: &&Arc<JobRecord>| {
            job.source == container && job.kind == JobKind::Rekey && job.state == JobState::Completed
        };
        self.jobs().find(is_it).map(|job| job.target)
    }

    /// The key that a container had before it was given another in place.
    pub(super) fn previous_key(&self, container: Rid) -> Option<PartitionKeyDef> {
        let is_done = |job: &&Arc<JobRecord>| job.target == container && job.state == JobState::Completed;
        let key = self.jobs().filter(is_done).find_map(|job| job.previous_key.as_ref())?;
        let body = serde_json::json!({"id": "key", "partitionKey": key});
        let body = to_doc(&body).ok()?;
        ContainerDefinition::stored(&body).ok().map(|definition| definition.key)
    }

    /// Brings what depends on jobs in line with them. Groups that are under way may not know it yet.
    fn refresh(&mut self, rid: Rid) {
        let (is_followed, previous_key) = (self.is_followed(rid), self.previous_key(rid));
        let Some(current) = self.container_by_rid(rid).cloned() else { return };
        let definition = &current.definition;
        if definition.is_followed == is_followed && definition.previous_key == previous_key {
            return;
        }
        let definition = ContainerDefinition { is_followed, previous_key, ..definition.clone() };
        for range in &current.ranges {
            let schema = Schema::clone(&range.schema.load());
            let keeps_history = is_followed || definition.retention().is_some();
            range.schema.store(Arc::new(Schema { keeps_history, keeps_replaced: is_followed, ..schema }));
        }
        self.put_container(Container { definition, ..Container::clone(&current) });
    }
}

impl Db {
    /// Stores a new job, whose id is given here, and has its source record all changes from now on.
    pub(crate) async fn insert_job(&self, mut job: JobRecord) -> Result<Arc<JobRecord>> {
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        let mut catalog = Catalog::clone(&self.catalog());
        catalog.check_job(&mut job, &mut next)?;
        self.store(&mut counters, next, vec![Record::Job(Box::new(job.clone()))], vec![]).await?;
        let source = job.source;
        let job = catalog.put_job(job);
        catalog.refresh(source);
        self.publish(catalog);
        Ok(job)
    }

    /// The same for a job whose target is a new container that nobody sees yet.
    pub(crate) async fn insert_rekey(
        &self,
        mut job: JobRecord,
        definition: &ContainerDefinition,
    ) -> Result<Arc<JobRecord>> {
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        let mut catalog = Catalog::clone(&self.catalog());
        catalog.check_job(&mut job, &mut next)?;
        let source = catalog.container_by_rid(job.source).cloned();
        let source = source.ok_or(ErrorKind::NotFound(ResourceKind::Container))?;
        let throughput = catalog
            .offer_of(job.source)
            .or_else(|| catalog.offer_of(source.database))
            .map(|offer| offer.throughput);
        let record = new_container(&mut next, source.database, definition)?;
        let ranges = self.new_ranges(&mut next, &record, definition, throughput);
        let index = new_index(&mut next, &ranges);
        job.target = record.rid;
        let records = vec![
            Record::Container(record.clone()),
            Record::Index(index.clone()),
            Record::Ranges(ranges.clone()),
            Record::Job(Box::new(job.clone())),
        ];
        let stored = records.iter().map(Record::id).collect();
        let written = self.store(&mut counters, next, records, vec![]).await?;
        let job = catalog.put_job(job);
        let snapshot = self.inner.committer.snapshot_owned();
        let builder = self.builder(&snapshot);
        match builder.container(record, (ranges, index), &written[0], None, &catalog) {
            Ok(hidden) => catalog.put_container(hidden),
            Err(error) => return Err(self.take_back(&mut counters, stored, &error).await),
        };
        catalog.refresh(job.source);
        self.publish(catalog);
        Ok(job)
    }

    /// Changes a job that is not over; nothing happens to one that is. Answers what is stored then.
    pub(crate) async fn change_job(
        &self,
        id: &str,
        change: impl FnOnce(&mut JobRecord) -> Result<()>,
    ) -> Result<Arc<JobRecord>> {
        let mut counters = self.inner.control.lock().await;
        self.change_job_with(&mut counters, id, change).await
    }

    /// The same for a caller who keeps the catalog from changing.
    pub(crate) async fn change_job_with(
        &self,
        counters: &mut Counters,
        id: &str,
        change: impl FnOnce(&mut JobRecord) -> Result<()>,
    ) -> Result<Arc<JobRecord>> {
        let mut catalog = Catalog::clone(&self.catalog());
        let current = catalog.job(id).cloned().ok_or_else(|| no_such_job(id))?;
        if current.state.is_over() {
            return Ok(current);
        }
        let mut job = JobRecord::clone(&current);
        change(&mut job)?;
        let mut records = vec![Record::Job(Box::new(job.clone()))];
        let mut gone = Vec::new();
        let abandoned = catalog.container_by_rid(job.target).cloned().filter(|container| {
            container.is_hidden && matches!(job.state, JobState::Failed | JobState::Cancelled)
        });
        if let Some(container) = &abandoned {
            records.push(Record::Dropped(dropped(container)));
            gone = removed_ids(container, &catalog);
        }
        let next = counters.clone();
        self.store(counters, next, records, gone).await?;
        if abandoned.is_some() {
            catalog.remove_container(job.target);
        }
        let job = catalog.put_job(job);
        catalog.refresh(job.source);
        self.publish(catalog);
        if let Some(container) = &abandoned {
            self.purge_later(container);
        }
        Ok(job)
    }

    /// Forgets a job that is over.
    pub(crate) async fn remove_job(&self, id: &str) -> Result<()> {
        let mut counters = self.inner.control.lock().await;
        let mut catalog = Catalog::clone(&self.catalog());
        let job = catalog.job(id).ok_or_else(|| no_such_job(id))?;
        if !job.state.is_over() {
            return Err(Error::invalid("A job is deleted when it is over; cancel it first."));
        }
        let next = counters.clone();
        self.store(&mut counters, next, vec![], vec![record_id(id)]).await?;
        let target = job.target;
        catalog.jobs.remove(id);
        catalog.refresh(target);
        self.publish(catalog);
        Ok(())
    }

    /// Gives the hidden target of a job the place of its source: name, offer and scripts. One transaction of the
    /// catalog does it, and the caller has seen to it that nobody writes to the source.
    pub(crate) async fn exchange(&self, counters: &mut Counters, job: JobRecord) -> Result<Arc<JobRecord>> {
        let mut catalog = Catalog::clone(&self.catalog());
        let missing = || ErrorKind::NotFound(ResourceKind::Container);
        let old = catalog.container_by_rid(job.source).cloned().ok_or_else(missing)?;
        let new = catalog.container_by_rid(job.target).cloned().ok_or_else(missing)?;
        let offer = self.stored_offer(&catalog, job.source)?;
        let offer = offer.map(|offer| OfferRecord { target: job.target, ..offer });
        let children = moved_children(&catalog, job.source, job.target)?;
        let settings = carried_settings(&old);
        let mut records = vec![Record::Job(Box::new(job.clone())), Record::Dropped(dropped(&old))];
        records.extend(offer.clone().map(Record::Offer));
        records.extend(children.iter().cloned().map(Record::Child));
        records.extend(
            settings
                .clone()
                .map(|settings| Record::Throughput(ThroughputRecord { rid: job.target, settings })),
        );
        let kept = offer.as_ref().map(|offer| Record::Offer(offer.clone()).id());
        let mut gone = removed_ids(&old, &catalog);
        gone.retain(|id| Some(id) != kept.as_ref());
        let next = counters.clone();
        let written = self.store(counters, next, records, gone).await?;
        catalog.remove_container(job.source);
        let job = catalog.put_job(job);
        let shared_budget = old.shared_budget.clone();
        let throughput = Arc::new(settings.unwrap_or_default());
        let seen = Container { is_hidden: false, shared_budget, throughput, ..Container::clone(&new) };
        let new = catalog.put_container(seen);
        if let Some(offer) = &offer {
            catalog.put_offer(make_offer(offer, &written[2], &catalog));
            new.set_budgets(Some(offer.throughput), &self.inner.options, self.world().monotonic());
        }
        let first_child = 2 + usize::from(offer.is_some());
        for (child, header) in children.iter().zip(&written[first_child..]) {
            catalog.put_child(children::load_child(child, header).map_err(Error::invalid)?);
        }
        catalog.refresh(job.target);
        self.publish(catalog);
        // Who waited to write there must ask again; nothing of it may be done by a container that is going.
        for range in &old.ranges {
            range.hand_over(&[], &self.inner.committer);
        }
        self.purge_later(&old);
        Ok(job)
    }

    /// The record of a container's own offer, as it is stored.
    fn stored_offer(&self, catalog: &Catalog, container: Rid) -> Result<Option<OfferRecord>> {
        let Some(offer) = catalog.offer_of(container) else { return Ok(None) };
        let range = &self.inner.catalog_range;
        let lsn = range.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        let view = View::new(&range.partition, &snapshot, lsn, Lifetimes::ENDLESS);
        let item = view.item(&Epk::MIN, &record_target(format!("offer:{}", offer.rid)));
        match item.map_err(ErrorKind::from)?.map(|item| Record::from_doc(&item.doc)) {
            Some(Ok(Record::Offer(record))) => Ok(Some(record)),
            _ => Err(Error::invalid("The offer of the container could not be read.")),
        }
    }
}

impl Catalog {
    /// Gives a new job its id, if there is room for it.
    fn check_job(&self, job: &mut JobRecord, next: &mut Counters) -> Result<()> {
        if self.jobs.len() >= JOBS_MAX {
            let message = format!("There are {JOBS_MAX} jobs; delete some of those that are over.");
            return Err(ErrorKind::QuotaExceeded(QuotaKind::Children, message).into());
        }
        let names = |other: &Arc<JobRecord>| [other.source, other.target];
        let is_exclusive = job.kind == JobKind::Rekey;
        let clash = self.jobs().filter(|other| !other.state.is_over()).find(|other| {
            let is_other_exclusive = other.kind == JobKind::Rekey;
            let shares = names(other).contains(&job.source) || names(other).contains(&job.target);
            shares && (is_exclusive || is_other_exclusive)
                || other.target == job.target
                || other.source == job.target
                || other.target == job.source
        });
        if let Some(other) = clash {
            return Err(Error::invalid(format!(
                "Job '{}' is already working on one of these containers.",
                other.id
            )));
        }
        next.child += 1;
        job.id = format!("job-{:06}", next.child);
        Ok(())
    }
}

/// What of a container's throughput settings another can have: shares belong to its own partitions.
fn carried_settings(container: &Container) -> Option<Settings> {
    let settings = Settings { shares: Vec::new(), ..Settings::clone(&container.throughput) };
    (settings != Settings::default()).then_some(settings)
}

/// The scripts of a container, made those of another.
fn moved_children(catalog: &Catalog, from: Rid, to: Rid) -> Result<Vec<ChildRecord>> {
    let mut moved = Vec::new();
    for kind in BELOW_CONTAINERS {
        for child in catalog.children(kind, from) {
            let body = to_json(&child.resource.body)?;
            let rid = kind.rid(to, child.number);
            moved.push(ChildRecord { rid, child: kind, owner: to, number: child.number, body });
        }
    }
    Ok(moved)
}

pub(crate) fn no_such_job(id: &str) -> Error {
    let shown: String = id.chars().take(64).collect();
    Error::invalid(format!("There is no job '{shown}'."))
}
