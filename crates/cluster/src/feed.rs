//! Walking items in key order, page by page, without keeping anything between pages.
//!
//! Items sort by their place in the key space, so the last key of a page says all that the next page needs.
//! That survives restarts, other page sizes, and partitions that split in between.

use std::sync::Arc;
use std::time::Instant;

use orrery_doc::{Epk, EpkRange, prefix_range};
use orrery_store::{Item, Meter, Position, Scan, View};

use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::range::Range;
use crate::receipt::{Receipt, Served};
use crate::request::{FeedPage, PageOptions, Scope};
use crate::ru;

/// The clock is asked once in so many items.
const ITEMS_PER_CLOCK_CHECK: u32 = 64;

impl Db {
    /// One page of items. It never spans two partitions, and is empty only when nothing is left.
    pub async fn read_feed(
        &self,
        container: &Arc<Container>,
        scope: &Scope,
        page: &PageOptions,
    ) -> Result<FeedPage> {
        let mut walk = Walk::start(container, scope, page.continuation.as_deref())?;
        loop {
            let Some(range) = walk.range(container) else {
                return Ok(FeedPage { items: vec![], continuation: None, receipt: Receipt::default() });
            };
            let found = self.feed_page(container, range, &mut walk, page)?;
            if !found.items.is_empty() || found.continuation.is_none() {
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
    ) -> Result<FeedPage> {
        let lsn = self.admit(container, range, page.session.as_ref())?;
        let mut items = Vec::new();
        let mut limits = PageLimits::new(page);
        let meter = self.walk_range(range, walk, |item| {
            let scan = limits.take(u64::from(item.header.json_bytes), true);
            items.push(item);
            scan
        })?;
        let charge = ru::feed(&meter, page.consistency);
        self.pay(container, range, &charge);
        let served = Some(Served { range_id: range.id, lsn, item_lsn: None });
        Ok(FeedPage { items, continuation: walk.continuation(), receipt: Receipt { charge, served } })
    }

    /// Visits the items of one range from where the walk stands, and moves the walk on.
    pub(crate) fn walk_range(
        &self,
        range: &Range,
        walk: &mut Walk,
        mut visit: impl FnMut(Item) -> Scan,
    ) -> Result<Meter> {
        let lsn = range.partition.lsn();
        let snapshot = self.inner.committer.snapshot_owned();
        let mut meter = Meter::default();
        let mut last = None;
        let epk = walk.epk.intersection(range.epk());
        let view = View::new(&range.partition, &snapshot, lsn);
        let scanned = view.scan(&epk, walk.after.as_ref(), |key, item| {
            meter.items_scanned += 1;
            meter.bytes_scanned += u64::from(item.header.json_bytes);
            let scan = visit(item);
            if scan == Scan::Stop {
                last = Some(key);
            }
            scan
        });
        scanned.map_err(|error| Error::from(ErrorKind::Op { place: 0, error }))?;
        walk.advance(last, range);
        Ok(meter)
    }
}

/// Where a walk over part of the key space stands.
pub(crate) struct Walk {
    /// What is to be visited in all.
    pub epk: EpkRange,
    after: Option<Position>,
    done: bool,
    /// Set when the client named a range: then no other may answer.
    only: Option<u32>,
}

impl Walk {
    pub fn start(container: &Container, scope: &Scope, continuation: Option<&str>) -> Result<Walk> {
        let everything = EpkRange::full();
        let (epk, only) = match scope {
            Scope::Container => (everything, None),
            Scope::Epk(epk) => (epk.clone(), None),
            Scope::Key(key) => (prefix_range(&container.definition.key, key), None),
            Scope::Range { range_id, epk } => {
                let range = container.range_by_id(*range_id).ok_or(ErrorKind::RangeGone)?;
                let epk = epk.as_ref().map_or_else(|| range.epk().clone(), |epk| epk.intersection(range.epk()));
                (epk, Some(*range_id))
            }
        };
        let after = continuation.map(parse_position).transpose()?;
        Ok(Walk { epk, after, done: false, only })
    }

    /// The partition that the next item can be in.
    pub fn range<'a>(&self, container: &'a Container) -> Option<&'a Arc<Range>> {
        if self.done {
            return None;
        }
        if let Some(id) = self.only {
            return container.range_by_id(id);
        }
        let from = self.after.as_ref().map_or(&self.epk.min, |position| &position.epk);
        let from = from.max(&self.epk.min).clone();
        let rest = EpkRange { min: from, max: self.epk.max.clone() };
        if rest.min >= rest.max { None } else { Some(container.range_of(&rest.min)) }
    }

    /// `last` is where a page stopped; without it the range is finished and the next one follows.
    fn advance(&mut self, last: Option<Position>, range: &Range) {
        match last {
            Some(position) => self.after = Some(position),
            None if self.only.is_some() || range.epk().max >= self.epk.max => self.done = true,
            // Ids are never empty, so this stands before everything of the next range.
            None => self.after = Some(Position { epk: range.epk().max.clone(), id: String::new() }),
        }
    }

    /// What the client sends back for the next page.
    pub fn continuation(&self) -> Option<String> {
        let position = self.after.as_ref().filter(|_| !self.done)?;
        let id: String = position.id.bytes().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("+RID:~{}#{id}", position.epk.to_hex()))
    }
}

fn parse_position(text: &str) -> Result<Position> {
    let wrong = || Error::invalid("Invalid Continuation Token");
    let (epk, id) = text.strip_prefix("+RID:~").and_then(|rest| rest.split_once('#')).ok_or_else(wrong)?;
    let epk = Epk::from_hex(epk).ok_or_else(wrong)?;
    if !id.is_ascii() || !id.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |place| u8::from_str_radix(&id[place..place + 2], 16).map_err(|_| wrong());
    let bytes: Vec<u8> = (0..id.len()).step_by(2).map(byte).collect::<Result<_>>()?;
    Ok(Position { epk, id: String::from_utf8(bytes).map_err(|_| wrong())? })
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
        PageLimits {
            items_left: page.items_max,
            bytes_left: page.bytes_max as i64,
            deadline: Instant::now() + page.time_max,
            seen: 0,
        }
    }

    /// Counts one item; `returned` when it goes into the page.
    pub fn take(&mut self, bytes: u64, returned: bool) -> Scan {
        self.seen += 1;
        if returned {
            self.items_left = self.items_left.saturating_sub(1);
            self.bytes_left -= bytes as i64;
        }
        let late = self.seen.is_multiple_of(ITEMS_PER_CLOCK_CHECK) && Instant::now() >= self.deadline;
        if self.items_left == 0 || self.bytes_left <= 0 || late { Scan::Stop } else { Scan::Continue }
    }
}
