//! Reading the index of one partition: which items have which terms, without looking at the items.
//!
//! An entry is a path's hash, a term, and the *place* of the item: its EPK and id, encoded so that places
//! sort as the items themselves do. Entries of one term therefore come in the order of the items, and what
//! comes in one order can be combined without memory: intersections leap from one list to the other, unions
//! merge. Entries of an interval of terms come in the order of terms, so they are collected and sorted
//! first, within a limit. [`PlaceCursor`] is all of these, in *key order*.
//!
//! The same entries also come in *term order*, which is the order of values. [`OrderedCursor`] walks a path
//! that way, forward or backward, and tells where a run of equal terms ends: within a run the terms no
//! longer say which value comes first.
//!
//! Every cursor is cut to the part of the key space that the reader was opened for, and counts what it
//! touches, because that is what a query is charged for.

mod collected;
mod loader;
mod ordered;
mod places;
mod reader;
mod rids;
mod set;
mod term;
mod term_cursor;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{Fault, keys};

pub use loader::ItemLoader;
pub use ordered::{OrderedCursor, OrderedEntry};
pub use places::{PlaceRange, Places, key_at, place_of};
pub use reader::IndexReader;
pub use rids::{RidCursor, RidEntry};
pub use set::PlaceCursor;

/// Terms from the first, inclusive, to the second, exclusive.
pub type TermRange = Range<Vec<u8>>;

type ReadResult<T> = Result<T, Fault>;

/// The entries of one path, or of an index over several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryList {
    pub path_hash: u64,
    /// For each term that an entry is made of, whether its bits are turned.
    pub parts: Vec<bool>,
}

impl EntryList {
    /// The entries of a path.
    pub fn of_path(path_hash: u64) -> EntryList {
        EntryList { path_hash, parts: vec![false] }
    }

    /// Whether the range holds the terms of one entry only, so that the places behind them come in key order.
    pub fn is_single_term(&self, range: &TermRange) -> bool {
        let whole = term::measure(&range.start, &self.parts);
        whole.is_some_and(|terms| terms.bytes == range.start.len())
            && keys::after_prefix(&range.start).as_deref() == Some(range.end.as_slice())
    }
}

/// Which places to find, as a tree over lists of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// Entries of one term.
    Term { path_hash: u64, term: Vec<u8> },
    /// Places that were found already; see [`IndexReader::find_up_to`].
    Known(Places),
    /// Entries of intervals of terms, collected and sorted.
    Collected { list: EntryList, ranges: Vec<TermRange> },
    /// Places that all of these have; of an empty list, none.
    All(Vec<Candidates>),
    /// Places that any of these has.
    Any(Vec<Candidates>),
}

impl Candidates {
    /// Whether it is known, without looking, that there are at most so many places.
    pub fn is_within(&self, most: usize) -> bool {
        match self {
            Candidates::Term { .. } | Candidates::Collected { .. } => false,
            Candidates::Known(places) => places.len() <= most,
            Candidates::All(list) => list.is_empty() || list.iter().any(|part| part.is_within(most)),
            Candidates::Any(list) => {
                let each = most / list.len().max(1);
                list.iter().all(|part| part.is_within(each))
            }
        }
    }
}
