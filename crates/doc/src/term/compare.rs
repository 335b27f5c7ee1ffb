//! The order of values as a comparison.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::marks::{TermOrder, TermType, mark};
use super::number::{Place, sql_place};
use super::scalar::{octets, time_uuid_key, uuid_key};
use crate::MAX_DEPTH;
use crate::format::Doc;
use crate::typed::{Plain, Typed};
use crate::value::{ObjectRef, Value};

/// Compares two values of any type in the order of SQL.
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    compare_sql(a, b, 0)
}

/// Compares two values of any type.
pub fn compare_in(order: TermOrder, a: Value<'_>, b: Value<'_>) -> Ordering {
    match order {
        TermOrder::Sql => compare_sql(a, b, 0),
        order => compare_typed(a, b, order, 0),
    }
}

fn compare_sql(a: Value<'_>, b: Value<'_>, depth: usize) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Str(a), Value::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => {
            sql_place(a).cmp(&sql_place(b))
        }
        (Value::Typed(_) | Value::Map(_), _) | (_, Value::Typed(_) | Value::Map(_)) if depth < MAX_DEPTH => {
            compare_sql(Shown::of(a).value(), Shown::of(b).value(), depth)
        }
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) if depth == MAX_DEPTH => {
            Ordering::Equal
        }
        (Value::Array(a), Value::Array(b)) => {
            one_by_one(a.iter(), b.iter(), |a, b| compare_sql(a, b, depth + 1))
        }
        (Value::Object(a), Value::Object(b)) => {
            one_by_one(a.iter_by_name(), b.iter_by_name(), |(a_name, a), (b_name, b)| {
                a_name.cmp(b_name).then_with(|| compare_sql(a, b, depth + 1))
            })
        }
        (a, b) => mark(a, TermOrder::Sql).cmp(&mark(b, TermOrder::Sql)),
    }
}

/// Compares in the order of BSON or CQL.
fn compare_typed(a: Value<'_>, b: Value<'_>, order: TermOrder, depth: usize) -> Ordering {
    let kind = TermType::of(a, order);
    let by_mark = mark(a, order).cmp(&mark(b, order));
    if by_mark != Ordering::Equal {
        return by_mark;
    }
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        _ if kind == TermType::Number => Place::of(a, order).cmp(&Place::of(b, order)),
        _ if kind == TermType::String => text(a).cmp(text(b)),
        (Value::Array(_) | Value::Object(_) | Value::Map(_), _) if depth == MAX_DEPTH => Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            one_by_one(a.iter(), b.iter(), |a, b| compare_typed(a, b, order, depth + 1))
        }
        (Value::Object(a), Value::Object(b)) => compare_fields(a, b, order, depth),
        (Value::Map(a), Value::Map(b)) => one_by_one(a.iter(), b.iter(), |(a_key, a), (b_key, b)| {
            compare_typed(a_key, b_key, order, depth + 1).then_with(|| compare_typed(a, b, order, depth + 1))
        }),
        (Value::Typed(a), Value::Typed(b)) => compare_scalars(a, b, order, depth),
        // Of the rest a mark says everything.
        _ => Ordering::Equal,
    }
}

/// Compares fields in the order in which they were written.
fn compare_fields(a: ObjectRef<'_>, b: ObjectRef<'_>, order: TermOrder, depth: usize) -> Ordering {
    let first = |value| TermType::of(value, order).bounds(order).map(|bounds| bounds.first);
    one_by_one(a.iter(), b.iter(), |(a_name, a), (b_name, b)| {
        let by_type = match order {
            TermOrder::Bson => first(a).cmp(&first(b)),
            TermOrder::Sql | TermOrder::Cql => Ordering::Equal,
        };
        by_type.then_with(|| a_name.cmp(b_name)).then_with(|| compare_typed(a, b, order, depth + 1))
    })
}

/// Compares two scalars of one type, which is neither a number nor text.
fn compare_scalars(a: Typed<'_>, b: Typed<'_>, order: TermOrder, depth: usize) -> Ordering {
    match (a, b) {
        (Typed::Binary { subtype: a_type, bytes: a }, Typed::Binary { subtype: b_type, bytes: b }) => {
            match order {
                TermOrder::Cql => a.cmp(b),
                _ => (a.len(), a_type, a).cmp(&(b.len(), b_type, b)),
            }
        }
        (Typed::Date(a), Typed::Date(b)) => a.cmp(&b),
        (
            Typed::Timestamp { seconds: a, increment: a_next },
            Typed::Timestamp { seconds: b, increment: b_next },
        ) => (a, a_next).cmp(&(b, b_next)),
        (Typed::ObjectId(a), Typed::ObjectId(b)) => a.cmp(&b),
        (Typed::Uuid(a), Typed::Uuid(b)) => uuid_key(a).cmp(&uuid_key(b)),
        (Typed::TimeUuid(a), Typed::TimeUuid(b)) => time_uuid_key(a).cmp(&time_uuid_key(b)),
        (
            Typed::Regex { pattern: a, options: a_options },
            Typed::Regex { pattern: b, options: b_options },
        ) => (a, a_options).cmp(&(b, b_options)),
        (Typed::Code(a), Typed::Code(b)) => a.cmp(b),
        (Typed::ScopedCode(_), Typed::ScopedCode(_)) if depth == MAX_DEPTH => Ordering::Equal,
        (Typed::ScopedCode(a), Typed::ScopedCode(b)) => {
            a.code().cmp(b.code()).then_with(|| compare_typed(a.scope(), b.scope(), order, depth + 1))
        }
        (Typed::DbPointer { collection: a, id: a_id }, Typed::DbPointer { collection: b, id: b_id }) => {
            (a.len(), a, a_id).cmp(&(b.len(), b, b_id))
        }
        (Typed::Inet(a), Typed::Inet(b)) => octets(&a).cmp(&octets(&b)),
        (Typed::Day(a), Typed::Day(b)) => a.cmp(&b),
        (Typed::Time(a), Typed::Time(b)) => a.cmp(&b),
        (Typed::Duration(a), Typed::Duration(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    }
}

fn text(value: Value<'_>) -> &str {
    match value {
        Value::Str(text) | Value::Typed(Typed::Symbol(text)) => text,
        _ => "",
    }
}

/// Compares what two iterators give, in turn; the one that ends first is less.
fn one_by_one<T>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) => match compare(a, b) {
                Ordering::Equal => {}
                order => return order,
            },
            (a, b) => return a.is_some().cmp(&b.is_some()),
        }
    }
}

/// What JSON shows of a value.
enum Shown<'a> {
    Value(Value<'a>),
    Text(Cow<'a, str>),
    Doc(Doc),
}

impl<'a> Shown<'a> {
    fn of(value: Value<'a>) -> Shown<'a> {
        match value {
            Value::Map(map) => Shown::Doc(map.to_object()),
            Value::Typed(value) => match value.plain() {
                Plain::Null => Shown::Value(Value::Null),
                Plain::Int(number) => Shown::Value(Value::Int(number)),
                Plain::Double(number) => Shown::Value(Value::Double(number)),
                Plain::Text(text) => Shown::Text(text),
            },
            value => Shown::Value(value),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Shown::Value(value) => *value,
            Shown::Text(text) => Value::Str(text),
            Shown::Doc(doc) => doc.root(),
        }
    }
}
