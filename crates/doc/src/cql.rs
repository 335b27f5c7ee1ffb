//! The bytes in which CQL sends a value, which are also those that a token is made of.
//!
//! Integers are big endian, collections a count and each element behind its length, as from version 3 of the protocol.
//! A user-defined type is a tuple of its fields.

use std::net::IpAddr;

use crate::MAX_DEPTH;
use crate::typed::{ArrayKind, Typed};
use crate::value::Value;

/// Appends the bytes of a value. Returns false, with some bytes appended, for a value that CQL does not have.
pub fn write(value: Value<'_>, out: &mut Vec<u8>) -> bool {
    put(value, 0, out)
}

fn put(value: Value<'_>, depth: usize, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) | Value::Map(_) if depth == MAX_DEPTH => return false,
        Value::Bool(value) => out.push(u8::from(value)),
        Value::Int(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Double(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::Str(text) => out.extend_from_slice(text.as_bytes()),
        Value::Array(array) => {
            if array.kind() != ArrayKind::Tuple {
                put_length(array.len(), out);
            }
            return array.iter().all(|element| put_element(element, depth, out));
        }
        Value::Object(object) => return object.iter().all(|(_, field)| put_element(field, depth, out)),
        Value::Map(map) => {
            put_length(map.iter().count(), out);
            return map
                .iter()
                .all(|(key, value)| put_element(key, depth, out) && put_element(value, depth, out));
        }
        Value::Typed(value) => return put_typed(value, out),
        Value::Undefined | Value::Null => return false,
    }
    true
}

fn put_typed(value: Typed<'_>, out: &mut Vec<u8>) -> bool {
    match value {
        Typed::Int32(number) => out.extend_from_slice(&number.to_be_bytes()),
        Typed::Int16(number) => out.extend_from_slice(&number.to_be_bytes()),
        Typed::Int8(number) => out.extend_from_slice(&number.to_be_bytes()),
        Typed::Float32(number) => out.extend_from_slice(&number.to_be_bytes()),
        Typed::Decimal(number) => {
            out.extend_from_slice(&number.scale().to_be_bytes());
            out.extend_from_slice(number.unscaled().bytes());
        }
        Typed::Varint(number) => out.extend_from_slice(number.bytes()),
        Typed::Binary { bytes, .. } => out.extend_from_slice(bytes),
        Typed::Date(milliseconds) => out.extend_from_slice(&milliseconds.to_be_bytes()),
        Typed::Uuid(id) | Typed::TimeUuid(id) => out.extend_from_slice(&id),
        Typed::Inet(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Typed::Inet(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
        // Day 0 is in the middle of the unsigned numbers.
        Typed::Day(days) => out.extend_from_slice(&(days as u32 ^ 1 << 31).to_be_bytes()),
        Typed::Time(time) => out.extend_from_slice(&time.nanoseconds().to_be_bytes()),
        Typed::Duration(duration) => {
            for part in [i64::from(duration.months()), i64::from(duration.days()), duration.nanoseconds()] {
                put_vint(part, out);
            }
        }
        Typed::Decimal128(_)
        | Typed::Timestamp { .. }
        | Typed::ObjectId(_)
        | Typed::Regex { .. }
        | Typed::Code(_)
        | Typed::ScopedCode(_)
        | Typed::Symbol(_)
        | Typed::DbPointer { .. }
        | Typed::Undefined
        | Typed::MinKey
        | Typed::MaxKey => return false,
    }
    true
}

/// Appends an element behind its length; null has the length -1.
fn put_element(value: Value<'_>, depth: usize, out: &mut Vec<u8>) -> bool {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return true;
    }
    let start = out.len();
    put_length(0, out);
    let is_cql = put(value, depth + 1, out);
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    is_cql
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as i32).to_be_bytes());
}

/// A number of variable length: as many ones as bytes follow the first, a zero, and the number with its sign last.
fn put_vint(number: i64, out: &mut Vec<u8>) {
    let zigzag = ((number << 1) ^ (number >> 63)) as u64;
    let bits = 64 - (zigzag | 1).leading_zeros() as usize;
    let more = ((bits - 1) / 7).min(8);
    let bytes = zigzag.to_be_bytes();
    if more == 8 {
        out.push(0xff);
        out.extend_from_slice(&bytes);
        return;
    }
    let first = !(0xffu8 >> more) | bytes[7 - more];
    out.push(first);
    out.extend_from_slice(&bytes[8 - more..]);
}
