//! Choosing how to find the items that a filter may let pass.
//!
//! The planner proposes conditions on index entries. Some are worth nothing: a term that half of the items
//! have, an interval of a hundred thousand entries before a page of ten rows. What a condition is worth is
//! found by looking: the first entries of each are counted, up to a small cap, and the smallest list drives.
//! Conditions that are left out cost nothing but time, because every item is checked by the program.
//!
//! The costs that matter, as measured: to scan an item is about four times the work of reading an index
//! entry, and to fetch one by its key about four times the work of scanning it. Where candidates are dense,
//! the loader walks instead of fetching, so a long list of one term is never much worse than a scan. A long
//! interval must be collected first, on every page; that pays off while its entries are fewer than about
//! twice the root of the page's rows times the items of the scope.
//!
//! That is so in key order, in which candidates are spread by chance. In the order of creation they often lie together, so there it
//! shows on the way what an index is worth (`leg`).

use std::sync::Arc;

use orrery_doc::{Bounds, TermOrder};
use orrery_query::{IndexPath, Leaf, Proposal, Span};
use orrery_store::index::{Candidates, IndexReader, Places, TermRange};
use orrery_store::limits::{INDEX_COLLECTED_MAX, INDEX_MERGED_MAX};
use orrery_store::{Fault, PathCounts};

use super::note::LeafNote;
use super::offered::{hash_of, list_of};
use crate::request::AccessChoice;

/// Entries of a condition that are counted before anything is decided.
const PROBE_ENTRIES: usize = 128;
/// So few candidates are fetched without looking at any other condition.
const ALONE_MAX: u64 = 32;
/// So few items are scanned without asking any index.
const SCAN_WITHOUT_ASKING: u64 = 8;
/// Fetching an item costs as much as scanning so many.
const FETCH_FOR_SCANS: u64 = 3;

/// Where the terms of all values lie.
const TERMS: Bounds = TermOrder::Sql.defined();

pub(super) struct Chooser<'r> {
    pub reader: &'r IndexReader<'r>,
    pub choice: AccessChoice,
    /// Items that a scan would visit, at most.
    pub scope_items: u64,
    /// Rows that will be looked for; `None` when all items have to be seen.
    pub wanted: Option<usize>,
    /// Items of the whole partition, and how many of them have a value at a path.
    pub partition_items: u64,
    pub counts: Arc<PathCounts>,
    /// Paths on which the scope already decides.
    pub implied: &'r [IndexPath],
    pub notes: Vec<LeafNote>,
}

/// A list of candidates and what is known of its length.
pub(super) struct Weighed {
    pub candidates: Candidates,
    /// Which of the notes its conditions are.
    leaves: Vec<usize>,
    /// Entries counted.
    pub entries: u64,
    /// Counting stopped at the cap: there are more.
    pub open: bool,
    /// Comes in key order by itself; nothing must be collected.
    streams: bool,
}

/// Candidates that an index names, and what is thought of them.
pub(super) struct Chosen {
    pub candidates: Candidates,
    /// Which of the notes its conditions are.
    pub leaves: Vec<usize>,
    /// The most entries to collect for them in key order; none where a scan in that order is cheaper.
    pub collect_max: Option<usize>,
    /// They pay off in any order.
    pub is_sure: bool,
}

