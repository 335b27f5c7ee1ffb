//! Result rows as JSON text, one after the other in one buffer.

use crate::error::Result;
use crate::eval::Context;
use crate::value::Val;

/// The most that is reserved for rows to come.
const ROOM_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The length of all rows together.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ends.iter().enumerate().map(|(i, end)| {
            let start = if i == 0 { 0 } else { self.ends[i - 1] };
            &self.bytes[start..*end]
        })
    }

    /// Appends the rows as the inside of a JSON array.
    pub fn write_joined(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes.len() + self.ends.len());
        for (i, row) in self.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(row);
        }
    }

    pub(crate) fn push(&mut self, value: &Val<'_>, cx: &Context<'_>) -> Result<()> {
        value.write_row(&mut self.bytes, cx.row_bytes_max())?;
        self.ends.push(self.bytes.len());
        self.make_room();
        Ok(())
    }

    /// What the rows take in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<usize>() * self.ends.capacity()
    }

    /// A page that has a second row mostly has many.
    fn make_room(&mut self) {
        if self.ends.len() == 2 {
            self.bytes.reserve((self.bytes.len() * 16).min(ROOM_BYTES_MAX));
        }
    }

    pub(crate) fn push_json(&mut self, json: &[u8]) {
        self.bytes.extend_from_slice(json);
        self.ends.push(self.bytes.len());
        self.make_room();
    }
}
