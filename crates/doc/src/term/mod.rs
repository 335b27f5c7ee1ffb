//! The order of values, as a comparison and as bytes.
//!
//! There are three orders ([`TermOrder`]), one for each family of APIs. [`compare`] is that of the SQL dialect:
//! undefined < null < false < true < numbers < strings < arrays < objects, where a value of a type that JSON does not
//! have is what JSON shows of it. [`compare_in`] is any of the three. [`encode_term`] writes a value so that the byte
//! order of two terms is the order of their values, which is what an index key needs.
//!
//! Terms have a limited length. Strings are cut after [`MAX_STRING_BYTES`] and containers after
//! [`MAX_CONTAINER_BYTES`] of their own encoding, so of two different long values the terms may be equal,
//! never the wrong way round. An index proposes and the document decides, so this costs a comparison
//! and nothing else. A cut term ends in `00 01` instead of `00 00`: it sorts behind the value that is
//! exactly as long as the limit, and [`encode_term`] tells the caller too. [`encode_key`] cuts nothing: keys of items
//! and of logical partitions decide by themselves.
//!
//! A number of SQL is its double's bits, turned so that they sort as unsigned bytes, and a tail that holds what
//! an `i64` lost by rounding: `80` for nothing, which is every double and all usual integers, or `7f`
//! and `81` with the difference below or above. So `1` and `1.0` are one term and 2^53 + 1 keeps its
//! place between its neighbours. In the other orders the tail holds the digits of a number that no double is.
//! No term is the start of another, so that keys can go on behind it.

mod compare;
mod length;
mod marks;
mod number;
mod read;
mod scalar;

use crate::MAX_DEPTH;
use crate::typed::{Plain, Typed};
use crate::value::{ObjectRef, Value};

pub use compare::{compare, compare_in};
pub use length::term_length;
pub use marks::{Bounds, TermOrder, TermType};
pub use read::read_scalar;

use marks::mark;
use scalar::{put_cut, put_escaped, put_scalar};

/// The bytes of a string that go into its term.
pub const MAX_STRING_BYTES: usize = 128;
/// The bytes of an array's or object's encoding that go into its term.
pub const MAX_CONTAINER_BYTES: usize = 128;

/// Appends the value's term. Returns whether the term says everything about the value; if not, it was
/// cut and other values may share it.
pub fn encode_term(value: Value<'_>, order: TermOrder, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) => {
            let mut inner = Bounded { bytes: [0; MAX_CONTAINER_BYTES], len: 0 };
            let complete = put_container(value, order, 0, &mut inner);
            out.push(mark(value, order));
            put_escaped(&inner.bytes[..inner.len], complete, out)
        }
        Value::Map(_) | Value::Typed(_) => encode_typed(value, order, out),
        value => put_scalar(value, order, out),
    }
}

/// Appends the value's term without cutting it: two values have the same key exactly if they are equal in the order,
/// and no key is the start of another. Only what is nested deeper than [`MAX_DEPTH`] is cut there.
pub fn encode_key(value: Value<'_>, order: TermOrder, out: &mut Vec<u8>) {
    match value {
        Value::Array(_) | Value::Object(_) => encode_whole_container(value, order, out),
        Value::Map(map) if order == TermOrder::Sql => encode_key(map.to_object().root(), order, out),
        Value::Map(_) | Value::Typed(Typed::ScopedCode(_)) if order != TermOrder::Sql => {
            encode_whole_container(value, order, out);
        }
        value => {
            put_element(value, order, 0, &mut Whole(out));
        }
    }
}

fn encode_whole_container(value: Value<'_>, order: TermOrder, out: &mut Vec<u8>) {
    let mut inner = Vec::new();
    let complete = put_container(value, order, 0, &mut Whole(&mut inner));
    out.push(mark(value, order));
    put_escaped(&inner, complete, &mut Whole(out));
}

/// Appends the term of a value that JSON does not have.
#[cold]
fn encode_typed(value: Value<'_>, order: TermOrder, out: &mut Vec<u8>) -> bool {
    match (value, order) {
        (Value::Map(map), TermOrder::Sql) => encode_term(map.to_object().root(), order, out),
        (Value::Map(_) | Value::Typed(Typed::ScopedCode(_)), TermOrder::Bson | TermOrder::Cql) => {
            let mut inner = Bounded { bytes: [0; MAX_CONTAINER_BYTES], len: 0 };
            let complete = put_container(value, order, 0, &mut inner);
            out.push(mark(value, order));
            put_escaped(&inner.bytes[..inner.len], complete, out)
        }
        (value, _) => put_element(value, order, 0, out),
    }
}

