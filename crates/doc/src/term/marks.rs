//! The first byte of every term, which is its type's.
//!
//! One table says where the terms of each type lie in each order. A reader of an index by type (all numbers, all that
//! is not text) asks it for bounds, and so needs to know neither the order of types nor their bytes.

use crate::typed::{Plain, Typed};
use crate::value::Value;

/// Whose order terms follow; it is a property of the container's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TermOrder {
    /// The order of what JSON shows: a value of another type has the term of its projection.
    Sql,
    /// MongoDB's: by the canonical order of types, with all numbers in one.
    Bson,
    /// Cassandra's for values of one type. Between types, which no column mixes, it is our own.
    Cql,
}

/// The types that an order tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TermType {
    /// There is no value. This comes first in every order.
    Undefined,
    MinKey,
    /// BSON's value of that name.
    BsonUndefined,
    Null,
    Bool,
    /// Numbers of all types.
    Number,
    /// Text, and symbols.
    String,
    /// Arrays, lists, sets and tuples.
    Array,
    /// Objects and user-defined types.
    Object,
    Map,
    Binary,
    ObjectId,
    Date,
    Timestamp,
    Regex,
    DbPointer,
    Code,
    ScopedCode,
    Uuid,
    TimeUuid,
    Inet,
    Day,
    Time,
    Duration,
    MaxKey,
}

/// Where the terms of a type lie: from one byte up to but not including another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The mark of the type. A term of it begins with this byte, or, for `true`, with the next.
    pub first: u8,
    /// The first byte that is behind all terms of the type.
    pub behind: u8,
}

const fn bounds(first: u8, behind: u8) -> Option<Bounds> {
    Some(Bounds { first, behind })
}

type Row = (TermType, Option<Bounds>, Option<Bounds>, Option<Bounds>);

/// In the order of [`TermType`]. No mark is below 2, since 0 ends a container's term and 1 begins a field's.
const TABLE: [Row; 25] = {
    use TermType::*;
    [
        // type            SQL                 BSON                CQL
        (Undefined, bounds(0x10, 0x20), bounds(0x08, 0x10), bounds(0x08, 0x10)),
        (MinKey, None, bounds(0x10, 0x18), bounds(0x10, 0x18)),
        (BsonUndefined, None, bounds(0x18, 0x20), bounds(0x18, 0x20)),
        (Null, bounds(0x20, 0x30), bounds(0x20, 0x40), bounds(0x20, 0x30)),
        (Bool, bounds(0x30, 0x40), bounds(0x90, 0x98), bounds(0x30, 0x40)),
        (Number, bounds(0x40, 0x50), bounds(0x40, 0x50), bounds(0x40, 0x50)),
        (String, bounds(0x50, 0x60), bounds(0x50, 0x60), bounds(0x50, 0x70)),
        (Array, bounds(0x70, 0x80), bounds(0x70, 0x80), bounds(0x70, 0x80)),
        (Object, bounds(0x80, 0x90), bounds(0x60, 0x70), bounds(0x80, 0x88)),
        (Map, None, bounds(0xe0, 0xf0), bounds(0x88, 0x90)),
        (Binary, None, bounds(0x80, 0x88), bounds(0x90, 0x98)),
        (ObjectId, None, bounds(0x88, 0x90), bounds(0xd0, 0xd4)),
        (Date, None, bounds(0x98, 0xa0), bounds(0x98, 0xa0)),
        (Timestamp, None, bounds(0xa0, 0xa8), bounds(0xd4, 0xd8)),
        (Regex, None, bounds(0xa8, 0xb0), bounds(0xd8, 0xdc)),
        (DbPointer, None, bounds(0xb0, 0xb8), bounds(0xdc, 0xe0)),
        (Code, None, bounds(0xb8, 0xc0), bounds(0xe0, 0xe4)),
        (ScopedCode, None, bounds(0xc0, 0xc8), bounds(0xe4, 0xf0)),
        (Uuid, None, bounds(0xc8, 0xcc), bounds(0xb0, 0xb8)),
        (TimeUuid, None, bounds(0xcc, 0xd0), bounds(0xb8, 0xc0)),
        (Inet, None, bounds(0xd0, 0xd4), bounds(0xc0, 0xc8)),
        (Day, None, bounds(0xd4, 0xd8), bounds(0xa0, 0xa8)),
        (Time, None, bounds(0xd8, 0xdc), bounds(0xa8, 0xb0)),
        (Duration, None, bounds(0xdc, 0xe0), bounds(0xc8, 0xd0)),
        (MaxKey, None, bounds(0xf0, 0xf8), bounds(0xf0, 0xf8)),
    ]
};

const _: () = {
    let mut i = 0;
    while i < TABLE.len() {
        assert!(TABLE[i].0 as usize == i, "the table is in the order of the types");
        i += 1;
    }
};

const SQL_TYPES: [Option<TermType>; 256] = types_by_mark(TermOrder::Sql);
const BSON_TYPES: [Option<TermType>; 256] = types_by_mark(TermOrder::Bson);
const CQL_TYPES: [Option<TermType>; 256] = types_by_mark(TermOrder::Cql);

/// The table the other way round: index scans ask it for every term.
const fn types_by_mark(order: TermOrder) -> [Option<TermType>; 256] {
    let mut types = [None; 256];
    let mut row = 0;
    while row < TABLE.len() {
        let kind = TABLE[row].0;
        if let Some(bounds) = kind.bounds(order) {
            let mut mark = bounds.first;
            while mark < bounds.behind {
                types[mark as usize] = Some(kind);
                mark += 1;
            }
        }
        row += 1;
    }
    types
}

