//! Walking items page by page, without keeping anything between pages.
//!
//! Items sort by their place in the key space, so the last key of a page says all that the next page needs.
//! That survives restarts, other page sizes, and partitions that split in between.
//!
//! The service answers in the order of creation, and so does a walk as long as that costs little: where the part
//! of a partition that is to be visited is small ([`PartSize::is_small`]), it is a *leg* of the walk, whose items come in the
//! order of their rids. The continuation then says where the leg ends and which rid came last. Whatever becomes of
//! the partition in between, all items of the leg up to that rid are done and the others are not; so a walk
//! never changes its mind within a leg, even if the leg grows, or lies in several partitions by now.

use std::sync::Arc;
use std::time::Duration;

use orrery_doc::{Epk, EpkRange, PartitionKey, epk};
use orrery_store::index::key_at;
use orrery_store::limits::LOOK_AHEAD_ITEMS_MAX;
use orrery_store::{Fault, Item, Members, Meter, PartSize, PartitionState, Position, Scan, View, WholeKey};

use crate::catalog::Container;
use crate::cursor::{Cursor, CursorPlace, Leg};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::range::Range;
use crate::receipt::{Charge, Receipt, Served};
use crate::request::{FeedPage, ItemOrder, PageOptions, Scope};
use crate::ru;
use crate::turns::{self, Party};
use crate::world::{Deadline, World};

