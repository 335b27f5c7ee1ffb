//! Values of all types for property tests, and how the test itself orders them: slowly, on the values and not on
//! documents, and by rules that are written here a second time.

use std::cmp::Ordering;
use std::net::IpAddr;

use orrery_doc::{Decimal128, DecimalRef, Doc, DocBuilder, Duration, TermOrder, TimeOfDay, VarintRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

#[derive(Debug, Clone)]
pub enum Any {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(String),
    Int32(i32),
    Int16(i16),
    Int8(i8),
    Float32(f32),
    /// Coefficient and exponent, or the bits of what is none.
    Decimal128(Result<(i128, i32), u128>),
    Decimal(i128, i32),
    Varint(i128),
    Binary(u8, Vec<u8>),
    Date(i64),
    Timestamp(u32, u32),
    ObjectId([u8; 12]),
    Uuid([u8; 16]),
    TimeUuid([u8; 16]),
    Regex(String, String),
    Code(String),
    Scoped(String, Vec<(String, Any)>),
    Symbol(String),
    DbPointer(String, [u8; 12]),
    Undefined,
    MinKey,
    MaxKey,
    Inet(IpAddr),
    Day(i32),
    Time(i64),
    Duration(i32, i32, i64),
    /// 0 array, 1 list, 2 set, 3 tuple.
    Array(u8, Vec<Any>),
    /// A user-defined type, or a plain object.
    Object(bool, Vec<(String, Any)>),
    Map(Vec<(Any, Any)>),
}

impl Any {
    pub fn build(&self) -> Doc {
        let mut builder = DocBuilder::new();
        self.put(&mut builder);
        builder.finish()
    }

    pub fn put(&self, out: &mut DocBuilder) {
        match self {
            Any::Null => out.null(),
            Any::Bool(value) => out.bool(*value),
            Any::Int(value) => out.int(*value),
            Any::Double(value) => out.double(*value),
            Any::Str(value) => out.str(value),
            Any::Int32(value) => out.int32(*value),
            Any::Int16(value) => out.int16(*value),
            Any::Int8(value) => out.int8(*value),
            Any::Float32(value) => out.float32(*value),
            Any::Decimal128(Ok((coefficient, exponent))) => {
                let sign = u128::from(*coefficient < 0) << 127;
                let exponent = ((exponent + 6176) as u128) << 113;
                let bits = sign | exponent | coefficient.unsigned_abs();
                out.decimal128(Decimal128::from_bytes(bits.to_le_bytes()))
            }
            Any::Decimal128(Err(bits)) => out.decimal128(Decimal128::from_bytes(bits.to_le_bytes())),
            Any::Decimal(unscaled, scale) => {
                out.decimal(DecimalRef::new(*scale, &unscaled.to_be_bytes()).expect("16 bytes"))
            }
            Any::Varint(value) => out.varint(VarintRef::new(&value.to_be_bytes()).expect("16 bytes")),
            Any::Binary(subtype, bytes) => out.binary(*subtype, bytes),
            Any::Date(value) => out.date(*value),
            Any::Timestamp(seconds, increment) => out.timestamp(*seconds, *increment),
            Any::ObjectId(id) => out.object_id(*id),
            Any::Uuid(id) => out.uuid(*id),
            Any::TimeUuid(id) => out.time_uuid(*id),
            Any::Regex(pattern, options) => out.regex(pattern, options),
            Any::Code(code) => out.code(code),
            Any::Scoped(code, scope) => {
                let scope = Any::Object(false, scope.clone()).build();
                out.scoped_code(code, scope.root().as_object().expect("an object"))
            }
            Any::Symbol(symbol) => out.symbol(symbol),
            Any::DbPointer(collection, id) => out.db_pointer(collection, *id),
            Any::Undefined => out.undefined(),
            Any::MinKey => out.min_key(),
            Any::MaxKey => out.max_key(),
            Any::Inet(address) => out.inet(*address),
            Any::Day(days) => out.day(*days),
            Any::Time(time) => out.time(TimeOfDay::from_nanoseconds(*time).expect("within a day")),
            Any::Duration(months, days, nanoseconds) => {
                out.duration(Duration::new(*months, *days, *nanoseconds).expect("of one sign"))
            }
            container => {
                container.put_container(out);
                out
            }
        };
    }

    fn put_container(&self, out: &mut DocBuilder) {
        match self {
            Any::Array(kind, elements) => {
                match kind {
                    0 => out.begin_array(),
                    1 => out.begin_list(),
                    2 => out.begin_set(),
                    _ => out.begin_tuple(),
                };
                elements.iter().for_each(|element| element.put(out));
                out.end_array();
            }
            Any::Object(is_user_defined, fields) => {
                if *is_user_defined {
                    out.begin_user_defined()
                } else {
                    out.begin_object()
                };
                for (name, value) in fields {
                    out.name(name);
                    value.put(out);
                }
                out.end_object();
            }
            Any::Map(entries) => {
                out.begin_map();
                for (key, value) in entries {
                    key.put(out);
                    value.put(out);
                }
                out.end_map();
            }
            _ => panic!("not a container"),
        }
    }

    /// The place of the type. MongoDB's own numbers, with those of CQL between the last two; for CQL our list.
    fn rank(&self, order: TermOrder) -> u8 {
        let (bson, cql) = match self {
            Any::MinKey => (0, 0),
            Any::Undefined => (1, 1),
            Any::Null => (5, 2),
            Any::Int(_) | Any::Double(_) | Any::Int32(_) | Any::Int16(_) | Any::Int8(_) => (10, 4),
            Any::Float32(_) | Any::Decimal128(_) | Any::Decimal(..) | Any::Varint(_) => (10, 4),
            Any::Str(_) | Any::Symbol(_) => (15, 5),
            Any::Object(..) => (20, 7),
            Any::Array(..) => (25, 6),
            Any::Binary(..) => (30, 9),
            Any::ObjectId(_) => (35, 20),
            Any::Bool(_) => (40, 3),
            Any::Date(_) => (45, 10),
            Any::Timestamp(..) => (47, 21),
            Any::Regex(..) => (50, 22),
            Any::DbPointer(..) => (55, 23),
            Any::Code(_) => (60, 24),
            Any::Scoped(..) => (65, 25),
            Any::Uuid(_) => (70, 13),
            Any::TimeUuid(_) => (71, 14),
            Any::Inet(_) => (72, 15),
            Any::Day(_) => (73, 11),
            Any::Time(_) => (74, 12),
            Any::Duration(..) => (75, 16),
            Any::Map(_) => (76, 8),
            Any::MaxKey => (127, 127),
        };
        if order == TermOrder::Bson { bson } else { cql }
    }
}

/// The order of BSON or CQL.
pub fn reference(a: &Any, b: &Any, order: TermOrder) -> Ordering {
    let by_type = a.rank(order).cmp(&b.rank(order));
    if by_type != Ordering::Equal {
        return by_type;
    }
    let is_cql = order == TermOrder::Cql;
    match (a, b) {
        (Any::Bool(a), Any::Bool(b)) => a.cmp(b),
        (Any::Str(a) | Any::Symbol(a), Any::Str(b) | Any::Symbol(b)) => a.cmp(b),
        (Any::Binary(_, a), Any::Binary(_, b)) if is_cql => a.cmp(b),
        (Any::Binary(a_type, a), Any::Binary(b_type, b)) => {
            a.len().cmp(&b.len()).then(a_type.cmp(b_type)).then_with(|| a.cmp(b))
        }
        (Any::Date(a), Any::Date(b)) => a.cmp(b),
        (Any::Timestamp(a, i), Any::Timestamp(b, j)) => a.cmp(b).then(i.cmp(j)),
        (Any::ObjectId(a), Any::ObjectId(b)) => a.cmp(b),
        (Any::Uuid(a), Any::Uuid(b)) => uuids(*a, *b),
        (Any::TimeUuid(a), Any::TimeUuid(b)) => time_uuids(*a, *b),
        (Any::Regex(a, i), Any::Regex(b, j)) => a.cmp(b).then_with(|| i.cmp(j)),
        (Any::Code(a), Any::Code(b)) => a.cmp(b),
        (Any::Scoped(a, i), Any::Scoped(b, j)) => a
            .cmp(b)
            .then_with(|| reference(&Any::Object(false, i.clone()), &Any::Object(false, j.clone()), order)),
        (Any::DbPointer(a, i), Any::DbPointer(b, j)) => {
            a.len().cmp(&b.len()).then_with(|| (a, i).cmp(&(b, j)))
        }
        (Any::Inet(a), Any::Inet(b)) => octets(a).cmp(&octets(b)),
        (Any::Day(a), Any::Day(b)) => a.cmp(b),
        (Any::Time(a), Any::Time(b)) => a.cmp(b),
        (Any::Duration(a, i, x), Any::Duration(b, j, y)) => a.cmp(b).then(i.cmp(j)).then(x.cmp(y)),
        (Any::Array(_, a), Any::Array(_, b)) => lists(a, b, |a, b| reference(a, b, order)),
        (Any::Map(a), Any::Map(b)) => {
            lists(a, b, |a, b| reference(&a.0, &b.0, order).then_with(|| reference(&a.1, &b.1, order)))
        }
        (Any::Object(_, a), Any::Object(_, b)) => lists(a, b, |a, b| {
            let by_type = if is_cql { Ordering::Equal } else { a.1.rank(order).cmp(&b.1.rank(order)) };
            by_type.then_with(|| a.0.cmp(&b.0)).then_with(|| reference(&a.1, &b.1, order))
        }),
        (a, b) => match (exact(a), exact(b)) {
            (Some(a), Some(b)) => numbers(&a, &b, is_cql),
            _ => Ordering::Equal,
        },
    }
}

fn lists<T>(a: &[T], b: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let different = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    different.unwrap_or(a.len().cmp(&b.len()))
}

/// By version, then by time for version 1 and by the first half for others, then by the second half.
fn uuids(a: [u8; 16], b: [u8; 16]) -> Ordering {
    let halves = |id: [u8; 16]| {
        let both = u128::from_be_bytes(id);
        ((both >> 64) as u64, both as u64)
    };
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let version = |high: u64| (high >> 12) & 0xf;
    let by_high = if version(a_high) == 1 { time(a_high).cmp(&time(b_high)) } else { a_high.cmp(&b_high) };
    version(a_high).cmp(&version(b_high)).then(by_high).then(a_low.cmp(&b_low))
}

fn time_uuids(a: [u8; 16], b: [u8; 16]) -> Ordering {
    let high = |id: [u8; 16]| time((u128::from_be_bytes(id) >> 64) as u64);
    let low = |id: [u8; 16]| id[8..].iter().map(|byte| *byte as i8).collect::<Vec<i8>>();
    high(a).cmp(&high(b)).then_with(|| low(a).cmp(&low(b)))
}

/// The time of a uuid: its lowest 32 bits, the next 16 and the highest stand in this order in the first half.
fn time(high: u64) -> u64 {
    (high & 0xffff) << 48 | (high >> 16 & 0xffff) << 32 | high >> 32
}

fn octets(address: &IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[derive(Debug)]
enum Exact {
    Nan,
    Infinite(bool),
    /// Whether it is negative, and the digits before and behind the point.
    Finite(bool, String, String),
}

/// A number with all its digits.
fn exact(value: &Any) -> Option<Exact> {
    let double = |number: f64| match number {
        _ if number.is_nan() => Exact::Nan,
        _ if number.is_infinite() => Exact::Infinite(number < 0.0),
        _ => plain(number.is_sign_negative(), &format!("{:.1074}", number.abs())),
    };
    let integer = |number: i128| plain(number < 0, &number.unsigned_abs().to_string());
    let scaled = |number: i128, exponent: i32| {
        let digits = number.unsigned_abs().to_string();
        match usize::try_from(exponent) {
            Ok(zeros) => plain(number < 0, &format!("{digits}{}", "0".repeat(zeros))),
            Err(_) => {
                let places = exponent.unsigned_abs() as usize;
                let padded = format!("{digits:0>width$}", width = places + 1);
                let (whole, fraction) = padded.split_at(padded.len() - places);
                plain(number < 0, &format!("{whole}.{fraction}"))
            }
        }
    };
    Some(match value {
        Any::Int(number) => integer(i128::from(*number)),
        Any::Int32(number) => integer(i128::from(*number)),
        Any::Int16(number) => integer(i128::from(*number)),
        Any::Int8(number) => integer(i128::from(*number)),
        Any::Varint(number) => integer(*number),
        Any::Double(number) => double(*number),
        Any::Float32(number) => double(f64::from(*number)),
        Any::Decimal(unscaled, scale) => scaled(*unscaled, -scale),
        Any::Decimal128(Ok((coefficient, exponent))) => scaled(*coefficient, *exponent),
        Any::Decimal128(Err(bits)) => match bits >> 122 & 0x1f {
            0x1f => Exact::Nan,
            0x1e => Exact::Infinite(bits >> 127 == 1),
            _ => integer(0),
        },
        _ => return None,
    })
}

fn plain(negative: bool, text: &str) -> Exact {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    Exact::Finite(negative, whole.to_owned(), fraction.to_owned())
}

/// Not-a-number is the lowest, or, with CQL, the highest; there the zero of a double that has a sign is below zero too.
fn numbers(a: &Exact, b: &Exact, is_cql: bool) -> Ordering {
    let class = |number: &Exact| match number {
        Exact::Nan => {
            if is_cql {
                4
            } else {
                0
            }
        }
        Exact::Infinite(true) => 1,
        Exact::Finite(..) => 2,
        Exact::Infinite(false) => 3,
    };
    let (Exact::Finite(a_sign, a_whole, a_part), Exact::Finite(b_sign, b_whole, b_part)) = (a, b) else {
        return class(a).cmp(&class(b));
    };
    let is_zero = |whole: &str, part: &str| whole.is_empty() && part.is_empty();
    match (is_zero(a_whole, a_part), is_zero(b_whole, b_part)) {
        (true, true) => return if is_cql { b_sign.cmp(a_sign) } else { Ordering::Equal },
        (true, false) => return if *b_sign { Ordering::Greater } else { Ordering::Less },
        (false, true) => return if *a_sign { Ordering::Less } else { Ordering::Greater },
        (false, false) => {}
    }
    let by_size = a_whole.len().cmp(&b_whole.len()).then_with(|| (a_whole, a_part).cmp(&(b_whole, b_part)));
    match (a_sign, b_sign) {
        (false, false) => by_size,
        (true, true) => by_size.reverse(),
        (a_sign, b_sign) => b_sign.cmp(a_sign),
    }
}

/// Numbers of all types that lie close together, around the places where types part.
fn number() -> impl Strategy<Value = Any> {
    let base = select(vec![0i128, 1, 3, 1 << 24, 1 << 53, (1 << 62) + 7, 1 << 63, 1 << 90, 10i128.pow(33)]);
    let near = (base, -3i128..4, any::<bool>()).prop_map(|(base, step, negative)| {
        let number = base + step;
        if negative { -number } else { number }
    });
    let coefficient = (-(10i128.pow(34) - 1)..10i128.pow(34)).boxed();
    let exponent = prop_oneof![-3i32..3, -40i32..40, -400i32..400, -6176i32..6111];
    prop_oneof![
        near.clone().prop_map(|n| Any::Int(n as i64)),
        near.clone().prop_map(|n| Any::Int32(n as i32)),
        near.clone().prop_map(|n| Any::Int16(n as i16)),
        near.clone().prop_map(|n| Any::Int8(n as i8)),
        near.clone().prop_map(|n| Any::Double(n as f64)),
        near.clone().prop_map(|n| Any::Double(n as f64 / 10.0)),
        near.clone().prop_map(|n| Any::Float32(n as f32 / 10.0)),
        near.clone().prop_map(Any::Varint),
        any::<i128>().prop_map(Any::Varint),
        (near.clone(), exponent.clone()).prop_map(|(n, exponent)| Any::Decimal(n, exponent)),
        (any::<i128>(), -400i32..400).prop_map(|(n, scale)| Any::Decimal(n, scale)),
        (near, exponent.clone()).prop_map(|(n, exponent)| Any::Decimal128(Ok((n, exponent)))),
        (coefficient, exponent).prop_map(|(n, exponent)| Any::Decimal128(Ok((n, exponent)))),
        any::<u128>().prop_map(|bits| Any::Decimal128(Err(bits | 3 << 125))),
        select(vec![f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1, 0.5, 1e22, 1e23, -0.0]).prop_map(Any::Double),
        any::<f64>().prop_map(Any::Double),
        any::<f32>().prop_map(Any::Float32),
        select(vec![17_976_931_348_623_157i128, 17_976_931_348_623_158, 17_976_931_348_623_159])
            .prop_map(|digits| Any::Decimal128(Ok((digits, 292)))),
        select(vec![49i128, 24, 25, -24, -25, -49]).prop_map(|digits| Any::Decimal128(Ok((digits, -325)))),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,3}", "[\u{0}a\u{1}\"é😀]{0,4}", "a{126,130}[ab\u{0}]{0,3}"]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xff)];
    prop_oneof![vec(byte.clone(), 0..4), vec(byte, 126..131)]
}

