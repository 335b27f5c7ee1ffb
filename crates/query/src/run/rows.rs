//! Result rows as JSON text, one after the other in one buffer.

use crate::error::Result;
use crate::value::Val;

use super::Sink;

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

    /// A page that has a second row mostly has many.
    fn make_room(&mut self) {
        if self.ends.len() == 2 {
            self.bytes.reserve((self.bytes.len() * 16).min(ROOM_BYTES_MAX));
        }
    }
}

impl Sink for Rows {
    fn push(&mut self, row: &Val<'_>, bytes_max: usize) -> Result<()> {
        row.write_row(&mut self.bytes, bytes_max)?;
        self.ends.push(self.bytes.len());
        self.make_room();
        Ok(())
    }

    fn hold(&self, row: &Val<'_>, bytes_max: usize, held: &mut Vec<u8>) -> Result<()> {
        row.write_row(held, bytes_max)
    }

    fn push_held(&mut self, held: &[u8]) {
        self.bytes.extend_from_slice(held);
        self.ends.push(self.bytes.len());
        self.make_room();
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<usize>() * self.ends.capacity()
    }
}
