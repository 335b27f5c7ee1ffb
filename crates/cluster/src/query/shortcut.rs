//! Answers that need no items, or only those at the end of an index.

use orrery_doc::{TermOrder, TermType};
use orrery_query::ast::Direction;
use orrery_query::{IndexPath, Leaf, Proposal, Shortcut};
use orrery_store::index::{Candidates, IndexReader, OrderedCursor, OrderedEntry, TermRange};
use orrery_store::limits::INDEX_COLLECTED_MAX;

use super::choose::ranges_of;
use super::note::Method;
use super::offered::list_of;
use super::page::Feed;
use super::term_order::everything;
use super::visit::{Visit, stored};
use crate::error::Result;

/// Gives the program its answer without visiting the items, if that is possible.
pub(super) fn feed(visit: &mut Visit<'_>, run: &mut dyn Feed) -> Result<bool> {
    // An index counts all items, not only those behind a place.
    if visit.extent.after.is_some() || visit.extent.leg.is_some() {
        return Ok(false);
    }
    let has_shortcut = |visit: &Visit<'_>| {
        visit.note.access.as_ref().is_some_and(|access| !matches!(access.shortcut, Shortcut::None))
    };
    if !has_shortcut(visit) || visit.may_hold_expired()? {
        return Ok(false);
    }
    let Some(access) = visit.note.access.take() else { return Ok(false) };
    let answered = match &access.shortcut {
        Shortcut::None => false,
        Shortcut::Count => count(visit, run, &access.filter)?,
        Shortcut::First { path, direction, counted } => {
            let end = End { path, direction: *direction, counted: *counted };
            extreme(visit, run, &access.filter, &end)?
        }
    };
    visit.note.access = Some(access);
    Ok(answered)
}

fn count(visit: &mut Visit<'_>, run: &mut dyn Feed, filter: &Proposal) -> Result<bool> {
    let Some(count) = count_items(visit, filter)? else { return Ok(false) };
    visit.note.method = Method::Count;
    run.feed_count(count)?;
    Ok(true)
}

/// How many items pass the filter, which is exact; `None` when counting is no better than looking.
fn count_items(visit: &mut Visit<'_>, filter: &Proposal) -> Result<Option<u64>> {
    let extent = &visit.extent;
    if matches!(filter, Proposal::Nothing) {
        return Ok(Some(0));
    }
    if matches!(filter, Proposal::Everything) {
        let known = extent.is_whole || extent.is_logical;
        let counted = || visit.view.count_items(&extent.epk).map_err(stored);
        return if known { Ok(Some(extent.items)) } else { counted().map(Some) };
    }
    let reader = visit.reader();
    let most = usize::try_from(extent.items).unwrap_or(usize::MAX);
    let count = visit.tally.looking_up(|| count_entries(&reader, filter, most))?;
    visit.count_entries(&reader);
    Ok(count)
}

fn count_entries(reader: &IndexReader<'_>, filter: &Proposal, most: usize) -> Result<Option<u64>> {
    // At a path without arrays an item has one entry, so entries are items.
    if let Proposal::Leaf(leaf) = filter
        && leaf.path.is_single()
    {
        return reader.count(&list_of(&leaf.path), &ranges_of(&leaf.spans), most.max(1024)).map_err(stored);
    }
    let Some(candidates) = candidates(filter) else { return Ok(None) };
    let Some(mut cursor) = reader.places(candidates, INDEX_COLLECTED_MAX).map_err(stored)? else {
        return Ok(None);
    };
    let mut count = 0;
    while cursor.current().is_some() {
        count += 1;
        cursor.advance().map_err(stored)?;
    }
    Ok(Some(count))
}

/// The whole proposal as candidates; nothing may be left out when they are counted.
fn candidates(proposal: &Proposal) -> Option<Candidates> {
    Some(match proposal {
        Proposal::Everything => return None,
        Proposal::Nothing => Candidates::All(vec![]),
        Proposal::Leaf(leaf) => leaf_candidates(leaf),
        Proposal::All(list) => Candidates::All(list.iter().map(candidates).collect::<Option<_>>()?),
        Proposal::Any(list) => Candidates::Any(list.iter().map(candidates).collect::<Option<_>>()?),
    })
}

