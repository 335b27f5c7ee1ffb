//! Items in key order, or where they are few in the order of their creation, by scan or by index: whichever is used, the
//! rows and their order are the same, so each page may choose anew. Charged is what the program was given; what was
//! sorted to find it is not.

use orrery_query::{Flow, Proposal, Steward};
use orrery_store::index::{IndexReader, PlaceCursor, place_of};
use orrery_store::limits::{BLOCKING_QUERY_TIME_MAX, LOOK_AHEAD_ITEMS_MAX};
use orrery_store::{Item, Scan};

use super::choose::Chosen;
use super::leg;
use super::note::Method;
use super::page::Feed;
use super::visit::{Request, Visit, stored};
use crate::error::{Error, ErrorKind, Result};
use crate::feed::{Last, LastSeen, PageLimits, Step, Walk};
use crate::request::PageOptions;
use crate::turns::at_length;

/// So few intervals of terms are asked about before other tasks have their turn.
const SPANS_AT_ONCE: usize = 8;

/// How a visit ended: what to do next, the last item that was fed, and how many were looked at when the page was full.
pub(super) struct End {
    pub step: Step,
    pub last: Option<Last>,
    pub ahead: usize,
}

/// Feeds the items of the extent to the program until it has enough.
pub(super) fn feed(visit: &mut Visit<'_>, walk: &Walk, run: &mut dyn Feed) -> Result<End> {
    let mut keeper = Keeper::new(visit.request, visit.ahead);
    // The item whose rows did not fit comes first, also if no index names it any more: the program has to know which
    // item it is that some rows are out of.
    if let Some((key, item)) = visit.resumed.take()
        && keeper.take(visit, run, &place_of(&key), &item) == Scan::Stop
    {
        return keeper.end(walk);
    }
    let reader = visit.reader();
    let many_conditions = visit.note.access.as_ref().is_some_and(|access| !has_few_spans(&access.filter));
    let chosen = at_length(many_conditions, || choose(visit, &reader))?;
    let names_few = |chosen: &Chosen| chosen.is_sure && chosen.candidates.is_within(visit.items_at_once);
    let is_short = visit.extent.items <= visit.items_at_once as u64 || chosen.as_ref().is_some_and(names_few);
    at_length(!is_short, || match visit.extent.leg.clone() {
        Some(leg) => leg::feed(visit, run, &mut keeper, &leg, &reader, chosen),
        None => match open(visit, &reader, chosen)? {
            Some(cursor) => feed_places(visit, run, &mut keeper, cursor),
            None => scan(visit, run, &mut keeper),
        },
    })?;
    visit.count_entries(&reader);
    keeper.end(walk)
}

/// Whether asking the index about the conditions is a matter of a few searches.
fn has_few_spans(filter: &Proposal) -> bool {
    fn spans(filter: &Proposal) -> usize {
        match filter {
            Proposal::Everything | Proposal::Nothing => 0,
            Proposal::Leaf(leaf) => leaf.spans.len(),
            Proposal::All(list) | Proposal::Any(list) => list.iter().map(spans).sum(),
        }
    }
    spans(filter) <= SPANS_AT_ONCE
}

/// The candidates to visit, or none for all items.
fn choose(visit: &mut Visit<'_>, reader: &IndexReader<'_>) -> Result<Option<Chosen>> {
    let Some(access) = visit.note.access.take() else { return Ok(None) };
    let implied = visit.implied_paths();
    let mut chooser = visit.chooser(reader, &implied);
    let chosen = visit.tally.looking_up(|| chooser.choose(&access.filter));
    visit.note.leaves = chooser.notes;
    visit.note.access = Some(access);
    chosen.map_err(stored)
}

/// The places of the candidates, unless they turn out to be too many.
pub(super) fn open<'r>(
    visit: &mut Visit<'_>,
    reader: &'r IndexReader<'r>,
    chosen: Option<Chosen>,
) -> Result<Option<PlaceCursor<'r>>> {
    visit.note.method = Method::Scan;
    let Some(Chosen { candidates, leaves, collect_max: Some(most), .. }) = chosen else { return Ok(None) };
    let cursor = visit.tally.looking_up(|| reader.places(candidates, most)).map_err(stored)?;
    if let Some(cursor) = &cursor {
        visit.request.steward.hold(cursor.memory_bytes()).map_err(ErrorKind::Query)?;
        visit.note.method = Method::Index;
        leaves.into_iter().for_each(|leaf| visit.note.leaves[leaf].used = true);
    }
    Ok(cursor)
}

