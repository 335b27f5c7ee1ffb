//! The values that expressions work on.
//!
//! A value is either a view into a stored document (or into a constant of the program) or made by
//! the query itself. Made values share their parts by reference counts, so cloning is cheap and a
//! projection of a large sub-document copies nothing until it is written out.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use orrery_doc::{ArrayRef, Doc, DocBuilder, MapRef, ObjectRef, Plain, Typed, Value};

use crate::error::{QueryError, Result};
use crate::limits;
use crate::row::Row;
use crate::steward::Held;

#[derive(Clone)]
pub enum Val<'a> {
    Undefined,
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(Text<'a>),
    Array(List<'a>),
    Object(Fields<'a>),
}

#[derive(Clone)]
pub enum Text<'a> {
    Stored(&'a str),
    Made(Arc<str>),
}

#[derive(Clone)]
pub enum List<'a> {
    Stored(ArrayRef<'a>),
    Made(Arc<[Val<'a>]>),
}

#[derive(Clone)]
pub enum Fields<'a> {
    Stored(ObjectRef<'a>),
    Row(&'a Row<'a>),
    Made(Arc<[(Text<'a>, Val<'a>)]>),
}

/// The type of a value, in sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Undefined,
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl<'a> From<Value<'a>> for Val<'a> {
    fn from(value: Value<'a>) -> Self {
        match value {
            Value::Undefined => Val::Undefined,
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(value),
            Value::Int(value) => Val::Int(value),
            Value::Double(value) => Val::Double(value),
            Value::Str(text) => Val::Str(Text::Stored(text)),
            Value::Array(array) => Val::Array(List::Stored(array)),
            Value::Object(object) => Val::Object(Fields::Stored(object)),
            Value::Map(map) => shown_map(map),
            Value::Typed(value) => shown(value),
        }
    }
}

/// A value of a type that JSON does not have is what JSON shows of it.
#[cold]
fn shown(value: Typed<'_>) -> Val<'_> {
    match value.plain() {
        Plain::Null => Val::Null,
        Plain::Int(number) => Val::Int(number),
        Plain::Double(number) => Val::Double(number),
        Plain::Text(text) => Val::Str(Text::from(text)),
    }
}

#[cold]
fn shown_map(map: MapRef<'_>) -> Val<'_> {
    Val::object(map.fields().map(|(name, value)| (Text::from(name), Val::from(value))).collect())
}

impl<'a> Val<'a> {
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Val::Str(Text::Made(text.into()))
    }

    pub fn array(items: Vec<Val<'a>>) -> Self {
        Val::Array(List::Made(items.into()))
    }

    /// An object; a name given twice keeps its first place and its last value.
    pub fn object(fields: Vec<(Text<'a>, Val<'a>)>) -> Self {
        let doubled = |i: usize| fields[..i].iter().any(|(name, _)| name.as_str() == fields[i].0.as_str());
        if fields.len() <= FEW_FIELDS && !(1..fields.len()).any(doubled) {
            return Val::Object(Fields::Made(fields.into()));
        }
        Val::Object(Fields::Made(without_doubles(fields).into()))
    }

    /// A constant of the program as an operand: its text is lent, and no reference is counted.
    pub(crate) fn lend(&'a self) -> Val<'a> {
        match self {
            Val::Str(text) => Val::Str(Text::Stored(text.as_str())),
            other => other.clone(),
        }
    }

    /// A number, kept as an integer when it is one that a double holds exactly. What JSON cannot
    /// say (infinities, not-a-number) is undefined.
    pub fn number(value: f64) -> Self {
        if !value.is_finite() {
            return Val::Undefined;
        }
        let exact =
            value.fract() == 0.0 && value.abs() <= MAX_SAFE && !(value == 0.0 && value.is_sign_negative());
        if exact { Val::Int(value as i64) } else { Val::Double(value) }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Val::Undefined => Kind::Undefined,
            Val::Null => Kind::Null,
            Val::Bool(_) => Kind::Bool,
            Val::Int(_) | Val::Double(_) => Kind::Number,
            Val::Str(_) => Kind::String,
            Val::Array(_) => Kind::Array,
            Val::Object(_) => Kind::Object,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Val::Undefined)
    }

    pub fn is_true(&self) -> bool {
        matches!(self, Val::Bool(true))
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Val::Int(value) => Some(*value as f64),
            Val::Double(value) => Some(*value),
            _ => None,
        }
    }

    /// The number as an integer, if it is one exactly.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Val::Int(value) => Some(*value),
            Val::Double(value) => Value::Double(*value).as_i64(),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Val::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Val::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Val::Array(list) => Some(list),
            _ => None,
        }
    }

    /// A property of an object, or undefined.
    pub fn get(&self, name: &str) -> Val<'a> {
        match self {
            Val::Object(fields) => fields.get(name),
            _ => Val::Undefined,
        }
    }

    /// An element of an array, or undefined.
    pub fn index(&self, index: usize) -> Val<'a> {
        match self {
            Val::Array(list) => list.get(index),
            _ => Val::Undefined,
        }
    }

    /// The total order of the language: by type, then by value.
    pub fn order(&self, other: &Val<'_>) -> Ordering {
        match (self, other) {
            (Val::Array(a), Val::Array(b)) => a.order(b),
            (Val::Object(a), Val::Object(b)) => a.order(b),
            _ => match (self.scalar(), other.scalar()) {
                (Some(a), Some(b)) => orrery_doc::compare(plain_zero(a), plain_zero(b)),
                _ => self.kind().cmp(&other.kind()),
            },
        }
    }

    /// About how many bytes the value would hold if no two of its parts shared memory, as far as it
    /// was made; views of stored documents hold none. Stops counting beyond `most`.
    pub(crate) fn made_bytes(&self, most: u64) -> u64 {
        let mut bytes = 0;
        self.count_bytes(&mut bytes, most);
        bytes
    }

    fn count_bytes(&self, bytes: &mut u64, most: u64) {
        match self {
            Val::Str(Text::Made(text)) => *bytes += text.len() as u64,
            Val::Array(List::Made(items)) => {
                *bytes += size_of_val(&**items) as u64;
                for item in items.iter() {
                    if *bytes > most {
                        return;
                    }
                    item.count_bytes(bytes, most);
                }
            }
            Val::Object(Fields::Made(fields)) => {
                *bytes += size_of_val(&**fields) as u64;
                for (_, value) in fields.iter() {
                    if *bytes > most {
                        return;
                    }
                    value.count_bytes(bytes, most);
                }
            }
            _ => {}
        }
    }

    /// About how much there is to read, in steps of work. A part of the item counts as `item`.
    pub(crate) fn work(&self, item: u64) -> u64 {
        match self {
            Val::Str(text) => (text.as_str().len() / limits::WORK_BYTES) as u64,
            Val::Array(List::Made(items)) => items.len() as u64,
            Val::Object(Fields::Made(fields)) => fields.len() as u64,
            Val::Array(_) | Val::Object(_) => item,
            _ => 0,
        }
    }

    /// The same with all parts of a made value, for what visits them all.
    pub(crate) fn deep_work(&self, item: u64) -> u64 {
        let below = |value: &Val<'_>| 1 + value.deep_work(item);
        match self {
            Val::Array(List::Made(items)) => items.iter().map(below).sum(),
            Val::Object(Fields::Made(fields)) => fields.iter().map(|(_, value)| below(value)).sum(),
            other => other.work(item),
        }
    }

    fn scalar(&self) -> Option<Value<'_>> {
        Some(match self {
            Val::Undefined => Value::Undefined,
            Val::Null => Value::Null,
            Val::Bool(value) => Value::Bool(*value),
            Val::Int(value) => Value::Int(*value),
            Val::Double(value) => Value::Double(*value),
            Val::Str(text) => Value::Str(text.as_str()),
            Val::Array(_) | Val::Object(_) => return None,
        })
    }

    /// Appends the value as JSON. Undefined has no JSON and must not be asked for.
    ///
    /// A value can name one part of an item many times and so be far larger as text than in memory.
    /// What goes beyond `ROW_BYTES` is left out, and no longer JSON; `write_row` refuses such values.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.write_json_to(out, out.len() + limits::ROW_BYTES);
    }

    /// Appends the value as a row of an answer, unless it has more than `most` bytes.
    pub fn write_row(&self, out: &mut Vec<u8>, most: usize) -> Result<()> {
        let start = out.len();
        self.write_json_to(out, start + most);
        if out.len() - start > most {
            out.truncate(start);
            return Err(QueryError::LimitExceeded("A row of the answer is too long."));
        }
        Ok(())
    }

    fn write_json_to(&self, out: &mut Vec<u8>, end: usize) {
        if out.len() > end {
            return;
        }
        match self {
            Val::Array(List::Stored(array)) => orrery_doc::json::write(Value::Array(*array), out),
            Val::Object(Fields::Stored(object)) => orrery_doc::json::write(Value::Object(*object), out),
            Val::Object(Fields::Row(row)) => row.write_json(out),
            Val::Array(List::Made(items)) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    item.write_json_to(out, end);
                }
                out.push(b']');
            }
            Val::Object(fields) => {
                out.push(b'{');
                let mut first = true;
                fields.for_each(|name, value| {
                    if !std::mem::take(&mut first) {
                        out.push(b',');
                    }
                    orrery_doc::json::write_str(name, out);
                    out.push(b':');
                    value.write_json_to(out, end);
                });
                out.push(b'}');
            }
            scalar => orrery_doc::json::write(scalar.scalar().unwrap_or(Value::Null), out),
        }
    }

    /// Appends the value to a document.
    pub fn write_doc(&self, out: &mut DocBuilder) {
        self.write_doc_to(out, usize::MAX);
    }

    /// The document made of the value, unless it has more than `most` bytes or is nested deeper than documents are.
    pub fn row_document(&self, most: usize) -> Result<Doc> {
        let mut builder = DocBuilder::new();
        self.write_doc_to(&mut builder, most);
        let row = builder.finish();
        if row.bytes().len() > most {
            return Err(QueryError::LimitExceeded("A row of the answer is too long."));
        }
        let checked = Doc::from_bytes(row.bytes().clone());
        checked.map_err(|_| QueryError::LimitExceeded("A row of the answer is nested too deeply."))
    }

    /// What goes beyond `end` becomes null.
    fn write_doc_to(&self, out: &mut DocBuilder, end: usize) {
        match self {
            _ if out.byte_len() > end => {
                out.null();
            }
            Val::Array(List::Stored(array)) => {
                out.value(Value::Array(*array));
            }
            Val::Object(Fields::Stored(object)) => {
                out.value(Value::Object(*object));
            }
            Val::Object(Fields::Row(row)) => row.write_doc(out),
            Val::Array(list) => {
                out.begin_array();
                list.iter().for_each(|item| item.write_doc_to(out, end));
                out.end_array();
            }
            Val::Object(fields) => {
                out.begin_object();
                fields.for_each(|name, value| {
                    out.name(name);
                    value.write_doc_to(out, end);
                });
                out.end_object();
            }
            scalar => {
                out.value(scalar.scalar().unwrap_or(Value::Null));
            }
        }
    }

    /// Appends bytes that are equal exactly for equal values: object members in name order. Used as
    /// the key of DISTINCT, GROUP BY and sets. Bounded as JSON is.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        self.write_canonical_to(out, out.len() + limits::ROW_BYTES);
    }

    /// The same, unless there are more than `most` bytes to compare.
    pub(crate) fn write_canonical_within(&self, out: &mut Vec<u8>, most: usize) -> Result<()> {
        let start = out.len();
        self.write_canonical_to(out, start + most);
        if out.len() - start > most {
            return Err(QueryError::LimitExceeded("A value of the query is too long to be compared."));
        }
        Ok(())
    }

    fn write_canonical_to(&self, out: &mut Vec<u8>, end: usize) {
        if out.len() > end {
            return;
        }
        match self {
            Val::Undefined => out.push(b'u'),
            Val::Array(list) => {
                out.push(b'[');
                for item in list.iter() {
                    item.write_canonical_to(out, end);
                    out.push(b',');
                }
                out.push(b']');
            }
            Val::Object(fields) => {
                out.push(b'{');
                for (name, value) in fields.sorted() {
                    orrery_doc::json::write_str(name.as_str(), out);
                    out.push(b':');
                    value.write_canonical_to(out, end);
                    out.push(b',');
                }
                out.push(b'}');
            }
            scalar => orrery_doc::json::write(plain_zero(scalar.scalar().unwrap_or(Value::Null)), out),
        }
    }

    /// A copy that borrows nothing.
    pub fn to_owned_val(&self) -> Val<'static> {
        let mut left = usize::MAX;
        self.copy(&mut left).unwrap_or(Val::Undefined)
    }

    /// A copy to keep beyond the row that it comes from, unless it is longer than a row may be: a value
    /// can name one part of an item many times, and a copy has them all.
    pub(crate) fn keep(&self) -> Result<Val<'static>> {
        let too_long = QueryError::LimitExceeded("A value of the query is too long to be kept.");
        self.copy(&mut { limits::ROW_BYTES }).ok_or(too_long)
    }

    /// The same, if it may be held.
    pub(crate) fn keep_in(&self, held: &mut Held<'_>) -> Result<Val<'static>> {
        held.add(self.weight()?)?;
        self.keep()
    }

    /// About how many bytes a copy holds.
    pub(crate) fn weight(&self) -> Result<usize> {
        let mut left = limits::ROW_BYTES;
        let too_long = QueryError::LimitExceeded("A value of the query is too long to be kept.");
        self.weigh(&mut left).ok_or(too_long)?;
        Ok(limits::ROW_BYTES - left)
    }

    fn weigh(&self, left: &mut usize) -> Option<()> {
        *left = left.checked_sub(self.own_bytes())?;
        match self {
            Val::Array(list) => list.iter().try_for_each(|item| item.weigh(left)),
            Val::Object(fields) => {
                let mut whole = Some(());
                fields.for_each(|name, value| {
                    whole = whole.and_then(|()| {
                        *left = left.checked_sub(name_bytes(name))?;
                        value.weigh(left)
                    });
                });
                whole
            }
            _ => Some(()),
        }
    }

    /// What a copy holds without its parts.
    fn own_bytes(&self) -> usize {
        let apart = match self {
            Val::Str(text) => text.as_str().len() + limits::ALLOCATION_BYTES,
            Val::Array(_) | Val::Object(_) => limits::ALLOCATION_BYTES,
            _ => 0,
        };
        size_of::<Val<'_>>() + apart
    }

    /// Copies as long as there are bytes left.
    fn copy(&self, left: &mut usize) -> Option<Val<'static>> {
        *left = left.checked_sub(self.own_bytes())?;
        Some(match self {
            Val::Undefined => Val::Undefined,
            Val::Null => Val::Null,
            Val::Bool(value) => Val::Bool(*value),
            Val::Int(value) => Val::Int(*value),
            Val::Double(value) => Val::Double(*value),
            Val::Str(text) => Val::Str(text.to_made()),
            Val::Array(list) => Val::array(list.iter().map(|item| item.copy(left)).collect::<Option<_>>()?),
            Val::Object(fields) => {
                let mut owned = Vec::new();
                let mut whole = true;
                fields.for_each(|name, value| {
                    let room = left.checked_sub(name_bytes(name)).filter(|_| whole);
                    let copy = room.and_then(|room| {
                        *left = room;
                        value.copy(left)
                    });
                    whole = copy.is_some();
                    owned.extend(copy.map(|value| (Text::Made(name.into()), value)));
                });
                whole.then(|| Val::Object(Fields::Made(owned.into())))?
            }
        })
    }
}

