//! Items in the order in which they were created: the order that ties of ORDER BY are broken by.

use bytes::Bytes;

use super::ReadResult;
use super::reader::{HEAD_BYTES, IndexReader};
use crate::engine::Keys;
use crate::item::read_u64;
use crate::keys;

const RID_BYTES: usize = 8;

pub struct RidCursor<'r> {
    reader: &'r IndexReader<'r>,
    entries: Keys,
}

/// One item by its rid.
pub struct RidEntry {
    key: Bytes,
}

impl RidEntry {
    pub fn rid(&self) -> u64 {
        read_u64(&self.key, HEAD_BYTES)
    }

    pub fn place(&self) -> &[u8] {
        &self.key[HEAD_BYTES + RID_BYTES..]
    }
}

impl<'r> RidCursor<'r> {
    pub(super) fn open(reader: &'r IndexReader<'r>, from: Option<u64>, backward: bool) -> RidCursor<'r> {
        let key = |rid: u64| keys::index_prefix(reader.rid_generation(), keys::RID_PATH, &rid.to_be_bytes());
        let (mut lower, mut upper) = (key(0), key(u64::MAX));
        if let Some(from) = from {
            // Rids fill less than 64 bits, so there is always a next one.
            if backward {
                upper = key(from.saturating_add(1));
            } else {
                lower = key(from);
            }
        }
        RidCursor { reader, entries: reader.entries(&lower, &upper, backward) }
    }

    pub fn next_entry(&mut self) -> ReadResult<Option<RidEntry>> {
        let mut left = u64::MAX;
        self.next_within(&mut left)
    }

    /// The same, unless there are so many entries of other items before it that none is left to read.
    pub fn next_within(&mut self, left: &mut u64) -> ReadResult<Option<RidEntry>> {
        while *left > 0
            && let Some(key) = self.entries.next().transpose()?
        {
            *left -= 1;
            self.reader.touched(1);
            let entry = RidEntry { key };
            if entry.key.len() >= HEAD_BYTES + RID_BYTES && self.reader.scope().contains(entry.place()) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