fn feed_places(
    visit: &mut Visit<'_>,
    run: &mut dyn Feed,
    keeper: &mut Keeper,
    mut cursor: PlaceCursor<'_>,
) -> Result<()> {
    let mut loader = visit.view.loader();
    if let PlaceCursor::Collected(list) = &cursor {
        loader.expect(list.len(), visit.extent.items);
    }
    while let Some(place) = cursor.current() {
        let item = visit.tally.loading(|| loader.load(place)).map_err(stored)?;
        if keeper.take_or_pass(visit, run, place, &item) == Scan::Stop {
            break;
        }
        cursor.advance().map_err(stored)?;
    }
    Ok(())
}

fn scan(visit: &mut Visit<'_>, run: &mut dyn Feed, keeper: &mut Keeper) -> Result<()> {
    let started = visit.request.steward.world().monotonic();
    let (epk, after) = (visit.extent.epk.clone(), visit.extent.after.clone());
    let view = visit.view;
    let scanned =
        view.scan_stored(&epk, after.as_ref(), |place, item| keeper.take_or_pass(visit, run, place, &item));
    scanned.map_err(stored)?;
    visit.tally.scanned(visit.request.steward.world().since(started));
    Ok(())
}

/// Decides after each item whether the page goes on, and remembers the last one.
///
/// A page that is full may be the last one, and clients take it for that only if no continuation comes with it. So the
/// next items are looked at until one has a row; that row is the next page's. It is a look at a few items only: if none
/// of them has a row, there is a continuation, and perhaps an empty page. Nothing of it is done twice, because the next
/// page goes on behind them. Where the partition ends meanwhile, the look goes on in others (`beyond`).
pub(super) struct Keeper {
    limits: PageLimits,
    blocking: bool,
    /// Every item has a row, so that it need not be asked.
    all_have_rows: bool,
    /// Items that were looked at when the page was full.
    ahead: usize,
    step: Step,
    last: LastSeen,
    failure: Option<Error>,
}

impl Keeper {
    fn new(request: Request<'_>, ahead: usize) -> Keeper {
        let (page, blocking) = (request.page, request.program.is_blocking());
        // A blocking program has to see everything before it can answer, so it gets more time, but not any.
        let time_max = if blocking { BLOCKING_QUERY_TIME_MAX } else { page.time_max };
        Keeper {
            limits: PageLimits::within(page, time_max, request.steward.world()),
            blocking,
            all_have_rows: request.program.answers_every_item(),
            ahead,
            step: Step::Continue,
            last: LastSeen::default(),
            failure: None,
        }
    }

    /// Takes an item, unless it is expired. To pass one is work as well: it is charged for, and the page may end there.
    pub fn take_or_pass(
        &mut self,
        visit: &mut Visit<'_>,
        run: &mut dyn Feed,
        place: &[u8],
        item: &Item,
    ) -> Scan {
        if !visit.view.is_over(item) {
            return self.take(visit, run, place, item);
        }
        let was_full = self.is_full(visit.request.page, run);
        visit.tally.loaded(item);
        self.go_on(place, item, was_full, Ok(Flow::More))
    }

    fn take(&mut self, visit: &mut Visit<'_>, run: &mut dyn Feed, place: &[u8], item: &Item) -> Scan {
        let was_full = self.is_full(visit.request.page, run);
        if was_full && self.all_have_rows {
            return self.stop_ahead();
        }
        let fed = visit.feed(run, item);
        self.go_on(place, item, was_full, fed)
    }

    fn is_full(&self, page: &PageOptions, run: &dyn Feed) -> bool {
        !self.blocking && run.is_full(page)
    }

    /// The item at hand is the next page's.
    fn stop_ahead(&mut self) -> Scan {
        self.step = Step::StopAhead;
        Scan::Stop
    }

    fn go_on(&mut self, place: &[u8], item: &Item, was_full: bool, fed: Result<Flow>) -> Scan {
        self.ahead += usize::from(was_full);
        self.step = match fed {
            Ok(Flow::Done) => Step::Finish,
            Ok(Flow::Full) if was_full => return self.stop_ahead(),
            Ok(Flow::Full) => Step::StopBefore,
            Ok(Flow::More) if self.ahead >= LOOK_AHEAD_ITEMS_MAX => Step::StopAfter,
            Ok(Flow::More) if !self.limits.is_late() => Step::Continue,
            Ok(Flow::More) if self.blocking => {
                self.failure = Some(ErrorKind::TimedOut.into());
                Step::Finish
            }
            Ok(Flow::More) => Step::StopAfter,
            Err(error) => {
                self.failure = Some(error);
                Step::Finish
            }
        };
        self.last.note(place, item.header.rid);
        if self.step == Step::Continue { Scan::Continue } else { Scan::Stop }
    }

    fn end(self, walk: &Walk) -> Result<End> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let stops = matches!(self.step, Step::StopAfter | Step::StopBefore | Step::StopAhead);
        let last = if stops { self.last.place(walk).map_err(stored)? } else { None };
        Ok(End { step: self.step, last, ahead: self.ahead })
    }
}