/// What a copy holds for the name of a field.
fn name_bytes(name: &str) -> usize {
    size_of::<Text<'_>>() + name.len() + limits::ALLOCATION_BYTES
}

/// Up to so many fields, comparing all names with all is faster than hashing them.
const FEW_FIELDS: usize = 16;

fn without_doubles<'a>(fields: Vec<(Text<'a>, Val<'a>)>) -> Vec<(Text<'a>, Val<'a>)> {
    let mut last = std::collections::HashMap::with_capacity(fields.len());
    for (i, (name, _)) in fields.iter().enumerate() {
        last.insert(name.as_str(), i);
    }
    if last.len() == fields.len() {
        return fields;
    }
    // Every name stands where it was first, with the value that came last.
    let mut order = Vec::with_capacity(last.len());
    for (name, _) in &fields {
        order.extend(last.remove(name.as_str()));
    }
    order.into_iter().map(|i| fields[i].clone()).collect()
}

/// Minus zero and zero are one number to every comparison of the language.
fn plain_zero(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Double(0.0) => Value::Int(0),
        value => value,
    }
}

/// The largest integer that a double holds exactly with all its neighbours below.
pub const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Text::Stored(text),
            Cow::Owned(text) => Text::Made(text.into()),
        }
    }
}

impl<'a> Text<'a> {
    pub fn as_str(&self) -> &str {
        match self {
            Text::Stored(text) => text,
            Text::Made(text) => text,
        }
    }

