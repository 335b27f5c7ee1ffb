//! The entries of one path in the order of their terms.

use bytes::Bytes;
use orrery_doc::{TermOrder, TermType};

use super::reader::{HEAD_BYTES, IndexReader, no_term};
use super::term::{TermLength, measure};
use super::{ReadResult, TermRange};
use crate::engine::Keys;
use crate::indexing::term_len;
use crate::keys;

/// Entries outside the scope to step over before the cursor leaps.
const STEPS_BEFORE_SEEK: usize = 8;

pub struct OrderedCursor<'r> {
    reader: &'r IndexReader<'r>,
    /// For each part of a composite index, whether its bytes are inverted; one `false` for a single path.
    parts: Vec<bool>,
    backward: bool,
    /// Whole keys, in the order of the walk; the first is being walked.
    ranges: std::vec::IntoIter<TermRange>,
    range: TermRange,
    entries: Option<Keys>,
    /// Entries outside the scope since the last one inside.
    missed: usize,
}

/// One entry: a run of terms and the place of an item.
pub struct OrderedEntry {
    key: Bytes,
    terms: TermLength,
    /// How many bytes of the terms say where the entry comes in the order of values.
    run_bytes: usize,
}

/// Whether a term that begins with this byte is that of an array or object.
fn is_container(mark: u8) -> bool {
    matches!(TermType::of_term(&[mark], TermOrder::Sql), Some(TermType::Array | TermType::Object))
}

/// How many bytes of the terms are in the order of values. Arrays are ordered by their hash, and objects too, but their
/// terms begin with what is in them: of such a term only the type counts, and what follows it does not.
fn ordered_bytes(terms: &[u8], parts: &[bool]) -> Option<usize> {
    let mut length = 0;
    for &turned in parts {
        let Some(&first) = terms.get(length) else { break };
        if is_container(if turned { !first } else { first }) {
            return Some(length + 1);
        }
        // Most indexes have one part, whose length is known.
        length += if parts.len() == 1 { terms.len() } else { term_len(&terms[length..], turned)?.0 };
    }
    Some(length)
}

impl OrderedEntry {
    /// The bytes of the term, or of all terms of a composite entry. Entries with the same make a run. All arrays are one
    /// run, and all objects.
    pub fn run(&self) -> &[u8] {
        &self.key[HEAD_BYTES..HEAD_BYTES + self.run_bytes]
    }

    /// Whether different values may share this run.
    pub fn is_cut(&self) -> bool {
        self.terms.cut || self.run_bytes < self.terms.bytes
    }

    pub fn place(&self) -> &[u8] {
        &self.key[HEAD_BYTES + self.terms.bytes..]
    }
}

impl<'r> OrderedCursor<'r> {
    /// Walks the ranges, which are sorted, forward or backward, beginning with the run `from`.
    pub(super) fn open(
        reader: &'r IndexReader<'r>,
        path_hash: u64,
        parts: &[bool],
        ranges: &[TermRange],
        from: Option<&[u8]>,
        backward: bool,
    ) -> OrderedCursor<'r> {
        let whole = |term: &[u8]| keys::index_prefix(reader.generation(), path_hash, term);
        let mut ranges: Vec<TermRange> = ranges.iter().map(|r| whole(&r.start)..whole(&r.end)).collect();
        if let Some(run) = from {
            let (first, behind) = (whole(run), keys::after_prefix(&whole(run)));
            for range in &mut ranges {
                if !backward && range.start < first {
                    range.start = first.clone();
                }
                if let Some(behind) = behind.as_ref().filter(|behind| backward && range.end > **behind) {
                    range.end = behind.clone();
                }
            }
        }
        ranges.retain(|range| range.start < range.end);
        if backward {
            ranges.reverse();
        }
        OrderedCursor {
            reader,
            parts: parts.to_vec(),
            backward,
            ranges: ranges.into_iter(),
            range: vec![]..vec![],
            entries: None,
            missed: 0,
        }
    }

    /// The next entry within the reader's scope.
    pub fn next_entry(&mut self) -> ReadResult<Option<OrderedEntry>> {
        loop {
            let Some(entries) = &mut self.entries else {
                let Some(range) = self.ranges.next() else { return Ok(None) };
                self.entries = Some(self.reader.entries(&range.start, &range.end, self.backward));
                self.range = range;
                continue;
            };
            let Some(key) = entries.next().transpose()? else {
                self.entries = None;
                continue;
            };
            self.reader.touched(1);
            let terms = measure(&key[HEAD_BYTES..], &self.parts).ok_or_else(no_term)?;
            let run_bytes = ordered_bytes(&key[HEAD_BYTES..HEAD_BYTES + terms.bytes], &self.parts);
            let entry = OrderedEntry { key, terms, run_bytes: run_bytes.ok_or_else(no_term)? };
            if self.reader.scope().contains(entry.place()) {
                self.missed = 0;
                return Ok(Some(entry));
            }
            self.missed += 1;
            if self.missed == STEPS_BEFORE_SEEK {
                self.missed = 0;
                self.leap(&entry);
            }
        }
    }

    /// Leaves out the rest of the run that the entry is in.
    pub fn skip_run(&mut self, entry: &OrderedEntry) {
        let head = &entry.key[..HEAD_BYTES + entry.terms.bytes];
        if self.backward {
            self.range.end = head.to_vec();
        } else if let Some(behind) = keys::after_prefix(head) {
            self.range.start = behind;
        }
        self.entries = Some(self.reader.entries(&self.range.start, &self.range.end, self.backward));
    }

    /// Goes on where the scope begins, within these terms or behind them.
    fn leap(&mut self, outside: &OrderedEntry) {
        let head = &outside.key[..HEAD_BYTES + outside.terms.bytes];
        let scope = self.reader.scope();
        let below = outside.place() < scope.lower.as_slice();
        if self.backward {
            self.range.end = if below { head.to_vec() } else { [head, scope.upper.as_slice()].concat() };
        } else if below {
            self.range.start = [head, scope.lower.as_slice()].concat();
        } else if let Some(behind) = keys::after_prefix(head) {
            self.range.start = behind;
        }
        self.entries = Some(self.reader.entries(&self.range.start, &self.range.end, self.backward));
    }
}
