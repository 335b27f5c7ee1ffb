//! Views of the values inside a document.

use std::cmp::Ordering;
use std::fmt;

use crate::cell::{Cell, Content};
use crate::format::{
    CONTAINER_HEADER, SCAN_LIMIT, TAG_ARRAY, TAG_CELL, TAG_DOUBLE, TAG_FALSE, TAG_INT, TAG_INT8, TAG_INT16,
    TAG_INT32, TAG_LENGTH_FIRST, TAG_LIST, TAG_MAP, TAG_NULL, TAG_OBJECT, TAG_SET, TAG_STRING, TAG_TRUE,
    TAG_TUPLE, TAG_UDT, read_blob, read_u16, read_u32, read_varint, unzigzag,
};
use crate::map::MapRef;
use crate::typed::{ArrayKind, Typed};

/// One value, borrowed from a document. Reading it allocates nothing.
///
/// Two values are equal when [`crate::compare`] calls them equal: `1` and `1.0` are, and the order of
/// an object's fields does not matter.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// The value of a field that is not there.
    Undefined,
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(&'a str),
    /// An array of any kind, also a list, a set or a tuple of CQL.
    Array(ArrayRef<'a>),
    /// An object, also a value of a user-defined type of CQL.
    Object(ObjectRef<'a>),
    /// CQL's map, whose keys may be of any type.
    Map(MapRef<'a>),
    /// A scalar of a type that JSON does not have.
    Typed(Typed<'a>),
}

// Values are handed around by copy everywhere; a type that needs more room borrows it.
const _: () = assert!(size_of::<Value<'_>>() <= 40);

impl<'a> Value<'a> {
    /// Reads the value that starts at the first byte; damaged bytes read as undefined.
    pub(crate) fn read(bytes: &'a [u8]) -> Value<'a> {
        Value::try_read(bytes).unwrap_or(Value::Undefined)
    }

    pub(crate) fn try_read(bytes: &'a [u8]) -> Option<Value<'a>> {
        let (&tag, payload) = bytes.split_first()?;
        Some(match tag {
            TAG_NULL => Value::Null,
            TAG_FALSE => Value::Bool(false),
            TAG_TRUE => Value::Bool(true),
            TAG_INT => Value::Int(unzigzag(read_varint(payload)?.0)),
            TAG_DOUBLE => Value::Double(f64::from_le_bytes(*payload.first_chunk::<8>()?)),
            TAG_STRING => Value::Str(std::str::from_utf8(read_blob(payload)?.0).ok()?),
            TAG_ARRAY => Value::Array(ArrayRef(Table::read(bytes)?)),
            TAG_OBJECT => Value::Object(ObjectRef(Table::read(bytes)?)),
            _ => return Value::read_typed(bytes),
        })
    }

    /// Reads what JSON does not have. A cell reads as the value that it holds.
    #[cold]
    fn read_typed(bytes: &'a [u8]) -> Option<Value<'a>> {
        let (&tag, payload) = bytes.split_first()?;
        Some(match tag {
            TAG_LIST | TAG_SET | TAG_TUPLE => Value::Array(ArrayRef(Table::read(bytes)?)),
            TAG_UDT => Value::Object(ObjectRef(Table::read(bytes)?)),
            TAG_MAP => Value::Map(MapRef::new(Table::read(bytes)?)?),
            TAG_INT32 | TAG_INT16 | TAG_INT8 => Value::Typed(Typed::read(tag, payload)?),
            TAG_CELL => match Cell::of_encoded(bytes)?.content {
                Content::Value(value) => value,
                Content::Deleted { .. } => return None,
            },
            TAG_LENGTH_FIRST.. => Value::Typed(Typed::read(tag, read_blob(payload)?.0)?),
            _ => return None,
        })
    }

    /// The field of an object, or undefined.
    pub fn get(self, name: &str) -> Value<'a> {
        match self {
            Value::Object(object) => object.get(name),
            Value::Map(map) => map.get(name),
            _ => Value::Undefined,
        }
    }

    /// The element of an array, or undefined.
    pub fn index(self, index: usize) -> Value<'a> {
        match self {
            Value::Array(array) => array.get(index),
            _ => Value::Undefined,
        }
    }

    pub fn is_undefined(self) -> bool {
        matches!(self, Value::Undefined)
    }

    pub fn is_null(self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_bool(self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The number as an integer, if it is one exactly.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(value),
            // 2^63 is the first double that an i64 cannot hold.
            Value::Double(value)
                if value.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&value) =>
            {
                Some(value as i64)
            }
            Value::Typed(Typed::Int32(value)) => Some(i64::from(value)),
            Value::Typed(Typed::Int16(value)) => Some(i64::from(value)),
            Value::Typed(Typed::Int8(value)) => Some(i64::from(value)),
            _ => None,
        }
    }

    /// The number as a double, rounded if it is an integer beyond 53 bits.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(value as f64),
            Value::Double(value) => Some(value),
            Value::Typed(Typed::Float32(value)) => Some(f64::from(value)),
            Value::Typed(_) => self.as_i64().map(|value| value as f64),
            _ => None,
        }
    }

    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Value::Str(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        match self {
            Value::Array(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_object(self) -> Option<ObjectRef<'a>> {
        match self {
            Value::Object(value) => Some(value),
            _ => None,
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        crate::compare(*self, *other) == Ordering::Equal
    }
}

/// Values show themselves as JSON, which is what a failed assertion should print.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Undefined => f.write_str("undefined"),
            value => {
                let mut out = Vec::new();
                crate::json::write(*value, &mut out);
                f.write_str(&String::from_utf8_lossy(&out))
            }
        }
    }
}

/// An array inside a document.
#[derive(Clone, Copy)]
pub struct ArrayRef<'a>(Table<'a>);

impl<'a> ArrayRef<'a> {
    pub fn kind(self) -> ArrayKind {
        match self.0.bytes.first() {
            Some(&TAG_LIST) => ArrayKind::List,
            Some(&TAG_SET) => ArrayKind::Set,
            Some(&TAG_TUPLE) => ArrayKind::Tuple,
            _ => ArrayKind::Array,
        }
    }

    pub fn len(self) -> usize {
        self.0.len
    }

    pub fn is_empty(self) -> bool {
        self.0.len == 0
    }

    /// The element, or undefined when there is none.
    pub fn get(self, index: usize) -> Value<'a> {
        self.0.entry(index).map_or(Value::Undefined, Value::read)
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = Value<'a>> + DoubleEndedIterator {
        (0..self.0.len).map(move |i| self.get(i))
    }

    /// The array as it lies in the document, tag first.
    pub(crate) fn encoded(self) -> &'a [u8] {
        self.0.bytes
    }
}

