//! Maps whose keys may be of any type, as CQL has them.

use std::borrow::Cow;

use crate::MAX_DEPTH;
use crate::builder::DocBuilder;
use crate::cell::Cell;
use crate::format::Doc;
use crate::typed::{Plain, hex};
use crate::value::{Table, Value, is_gone};

/// A map inside a document. Its entries are in the order in which they were written, which is that of the keys.
///
/// JSON shows it as an object whose names are the keys as text, and so does [`get`](MapRef::get).
#[derive(Clone, Copy)]
pub struct MapRef<'a>(Table<'a>);

impl<'a> MapRef<'a> {
    pub(crate) fn new(table: Table<'a>) -> Option<MapRef<'a>> {
        table.len.is_multiple_of(2).then_some(MapRef(table))
    }

    /// How many entries were written, deleted cells among them.
    pub fn len(self) -> usize {
        self.0.len / 2
    }

    pub fn is_empty(self) -> bool {
        self.0.len == 0
    }

    /// The entries. Damaged ones and deleted cells are left out.
    pub fn iter(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        self.encoded_entries()
            .filter(|(_, value)| !is_gone(value))
            .map(|(key, value)| (Value::read(key), Value::read(value)))
    }

    /// The entries that are cells.
    pub fn cells(self) -> impl Iterator<Item = (Value<'a>, Cell<'a>)> {
        self.encoded_entries().filter_map(|(key, value)| Some((Value::read(key), Cell::of_encoded(value)?)))
    }

    /// The value of the first key that is shown as this text, or undefined.
    pub fn get(self, name: &str) -> Value<'a> {
        let found = self.iter().find(|(key, _)| key_text(*key) == name);
        found.map_or(Value::Undefined, |(_, value)| value)
    }

    /// The entries as the fields of an object.
    pub fn fields(self) -> impl Iterator<Item = (Cow<'a, str>, Value<'a>)> {
        self.iter().map(|(key, value)| (key_text(key), value))
    }

    /// The object that JSON shows.
    pub fn to_object(self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.begin_object();
        for (name, value) in self.fields() {
            builder.name(&name).value(value);
        }
        builder.end_object();
        builder.finish()
    }

    pub(crate) fn encoded(self) -> &'a [u8] {
        self.0.bytes
    }

    fn encoded_entries(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        (0..self.len()).filter_map(move |i| Some((self.0.entry(2 * i)?, self.0.entry(2 * i + 1)?)))
    }
}

/// A key as the name of a field: text as it is, all else as JSON shows it.
fn key_text(key: Value<'_>) -> Cow<'_, str> {
    match key {
        Value::Str(text) => return Cow::Borrowed(text),
        Value::Typed(value) if value.number_text().is_none() => {
            if let Plain::Text(text) = value.plain() {
                return text;
            }
        }
        // Maps in the keys of maps would be text in text in text, each level twice as long as the one inside.
        Value::Map(map) => return Cow::Owned(hex(map.encoded())),
        Value::Array(array) if holds_map(key, 0) => return Cow::Owned(hex(array.encoded())),
        Value::Object(object) if holds_map(key, 0) => return Cow::Owned(hex(object.encoded())),
        _ => {}
    }
    let mut out = Vec::new();
    crate::json::write(key, &mut out);
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

fn holds_map(value: Value<'_>, depth: usize) -> bool {
    match value {
        _ if depth == MAX_DEPTH => true,
        Value::Map(_) => true,
        Value::Array(array) => array.iter().any(|element| holds_map(element, depth + 1)),
        Value::Object(object) => object.iter().any(|(_, field)| holds_map(field, depth + 1)),
        _ => false,
    }
}
