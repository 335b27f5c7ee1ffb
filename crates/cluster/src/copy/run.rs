//! The task that does the work of one job, step by step.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use orrery_store::limits::{JOB_PAGE_ITEMS, JOB_PARKED_MAX};
use orrery_store::{Fault, TICKS_PER_SECOND};

use super::align::{Aligned, Pair};
use super::control::Live;
use super::job::{
    Collision, CollisionCause, Interval, JobKind, JobMode, JobProgress, JobRecord, JobState, Place,
};
use super::{control, source};
use crate::catalog::ContainerDefinition;
use crate::db::{Db, Inner};
use crate::error::{Error, ErrorKind, Result};
use crate::world::World;

/// How often progress is stored, unless much was done before.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
const SAVE_ITEMS: usize = 5 * JOB_PAGE_ITEMS;
/// Between two looks at a source to which nobody writes.
const IDLE: Duration = Duration::from_millis(25);
const PAUSED: Duration = Duration::from_secs(1);
/// Before trying again what was refused for now.
const REFUSED: Duration = Duration::from_millis(250);

pub(super) struct Runner {
    inner: Weak<Inner>,
    pub id: String,
    live: Arc<Live>,
    world: World,
    pub progress: JobProgress,
    unsaved: usize,
    saved: Instant,
    /// When the next page may begin, for the rate, and what was done up to the one before.
    due: Instant,
    paced: u64,
}

/// Why a job does not go on.
pub(super) enum Stop {
    /// The server stops; the job goes on when it starts again.
    Stopping,
    /// Something is full or has moved; the same again, a little later.
    Again,
    /// The job is over, by its own or by a client's decision.
    Over,
    Failed(String),
}

/// What a step has come to.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    /// There is nothing to do for the moment.
    Idle,
}

pub(super) type Stopped<T> = std::result::Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error.kind {
            ErrorKind::Fault { fault: Fault::Stopping, .. } => Stop::Stopping,
            ErrorKind::RangeGone
            | ErrorKind::Overloaded
            | ErrorKind::Fault { fault: Fault::DiskFull, .. } => Stop::Again,
            kind => Stop::Failed(kind.to_string()),
        }
    }
}

impl Runner {
    pub fn new(inner: Weak<Inner>, id: String, live: Arc<Live>, world: World) -> Runner {
        let now = world.monotonic();
        let progress = JobProgress::default();
        Runner { inner, id, live, world, progress, unsaved: 0, saved: now, due: now, paced: 0 }
    }

    pub async fn run(mut self) {
        let Some(db) = self.db() else { return };
        if let Some(job) = db.catalog().job(&self.id) {
            self.progress = job.progress.clone();
            self.paced = self.progress.items_copied + self.progress.changes_applied;
        }
        drop(db);
        // Nothing of the database is held between two steps, so that it can go.
        while let Some(db) = self.db() {
            let pause = match self.turn(&db).await {
                Ok(None) => continue,
                Ok(Some(pause)) => pause,
                Err(Stop::Stopping | Stop::Over) => return,
                Err(Stop::Again) => REFUSED,
                Err(Stop::Failed(reason)) => {
                    if self.fail(&db, reason).await {
                        return;
                    }
                    REFUSED
                }
            };
            drop(db);
            let changed = self.live.changed.notified();
            let _ = self.world.timeout(pause, changed).await;
        }
    }

    fn db(&self) -> Option<Db> {
        Db::alive(&self.inner)
    }

    /// One step, if the job is to go on; says how long to wait until the next.
    async fn turn(&mut self, db: &Db) -> Stopped<Option<Duration>> {
        let job = db.catalog().job(&self.id).cloned().ok_or(Stop::Over)?;
        match job.state {
            JobState::Paused => {
                if self.unsaved > 0 {
                    self.save(db).await?;
                }
                Ok(Some(PAUSED))
            }
            JobState::Running | JobState::Completing => {
                let early = self.world.until(self.due);
                if !early.is_zero() {
                    self.pair(db, &job)?;
                    return Ok(Some(early.min(PAUSED)));
                }
                match self.step(db, &job).await? {
                    Step::Done => Ok(None),
                    Step::Idle => Ok(Some(IDLE)),
                }
            }
            JobState::Completed | JobState::Failed | JobState::Cancelled => Err(Stop::Over),
        }
    }

