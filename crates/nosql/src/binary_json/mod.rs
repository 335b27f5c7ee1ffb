//! Cosmos binary JSON: the tagged bytes that some clients send instead of text, and ask for.
//!
//! A body in this form begins with the byte 0x80. No UTF-8 text can begin with it, so the first byte alone
//! tells the two apart. One value follows: a marker byte and its payload, integers in little endian.
//!
//! ```text
//! 00-1F  the integer itself            C0-C2  strings with a length of 1, 2 or 4 bytes
//! 20-3F  well-known strings            C3-C6  strings given by the offset of an earlier one
//! 40-67  strings of a user dictionary  C7-CF  numbers of JSON, floats of 4, 8 and 2 bytes
//! 71-74  base64 text, kept as bytes    D0-D3  null, false, true, GUID
//! 75-77  GUID text, kept as bytes      D7-DC  integers of a given width
//! 78-7F  text in 4 to 7 bits a letter  DD-DF  bytes with a length of 1, 2 or 4 bytes
//! 80-BF  strings of up to 63 bytes     E0-F3  arrays, objects, arrays of bare numbers
//! ```
//!
//! The user dictionary is agreed upon outside of the body, and the protocol never sends one, so its
//! markers are understood and refused. GUIDs and bytes become the text that JSON has for them.
//!
//! Three things make the form dangerous to read. A reference of two bytes can name a string of a megabyte,
//! and an array of empty arrays costs nothing for each, so a small body may stand for an endless document:
//! the reader adds up the least that the document would take as text and stops at [`OUTPUT_BYTES_MAX`].
//! References could chain or turn in circles: they may only point back, and never at a reference. Nesting
//! costs one byte a level: open containers are kept in a list with a limit, and nothing recurses.

mod decode;
pub(crate) mod encode;
mod source;
mod strings;
#[cfg(test)]
mod tests;

use std::fmt;

pub use decode::decode;

/// The first byte of every body in this form.
pub(crate) const PREAMBLE: u8 = 0x80;

/// The longest text that a body may stand for, by its least estimate.
pub const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Whether a body is in this form.
pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&PREAMBLE)
}

/// Why a body is not a document, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryJsonError {
    pub kind: BinaryJsonErrorKind,
    /// The byte at which reading stopped.
    pub offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryJsonErrorKind {
    NotBinary,
    UnexpectedEnd,
    UnknownMarker,
    NameExpected,
    /// The number of a string in a dictionary that the body does not carry.
    UserString(u16),
    InvalidReference,
    InvalidText,
    InvalidNumber,
    /// A container's length or count does not fit what it holds.
    InvalidFrame,
    TrailingBytes,
    TooDeep,
    TooLarge,
}

impl fmt::Display for BinaryJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            BinaryJsonErrorKind::NotBinary => "the body is not in the binary form",
            BinaryJsonErrorKind::UnexpectedEnd => "the body ends too early",
            BinaryJsonErrorKind::UnknownMarker => "unknown type marker",
            BinaryJsonErrorKind::NameExpected => "a property name must be a string",
            BinaryJsonErrorKind::UserString(number) => {
                return write!(f, "unknown user string {number} at byte {}", self.offset);
            }
            BinaryJsonErrorKind::InvalidReference => "the reference does not name an earlier string",
            BinaryJsonErrorKind::InvalidText => "the string is not valid",
            BinaryJsonErrorKind::InvalidNumber => "the number is not finite",
            BinaryJsonErrorKind::InvalidFrame => "the length or count of a container is wrong",
            BinaryJsonErrorKind::TrailingBytes => "unexpected bytes after the value",
            BinaryJsonErrorKind::TooDeep => "the body is nested too deeply",
            BinaryJsonErrorKind::TooLarge => "the body stands for a document that is too large",
        };
        write!(f, "{what} at byte {}", self.offset)
    }
}

impl std::error::Error for BinaryJsonError {}