fn leaf_candidates(leaf: &Leaf) -> Candidates {
    let list = list_of(&leaf.path);
    let mut ranges = ranges_of(&leaf.spans);
    match ranges.as_mut_slice() {
        [range] if list.is_single_term(range) => {
            Candidates::Term { path_hash: list.path_hash, term: std::mem::take(&mut range.start) }
        }
        _ => Candidates::Collected { list, ranges },
    }
}

/// The end of an index that MIN or MAX ask for.
struct End<'a> {
    path: &'a IndexPath,
    direction: Direction,
    /// The number of items with a value is asked for too.
    counted: bool,
}

/// MIN or MAX of a path: the first or last value decides, unless an array or object makes the answer undefined.
fn extreme(visit: &mut Visit<'_>, run: &mut dyn Feed, filter: &Proposal, end: &End<'_>) -> Result<bool> {
    let ranges = match filter {
        Proposal::Everything => everything(),
        Proposal::Leaf(leaf) if leaf.path == *end.path => ranges_of(&leaf.spans),
        _ => return Ok(false),
    };
    // Entries of other logical partitions would be read in vain until one of this appears.
    let in_vain = visit.partition_items / visit.extent.items.max(1);
    if in_vain > visit.extent.items.saturating_mul(4) {
        return Ok(false);
    }
    let list = list_of(end.path);
    let path_hash = list.path_hash;
    let reader = visit.reader();
    if end.counted {
        let known = *filter == Proposal::Everything && visit.extent.is_whole;
        let count = match visit.counts.get(path_hash).filter(|_| known) {
            Some(count) => Some(count),
            None => {
                let most = usize::try_from(visit.partition_items).unwrap_or(usize::MAX);
                visit.tally.looking_up(|| reader.count(&list, &ranges, most)).map_err(stored)?
            }
        };
        let Some(count) = count else { return Ok(false) };
        run.feed_count(count)?;
    }
    let (scalars, containers) = split(&ranges);
    let backward = end.direction == Direction::Descending;
    // One array or object is enough to make the answer undefined.
    let mut containers = reader.ordered(path_hash, &[false], &containers, None, false);
    if let Some(entry) = visit.tally.looking_up(|| containers.next_entry()).map_err(stored)? {
        let item = visit.tally.loading(|| visit.view.loader().load(entry.place())).map_err(stored)?;
        visit.tally.loaded(&item);
        run.feed_extreme(&item)?;
    }
    feed_first(visit, run, reader.ordered(path_hash, &[false], &scalars, None, backward))?;
    visit.count_entries(&reader);
    visit.note.method = Method::Extreme;
    Ok(true)
}

/// Feeds the first item of a walk, and all that share its term if that does not tell their values apart.
fn feed_first(visit: &mut Visit<'_>, run: &mut dyn Feed, mut cursor: OrderedCursor<'_>) -> Result<()> {
    let mut loader = visit.view.loader();
    let mut first: Option<OrderedEntry> = None;
    while let Some(entry) = visit.tally.looking_up(|| cursor.next_entry()).map_err(stored)? {
        if first.as_ref().is_some_and(|first| first.run() != entry.run()) {
            break;
        }
        let item = visit.tally.loading(|| loader.load(entry.place())).map_err(stored)?;
        visit.tally.loaded(&item);
        run.feed_extreme(&item)?;
        if !entry.is_cut() {
            break;
        }
        first = Some(entry);
    }
    Ok(())
}

/// The ranges below arrays and objects, and those of arrays and objects.
fn split(ranges: &[TermRange]) -> (Vec<TermRange>, Vec<TermRange>) {
    // Objects come behind arrays, and nothing behind objects.
    let middle: Vec<u8> =
        TermType::Array.bounds(TermOrder::Sql).map(|arrays| arrays.first).into_iter().collect();
    let below = ranges.iter().map(|range| range.start.clone()..range.end.clone().min(middle.clone()));
    let above = ranges.iter().map(|range| range.start.clone().max(middle.clone())..range.end.clone());
    let is_there = |range: &TermRange| range.start < range.end;
    (below.filter(is_there).collect(), above.filter(is_there).collect())
}
