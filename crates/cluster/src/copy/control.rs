//! What an operator may ask of jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::json;
use orrery_store::TICKS_PER_SECOND;
use orrery_store::limits::{JOB_RATE_DEFAULT, JOB_RATE_MAX, RESOURCE_DEPTH_MAX};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Notify;

use super::job::{ContainerName, JobKind, JobMode, JobProgress, JobRecord, JobState};
use super::run::Runner;
use crate::catalog::{Container, ContainerDefinition};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::resource::ResourceKind;

/// Over how long the rate of a job is taken.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Writes that may be left to follow when the cut-over begins, however slow the job is.
const CUT_OVER_LAG: u64 = 500;

/// Copying one container into another.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CopyRequest {
    pub source: ContainerName,
    pub target: ContainerName,
    #[serde(default)]
    pub mode: JobMode,
    /// Items in a second at most.
    pub rate: Option<u32>,
    /// Cut over as soon as the copy has caught up, without being asked.
    #[serde(default)]
    pub completes_itself: bool,
}

/// Giving a container another partition key.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RekeyRequest {
    pub container: ContainerName,
    /// As the definition of a container has it.
    pub partition_key: serde_json::Value,
    pub rate: Option<u32>,
    #[serde(default = "yes")]
    pub completes_itself: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobPhase {
    /// Items are walked through and copied.
    Copying,
    /// All items were copied; changes are followed.
    Following,
    Over,
}

/// A job and how it goes.
#[derive(Clone, Debug)]
pub struct JobReport {
    pub job: Arc<JobRecord>,
    pub phase: JobPhase,
    /// What the source holds now.
    pub items_total: u64,
    pub items_copied: u64,
    pub changes_applied: u64,
    /// Writes of the source that are still to be looked at.
    pub changes_pending: u64,
    pub percent: f64,
    /// Items and changes in a second, over the last seconds.
    pub rate: f64,
    pub seconds_remaining: Option<u64>,
}

/// The jobs that are under way.
#[derive(Default)]
pub(crate) struct Jobs {
    live: Mutex<HashMap<String, Arc<Live>>>,
}

/// What is known of a job beyond what is stored.
#[derive(Default)]
pub(super) struct Live {
    /// Told when the owner has changed the job.
    pub changed: Notify,
    pub pulse: Mutex<Pulse>,
}

/// How far the job has come by now, and how far it was a while ago.
#[derive(Default)]
pub(super) struct Pulse {
    pub items_copied: u64,
    pub changes_applied: u64,
    pub is_walked: bool,
    /// What was left to follow at the last look.
    pending: Option<u64>,
    samples: std::collections::VecDeque<(Instant, u64)>,
}

impl Pulse {
    pub fn note(&mut self, progress: &JobProgress, now: Instant) {
        (self.items_copied, self.changes_applied) = (progress.items_copied, progress.changes_applied);
        self.is_walked = progress.is_walked();
        self.samples.push_back((now, progress.items_copied + progress.changes_applied));
        while self.samples.len() > 2 && self.samples[1].0 + RATE_WINDOW < now {
            self.samples.pop_front();
        }
    }

    /// Notes what is left to follow; says whether half a second is enough for it.
    pub fn is_near(&mut self, pending: u64, now: Instant) -> bool {
        self.pending = Some(pending);
        pending <= CUT_OVER_LAG.max(self.rate(now) as u64 / 2)
    }

    fn rate(&self, now: Instant) -> f64 {
        let (Some((since, before)), Some((_, after))) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let seconds = now.saturating_duration_since(*since).as_secs_f64();
        if seconds > 0.0 { (after - before) as f64 / seconds } else { 0.0 }
    }
}

impl JobProgress {
    /// Whether every item that was there has been copied.
    pub fn is_walked(&self) -> bool {
        !self.intervals.is_empty() && self.intervals.iter().all(|interval| interval.is_walked)
    }
}

