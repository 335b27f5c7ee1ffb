//! The index terms of one version of an item, sorted, so that two versions can be compared in one walk.

use std::cmp::Ordering;

use orrery_doc::{TermOrder, Value, encode_term};

use crate::indexing::{
    IndexingMode, IndexingPolicy, TermMark, for_each_computed_term, for_each_term, path_hash,
};
use crate::item::{FLAG_UNINDEXED, Item};

/// Terms in one buffer: no allocation for each.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    path_hash: u64,
    start: u32,
    end: u32,
    mark: TermMark,
}

/// How many terms there are, and how many bytes they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TermsSize {
    pub entries: u64,
    pub bytes: u64,
}

impl TermsSize {
    /// Of the terms of an item's values, which are the most of those that it has, before they are made.
    pub fn of(item: &Item, policy: &IndexingPolicy) -> TermsSize {
        let mut size = TermsSize::default();
        if item.header.flags & FLAG_UNINDEXED == 0 {
            for_each_term(policy, item.root(), &mut |_, term: &[u8], _| size.add(term));
        }
        size
    }

    pub fn add(&mut self, term: &[u8]) {
        self.entries += 1;
        self.bytes += term.len() as u64;
    }

    /// What they take in memory.
    pub fn held_bytes(self) -> u64 {
        self.entries * size_of::<Entry>() as u64 + self.bytes
    }
}

/// A term that only one of two versions has.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    pub added: bool,
    pub path_hash: u64,
    pub term: &'a [u8],
    pub mark: TermMark,
}

/// Of values that are in the index without being asked for, and of entries that are no value of a path.
const FREE: TermMark = TermMark { charged: false, counted: true };
const MADE: TermMark = TermMark { charged: true, counted: false };

/// More terms than this are not left in more memory than they need.
const ENTRIES_FITTED: usize = 1_024;

impl Terms {
    pub fn of(item: &Item, policy: &IndexingPolicy) -> Terms {
        let mut terms = Terms::default();
        if item.header.flags & FLAG_UNINDEXED != 0 || policy.mode == IndexingMode::None {
            return terms;
        }
        for_each_term(policy, item.root(), &mut |path_hash, term: &[u8], mark| {
            terms.push(path_hash, term, mark);
        });
        let computed = policy.compute(item.root());
        for_each_computed_term(policy, &computed, &mut |path_hash, term: &[u8], mark| {
            terms.push(path_hash, term, mark);
        });
        let ts = item.header.ts();
        terms.encode(path_hash(&["_ts"]), FREE, |out| {
            encode_term(Value::Int(ts as i64), TermOrder::Sql, out);
        });
        match item.root().root().get("id") {
            Value::Undefined => {}
            id => terms.encode(path_hash(&["id"]), FREE, |out| {
                encode_term(id, TermOrder::Sql, out);
            }),
        }
        for composite in policy.composites() {
            terms.encode(composite.hash, MADE, |out| {
                composite.encode_with(item.root().root(), ts, &computed, out);
            });
        }
        for tuple in policy.tuples() {
            tuple.for_each_element(item.root().root(), &mut |element| {
                terms.encode(tuple.hash, MADE, |out| tuple.encode(element, out));
            });
        }
        policy.for_each_cell(item.root().root(), &mut |path_hash, term: &[u8]| {
            terms.push(path_hash, term, MADE);
        });
        terms.sort();
        if terms.entries.len() > ENTRIES_FITTED {
            terms.entries.shrink_to_fit();
            terms.bytes.shrink_to_fit();
        }
        terms
    }

    pub(crate) fn size(&self) -> TermsSize {
        TermsSize { entries: self.entries.len() as u64, bytes: self.bytes.len() as u64 }
    }

    fn push(&mut self, path_hash: u64, term: &[u8], mark: TermMark) {
        self.encode(path_hash, mark, |out| out.extend_from_slice(term));
    }

    fn encode(&mut self, path_hash: u64, mark: TermMark, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.entries.push(Entry { path_hash, start, end: self.bytes.len() as u32, mark });
    }

    fn sort(&mut self) {
        let Terms { bytes, entries } = self;
        let term = |e: &Entry| &bytes[e.start as usize..e.end as usize];
        // A charged entry sorts before its uncharged twin, which deduplication then drops.
        entries.sort_unstable_by(|a, b| {
            (a.path_hash, term(a), !a.mark.charged).cmp(&(b.path_hash, term(b), !b.mark.charged))
        });
        entries.dedup_by(|a, b| a.path_hash == b.path_hash && term(a) == term(b));
    }

    fn term(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start as usize..entry.end as usize]
    }

    fn difference(&self, place: usize, added: bool) -> Difference<'_> {
        let entry = &self.entries[place];
        Difference { added, path_hash: entry.path_hash, term: self.term(entry), mark: entry.mark }
    }

    pub fn for_each<'a>(&'a self, visit: impl FnMut(Difference<'a>)) {
        (0..self.entries.len()).map(|place| self.difference(place, true)).for_each(visit);
    }

    /// Visits the terms that only one side has.
    pub fn diff<'a>(old: &'a Terms, new: &'a Terms, mut visit: impl FnMut(Difference<'a>)) {
        let (mut i, mut j) = (0, 0);
        while i < old.entries.len() || j < new.entries.len() {
            let order = match (old.entries.get(i), new.entries.get(j)) {
                (Some(a), Some(b)) => (a.path_hash, old.term(a)).cmp(&(b.path_hash, new.term(b))),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            match order {
                Ordering::Less => visit(old.difference(i, false)),
                Ordering::Greater => visit(new.difference(j, true)),
                Ordering::Equal => {}
            }
            i += usize::from(order != Ordering::Greater);
            j += usize::from(order != Ordering::Less);
        }
    }
}
