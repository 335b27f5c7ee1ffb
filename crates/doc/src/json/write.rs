//! Writes values as compact JSON text, straight from their bytes.
//!
//! Numbers read back as the same numbers. Doubles use the fewest digits that allow that, and follow the
//! habits of JavaScript, which the service's answers show: an integral value has no fraction (`1.0` is
//! written `1`), and an exponent appears from 1e21 up and below 1e-6. Two things differ from JavaScript.
//! `-0` keeps its sign, since the sign decides the partition of an item. And an integral double that an
//! `i64` can hold is written with all its digits, because it is read back as an `i64`, to which a zero in
//! place of a digit is another number. What JSON cannot say (undefined, an infinity) is written as `null`.
//! Types that JSON does not have are shown by [`Typed::plain`]; decimal numbers with all their digits.

use std::io::Write;

use crate::MAX_DEPTH;
use crate::format::encoded_string;
use crate::map::MapRef;
use crate::typed::{Plain, Typed};
use crate::value::{ObjectRef, Value, is_gone};

/// Appends the value's JSON text.
pub fn write(value: Value<'_>, out: &mut Vec<u8>) {
    put_value(value, 0, out);
}

/// The number of bytes that [`write`] would append.
pub fn size(value: Value<'_>) -> usize {
    let mut counter = Counter(0);
    put_value(value, 0, &mut counter);
    counter.0
}

/// Appends the fields of an object without its braces, leaving out the names in `skip`. Returns whether
/// anything was written, so that the caller knows if its own fields need a comma in front.
pub fn write_fields(object: ObjectRef<'_>, skip: &[&str], out: &mut Vec<u8>) -> bool {
    put_fields(object, skip, 0, out)
}

/// Appends a string with its quotes and escapes.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    put_str(text, out);
}

/// Where text goes: into a buffer, or only into a count.
trait Sink {
    fn put(&mut self, text: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }
}

struct Counter(usize);

impl Sink for Counter {
    fn put(&mut self, text: &[u8]) {
        self.0 += text.len();
    }
}

fn put_value<S: Sink>(value: Value<'_>, depth: usize, out: &mut S) {
    match value {
        Value::Null | Value::Undefined => out.put(b"null"),
        Value::Bool(true) => out.put(b"true"),
        Value::Bool(false) => out.put(b"false"),
        Value::Int(number) => put_int(number, out),
        Value::Double(number) => put_double(number, out),
        Value::Str(text) => put_str(text, out),
        Value::Array(_) | Value::Object(_) | Value::Map(_) if depth == MAX_DEPTH => out.put(b"null"),
        Value::Array(array) => {
            out.put(b"[");
            for (i, element) in array.iter().enumerate() {
                if i > 0 {
                    out.put(b",");
                }
                put_value(element, depth + 1, out);
            }
            out.put(b"]");
        }
        Value::Object(object) => {
            out.put(b"{");
            put_fields(object, &[], depth, out);
            out.put(b"}");
        }
        Value::Map(map) => put_map(map, depth, out),
        Value::Typed(value) => put_typed(value, out),
    }
}

fn put_typed<S: Sink>(value: Typed<'_>, out: &mut S) {
    if let Some(number) = value.number_text() {
        return out.put(number.as_bytes());
    }
    match value.plain() {
        Plain::Null => out.put(b"null"),
        Plain::Int(number) => put_int(number, out),
        Plain::Double(number) => put_double(number, out),
        Plain::Text(text) => put_str(&text, out),
    }
}

fn put_map<S: Sink>(map: MapRef<'_>, depth: usize, out: &mut S) {
    out.put(b"{");
    for (i, (name, value)) in map.fields().enumerate() {
        if i > 0 {
            out.put(b",");
        }
        put_str(&name, out);
        out.put(b":");
        put_value(value, depth + 1, out);
    }
    out.put(b"}");
}

fn put_fields<S: Sink>(object: ObjectRef<'_>, skip: &[&str], depth: usize, out: &mut S) -> bool {
    let mut any = false;
    for (name, value) in object.encoded_fields() {
        if skip.iter().any(|skipped| skipped.as_bytes() == name) {
            continue;
        }
        if is_gone(value) {
            continue;
        }
        let Some(text) = Text::read(name) else { continue };
        if any {
            out.put(b",");
        }
        any = true;
        put_text(text, out);
        out.put(b":");
        match encoded_string(value).and_then(Text::read) {
            Some(text) => put_text(text, out),
            None => put_value(Value::read(value), depth + 1, out),
        }
    }
    any
}

/// Text of a document. Most of it is ASCII that needs no escape: one look finds that out, and finds that it is UTF-8.
#[derive(Clone, Copy)]
enum Text<'a> {
    Plain(&'a [u8]),
    Other(&'a str),
}

impl<'a> Text<'a> {
    fn read(bytes: &'a [u8]) -> Option<Text<'a>> {
        if super::is_plain_ascii(bytes) {
            return Some(Text::Plain(bytes));
        }
        std::str::from_utf8(bytes).ok().map(Text::Other)
    }
}

fn put_text<S: Sink>(text: Text<'_>, out: &mut S) {
    match text {
        Text::Plain(bytes) => {
            out.put(b"\"");
            out.put(bytes);
            out.put(b"\"");
        }
        Text::Other(text) => put_str(text, out),
    }
}

fn put_str<S: Sink>(text: &str, out: &mut S) {
    let mut rest = text.as_bytes();
    out.put(b"\"");
    loop {
        let (plain, after) = rest.split_at(super::plain_length(rest));
        out.put(plain);
        let Some((&byte, after)) = after.split_first() else { break };
        put_escape(byte, out);
        rest = after;
    }
    out.put(b"\"");
}

fn put_escape<S: Sink>(byte: u8, out: &mut S) {
    match byte {
        b'"' => out.put(b"\\\""),
        b'\\' => out.put(b"\\\\"),
        0x08 => out.put(b"\\b"),
        0x09 => out.put(b"\\t"),
        0x0a => out.put(b"\\n"),
        0x0c => out.put(b"\\f"),
        0x0d => out.put(b"\\r"),
        _ => {
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            out.put(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

fn put_int<S: Sink>(number: i64, out: &mut S) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.put(&digits[at..]);
}

fn put_double<S: Sink>(number: f64, out: &mut S) {
    let magnitude = number.abs();
    if !number.is_finite() {
        out.put(b"null");
    } else if number == 0.0 {
        out.put(if number.is_sign_negative() { b"-0" } else { b"0" });
    } else if magnitude < 2f64.powi(63) && number.fract() == 0.0 {
        put_int(number as i64, out);
    } else {
        // The longest text is that of a number near 1e-6: sign, "0.", five zeros and 17 digits.
        let mut text = TextBuffer { bytes: [0; 40], len: 0 };
        let written = if (1e-6..1e21).contains(&magnitude) {
            write!(text, "{number}")
        } else {
            write!(text, "{number:e}")
        };
        written.expect("the buffer holds any double");
        out.put(&text.bytes[..text.len]);
    }
}

/// A formatting target on the stack.
struct TextBuffer {
    bytes: [u8; 40],
    len: usize,
}

impl Write for TextBuffer {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let room = &mut self.bytes[self.len..];
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text[..taken]);
        self.len += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