/// Writes a value inside a container, or a scalar. Returns whether all of it was written.
fn put_element<S: Sink>(value: Value<'_>, order: TermOrder, depth: usize, out: &mut S) -> bool {
    match (value, order) {
        (Value::Array(_) | Value::Object(_), _)
        | (Value::Map(_) | Value::Typed(Typed::ScopedCode(_)), TermOrder::Bson | TermOrder::Cql) => {
            out.put(&[mark(value, order)]);
            put_container(value, order, depth + 1, out)
        }
        (Value::Map(map), TermOrder::Sql) => put_element(map.to_object().root(), order, depth, out),
        (Value::Typed(value), TermOrder::Sql) => put_plain(&value.plain(), out),
        // A cut string ends the whole term: what follows it must not decide the order.
        (value, _) => put_scalar(value, order, out) && !out.is_full(),
    }
}

fn put_plain<S: Sink>(plain: &Plain<'_>, out: &mut S) -> bool {
    let value = match plain {
        Plain::Null => Value::Null,
        Plain::Int(number) => Value::Int(*number),
        Plain::Double(number) => Value::Double(*number),
        Plain::Text(text) => Value::Str(text),
    };
    put_scalar(value, TermOrder::Sql, out) && !out.is_full()
}

/// Writes the elements of a container, each with its term, until the buffer is full. Returns whether all
/// of it was written.
fn put_container<S: Sink>(value: Value<'_>, order: TermOrder, depth: usize, out: &mut S) -> bool {
    if depth == MAX_DEPTH {
        return false;
    }
    let complete = match value {
        Value::Array(array) => array.iter().all(|element| put_element(element, order, depth, out)),
        Value::Object(object) => put_fields(object, order, depth, out),
        Value::Map(map) => map
            .iter()
            .all(|(key, value)| put_element(key, order, depth, out) && put_element(value, order, depth, out)),
        Value::Typed(Typed::ScopedCode(code)) => {
            put_cut(code.code().as_bytes(), out)
                && !out.is_full()
                && put_element(code.scope(), order, depth, out)
        }
        _ => true,
    };
    if complete {
        out.put(&[0]);
    }
    complete && !out.is_full()
}

/// Writes the fields of an object: those of SQL in the order of their names, others as they were written. MongoDB
/// compares the types of two fields before their names.
fn put_fields<S: Sink>(object: ObjectRef<'_>, order: TermOrder, depth: usize, out: &mut S) -> bool {
    let mut put_field = |mark: u8, name: &str, value: Value<'_>| {
        out.put(&[mark]);
        put_escaped(name.as_bytes(), true, out) && !out.is_full() && put_element(value, order, depth, out)
    };
    match order {
        TermOrder::Sql => object.iter_by_name().all(|(name, value)| put_field(1, name, value)),
        TermOrder::Cql => object.iter().all(|(name, value)| put_field(1, name, value)),
        TermOrder::Bson => object.iter().all(|(name, value)| {
            let bounds = TermType::of(value, order).bounds(order);
            put_field(bounds.map_or(1, |bounds| bounds.first), name, value)
        }),
    }
}

trait Sink {
    /// The bytes of a string that are written.
    const STRING_BYTES: usize = MAX_STRING_BYTES;

    fn put(&mut self, bytes: &[u8]);

    /// Whether something may be missing.
    fn is_full(&self) -> bool {
        false
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A buffer for what must not be cut.
struct Whole<'v>(&'v mut Vec<u8>);

impl Sink for Whole<'_> {
    const STRING_BYTES: usize = usize::MAX;

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// A buffer that drops what does not fit. It counts as full as soon as its last byte is taken, so a full
/// buffer always means that something may be missing.
struct Bounded {
    bytes: [u8; MAX_CONTAINER_BYTES],
    len: usize,
}

impl Sink for Bounded {
    fn put(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..][..taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
    }

    fn is_full(&self) -> bool {
        self.len == self.bytes.len()
    }
}