fn scalar() -> impl Strategy<Value = Any> {
    let byte = || select(vec![0u8, 1, 0x10, 0x11, 0x40, 0x7f, 0x80, 0xff]);
    let id = move || prop::array::uniform12(byte());
    let wide = move || prop::array::uniform16(byte());
    let sign = select(vec![-1i64, 1]);
    prop_oneof![
        8 => number(),
        1 => select(vec![Any::Null, Any::Bool(false), Any::Bool(true), Any::Undefined, Any::MinKey, Any::MaxKey]),
        2 => text().prop_map(Any::Str),
        1 => text().prop_map(Any::Symbol),
        1 => text().prop_map(Any::Code),
        1 => (text(), text()).prop_map(|(pattern, options)| Any::Regex(pattern, options)),
        1 => (text(), id()).prop_map(|(collection, id)| Any::DbPointer(collection, id)),
        2 => (byte(), bytes()).prop_map(|(subtype, bytes)| Any::Binary(subtype, bytes)),
        1 => any::<i64>().prop_map(Any::Date),
        1 => (-2i64..3).prop_map(Any::Date),
        1 => (0u32..3, any::<u32>()).prop_map(|(seconds, increment)| Any::Timestamp(seconds, increment)),
        1 => id().prop_map(Any::ObjectId),
        2 => wide().prop_map(Any::Uuid),
        2 => wide().prop_map(Any::TimeUuid),
        1 => wide().prop_map(|id| Any::Inet(IpAddr::from(id))),
        1 => prop::array::uniform4(byte()).prop_map(|id| Any::Inet(IpAddr::from(id))),
        1 => prop_oneof![-2i32..3, any::<i32>()].prop_map(Any::Day),
        1 => (0i64..86_400_000_000_000).prop_map(Any::Time),
        1 => (sign, 0i32..3, 0i32..3, 0i64..3).prop_map(|(sign, months, days, nanoseconds)| {
            Any::Duration(sign as i32 * months, sign as i32 * days, sign * nanoseconds)
        }),
    ]
}