impl Chooser<'_> {
    /// The candidates that may be visited, or `None` to scan.
    pub fn choose(&mut self, proposal: &Proposal) -> Result<Option<Chosen>, Fault> {
        let small = self.scope_items <= SCAN_WITHOUT_ASKING;
        match (self.choice, proposal) {
            (AccessChoice::ScanOnly, _) | (_, Proposal::Everything) => return Ok(None),
            (_, Proposal::Nothing) => {
                return Ok(Some(Chosen::nothing()));
            }
            (AccessChoice::Auto, _) if small => return Ok(None),
            _ => {}
        }
        let Some(weighed) = self.weigh(proposal)? else { return Ok(None) };
        let collect_max = self.pays_off(&weighed);
        let is_sure = match self.choice {
            AccessChoice::IndexAlways => true,
            _ => !weighed.open && collect_max.is_some(),
        };
        let Weighed { candidates, leaves, .. } = weighed;
        Ok(Some(Chosen { candidates, leaves, collect_max, is_sure }))
    }

    /// Whether to use the candidates in key order, and then how many entries to collect at most.
    fn pays_off(&self, weighed: &Weighed) -> Option<usize> {
        let items = self.scope_items;
        if self.choice == AccessChoice::IndexAlways {
            return Some(INDEX_COLLECTED_MAX);
        }
        if !weighed.open {
            return (weighed.entries * FETCH_FOR_SCANS < items).then_some(PROBE_ENTRIES + 1);
        }
        if weighed.streams {
            return (PROBE_ENTRIES as u64 * FETCH_FOR_SCANS < items).then_some(PROBE_ENTRIES + 1);
        }
        let quarter = items / 4;
        let most = match self.wanted {
            Some(rows) => quarter.min(2 * (items.saturating_mul(rows as u64)).isqrt()),
            None => quarter,
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(INDEX_COLLECTED_MAX);
        (most > PROBE_ENTRIES).then_some(most)
    }

    /// Counts the first entries of the conditions; `None` when they exclude nothing.
    pub fn weigh(&mut self, proposal: &Proposal) -> Result<Option<Weighed>, Fault> {
        match proposal {
            Proposal::Everything => Ok(None),
            Proposal::Nothing => Ok(Some(Weighed::nothing())),
            Proposal::Leaf(leaf) if self.implied.contains(&leaf.path) || self.holds_for_all(leaf) => Ok(None),
            Proposal::Leaf(leaf) => self.weigh_leaf(leaf).map(Some),
            Proposal::Any(list) => self.weigh_any(list),
            Proposal::All(list) => self.weigh_all(list),
        }
    }

    /// Whether the condition is that there is a value, and every item has one.
    fn holds_for_all(&self, leaf: &Leaf) -> bool {
        let [span] = leaf.spans.as_slice() else { return false };
        span.lower.as_slice() <= [TERMS.first].as_slice()
            && span.upper.as_slice() >= [TERMS.behind].as_slice()
            && leaf.path.is_single()
            && self.counts.get(hash_of(&leaf.path)) == Some(self.partition_items)
    }

    fn weigh_leaf(&mut self, leaf: &Leaf) -> Result<Weighed, Fault> {
        let list = list_of(&leaf.path);
        let path_hash = list.path_hash;
        let ranges = ranges_of(&leaf.spans);
        let found = self.reader.find_up_to(&list, &ranges, PROBE_ENTRIES - 1)?;
        let entries = found.as_ref().map_or(PROBE_ENTRIES, Places::len) as u64;
        let open = found.is_none();
        self.notes.push(LeafNote { path: leaf.path.clone(), path_hash, entries, more: open, used: false });
        let streams =
            ranges.len() <= INDEX_MERGED_MAX && ranges.iter().all(|range| list.is_single_term(range));
        let term = |range: TermRange| Candidates::Term { path_hash, term: range.start };
        let candidates = match found {
            Some(places) => Candidates::Known(places),
            None if !streams => Candidates::Collected { list, ranges },
            None if ranges.len() == 1 => term(ranges.into_iter().next().expect("there is one range")),
            None => Candidates::Any(ranges.into_iter().map(term).collect()),
        };
        let leaves = vec![self.notes.len() - 1];
        Ok(Weighed { candidates, leaves, entries, open, streams: streams || !open })
    }

    /// All of a union's parts are needed, so one that excludes nothing spoils it.
    fn weigh_any(&mut self, list: &[Proposal]) -> Result<Option<Weighed>, Fault> {
        let mut sum = Weighed::nothing();
        let mut parts = Vec::with_capacity(list.len());
        for proposal in list {
            let Some(part) = self.weigh(proposal)? else { return Ok(None) };
            sum.entries += part.entries;
            sum.open |= part.open;
            sum.streams &= part.streams;
            sum.leaves.extend(part.leaves);
            parts.push(part.candidates);
        }
        Ok((parts.len() <= INDEX_MERGED_MAX).then_some(Weighed { candidates: Candidates::Any(parts), ..sum }))
    }

    /// Of an intersection's parts any will do, so those that cost much and exclude little are left out.
    fn weigh_all(&mut self, list: &[Proposal]) -> Result<Option<Weighed>, Fault> {
        let mut parts = Vec::with_capacity(list.len());
        for proposal in list {
            let Some(part) = self.weigh(proposal)? else { continue };
            if !part.open && part.entries <= ALONE_MAX && self.choice != AccessChoice::IndexAlways {
                return Ok(Some(part));
            }
            parts.push(part);
        }
        // A long interval is collected only when nothing better is there.
        if parts.iter().any(|part| part.streams || !part.open) {
            parts.retain(|part| part.streams || !part.open);
        } else {
            parts.truncate(1);
        }
        parts.sort_by_key(|part| (part.open, part.entries));
        if parts.len() <= 1 {
            return Ok(parts.pop());
        }
        let (entries, open) = (parts[0].entries, parts[0].open);
        let streams = parts.iter().all(|part| part.streams);
        let leaves = parts.iter().flat_map(|part| part.leaves.iter().copied()).collect();
        let candidates = Candidates::All(parts.into_iter().map(|part| part.candidates).collect());
        Ok(Some(Weighed { candidates, leaves, entries, open, streams: streams || !open }))
    }
}

impl Chosen {
    fn nothing() -> Chosen {
        Chosen { candidates: Candidates::All(vec![]), leaves: vec![], collect_max: Some(0), is_sure: true }
    }
}

impl Weighed {
    fn nothing() -> Weighed {
        Weighed {
            candidates: Candidates::All(vec![]),
            leaves: vec![],
            entries: 0,
            open: false,
            streams: true,
        }
    }
}

pub(super) fn ranges_of(spans: &[Span]) -> Vec<TermRange> {
    spans.iter().map(|span| span.lower.clone()..span.upper.clone()).collect()
}
