//! Values of types that JSON does not have: those of BSON and of CQL.
//!
//! A [`Typed`] borrows from the document as [`Value`](crate::Value) does. Types whose bytes could be wrong have
//! constructors that say so, so that a `Typed` in hand can always be written.

mod calendar;
mod decimal;
mod payload;
mod plain;

use std::net::IpAddr;

pub use decimal::{Decimal128, DecimalRef, MAX_INTEGER_BYTES, VarintRef};
pub use plain::Plain;

pub(crate) use decimal::{Digits, Number};
pub(crate) use payload::write_payload;
pub(crate) use plain::hex;

use crate::value::{ObjectRef, Value};

/// One value of a type that JSON does not have. Reading it allocates nothing.
#[derive(Clone, Copy)]
pub enum Typed<'a> {
    /// BSON's and CQL's 32-bit integer. The 64-bit one is [`Value::Int`].
    Int32(i32),
    /// CQL's smallint.
    Int16(i16),
    /// CQL's tinyint.
    Int8(i8),
    /// CQL's float.
    Float32(f32),
    Decimal128(Decimal128),
    /// CQL's decimal.
    Decimal(DecimalRef<'a>),
    /// CQL's varint.
    Varint(VarintRef<'a>),
    /// BSON's binary; a blob of CQL has subtype 0.
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    /// Milliseconds since 1970: BSON's date, CQL's timestamp.
    Date(i64),
    /// BSON's internal timestamp.
    Timestamp {
        seconds: u32,
        increment: u32,
    },
    ObjectId([u8; 12]),
    Uuid([u8; 16]),
    TimeUuid([u8; 16]),
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    Code(&'a str),
    ScopedCode(ScopedCode<'a>),
    Symbol(&'a str),
    DbPointer {
        collection: &'a str,
        id: [u8; 12],
    },
    /// BSON's own undefined, which is there; a field that is not there is [`Value::Undefined`].
    Undefined,
    MinKey,
    MaxKey,
    Inet(IpAddr),
    /// CQL's date: days since 1970.
    Day(i32),
    Time(TimeOfDay),
    Duration(Duration),
}

/// BSON's code with the variables that it sees.
#[derive(Clone, Copy)]
pub struct ScopedCode<'a> {
    code: &'a str,
    scope: &'a [u8],
}

impl<'a> ScopedCode<'a> {
    pub fn new(code: &'a str, scope: ObjectRef<'a>) -> ScopedCode<'a> {
        ScopedCode { code, scope: scope.encoded() }
    }

    pub fn code(self) -> &'a str {
        self.code
    }

    pub fn scope(self) -> Value<'a> {
        Value::read(self.scope)
    }

    pub(crate) fn encoded_scope(self) -> &'a [u8] {
        self.scope
    }
}

/// CQL's time: nanoseconds since midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(i64);

impl TimeOfDay {
    const NANOSECONDS: i64 = 86_400_000_000_000;

    /// None when a day does not have so many nanoseconds.
    pub fn from_nanoseconds(nanoseconds: i64) -> Option<TimeOfDay> {
        (0..Self::NANOSECONDS).contains(&nanoseconds).then_some(TimeOfDay(nanoseconds))
    }

    pub fn nanoseconds(self) -> i64 {
        self.0
    }
}

/// CQL's duration. Its parts are not convertible: a month has no fixed number of days, nor has a day of hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    months: i32,
    days: i32,
    nanoseconds: i64,
}

impl Duration {
    /// None when some parts are negative and others positive.
    pub fn new(months: i32, days: i32, nanoseconds: i64) -> Option<Duration> {
        let any_negative = months < 0 || days < 0 || nanoseconds < 0;
        let any_positive = months > 0 || days > 0 || nanoseconds > 0;
        (!any_negative || !any_positive).then_some(Duration { months, days, nanoseconds })
    }

    pub fn months(self) -> i32 {
        self.months
    }

    pub fn days(self) -> i32 {
        self.days
    }

    pub fn nanoseconds(self) -> i64 {
        self.nanoseconds
    }
}

/// What an array of the document format stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayKind {
    /// JSON's and BSON's array.
    Array,
    List,
    /// Its elements are in order.
    Set,
    Tuple,
}
