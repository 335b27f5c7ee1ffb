//! The index of one partition at one moment, cut to a part of its key space.

use std::cell::Cell;
use std::ops::Bound;

use super::places::{PlaceRange, Places};
use super::set::PlaceCursor;
use super::term::measure;
use super::{Candidates, EntryList, OrderedCursor, ReadResult, RidCursor, TermRange};
use crate::engine::{Keys, Keyspace, Snapshot};
use crate::{Fault, keys};

/// Bytes before the term in an index key: the generation and the hash of the path.
pub(super) const HEAD_BYTES: usize = 12;

pub struct IndexReader<'v> {
    snapshot: &'v Snapshot,
    generation: u32,
    /// Rids have a generation of their own, which stays when others are built.
    rid_generation: u32,
    scope: PlaceRange,
    read: Cell<u64>,
}

impl<'v> IndexReader<'v> {
    pub(crate) fn new(
        snapshot: &'v Snapshot,
        generation: u32,
        rid_generation: u32,
        scope: PlaceRange,
    ) -> IndexReader<'v> {
        IndexReader { snapshot, generation, rid_generation, scope, read: Cell::new(0) }
    }

    /// How many entries were touched so far.
    pub fn entries_read(&self) -> u64 {
        self.read.get()
    }

    pub fn scope(&self) -> &PlaceRange {
        &self.scope
    }

    /// Places in key order; `None` when something to be collected takes more than `most` entries.
    pub fn places<'r>(&'r self, candidates: Candidates, most: usize) -> ReadResult<Option<PlaceCursor<'r>>> {
        PlaceCursor::open(self, candidates, most)
    }

    /// Entries of a path in term order; see [`OrderedCursor::open`].
    pub fn ordered<'r>(
        &'r self,
        path_hash: u64,
        parts: &[bool],
        ranges: &[TermRange],
        from: Option<&[u8]>,
        backward: bool,
    ) -> OrderedCursor<'r> {
        OrderedCursor::open(self, path_hash, parts, ranges, from, backward)
    }

    /// Items in the order of their rids, from one of them on.
    pub fn rids<'r>(&'r self, from: Option<u64>, backward: bool) -> RidCursor<'r> {
        RidCursor::open(self, from, backward)
    }

    /// The places that these terms have, in key order, if finding them takes no more than `most` entries. Those of
    /// single terms are looked for within the reader's scope only, those of intervals in the whole partition.
    pub fn find_up_to(
        &self,
        list: &EntryList,
        ranges: &[TermRange],
        most: usize,
    ) -> ReadResult<Option<Places>> {
        let mut places = Places::default();
        let mut left = most;
        for range in ranges {
            if !self.visit_range(list, range, &mut left, |place| places.push(place))? {
                return Ok(None);
            }
        }
        places.sort();
        Ok(Some(places))
    }

    /// Counts the entries of these terms within the scope; `None` when that takes more than `most` entries. A
    /// path without arrays has one for each item.
    pub fn count(&self, list: &EntryList, ranges: &[TermRange], most: usize) -> ReadResult<Option<u64>> {
        let (mut count, mut left) = (0, most);
        for range in ranges {
            let counted = self.visit_range(list, range, &mut left, |_| {
                count += 1;
                true
            })?;
            if !counted {
                return Ok(None);
            }
        }
        Ok(Some(count))
    }

    /// Whether the item at this place has this term.
    pub fn has(&self, path_hash: u64, term: &[u8], place: &[u8]) -> ReadResult<bool> {
        let mut key = keys::index_prefix(self.generation, path_hash, term);
        key.extend_from_slice(place);
        self.touched(1);
        Ok(self.snapshot.contains(Keyspace::Index, &key)?)
    }

    /// Visits the places within the scope until `visit` says stop or `left` entries were read. Returns whether
    /// the end of the range was reached.
    pub(super) fn visit_range(
        &self,
        list: &EntryList,
        range: &TermRange,
        left: &mut usize,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> ReadResult<bool> {
        let mut lower = keys::index_prefix(self.generation, list.path_hash, &range.start);
        let single = list.is_single_term(range);
        let upper = if single {
            let upper = [lower.as_slice(), &self.scope.upper].concat();
            lower.extend_from_slice(&self.scope.lower);
            upper
        } else {
            keys::index_prefix(self.generation, list.path_hash, &range.end)
        };
        for key in self.entries(&lower, &upper, false) {
            let key = key?;
            if *left == 0 {
                return Ok(false);
            }
            *left -= 1;
            self.touched(1);
            let tail = &key[HEAD_BYTES..];
            let term = match single {
                true => range.start.len(),
                false => measure(tail, &list.parts).ok_or_else(no_term)?.bytes,
            };
            let place = &tail[term..];
            if (single || self.scope.contains(place)) && !visit(place) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn entries(&self, lower: &[u8], upper: &[u8], reverse: bool) -> Keys {
        self.snapshot.keys(Keyspace::Index, Bound::Included(lower), Bound::Excluded(upper), reverse)
    }

    pub(super) fn touched(&self, entries: u64) {
        self.read.set(self.read.get() + entries);
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    pub(super) fn rid_generation(&self) -> u32 {
        self.rid_generation
    }
}

pub(super) fn no_term() -> Fault {
    Fault::Damaged("an index key without a term".into())
}
