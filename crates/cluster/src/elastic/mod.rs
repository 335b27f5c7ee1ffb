//! Physical partitions that come and go: split, merge, and who decides when.
//!
//! No item moves in either. For a moment nobody writes to the partitions concerned: their queues are held, and what
//! waits there is handed to the successors, so that no client notices more than a short delay.
//!
//! ```text
//!           parent 0 ............................ gone       its feed ends at LSN 9
//!   plan:   sizes of logical partitions are added up while writes go on; what they touch is noted
//!   hold:   queue |w w w|   no group is under way
//!   commit: states of the children: LSN 9, their part of the items and bytes     one batch
//!   record: ranges 1 and 2, parents [0], sources (partition 0, up to LSN 9)      one change of the catalog
//!   hand:   queue of 1 |w w|   queue of 2 |w|
//!           child 1 reads 0 up to LSN 9, then its own feed from 10; so does child 2
//! ```
//!
//! A crash before the record leaves states of partitions that no range names, whose numbers are never given again. After it
//! the children are there, and what the clients of the held writes have not been told was not written.
//!
//! A merge is the same with two parents, which first build one index between them. [`balance`] decides when: it splits what
//! is too large, or provisioned with more than a partition can give, and merges what has been nearly idle for a while.

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
        let has_changed = container.ranges.iter().any(|range| range.replica.check_there().is_err());
        self.catalog().container_by_rid(container.resource.rid).filter(|_| has_changed).cloned()
    }
}
