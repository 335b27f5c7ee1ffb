//! Queries over several partitions, merged by the server.
//!
//! Clients merge results themselves. For those that cannot, and for callers inside the server, one program is
//! given the items of all partitions, in the order of the key space, and so gives the rows that one large
//! partition would. For an order that indexes deliver, each partition delivers its first rows only: a second
//! program, fed with the items of that partition alone, says when it has a page.
//!
//! A program that must see all partitions has them visited at the same time, a few at once. Each visit runs on a
//! thread of its own, drops the items that the filter refuses, and hands on the others in small batches; it waits
//! when nobody takes them. The program takes them partition by partition, so that its answer does not depend
//! on who was faster.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use orrery_query::{Context, Flow, Program, UserFunctions};
use orrery_store::{Item, ItemKey, Lsn};

use super::page::{Feed, PageRun, accepts, context_now};
use super::visit::{Request, Visit, Work};
use super::{key_order, shortcut, term_order, token};
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::feed::{Step, Walk};
use crate::range::Range;
use crate::request::{PageOptions, QueryPage, Scope};
use crate::ru;

/// Partitions that one query visits at the same time.
const VISITS_AT_ONCE: usize = 4;
/// Batches that a visit may be ahead, and what is in one at most.
const BATCHES_WAITING: usize = 4;
const BATCH_ITEMS: usize = 256;
const BATCH_BYTES: u64 = 1024 * 1024;

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
        let resumed = self.resume(container, &walk, &mut carry)?;
        let functions = self.functions_of(container, program)?;
        let functions = functions.as_ref().map(|functions| functions as &dyn UserFunctions);
        let request = Request { container, scope, program, page, carry: carry.as_ref(), functions };
        let mut run = request.start()?;
        let mut merged = QueryPage::default();
        if !program.needs_items() {
            run.feed_nothing()?;
            walk.finish();
        } else if program.is_blocking() {
            self.visit_all(request, &mut walk, &mut run, &mut merged)?;
        } else {
            self.visit_in_turn(request, &mut walk, resumed, &mut run, &mut merged)?;
        }
        let (rows, carry) = run.finish()?;
        merged.meter.bytes_returned = rows.byte_len() as u64;
        merged.receipt.charge.lines.extend(ru::returned(&merged.meter, page.consistency).lines);
        merged.continuation = token::write(program, &walk, carry);
        merged.rows = rows;
        Ok(merged)
    }

    /// Partition after partition, until the page is full.
    fn visit_in_turn(
        &self,
        request: Request<'_>,
        walk: &mut Walk,
        mut resumed: Option<(ItemKey, Item)>,
        run: &mut PageRun<'_>,
        merged: &mut QueryPage,
    ) -> Result<()> {
        while let Some(range) = walk.range(request.container).cloned() {
            let lsn = self.admit(request.container, &range, request.page.session.as_ref())?;
            let moment = self.moment(&range);
            let mut visit = Visit::new(request, &range, &moment, walk)?;
            visit.resumed = resumed.take();
            let end = key_order::feed(&mut visit, run)?;
            walk.move_on(&range, end.step, end.last);
            self.settle(request, &range, lsn, visit.into_work(), merged);
            if end.step != Step::Continue {
                break;
            }
        }
        Ok(())
    }

    /// All partitions, a few at a time.
    fn visit_all(
        &self,
        request: Request<'_>,
        walk: &mut Walk,
        run: &mut PageRun<'_>,
        merged: &mut QueryPage,
    ) -> Result<()> {
        let mut ranges: Vec<(Arc<Range>, Lsn)> = Vec::new();
        while let Some(range) = walk.range(request.container).cloned() {
            let lsn = self.admit(request.container, &range, request.page.session.as_ref())?;
            walk.move_on(&range, Step::Continue, None);
            ranges.push((range, lsn));
        }
        let mut wanted = true;
        for some in ranges.chunks(VISITS_AT_ONCE) {
            if !wanted {
                break;
            }
            std::thread::scope(|scope| -> Result<()> {
                let visits: Vec<_> = some
                    .iter()
                    .map(|(range, lsn)| {
                        let (sender, receiver) = sync_channel(BATCHES_WAITING);
                        let visit = scope.spawn(move || self.visit_apart(request, range, sender));
                        (range, *lsn, receiver, visit)
                    })
                    .collect();
                for (range, lsn, receiver, visit) in visits {
                    if wanted {
                        wanted = take_all(&receiver, run)? == Flow::More;
                    }
                    // A visit ends when nobody listens any more.
                    drop(receiver);
                    let work = visit.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                    self.settle(request, range, lsn, work, merged);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Visits one partition on a thread of its own.
    fn visit_apart(&self, request: Request<'_>, range: &Range, listener: SyncSender<Found>) -> Result<Work> {
        let moment = self.moment(range);
        let walk = Walk::start(request.container, request.scope, None)?;
        let mut visit = Visit::new(request, range, &moment, &walk)?;
        let context = context_now(&request);
        let mut messenger = Messenger { request, context, listener, batch: Vec::new(), bytes: 0 };
        let answered = shortcut::feed(&mut visit, &mut messenger)?
            || term_order::feed_first_rows(&mut visit, &mut messenger)?;
        if !answered {
            key_order::feed(&mut visit, &mut messenger)?;
        }
        messenger.flush();
        Ok(visit.into_work())
    }
}

/// What a visit hands on.
enum Found {
    Items(Vec<Item>),
    Count(u64),
    Extreme(Item),
}

/// Gives the program all that one visit finds.
fn take_all(found: &Receiver<Found>, run: &mut PageRun<'_>) -> Result<Flow> {
    for found in found {
        match found {
            Found::Count(count) => run.feed_count(count)?,
            Found::Extreme(item) => run.feed_extreme(&item)?,
            Found::Items(items) => {
                for item in items {
                    let flow = run.feed(&item)?;
                    if flow != Flow::More {
                        return Ok(flow);
                    }
                }
            }
        }
    }
    Ok(Flow::More)
}

/// Hands on what a visit finds, in batches.
struct Messenger<'a> {
    request: Request<'a>,
    context: Context<'a>,
    listener: SyncSender<Found>,
    batch: Vec<Item>,
    bytes: u64,
}

impl Messenger<'_> {
    fn send(&self, found: Found) -> Flow {
        if self.listener.send(found).is_ok() { Flow::More } else { Flow::Done }
    }

    fn flush(&mut self) -> Flow {
        self.bytes = 0;
        match std::mem::take(&mut self.batch) {
            batch if batch.is_empty() => Flow::More,
            batch => self.send(Found::Items(batch)),
        }
    }
}

impl Feed for Messenger<'_> {
    fn feed(&mut self, item: &Item) -> Result<Flow> {
        if !accepts(&self.request, &self.context, item) {
            return Ok(Flow::More);
        }
        self.bytes += u64::from(item.header.json_bytes);
        self.batch.push(item.clone());
        let is_full = self.batch.len() >= BATCH_ITEMS || self.bytes >= BATCH_BYTES;
        Ok(if is_full { self.flush() } else { Flow::More })
    }

    fn feed_count(&mut self, count: u64) -> Result<()> {
        self.send(Found::Count(count));
        Ok(())
    }

    fn feed_extreme(&mut self, item: &Item) -> Result<()> {
        self.send(Found::Extreme(item.clone()));
        Ok(())
    }

    fn is_full(&self, _: &PageOptions) -> bool {
        false
    }
}
