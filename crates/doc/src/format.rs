//! The binary document format.
//!
//! A document is one format-version byte followed by one value:
//!
//! ```text
//! value  = tag u8, payload
//! int    = zigzag varint                 double = 8 bytes little endian
//! string = length varint, UTF-8          typed  = length varint, bytes
//! array  = size u32, n u32, values, n x offset u32
//! object = size u32, n u32, { name length varint, name, value }*, n x offset u32 (insertion order),
//!          [n x u16 in name order, only when n > 16; u32 when n > 65,535]
//! ```
//!
//! CQL's list, set and tuple are laid out as arrays, its user-defined types as objects, and a map as an array of keys
//! and values in turn. Every tag from 40 on is followed by the length of its payload. `docs/format.md` shows the bytes
//! of each.
//!
//! `size` counts the whole value with its tag, and offsets count from the tag, so a subtree can be
//! copied as one slice to any place. The tables stand *behind* the values they describe: a parser
//! learns the number of fields only at the closing brace, and a table in front would have to be
//! squeezed in by moving the body once for every level of nesting. All integers are little endian.
//!
//! Entries lie without gaps in the order of the offset table, which lets validation account for every
//! byte. Readers nevertheless check each step they take, because bytes that come back from a disk are
//! read without validating them again: a corrupt document may read as [`Value::Undefined`], but never
//! panics.

use bytes::Bytes;

use crate::MAX_DEPTH;
use crate::cell::Cell;
use crate::path::{Path, Segment};
use crate::typed::Typed;
use crate::value::{Table, Value};

/// The version written in front of every document.
pub(crate) const FORMAT_VERSION: u8 = 1;

pub(crate) const TAG_NULL: u8 = 0x01;
pub(crate) const TAG_FALSE: u8 = 0x02;
pub(crate) const TAG_TRUE: u8 = 0x03;
pub(crate) const TAG_INT: u8 = 0x04;
pub(crate) const TAG_DOUBLE: u8 = 0x05;
pub(crate) const TAG_STRING: u8 = 0x06;
pub(crate) const TAG_ARRAY: u8 = 0x07;
pub(crate) const TAG_OBJECT: u8 = 0x08;
pub(crate) const TAG_LIST: u8 = 0x09;
pub(crate) const TAG_SET: u8 = 0x0a;
pub(crate) const TAG_TUPLE: u8 = 0x0b;
pub(crate) const TAG_UDT: u8 = 0x0c;
pub(crate) const TAG_MAP: u8 = 0x0d;
pub(crate) const TAG_INT32: u8 = 0x0e;
pub(crate) const TAG_INT16: u8 = 0x0f;
pub(crate) const TAG_INT8: u8 = 0x10;
/// Tags from here on have the length of their payload in front of it.
pub(crate) const TAG_LENGTH_FIRST: u8 = 0x40;
pub(crate) const TAG_FLOAT32: u8 = 0x40;
pub(crate) const TAG_DECIMAL128: u8 = 0x41;
pub(crate) const TAG_DECIMAL: u8 = 0x42;
pub(crate) const TAG_VARINT: u8 = 0x43;
pub(crate) const TAG_BINARY: u8 = 0x44;
pub(crate) const TAG_DATE: u8 = 0x45;
pub(crate) const TAG_TIMESTAMP: u8 = 0x46;
pub(crate) const TAG_OBJECT_ID: u8 = 0x47;
pub(crate) const TAG_UUID: u8 = 0x48;
pub(crate) const TAG_TIME_UUID: u8 = 0x49;
pub(crate) const TAG_REGEX: u8 = 0x4a;
pub(crate) const TAG_CODE: u8 = 0x4b;
pub(crate) const TAG_SCOPED_CODE: u8 = 0x4c;
pub(crate) const TAG_SYMBOL: u8 = 0x4d;
pub(crate) const TAG_DB_POINTER: u8 = 0x4e;
pub(crate) const TAG_UNDEFINED: u8 = 0x4f;
pub(crate) const TAG_MIN_KEY: u8 = 0x50;
pub(crate) const TAG_MAX_KEY: u8 = 0x51;
pub(crate) const TAG_INET: u8 = 0x52;
pub(crate) const TAG_DAY: u8 = 0x53;
pub(crate) const TAG_TIME: u8 = 0x54;
pub(crate) const TAG_DURATION: u8 = 0x55;
pub(crate) const TAG_CELL: u8 = 0x60;

