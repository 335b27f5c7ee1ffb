//! HybridRow: the binary form in which the .NET SDK sends batches and reads their answers.
//!
//! A body in this form begins with the byte 0x81, which no JSON in text or in binary form does, so the first byte alone
//! tells them apart. It is a *segment*, then one *record* for each row; there is no count and no end mark. Integers are
//! in little endian; a varint has 7 bits in each byte, the least significant first.
//!
//! ```text
//! segment   81 F0D8FF7F  presence 01  int32: bytes of the segment itself  sparse columns
//! record    81 F1D8FF7F  int32: bytes of the row that follows  uint32: their CRC-32
//! row       81 schema    presence bits  fixed columns  variable columns  sparse columns
//! ```
//!
//! A row is laid out by its schema ([`schema`]). Fixed and variable columns have a bit each that says whether they are
//! there; an absent fixed column keeps its room. Variable columns are a varint of their length and their bytes. Sparse
//! columns follow until the end of the row, each with a code of its type and its name: the number of a column of the
//! schema, counted from 1, or, from the count of columns plus 1 on, the length of a name that the schema does not know.
//!
//! The reader borrows from the body and allocates nothing for a length that it has only been told: every length is
//! checked against the bytes that are there before they are taken. What is read can be written again to the same bytes,
//! columns that nobody here knows included.

mod crc;
mod reader;
mod records;
mod row;
pub mod schema;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use records::{RecordWriter, Records};
pub use row::{Row, Value};

/// The first byte of every body in this form, and of every row.
const VERSION: u8 = 0x81;

/// Whether a body is in this form.
pub fn is_hybrid_row(body: &[u8]) -> bool {
    body.first() == Some(&VERSION)
}

/// Why bytes are not what they should be, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{kind} at byte {offset}")]
pub struct HybridRowError {
    pub kind: HybridRowErrorKind,
    /// The byte at which reading stopped, counted from the beginning of the body.
    pub offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HybridRowErrorKind {
    #[error("it ends too early")]
    UnexpectedEnd,
    #[error("another version than 0x81")]
    Version,
    #[error("an unexpected schema")]
    Schema,
    #[error("presence bits of columns that the schema does not have")]
    Presence,
    #[error("a segment whose length is not its own")]
    SegmentLength,
    #[error("a record before the first segment")]
    NoSegment,
    #[error("a row whose checksum is not its own")]
    Checksum,
    #[error("a number that is too long")]
    Varint,
    #[error("text that is not UTF-8")]
    Text,
    #[error("a type that is not known here")]
    Type,
    #[error("a column of another type than its schema says")]
    ColumnType,
    #[error("a column that was there before")]
    ColumnTwice,
}
