//! GROUP BY one path with nothing but counts: the index already holds the groups side by side.
//!
//! Entries of equal terms are counted without looking at their items. One item of each group is fetched, because
//! a term does not give its value back; where there are almost as many groups as items, that is dearer than
//! a scan, so the walk counts what it spends and gives up in time. Groups come in the order of their keys either
//! way, and the continuation is how many are out.

use orrery_query::ast::{Collection, Query, SelectSpec};
use orrery_query::{
    Carry, IndexPath, IndexStep, Program, Proposal, Rows, Sink, Steward, only_counts, path_of,
};
use orrery_store::index::{IndexReader, ItemLoader, OrderedEntry};
use orrery_store::limits::{BLOCKING_QUERY_TIME_MAX, GROUPS_MERGED_MAX};

use super::note::Method;
use super::offered::hash_of;
use super::page::{Feed, push_group};
use super::term_order::everything;
use super::visit::{Visit, stored};
use crate::error::{ErrorKind, Result};
use crate::request::AccessChoice;
use crate::world::Deadline;

/// What reading an index entry, scanning an item and fetching one cost, relative to each other.
const SCAN_COST: u64 = 4;
const FETCH_COST: u64 = 16;
const COST_MIN: u64 = 4096;
const ENTRIES_PER_CLOCK_CHECK: u64 = 4096;

/// Answers the page from the groups of an index, if the query asks for such and it pays off.
pub(super) fn answer<S: Sink + Default>(visit: &mut Visit<'_>) -> Result<Option<(S, Option<Carry>)>> {
    let Some(path) = grouped_path(visit)? else { return Ok(None) };
    let path_hash = hash_of(&path);
    let Some(with_value) = visit.counts.get(path_hash) else { return Ok(None) };
    let emitted = match visit.request.carry {
        None => 0,
        Some(Carry::Emitted(rows)) => *rows,
        Some(_) => return Ok(None),
    };
    let reader = visit.reader();
    let mut cursor = reader.ordered(path_hash, &[false], &everything(), None, false);
    let mut page = GroupPage::new(visit, emitted);
    let without = visit.partition_items.saturating_sub(with_value);
    let mut next = page.add(visit, None, without)?;
    let mut first: Option<OrderedEntry> = None;
    let mut count = 0;
    while next == Next::More {
        let entry = cursor.next_entry().map_err(stored)?;
        if entry.as_ref().is_some_and(OrderedEntry::is_cut) || page.is_too_dear(reader.entries_read())? {
            next = Next::GiveUp;
            break;
        }
        match (&first, entry) {
            (Some(group), Some(entry)) if group.run() == entry.run() => count += 1,
            (_, entry) => {
                next = page.add(visit, first.as_ref(), if first.is_some() { count } else { 0 })?;
                let is_last = entry.is_none();
                (first, count) = (entry, 1);
                if is_last {
                    break;
                }
            }
        }
    }
    visit.count_entries(&reader);
    if next == Next::GiveUp {
        return Ok(None);
    }
    visit.note.method = Method::Groups;
    let carry = (next == Next::PageFull).then_some(Carry::Emitted(page.emitted));
    Ok(Some((page.rows, carry)))
}

/// Feeds the groups of this partition to a program that merges several, if that pays off. What was fed cannot be
/// taken back, so all groups are known before the first is.
pub(super) fn feed(visit: &mut Visit<'_>, run: &mut dyn Feed) -> Result<bool> {
    let Some(path) = grouped_path(visit)? else { return Ok(false) };
    let path_hash = hash_of(&path);
    let Some(with_value) = visit.counts.get(path_hash) else { return Ok(false) };
    let reader = visit.reader();
    let groups = count_groups(visit, &reader, path_hash)?;
    visit.count_entries(&reader);
    let Some(groups) = groups else { return Ok(false) };
    let without = visit.partition_items.saturating_sub(with_value);
    if without > 0 {
        run.feed_group(None, without)?;
    }
    let mut loader = visit.view.loader();
    for (place, count) in groups {
        let item = visit.tally.loading(|| loader.load(&place)).map_err(stored)?;
        visit.tally.loaded(&item);
        run.feed_group(Some(&item), count)?;
    }
    visit.note.method = Method::Groups;
    Ok(true)
}

/// About what a group takes besides its place.
const GROUP_BYTES: usize = 2 * size_of::<(Vec<u8>, u64)>() + 32;

/// The place of one item of each group, and the number of all.
type CountedGroups = Vec<(Vec<u8>, u64)>;

