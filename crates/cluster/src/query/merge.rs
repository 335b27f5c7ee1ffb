//! Queries over several partitions, merged by the server.
//!
//! Clients merge results themselves. For those that cannot, and for callers inside the server, one program is
//! given the items of all partitions, in the order of the key space, and so gives the rows that one large
//! partition would. Orders that indexes deliver are merged entry by entry where that is simple ([`merged_order`]).
//! Elsewhere each partition delivers its first rows only: a second program, fed with the items of that partition
//! alone, says when it has a page.
//!
//! The only partition of a scope is visited by the thread that asks, as by any query. Several that a program must all
//! see are visited at the same time, a few at once. Each visit runs on a
//! thread of its own, drops the items that the filter refuses, and hands on the others in small batches; it waits
//! when nobody takes them. The program takes them partition by partition, so that its answer does not depend
//! on who was faster.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use orrery_query::{Carry, Context, Flow, Program, Rows, Sink, Steward, UserFunctions};
use orrery_store::limits::{
    MERGE_BATCH_BYTES, MERGE_BATCH_ITEMS, MERGE_BATCHES_WAITING, MERGE_VISITS_AT_ONCE, ORDERS_MERGED_MAX,
};
use orrery_store::{Item, ItemKey, Lsn};

use super::page::{Feed, PageRun, accepts, context_now};
use super::visit::{Moment, Request, Visit, Work};
use super::{QuerySteward, cursor, groups, key_order, merged_order, parts, shortcut, term_order};
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::feed::{Step, Walk};
use crate::range::Range;
use crate::request::{PageOptions, QueryPage, Scope};
use crate::ru;
use crate::turns::{self, Party, at_length};

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
        self.query_merged_into::<Rows>(container, scope, program, page).await
    }

    /// The same with the rows in another form.
    pub async fn query_merged_into<S: Sink + Default>(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage<S>> {
        let is_quick = program.is_light() && program.is_blocking();
        let work = |steward: &QuerySteward| {
            self.where_it_is(container, |container| {
                self.merged_page(container, scope, program, page, steward)
            })
        };
        let party = Party::from(container.number);
        let bytes_of = |page: &QueryPage<S>| page.rows.byte_len();
        let (page, memory) = self.run_query(party, program, is_quick, work, bytes_of).await?;
        Ok(QueryPage { memory, ..page })
    }

    pub(super) fn merged_page<S: Sink + Default>(
        &self,
        container: &Container,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
        steward: &QuerySteward,
    ) -> Result<QueryPage<S>> {
        let (place, mut carry) = parts(page.continuation.as_ref());
        // Here every partition is visited from its beginning.
        if place.is_some() && program.is_blocking() {
            return Err(ErrorKind::CursorMismatch.into());
        }
        let mut walk = Walk::start(container, scope, place)?.ordered(page.order);
        let resumed = self.resume(container, &walk, &mut carry)?;
        let functions = self.functions_of(container, program)?;
        let functions = functions.as_ref().map(|functions| functions as &dyn UserFunctions);
        let request = Request { container, scope, program, page, carry: carry.as_ref(), functions, steward };
        let carry = program.resumed(self.complete(request, &walk)?);
        let request = Request { carry: carry.as_ref(), ..request };
        let mut run: PageRun<'_, S> = request.start()?;
        let mut merged = QueryPage::default();
        let mut ordered = None;
        if !program.needs_items() {
            run.feed_nothing()?;
            walk.finish();
        } else if program.is_blocking() {
            let ranges = self.admit_all(request, &mut walk)?;
            ordered = match ranges.as_slice() {
                [range] => self.visit_alone(request, range, &mut run, &mut merged)?,
                _ => self.merge_orders(request, &ranges, &mut merged)?,
            };
            if ordered.is_none() && ranges.len() != 1 {
                at_length(true, || self.visit_all(request, &ranges, &mut run, &mut merged))?;
            }
        } else {
            self.visit_in_turn(request, &mut walk, resumed, &mut run, &mut merged)?;
        }
        let (rows, carry) = ordered.map_or_else(|| run.finish(), Ok)?;
        merged.meter.bytes_returned = rows.byte_len() as u64;
        merged.receipt.charge.lines.extend(ru::returned(&merged.meter, page.consistency).lines);
        self.pass_empty(container, &mut walk)?;
        merged.continuation = cursor(program, &walk, carry);
        merged.rows = rows;
        Ok(merged)
    }

    /// Partition after partition, until the page is full.
    fn visit_in_turn<S: Sink>(
        &self,
        request: Request<'_>,
        walk: &mut Walk,
        mut resumed: Option<(ItemKey, Item)>,
        run: &mut dyn Feed,
        merged: &mut QueryPage<S>,
    ) -> Result<()> {
        while let Some(range) = walk.range(request.container).cloned() {
            let lsn = self.admit(request.container, &range, request.page)?;
            let moment = self.moment(&range, walk)?;
            let mut visit = Visit::new(request, &range, &moment, walk)?;
            visit.resumed = resumed.take();
            visit.in_order_of_creation(&range, walk);
            let end = key_order::feed(&mut visit, walk, run)?;
            walk.move_on(&range, end.step, end.last);
            self.settle(request, &range, lsn, visit.into_work(), merged);
            if run.is_full(request.page) {
                let beyond = self.look_beyond(request, walk, run, end.ahead)?;
                self.settle_beyond(request, beyond, merged);
                break;
            }
            if end.step != Step::Continue {
                break;
            }
        }
        Ok(())
    }

    /// All partitions that have a part of the scope.
    fn admit_all(&self, request: Request<'_>, walk: &mut Walk) -> Result<Vec<(Arc<Range>, Lsn)>> {
        let mut ranges = Vec::new();
        while let Some(range) = walk.range(request.container).cloned() {
            let lsn = self.admit(request.container, &range, request.page)?;
            walk.move_on(&range, Step::Continue, None);
            ranges.push((range, lsn));
        }
        Ok(ranges)
    }

    /// The page, if the indexes of the partitions deliver its order.
    fn merge_orders<S: Sink + Default>(
        &self,
        request: Request<'_>,
        ranges: &[(Arc<Range>, Lsn)],
        merged: &mut QueryPage<S>,
    ) -> Result<Option<(S, Option<Carry>)>> {
        if !request.program.can_be_presorted() || ranges.len() > ORDERS_MERGED_MAX {
            return Ok(None);
        }
        let walk = Walk::start(request.container, request.scope, None)?;
        let moments = ranges.iter().map(|(range, _)| self.moment(range, &walk));
        let moments = moments.collect::<Result<Vec<Moment>>>()?;
        let visits = ranges.iter().zip(&moments);
        let visits = visits.map(|((range, _), moment)| Visit::new(request, range, moment, &walk));
        let mut visits = visits.collect::<Result<Vec<Visit<'_>>>>()?;
        let answer = merged_order::answer(&mut visits)?;
        if answer.is_some() {
            for ((range, lsn), visit) in ranges.iter().zip(visits) {
                self.settle(request, range, *lsn, visit.into_work(), merged);
            }
        }
        Ok(answer)
    }

    /// The only partition, on this thread: there is nothing to merge. The page is returned unless it is the run's.
    fn visit_alone<S: Sink + Default>(
        &self,
        request: Request<'_>,
        (range, lsn): &(Arc<Range>, Lsn),
        run: &mut PageRun<'_, S>,
        merged: &mut QueryPage<S>,
    ) -> Result<Option<(S, Option<Carry>)>> {
        let walk = Walk::start(request.container, request.scope, None)?;
        let moment = self.moment(range, &walk)?;
        let mut visit = Visit::new(request, range, &moment, &walk)?;
        let is_fed = shortcut::feed(&mut visit, run)? || groups::feed(&mut visit, run)?;
        let answer = if is_fed { None } else { term_order::answer(&mut visit)? };
        if !is_fed && answer.is_none() {
            key_order::feed(&mut visit, &walk, run)?;
        }
        self.settle(request, range, *lsn, visit.into_work(), merged);
        Ok(answer)
    }

    /// All partitions, a few at a time.
    fn visit_all<S: Sink>(
        &self,
        request: Request<'_>,
        ranges: &[(Arc<Range>, Lsn)],
        run: &mut dyn Feed,
        merged: &mut QueryPage<S>,
    ) -> Result<()> {
        let mut wanted = true;
        for some in ranges.chunks(MERGE_VISITS_AT_ONCE) {
            if !wanted {
                break;
            }
            self.world().scope(|scope| -> Result<()> {
                let visits: Vec<_> = some
                    .iter()
                    .map(|(range, lsn)| {
                        let (sender, receiver) = sync_channel(MERGE_BATCHES_WAITING);
                        let helps = turns::here();
                        let visit = scope.spawn(move || {
                            turns::helping(helps.as_ref(), || self.visit_apart(request, range, sender))
                        });
                        (range, *lsn, receiver, visit)
                    })
                    .collect();
                // All of them are waited for here, whatever happens: at the end of the scope they would be waited for
                // by one who keeps them from their turns.
                let (mut failure, mut panicked) = (None, None);
                for (range, lsn, receiver, visit) in visits {
                    if wanted && failure.is_none() {
                        match take_all(&receiver, run, request.steward) {
                            Ok(flow) => wanted = flow == Flow::More,
                            Err(error) => failure = Some(error),
                        }
                    }
                    // A visit ends when nobody listens any more.
                    drop(receiver);
                    match turns::aside(|| visit.join()) {
                        Ok(Ok(work)) => self.settle(request, range, lsn, work, merged),
                        Ok(Err(error)) => failure = failure.or(Some(error)),
                        Err(panic) => panicked = Some(panic),
                    }
                }
                if let Some(panic) = panicked {
                    std::panic::resume_unwind(panic);
                }
                failure.map_or(Ok(()), Err)
            })?;
        }
        Ok(())
    }

    /// Visits one partition on a thread of its own.
    fn visit_apart(&self, request: Request<'_>, range: &Range, listener: SyncSender<Found>) -> Result<Work> {
        let walk = Walk::start(request.container, request.scope, None)?;
        let moment = self.moment(range, &walk)?;
        let mut visit = Visit::new(request, range, &moment, &walk)?;
        let context = context_now(&request);
        let mut messenger = Messenger { request, context, listener, batch: Vec::new(), bytes: 0 };
        let answered = shortcut::feed(&mut visit, &mut messenger)?
            || groups::feed(&mut visit, &mut messenger)?
            || term_order::feed_first_rows(&mut visit, &mut messenger)?;
        if !answered {
            key_order::feed(&mut visit, &walk, &mut messenger)?;
        }
        messenger.flush()?;
        Ok(visit.into_work())
    }
}

