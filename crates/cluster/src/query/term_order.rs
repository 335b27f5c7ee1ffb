//! ORDER BY from the order of an index.
//!
//! Entries come in the order of their terms. Within a *run* of equal terms they come in key order, but rows
//! with equal keys must come in the order in which their items were created, and a term that was cut hides which
//! value is smaller. So a run is fed as a whole and the program sorts it; between runs the page may end.
//!
//! A run can be long, when many items share a value. Then its items are found the other way round: the items
//! of the partition are walked in the order of creation, and each is looked up in the run. The longer the
//! run, the fewer are walked in vain.
//!
//! Items without a value at the path have no entry. They come first, or last in a descending order, and are found
//! by a scan, unless the number of entries shows that there are none, or the filter that none can pass.
//!
//! A filter may leave so few rows that the walk finds a page only after loading a good part of the items, one by
//! one, which is dearer than scanning them all. The walk counts what it spends and gives up in time; the scan
//! then answers the same page, because the continuation does not depend on the way.

use orrery_doc::{Doc, DocBuilder, TermOrder, Value, encode_term};
use orrery_query::ast::Direction;
use orrery_query::{Carry, Flow, IndexOrder, IndexPath, IndexStep, Measured, Position, Sink, Span, Val};
use orrery_store::index::{IndexReader, ItemLoader, OrderedCursor, Places, TermRange};
use orrery_store::keys::after_prefix;
use orrery_store::limits::BLOCKING_QUERY_TIME_MAX;
use orrery_store::{ActiveIndex, Item, Scan};

use super::choose::ranges_of;
use super::note::Method;
use super::offered::hash_of;
use super::page::{Feed, PageRun};
use super::visit::{Visit, stored};
use crate::error::{ErrorKind, Result};
use crate::request::AccessChoice;
use crate::turns::at_length;
use crate::world::Deadline;

/// What reading an index entry, scanning an item and fetching one cost, relative to each other.
const ENTRY_COST: u64 = 1;
const SCAN_COST: u64 = 4;
pub(super) const FETCH_COST: u64 = 16;
/// The walk may always spend so much before it gives up.
const COST_MIN: u64 = 4096;
/// The first bytes behind the term of undefined.
const BEHIND_UNDEFINED: [u8; 1] = [0x11];
/// Entries of a run to step over before the rest of it is skipped.
const STEPS_BEFORE_SKIP: u32 = 8;
/// The clock is asked once in so many items of a scan.
const ITEMS_PER_CLOCK_CHECK: u32 = 256;
/// A run is fed whole up to at least so many entries.
const RUN_COLLECTED_MIN: usize = 64;

/// The way through an index.
pub(super) struct Order {
    path_hash: u64,
    /// For each part whether its bits are turned.
    parts: Vec<bool>,
    /// How many of the first parts have one value in all rows, and what their terms are.
    fixed: usize,
    prefix: Vec<u8>,
    pub backward: bool,
    ranges: Vec<TermRange>,
    undefined: Undefined,
    /// For DISTINCT: all items of a run give the same row, so the first will do.
    one_per_run: bool,
}

/// When items without a value at the path have their turn.
enum Undefined {
    Never,
    First(IndexPath),
    Last(IndexPath),
}

/// Whether the walk goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    More,
    PageFull,
    GiveUp,
}

/// Answers the page in the order of an index, if there is one and it pays off.
pub(super) fn answer<S: Sink + Default>(visit: &mut Visit<'_>) -> Result<Option<(S, Option<Carry>)>> {
    let Some(order) = Order::of(visit)? else { return Ok(None) };
    if !pays_off(visit, &order)? {
        return Ok(None);
    }
    let (some, all) = (spend_at_once(visit), spend_max(visit));
    // Most pages end soon. Those that do not are begun once more, where they are in nobody's way.
    let tally = visit.tally.clone();
    let answer = walk_alone(visit, &order, some.min(all))?;
    if answer.is_some() || some >= all {
        return Ok(answer);
    }
    visit.tally = tally;
    at_length(true, || walk_alone(visit, &order, all))
}

fn walk_alone<S: Sink + Default>(
    visit: &mut Visit<'_>,
    order: &Order,
    spend_max: u64,
) -> Result<Option<(S, Option<Carry>)>> {
    let mut run: PageRun<'_, S> = visit.request.start()?;
    let answered = walk(visit, order, &mut Taker { run: &mut run, shared: None }, spend_max)?;
    if answered { run.finish().map(Some) } else { Ok(None) }
}

