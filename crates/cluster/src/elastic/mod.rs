//! Physical partitions that come and go: split, merge, and who decides when.
//!
//! No item moves in either. For a moment nobody writes to the partitions concerned: their queues are held, and what
//! waits there is handed to the successors, so that no client notices more than a short delay.

mod balance;
mod merge;
mod split;

use std::sync::Arc;

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, Result};

pub(crate) use balance::Balance;

impl Db {
    /// Asks a container, and asks again if one of its ranges was succeeded by others while it was asked.
    pub(crate) fn where_it_is<T>(
        &self,
        container: &Arc<Container>,
        mut ask: impl FnMut(&Arc<Container>) -> Result<T>,
    ) -> Result<T> {
        let mut container = container.clone();
        loop {
            match ask(&container) {
                Err(error) if matches!(error.kind, ErrorKind::RangeGone) => {
                    container = self.newer(&container).ok_or(error)?;
                }
                answer => return answer,
            }
        }
    }

    /// The container as it is by now, if it has lost a range since.
    fn newer(&self, container: &Container) -> Option<Arc<Container>> {
        let has_changed = container.ranges.iter().any(|range| range.check_there().is_err());
        self.catalog().container_by_rid(container.resource.rid).filter(|_| has_changed).cloned()
    }
}