/// Bytes of tag, size and count in front of a container's values.
pub(crate) const CONTAINER_HEADER: usize = 9;
/// Objects with more fields than this carry a table in name order.
pub(crate) const SCAN_LIMIT: usize = 16;

/// Why bytes are not a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("document has no bytes")]
    Empty,
    #[error("document format {0} is not known")]
    UnknownVersion(u8),
    #[error("document is corrupt at byte {0}")]
    Corrupt(usize),
    #[error("document is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// An owned document. Cloning shares the bytes.
#[derive(Clone)]
pub struct Doc(Bytes);

impl Doc {
    /// Takes bytes from outside, checking every one of them.
    pub fn from_bytes(bytes: Bytes) -> Result<Doc, FormatError> {
        let version = *bytes.first().ok_or(FormatError::Empty)?;
        if version != FORMAT_VERSION {
            return Err(FormatError::UnknownVersion(version));
        }
        let length = validate(&bytes, 1, 0)?;
        if length + 1 != bytes.len() {
            return Err(FormatError::Corrupt(length + 1));
        }
        Ok(Doc(bytes))
    }

    /// Takes bytes that this crate wrote earlier. They are not checked; if they were damaged since,
    /// the damaged parts read as undefined.
    pub fn from_trusted(bytes: Bytes) -> Doc {
        Doc(bytes)
    }

    /// The document made of one value.
    pub fn from_value(value: Value<'_>) -> Doc {
        let mut builder = crate::DocBuilder::new();
        builder.value(value);
        builder.finish()
    }

    pub fn as_ref(&self) -> DocRef<'_> {
        DocRef(&self.0)
    }

    pub fn root(&self) -> Value<'_> {
        self.as_ref().root()
    }

    pub fn get(&self, path: &Path) -> Value<'_> {
        self.as_ref().get(path)
    }

    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl PartialEq for Doc {
    fn eq(&self, other: &Doc) -> bool {
        self.root() == other.root()
    }
}

impl std::fmt::Debug for Doc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.root().fmt(f)
    }
}

/// A borrowed document.
#[derive(Clone, Copy)]
pub struct DocRef<'a>(&'a [u8]);

impl<'a> DocRef<'a> {
    /// Views bytes that this crate wrote, under the terms of [`Doc::from_trusted`].
    pub fn new(bytes: &'a [u8]) -> DocRef<'a> {
        DocRef(bytes)
    }

    pub fn root(self) -> Value<'a> {
        match self.0.split_first() {
            Some((&FORMAT_VERSION, value)) => Value::read(value),
            _ => Value::Undefined,
        }
    }

    pub fn get(self, path: &Path) -> Value<'a> {
        let mut value = self.root();
        for segment in path.segments() {
            value = match segment {
                Segment::Name(name) => value.get(name),
                Segment::Index(index) => value.index(*index),
            };
        }
        value
    }

    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl std::fmt::Debug for DocRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.root().fmt(f)
    }
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Option<usize> {
    let chunk = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*chunk) as usize)
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> Option<usize> {
    let chunk = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*chunk) as usize)
}

/// Reads a varint, giving the number and how many bytes it took.
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let mut number = u64::from(first & 0x7f);
    for (i, &byte) in bytes.iter().enumerate().take(10).skip(1) {
        let part = u64::from(byte & 0x7f);
        // The tenth byte carries bit 63 alone.
        if i == 9 && part > 1 {
            return None;
        }
        number |= part << (7 * i);
        if byte < 0x80 {
            return Some((number, i + 1));
        }
    }
    None
}

pub(crate) fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads a length and the bytes it announces, giving them and how many bytes both took.
pub(crate) fn read_blob(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (length, header) = read_varint(bytes)?;
    let end = header.checked_add(usize::try_from(length).ok()?)?;
    Some((bytes.get(header..end)?, end))
}

/// The bytes of a string, if the value that starts here is one; nobody has looked whether they are UTF-8.
pub(crate) fn encoded_string(value: &[u8]) -> Option<&[u8]> {
    let (&TAG_STRING, payload) = value.split_first()? else { return None };
    read_blob(payload).map(|(text, _)| text)
}