/// What a walk may cost while other tasks wait.
pub(super) fn spend_at_once(visit: &Visit<'_>) -> u64 {
    visit.items_at_once as u64 * FETCH_COST
}

/// What a walk may cost before it gives up.
pub(super) fn spend_max(visit: &Visit<'_>) -> u64 {
    match visit.request.page.access {
        AccessChoice::IndexAlways => u64::MAX,
        _ => visit.extent.items.saturating_mul(SCAN_COST).saturating_add(COST_MIN),
    }
}

/// Feeds the first rows of this partition to a program that merges several, if there is an order and it pays off:
/// as many as a page may need.
pub(super) fn feed_first_rows(visit: &mut Visit<'_>, shared: &mut dyn Feed) -> Result<bool> {
    let Some(order) = Order::of(visit)? else { return Ok(false) };
    if !pays_off(visit, &order)? {
        return Ok(false);
    }
    // Several partitions are visited at once, and none of these pages is answered.
    let mut run: PageRun<'_, Measured> = visit.request.start()?;
    // What was given to the shared program cannot be taken back, so this walk may not give up.
    walk(visit, &order, &mut Taker { run: &mut run, shared: Some(shared) }, u64::MAX)
}

fn walk(visit: &mut Visit<'_>, order: &Order, sink: &mut Taker<'_>, spend_max: u64) -> Result<bool> {
    let reader = visit.reader();
    let mut walk = Walk::new(visit, &reader, spend_max);
    let next = walk.phases(visit, sink, order)?;
    visit.count_entries(&reader);
    if next == Next::GiveUp {
        return Ok(false);
    }
    visit.note.method = Method::Order;
    Ok(true)
}

/// Who is given the items.
struct Taker<'s> {
    /// Says when the page is full.
    run: &'s mut dyn Feed,
    shared: Option<&'s mut dyn Feed>,
}

impl Taker<'_> {
    fn feed(&mut self, visit: &mut Visit<'_>, item: &Item) -> Result<()> {
        if visit.view.is_over(item) {
            return Ok(());
        }
        visit.feed(self.run, item)?;
        if let Some(shared) = &mut self.shared {
            shared.feed(item)?;
        }
        Ok(())
    }
}

/// A filter that leaves few items is better answered by fetching and sorting those.
pub(super) fn pays_off(visit: &mut Visit<'_>, order: &Order) -> Result<bool> {
    if visit.request.page.access == AccessChoice::IndexAlways {
        return Ok(true);
    }
    // To scan for the items without a value and to sort all items of the scan is the same work.
    let after = last_row(visit);
    if matches!(order.undefined, Undefined::First(_)) && (after.is_none() || is_undefined(after)) {
        return Ok(false);
    }
    let (items, partition) = (visit.extent.items, visit.partition_items);
    let rows = (visit.request.page.items_max as u64).min(items);
    // Entries of other logical partitions are read in vain.
    let in_vain = rows.saturating_mul(partition / items.max(1));
    if rows * FETCH_COST + in_vain * ENTRY_COST > items * SCAN_COST {
        return Ok(false);
    }
    let reader = visit.reader();
    let implied = visit.implied_paths();
    let Some(access) = visit.note.access.take() else { return Ok(false) };
    let mut chooser = visit.chooser(&reader, &implied);
    let weighed = visit.tally.looking_up(|| chooser.weigh(&access.filter)).map_err(stored)?;
    visit.note.leaves = chooser.notes;
    visit.note.access = Some(access);
    visit.count_entries(&reader);
    Ok(weighed.is_none_or(|weighed| weighed.open || weighed.entries > rows))
}

impl Order {
    pub fn of(visit: &Visit<'_>) -> Result<Option<Order>> {
        let Some(access) = &visit.note.access else { return Ok(None) };
        let order = access.order.as_ref().filter(|_| visit.request.program.can_be_presorted());
        let Some(order) = order else { return Ok(None) };
        // The first of a run may be expired, or before the item that the client begins with: then another has to stand
        // for it.
        let is_named = matches!(visit.request.carry, Some(Carry::From(_)));
        let one_per_run = access.one_per_term && !is_named && !visit.may_hold_expired()?;
        Ok(Some(Order { one_per_run, ..Order::new(visit, order, &access.order_terms) }))
    }

