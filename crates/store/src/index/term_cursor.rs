//! The entries of one term, in key order.

use bytes::Bytes;

use super::reader::IndexReader;
use crate::engine::Keys;
use crate::{Fault, keys};

/// Entries to step over before a search from the top of the tree is cheaper.
const STEPS_BEFORE_SEEK: usize = 8;

pub struct TermCursor<'r> {
    reader: &'r IndexReader<'r>,
    /// Generation, path and term: what stands before the place in each key.
    prefix: Vec<u8>,
    upper: Vec<u8>,
    entries: Keys,
    /// The whole key.
    current: Option<Bytes>,
}

impl<'r> TermCursor<'r> {
    pub fn open(reader: &'r IndexReader<'r>, path_hash: u64, term: &[u8]) -> Result<Self, Fault> {
        let prefix = keys::index_prefix(reader.generation(), path_hash, term);
        let upper = [prefix.as_slice(), &reader.scope().upper].concat();
        let lower = [prefix.as_slice(), &reader.scope().lower].concat();
        let entries = reader.entries(&lower, &upper, false);
        let mut cursor = TermCursor { reader, prefix, upper, entries, current: None };
        cursor.advance()?;
        Ok(cursor)
    }

    pub fn current(&self) -> Option<&[u8]> {
        self.current.as_ref().map(|key| &key[self.prefix.len()..])
    }

    pub fn advance(&mut self) -> Result<(), Fault> {
        self.current = self.entries.next().transpose()?;
        self.reader.touched(u64::from(self.current.is_some()));
        Ok(())
    }

    /// Moves to the first entry at or behind `place`.
    pub fn seek(&mut self, place: &[u8]) -> Result<(), Fault> {
        for _ in 0..STEPS_BEFORE_SEEK {
            if self.current().is_none_or(|current| current >= place) {
                return Ok(());
            }
            self.advance()?;
        }
        if self.current().is_some_and(|current| current < place) {
            let lower = [self.prefix.as_slice(), place].concat();
            self.entries = self.reader.entries(&lower, &self.upper, false);
            self.advance()?;
        }
        Ok(())
    }
}
