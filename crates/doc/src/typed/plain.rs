//! How JSON, and so SQL, the change feed, the explorer and exports, show what JSON does not have.
//!
//! Every scalar is shown as a scalar: numbers as numbers, and all else as the text that people write for it. So an
//! index over what is shown has one term for each value, and a condition such as `c.at > '2020'` needs no knowledge of
//! the API that wrote the item. `docs/decisions/0016-typed-values.md` says why it is not Extended JSON.

use std::borrow::Cow;

use super::Typed;
use super::calendar::{date_text, day_text, duration_text, time_text};
use super::decimal::{Decimal, Number};

/// A scalar as JSON shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Plain<'a> {
    Null,
    Int(i64),
    /// The nearest double, which is finite.
    Double(f64),
    Text(Cow<'a, str>),
}

impl<'a> Typed<'a> {
    /// The value as SQL sees it.
    pub fn plain(self) -> Plain<'a> {
        let text = |text: String| Plain::Text(Cow::Owned(text));
        match self {
            Typed::Int32(number) => Plain::Int(i64::from(number)),
            Typed::Int16(number) => Plain::Int(i64::from(number)),
            Typed::Int8(number) => Plain::Int(i64::from(number)),
            Typed::Float32(number) if number.is_finite() => Plain::Double(widened(number)),
            // JSON has no such number, and shows null as it does for a double.
            Typed::Float32(_) => Plain::Null,
            Typed::Decimal128(_) | Typed::Decimal(_) | Typed::Varint(_) => match self.decimal() {
                Some(Number::Finite(number)) => plain_decimal(&number),
                _ => Plain::Null,
            },
            Typed::Binary { subtype: 4, bytes } if bytes.len() == 16 => text(uuid_text(bytes)),
            Typed::Binary { bytes, .. } => text(base64(bytes)),
            Typed::Date(milliseconds) => text(date_text(milliseconds)),
            Typed::Timestamp { seconds, increment } => text(format!("{seconds}:{increment}")),
            Typed::ObjectId(id) => text(hex(&id)),
            Typed::Uuid(id) | Typed::TimeUuid(id) => text(uuid_text(&id)),
            Typed::Regex { pattern, options } => text(format!("/{pattern}/{options}")),
            Typed::Code(code) => Plain::Text(Cow::Borrowed(code)),
            Typed::ScopedCode(code) => Plain::Text(Cow::Borrowed(code.code())),
            Typed::Symbol(symbol) => Plain::Text(Cow::Borrowed(symbol)),
            Typed::DbPointer { collection, id } => text(format!("{collection}/{}", hex(&id))),
            Typed::Undefined => Plain::Null,
            Typed::MinKey => Plain::Text(Cow::Borrowed("MinKey")),
            Typed::MaxKey => Plain::Text(Cow::Borrowed("MaxKey")),
            Typed::Inet(address) => text(address.to_string()),
            Typed::Day(days) => text(day_text(i64::from(days))),
            Typed::Time(time) => text(time_text(time)),
            Typed::Duration(duration) => text(duration_text(duration)),
        }
    }

    /// The digits that JSON shows for a decimal number, all of them.
    pub(crate) fn number_text(self) -> Option<String> {
        match self.decimal()? {
            Number::Finite(number) if number.to_f64().is_finite() => Some(number.text()),
            _ => None,
        }
    }

    pub(crate) fn decimal(self) -> Option<Number> {
        match self {
            Typed::Decimal128(number) => Some(number.number()),
            Typed::Decimal(number) => Some(number.number()),
            Typed::Varint(number) => Some(number.number()),
            _ => None,
        }
    }
}

/// Numbers beyond all doubles are text: common readers of JSON, ours among them, refuse such a number.
fn plain_decimal(number: &Decimal) -> Plain<'static> {
    let text = number.text();
    if let Ok(integer) = text.parse::<i64>() {
        return Plain::Int(integer);
    }
    match number.to_f64() {
        double if double.is_finite() => Plain::Double(double),
        _ => Plain::Text(Cow::Owned(text)),
    }
}

/// The double that has the same shortest digits: 0.1 for the float 0.1, which is another number by itself.
fn widened(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn uuid_text(bytes: &[u8]) -> String {
    let digits = hex(bytes);
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}