    fn new(visit: &Visit<'_>, order: &IndexOrder, terms: &[Span]) -> Order {
        match order {
            IndexOrder::Single { path, direction } => {
                let backward = *direction == Direction::Descending;
                let ranges = ranges_of(terms);
                let path_hash = hash_of(path);
                let all_have_it = visit.counts.get(path_hash) == Some(visit.partition_items);
                let none_pass =
                    ranges.first().is_none_or(|range| range.start.as_slice() >= BEHIND_UNDEFINED.as_slice());
                let undefined = match none_pass || all_have_it {
                    true => Undefined::Never,
                    false if backward => Undefined::Last(path.clone()),
                    false => Undefined::First(path.clone()),
                };
                Order {
                    path_hash,
                    parts: vec![false],
                    fixed: 0,
                    prefix: vec![],
                    backward,
                    ranges,
                    undefined,
                    one_per_run: false,
                }
            }
            IndexOrder::Composite { index, reversed, fixed, prefix } => {
                let composite = &visit.active.composites()[*index];
                let parts = composite.parts.iter().map(|(_, descending)| *descending).collect();
                // Every item has an entry: what it lacks counts as undefined there.
                let undefined = Undefined::Never;
                Order {
                    path_hash: composite.hash,
                    parts,
                    fixed: *fixed,
                    prefix: prefix.clone(),
                    backward: *reversed,
                    ranges: ranges_of(terms),
                    undefined,
                    one_per_run: false,
                }
            }
        }
    }

    /// Whether every row is found by walking the index, entry by entry.
    pub fn is_all_in_index(&self) -> bool {
        matches!(self.undefined, Undefined::Never) && !self.one_per_run
    }

    pub fn cursor<'r>(&self, reader: &'r IndexReader<'r>, from: Option<&[u8]>) -> OrderedCursor<'r> {
        reader.ordered(self.path_hash, &self.parts, &self.ranges, from, self.backward)
    }