    fn to_made(&self) -> Text<'static> {
        match self {
            Text::Stored(text) => Text::Made((*text).into()),
            Text::Made(text) => Text::Made(text.clone()),
        }
    }
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match self {
            List::Stored(array) => array.len(),
            List::Made(items) => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Val<'a> {
        match self {
            List::Stored(array) => Val::from(array.get(index)),
            List::Made(items) => items.get(index).cloned().unwrap_or(Val::Undefined),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Val<'a>> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    fn order(&self, other: &List<'_>) -> Ordering {
        for (a, b) in self.iter().zip(other.iter()) {
            let order = a.order(&b);
            if order != Ordering::Equal {
                return order;
            }
        }
        self.len().cmp(&other.len())
    }
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Val<'a> {
        match self {
            Fields::Stored(object) => Val::from(object.get(name)),
            Fields::Row(row) => row.get(name),
            Fields::Made(fields) => fields
                .iter()
                .find(|(other, _)| other.as_str() == name)
                .map_or(Val::Undefined, |(_, value)| value.clone()),
        }
    }

    pub fn for_each(&self, mut visit: impl FnMut(&str, &Val<'a>)) {
        match self {
            Fields::Stored(object) => object.iter().for_each(|(name, value)| visit(name, &Val::from(value))),
            Fields::Row(row) => row.fields().for_each(|(name, value)| visit(name, &value)),
            Fields::Made(fields) => fields.iter().for_each(|(name, value)| visit(name.as_str(), value)),
        }
    }

    pub fn to_vec(&self) -> Vec<(Text<'a>, Val<'a>)> {
        match self {
            Fields::Stored(object) => {
                object.iter().map(|(name, value)| (Text::Stored(name), Val::from(value))).collect()
            }
            Fields::Row(row) => row.fields().map(|(name, value)| (Text::Stored(name), value)).collect(),
            Fields::Made(fields) => fields.to_vec(),
        }
    }

    fn sorted(&self) -> Vec<(Text<'a>, Val<'a>)> {
        let mut fields = self.to_vec();
        fields.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        fields
    }

    fn order(&self, other: &Fields<'_>) -> Ordering {
        if let (Fields::Stored(a), Fields::Stored(b)) = (self, other) {
            return orrery_doc::compare(Value::Object(*a), Value::Object(*b));
        }
        let (a, b) = (self.sorted(), other.sorted());
        for ((a_name, a), (b_name, b)) in a.iter().zip(&b) {
            let order = a_name.as_str().cmp(b_name.as_str()).then_with(|| a.order(b));
            if order != Ordering::Equal {
                return order;
            }
        }
        a.len().cmp(&b.len())
    }
}

/// Values show themselves as JSON, which is what a failed assertion should print.
impl std::fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_undefined() {
            return f.write_str("undefined");
        }
        let mut out = Vec::new();
        self.write_json(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl PartialEq for Val<'_> {
    fn eq(&self, other: &Val<'_>) -> bool {
        self.order(other) == Ordering::Equal
    }
}