/// An object inside a document. Its fields keep the order in which they were written.
#[derive(Clone, Copy)]
pub struct ObjectRef<'a>(Table<'a>);

impl<'a> ObjectRef<'a> {
    /// Whether this is a value of a user-defined type of CQL.
    pub fn is_user_defined(self) -> bool {
        self.0.bytes.first() == Some(&TAG_UDT)
    }

    /// How many fields were written, deleted cells among them.
    pub fn len(self) -> usize {
        self.0.len
    }

    pub fn is_empty(self) -> bool {
        self.0.len == 0
    }

    /// The field's value, or undefined when there is none. Small objects are scanned, large ones
    /// searched by halving.
    pub fn get(self, name: &str) -> Value<'a> {
        let position =
            if self.0.len <= SCAN_LIMIT { self.scan(name.as_bytes()) } else { self.search(name.as_bytes()) };
        position.map_or(Value::Undefined, Value::read)
    }

    pub fn contains(self, name: &str) -> bool {
        !self.get(name).is_undefined()
    }

    /// The fields that are cells.
    pub fn cells(self) -> impl Iterator<Item = (&'a str, Cell<'a>)> {
        self.encoded_fields()
            .filter_map(|(name, value)| Some((std::str::from_utf8(name).ok()?, Cell::of_encoded(value)?)))
    }

    /// The fields in the order in which they were written. Damaged fields and deleted cells are left out.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        (0..self.0.len).filter_map(move |i| self.field(i))
    }

    /// The fields as they lie in the document, for those who pass their bytes on: a name that may not be text, and the
    /// bytes from the start of the value on.
    pub(crate) fn encoded_fields(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        (0..self.0.len).filter_map(move |i| {
            let entry = self.0.entry(i)?;
            let (name, length) = read_blob(entry)?;
            Some((name, &entry[length..]))
        })
    }

    /// The fields in the byte order of their names. Small objects have no table for this and search
    /// for the next name each time.
    pub fn iter_by_name(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let mut last: Option<&'a [u8]> = None;
        (0..self.0.len).filter_map(move |rank| {
            if self.0.len > SCAN_LIMIT {
                return self.0.ranked(rank).and_then(|i| self.field(i));
            }
            let (name, i) = (0..self.0.len)
                .filter_map(|i| self.0.name(i).map(|name| (name, i)))
                .filter(|(name, _)| last.is_none_or(|last| *name > last))
                .min()?;
            last = Some(name);
            self.field(i)
        })
    }

    pub(crate) fn encoded(self) -> &'a [u8] {
        self.0.bytes
    }

    fn field(self, i: usize) -> Option<(&'a str, Value<'a>)> {
        let entry = self.0.entry(i)?;
        let (name, length) = read_blob(entry)?;
        let value = &entry[length..];
        if is_gone(value) {
            return None;
        }
        Some((std::str::from_utf8(name).ok()?, Value::read(value)))
    }

    fn scan(self, name: &[u8]) -> Option<&'a [u8]> {
        (0..self.0.len).find_map(|i| {
            let entry = self.0.entry(i)?;
            let (found, length) = read_blob(entry)?;
            (found == name).then(|| &entry[length..])
        })
    }

    fn search(self, name: &[u8]) -> Option<&'a [u8]> {
        let (mut low, mut high) = (0, self.0.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.0.entry(self.0.ranked(middle)?)?;
            let (found, length) = read_blob(entry)?;
            match found.cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(&entry[length..]),
            }
        }
        None
    }
}

