//! ORDER BY: the page's rows are the smallest ones behind the last page's end.
//!
//! Without an index every page sees all rows and keeps only as many as it can still answer, so memory is
//! bounded by the page and by what OFFSET passes over. Equal keys are ordered by the item's place, in the
//! direction of the first ORDER BY item, which is what clients assume when they resume.
//!
//! Items that an index delivers in order are sorted only among their ties: the caller that feeds them says when all items
//! fed later come behind all fed so far, and the rows held until then are answered at once. The two ways give
//! the same rows in the same order and end with the same carry, so a client may go on with either.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use super::{Carry, Flow, Out, PageEnd, Room, Sink, canonical, grouped, mismatch};
use crate::ast::Direction;
use crate::compile::Program;
use crate::error::{QueryError, Result};
use crate::eval::{Context, Env, SEEN_BYTES, expand, expand_and_forget};
use crate::limits;
use crate::program::Level;
use crate::row::Row;
use crate::sort_key::sort_key;
use crate::steward::Held;
use crate::value::Val;

pub(super) struct Sorted<'x> {
    /// Where the page before ended, or where the client wants to begin.
    after: Option<Position>,
    /// The client named it: it need not be a row that is out.
    is_named: bool,
    /// Rows that earlier pages answered.
    taken: u64,
    /// Rows of this page, more than it can hold until they are cut back.
    rows: Vec<SortedRow>,
    /// What the sink will be given of them, and of rows which have been cut off.
    forms: Vec<u8>,
    /// What it will be given of the row at hand.
    row: Vec<u8>,
    /// Bytes that the rows need without those cut off, and what is told of them.
    bytes: usize,
    held: Held<'x>,
    /// The most rows worth keeping: those to pass over, those to answer, and one to know of more.
    most: usize,
    /// Rows behind this one have no chance any more.
    worst: Option<Position>,
    /// For DISTINCT: the rows met so far; those that are held, if the keys are the rows.
    seen: HashSet<Box<[u8]>>,
    /// The keys of the row at hand, in canonical form.
    key: Vec<u8>,
    seen_held: Held<'x>,
    fed: u64,
    /// Rows still to be passed over.
    skip: usize,
    /// The last row that this page answered.
    last: Option<Position>,
    /// What the page said last.
    flow: Flow,
}

/// About what a row takes besides its form and its keys.
const ROW_OVERHEAD: usize = size_of::<SortedRow>() + 32;

/// Where a row stands in the order.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    pub keys: Vec<Val<'static>>,
    pub place: Vec<u8>,
    /// Which of the item's rows it is.
    pub row_of_item: u64,
}

struct SortedRow {
    position: Position,
    /// Where its form for the sink stands.
    form: Range<usize>,
    /// About how many bytes are held for it, its form included.
    bytes: usize,
}

impl<'x> Sorted<'x> {
    pub fn new(level: &Level, cx: &Context<'x>, room: Room, carry: Option<&Carry>) -> Result<Self> {
        let fits = |after: &Position| after.keys.len() == level.order_by.len();
        let (after, taken, is_named) = match carry {
            None => (None, 0, false),
            Some(Carry::From(point)) if fits(point) => (Some(point.clone()), 0, true),
            Some(Carry::Sorted { after, taken }) if fits(after) => (Some(after.clone()), *taken, false),
            Some(_) => return Err(mismatch()),
        };
        let is_first = after.is_none() || is_named;
        let skip = if is_first { usize::try_from(level.offset).unwrap_or(usize::MAX) } else { 0 };
        let left = level.limit.map_or(u64::MAX, |limit| limit.saturating_sub(taken));
        let wanted = room.rows.saturating_add(1).min(usize::try_from(left).unwrap_or(usize::MAX));
        let most = skip.saturating_add(wanted);
        let (rows, seen) = (Vec::new(), HashSet::new());
        let (worst, last, flow) = (None, None, Flow::More);
        Ok(Self {
            after,
            is_named,
            taken,
            rows,
            forms: Vec::new(),
            row: Vec::new(),
            bytes: 0,
            held: cx.holds_nothing(),
            most,
            worst,
            seen,
            key: Vec::new(),
            seen_held: cx.holds_nothing(),
            fed: 0,
            skip,
            last,
            flow,
        })
    }