impl Db {
    /// Starts to copy a container into another.
    pub async fn copy_container(&self, request: CopyRequest) -> Result<JobReport> {
        let source = self.container_named(&request.source)?;
        let target = self.container_named(&request.target)?;
        if source.resource.rid == target.resource.rid {
            return Err(Error::invalid("A container cannot be copied into itself."));
        }
        let job = JobRecord {
            id: String::new(),
            kind: JobKind::Copy,
            mode: request.mode,
            state: if request.completes_itself { JobState::Completing } else { JobState::Running },
            source: source.resource.rid,
            target: target.resource.rid,
            source_name: request.source,
            target_name: request.target,
            previous_key: None,
            rate: check_rate(request.rate)?,
            completes_itself: request.completes_itself || request.mode == JobMode::Offline,
            created: self.world().now() / TICKS_PER_SECOND,
            ended: None,
            progress: JobProgress::default(),
            failure: None,
            cut_over: None,
        };
        let job = self.carry(|db| async move { db.start(db.insert_job(job).await?) }).await?;
        Ok(self.report(job))
    }

    /// Starts to give a container another partition key.
    pub async fn rekey_container(&self, request: RekeyRequest) -> Result<JobReport> {
        let source = self.container_named(&request.container)?;
        let definition = rekeyed(&source.definition, &request.partition_key)?;
        if definition.key == source.definition.key {
            return Err(Error::invalid("The container has this partition key already."));
        }
        let rid = source.resource.rid;
        let job = JobRecord {
            id: String::new(),
            kind: JobKind::Rekey,
            mode: JobMode::Online,
            state: if request.completes_itself { JobState::Completing } else { JobState::Running },
            source: rid,
            target: rid,
            source_name: request.container.clone(),
            target_name: request.container,
            previous_key: Some(key_of(&source.definition)?),
            rate: check_rate(request.rate)?,
            completes_itself: request.completes_itself,
            created: self.world().now() / TICKS_PER_SECOND,
            ended: None,
            progress: JobProgress::default(),
            failure: None,
            cut_over: None,
        };
        let job = self.carry(|db| async move { db.start(db.insert_rekey(job, &definition).await?) }).await?;
        Ok(self.report(job))
    }

    fn start(&self, job: Arc<JobRecord>) -> Result<Arc<JobRecord>> {
        self.run_job(&job.id);
        Ok(job)
    }

    pub fn jobs(&self) -> Vec<JobReport> {
        self.catalog().jobs().map(|job| self.report(job.clone())).collect()
    }

    pub fn job(&self, id: &str) -> Option<JobReport> {
        self.catalog().job(id).map(|job| self.report(job.clone()))
    }

    pub async fn pause_job(&self, id: &str) -> Result<JobReport> {
        self.set_job_state(id, |job| match job.state {
            JobState::Running | JobState::Completing => Ok(JobState::Paused),
            state => Ok(state),
        })
        .await
    }

    pub async fn resume_job(&self, id: &str) -> Result<JobReport> {
        self.set_job_state(id, |job| match (job.state, job.completes_itself) {
            (JobState::Paused, true) => Ok(JobState::Completing),
            (JobState::Paused, false) => Ok(JobState::Running),
            (state, _) => Ok(state),
        })
        .await
    }

    /// Ends a job; what was copied into a container of a name stays there.
    pub async fn cancel_job(&self, id: &str) -> Result<JobReport> {
        self.set_job_state(id, |_| Ok(JobState::Cancelled)).await
    }

    /// Cuts over as soon as the copy has caught up.
    pub async fn complete_job(&self, id: &str) -> Result<JobReport> {
        self.set_job_state(id, |job| match job.state {
            JobState::Paused => Err(Error::invalid("The job is paused; resume it first.")),
            _ => Ok(JobState::Completing),
        })
        .await
    }

    /// Forgets a job that is over.
    pub async fn delete_job(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.carry(|db| async move { db.remove_job(&id).await }).await
    }

    async fn set_job_state(
        &self,
        id: &str,
        next: impl FnOnce(&JobRecord) -> Result<JobState> + Send + 'static,
    ) -> Result<JobReport> {
        let world = self.world().clone();
        let change = move |job: &mut JobRecord| {
            job.state = next(job)?;
            if job.state.is_over() {
                job.ended = Some(world.now() / TICKS_PER_SECOND);
            }
            job.completes_itself |= job.state == JobState::Completing;
            Ok(())
        };
        let name = id.to_owned();
        let job = self.carry(|db| async move { db.change_job(&name, change).await }).await?;
        if let Some(live) = self.inner.jobs.live.lock().get(id) {
            live.changed.notify_one();
        }
        Ok(self.report(job))
    }

    /// Goes on with what a restart interrupted.
    pub(crate) fn resume_jobs(&self) {
        for job in self.catalog().jobs().filter(|job| !job.state.is_over()) {
            self.run_job(&job.id);
        }
    }

