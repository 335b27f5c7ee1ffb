//! Running a query over items, one page at a time.
//!
//! A page never spans two partitions; one that is full looks for another row in those behind ([`beyond`]). On its partition the program is given items in one of two orders:
//!
//! - *Key order*, by a scan or by an index ([`key_order`]); where the items are few, a streaming program is given them in
//!   the order of their creation (a *leg*, see `feed`). It goes on from the item where it
//!   stopped; a blocking one (GROUP BY, aggregates, DISTINCT, ORDER BY without an index) sees its whole scope
//!   on every page, which must then lie on one partition.
//! - *Term order* ([`term_order`]): an index delivers the order that the query asks for, and the page ends when
//!   it is full. The program's state says which value came last, and that is where the next page goes on.
//!
//! ```text
//!   program ── plan_access ──> what entries must an item have?  which index has the order?  is the index the answer?
//!                                   │                               │                           │
//!                  choose: count the first entries            term_order: walk it,         shortcut, groups:
//!                  of each condition, weigh, or scan          give up if too dear          no items, or one each
//!                                   └──────────── key_order ────────┴───────────┬───────────────┘
//!                                                                               ▼
//!                                        the program checks every item, and its rows go into the sink
//! ```
//!
//! Some answers need no items at all ([`shortcut`]), or one of each group ([`groups`]). Whichever way is taken, the rows are the same, and so is the
//! continuation: it carries a place in the key space and the program's own small state, and nothing of the
//! way. So each page chooses anew, whatever happened to the indexes in between.
//!
//! Over several partitions, either the client merges the pages that it asks of each, or [`merge`] does: it feeds one program from
//! all partitions, and where indexes have the order it walks them side by side ([`merged_order`]), so that only the
//! items of the page are fetched.
//!
//! What a page costs is bounded three times: by its items and bytes, by its time ([`page`]), and by the memory that its
//! [`steward`] grants before the program holds anything.

mod beyond;
mod choose;
mod groups;
mod key_order;
mod leg;
mod merge;
mod merged_order;
mod note;
mod offered;
mod page;
mod programs;
pub(crate) mod script;
mod shortcut;
mod steward;
mod tally;
mod term_order;
#[cfg(test)]
mod tests;
mod visit;

use std::sync::Arc;

use orrery_query::{Carry, Program, Rows, Sink, UserFunctions};
use orrery_store::{Item, ItemKey, Lsn, Target};

use crate::catalog::Container;
use crate::cursor::{Cursor, CursorPlace};
use crate::db::Db;
use crate::error::{ErrorKind, Result};
use crate::feed::Walk;
use crate::range::Range;
use crate::receipt::{Charge, Served};
use crate::request::{PageOptions, QueryPage, Scope};
use crate::ru;
use crate::turns::Party;

pub use note::{Method, PlanNote};
pub use offered::OfferedIndexes;

pub use steward::QuerySteward;

use beyond::Beyond;
use page::PageRun;
use visit::{Moment, Request, Visit, Work, stored};