    pub fn feed<'a>(
        &mut self,
        level: &'a Level,
        env: &mut Env<'a, '_>,
        place: &[u8],
        sink: &dyn Sink,
    ) -> Result<Flow> {
        if self.most == 0 {
            return Ok(Flow::Done);
        }
        self.fed += 1;
        let fed = self.fed.to_be_bytes();
        let place = if place.is_empty() { &fed[..] } else { place };
        let mut row_of_item = 0;
        let mut keys: Vec<Val<'a>> = Vec::with_capacity(level.order_by.len());
        let _ = expand_and_forget(level, env, &mut |env| {
            row_of_item += 1;
            keys.clear();
            for (node, _) in &level.order_by {
                keys.push(sort_key(node.eval(env)?));
            }
            env.sorts(&keys)?;
            // Most rows of most pages end here: nothing of them is copied, and SELECT is not asked.
            let here = Place { keys: &keys, place, row_of_item };
            let wanted = self.wants(level, &here);
            let remembers = level.distinct && !level.keys_are_rows;
            if !wanted && !remembers {
                return Ok(ControlFlow::Continue(()));
            }
            if level.keys_are_rows && self.is_held(&keys, env)? {
                return Ok(ControlFlow::Continue(()));
            }
            let value = level.select.eval(env)?;
            if value.is_undefined() || (remembers && !self.is_new(&value, env)?) || !wanted {
                return Ok(ControlFlow::Continue(()));
            }
            self.row.clear();
            sink.hold(&value, env.cx.row_bytes_max(), &mut self.row)?;
            // The forms double when they grow.
            let mut bytes = 2 * self.row.len() + place.len() + ROW_OVERHEAD;
            // Keys that are the row are held once more, to know the row again.
            bytes += if level.keys_are_rows { self.key.len() + SEEN_BYTES } else { 0 };
            for key in &keys {
                bytes += key.weight()?;
            }
            self.make_room(level, bytes)?;
            let kept = keys.iter().map(Val::keep).collect::<Result<Vec<_>>>()?;
            let position = Position { keys: kept, place: place.to_vec(), row_of_item };
            let start = self.forms.len();
            self.forms.extend_from_slice(&self.row);
            self.push(SortedRow { position, form: start..self.forms.len(), bytes });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Flow::More)
    }

    /// Whether a row there comes behind the rows that are out and has a chance in this page.
    fn wants(&self, level: &Level, here: &Place<'_, '_>) -> bool {
        let compare = |other: &Position| match level.keys_are_rows {
            // A row that ties is the same row once more.
            true => grouped::compare(level, here.keys, &other.keys),
            false => here.compare(level, &other.place()),
        };
        let is_behind = match (&self.last, &self.after) {
            (Some(last), _) if level.keys_are_rows => compare(last).is_gt(),
            (_, Some(point)) if self.is_named => here.compare(level, &point.place()).is_gt(),
            (_, Some(after)) => compare(after).is_gt(),
            (_, None) => true,
        };
        is_behind && self.worst.as_ref().is_none_or(|worst| compare(worst).is_lt())
    }

    /// Whether a row with these keys, which are the row, is held already; if not, it is from now on.
    fn is_held(&mut self, keys: &[Val<'_>], env: &Env<'_, '_>) -> Result<bool> {
        self.key.clear();
        for key in keys {
            key.write_canonical_within(&mut self.key, env.cx.row_bytes_max())?;
        }
        if self.seen.contains(self.key.as_slice()) {
            return Ok(true);
        }
        self.seen.insert(self.key.as_slice().into());
        Ok(false)
    }

    /// Whether no equal row was met before.
    fn is_new(&mut self, value: &Val<'_>, env: &mut Env<'_, '_>) -> Result<bool> {
        let key = canonical(value, env.cx.row_bytes_max())?;
        let length = key.len();
        env.worked((length / limits::WORK_BYTES) as u64)?;
        let is_new = self.seen.insert(key);
        self.seen_held.add(if is_new { length + SEEN_BYTES } else { 0 })?;
        if self.seen_held.bytes() > limits::RUN_BYTES {
            return Err(QueryError::LimitExceeded("DISTINCT meets too many different rows."));
        }
        Ok(is_new)
    }

    /// Sees to it that a row of so many bytes may be held, if need be by letting go of rows that have no chance.
    fn make_room(&mut self, level: &Level, bytes: usize) -> Result<()> {
        let too_many = self.rows.len() > self.most.saturating_mul(2).saturating_add(64);
        let fits = self.bytes + bytes <= limits::RUN_BYTES && self.held.set(self.bytes + bytes).is_ok();
        if !too_many && fits {
            return Ok(());
        }
        self.cut(level);
        self.drop_forms();
        if self.bytes + bytes > limits::RUN_BYTES {
            return Err(QueryError::LimitExceeded("ORDER BY needs too much memory; use a smaller page."));
        }
        self.held.set(self.bytes + bytes)
    }

    fn push(&mut self, row: SortedRow) {
        self.bytes += row.bytes;
        self.rows.push(row);
    }

    fn cut(&mut self, level: &Level) {
        self.rows.sort_unstable_by(|a, b| a.position.place().compare(level, &b.position.place()));
        if level.keys_are_rows {
            self.rows.dedup_by(|b, a| grouped::compare(level, &a.position.keys, &b.position.keys).is_eq());
            if self.rows.len() > self.most {
                // Rows behind the last one kept are not wanted again, so they need not be known.
                self.seen.clear();
            }
        }
        self.rows.truncate(self.most);
        if self.rows.len() == self.most {
            self.worst = self.rows.last().map(|row| row.position.clone());
        }
        self.bytes = self.rows.iter().map(|row| row.bytes).sum();
    }

    /// Forgets the forms of rows that have been cut off.
    fn drop_forms(&mut self) {
        let mut kept = Vec::with_capacity(self.rows.iter().map(|row| row.form.len()).sum());
        for row in &mut self.rows {
            let start = kept.len();
            kept.extend_from_slice(&self.forms[row.form.clone()]);
            row.form = start..kept.len();
        }
        self.forms = kept;
    }

    /// Answers the rows held so far: all that follow come behind them.
    pub fn end_ties(&mut self, level: &Level, out: &mut Out<'_, '_>) -> Result<Flow> {
        if self.flow != Flow::More {
            return Ok(self.flow);
        }
        self.cut(level);
        self.worst = None;
        self.bytes = 0;
        if level.keys_are_rows {
            self.seen.clear();
        }
        let limit = level.limit.unwrap_or(u64::MAX);
        for row in self.rows.drain(..) {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            if self.taken >= limit {
                break;
            }
            if out.is_full() {
                self.flow = Flow::Full;
                break;
            }
            out.push_held(&self.forms[row.form])?;
            self.taken += 1;
            self.last = Some(row.position);
        }
        self.forms.clear();
        if self.taken >= limit {
            self.flow = Flow::Done;
        }
        Ok(self.flow)
    }

    pub fn finish(mut self, level: &Level, out: &mut Out<'_, '_>) -> Result<PageEnd> {
        match (self.end_ties(level, out)?, self.last.or(self.after)) {
            (Flow::Full, Some(after)) => Ok(PageEnd::Continue(Carry::Sorted { after, taken: self.taken })),
            _ => Ok(PageEnd::Done),
        }
    }
}

impl Program {
    /// The carry whose keys were cut, whole again. The row that was last knows them, if it is still what it was; `rows`
    /// are those that may be it. If none is, the next page begins where the kept part allows no doubt: rows that share
    /// it may come twice, but none is lost.
    pub fn completed<'r>(
        &self,
        carry: &Carry,
        rows: impl IntoIterator<Item = Row<'r>>,
        cx: &Context<'_>,
    ) -> Result<Carry> {
        let Carry::Cut { after, whole, taken } = carry else { return Ok(carry.clone()) };
        let level = &self.code.last.level;
        if !self.code.earlier.is_empty() || *whole >= level.order_by.len() {
            return Err(mismatch());
        }
        for row in rows {
            if let Some(keys) = self.keys_of(&row, after.row_of_item, cx)?
                && continues(&keys, &after.keys)
            {
                let after = Position { keys, place: after.place.clone(), row_of_item: after.row_of_item };
                return Ok(Carry::Sorted { after, taken: *taken });
            }
        }
        Ok(Carry::Sorted { after: before_all(level, &after.keys), taken: *taken })
    }

    /// The order keys of one of an item's rows.
    fn keys_of(
        &self,
        row: &Row<'_>,
        row_of_item: u64,
        cx: &Context<'_>,
    ) -> Result<Option<Vec<Val<'static>>>> {
        let level = &self.code.last.level;
        let mut env = Env::new(self.code.last.slots, &self.values, cx, Some(row));
        let (mut number, mut found) = (0, None);
        let _ = expand(level, &mut env, &mut |env| {
            number += 1;
            if number < row_of_item {
                return Ok(ControlFlow::Continue(()));
            }
            let keys = level.order_by.iter().map(|(node, _)| sort_key(node.eval(env)?).keep());
            found = Some(keys.collect::<Result<Vec<_>>>()?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

/// Whether the keys are those of which `cut` is left: the last of it is the beginning of a string.
fn continues(keys: &[Val<'_>], cut: &[Val<'_>]) -> bool {
    let Some((beginning, whole)) = cut.split_last() else { return false };
    keys.len() > whole.len()
        && keys[..whole.len()] == *whole
        && match (keys[whole.len()].as_str(), beginning.as_str()) {
            (Some(text), Some(beginning)) => text.starts_with(beginning),
            _ => false,
        }
}

/// A position before all rows whose keys begin like this, in the order of the query.
fn before_all(level: &Level, cut: &[Val<'static>]) -> Position {
    let mut keys = cut.to_vec();
    let direction = level.order_by.get(keys.len() - 1).map(|(_, direction)| *direction);
    if let (Some(Direction::Descending), Some(last)) = (direction, keys.last_mut()) {
        // No text that begins like this lies behind it.
        *last = Val::text(format!("{}{}", last.as_str().unwrap_or_default(), char::MAX));
    }
    // The others may be anything, and undefined is the first of all.
    for (_, direction) in &level.order_by[keys.len()..] {
        keys.push(if *direction == Direction::Descending { Val::object(vec![]) } else { Val::Undefined });
    }
    Position { keys, place: Vec::new(), row_of_item: 0 }
}

/// Where a row stands, without owning it.
struct Place<'k, 'a> {
    keys: &'k [Val<'a>],
    place: &'k [u8],
    row_of_item: u64,
}

impl Position {
    fn place(&self) -> Place<'_, 'static> {
        Place { keys: &self.keys, place: &self.place, row_of_item: self.row_of_item }
    }

    /// Whether it comes behind the other in the order of the query.
    pub(super) fn is_behind(&self, other: &Position, level: &Level) -> bool {
        self.place().compare(level, &other.place()).is_gt()
    }
}

impl Place<'_, '_> {
    fn compare(&self, level: &Level, other: &Place<'_, '_>) -> Ordering {
        let ties = || {
            let order = (self.place, self.row_of_item).cmp(&(other.place, other.row_of_item));
            match level.order_by.first() {
                Some((_, Direction::Descending)) => order.reverse(),
                _ => order,
            }
        };
        grouped::compare(level, self.keys, other.keys).then_with(ties)
    }
}
