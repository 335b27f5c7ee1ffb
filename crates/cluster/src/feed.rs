//! Walking items in key order, page by page, without keeping anything between pages.
//!
//! Items sort by their place in the key space, so the last key of a page says all that the next page needs.
//! That survives restarts, other page sizes, and partitions that split in between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::{Epk, EpkRange, prefix_range};
use orrery_store::index::key_at;
use orrery_store::limits::LOOK_AHEAD_ITEMS_MAX;
use orrery_store::{Item, Meter, OpError, Position, Scan, View, WholeKey};

use crate::catalog::Container;
use crate::cursor::{Cursor, CursorPlace};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::range::Range;
use crate::receipt::{Charge, Receipt, Served};
use crate::request::{FeedPage, PageOptions, Scope};
use crate::ru;
use crate::turns::{self, Party};

/// Partitions without items that are passed after one page.
const EMPTY_RANGES_PASSED_MAX: usize = 64;

/// The clock is asked once in so many items.
const ITEMS_PER_CLOCK_CHECK: u32 = 16;

impl Db {
    /// One page of items. It never spans two partitions, and is empty only when nothing is left or its time was over.
    pub async fn read_feed(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        page: &PageOptions,
    ) -> Result<FeedPage> {
        let party = Party::from(container.number);
        self.read_page(party, page, |page| self.first_page_with_items(container, scope, page)).await
    }

    fn first_page_with_items(
        &self,
        container: &Container,
        scope: &Scope,
        page: &PageOptions,
    ) -> Result<FeedPage> {
        // The state of a program is nothing to a feed.
        let place = match &page.continuation {
            None => None,
            Some(Cursor { place: Some(place), state: None }) => Some(place),
            Some(_) => return Err(ErrorKind::CursorMismatch.into()),
        };
        let mut walk = Walk::start(container, scope, place)?;
        let mut limits = PageLimits::new(page);
        // Partitions that held nothing to show have their price too.
        let mut passed = Charge::default();
        loop {
            let Some(range) = walk.range(container) else {
                let receipt = Receipt { charge: passed, served: None };
                return Ok(FeedPage { items: vec![], continuation: None, receipt });
            };
            let mut found = self.feed_page(container, range, &mut walk, page, &mut limits)?;
            self.pass_empty(container, &mut walk)?;
            found.continuation = walk.cursor();
            passed.merge(std::mem::take(&mut found.receipt.charge));
            if !found.items.is_empty() || found.continuation.is_none() || limits.are_over() {
                found.receipt.charge = passed;
                return Ok(found);
            }
        }
    }

    fn feed_page(
        &self,
        container: &Container,
        range: &Range,
        walk: &mut Walk,
        page: &PageOptions,
        limits: &mut PageLimits,
    ) -> Result<FeedPage> {
        let lsn = self.admit(container, range, page)?;
        let mut items = Vec::new();
        let mut ahead = 0;
        let meter = self.walk_range(range, walk, |item| match item {
            // Something follows the full page.
            Some(_) if limits.is_full() => Step::StopAhead,
            Some(item) => {
                let step = limits.take(u64::from(item.header.json_bytes));
                items.push(item);
                if limits.is_full() { Step::Continue } else { step }
            }
            None => {
                ahead += usize::from(limits.is_full());
                let ends = ahead >= LOOK_AHEAD_ITEMS_MAX || limits.is_late();
                if ends { Step::StopAfter } else { Step::Continue }
            }
        })?;
        let charge = ru::feed(&meter, page.consistency);
        self.pay(container, range, &charge);
        range.insight.scanned(charge.total());
        let served = Some(Served { range_id: range.id, lsn, item_lsn: None });
        Ok(FeedPage { items, continuation: walk.cursor(), receipt: Receipt { charge, served } })
    }

    /// Leaves out partitions at whose beginning the walk stands and that hold nothing, so that the page before is known
    /// to be the last if nothing else follows.
    pub(crate) fn pass_empty(&self, container: &Container, walk: &mut Walk) -> Result<()> {
        for _ in 0..EMPTY_RANGES_PASSED_MAX {
            let Some(range) = walk.range(container).filter(|_| walk.is_between_ranges()) else { break };
            if self.has_items(range, walk)? {
                break;
            }
            walk.move_on(range, Step::Continue, None);
        }
        Ok(())
    }