/// What a visit hands on.
enum Found {
    /// With the bytes that are held for them while they wait.
    Items(Vec<Item>, usize),
    Count(u64),
    Extreme(Item),
    Group(Option<Item>, u64),
}

/// Gives the program all that one visit finds.
fn take_all(found: &Receiver<Found>, run: &mut dyn Feed, steward: &QuerySteward) -> Result<Flow> {
    // A query that waits here must not keep the visits from their turns.
    while let Ok(found) = found.try_recv().or_else(|_| turns::aside(|| found.recv())) {
        match found {
            Found::Count(count) => run.feed_count(count)?,
            Found::Extreme(item) => run.feed_extreme(&item)?,
            Found::Group(item, count) => run.feed_group(item.as_ref(), count)?,
            Found::Items(items, bytes) => {
                steward.release(bytes);
                for item in items {
                    turns::rest();
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
        let sent = match self.listener.try_send(found) {
            Err(TrySendError::Full(found)) => turns::aside(|| self.listener.send(found)).is_ok(),
            tried => tried.is_ok(),
        };
        if sent { Flow::More } else { Flow::Done }
    }

    fn flush(&mut self) -> Result<Flow> {
        let bytes = std::mem::take(&mut self.bytes) as usize;
        match std::mem::take(&mut self.batch) {
            batch if batch.is_empty() => Ok(Flow::More),
            batch => {
                self.request.steward.hold(bytes).map_err(ErrorKind::Query)?;
                Ok(self.send(Found::Items(batch, bytes)))
            }
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
        let is_full = self.batch.len() >= MERGE_BATCH_ITEMS || self.bytes >= MERGE_BATCH_BYTES;
        if is_full { self.flush() } else { Ok(Flow::More) }
    }

    fn feed_count(&mut self, count: u64) -> Result<()> {
        self.send(Found::Count(count));
        Ok(())
    }

    fn feed_extreme(&mut self, item: &Item) -> Result<()> {
        self.send(Found::Extreme(item.clone()));
        Ok(())
    }

    fn feed_group(&mut self, item: Option<&Item>, count: u64) -> Result<()> {
        self.send(Found::Group(item.cloned(), count));
        Ok(())
    }

    fn end_ties(&mut self) -> Result<Flow> {
        Ok(Flow::More)
    }

    fn is_full(&self, _: &PageOptions) -> bool {
        false
    }

    fn rows(&self) -> usize {
        0
    }
}