impl Db {
    /// One page of results. It may be empty although more follows, as the service's may.
    pub async fn query(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage> {
        self.query_into::<Rows>(container, scope, program, page).await
    }

    /// The same with the rows in another form: the sink writes each of them once, as its protocol sends it.
    pub async fn query_into<S: Sink + Default>(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
    ) -> Result<QueryPage<S>> {
        // Most pages of light programs are short.
        let work = |steward: &QuerySteward| {
            self.where_it_is(container, |container| self.query_page(container, scope, program, page, steward))
        };
        let party = Party::from(container.number);
        let bytes_of = |page: &QueryPage<S>| page.rows.byte_len();
        let (page, memory) = self.run_query(party, program, program.is_light(), work, bytes_of).await?;
        Ok(QueryPage { memory, ..page })
    }

    fn query_page<S: Sink + Default>(
        &self,
        container: &Container,
        scope: &Scope,
        program: &Program,
        page: &PageOptions,
        steward: &QuerySteward,
    ) -> Result<QueryPage<S>> {
        let (place, mut carry) = parts(page.continuation.as_ref());
        let mut walk = Walk::start(container, scope, place)?.ordered(page.order);
        let resumed = self.resume(container, &walk, &mut carry)?;
        let Some(range) = walk.range(container).cloned() else {
            return Ok(QueryPage::default());
        };
        if program.is_blocking() && program.needs_items() && !walk.ends_within(&range) {
            return Err(ErrorKind::NeedsQueryPlan.into());
        }
        let lsn = self.admit(container, &range, page)?;
        let moment = self.moment(&range, &walk)?;
        let functions = self.functions_of(container, program)?;
        let functions = functions.as_ref().map(|functions| functions as &dyn UserFunctions);
        let request = Request { container, scope, program, page, carry: carry.as_ref(), functions, steward };
        let carry = program.resumed(self.complete(request, &walk)?);
        let request = Request { carry: carry.as_ref(), ..request };
        let mut visit = Visit::new(request, &range, &moment, &walk)?;
        visit.resumed = resumed;
        visit.in_order_of_creation(&range, &mut walk);
        let mut visited: Visited<'_, S> = run_visit(&mut visit, &mut walk, &range)?;
        let beyond = self.look_beyond(request, &mut walk, &mut visited.run, visited.ahead)?;
        let (rows, carry) = visited.finish()?;
        visit.tally.meter.bytes_returned = rows.byte_len() as u64;
        let mut page = QueryPage { rows, ..QueryPage::default() };
        self.settle(request, &range, lsn, visit.into_work(), &mut page);
        self.settle_beyond(request, beyond, &mut page);
        self.pass_empty(container, &mut walk)?;
        page.continuation = cursor(program, &walk, carry);
        Ok(page)
    }

    /// Charges for a visit and adds what it did to the page.
    fn settle<S: Sink>(
        &self,
        request: Request<'_>,
        range: &Range,
        lsn: Lsn,
        work: Work,
        page: &mut QueryPage<S>,
    ) {
        let Request { container, scope, program, page: options, .. } = request;
        let charge = ru::query(&work.tally.meter, options.consistency);
        self.record_query(container, range, scope, program, options, page.rows.len());
        page.receipt.served = Some(Served { range_id: range.descriptor.id, lsn, item_lsn: None });
        self.book(request, range, work, charge, page);
    }

    /// The same for what a full page looked at in other partitions. They did not serve it.
    fn settle_beyond<S: Sink>(&self, request: Request<'_>, done: Vec<Beyond>, page: &mut QueryPage<S>) {
        for (range, work) in done {
            let charge = ru::look_ahead(&work.tally.meter, request.page.consistency);
            self.book(request, &range, work, charge, page);
        }
    }

    fn book<S: Sink>(
        &self,
        request: Request<'_>,
        range: &Range,
        work: Work,
        charge: Charge,
        page: &mut QueryPage<S>,
    ) {
        let Work { tally, note } = work;
        self.pay(request.container, range, &charge);
        range.note(|insight| insight.scoped(request.container, request.scope, charge.total()));
        page.meter.add(&tally.meter);
        page.plan.add(note, &tally.meter, tally.times());
        page.receipt.charge.lines.extend(charge.lines);
    }

    /// The item that the page before did not finish. If it is gone, so is what is known about its rows.
    fn resume(
        &self,
        container: &Container,
        walk: &Walk,
        carry: &mut Option<Carry>,
    ) -> Result<Option<(ItemKey, Item)>> {
        if !walk.again {
            return Ok(None);
        }
        let key = match walk.leg() {
            Some(leg) => self.key_of_rid(container, walk, leg.seen)?,
            None => walk.after().cloned(),
        };
        let key = key.filter(|key| walk.epk.contains(&key.epk));
        let found = match &key {
            Some(key) => {
                let range = container.range_of(&key.epk);
                let moment = self.moment(range, walk)?;
                let view = moment.view(range);
                view.item(&key.epk, &Target::Id(key.id.clone())).map_err(stored)?
            }
            None => None,
        };
        if let (None, Some(Carry::Streaming { done_of_item, .. })) = (&found, carry) {
            *done_of_item = 0;
        }
        Ok(key.zip(found))
    }

    /// Where the last item of a leg lies, if it is still there.
    fn key_of_rid(&self, container: &Container, walk: &Walk, rid: Option<u64>) -> Result<Option<ItemKey>> {
        let (Some(rid), Some(range)) = (rid, walk.range(container)) else { return Ok(None) };
        // Whichever partition holds the item by now: all of them share the entries of rids.
        let moment = self.moment(range, walk)?;
        moment.view(range).key_of_rid(rid).map_err(stored)
    }

    /// A carry as the program needs it: what was cut off to keep the token short is read from the last row again.
    fn complete(&self, request: Request<'_>, walk: &Walk) -> Result<Option<Carry>> {
        let Some(carry) = request.carry else { return Ok(None) };
        let Carry::Cut { after, .. } = carry else { return Ok(Some(carry.clone())) };
        let mut items = Vec::new();
        if let Ok(rid) = after.place.as_slice().try_into().map(u64::from_be_bytes) {
            for range in request.container.ranges.iter().filter(|range| range.epk().overlaps(&walk.epk)) {
                let moment = self.moment(range, walk)?;
                items.extend(moment.view(range).item_of_rid(rid).map_err(stored)?);
            }
        }
        page::complete(&request, carry, &items).map(Some)
    }

    /// What readers see of a range now, with an index that is complete in it.
    fn moment(&self, range: &Range, walk: &Walk) -> Result<Moment> {
        let (lsn, snapshot, schema) = range.replica.schema_point(&self.inner.committer)?;
        let lifetimes = schema.lifetimes(self.world().now());
        Ok(Moment { snapshot, schema, lsn, lifetimes, key: walk.key.clone() })
    }
}

/// The parts of a cursor, of which a program changes its state.
fn parts(cursor: Option<&Cursor>) -> (Option<&CursorPlace>, Option<Carry>) {
    (cursor.and_then(|cursor| cursor.place.as_ref()), cursor.and_then(|cursor| cursor.state.clone()))
}

/// Where the next page of a program begins. A blocking program starts over on every page, so its place is always the
/// beginning; one that needs no items has no place at all.
fn cursor(program: &Program, walk: &Walk, state: Option<Carry>) -> Option<Cursor> {
    let place = if program.is_blocking() { None } else { walk.place() };
    let has_state_alone = program.is_blocking() || !program.needs_items();
    let goes_on = place.is_some() || has_state_alone && state.is_some();
    goes_on.then_some(Cursor { place, state })
}

/// What a visit has found.
struct Visited<'p, S> {
    run: PageRun<'p, S>,
    /// The page, where it did not come from the run.
    answer: Option<(S, Option<Carry>)>,
    /// Items that were looked at when the page was full.
    ahead: usize,
}

