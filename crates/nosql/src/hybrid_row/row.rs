//! One row: read, asked for its columns, made, and written.

use super::reader::{Read, Source};
use super::schema::{Place, Schema, Type};
use super::{HybridRowErrorKind as Kind, VERSION};

/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Utf8(&'a str),
    Binary(&'a [u8]),
    /// A type that no column of batches has: its code and its bytes.
    Other(u8, &'a [u8]),
}

/// Codes of types, which stand before sparse values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub u8);

impl Code {
    pub const NULL: Code = Code(1);
    pub const FALSE: Code = Code(2);
    pub const TRUE: Code = Code(3);
    pub const INT32: Code = Code(7);
    pub const UINT32: Code = Code(11);
    pub const FLOAT64: Code = Code(16);
    pub const UTF8: Code = Code(20);
    pub const BINARY: Code = Code(21);
}

/// The name of a sparse column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    /// The place of a column in the schema.
    Column(usize),
    /// The name that has the number 0.
    Empty,
    Text(&'a str),
}

/// A row that borrows what it holds. Sparse columns keep the order in which they came.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    schema: &'static Schema,
    placed: Vec<Option<Value<'a>>>,
    sparse: Vec<(Name<'a>, Value<'a>)>,
}

impl<'a> Row<'a> {
    pub fn new(schema: &'static Schema) -> Row<'a> {
        Row { schema, placed: vec![None; schema.placed()], sparse: Vec::new() }
    }

    /// Adds a column that the schema has.
    pub fn with(mut self, name: &str, value: Value<'a>) -> Row<'a> {
        let index = self.schema.index(name).expect("callers name columns of the schema");
        debug_assert!(value.fits(self.schema.columns[index].kind), "{name}");
        match self.placed.get_mut(index) {
            Some(place) => *place = Some(value),
            None => self.sparse.push((Name::Column(index), value)),
        }
        self
    }

    /// The value of a column, however it was named. Null is the same as absent.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let index = self.schema.index(name)?;
        let value = match self.placed.get(index) {
            Some(value) => *value,
            None => self.sparse.iter().find(|(name, _)| self.column(*name) == Some(index)).map(|(_, v)| *v),
        };
        value.filter(|value| *value != Value::Null)
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name) {
            Some(Value::Utf8(text)) => Some(text),
            _ => None,
        }
    }

    pub fn binary(&self, name: &str) -> Option<&'a [u8]> {
        match self.get(name) {
            Some(Value::Binary(bytes)) => Some(bytes),
            _ => None,
        }
    }

    pub fn int32(&self, name: &str) -> Option<i32> {
        match self.get(name) {
            Some(Value::Int32(number)) => Some(number),
            _ => None,
        }
    }

    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Value::Bool(value)) => Some(value),
            _ => None,
        }
    }

    /// Reads all that is left of the source as one row.
    pub(super) fn read(source: &mut Source<'a>, schema: &'static Schema) -> Read<Row<'a>> {
        if source.row_header()? != schema.id {
            return Err(source.error(Kind::Schema));
        }
        let mut row = Row::new(schema);
        let presence = source.take(schema.presence_bytes())?;
        let is_present = |index: usize| presence[index / 8] >> (index % 8) & 1 == 1;
        if (row.placed.len()..presence.len() * 8).any(is_present) {
            return Err(source.error(Kind::Presence));
        }
        for (index, column) in schema.columns.iter().enumerate().take(row.placed.len()) {
            let value = match (is_present(index), column.place) {
                (false, Place::Fixed) => source.value(column.kind).map(|_| None)?,
                (false, _) => None,
                (true, _) => Some(source.value(column.kind)?),
            };
            row.placed[index] = value;
        }
        while !source.is_at_end() {
            row.read_sparse(source)?;
        }
        Ok(row)
    }

    fn read_sparse(&mut self, source: &mut Source<'a>) -> Read<()> {
        let code = source.byte()?;
        let count = self.schema.columns.len();
        let name = match source.length()? {
            0 => Name::Empty,
            number if number <= count => Name::Column(number - 1),
            number => Name::Text(source.text(number - count - 1)?),
        };
        let value = source.coded(code)?;
        if let Some(index) = self.column(name) {
            let is_there = index < self.placed.len()
                || self.sparse.iter().any(|(other, _)| self.column(*other) == Some(index));
            if is_there {
                return Err(source.error(Kind::ColumnTwice));
            }
            if !value.fits(self.schema.columns[index].kind) {
                return Err(source.error(Kind::ColumnType));
            }
        }
        self.sparse.push((name, value));
        Ok(())
    }

    fn column(&self, name: Name<'_>) -> Option<usize> {
        match name {
            Name::Column(index) => Some(index),
            Name::Empty => None,
            Name::Text(text) => self.schema.index(text),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.schema.id.to_le_bytes());
        let presence = out.len();
        out.resize(presence + self.schema.presence_bytes(), 0);
        for (index, value) in self.placed.iter().enumerate() {
            let column = &self.schema.columns[index];
            match value {
                Some(value) => {
                    out[presence + index / 8] |= 1 << (index % 8);
                    value.write_bare(out);
                }
                None if column.place == Place::Fixed => {
                    out.resize(out.len() + fixed_bytes(column.kind), 0);
                }
                None => {}
            }
        }
        for (name, value) in &self.sparse {
            out.push(value.code());
            match name {
                Name::Empty => out.push(0),
                Name::Column(index) => write_length(index + 1, out),
                Name::Text(text) => {
                    write_length(self.schema.columns.len() + 1 + text.len(), out);
                    out.extend_from_slice(text.as_bytes());
                }
            }
            value.write_bare(out);
        }
    }
}

impl Value<'_> {
    fn fits(&self, kind: Type) -> bool {
        matches!(
            (self, kind),
            (Value::Null, _)
                | (Value::Bool(_), Type::Bool)
                | (Value::Int32(_), Type::Int32)
                | (Value::UInt32(_), Type::UInt32)
                | (Value::Float64(_), Type::Float64)
                | (Value::Utf8(_), Type::Utf8)
                | (Value::Binary(_), Type::Binary)
        )
    }

    fn code(&self) -> u8 {
        match self {
            Value::Null => Code::NULL.0,
            Value::Bool(false) => Code::FALSE.0,
            Value::Bool(true) => Code::TRUE.0,
            Value::Int32(_) => Code::INT32.0,
            Value::UInt32(_) => Code::UINT32.0,
            Value::Float64(_) => Code::FLOAT64.0,
            Value::Utf8(_) => Code::UTF8.0,
            Value::Binary(_) => Code::BINARY.0,
            Value::Other(code, _) => *code,
        }
    }

    /// Writes a value whose type is known, by the schema or by the code before it; of some the code is all.
    fn write_bare(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null | Value::Bool(_) => {}
            Value::Int32(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::UInt32(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Float64(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Utf8(text) => {
                write_length(text.len(), out);
                out.extend_from_slice(text.as_bytes());
            }
            Value::Binary(bytes) => {
                write_length(bytes.len(), out);
                out.extend_from_slice(bytes);
            }
            Value::Other(_, bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// The room of a fixed column.
fn fixed_bytes(kind: Type) -> usize {
    match kind {
        Type::Int32 | Type::UInt32 => 4,
        Type::Float64 => 8,
        Type::Bool | Type::Utf8 | Type::Binary => 0,
    }
}

fn write_length(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
