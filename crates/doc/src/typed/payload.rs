//! The bytes of typed values. All integers are little endian, as everywhere in the document format; what a protocol
//! gives as a run of bytes stays as it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Decimal128, DecimalRef, Duration, ScopedCode, TimeOfDay, Typed, VarintRef};
use crate::format::*;

impl<'a> Typed<'a> {
    /// Reads what stands behind a tag: all of the payload, or, for the small integers, its beginning.
    pub(crate) fn read(tag: u8, payload: &'a [u8]) -> Option<Typed<'a>> {
        Some(match tag {
            TAG_INT32 => Typed::Int32(small_integer(payload)?),
            TAG_INT16 => Typed::Int16(small_integer(payload)?),
            TAG_INT8 => Typed::Int8(small_integer(payload)?),
            TAG_FLOAT32 => Typed::Float32(f32::from_le_bytes(payload.try_into().ok()?)),
            TAG_DECIMAL128 => Typed::Decimal128(Decimal128::from_bytes(payload.try_into().ok()?)),
            TAG_DECIMAL => {
                let (scale, length) = read_varint(payload)?;
                let scale = i32::try_from(unzigzag(scale)).ok()?;
                Typed::Decimal(DecimalRef::new(scale, &payload[length..])?)
            }
            TAG_VARINT => Typed::Varint(VarintRef::new(payload)?),
            TAG_BINARY => {
                let (&subtype, bytes) = payload.split_first()?;
                Typed::Binary { subtype, bytes }
            }
            TAG_DATE => Typed::Date(i64::from_le_bytes(payload.try_into().ok()?)),
            TAG_TIMESTAMP => {
                let both = u64::from_le_bytes(payload.try_into().ok()?);
                Typed::Timestamp { seconds: (both >> 32) as u32, increment: both as u32 }
            }
            TAG_OBJECT_ID => Typed::ObjectId(payload.try_into().ok()?),
            TAG_UUID => Typed::Uuid(payload.try_into().ok()?),
            TAG_TIME_UUID => Typed::TimeUuid(payload.try_into().ok()?),
            TAG_INET => Typed::Inet(match payload.len() {
                4 => IpAddr::V4(Ipv4Addr::from(*payload.first_chunk::<4>()?)),
                _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(payload).ok()?)),
            }),
            TAG_DAY => Typed::Day(i32::from_le_bytes(payload.try_into().ok()?)),
            TAG_TIME => {
                Typed::Time(TimeOfDay::from_nanoseconds(i64::from_le_bytes(payload.try_into().ok()?))?)
            }
            TAG_DURATION => Typed::Duration(duration(payload)?),
            TAG_UNDEFINED if payload.is_empty() => Typed::Undefined,
            TAG_MIN_KEY if payload.is_empty() => Typed::MinKey,
            TAG_MAX_KEY if payload.is_empty() => Typed::MaxKey,
            tag => return Typed::read_text(tag, payload),
        })
    }

    fn read_text(tag: u8, payload: &'a [u8]) -> Option<Typed<'a>> {
        let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok();
        Some(match tag {
            TAG_CODE => Typed::Code(text(payload)?),
            TAG_SYMBOL => Typed::Symbol(text(payload)?),
            TAG_REGEX => {
                let (pattern, length) = read_blob(payload)?;
                Typed::Regex { pattern: text(pattern)?, options: text(&payload[length..])? }
            }
            TAG_SCOPED_CODE => {
                let (code, length) = read_blob(payload)?;
                let scope = &payload[length..];
                if scope.first() != Some(&TAG_OBJECT) {
                    return None;
                }
                Typed::ScopedCode(ScopedCode { code: text(code)?, scope })
            }
            TAG_DB_POINTER => {
                let (id, collection) = payload.split_first_chunk::<12>()?;
                Typed::DbPointer { collection: text(collection)?, id: *id }
            }
            _ => return None,
        })
    }

    pub(crate) fn tag(self) -> u8 {
        match self {
            Typed::Int32(_) => TAG_INT32,
            Typed::Int16(_) => TAG_INT16,
            Typed::Int8(_) => TAG_INT8,
            Typed::Float32(_) => TAG_FLOAT32,
            Typed::Decimal128(_) => TAG_DECIMAL128,
            Typed::Decimal(_) => TAG_DECIMAL,
            Typed::Varint(_) => TAG_VARINT,
            Typed::Binary { .. } => TAG_BINARY,
            Typed::Date(_) => TAG_DATE,
            Typed::Timestamp { .. } => TAG_TIMESTAMP,
            Typed::ObjectId(_) => TAG_OBJECT_ID,
            Typed::Uuid(_) => TAG_UUID,
            Typed::TimeUuid(_) => TAG_TIME_UUID,
            Typed::Regex { .. } => TAG_REGEX,
            Typed::Code(_) => TAG_CODE,
            Typed::ScopedCode(_) => TAG_SCOPED_CODE,
            Typed::Symbol(_) => TAG_SYMBOL,
            Typed::DbPointer { .. } => TAG_DB_POINTER,
            Typed::Undefined => TAG_UNDEFINED,
            Typed::MinKey => TAG_MIN_KEY,
            Typed::MaxKey => TAG_MAX_KEY,
            Typed::Inet(_) => TAG_INET,
            Typed::Day(_) => TAG_DAY,
            Typed::Time(_) => TAG_TIME,
            Typed::Duration(_) => TAG_DURATION,
        }
    }
}