    pub fn pair(&self, db: &Db, job: &JobRecord) -> Stopped<Pair> {
        let catalog = db.catalog();
        let find = |rid, what| {
            let found = catalog.container_by_rid(rid).cloned();
            found.ok_or_else(|| Stop::Failed(format!("The {what} of the job was deleted.")))
        };
        let (source, target) = (find(job.source, "source")?, find(job.target, "target")?);
        Ok(Pair { db: db.clone(), source, target, deadline: None })
    }

    async fn step(&mut self, db: &Db, job: &JobRecord) -> Stopped<Step> {
        let pair = self.pair(db, job)?;
        if self.progress.intervals.is_empty() {
            return self.begin(db, job, &pair).await;
        }
        self.cut_at_ranges(&pair);
        if let Some(place) = self.progress.intervals.iter().position(|interval| !interval.is_walked) {
            self.walk(&pair, place, job.rate).await?;
            self.pace(db, job).await?;
            return Ok(Step::Done);
        }
        self.check_collisions()?;
        if job.mode == JobMode::Offline {
            return self.finish_offline(db, &pair).await;
        }
        let (pending, behind) = source::pending(&pair.source, &self.progress.intervals);
        let is_near = self.live.pulse.lock().is_near(pending, self.world.monotonic());
        for place in &behind {
            self.follow(&pair, *place, job.rate).await?;
            self.pace(db, job).await?;
        }
        if is_near && job.state == JobState::Completing {
            self.keep_definition(db, job, &pair).await?;
            self.save(db).await?;
            self.cut_over(db, job).await?;
            return Err(Stop::Over);
        }
        if behind.is_empty() { Ok(Step::Idle) } else { Ok(Step::Done) }
    }

    /// Notes where the source stands now that all of its writers record what they do.
    async fn begin(&mut self, db: &Db, job: &JobRecord, pair: &Pair) -> Stopped<Step> {
        let mut intervals = Vec::new();
        for range in &pair.source.ranges {
            if job.mode == JobMode::Online {
                // A group that was under way when the job was made does not record its writes.
                range.settle(&db.inner.committer).await.map_err(|_| Stop::Again)?;
            }
            intervals.push(Interval::new(range.epk(), range.replica.partition.lsn()));
        }
        self.progress.intervals = intervals;
        self.save(db).await?;
        Ok(Step::Done)
    }

    /// After a split an interval may span several partitions.
    pub fn cut_at_ranges(&mut self, pair: &Pair) {
        let mut place = 0;
        while place < self.progress.intervals.len() {
            let interval = &mut self.progress.intervals[place];
            let end = pair.source.range_of(&interval.min).epk().max.clone();
            if end < interval.max {
                let right = interval.cut(&end);
                self.progress.intervals.insert(place + 1, right);
            }
            place += 1;
        }
    }

    async fn walk(&mut self, pair: &Pair, place: usize, rate: u32) -> Stopped<()> {
        let page = source::walk(&pair.db, &pair.source, &self.progress.intervals[place], rate)?;
        let count = page.items.len();
        let last = page.items.last().map(|(key, _)| Place::from(key.clone()));
        let aligned = pair.align(pair.wishes_of_items(page.items)).await?;
        self.note(aligned, true)?;
        let interval = &mut self.progress.intervals[place];
        interval.is_walked = page.is_last;
        interval.after = last.or(interval.after.take());
        self.progress.items_copied += count as u64;
        self.unsaved += count.max(1);
        Ok(())
    }

    /// Follows one page of changes.
    pub async fn follow(&mut self, pair: &Pair, place: usize, rate: u32) -> Stopped<()> {
        let page = source::changes(&pair.db, &pair.source, &self.progress.intervals[place], rate)?;
        let count = page.changes.len();
        let parked = &self.progress.parked;
        let wishes = pair.db.world().blocking(|| pair.wishes_of_changes(page.changes, parked))?;
        let aligned = pair.align(wishes).await?;
        // Not before the target has answered, since all of this may be tried again.
        self.progress.parked.clear();
        self.note(aligned, false)?;
        self.progress.intervals[place].set_cursor(page.seen);
        self.progress.changes_applied += count as u64;
        self.unsaved += count;
        Ok(())
    }

    /// Tries the parked items once more, at a moment when nothing else is on the way, and tells which still have no
    /// place.
    pub async fn settle_parked(&mut self, pair: &Pair) -> Stopped<()> {
        if self.progress.parked.is_empty() {
            return Ok(());
        }
        let aligned = pair.align(pair.wishes_of_changes(vec![], &self.progress.parked)?).await?;
        self.progress.parked.clear();
        self.refuse_collisions(aligned.collisions)
    }