    /// Whether the range has an item for the walk's reader, as far as a short look tells.
    fn has_items(&self, range: &Range, walk: &Walk) -> Result<bool> {
        let lsn = range.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        range.check_kept()?;
        let view =
            View::new(&range.partition, &snapshot, lsn, range.lifetimes()).only(walk.whole_key.as_ref());
        let (mut expired, mut found) = (0, false);
        let scanned = view.scan_stored(&walk.rest_of(range), None, |_, item| {
            expired += usize::from(view.is_over(&item));
            found = !view.is_over(&item) || expired >= LOOK_AHEAD_ITEMS_MAX;
            if found { Scan::Stop } else { Scan::Continue }
        });
        scanned.map_err(Error::from)?;
        Ok(found)
    }

    /// Visits the items of one range from where the walk stands, and moves the walk on. An item that
    /// is not there for the reader is shown as none: it costs as much time as others, and the walk may end there.
    fn walk_range(
        &self,
        range: &Range,
        walk: &mut Walk,
        mut visit: impl FnMut(Option<Item>) -> Step,
    ) -> Result<Meter> {
        let lsn = range.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        range.check_kept()?;
        let mut meter = Meter::default();
        let mut last = Vec::new();
        let mut end = Step::Continue;
        let epk = walk.rest_of(range);
        let whole_key = walk.whole_key.clone();
        let view = View::new(&range.partition, &snapshot, lsn, range.lifetimes()).only(whole_key.as_ref());
        let scanned = view.scan_stored(&epk, walk.after(), |place, item| {
            turns::rest();
            let bytes = u64::from(item.header.json_bytes);
            end = visit(Some(item).filter(|item| !view.is_over(item)));
            if end == Step::StopAhead {
                return Scan::Stop;
            }
            meter.items_scanned += 1;
            meter.bytes_scanned += bytes;
            last.clear();
            last.extend_from_slice(place);
            if end == Step::Continue { Scan::Continue } else { Scan::Stop }
        });
        scanned.map_err(Error::from)?;
        let last = match last.is_empty() {
            true => None,
            false => Some(key_at(&last).ok_or_else(|| Error::from(OpError::Damaged("an item key".into())))?),
        };
        walk.move_on(range, end, last);
        Ok(meter)
    }
}

/// What a walk has passed, from its beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// All that lies below this place, and nothing of it.
    Below(Epk),
    /// All up to this item.
    UpTo(Position),
}

/// Where a walk over part of the key space stands.
pub(crate) struct Walk {
    /// What is to be visited in all.
    pub epk: EpkRange,
    seen: Seen,
    /// The last item that was seen is not done with: some of its rows did not fit into the last page.
    pub again: bool,
    /// What items must have besides lying there.
    pub whole_key: Option<WholeKey>,
    done: bool,
    /// Set when the client named a range: then no other may answer.
    only: Option<u32>,
}

impl Walk {
    pub fn start(container: &Container, scope: &Scope, from: Option<&CursorPlace>) -> Result<Walk> {
        let everything = EpkRange::full();
        let (epk, only) = match scope {
            Scope::Container => (everything, None),
            Scope::Epk(epk) => (epk.clone(), None),
            Scope::Key(key) => (prefix_range(&container.definition.key, key), None),
            Scope::Range { range_id, epk } => {
                let range = container.range_by_id(*range_id).ok_or(ErrorKind::RangeGone)?;
                let epk =
                    epk.as_ref().map_or_else(|| range.epk().clone(), |epk| epk.intersection(range.epk()));
                (epk, Some(*range_id))
            }
        };
        let seen = match from {
            None => Seen::Nothing,
            Some(CursorPlace { epk, id: None, .. }) => Seen::Below(epk.clone()),
            Some(CursorPlace { epk, id: Some(id), .. }) => {
                Seen::UpTo(Position { epk: epk.clone(), id: id.clone() })
            }
        };
        let again = from.is_some_and(|place| place.again);
        let whole_key = scope.whole_key(&container.definition.key);
        Ok(Walk { epk, seen, again, whole_key, done: false, only })
    }