impl TermOrder {
    /// Where the terms of all values lie, of whatever type; undefined is none.
    pub const fn defined(self) -> Bounds {
        let last = match self {
            TermOrder::Sql => TermType::Object,
            TermOrder::Bson | TermOrder::Cql => TermType::MaxKey,
        };
        match (TermType::Undefined.bounds(self), last.bounds(self)) {
            (Some(before), Some(last)) => Bounds { first: before.behind, behind: last.behind },
            _ => panic!("every order has these types"),
        }
    }
}

impl TermType {
    pub fn all() -> impl Iterator<Item = TermType> {
        TABLE.iter().map(|row| row.0)
    }

    /// Where the terms of this type lie; nowhere if the order has none, because it sees another type instead.
    pub const fn bounds(self, order: TermOrder) -> Option<Bounds> {
        let (_, sql, bson, cql) = TABLE[self as usize];
        match order {
            TermOrder::Sql => sql,
            TermOrder::Bson => bson,
            TermOrder::Cql => cql,
        }
    }

    /// The type of a value. In the SQL order a typed value has that of what JSON shows.
    pub fn of(value: Value<'_>, order: TermOrder) -> TermType {
        match value {
            Value::Undefined => TermType::Undefined,
            Value::Null => TermType::Null,
            Value::Bool(_) => TermType::Bool,
            Value::Int(_) | Value::Double(_) => TermType::Number,
            Value::Str(_) => TermType::String,
            Value::Array(_) => TermType::Array,
            Value::Object(_) => TermType::Object,
            Value::Map(_) if order == TermOrder::Sql => TermType::Object,
            Value::Map(_) => TermType::Map,
            Value::Typed(value) if order == TermOrder::Sql => match value.plain() {
                Plain::Null => TermType::Null,
                Plain::Int(_) | Plain::Double(_) => TermType::Number,
                Plain::Text(_) => TermType::String,
            },
            Value::Typed(value) => of_typed(value),
        }
    }

    /// The type that a term belongs to.
    pub fn of_term(term: &[u8], order: TermOrder) -> Option<TermType> {
        let types = match order {
            TermOrder::Sql => &SQL_TYPES,
            TermOrder::Bson => &BSON_TYPES,
            TermOrder::Cql => &CQL_TYPES,
        };
        types[usize::from(*term.first()?)]
    }
}

/// The type in the orders of BSON and CQL.
fn of_typed(value: Typed<'_>) -> TermType {
    match value {
        Typed::Int32(_)
        | Typed::Int16(_)
        | Typed::Int8(_)
        | Typed::Float32(_)
        | Typed::Decimal128(_)
        | Typed::Decimal(_)
        | Typed::Varint(_) => TermType::Number,
        Typed::Binary { .. } => TermType::Binary,
        Typed::Date(_) => TermType::Date,
        Typed::Timestamp { .. } => TermType::Timestamp,
        Typed::ObjectId(_) => TermType::ObjectId,
        Typed::Uuid(_) => TermType::Uuid,
        Typed::TimeUuid(_) => TermType::TimeUuid,
        Typed::Regex { .. } => TermType::Regex,
        Typed::Code(_) => TermType::Code,
        Typed::ScopedCode(_) => TermType::ScopedCode,
        Typed::Symbol(_) => TermType::String,
        Typed::DbPointer { .. } => TermType::DbPointer,
        Typed::Undefined => TermType::BsonUndefined,
        Typed::MinKey => TermType::MinKey,
        Typed::MaxKey => TermType::MaxKey,
        Typed::Inet(_) => TermType::Inet,
        Typed::Day(_) => TermType::Day,
        Typed::Time(_) => TermType::Time,
        Typed::Duration(_) => TermType::Duration,
    }
}

/// The first byte of a value's term.
pub(super) fn mark(value: Value<'_>, order: TermOrder) -> u8 {
    let first = TermType::of(value, order).bounds(order).map_or(0, |bounds| bounds.first);
    first + u8::from(matches!(value, Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_types_share_a_byte_in_any_order() {
        for order in [TermOrder::Sql, TermOrder::Bson, TermOrder::Cql] {
            let mut all: Vec<Bounds> = TermType::all().filter_map(|kind| kind.bounds(order)).collect();
            all.sort_by_key(|bounds| bounds.first);
            assert!(all.iter().all(|bounds| 1 < bounds.first && bounds.first + 1 < bounds.behind));
            assert!(all.windows(2).all(|pair| pair[0].behind <= pair[1].first), "{order:?}");
            let (undefined, defined) = (all.remove(0), order.defined());
            assert_eq!(TermType::Undefined.bounds(order), Some(undefined));
            assert!(defined.first == undefined.behind && defined.behind == all[all.len() - 1].behind);
        }
    }

    #[test]
    fn only_sql_leaves_types_out() {
        for kind in TermType::all() {
            assert!(kind.bounds(TermOrder::Bson).is_some() && kind.bounds(TermOrder::Cql).is_some());
        }
        assert_eq!(TermType::all().filter(|kind| kind.bounds(TermOrder::Sql).is_some()).count(), 7);
    }

    #[test]
    fn a_term_tells_its_type() {
        assert_eq!(TermType::of_term(&[0x91], TermOrder::Bson), Some(TermType::Bool));
        assert_eq!(TermType::of_term(&[0x31], TermOrder::Sql), Some(TermType::Bool));
        assert_eq!(TermType::of_term(&[0x91], TermOrder::Sql), None);
        assert_eq!(TermType::of_term(&[], TermOrder::Sql), None);
    }
}