/// Appends what stands behind the tag.
pub(crate) fn write_payload(value: Typed<'_>, out: &mut Vec<u8>) {
    match value {
        Typed::Int32(number) => write_varint(zigzag(i64::from(number)), out),
        Typed::Int16(number) => write_varint(zigzag(i64::from(number)), out),
        Typed::Int8(number) => write_varint(zigzag(i64::from(number)), out),
        Typed::Float32(number) => put(&[&number.to_le_bytes()], out),
        Typed::Decimal128(number) => put(&[&number.to_bytes()], out),
        Typed::Decimal(number) => {
            let mut scale = Vec::with_capacity(5);
            write_varint(zigzag(i64::from(number.scale())), &mut scale);
            put(&[&scale, number.unscaled().bytes()], out);
        }
        Typed::Varint(number) => put(&[number.bytes()], out),
        Typed::Binary { subtype, bytes } => put(&[&[subtype], bytes], out),
        Typed::Date(milliseconds) => put(&[&milliseconds.to_le_bytes()], out),
        Typed::Timestamp { seconds, increment } => {
            put(&[&increment.to_le_bytes(), &seconds.to_le_bytes()], out);
        }
        Typed::ObjectId(id) => put(&[&id], out),
        Typed::Uuid(id) | Typed::TimeUuid(id) => put(&[&id], out),
        Typed::Regex { pattern, options } => {
            put(&[&length_of(pattern), pattern.as_bytes(), options.as_bytes()], out);
        }
        Typed::Code(text) | Typed::Symbol(text) => put(&[text.as_bytes()], out),
        Typed::ScopedCode(code) => put(&[&length_of(code.code), code.code.as_bytes(), code.scope], out),
        Typed::DbPointer { collection, id } => put(&[&id, collection.as_bytes()], out),
        Typed::Undefined | Typed::MinKey | Typed::MaxKey => put(&[], out),
        Typed::Inet(IpAddr::V4(address)) => put(&[&address.octets()], out),
        Typed::Inet(IpAddr::V6(address)) => put(&[&address.octets()], out),
        Typed::Day(days) => put(&[&days.to_le_bytes()], out),
        Typed::Time(time) => put(&[&time.nanoseconds().to_le_bytes()], out),
        Typed::Duration(duration) => {
            let mut parts = Vec::with_capacity(20);
            let numbers = [i64::from(duration.months), i64::from(duration.days), duration.nanoseconds];
            numbers.iter().for_each(|number| write_varint(zigzag(*number), &mut parts));
            put(&[&parts], out);
        }
    }
}

/// Appends parts behind the length of all of them.
fn put(parts: &[&[u8]], out: &mut Vec<u8>) {
    write_varint(parts.iter().map(|part| part.len() as u64).sum(), out);
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn length_of(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(5);
    write_varint(text.len() as u64, &mut out);
    out
}

fn small_integer<I: TryFrom<i64>>(payload: &[u8]) -> Option<I> {
    I::try_from(unzigzag(read_varint(payload)?.0)).ok()
}

fn duration(payload: &[u8]) -> Option<Duration> {
    let (months, first) = read_varint(payload)?;
    let (days, second) = read_varint(&payload[first..])?;
    let (nanoseconds, third) = read_varint(&payload[first + second..])?;
    let part = |number: u64| i32::try_from(unzigzag(number)).ok();
    let duration = Duration::new(part(months)?, part(days)?, unzigzag(nanoseconds))?;
    (first + second + third == payload.len()).then_some(duration)
}
