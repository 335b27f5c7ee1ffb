//! The moment in which the target has everything: writes to the source wait, the rest is followed, and the job is done.
//!
//! The catalog does not change meanwhile, and no partition splits or merges. What takes too long is given up: writers
//! go on, and the job tries again when it has caught up.

use std::sync::Arc;

use orrery_store::TICKS_PER_SECOND;
use orrery_store::limits::JOB_HOLD_TIME_MAX;

use super::align::Pair;
use super::job::{CutOver, JobKind, JobRecord, JobState, RangeLsn};
use super::run::{Runner, Stop, Stopped};
use super::source;
use crate::committer::Committer;
use crate::db::Db;
use crate::error::Error;
use crate::range::Range;

/// Ranges whose writers wait until this goes.
struct Held {
    ranges: Vec<Arc<Range>>,
    committer: Arc<Committer>,
}

impl Drop for Held {
    fn drop(&mut self) {
        for range in &self.ranges {
            range.release(&self.committer);
        }
    }
}

impl Runner {
    /// Completes the job, or says why not yet.
    pub async fn cut_over(&mut self, db: &Db, job: &JobRecord) -> Stopped<()> {
        let _no_splits = db.inner.balance.turn().await;
        let mut counters = db.inner.control.lock().await;
        // The owner may have paused or cancelled it while this waited.
        let job = db.catalog().job(&job.id).cloned().ok_or(Stop::Over)?;
        if job.state != JobState::Completing {
            return Err(Stop::Again);
        }
        let mut pair = self.pair(db, &job)?;
        if pair.definition_to_keep(&job)?.is_some() {
            return Err(Stop::Again);
        }
        let began = db.world().monotonic();
        let mut held = Held { ranges: Vec::new(), committer: db.inner.committer.clone() };
        for range in &pair.source.ranges {
            held.ranges.push(range.clone());
            range.hold().await.map_err(Error::from)?;
        }
        pair.deadline = Some(began + JOB_HOLD_TIME_MAX);
        self.follow_tail(&pair).await?;
        let lsn = |range: &Arc<Range>| RangeLsn {
            partition: range.descriptor.id.to_string(),
            lsn: range.replica.partition.lsn().0,
        };
        let lsns = pair.source.ranges.iter().map(lsn).collect();
        let mut done = JobRecord::clone(&job);
        done.progress = self.progress.clone();
        done.state = JobState::Completed;
        done.ended = Some(db.world().now() / TICKS_PER_SECOND);
        done.cut_over = Some(CutOver { held_ms: db.world().since(began).as_millis() as u64, lsns });
        match job.kind {
            JobKind::Copy => {
                let done = |job: &mut JobRecord| {
                    *job = done;
                    Ok(())
                };
                db.change_job_with(&mut counters, &self.id, done).await?;
            }
            JobKind::Rekey => {
                db.exchange(&mut counters, done).await?;
            }
        }
        tracing::info!(
            job = self.id,
            held_ms = db.world().since(began).as_millis() as u64,
            "a job has completed and cut over"
        );
        Ok(())
    }

    /// Nobody writes, so this comes to an end, unless it is too late for it. A page that has begun is always brought to
    /// its end: what it has read and written would be forgotten.
    pub async fn follow_tail(&mut self, pair: &Pair) -> Stopped<()> {
        self.cut_at_ranges(pair);
        loop {
            let (_, behind) = source::pending(&pair.source, &self.progress.intervals);
            if behind.is_empty() {
                break;
            }
            for place in behind {
                if pair.is_late() {
                    return Err(Stop::Again);
                }
                self.follow(pair, place, u32::MAX).await?;
            }
        }
        self.settle_parked(pair).await
    }
}
