//! The order of values, as a comparison and as bytes.
//!
//! [`compare`] is the order of the SQL dialect: undefined < null < false < true < numbers < strings <
//! arrays < objects. [`encode_term`] writes a value so that the byte order of two terms is the order of
//! their values, which is what an index key needs.
//!
//! Terms have a limited length. Strings are cut after [`MAX_STRING_BYTES`] and containers after
//! [`MAX_CONTAINER_BYTES`] of their own encoding, so of two different long values the terms may be equal,
//! never the wrong way round. An index proposes and the document decides, so this costs a comparison
//! and nothing else. A cut term ends in `00 01` instead of `00 00`: it sorts behind the value that is
//! exactly as long as the limit, and [`encode_term`] tells the caller too.
//!
//! A number is its double's bits, turned so that they sort as unsigned bytes, and a tail that holds what
//! an `i64` lost by rounding: `80` for nothing, which is every double and all usual integers, or `7f`
//! and `81` with the difference below or above. So `1` and `1.0` are one term and 2^53 + 1 keeps its
//! place between its neighbours. No term is the start of another, so that keys can go on behind it.

use std::cmp::Ordering;

use crate::MAX_DEPTH;
use crate::value::Value;

/// The bytes of a string that go into its term.
pub const MAX_STRING_BYTES: usize = 128;
/// The bytes of an array's or object's encoding that go into its term.
pub const MAX_CONTAINER_BYTES: usize = 128;

/// Whose order terms follow; it is a property of the container's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermOrder {
    Sql,
    /// Objects before arrays, booleans last.
    Bson,
    /// As [`TermOrder::Sql`]: CQL compares values of one type only.
    Cql,
}

/// Compares two values of any type.
pub fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    compare_at(a, b, 0)
}

/// Appends the value's term. Returns whether the term says everything about the value; if not, it was
/// cut and other values may share it.
pub fn encode_term(value: Value<'_>, order: TermOrder, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) => {
            let mut inner = Bounded { bytes: [0; MAX_CONTAINER_BYTES], len: 0 };
            let complete = put_container(value, order, 0, &mut inner);
            out.push(type_mark(value, order));
            put_escaped(&inner.bytes[..inner.len], complete, out)
        }
        value => put_scalar(value, order, out),
    }
}

fn compare_at(a: Value<'_>, b: Value<'_>, depth: usize) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Str(a), Value::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Int(_) | Value::Double(_), Value::Int(_) | Value::Double(_)) => {
            number_bits(a).cmp(&number_bits(b))
        }
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) if depth == MAX_DEPTH => {
            Ordering::Equal
        }
        (Value::Array(a), Value::Array(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                let order = compare_at(a, b, depth + 1);
                if order != Ordering::Equal {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        (Value::Object(a), Value::Object(b)) => {
            let fields = a.iter_by_name().zip(b.iter_by_name());
            for ((a_name, a), (b_name, b)) in fields {
                let order = a_name.cmp(b_name).then_with(|| compare_at(a, b, depth + 1));
                if order != Ordering::Equal {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        (Value::Ext(a), Value::Ext(b)) => (a.tag(), a.bytes()).cmp(&(b.tag(), b.bytes())),
        (a, b) => type_mark(a, TermOrder::Sql).cmp(&type_mark(b, TermOrder::Sql)),
    }
}

/// The first byte of a term. None is zero, so that zero can end a container.
fn type_mark(value: Value<'_>, order: TermOrder) -> u8 {
    let bson = order == TermOrder::Bson;
    match value {
        Value::Undefined => 0x10,
        Value::Null => 0x20,
        Value::Bool(value) => (if bson { 0x90 } else { 0x30 }) + u8::from(value),
        Value::Int(_) | Value::Double(_) => 0x40,
        Value::Str(_) => 0x50,
        Value::Array(_) => 0x70,
        Value::Object(_) => {
            if bson {
                0x60
            } else {
                0x80
            }
        }
        Value::Ext(_) => 0xa0,
    }
}

fn put_scalar<S: Sink>(value: Value<'_>, order: TermOrder, out: &mut S) -> bool {
    out.put(&[type_mark(value, order)]);
    match value {
        Value::Int(_) | Value::Double(_) => {
            let (bits, difference) = number_bits(value);
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
            true
        }
        Value::Str(text) => put_cut(text.as_bytes(), MAX_STRING_BYTES, out),
        Value::Ext(ext) => {
            out.put(&[ext.tag()]);
            put_cut(ext.bytes(), MAX_STRING_BYTES, out)
        }
        _ => true,
    }
}

/// A number as sortable double bits and the integer difference that rounding to a double lost.
fn number_bits(value: Value<'_>) -> (u64, i16) {
    let (double, difference) = match value {
        Value::Int(number) => {
            let double = number as f64;
            // At most 512: half of the distance between doubles just below 2^63.
            (double, (i128::from(number) - double as i128) as i16)
        }
        Value::Double(double) => (double, 0),
        _ => (f64::NAN, 0),
    };
    let sortable = if double.is_nan() {
        0
    } else if double == 0.0 {
        // The two zeros are one number.
        1 << 63
    } else if double > 0.0 {
        double.to_bits() | 1 << 63
    } else {
        !double.to_bits()
    };
    (sortable, difference)
}

fn put_cut<S: Sink>(bytes: &[u8], limit: usize, out: &mut S) -> bool {
    let complete = bytes.len() <= limit;
    put_escaped(&bytes[..bytes.len().min(limit)], complete, out)
}

/// Writes bytes so that a shorter run sorts before a longer one whatever follows: a zero becomes
/// `00 ff` and the end is `00 00`, or `00 01` when something was cut.
fn put_escaped<S: Sink>(bytes: &[u8], complete: bool, out: &mut S) -> bool {
    for (i, run) in bytes.split(|&byte| byte == 0).enumerate() {
        if i > 0 {
            out.put(&[0, 0xff]);
        }
        out.put(run);
    }
    out.put(&[0, u8::from(!complete)]);
    complete
}

/// Writes the elements of a container, each with its term, until the buffer is full. Returns whether all
/// of it was written.
fn put_container(value: Value<'_>, order: TermOrder, depth: usize, out: &mut Bounded) -> bool {
    if depth == MAX_DEPTH {
        return false;
    }
    let put_element = |value: Value<'_>, out: &mut Bounded| match value {
        Value::Array(_) | Value::Object(_) => {
            out.put(&[type_mark(value, order)]);
            put_container(value, order, depth + 1, out)
        }
        // A cut string ends the whole term: what follows it must not decide the order.
        value => put_scalar(value, order, out) && !out.is_full(),
    };
    let complete = match value {
        Value::Array(array) => array.iter().all(|element| put_element(element, out)),
        Value::Object(object) => object.iter_by_name().all(|(name, value)| {
            out.put(&[0x01]);
            put_escaped(name.as_bytes(), true, out) && !out.is_full() && put_element(value, out)
        }),
        _ => true,
    };
    if complete {
        out.put(&[0]);
    }
    complete && !out.is_full()
}

trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A buffer that drops what does not fit. It counts as full as soon as its last byte is taken, so a full
/// buffer always means that something may be missing.
struct Bounded {
    bytes: [u8; MAX_CONTAINER_BYTES],
    len: usize,
}

impl Bounded {
    fn is_full(&self) -> bool {
        self.len == self.bytes.len()
    }
}

impl Sink for Bounded {
    fn put(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..][..taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
    }
}