/// Counts the items of each group; nothing when looking at all items is better.
fn count_groups(
    visit: &Visit<'_>,
    reader: &IndexReader<'_>,
    path_hash: u64,
) -> Result<Option<CountedGroups>> {
    let mut cursor = reader.ordered(path_hash, &[false], &everything(), None, false);
    let mut page: GroupPage<'_, Rows> = GroupPage::new(visit, 0);
    let (mut groups, mut run) = (CountedGroups::new(), Vec::new());
    while let Some(entry) = cursor.next_entry().map_err(stored)? {
        if entry.is_cut() || page.is_too_dear(reader.entries_read())? {
            return Ok(None);
        }
        if let Some((_, count)) = groups.last_mut().filter(|_| run.as_slice() == entry.run()) {
            *count += 1;
            continue;
        }
        if groups.len() >= GROUPS_MERGED_MAX {
            return Ok(None);
        }
        page.fetched += 1;
        let bytes = entry.place().len() + GROUP_BYTES;
        visit.request.steward.hold(bytes).map_err(ErrorKind::Query)?;
        groups.push((entry.place().to_vec(), 1));
        run.clear();
        run.extend_from_slice(entry.run());
    }
    Ok(Some(groups))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    More,
    PageFull,
    GiveUp,
}

/// A page of groups.
struct GroupPage<'v, S> {
    loader: ItemLoader<'v>,
    rows: S,
    /// Groups that earlier pages answered and that are still to be passed over.
    skip: u64,
    emitted: u64,
    fetched: u64,
    cost_max: u64,
    deadline: Deadline,
}

impl<'v, S: Sink + Default> GroupPage<'v, S> {
    fn new(visit: &Visit<'v>, emitted: u64) -> GroupPage<'v, S> {
        let cost_max = match visit.request.page.access {
            AccessChoice::IndexAlways => u64::MAX,
            _ => visit.partition_items * SCAN_COST + COST_MIN,
        };
        GroupPage {
            loader: visit.view.loader(),
            rows: S::default(),
            skip: emitted,
            emitted,
            fetched: 0,
            cost_max,
            deadline: visit.request.steward.world().deadline(BLOCKING_QUERY_TIME_MAX),
        }
    }

    /// Adds the row of a group of so many items, one of which is at the entry.
    fn add(&mut self, visit: &mut Visit<'_>, entry: Option<&OrderedEntry>, count: u64) -> Result<Next> {
        if count == 0 {
            return Ok(Next::More);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(Next::More);
        }
        let page = visit.request.page;
        let is_full = self.rows.len() >= page.items_max
            || (!self.rows.is_empty() && self.rows.byte_len() >= page.bytes_max);
        if is_full {
            return Ok(Next::PageFull);
        }
        let item = match entry {
            Some(entry) => {
                let item = visit.tally.loading(|| self.loader.load(entry.place())).map_err(stored)?;
                visit.tally.loaded(&item);
                self.fetched += 1;
                Some(item)
            }
            None => None,
        };
        let request = visit.request;
        let pushed = visit.tally.evaluating(|| push_group(&request, item.as_ref(), count, &mut self.rows));
        pushed.map_err(ErrorKind::Query)?;
        self.emitted += 1;
        Ok(Next::More)
    }

    fn is_too_dear(&self, entries: u64) -> Result<bool> {
        if entries.is_multiple_of(ENTRIES_PER_CLOCK_CHECK) && self.deadline.is_past() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(self.fetched * FETCH_COST + entries > self.cost_max)
    }
}

/// The path that the program groups by, if the index can answer all of it.
fn grouped_path(visit: &Visit<'_>) -> Result<Option<IndexPath>> {
    match groupable_path(visit) {
        Some(path) if !visit.may_hold_expired()? => Ok(Some(path)),
        _ => Ok(None),
    }
}

fn groupable_path(visit: &Visit<'_>) -> Option<IndexPath> {
    let is_begun = visit.extent.after.is_some() || visit.extent.leg.is_some();
    let access = visit.note.access.as_ref().filter(|_| !is_begun)?;
    // Without a filter, and with the whole partition, the groups of the index are all there are.
    if access.filter != Proposal::Everything || !access.filter_exact || !visit.extent.is_whole {
        return None;
    }
    let path = counted_groups(visit.request.program)?;
    // What looks like a path may be the name of an expression.
    let vocabulary = visit.request.container.definition.vocabulary().ok()?;
    let is_first =
        |name: &str| matches!(path.steps().first(), Some(IndexStep::Name(first)) if **first == *name);
    (!vocabulary.computed_names().any(is_first) && visit.covers(&path)).then_some(path)
}

/// `SELECT c.a, COUNT(1) FROM c GROUP BY c.a`, and whatever else can be made of the two.
fn counted_groups(program: &Program) -> Option<IndexPath> {
    let Query {
        select, from: Some(from), filter: None, group_by, order_by: None, offset_limit: None, ..
    } = program.query()
    else {
        return None;
    };
    let ([source], [key]) = (from.sources.as_slice(), group_by.as_slice()) else { return None };
    if select.distinct || select.top.is_some() {
        return None;
    }
    if !matches!(&source.collection, Collection::Path { steps, .. } if steps.is_empty()) {
        return None;
    }
    let path = path_of(key, source.name()?)?;
    // A row made of names always exists, so that rows are groups.
    let SelectSpec::List(items) = &select.spec else { return None };
    items.iter().all(|item| only_counts(&item.expr)).then_some(IndexPath(path))
}