/// Checks the value at `at` and returns its length.
fn validate(bytes: &[u8], at: usize, depth: usize) -> Result<usize, FormatError> {
    let corrupt = FormatError::Corrupt(at);
    let value = &bytes[at..];
    let Some((&tag, payload)) = value.split_first() else {
        return Err(corrupt);
    };
    match tag {
        TAG_NULL | TAG_FALSE | TAG_TRUE => Ok(1),
        TAG_INT => read_varint(payload).map(|(_, length)| length + 1).ok_or(corrupt),
        TAG_DOUBLE => payload.first_chunk::<8>().map(|_| 9).ok_or(corrupt),
        TAG_STRING => {
            let (text, length) = read_blob(payload).ok_or(corrupt)?;
            std::str::from_utf8(text).map_err(|_| FormatError::Corrupt(at))?;
            Ok(length + 1)
        }
        TAG_ARRAY | TAG_OBJECT | TAG_LIST | TAG_SET | TAG_TUPLE | TAG_UDT | TAG_MAP => {
            if depth == MAX_DEPTH {
                return Err(FormatError::TooDeep);
            }
            let table = Table::read(value).ok_or(corrupt)?;
            validate_container(bytes, at, table, depth)?;
            Ok(table.bytes.len())
        }
        TAG_INT32 | TAG_INT16 | TAG_INT8 => {
            Typed::read(tag, payload).ok_or(corrupt)?;
            Ok(1 + read_varint(payload).map_or(0, |(_, length)| length))
        }
        TAG_LENGTH_FIRST.. => {
            let (inside, length) = read_blob(payload).ok_or(corrupt)?;
            validate_typed(bytes, inside, tag, at + 1 + length, depth)?;
            Ok(length + 1)
        }
        _ => Err(corrupt),
    }
}

/// Checks a value whose length is written in front of it and which ends at `end`, with the value that may be inside.
fn validate_typed(
    bytes: &[u8],
    payload: &[u8],
    tag: u8,
    end: usize,
    depth: usize,
) -> Result<(), FormatError> {
    let corrupt = FormatError::Corrupt(end - payload.len());
    let inside = match tag {
        TAG_CELL => match Cell::read_parts(payload) {
            Some((_, inside)) => inside,
            None => return Err(corrupt),
        },
        tag => match Typed::read(tag, payload) {
            Some(Typed::ScopedCode(code)) => Some(code.encoded_scope()),
            Some(_) => None,
            None => return Err(corrupt),
        },
    };
    let Some(inside) = inside else { return Ok(()) };
    if depth == MAX_DEPTH {
        return Err(FormatError::TooDeep);
    }
    // The value inside is the last thing of the payload.
    let length = validate(&bytes[..end], end - inside.len(), depth + 1)?;
    if length == inside.len() { Ok(()) } else { Err(corrupt) }
}

/// Checks that the entries of a container follow each other without gaps up to its tables.
fn validate_container(bytes: &[u8], at: usize, table: Table<'_>, depth: usize) -> Result<(), FormatError> {
    let is_object = matches!(bytes[at], TAG_OBJECT | TAG_UDT);
    if bytes[at] == TAG_MAP && !table.len.is_multiple_of(2) {
        return Err(FormatError::Corrupt(at));
    }
    let mut expected = CONTAINER_HEADER;
    for i in 0..table.len {
        if table.offset(i) != Some(expected) || expected >= table.values_end {
            return Err(FormatError::Corrupt(at));
        }
        if is_object {
            let (name, length) = read_blob(&table.bytes[expected..table.values_end])
                .ok_or(FormatError::Corrupt(at + expected))?;
            std::str::from_utf8(name).map_err(|_| FormatError::Corrupt(at + expected))?;
            expected += length;
        }
        // The slice ends at the tables, so that no entry can reach into them.
        expected += validate(&bytes[..at + table.values_end], at + expected, depth + 1)?;
    }
    if expected != table.values_end {
        return Err(FormatError::Corrupt(at));
    }
    if is_object && !names_in_order(table) {
        return Err(FormatError::Corrupt(at));
    }
    Ok(())
}

/// Checks that names are unique and that the name-order table, if there is one, tells the truth.
fn names_in_order(table: Table<'_>) -> bool {
    if table.len > SCAN_LIMIT {
        // Strictly rising names cannot repeat a field, so the table is also a permutation.
        let mut previous: Option<&[u8]> = None;
        return (0..table.len).all(|rank| {
            let name = table.ranked(rank).and_then(|i| table.name(i));
            let rises = match (previous, name) {
                (Some(previous), Some(name)) => previous < name,
                (None, Some(_)) => true,
                _ => false,
            };
            previous = name;
            rises
        });
    }
    (0..table.len).all(|i| (0..i).all(|j| table.name(i) != table.name(j)))
}