    /// The partition that the next item can be in.
    pub fn range<'a>(&self, container: &'a Container) -> Option<&'a Arc<Range>> {
        if self.done {
            return None;
        }
        if let Some(id) = self.only {
            return container.range_by_id(id);
        }
        let from = match &self.seen {
            Seen::Nothing => &self.epk.min,
            Seen::Below(epk) | Seen::UpTo(Position { epk, .. }) => epk.max(&self.epk.min),
        };
        if *from >= self.epk.max { None } else { Some(container.range_of(from)) }
    }

    /// The last item that was seen.
    pub fn after(&self) -> Option<&Position> {
        match &self.seen {
            Seen::UpTo(position) => Some(position),
            Seen::Nothing | Seen::Below(_) => None,
        }
    }

    /// What of a range is still to be visited, behind [`Walk::after`].
    pub fn rest_of(&self, range: &Range) -> EpkRange {
        let mut rest = self.epk.intersection(range.epk());
        if let Seen::Below(epk) = &self.seen {
            rest.min = rest.min.max(epk.clone());
        }
        rest
    }

    /// Moves the walk on after a visit to a range that ended so, with the last item that counts as seen.
    pub fn move_on(&mut self, range: &Range, end: Step, last: Option<Position>) {
        self.again = end == Step::StopBefore;
        match end {
            Step::Continue => self.leave(range),
            Step::Finish => self.finish(),
            Step::StopAfter | Step::StopBefore | Step::StopAhead => self.stop_at(last),
        }
    }

    /// Everything of this range was seen; the next one follows.
    fn leave(&mut self, range: &Range) {
        if self.ends_within(range) {
            self.done = true;
        } else {
            self.seen = Seen::Below(range.epk().max.clone());
        }
    }

    /// A page ended here; without a last key it ended before its first item.
    fn stop_at(&mut self, last: Option<Position>) {
        match last {
            Some(last) => self.seen = Seen::UpTo(last),
            None if self.seen == Seen::Nothing => self.seen = Seen::Below(self.epk.min.clone()),
            None => {}
        }
    }

    /// Whether nothing of the range that comes next was seen yet.
    fn is_between_ranges(&self) -> bool {
        self.only.is_none() && matches!(self.seen, Seen::Below(_))
    }

    /// Nothing more is wanted.
    pub fn finish(&mut self) {
        self.done = true;
    }

    /// Whether nothing is left to visit beyond this range.
    pub fn ends_within(&self, range: &Range) -> bool {
        self.only.is_some() || range.epk().max >= self.epk.max
    }

    /// Where the next page begins, if anything is left.
    pub fn place(&self) -> Option<CursorPlace> {
        let (epk, id) = match &self.seen {
            Seen::Nothing => return None,
            _ if self.done => return None,
            Seen::Below(epk) => (epk, None),
            Seen::UpTo(Position { epk, id }) => (epk, Some(id.clone())),
        };
        Some(CursorPlace { epk: epk.clone(), id, again: self.again })
    }

    /// The same for a feed.
    fn cursor(&self) -> Option<Cursor> {
        self.place().map(|place| Cursor { place: Some(place), state: None })
    }
}

/// What a walk does after an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Continue,
    /// The page is full; go on behind this item.
    StopAfter,
    /// The page is full; this item comes again, because not all of its rows are out.
    StopBefore,
    /// The page was full before this item, which is known to be wanted next; go on behind the one before it.
    StopAhead,
    /// No further item is wanted.
    Finish,
}

/// When a page is full.
pub(crate) struct PageLimits {
    items_left: usize,
    bytes_left: i64,
    deadline: Instant,
    seen: u32,
}

impl PageLimits {
    pub fn new(page: &PageOptions) -> PageLimits {
        PageLimits::within(page, page.time_max)
    }

    /// As the page says, but with another time.
    pub fn within(page: &PageOptions, time_max: Duration) -> PageLimits {
        PageLimits {
            items_left: page.items_max,
            bytes_left: page.bytes_max as i64,
            deadline: Instant::now() + time_max,
            seen: 0,
        }
    }

    /// Counts one item that goes into the page.
    pub fn take(&mut self, bytes: u64) -> Step {
        self.items_left = self.items_left.saturating_sub(1);
        self.bytes_left -= bytes as i64;
        if self.is_full() || self.is_late() { Step::StopAfter } else { Step::Continue }
    }

    /// Whether the page has no room for another item.
    fn is_full(&self) -> bool {
        self.items_left == 0 || self.bytes_left <= 0
    }

    /// Whether nothing more may be looked for.
    fn are_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Whether the time of the page is up; asks the clock only now and then.
    pub fn is_late(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(ITEMS_PER_CLOCK_CHECK) && self.are_over()
    }
}