/// Partitions behind that of a page that are looked at, or passed because they hold nothing.
pub(crate) const RANGES_AHEAD_MAX: usize = 64;

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
        let mut walk = Walk::start(container, scope, place)?.ordered(page.order);
        let mut limits = PageLimits::new(page, self.world());
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
        let wanted = page.items_max.saturating_add(1);
        let meter = self.walk_range(container, range, walk, wanted, |item| match item {
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
        range.note(|insight| insight.scanned(charge.total()));
        let served = Some(Served { range_id: range.descriptor.id, lsn, item_lsn: None });
        Ok(FeedPage { items, continuation: walk.cursor(), receipt: Receipt { charge, served } })
    }

    /// Leaves out partitions at whose beginning the walk stands and that hold nothing, so that the page before is known
    /// to be the last if nothing else follows.
    pub(crate) fn pass_empty(&self, container: &Container, walk: &mut Walk) -> Result<()> {
        for _ in 0..RANGES_AHEAD_MAX {
            let Some(range) = walk.range(container).filter(|_| walk.is_between_ranges()) else { break };
            if self.has_items(container, range, walk)? {
                break;
            }
            walk.move_on(range, Step::Continue, None);
        }
        Ok(())
    }

    /// Whether the range has an item for the walk's reader, as far as a short look tells.
    fn has_items(&self, container: &Container, range: &Range, walk: &Walk) -> Result<bool> {
        let lsn = range.replica.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        range.replica.check_kept()?;
        let key = walk.key.as_ref().and_then(|key| WholeKey::of(&container.definition.key, key));
        let view = range.replica.view(&snapshot, lsn).only(key);
        let (mut expired, mut found) = (0, false);
        let scanned = view.scan_stored(&walk.part_of(range), None, |_, item| {
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
        container: &Container,
        range: &Range,
        walk: &mut Walk,
        wanted: usize,
        mut visit: impl FnMut(Option<Item>) -> Step,
    ) -> Result<Meter> {
        let lsn = range.replica.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        range.replica.check_kept()?;
        let mut meter = Meter::default();
        let mut last = LastSeen::default();
        let mut end = Step::Continue;
        let key = walk.key.clone();
        let key = key.as_ref().and_then(|key| WholeKey::of(&container.definition.key, key));
        let view = range.replica.view(&snapshot, lsn).only(key);
        let state = view.state()?;
        let size = part_size(&view, container, walk.logical(container), &state)?;
        walk.begin_leg(range, size);
        let mut take = |place: &[u8], item: Item| {
            turns::rest();
            let (bytes, rid) = (u64::from(item.header.json_bytes), item.header.rid);
            end = visit(Some(item).filter(|item| !view.is_over(item)));
            if end == Step::StopAhead {
                return Scan::Stop;
            }
            meter.items_scanned += 1;
            meter.bytes_scanned += bytes;
            last.note(place, rid);
            if end == Step::Continue { Scan::Continue } else { Scan::Stop }
        };
        let part = walk.part_of(range);
        let scanned = match walk.leg() {
            Some(leg) => {
                let all = Members::All;
                view.scan_created(&part, leg.seen, all, size, Some(wanted), |item| take(&[], item))
            }
            None => view.scan_stored(&part, walk.after(), take),
        };
        scanned?;
        let last = last.place(walk)?;
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

/// How large the logical partition is, or the whole partition where the reader asks for more than one.
pub(crate) fn part_size(
    view: &View<'_>,
    container: &Container,
    logical: Option<&PartitionKey>,
    state: &PartitionState,
) -> std::result::Result<PartSize, Fault> {
    let mut size = PartSize { items: state.items, bytes: state.bytes, partition_items: state.items };
    if let Some(key) = logical {
        let logical = view.logical_size(&epk(&container.definition.key, key))?;
        (size.items, size.bytes) = (logical.items, logical.bytes);
    }
    Ok(size)
}

/// The last item that counts as seen.
#[derive(Default)]
pub(crate) struct LastSeen {
    place: Vec<u8>,
    rid: Option<u64>,
}

impl LastSeen {
    pub fn note(&mut self, place: &[u8], rid: u64) {
        self.place.clear();
        self.place.extend_from_slice(place);
        self.rid = Some(rid);
    }

    /// In the terms of the walk.
    pub fn place(self, walk: &Walk) -> std::result::Result<Option<Last>, Fault> {
        match self.rid {
            None => Ok(None),
            Some(rid) if walk.leg().is_some() => Ok(Some(Last::Rid(rid))),
            Some(_) => match key_at(&self.place) {
                Some(key) => Ok(Some(Last::Place(key))),
                None => Err(Fault::Damaged("an item key".into())),
            },
        }
    }
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Place(Position),
    /// Within a leg.
    Rid(u64),
}

/// Where a walk over part of the key space stands.
pub(crate) struct Walk {
    /// What is to be visited in all.
    pub epk: EpkRange,
    seen: Seen,
    /// The last item that was seen is not done with: some of its rows did not fit into the last page.
    pub again: bool,
    /// The key that items must have besides lying there, or its first levels.
    pub key: Option<PartitionKey>,
    /// Legs that are not done, each behind the one before it. The first is the one that the walk is in; others are there
    /// where a partition that was one leg was split meanwhile.
    legs: Vec<Leg>,
    order: ItemOrder,
    done: bool,
    /// Set when the client named a range: then no other may answer.
    only: Option<u32>,
}

impl Walk {
    pub fn start(container: &Container, scope: &Scope, from: Option<&CursorPlace>) -> Result<Walk> {
        let only = scope.range_id();
        let mut epk = scope.covered(&container.definition.key);
        if let Some(id) = only {
            epk = epk.intersection(container.range_by_id(id).ok_or(ErrorKind::RangeGone)?.epk());
        }
        let seen = match from {
            None => Seen::Nothing,
            Some(CursorPlace { epk, id: None, .. }) => Seen::Below(epk.clone()),
            Some(CursorPlace { epk, id: Some(id), .. }) => {
                Seen::UpTo(Position { epk: epk.clone(), id: id.clone() })
            }
        };
        let again = from.is_some_and(|place| place.again);
        let legs = from.map_or_else(Vec::new, |place| place.legs.clone());
        let key = scope.key().cloned();
        Ok(Walk { epk, seen, again, key, legs, order: ItemOrder::Creation, done: false, only })
    }

    /// The key of the one logical partition that is to be visited.
    pub fn logical(&self, container: &Container) -> Option<&PartitionKey> {
        self.key.as_ref().filter(|key| key.is_full(&container.definition.key))
    }

    pub fn ordered(self, order: ItemOrder) -> Walk {
        Walk { order, ..self }
    }

    /// Goes on in the order of creation, unless the walk is among the items of this range already, or they are many.
    pub fn begin_leg(&mut self, range: &Range, size: PartSize) {
        let part = self.epk.intersection(range.epk());
        // The reader may have turned to what follows.
        self.legs.retain(|leg| leg.end > part.min);
        if let Some(Leg { end, seen }) = self.leg().cloned() {
            if end > part.max {
                // What is seen in this part says nothing about the rest of the leg.
                self.legs.insert(0, Leg { end: part.max, seen });
            }
            return;
        }
        let is_at_beginning = !matches!(self.seen, Seen::UpTo(_));
        if self.order == ItemOrder::Keys || !is_at_beginning || !size.is_small() {
            return;
        }
        let from = match &self.seen {
            Seen::Below(epk) => epk.max(&part.min).clone(),
            _ => part.min,
        };
        if from < part.max {
            self.legs = vec![Leg { end: part.max, seen: None }];
        }
        self.seen = Seen::Below(from);
    }

    /// Where the order of creation holds.
    pub fn leg(&self) -> Option<&Leg> {
        self.legs.first()
    }

    /// What of a range is to be visited; of a leg, what is left of it. In key order some of it may be done.
    pub fn part_of(&self, range: &Range) -> EpkRange {
        let part = self.epk.intersection(range.epk());
        match (self.leg(), &self.seen) {
            (Some(leg), Seen::Below(from)) => {
                part.intersection(&EpkRange { min: from.clone(), max: leg.end.clone() })
            }
            (None, _) | (_, Seen::Nothing | Seen::UpTo(_)) => self.rest_of(range),
        }
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
    pub fn move_on(&mut self, range: &Range, end: Step, last: Option<Last>) {
        self.again = end == Step::StopBefore;
        match end {
            Step::Continue => self.leave(range),
            Step::Finish => self.finish(),
            Step::StopAfter | Step::StopBefore | Step::StopAhead => self.stop_at(last),
        }
    }

    /// Everything of this range was seen, or of the leg, if that ends within; what follows is next.
    fn leave(&mut self, range: &Range) {
        let leg_end = self.leg().map(|leg| leg.end.clone()).filter(|end| *end <= range.epk().max);
        if leg_end.is_some() {
            self.legs.remove(0);
        }
        let end = leg_end.unwrap_or_else(|| range.epk().max.clone());
        if end >= self.epk.max || self.only.is_some() && end >= range.epk().max {
            self.done = true;
        } else {
            self.seen = Seen::Below(end);
        }
    }

    /// A page ended here; without a last item it ended before its first one.
    fn stop_at(&mut self, last: Option<Last>) {
        match (last, self.legs.first_mut()) {
            (Some(Last::Place(position)), _) => self.seen = Seen::UpTo(position),
            (Some(Last::Rid(rid)), Some(leg)) => leg.seen = Some(rid),
            (Some(Last::Rid(_)), None) => unreachable!("rids are told within a leg only"),
            (None, _) if self.seen == Seen::Nothing => self.seen = Seen::Below(self.epk.min.clone()),
            (None, _) => {}
        }
    }

    /// Whether nothing of the range that comes next was seen yet.
    pub fn is_between_ranges(&self) -> bool {
        self.only.is_none() && self.legs.is_empty() && matches!(self.seen, Seen::Below(_))
    }

    /// Nothing more is wanted.
    pub fn finish(&mut self) {
        self.done = true;
    }

    /// Whether nothing is left to visit beyond this range.
    pub fn ends_within(&self, range: &Range) -> bool {
        let end = (&range.epk().max).min(&self.epk.max);
        let leg_does = self.leg().is_none_or(|leg| leg.end >= *end);
        leg_does && (self.only.is_some() || range.epk().max >= self.epk.max)
    }

    /// Where the next page begins, if anything is left.
    pub fn place(&self) -> Option<CursorPlace> {
        let (epk, id) = match &self.seen {
            Seen::Nothing => return None,
            _ if self.done => return None,
            Seen::Below(epk) => (epk, None),
            Seen::UpTo(Position { epk, id }) => (epk, Some(id.clone())),
        };
        Some(CursorPlace { epk: epk.clone(), id, legs: self.legs.clone(), again: self.again })
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
    deadline: Deadline,
    seen: u32,
}

impl PageLimits {
    pub fn new(page: &PageOptions, world: &World) -> PageLimits {
        PageLimits::within(page, page.time_max, world)
    }

    /// As the page says, but with another time.
    pub fn within(page: &PageOptions, time_max: Duration, world: &World) -> PageLimits {
        PageLimits {
            items_left: page.items_max,
            bytes_left: page.bytes_max as i64,
            deadline: world.deadline(time_max),
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
        self.deadline.is_past()
    }

    /// Whether the time of the page is up; asks the clock only now and then.
    pub fn is_late(&mut self) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(ITEMS_PER_CLOCK_CHECK) && self.are_over()
    }
}