impl<S: Sink + Default> Visited<'_, S> {
    /// The rows, and where the program goes on.
    fn finish(self) -> Result<(S, Option<Carry>)> {
        self.answer.map_or_else(|| self.run.finish(), Ok)
    }
}

/// Fills one page and moves the walk on.
fn run_visit<'p, S: Sink + Default>(
    visit: &mut Visit<'p>,
    walk: &mut Walk,
    range: &Range,
) -> Result<Visited<'p, S>> {
    let mut run: PageRun<'p, S> = visit.request.start()?;
    let is_fed = feeds_without_items(visit, &mut run)?;
    let answer = if is_fed { None } else { answer_by_index(visit, &mut run)? };
    if is_fed || answer.is_some() {
        walk.finish();
        return Ok(Visited { run, answer, ahead: 0 });
    }
    if visit.request.program.lists_items() {
        visit.begin_leg(range, walk);
    }
    let end = key_order::feed(visit, walk, &mut run)?;
    walk.move_on(range, end.step, end.last);
    Ok(Visited { run, answer, ahead: end.ahead })
}

/// Gives the program all that it needs, if that is less than items.
fn feeds_without_items<S: Sink + Default>(visit: &mut Visit<'_>, run: &mut PageRun<'_, S>) -> Result<bool> {
    if !visit.request.program.needs_items() {
        run.feed_nothing()?;
        return Ok(true);
    }
    shortcut::feed(visit, run)
}

/// The page, if an index knows its groups or delivers its order.
fn answer_by_index<S: Sink + Default>(
    visit: &mut Visit<'_>,
    run: &mut PageRun<'_, S>,
) -> Result<Option<(S, Option<Carry>)>> {
    if let Some(answer) = groups::answer(visit)? {
        return Ok(Some(answer));
    }
    if visit.has_groups_as_created() {
        run.order_groups_by_creation();
    }
    term_order::answer(visit)
}
