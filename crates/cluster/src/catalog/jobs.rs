//! Jobs that copy containers, as records of the catalog, and the exchange of one container for another.
//!
//! Two things depend on the jobs that are under way and are therefore not stored with containers: whether a container
//! records all changes, because a job follows it, and whether it is hidden, because it is going to take the
//! place of another.

use std::sync::Arc;

use orrery_doc::{Epk, PartitionKeyDef};
use orrery_store::limits::JOBS_MAX;
use orrery_store::{Lifetimes, View};

use super::changes::{container_of, dropped, new_container, new_index, record_target, removed_ids};
use super::record::{
    ChildRecord, Counters, OfferRecord, Record, RecordId, ThroughputRecord, to_doc, to_json,
};
use super::{Catalog, ChildKind, Container, ContainerDefinition};
use crate::copy::{JobKind, JobRecord, JobState};
use crate::db::Db;
use crate::error::{Error, ErrorKind, QuotaKind, Result};
use crate::resource::ResourceKind;
use crate::rid::Rid;
use crate::throughput::Settings;

/// What hangs below containers.
const BELOW_CONTAINERS: [ChildKind; 4] =
    [ChildKind::Procedure, ChildKind::Trigger, ChildKind::Function, ChildKind::ContainerSetting];

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
}

impl Db {
    /// Stores a new job, whose id is given here, and has its source record all changes from now on.
    pub(crate) async fn insert_job(&self, mut job: JobRecord) -> Result<Arc<JobRecord>> {
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        self.catalog().check_job(&mut job, &mut next)?;
        self.put_job_record(&mut counters, next, job).await
    }

    /// The same for a job whose target is a new container that nobody sees yet.
    pub(crate) async fn insert_rekey(
        &self,
        mut job: JobRecord,
        definition: &ContainerDefinition,
    ) -> Result<Arc<JobRecord>> {
        let mut counters = self.inner.control.lock().await;
        let mut next = counters.clone();
        let catalog = self.catalog();
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
        let id = job.id.clone();
        let records = vec![
            Record::Container(record),
            Record::Index(index),
            Record::Ranges(ranges),
            Record::Job(Box::new(job)),
        ];
        let catalog = self.change_catalog(&mut counters, next, records, vec![]).await?;
        job_of(&catalog, &id)
    }

    async fn put_job_record(
        &self,
        counters: &mut Counters,
        next: Counters,
        job: JobRecord,
    ) -> Result<Arc<JobRecord>> {
        let id = job.id.clone();
        let catalog = self.change_catalog(counters, next, vec![Record::Job(Box::new(job))], vec![]).await?;
        job_of(&catalog, &id)
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
        let catalog = self.catalog();
        let current = job_of(&catalog, id)?;
        if current.state.is_over() {
            return Ok(current);
        }
        let mut job = JobRecord::clone(&current);
        change(&mut job)?;
        let abandoned = catalog.container_by_rid(job.target).cloned().filter(|container| {
            container.is_hidden && matches!(job.state, JobState::Failed | JobState::Cancelled)
        });
        let next = counters.clone();
        let Some(container) = abandoned else { return self.put_job_record(counters, next, job).await };
        let gone = removed_ids(&container, &catalog);
        let records = vec![Record::Job(Box::new(job)), Record::Dropped(dropped(&container))];
        let catalog = self.change_catalog(counters, next, records, gone).await?;
        self.purge_later(&container);
        job_of(&catalog, id)
    }

    /// Forgets a job that is over.
    pub(crate) async fn remove_job(&self, id: &str) -> Result<()> {
        let mut counters = self.inner.control.lock().await;
        let job = job_of(&self.catalog(), id)?;
        if !job.state.is_over() {
            return Err(Error::invalid("A job is deleted when it is over; cancel it first."));
        }
        let next = counters.clone();
        self.change_catalog(&mut counters, next, vec![], vec![RecordId::Job(id.to_owned())]).await?;
        Ok(())
    }

    /// Gives the hidden target of a job the place of its source: name, offer and scripts. One transaction of the
    /// catalog does it, and the caller has seen to it that nobody writes to the source.
    pub(crate) async fn exchange(&self, counters: &mut Counters, job: JobRecord) -> Result<Arc<JobRecord>> {
        let catalog = self.catalog();
        let old = container_of(&catalog, job.source)?;
        container_of(&catalog, job.target)?;
        let offer = self.stored_offer(&catalog, job.source)?;
        let offer = offer.map(|offer| OfferRecord { target: job.target, ..offer });
        let children = moved_children(&catalog, job.source, job.target)?;
        let settings = carried_settings(&old);
        let kept = offer.as_ref().map(|offer| RecordId::Offer(offer.rid));
        let (id, target) = (job.id.clone(), job.target);
        let mut records = vec![Record::Job(Box::new(job)), Record::Dropped(dropped(&old))];
        records.extend(offer.map(Record::Offer));
        records.extend(children.into_iter().map(Record::Child));
        records
            .extend(settings.map(|settings| Record::Throughput(ThroughputRecord { rid: target, settings })));
        let mut gone = removed_ids(&old, &catalog);
        gone.retain(|id| Some(id) != kept.as_ref());
        let next = counters.clone();
        let catalog = self.change_catalog(counters, next, records, gone).await?;
        // Who waited to write there must ask again; nothing of it may be done by a container that is going.
        for range in &old.ranges {
            range.hand_over(&[], &self.inner.committer);
        }
        self.purge_later(&old);
        job_of(&catalog, &id)
    }

    /// The record of a container's own offer, as it is stored.
    fn stored_offer(&self, catalog: &Catalog, container: Rid) -> Result<Option<OfferRecord>> {
        let Some(offer) = catalog.offer_of(container) else { return Ok(None) };
        let range = &self.inner.catalog_range;
        let lsn = range.replica.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        let view = View::new(&range.replica.partition, &snapshot, lsn, Lifetimes::ENDLESS);
        let item = view.item(&Epk::MIN, &record_target(&RecordId::Offer(offer.rid)));
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

fn job_of(catalog: &Catalog, id: &str) -> Result<Arc<JobRecord>> {
    catalog.job(id).cloned().ok_or_else(|| no_such_job(id))
}

pub(crate) fn no_such_job(id: &str) -> Error {
    let shown: String = id.chars().take(64).collect();
    Error::invalid(format!("There is no job '{shown}'."))
}