    /// While items are walked through, collisions are counted; later the first one ends the job. Unique keys get
    /// another chance: the other item may have changed since it was copied.
    fn note(&mut self, aligned: Aligned, counts: bool) -> Stopped<()> {
        let (unique, collisions): (Vec<_>, Vec<_>) = aligned
            .collisions
            .into_iter()
            .partition(|collision| collision.cause == CollisionCause::UniqueKey);
        match counts {
            true => collisions.into_iter().for_each(|collision| self.progress.collisions.add(collision)),
            false => self.refuse_collisions(collisions)?,
        }
        self.progress.parked.extend(aligned.parked);
        if self.progress.parked.len() > JOB_PARKED_MAX {
            self.refuse_collisions(unique)?;
        }
        Ok(())
    }

    fn refuse_collisions(&mut self, collisions: Vec<Collision>) -> Stopped<()> {
        collisions.into_iter().for_each(|collision| self.progress.collisions.add(collision));
        self.check_collisions()
    }

    fn check_collisions(&self) -> Stopped<()> {
        match self.progress.collisions.count {
            0 => Ok(()),
            count => Err(Stop::Failed(format!(
                "{count} items have no place in the target: another item has the same id under the same new key, or \
                 the same values at a unique key, or the new key is too long. Nothing has changed in the source."
            ))),
        }
    }

    async fn finish_offline(&mut self, db: &Db, pair: &Pair) -> Stopped<Step> {
        self.settle_parked(pair).await?;
        let progress = self.progress.clone();
        db.change_job(&self.id, |job| {
            job.progress = progress;
            job.state = JobState::Completed;
            job.ended = Some(self.world.now() / TICKS_PER_SECOND);
            Ok(())
        })
        .await?;
        Err(Stop::Over)
    }

    /// The source may have been given another policy since; what takes its place has the same.
    async fn keep_definition(&self, db: &Db, job: &JobRecord, pair: &Pair) -> Stopped<()> {
        if let Some(definition) = pair.definition_to_keep(job)? {
            db.replace_container(job.target, definition, None).await?;
        }
        Ok(())
    }

    /// Stores progress when there is much of it, and notes when the rate allows to go on.
    async fn pace(&mut self, db: &Db, job: &JobRecord) -> Stopped<()> {
        self.live.pulse.lock().note(&self.progress, self.world.monotonic());
        let before = self.saved;
        if self.unsaved >= SAVE_ITEMS || self.unsaved > 0 && self.world.since(before) >= SAVE_INTERVAL {
            self.save(db).await?;
        }
        let total = self.progress.items_copied + self.progress.changes_applied;
        let done = total.saturating_sub(std::mem::replace(&mut self.paced, total));
        let now = self.world.monotonic();
        self.due = self.due.max(now - REFUSED) + Duration::from_secs_f64(done as f64 / f64::from(job.rate));
        Ok(())
    }

    /// Makes progress durable; the state is what the owner wants by now.
    pub async fn save(&mut self, db: &Db) -> Stopped<()> {
        let progress = self.progress.clone();
        db.change_job(&self.id, |job| {
            job.progress = progress;
            Ok(())
        })
        .await?;
        (self.unsaved, self.saved) = (0, self.world.monotonic());
        Ok(())
    }

    /// Ends the job; false when that could not be stored.
    async fn fail(&mut self, db: &Db, reason: String) -> bool {
        tracing::warn!(job = self.id, reason, "a job has failed");
        let progress = self.progress.clone();
        let stored = db.change_job(&self.id, |job| {
            job.progress = progress;
            job.state = JobState::Failed;
            job.failure = Some(reason);
            job.ended = Some(self.world.now() / TICKS_PER_SECOND);
            Ok(())
        });
        stored.await.is_ok()
    }
}

impl Pair {
    /// The definition that the target of a re-keying must get, if it is not as it should be.
    pub fn definition_to_keep(&self, job: &JobRecord) -> Result<Option<ContainerDefinition>> {
        if job.kind != JobKind::Rekey {
            return Ok(None);
        }
        let key = control::key_of(&self.target.definition)?;
        let wanted = control::rekeyed(&self.source.definition, &key)?;
        let is_same = wanted.body.bytes() == self.target.definition.body.bytes();
        Ok((!is_same).then_some(wanted))
    }
}
