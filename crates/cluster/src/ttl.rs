//! Deleting what is expired.
//!
//! Readers no longer see an expired item, so nobody waits for its end and it may cost nobody anything: one task looks
//! at all partitions from time to time and deletes a few items at once, with request units that nobody else wants.
//! What it finds is only a proposal. Each step goes through the queue of its partition, and whether an item is
//! still there and still expired is decided there, in the commit that deletes it: an item that was written again
//! in between stays. Nothing is remembered across restarts, because the queues to look at are part of the data.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use orrery_store::limits::{EXPIRED_LOOKED_AT_MAX, EXPIRED_PER_STEP};
use orrery_store::{Outcome, Overdue};

use crate::catalog::Container;
use crate::db::Db;
use crate::error::ErrorKind;
use crate::range::{Range, WriteError};
use crate::receipt::Charge;
use crate::ru;
use crate::throttle::Budget;

/// How long an expired item may take up room when nothing else is to be done.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two steps on one partition.
const PAUSE: Duration = Duration::from_millis(1);
/// Steps on one partition before the others have their turn.
const STEPS_PER_ROUND: usize = 64;
/// What deleting an item of usual size costs; decides how many are deleted with what is left.
const UNITS_PER_ITEM: f64 = 10.0;

impl Db {
    /// Starts the task; it ends with the database.
    pub(crate) fn purge_expired_later(&self) {
        let inner = Arc::downgrade(&self.inner);
        let world = self.world().clone();
        self.world().spawn(async move {
            loop {
                world.sleep(INTERVAL).await;
                let Some(db) = Db::alive(&inner) else { return };
                let _alone = db.inner.purging.lock().await;
                if db.purge_expired().await.is_err() {
                    return;
                }
            }
        });
    }

    /// One round over all partitions; an error means that the database is stopping.
    pub(crate) async fn purge_expired(&self) -> Result<(), ErrorKind> {
        for container in self.catalog().containers() {
            for range in &container.ranges {
                for _ in 0..STEPS_PER_ROUND {
                    if !self.purge_step(container, range).await? {
                        break;
                    }
                    self.world().sleep(PAUSE).await;
                }
            }
        }
        Ok(())
    }

    /// Deletes a few expired items of a partition; answers whether another step is worth it.
    async fn purge_step(&self, container: &Container, range: &Arc<Range>) -> Result<bool, ErrorKind> {
        if !range.replica.lifetimes().can_end() {
            return Ok(false);
        }
        let spare =
            (self.spare_units(container, range) / UNITS_PER_ITEM).min(EXPIRED_PER_STEP as f64) as usize;
        if spare == 0 {
            return Ok(false);
        }
        let Some(overdue) = self.find_overdue(range, spare) else { return Ok(false) };
        if overdue.items.is_empty() {
            return Ok(overdue.more);
        }
        match range.purge(&self.inner.committer, overdue.items, self.world().now()).await {
            Ok(done) => {
                if let Ok(lead) = range.lead() {
                    lead.counters.items_expired.fetch_add(done.outcomes.len() as u64, Ordering::Relaxed);
                }
                self.pay_purge(container, range, &done.outcomes);
                Ok(true)
            }
            Err(WriteError::Unwritten(kind)) if kind.is_stopping() => Err(kind),
            // The container is going, or there is no room: the next round will see.
            Err(WriteError::Unwritten(_)) => Ok(false),
            Err(WriteError::Refused(refusal)) => {
                tracing::error!(range = range.descriptor.id, error = %refusal.error, "expired items could not be deleted");
                Ok(false)
            }
        }
    }

    fn find_overdue(&self, range: &Range, most: usize) -> Option<Overdue> {
        self.world().blocking(|| {
            let (lsn, snapshot, _) = range.replica.schema_point(&self.inner.committer).ok()?;
            let view = range.replica.view(&snapshot, lsn);
            match view.overdue(most, EXPIRED_LOOKED_AT_MAX) {
                Ok(overdue) => Some(overdue),
                Err(error) => {
                    tracing::error!(range = range.descriptor.id, %error, "expired items could not be looked for");
                    None
                }
            }
        })
    }

    fn pay_purge(&self, container: &Container, range: &Range, outcomes: &[Outcome]) {
        let lines = outcomes.iter().flat_map(|outcome| ru::write(&outcome.meter).lines);
        self.pay_aside(container, range, &Charge { lines: lines.collect() });
    }

    /// What can be spent without making a client wait.
    fn spare_units(&self, container: &Container, range: &Range) -> f64 {
        let now = self.world().monotonic();
        let spare = |budget: &Budget| budget.spare(UNITS_PER_ITEM, now);
        let shared = container.shared_budget.as_ref().map_or(f64::INFINITY, |budget| spare(budget));
        // Who does not lead a range does not purge it.
        range.lead().map_or(0.0, |lead| spare(&lead.budget).min(shared))
    }
}

#[cfg(test)]
mod tests;
