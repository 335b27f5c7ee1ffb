//! The index terms of one version of an item, sorted, so that two versions can be compared in one walk.

use std::cmp::Ordering;

use orrery_doc::{TermOrder, Value, encode_term};

use crate::indexing::{IndexingPolicy, for_each_term, path_hash};
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
    /// Terms of system properties are kept for queries but never charged.
    charged: bool,
}

impl Terms {
    pub fn of(item: &Item, id: &str, policy: &IndexingPolicy) -> Terms {
        let mut terms = Terms::default();
        if item.header.flags & FLAG_UNINDEXED == 0 {
            for_each_term(policy, item.root(), &mut |path_hash, term: &[u8]| {
                terms.push(path_hash, term, true)
            });
            let mut term = Vec::with_capacity(16);
            encode_term(Value::Int(item.header.ts() as i64), TermOrder::Sql, &mut term);
            terms.push(path_hash(&["_ts"]), &term, false);
            term.clear();
            encode_term(Value::Str(id), TermOrder::Sql, &mut term);
            terms.push(path_hash(&["id"]), &term, false);
        }
        terms.sort();
        terms
    }

    fn push(&mut self, path_hash: u64, term: &[u8], charged: bool) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(term);
        self.entries.push(Entry { path_hash, start, end: self.bytes.len() as u32, charged });
    }

    fn sort(&mut self) {
        let Terms { bytes, entries } = self;
        let term = |e: &Entry| &bytes[e.start as usize..e.end as usize];
        // A charged entry sorts before its uncharged twin, which deduplication then drops.
        entries.sort_unstable_by(|a, b| {
            (a.path_hash, term(a), !a.charged).cmp(&(b.path_hash, term(b), !b.charged))
        });
        entries.dedup_by(|a, b| a.path_hash == b.path_hash && term(a) == term(b));
    }

    fn term(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start as usize..entry.end as usize]
    }

    /// Visits the terms that only one side has: `removed` for the old side, `added` for the new one.
    pub fn diff(
        old: &Terms,
        new: &Terms,
        mut removed: impl FnMut(u64, &[u8], bool),
        mut added: impl FnMut(u64, &[u8], bool),
    ) {
        let (mut i, mut j) = (0, 0);
        while i < old.entries.len() || j < new.entries.len() {
            let order = match (old.entries.get(i), new.entries.get(j)) {
                (Some(a), Some(b)) => (a.path_hash, old.term(a)).cmp(&(b.path_hash, new.term(b))),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            if order == Ordering::Less {
                let entry = &old.entries[i];
                removed(entry.path_hash, old.term(entry), entry.charged);
            } else if order == Ordering::Greater {
                let entry = &new.entries[j];
                added(entry.path_hash, new.term(entry), entry.charged);
            }
            i += usize::from(order != Ordering::Greater);
            j += usize::from(order != Ordering::Less);
        }
    }
}