    /// The run that holds the last row of the page before.
    pub fn run_of(&self, keys: &[Val<'_>]) -> Vec<u8> {
        self.whole_run_of(keys).0
    }

    /// The same, and whether all of its rows have these keys.
    fn whole_run_of(&self, keys: &[Val<'_>]) -> (Vec<u8>, bool) {
        let mut run = self.prefix.clone();
        for (key, turned) in keys.iter().zip(&self.parts[self.fixed..]) {
            let start = run.len();
            let mut is_whole = encode_val(key, &mut run);
            if matches!(key, Val::Array(_) | Val::Object(_)) {
                // All of a type are one run.
                run.truncate(start + 1);
                is_whole = false;
            }
            if *turned {
                run[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
            if !is_whole {
                return (run, false);
            }
        }
        (run, true)
    }

    /// Whether the first key is in descending order.
    fn is_descending(&self) -> bool {
        self.parts[self.fixed] != self.backward
    }

    /// The ranges behind a run.
    fn ranges_behind(&self, run: &[u8]) -> Vec<TermRange> {
        let mut ranges = self.ranges.clone();
        for range in &mut ranges {
            if self.backward {
                range.end = range.end.as_slice().min(run).to_vec();
            } else if let Some(behind) = after_prefix(run) {
                range.start = std::mem::take(&mut range.start).max(behind);
            }
        }
        ranges.retain(|range| range.start < range.end);
        ranges
    }
}

/// A walk along an index, with what it may still spend.
struct Walk<'r> {
    reader: &'r IndexReader<'r>,
    loader: ItemLoader<'r>,
    deadline: Deadline,
    /// Above this cost, scanning would have been cheaper.
    cost_max: u64,
    /// Entries of a run that are collected before the order of creation is walked instead.
    run_max: usize,
    places: Places,
}

/// How a pass over the runs ended.
enum Pass {
    End,
    Stopped(Next),
    /// A run that is too long to be fed whole.
    Long(Vec<u8>),
}

impl<'r> Walk<'r> {
    fn new(visit: &Visit<'r>, reader: &'r IndexReader<'r>, cost_max: u64) -> Walk<'r> {
        let items = visit.extent.items;
        let balanced = items.saturating_mul(visit.request.page.items_max as u64).isqrt() / 2;
        let run_max = usize::try_from(balanced).unwrap_or(usize::MAX).max(RUN_COLLECTED_MIN);
        let deadline = visit.request.steward.world().deadline(BLOCKING_QUERY_TIME_MAX);
        let (loader, places) = (visit.view.loader(), Places::default());
        Walk { reader, loader, deadline, cost_max, run_max, places }
    }

    /// The items without a value and those with one, in their order.
    fn phases(&mut self, visit: &mut Visit<'_>, sink: &mut Taker<'_>, order: &Order) -> Result<Next> {
        let after = last_row(visit);
        let in_undefined = is_undefined(after);
        match &order.undefined {
            Undefined::First(path) => {
                if (after.is_none() || in_undefined)
                    && self.feed_undefined(visit, sink, path)? == Next::PageFull
                {
                    return Ok(Next::PageFull);
                }
                self.feed_runs(visit, sink, order, after.filter(|_| !in_undefined))
            }
            Undefined::Last(path) => {
                if !in_undefined {
                    let next = self.feed_runs(visit, sink, order, after)?;
                    if next != Next::More {
                        return Ok(next);
                    }
                }
                self.feed_undefined(visit, sink, path)
            }
            Undefined::Never => self.feed_runs(visit, sink, order, after),
        }
    }

    /// Feeds run after run, from the one that holds the last row of the page before.
    fn feed_runs(
        &mut self,
        visit: &mut Visit<'_>,
        sink: &mut Taker<'_>,
        order: &Order,
        after: Option<&Position>,
    ) -> Result<Next> {
        let first = after.map(|after| order.whole_run_of(&after.keys));
        let mut ranges = order.ranges.clone();
        if let (Some(after), Some((run, true))) = (after, &first)
            && after.is_behind_ties(order.is_descending())
        {
            ranges = order.ranges_behind(run);
        }
        let first = first.map(|(run, _)| run);
        let mut from = first.clone();
        loop {
            let long = match self.feed_pass(visit, sink, order, &ranges, from.take().as_deref())? {
                Pass::End => return Ok(Next::More),
                Pass::Stopped(next) => return Ok(next),
                Pass::Long(long) => long,
            };
            let rid = after.filter(|_| first.as_deref() == Some(long.as_slice()));
            let rid = rid.and_then(|after| after.place.as_slice().try_into().ok()).map(u64::from_be_bytes);
            let next = self.feed_long(visit, sink, order, &long, rid)?;
            if next != Next::More {
                return Ok(next);
            }
            ranges = order.ranges_behind(&long);
        }
    }

    fn feed_pass(
        &mut self,
        visit: &mut Visit<'_>,
        sink: &mut Taker<'_>,
        order: &Order,
        ranges: &[TermRange],
        from: Option<&[u8]>,
    ) -> Result<Pass> {
        let reader = self.reader;
        let mut cursor = reader.ordered(order.path_hash, &order.parts, ranges, from, order.backward);
        let mut current = Vec::new();
        let mut passed_over = 0;
        self.places.clear();
        loop {
            let entry = cursor.next_entry().map_err(stored)?;
            let goes_on = entry.as_ref().is_some_and(|entry| entry.run() == current.as_slice());
            if !goes_on && !self.places.is_empty() {
                self.feed_collected(visit, sink)?;
                let next = self.end_ties(sink)?;
                if next != Next::More {
                    return Ok(Pass::Stopped(next));
                }
            }
            let Some(entry) = entry else { return Ok(Pass::End) };
            if !goes_on {
                current.clear();
                current.extend_from_slice(entry.run());
            }
            if goes_on && order.one_per_run && !entry.is_cut() {
                passed_over += 1;
                if passed_over == STEPS_BEFORE_SKIP {
                    cursor.skip_run(&entry);
                }
                continue;
            }
            passed_over = 0;
            if self.places.len() >= self.run_max && !entry.is_cut() {
                return Ok(Pass::Long(current));
            }
            if !self.places.push(entry.place()) {
                self.feed_collected(visit, sink)?;
                self.places.push(entry.place());
            }
            if self.is_too_dear(visit) {
                return Ok(Pass::Stopped(Next::GiveUp));
            }
        }
    }

    fn feed_collected(&mut self, visit: &mut Visit<'_>, sink: &mut Taker<'_>) -> Result<()> {
        self.loader.expect(self.places.len(), visit.extent.items);
        for place in self.places.iter() {
            let item = visit.tally.loading(|| self.loader.load(place)).map_err(stored)?;
            sink.feed(visit, &item)?;
        }
        self.places.clear();
        Ok(())
    }

    /// Walks all items in the order of creation and feeds those of one run.
    fn feed_long(
        &mut self,
        visit: &mut Visit<'_>,
        sink: &mut Taker<'_>,
        order: &Order,
        terms: &[u8],
        from: Option<u64>,
    ) -> Result<Next> {
        let reader = self.reader;
        let mut rids = reader.rids(from, order.is_descending());
        while let Some(entry) = rids.next_entry().map_err(stored)? {
            if reader.has(order.path_hash, terms, entry.place()).map_err(stored)? {
                let item = visit.tally.loading(|| self.loader.load(entry.place())).map_err(stored)?;
                sink.feed(visit, &item)?;
                let next = self.end_ties(sink)?;
                if next != Next::More {
                    return Ok(next);
                }
            }
            if self.is_too_dear(visit) {
                return Ok(Next::GiveUp);
            }
        }
        Ok(Next::More)
    }

    /// Scans for the items that have no value at the path.
    fn feed_undefined(
        &mut self,
        visit: &mut Visit<'_>,
        sink: &mut Taker<'_>,
        path: &IndexPath,
    ) -> Result<Next> {
        let (view, epk) = (visit.view, visit.extent.epk.clone());
        let mut failure = None;
        let mut seen = 0u32;
        let deadline = self.deadline.clone();
        // There may be few that have a value, and all others are gone through here.
        let is_long = visit.extent.items > visit.items_at_once as u64;
        let scan = |visit: &mut dyn FnMut(Item) -> Scan| view.scan_places(&epk, None, |_, item| visit(item));
        let mut take = |item: Item| {
            seen += 1;
            if seen.is_multiple_of(ITEMS_PER_CLOCK_CHECK) && deadline.is_past() {
                failure = Some(ErrorKind::TimedOut.into());
                return Scan::Stop;
            }
            if has_value(visit.active, path, &item) {
                visit.tally.loaded(&item);
                return Scan::Continue;
            }
            failure = sink.feed(visit, &item).err();
            if failure.is_some() { Scan::Stop } else { Scan::Continue }
        };
        at_length(is_long, || scan(&mut take).map_err(stored))?;
        failure.map_or_else(|| self.end_ties(sink), Err)
    }

    fn end_ties(&self, sink: &mut Taker<'_>) -> Result<Next> {
        match sink.run.end_ties()? {
            Flow::Full | Flow::Done => Ok(Next::PageFull),
            Flow::More if self.deadline.is_past() => Err(ErrorKind::TimedOut.into()),
            Flow::More => Ok(Next::More),
        }
    }

    fn is_too_dear(&self, visit: &Visit<'_>) -> bool {
        let fetched = u64::from(visit.tally.meter.items_scanned) + self.places.len() as u64;
        fetched * FETCH_COST + self.reader.entries_read() * ENTRY_COST > self.cost_max
    }
}

/// The last row of the page before.
pub(super) fn last_row<'a>(visit: &Visit<'a>) -> Option<&'a Position> {
    match visit.request.carry {
        Some(Carry::Sorted { after, .. } | Carry::From(after)) => Some(after),
        _ => None,
    }
}

fn is_undefined(after: Option<&Position>) -> bool {
    after.is_some_and(|after| matches!(after.keys.as_slice(), [Val::Undefined]))
}

/// Every term; marks of types end below.
pub(super) fn everything() -> Vec<TermRange> {
    vec![vec![]..vec![0xff]]
}

/// Whether an item has a value at a path without arrays.
fn has_value(active: &ActiveIndex, path: &IndexPath, item: &Item) -> bool {
    let (computed, steps) = match path.steps() {
        [IndexStep::Computed(name), rest @ ..] => (active.policy.computed(name), rest),
        steps => (None, steps),
    };
    let computed = computed.map(|value| value.computer.value(item.root()));
    let root = match &computed {
        Some(value) => value.as_ref().map_or(Value::Undefined, Doc::root),
        None => item.root().root(),
    };
    let value = steps.iter().fold(root, |value, step| match step {
        IndexStep::Name(name) => value.get(name),
        _ => Value::Undefined,
    });
    !value.is_undefined()
}

/// Appends the term of a value and says whether it is complete.
fn encode_val(value: &Val<'_>, out: &mut Vec<u8>) -> bool {
    if value.is_undefined() {
        return encode_term(Value::Undefined, TermOrder::Sql, out);
    }
    let mut builder = DocBuilder::new();
    value.write_doc(&mut builder);
    encode_term(builder.finish().root(), TermOrder::Sql, out)
}
