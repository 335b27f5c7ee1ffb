//! Queries of scripts: one logical partition, as of the script's snapshot, with what the script wrote on top.
//!
//! As long as a script has written nothing, its snapshot and the index are enough. Afterwards no index knows its
//! items, so the logical partition is read and its own versions take the place of the stored ones.

use std::collections::BTreeMap;

use orrery_doc::EpkRange;
use orrery_query::{Flow, Program, Rows, UserFunctions};
use orrery_store::index::place_of;
use orrery_store::limits::LOOK_AHEAD_ITEMS_MAX;
use orrery_store::{Item, ItemKey, Meter, PartSize, Scan, Target, View, Workbench};

use super::page::{Feed, PageRun};
use super::visit::{Moment, Request, Visit, stored};
use super::{QuerySteward, cursor, parts, run_visit};
use crate::catalog::Container;
use crate::cursor::Cursor;
use crate::cursor::Leg;
use crate::error::{ErrorKind, Result};
use crate::feed::{LastSeen, PageLimits, Step, Walk, part_size};
use crate::range::Range;
use crate::request::{PageOptions, Scope};

/// What a script asks.
pub(crate) struct ScriptQuery<'a> {
    pub container: &'a Container,
    pub range: &'a Range,
    /// The script's logical partition.
    pub scope: &'a Scope,
    pub program: &'a Program,
    pub functions: Option<&'a dyn UserFunctions>,
    pub bench: &'a Workbench,
    pub page: &'a PageOptions,
    pub steward: &'a QuerySteward,
}

pub(crate) struct ScriptPage {
    pub rows: Rows,
    pub meter: Meter,
    pub continuation: Option<Cursor>,
}

impl ScriptQuery<'_> {
    pub fn run(&self) -> Result<ScriptPage> {
        let (place, mut carry) = parts(self.page.continuation.as_ref());
        let mut walk = Walk::start(self.container, self.scope, place)?;
        let moment = Moment {
            snapshot: self.bench.snapshot().clone(),
            schema: self.bench.schema().clone(),
            lsn: self.bench.lsn(),
            lifetimes: self.bench.lifetimes(),
            key: walk.key.clone(),
        };
        let own: BTreeMap<ItemKey, Option<&Item>> =
            self.bench.changes().map(|(key, item)| (key.clone(), item)).collect();
        let resumed = self.resumed(&moment, &walk, &own)?;
        if resumed.is_none()
            && walk.again
            && let Some(orrery_query::Carry::Streaming { done_of_item, .. }) = &mut carry
        {
            *done_of_item = 0;
        }
        let request = Request {
            container: self.container,
            scope: self.scope,
            program: self.program,
            page: self.page,
            carry: carry.as_ref(),
            functions: self.functions,
            steward: self.steward,
        };
        let (rows, carry, mut meter) = match own.is_empty() {
            true => {
                let mut visit = Visit::new(request, self.range, &moment, &walk)?;
                visit.resumed = resumed;
                visit.in_order_of_creation(self.range, &mut walk);
                let (rows, carry) = run_visit(&mut visit, &mut walk, self.range)?.finish()?;
                (rows, carry, visit.into_work().tally.meter)
            }
            false => {
                let mut reader = Reader::new(request, &own)?;
                if !self.program.is_blocking() && self.program.needs_items() {
                    walk.begin_leg(self.range, self.size(&moment, &walk)?);
                }
                reader.read(&moment, self.range, &walk, resumed)?;
                let last = std::mem::take(&mut reader.last).place(&walk).map_err(stored)?;
                walk.move_on(self.range, reader.step, last);
                let (rows, carry) = reader.run.finish()?;
                (rows, carry, reader.meter)
            }
        };
        meter.bytes_returned = rows.byte_len() as u64;
        Ok(ScriptPage { continuation: cursor(self.program, &walk, carry), rows, meter })
    }

    /// The item whose rows did not all fit into the page before.
    fn resumed(
        &self,
        moment: &Moment,
        walk: &Walk,
        own: &BTreeMap<ItemKey, Option<&Item>>,
    ) -> Result<Option<(ItemKey, Item)>> {
        let view = moment.view(self.range);
        let key = match walk.leg() {
            Some(leg) => match leg.seen {
                Some(rid) => self.key_of_rid(&view, own, rid)?,
                None => None,
            },
            None => walk.after().cloned(),
        };
        let Some(key) = key.filter(|key| walk.again && walk.epk.contains(&key.epk)) else {
            return Ok(None);
        };
        let item = match own.get(&key) {
            Some(item) => item.cloned(),
            None => view.item(&key.epk, &Target::Id(key.id.clone())).map_err(stored)?,
        };
        Ok(item.map(|item| (key, item)))
    }

    fn key_of_rid(
        &self,
        view: &View<'_>,
        own: &BTreeMap<ItemKey, Option<&Item>>,
        rid: u64,
    ) -> Result<Option<ItemKey>> {
        let is_own = |item: &Option<&Item>| item.is_some_and(|item| item.header.rid == rid);
        match own.iter().find(|(_, item)| is_own(item)) {
            Some((key, _)) => Ok(Some(key.clone())),
            None => view.key_of_rid(rid).map_err(stored),
        }
    }

    fn size(&self, moment: &Moment, walk: &Walk) -> Result<PartSize> {
        let view = moment.view(self.range);
        let state = view.state().map_err(stored)?;
        part_size(&view, self.container, walk.logical(self.container), &state).map_err(stored)
    }
}