/// Whether the value that starts here is a deleted cell, or a damaged one.
pub(crate) fn is_gone(value: &[u8]) -> bool {
    value.first() == Some(&TAG_CELL) && Value::read(value).is_undefined()
}

/// The frame of an array or object: where its values end and its tables begin.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    /// The whole container, tag first, tables last.
    pub bytes: &'a [u8],
    pub len: usize,
    pub values_end: usize,
}

impl<'a> Table<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Table<'a>> {
        let size = read_u32(bytes, 1)?;
        let len = read_u32(bytes, 5)?;
        let is_object = matches!(bytes[0], TAG_OBJECT | TAG_UDT);
        let tables = len.checked_mul(4 + if is_object { rank_width(len) } else { 0 })?;
        let values_end = size.checked_sub(tables)?;
        if values_end < CONTAINER_HEADER {
            return None;
        }
        Some(Table { bytes: bytes.get(..size)?, len, values_end })
    }

    /// The bytes from the start of entry `i` to the end of all values.
    pub fn entry(self, i: usize) -> Option<&'a [u8]> {
        if i >= self.len {
            return None;
        }
        let start = self.offset(i)?;
        if start < CONTAINER_HEADER {
            return None;
        }
        self.bytes.get(start..self.values_end)
    }

    pub fn offset(self, i: usize) -> Option<usize> {
        read_u32(self.bytes, self.values_end + 4 * i)
    }

    pub fn name(self, i: usize) -> Option<&'a [u8]> {
        read_blob(self.entry(i)?).map(|(name, _)| name)
    }

    /// The position of the field whose name is the `rank`th in name order.
    pub fn ranked(self, rank: usize) -> Option<usize> {
        let ranks = self.values_end + 4 * self.len;
        match rank_width(self.len) {
            2 => read_u16(self.bytes, ranks + 2 * rank),
            4 => read_u32(self.bytes, ranks + 4 * rank),
            _ => None,
        }
    }
}

/// Bytes per entry of the name-order table of an object with so many fields.
pub(crate) fn rank_width(len: usize) -> usize {
    if len <= SCAN_LIMIT {
        0
    } else if len <= usize::from(u16::MAX) {
        2
    } else {
        4
    }
}
