//! The terms of scalars.

use std::cmp::Ordering;
use std::net::IpAddr;

use super::marks::mark;
use super::number::{Place, sql_place};
use super::{Sink, TermOrder};
use crate::typed::{Digits, Typed};
use crate::value::Value;

/// Writes the term of a scalar; of a typed one in the orders of BSON and CQL only. Returns whether nothing was cut.
pub(super) fn put_scalar<S: Sink>(value: Value<'_>, order: TermOrder, out: &mut S) -> bool {
    out.put(&[mark(value, order)]);
    match value {
        Value::Str(text) => put_cut(text.as_bytes(), out),
        Value::Int(_) | Value::Double(_) if order == TermOrder::Sql => {
            put_sql_number(value, out);
            true
        }
        Value::Int(_) | Value::Double(_) => put_number(value, order, out),
        Value::Typed(typed) => put_typed(typed, order, out),
        _ => true,
    }
}

fn put_typed<S: Sink>(value: Typed<'_>, order: TermOrder, out: &mut S) -> bool {
    match value {
        Typed::Int32(_)
        | Typed::Int16(_)
        | Typed::Int8(_)
        | Typed::Float32(_)
        | Typed::Decimal128(_)
        | Typed::Decimal(_)
        | Typed::Varint(_) => return put_number(Value::Typed(value), order, out),
        Typed::Symbol(text) | Typed::Code(text) => return put_cut(text.as_bytes(), out),
        Typed::Regex { pattern, options } => {
            return put_cut(pattern.as_bytes(), out) && put_cut(options.as_bytes(), out);
        }
        Typed::Binary { bytes, .. } if order == TermOrder::Cql => return put_cut(bytes, out),
        Typed::Binary { subtype, bytes } => return put_sized(bytes, &[subtype], &[], out),
        Typed::DbPointer { collection, id } => return put_sized(collection.as_bytes(), &[], &id, out),
        Typed::Inet(address) => return put_cut(&octets(&address), out),
        Typed::Date(milliseconds) => out.put(&signed(milliseconds)),
        Typed::Timestamp { seconds, increment } => {
            out.put(&seconds.to_be_bytes());
            out.put(&increment.to_be_bytes());
        }
        Typed::ObjectId(id) => out.put(&id),
        Typed::Uuid(id) => out.put(&uuid_key(id)),
        Typed::TimeUuid(id) => out.put(&time_uuid_key(id)),
        Typed::Day(days) => out.put(&signed_32(days)),
        Typed::Time(time) => out.put(&signed(time.nanoseconds())),
        Typed::Duration(duration) => {
            out.put(&signed_32(duration.months()));
            out.put(&signed_32(duration.days()));
            out.put(&signed(duration.nanoseconds()));
        }
        // Written as a container, and marks that say everything.
        Typed::ScopedCode(_) | Typed::Undefined | Typed::MinKey | Typed::MaxKey => {}
    }
    true
}

fn put_sql_number<S: Sink>(value: Value<'_>, out: &mut S) {
    let (bits, difference) = sql_place(value);
    out.put(&bits.to_be_bytes());
    match difference.cmp(&0) {
        Ordering::Equal => out.put(&[0x80]),
        // Adding 2^15 wraps a negative difference so that it sorts as an unsigned number.
        Ordering::Less => {
            out.put(&[0x7f]);
            out.put(&((difference as u16).wrapping_add(0x8000)).to_be_bytes());
        }
        Ordering::Greater => {
            out.put(&[0x81]);
            out.put(&(difference as u16).to_be_bytes());
        }
    }
}

fn put_number<S: Sink>(value: Value<'_>, order: TermOrder, out: &mut S) -> bool {
    let Some(place) = Place::of(value, order) else { return true };
    out.put(&place.bits.to_be_bytes());
    out.put(&[place.side as u8]);
    place.digits.is_none_or(|digits| put_digits(&digits, out))
}

/// Writes a number as its power of ten and its digits, two in a byte; all of it turned for a negative one.
fn put_digits<S: Sink>(number: &Digits, out: &mut S) -> bool {
    // Scales have 32 bits, so that the power of ten has hardly more.
    const ZERO: i64 = 1 << 39;
    let turn = |byte: u8| if number.negative { !byte } else { byte };
    let exponent = (number.exponent + ZERO).to_be_bytes();
    exponent[3..].iter().for_each(|byte| out.put(&[turn(*byte)]));
    let complete = number.digits.len().div_ceil(2) <= S::STRING_BYTES;
    for pair in number.digits.chunks(2).take(S::STRING_BYTES) {
        let second = pair.get(1).copied().unwrap_or(0);
        out.put(&[turn(1 + 10 * pair[0] + second)]);
    }
    out.put(&[turn(if complete { 0 } else { 0xff })]);
    complete
}

/// Writes as many bytes as the sink takes of a string.
pub(super) fn put_cut<S: Sink>(bytes: &[u8], out: &mut S) -> bool {
    let complete = bytes.len() <= S::STRING_BYTES;
    put_escaped(&bytes[..bytes.len().min(S::STRING_BYTES)], complete, out)
}

/// Writes bytes of which the shorter come first, with others in front of them and behind.
fn put_sized<S: Sink>(bytes: &[u8], front: &[u8], behind: &[u8], out: &mut S) -> bool {
    let complete = bytes.len() <= S::STRING_BYTES;
    out.put(&(bytes.len() as u32).to_be_bytes());
    out.put(front);
    out.put(&bytes[..bytes.len().min(S::STRING_BYTES)]);
    if complete {
        out.put(behind);
    }
    complete
}

/// Writes bytes so that a shorter run sorts before a longer one whatever follows: a zero becomes
/// `00 ff` and the end is `00 00`, or `00 01` when something was cut.
pub(super) fn put_escaped<S: Sink>(bytes: &[u8], complete: bool, out: &mut S) -> bool {
    for (i, run) in bytes.split(|&byte| byte == 0).enumerate() {
        if i > 0 {
            out.put(&[0, 0xff]);
        }
        out.put(run);
    }
    out.put(&[0, u8::from(!complete)]);
    complete
}

fn signed(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

fn signed_32(number: i32) -> [u8; 4] {
    (number as u32 ^ 1 << 31).to_be_bytes()
}

pub(super) fn octets(address: &IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A uuid so that bytes sort as Cassandra does: by version, those of version 1 by their time, then by their bytes.
pub(super) fn uuid_key(id: [u8; 16]) -> [u8; 17] {
    let version = id[6] >> 4;
    let mut key = [version; 17];
    key[1..].copy_from_slice(&id);
    if version == 1 {
        key[1..9].copy_from_slice(&by_time(&id));
    }
    key
}

/// A timeuuid so that bytes sort as Cassandra does: by time, then by bytes that have a sign.
pub(super) fn time_uuid_key(id: [u8; 16]) -> [u8; 16] {
    let mut key = id;
    key[..8].copy_from_slice(&by_time(&id));
    key[8..].iter_mut().for_each(|byte| *byte ^= 0x80);
    key
}

/// The time of a uuid with its highest part first; the version stays where it is.
fn by_time(id: &[u8; 16]) -> [u8; 8] {
    [id[6], id[7], id[4], id[5], id[0], id[1], id[2], id[3]]
}
