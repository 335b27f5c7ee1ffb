//! Queries over several partitions, merged by the server.
//!
//! Clients merge results themselves. For those that cannot, and for callers inside the server, one program is
//! given the items of all partitions, in the order of the key space, and so gives the rows that one large
//! partition would. For an order that indexes deliver, each partition delivers its first rows only: a second
//! program, fed with the items of that partition alone, says when it has a page.

use std::sync::Arc;

use orrery_query::Program;

use super::visit::{Request, Visit};
use super::{key_order, shortcut, term_order, token};
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::feed::{Step, Walk};
use crate::request::{PageOptions, QueryPage, Scope};
use crate::ru;

impl Db {
    /// As [`Db::query`], for queries that only a view of all partitions can answer: a page spans all partitions
    /// that the scope covers.
    pub async fn query_merged(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage> {
        let _permit = self.inner.scans.acquire().await.map_err(|_| ErrorKind::Stopping)?;
        tokio::task::block_in_place(|| self.merged_page(container, scope, program, page))
    }

    fn merged_page(
        &self,
        container: &Container,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage> {
        let (position, mut carry) = token::read(page.continuation.as_deref())?;
        let mut walk = Walk::start(container, scope, position)?;
        let mut resumed = self.resume(container, &walk, &mut carry)?;
        let request = Request { container, scope, program, page, carry: carry.as_ref() };
        let mut run = request.start()?;
        let mut merged = QueryPage::default();
        if !program.needs_items() {
            run.feed_nothing()?;
            walk.finish();
        }
        while let Some(range) = walk.range(container).cloned() {
            let lsn = self.admit(container, &range, page.session.as_ref())?;
            let moment = self.moment(&range);
            let mut visit = Visit::new(request, &range, &moment, &walk)?;
            visit.resumed = resumed.take();
            let answered =
                shortcut::feed(&mut visit, &mut run)? || term_order::feed_first_rows(&mut visit, &mut run)?;
            let (step, last) = match answered {
                true => (Step::Continue, None),
                false => {
                    let end = key_order::feed(&mut visit, &mut run)?;
                    (end.step, end.last)
                }
            };
            walk.move_on(&range, step, last);
            self.settle(visit, &range, lsn, &mut merged);
            if step != Step::Continue {
                break;
            }
        }
        let (rows, carry) = run.finish()?;
        merged.meter.bytes_returned = rows.byte_len() as u64;
        merged.receipt.charge.lines.extend(ru::returned(&merged.meter, page.consistency).lines);
        merged.continuation = token::write(program, &walk, carry);
        merged.rows = rows;
        Ok(merged)
    }
}