/// Reads stored items and the script's own in one order.
struct Reader<'a> {
    request: Request<'a>,
    own: &'a BTreeMap<ItemKey, Option<&'a Item>>,
    run: PageRun<'a>,
    limits: PageLimits,
    meter: Meter,
    step: Step,
    last: LastSeen,
    /// Items that were looked at when the page was full.
    ahead: usize,
}

impl<'a> Reader<'a> {
    fn new(request: Request<'a>, own: &'a BTreeMap<ItemKey, Option<&'a Item>>) -> Result<Reader<'a>> {
        let run = request.start()?;
        let limits = PageLimits::new(request.page, request.steward.world());
        Ok(Reader {
            request,
            own,
            run,
            limits,
            meter: Meter::default(),
            step: Step::Continue,
            last: LastSeen::default(),
            ahead: 0,
        })
    }

    fn read(
        &mut self,
        moment: &Moment,
        range: &Range,
        walk: &Walk,
        resumed: Option<(ItemKey, Item)>,
    ) -> Result<()> {
        if !self.request.program.needs_items() {
            self.run.feed_nothing()?;
            self.step = Step::Finish;
            return Ok(());
        }
        if let Some((key, item)) = resumed
            && self.take(&key, &item)? == Scan::Stop
        {
            return Ok(());
        }
        if let Some(leg) = walk.leg() {
            return self.read_leg(&moment.view(range), &walk.part_of(range), leg);
        }
        let after = walk.after();
        let mut own = self.own.iter().filter(|(key, _)| after.is_none_or(|after| *key > after));
        let mut waiting = own.next();
        let mut failure = None;
        let epk = walk.rest_of(range);
        let scanned = moment.view(range).scan(&epk, walk.after(), |key, item| {
            let mut step = || -> Result<Scan> {
                while let Some((own_key, own_item)) = waiting.filter(|(own_key, _)| **own_key <= key) {
                    waiting = own.next();
                    if let Some(own_item) = own_item
                        && self.take(own_key, own_item)? == Scan::Stop
                    {
                        return Ok(Scan::Stop);
                    }
                }
                match self.own.contains_key(&key) {
                    true => Ok(Scan::Continue),
                    false => self.take(&key, &item),
                }
            };
            step().unwrap_or_else(|error| {
                failure = Some(error);
                Scan::Stop
            })
        });
        scanned.map_err(stored)?;
        failure.map_or(Ok(()), Err)?;
        while let Some((key, item)) = waiting.filter(|_| self.step == Step::Continue) {
            waiting = own.next();
            if let Some(item) = item {
                self.take(key, item)?;
            }
        }
        Ok(())
    }

    /// Reads all that is left of a leg and brings it into the order of creation. What a script may write is bounded, and
    /// so is what a leg holds when it begins.
    fn read_leg(&mut self, view: &View<'_>, part: &EpkRange, leg: &Leg) -> Result<()> {
        let is_left = |item: &Item| leg.seen.is_none_or(|seen| item.header.rid > seen);
        let mut found: Vec<(ItemKey, Item)> = Vec::new();
        let scanned = view.scan(part, None, |key, item| {
            if is_left(&item) && !self.own.contains_key(&key) {
                found.push((key, item));
            }
            Scan::Continue
        });
        scanned.map_err(stored)?;
        let own = self.own.iter().filter_map(|(key, item)| Some((key.clone(), Item::clone((*item)?))));
        found.extend(own.filter(|(_, item)| is_left(item)));
        found.sort_unstable_by_key(|(_, item)| item.header.rid);
        for (key, item) in &found {
            if self.take(key, item)? == Scan::Stop {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, key: &ItemKey, item: &Item) -> Result<Scan> {
        self.meter.items_scanned += 1;
        self.meter.bytes_scanned += u64::from(item.header.json_bytes);
        let is_blocking = self.request.program.is_blocking();
        let was_full = !is_blocking && self.run.is_full(self.request.page);
        self.ahead += usize::from(was_full);
        self.step = match self.run.feed(item)? {
            Flow::Done => Step::Finish,
            // The page ended with the item before, which was remembered when it was full.
            Flow::Full if was_full => {
                self.step = Step::StopAhead;
                return Ok(Scan::Stop);
            }
            Flow::Full => Step::StopBefore,
            Flow::More if self.ahead >= LOOK_AHEAD_ITEMS_MAX => Step::StopAfter,
            Flow::More if !self.limits.is_late() => Step::Continue,
            Flow::More if is_blocking => return Err(ErrorKind::TimedOut.into()),
            Flow::More => Step::StopAfter,
        };
        let is_full = !is_blocking && self.run.is_full(self.request.page);
        if is_full || matches!(self.step, Step::StopAfter | Step::StopBefore) {
            self.last.note(&place_of(key), item.header.rid);
        }
        Ok(if self.step == Step::Continue { Scan::Continue } else { Scan::Stop })
    }
}
