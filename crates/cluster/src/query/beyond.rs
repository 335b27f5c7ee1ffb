//! Whether another row follows a full page in the partitions behind its own.

use std::sync::Arc;

use super::key_order;
use super::page::Feed;
use super::visit::{Request, Visit, Work};
use crate::db::Db;
use crate::error::Result;
use crate::feed::{RANGES_AHEAD_MAX, Step, Walk};
use crate::range::Range;

/// What was done in one of them.
pub(super) type Beyond = (Arc<Range>, Work);

impl Db {
    /// Goes on with a page that is full, and of which all partitions before the walk's place are done, until the program has
    /// another row; that row is the next page's. `ahead` items were looked at before. Budgets are not asked, because the page
    /// is there already and what is looked at is bounded; it is paid for.
    pub(super) fn look_beyond(
        &self,
        request: Request<'_>,
        walk: &mut Walk,
        run: &mut dyn Feed,
        ahead: usize,
    ) -> Result<Vec<Beyond>> {
        let (mut done, mut ahead) = (Vec::new(), ahead);
        let Request { container, program, page, .. } = request;
        if program.is_blocking() || !run.is_full(page) {
            return Ok(done);
        }
        for _ in 0..RANGES_AHEAD_MAX {
            self.pass_empty(container, walk)?;
            let next = walk.range(container).filter(|_| walk.is_between_ranges());
            // What `pass_empty` has not passed has a row for such a program.
            let Some(range) = next.filter(|_| !program.answers_every_item()).cloned() else { break };
            let is_behind = |session| self.is_behind(&range, range.replica.partition.lsn(), session);
            if page.session.as_ref().is_some_and(is_behind) {
                // The next page will tell the client.
                break;
            }
            let moment = self.moment(&range, walk)?;
            let mut visit = Visit::new(request, &range, &moment, walk)?;
            visit.ahead = ahead;
            visit.in_order_of_creation(&range, walk);
            let end = key_order::feed(&mut visit, walk, run)?;
            walk.move_on(&range, end.step, end.last);
            ahead = end.ahead;
            let work = visit.into_work();
            done.push((range, work));
            if end.step != Step::Continue {
                break;
            }
        }
        Ok(done)
    }
}