    fn run_job(&self, id: &str) {
        let live = Arc::new(Live::default());
        self.inner.jobs.live.lock().insert(id.to_owned(), live.clone());
        let (inner, id, world) = (Arc::downgrade(&self.inner), id.to_owned(), self.world().clone());
        self.world().spawn(async move {
            Runner::new(inner.clone(), id.clone(), live, world).run().await;
            if let Some(inner) = inner.upgrade() {
                inner.jobs.live.lock().remove(&id);
            }
        });
    }

    fn container_named(&self, name: &ContainerName) -> Result<Arc<Container>> {
        name.check()?;
        let catalog = self.catalog();
        let database = catalog.database(&name.database).ok_or(ErrorKind::NotFound(ResourceKind::Database))?;
        let container = database.container(&name.container).cloned();
        container.ok_or_else(|| ErrorKind::NotFound(ResourceKind::Container).into())
    }

    fn report(&self, job: Arc<JobRecord>) -> JobReport {
        let live = self.inner.jobs.live.lock().get(&job.id).cloned();
        let (mut items_copied, mut changes_applied) =
            (job.progress.items_copied, job.progress.changes_applied);
        let (mut is_walked, mut rate, mut pending) = (job.progress.is_walked(), 0.0, None);
        if let Some(live) = live.filter(|_| !job.state.is_over()) {
            let pulse = live.pulse.lock();
            items_copied = items_copied.max(pulse.items_copied);
            changes_applied = changes_applied.max(pulse.changes_applied);
            (is_walked, rate, pending) =
                (is_walked || pulse.is_walked, pulse.rate(self.world().monotonic()), pulse.pending);
        }
        let source = self.catalog().container_by_rid(job.source).cloned();
        let items_total = source.as_ref().map_or(items_copied, |source| source.usage().items);
        let changes_pending = match (&source, job.follows()) {
            (Some(source), true) => {
                pending.unwrap_or_else(|| super::source::pending(source, &job.progress.intervals).0)
            }
            _ => 0,
        };
        let phase = match (job.state.is_over(), is_walked) {
            (true, _) => JobPhase::Over,
            (false, true) => JobPhase::Following,
            (false, false) => JobPhase::Copying,
        };
        let percent = match (job.state, phase) {
            (JobState::Completed, _) => 100.0,
            (_, JobPhase::Following) => 99.9,
            _ => (items_copied as f64 * 100.0 / items_total.max(1) as f64).min(99.9),
        };
        let left = if is_walked { changes_pending } else { items_total.saturating_sub(items_copied) };
        let is_working = matches!(job.state, JobState::Running | JobState::Completing);
        let seconds_remaining = (is_working && rate >= 1.0).then(|| (left as f64 / rate).ceil() as u64);
        JobReport {
            job,
            phase,
            items_total,
            items_copied,
            changes_applied,
            changes_pending,
            percent,
            rate,
            seconds_remaining,
        }
    }
}

fn check_rate(rate: Option<u32>) -> Result<u32> {
    match rate {
        None => Ok(JOB_RATE_DEFAULT),
        Some(rate) if (1..=JOB_RATE_MAX).contains(&rate) => Ok(rate),
        Some(_) => {
            Err(Error::invalid(format!("The rate of a job is 1 to {JOB_RATE_MAX} items in a second.")))
        }
    }
}

/// The definition of a container with another key.
pub(super) fn rekeyed(current: &ContainerDefinition, key: &serde_json::Value) -> Result<ContainerDefinition> {
    let nested = |_| Error::invalid("The definition of the container is nested too deeply.");
    let mut body = body_of(current)?;
    body["partitionKey"] = key.clone();
    let doc = json::parse(body.to_string().as_bytes(), RESOURCE_DEPTH_MAX).map_err(nested)?;
    ContainerDefinition::parse(&doc)
}

/// The partition key as the definition has it.
pub(super) fn key_of(definition: &ContainerDefinition) -> Result<serde_json::Value> {
    Ok(body_of(definition)?["partitionKey"].take())
}

fn body_of(definition: &ContainerDefinition) -> Result<serde_json::Value> {
    let mut text = Vec::new();
    json::write(definition.body.root(), &mut text);
    serde_json::from_slice(&text).map_err(|error| Error::invalid(error.to_string()))
}
