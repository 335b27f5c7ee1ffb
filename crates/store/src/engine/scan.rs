//! Iterators over a range of a snapshot, the same for both engines.

use std::ops::Bound;

use bytes::Bytes;
use lsm_tree::{Guard, IterGuardImpl};

use super::error::{EngineError, read_error};
use super::memory;

/// An iterator over a tree. It holds on to the tables and write buffers that it reads.
pub(super) type TreeScan = Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send>;

/// Entries of a range.
pub struct Scan {
    source: Source,
}

enum Source {
    Empty,
    Disk { iter: TreeScan, reverse: bool },
    Memory(memory::Cursor),
}

impl Scan {
    pub(super) fn empty() -> Scan {
        Scan { source: Source::Empty }
    }

    pub(super) fn disk(iter: Option<TreeScan>, reverse: bool) -> Scan {
        match iter {
            Some(iter) => Scan { source: Source::Disk { iter, reverse } },
            None => Scan::empty(),
        }
    }

    pub(super) fn memory(cursor: memory::Cursor) -> Scan {
        Scan { source: Source::Memory(cursor) }
    }

    fn next_key(&mut self) -> Option<Result<Bytes, EngineError>> {
        match &mut self.source {
            Source::Empty => None,
            Source::Disk { iter, reverse } => {
                let entry = step(iter, *reverse)?;
                Some(entry.key().map(Bytes::from).map_err(read_error))
            }
            Source::Memory(cursor) => cursor.next().map(|(key, _)| Ok(key)),
        }
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Bytes), EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Empty => None,
            Source::Disk { iter, reverse } => {
                let entry = step(iter, *reverse)?.into_inner();
                Some(entry.map(|(key, value)| (Bytes::from(key), Bytes::from(value))).map_err(read_error))
            }
            Source::Memory(cursor) => cursor.next().map(Ok),
        }
    }
}

/// Keys of a range, without their values.
pub struct Keys {
    scan: Scan,
}

impl Keys {
    pub(super) fn new(scan: Scan) -> Keys {
        Keys { scan }
    }
}

impl Iterator for Keys {
    type Item = Result<Bytes, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.scan.next_key()
    }
}

fn step(iter: &mut TreeScan, reverse: bool) -> Option<IterGuardImpl> {
    if reverse { iter.next_back() } else { iter.next() }
}

/// Whether no key can lie between the bounds. Both engines panic or misbehave on crossed bounds, and
/// callers compute bounds from clients' requests.
pub(super) fn is_empty(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Excluded(upper))
        | (Bound::Excluded(lower), Bound::Included(upper)) => lower >= upper,
    }
}