fn fields(inner: impl Strategy<Value = Any>) -> impl Strategy<Value = Vec<(String, Any)>> {
    vec((text(), inner), 0..4).prop_map(|mut fields| {
        // Documents have each name once.
        let mut seen = std::collections::HashSet::new();
        fields.retain(|(name, _)| seen.insert(name.clone()));
        fields
    })
}

/// A value of any type.
pub fn any_value() -> impl Strategy<Value = Any> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            4 => scalar(),
            2 => (0u8..4, vec(inner.clone(), 0..4)).prop_map(|(kind, elements)| Any::Array(kind, elements)),
            2 => (any::<bool>(), fields(inner.clone())).prop_map(|(is_udt, fields)| Any::Object(is_udt, fields)),
            1 => vec((inner.clone(), inner.clone()), 0..3).prop_map(Any::Map),
            1 => (text(), fields(inner)).prop_map(|(code, scope)| Any::Scoped(code, scope)),
        ]
    })
}

/// Two values, often of one type and close together.
pub fn pair() -> impl Strategy<Value = (Any, Any)> {
    prop_oneof![
        2 => (any_value(), any_value()),
        2 => (number(), number()),
        1 => scalar().prop_flat_map(|a| {
            let rank = a.rank(TermOrder::Bson);
            let other = scalar().prop_filter("of the same type", move |b| b.rank(TermOrder::Bson) == rank);
            (Just(a), other)
        }),
        1 => any_value().prop_map(|value| (value.clone(), value)),
    ]
}
