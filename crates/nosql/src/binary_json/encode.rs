//! Values in the binary form, written front to back.
//!
//! Containers say how long they are before they begin. So four bytes are left free, and filled in at the end; where
//! fewer are enough, what the container holds moves up. Strings are written as they are, but for the well-known ones: to look for
//! earlier ones or for patterns would cost more than it saves on a fast connection.

use orrery_doc::{MAX_DEPTH, Value, json};
use orrery_query::{QueryError, Val};

use super::PREAMBLE;
use super::strings::well_known_marker;

const DOUBLE: u8 = 0xCC;
const NULL: u8 = 0xD0;
const FALSE: u8 = 0xD1;
const ARRAY: u8 = 0xE0;
const OBJECT: u8 = 0xE8;
const STRING: u8 = 0x80;
/// Of the forms of a container, those with a length of one, two and four bytes.
const LENGTH_1: u8 = 2;
const LENGTH_2: u8 = 3;
pub(crate) const LENGTH_4: u8 = 4;
/// A length of four bytes.
const LENGTH_BYTES: usize = 4;

/// Appends a row, unless it has more than `most` bytes.
pub(crate) fn write_row(row: &Val<'_>, out: &mut Vec<u8>, most: usize) -> orrery_query::Result<()> {
    let start = out.len();
    write(row, 0, out, start.saturating_add(most));
    if out.len() - start > most {
        out.truncate(start);
        return Err(QueryError::LimitExceeded("A row of the answer is too long."));
    }
    Ok(())
}

/// Appends a value of a document.
pub(crate) fn write_value(value: Value<'_>, out: &mut Vec<u8>) {
    write(&Val::from(value), 0, out, usize::MAX);
}

/// A page of text that the server wrote, in the binary form: for answers that are seldom asked for in it.
pub(crate) fn of_text(text: &[u8]) -> Vec<u8> {
    let page = json::parse(text, MAX_DEPTH).expect("what the server writes is JSON");
    let mut out = Vec::with_capacity(text.len());
    out.push(PREAMBLE);
    write_value(page.root(), &mut out);
    out
}

/// What goes beyond `end` is left out.
fn write(value: &Val<'_>, depth: usize, out: &mut Vec<u8>, end: usize) {
    match value {
        _ if out.len() > end => {}
        Val::Array(_) | Val::Object(_) if depth == MAX_DEPTH => out.push(NULL),
        Val::Undefined | Val::Null => out.push(NULL),
        Val::Bool(value) => out.push(FALSE + u8::from(*value)),
        Val::Int(number) => write_int(*number, out),
        Val::Double(number) if number.is_finite() => {
            out.push(DOUBLE);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Val::Double(_) => out.push(NULL),
        Val::Str(text) => write_str(text.as_str(), out),
        Val::Array(list) => container(ARRAY, out, |out| {
            list.iter().for_each(|item| write(&item, depth + 1, out, end));
        }),
        Val::Object(fields) => container(OBJECT, out, |out| {
            fields.for_each(|name, value| {
                write_str(name, out);
                write(value, depth + 1, out, end);
            });
        }),
    }
}

pub(crate) fn write_int(number: i64, out: &mut Vec<u8>) {
    match number {
        0..=31 => out.push(number as u8),
        32..=255 => out.extend_from_slice(&[0xC8, number as u8]),
        -0x8000..=0x7FFF => {
            out.push(0xC9);
            out.extend_from_slice(&(number as i16).to_le_bytes());
        }
        -0x8000_0000..=0x7FFF_FFFF => {
            out.push(0xCA);
            out.extend_from_slice(&(number as i32).to_le_bytes());
        }
        _ => {
            out.push(0xCB);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

pub(crate) fn write_str(text: &str, out: &mut Vec<u8>) {
    let length = text.len();
    match (well_known_marker(text), length) {
        (Some(marker), _) => return out.push(marker),
        (None, 0..=63) => out.push(STRING + length as u8),
        (None, 64..=0xFF) => out.extend_from_slice(&[0xC0, length as u8]),
        (None, 0x100..=0xFFFF) => {
            out.push(0xC1);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        _ => {
            out.push(0xC2);
            out.extend_from_slice(&(length as u32).to_le_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes());
}

fn container(kind: u8, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let inside = start + 1 + LENGTH_BYTES;
    out.extend_from_slice(&[kind + LENGTH_4, 0, 0, 0, 0]);
    fill(out);
    let length = out.len() - inside;
    let bytes = (length as u32).to_le_bytes();
    let width = match length {
        0 => {
            out.truncate(start);
            return out.push(kind);
        }
        1..=0xFF => 1,
        0x100..=0xFFFF => 2,
        _ => LENGTH_BYTES,
    };
    out[start] = kind + [LENGTH_1, LENGTH_2, 0, LENGTH_4][width - 1];
    out[start + 1..=start + width].copy_from_slice(&bytes[..width]);
    out.copy_within(inside.., start + 1 + width);
    out.truncate(start + 1 + width + length);
}
