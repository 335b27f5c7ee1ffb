//! Building the index of a changed policy from the items, while writes go on.
//!
//! Each step goes through the queue of its partition, among the writes, so an item is never indexed from a version that
//! a write under way replaces. Steps are small and have a pause between them: writers wait for one step at most.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Container;
use crate::db::Db;
use crate::error::ErrorKind;
use crate::range::{Range, WriteError};

const PAUSE: Duration = Duration::from_millis(1);
/// Before trying again when the disk is full or the queue is.
const PAUSE_REFUSED: Duration = Duration::from_millis(500);

impl Db {
    /// Builds what the container's schema names as being built, then makes it active.
    pub(crate) fn build_index_later(&self, container: &Arc<Container>) {
        let (db, container) = (self.clone(), container.clone());
        self.world().spawn(async move { db.build_index(&container).await });
    }

    /// Goes on with what a restart interrupted.
    pub(crate) fn resume_index_builds(&self) {
        for container in self.catalog().containers() {
            if !container.builds().is_empty() {
                self.build_index_later(container);
            }
        }
    }

    async fn build_index(&self, container: &Container) {
        let builds = container.builds();
        let Ok(_permit) = self.inner.index_builds.acquire().await else { return };
        for (id, generation) in &builds {
            let Some(range) = container.range_by_id(*id) else { continue };
            if !self.build_range(range, *generation).await {
                return;
            }
        }
        loop {
            match self.finish_index_build(container.resource.rid, &builds).await {
                Ok(_) => return,
                Err(error) if error.kind.is_disk_full() || matches!(error.kind, ErrorKind::Overloaded) => {
                    self.world().sleep(PAUSE_REFUSED).await;
                }
                Err(error) => {
                    tracing::warn!(error = %error.kind, "a finished index could not be made active");
                    return;
                }
            }
        }
    }

    /// False when there is no use in going on.
    pub(crate) async fn build_range(&self, range: &Arc<Range>, generation: u32) -> bool {
        loop {
            let building = range.replica.schema.load().building.as_ref().map(|index| index.generation);
            if building != Some(generation) {
                return false;
            }
            if range.replica.partition.build_of(generation).is_complete() {
                return true;
            }
            let pause = match range.build_index(&self.inner.committer).await {
                Ok(_) => PAUSE,
                Err(WriteError::Unwritten(ErrorKind::RangeGone)) => return false,
                Err(WriteError::Unwritten(kind)) if kind.is_stopping() => return false,
                Err(WriteError::Unwritten(_)) => PAUSE_REFUSED,
                Err(WriteError::Refused(refusal)) => {
                    tracing::error!(range = range.descriptor.id, error = %refusal.error, "an index could not be built");
                    return false;
                }
            };
            self.world().sleep(pause).await;
        }
    }
}
