//! Iterators over a range of a snapshot, the same for both engines.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::{Guard, IterGuardImpl};

use super::error::{EngineError, read_error};
use super::shared::Shared;
use super::{Keyspace, memory, packing};

/// An iterator over a tree. It holds on to the tables and write buffers that it reads.
pub(super) struct TreeScan {
    pub iter: Box<dyn DoubleEndedIterator<Item = IterGuardImpl> + Send>,
    /// The last to go: when it has gone the directory may be opened again, and tables that the iterator was
    /// the last to read have to be deleted before that.
    pub _shared: Arc<Shared>,
}

/// Entries of a range.
pub struct Scan {
    keyspace: Keyspace,
    source: Source,
}

enum Source {
    Empty,
    Disk { scan: TreeScan, reverse: bool },
    Memory(memory::Cursor),
}

impl Scan {
    pub(super) fn empty(keyspace: Keyspace) -> Scan {
        Scan { keyspace, source: Source::Empty }
    }

    pub(super) fn disk(keyspace: Keyspace, scan: Option<TreeScan>, reverse: bool) -> Scan {
        let source = scan.map_or(Source::Empty, |scan| Source::Disk { scan, reverse });
        Scan { keyspace, source }
    }

    pub(super) fn memory(keyspace: Keyspace, cursor: memory::Cursor) -> Scan {
        Scan { keyspace, source: Source::Memory(cursor) }
    }

    fn next_stored(&mut self) -> Option<Result<(Bytes, Bytes), EngineError>> {
        match &mut self.source {
            Source::Empty => None,
            Source::Disk { scan, reverse } => {
                let entry = step(scan, *reverse)?.into_inner();
                Some(entry.map(|(key, value)| (Bytes::from(key), Bytes::from(value))).map_err(read_error))
            }
            Source::Memory(cursor) => cursor.next().map(Ok),
        }
    }

    fn next_key(&mut self) -> Option<Result<Bytes, EngineError>> {
        match &mut self.source {
            Source::Empty => None,
            Source::Disk { scan, reverse } => {
                let entry = step(scan, *reverse)?;
                Some(entry.key().map(Bytes::from).map_err(read_error))
            }
            Source::Memory(cursor) => cursor.next().map(|(key, _)| Ok(key)),
        }
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Bytes), EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.next_stored()?;
        let unpack = |(key, value): (Bytes, Bytes)| {
            let value = packing::unpack(self.keyspace, &key, value)?;
            Ok((key, value))
        };
        Some(entry.and_then(unpack))
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

fn step(scan: &mut TreeScan, reverse: bool) -> Option<IterGuardImpl> {
    if reverse { scan.iter.next_back() } else { scan.iter.next() }
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
