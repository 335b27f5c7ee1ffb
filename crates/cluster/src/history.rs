//! Erasing what containers no longer keep of their history.
//!
//! One task looks at all partitions from time to time. What is too old goes in small steps, each in the queue of its
//! partition among the writes, so erasing needs no lock and a reader sees either the entries or a floor above them.

use std::sync::Arc;
use std::time::Duration;

use orrery_store::TICKS_PER_SECOND;

use crate::db::Db;
use crate::error::ErrorKind;
use crate::range::{Range, WriteError, wants_history};

/// How long an entry may outlive its time.
const INTERVAL: Duration = Duration::from_secs(10);
/// Between two steps on one partition.
const PAUSE: Duration = Duration::from_millis(20);

/// A duration in the units of the store.
pub(crate) fn ticks(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(TICKS_PER_SECOND)
}

impl Db {
    /// Starts the task; it ends with the database.
    pub(crate) fn erase_histories_later(&self) {
        let inner = Arc::downgrade(&self.inner);
        let world = self.world().clone();
        self.world().spawn(async move {
            loop {
                world.sleep(INTERVAL).await;
                let Some(db) = Db::alive(&inner) else { return };
                if db.erase_histories(world.now()).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Erases what is outlived at a moment; an error means that the database is stopping.
    pub(crate) async fn erase_histories(&self, now: u64) -> Result<(), ErrorKind> {
        // What a job still follows stays, however old it is.
        for container in self.catalog().containers().filter(|container| !container.definition.is_followed) {
            let retention = container.definition.retention();
            let keep_since = retention.map(|retention| now.saturating_sub(ticks(retention)));
            for range in &container.ranges {
                self.erase_history(range, keep_since).await?;
            }
        }
        Ok(())
    }

    async fn erase_history(&self, range: &Arc<Range>, keep_since: Option<u64>) -> Result<(), ErrorKind> {
        while let Some(bounds) = range.replica.partition.history() {
            // This may have changed since the round began, and nothing would be erased any more.
            if wants_history(&range.replica.schema.load(), keep_since) {
                return Ok(());
            }
            let is_due = match keep_since {
                None => Ok(true),
                Some(since) => {
                    let snapshot = self.inner.committer.snapshot_owned();
                    self.world()
                        .blocking(|| bounds.is_outlived(&snapshot, &range.replica.partition.spec, since))
                }
            };
            match is_due {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    tracing::error!(range = range.descriptor.id, %error, "the history of a partition could not be read");
                    return Ok(());
                }
            }
            match range.erase_history(&self.inner.committer, keep_since).await {
                Ok(_) => self.world().sleep(PAUSE).await,
                Err(WriteError::Unwritten(kind)) if kind.is_stopping() => return Err(kind),
                // The container is going, or there is no room: the next round will see.
                Err(WriteError::Unwritten(_)) => return Ok(()),
                Err(WriteError::Refused(refusal)) => {
                    tracing::error!(range = range.descriptor.id, error = %refusal.error, "a history could not be erased");
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
