//! All forms of text.
//!
//! Senders that know their data well pack text that has a pattern; the reader makes the text again. Except
//! for plain UTF-8 all of these forms stand for ASCII.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::BinaryJsonErrorKind::{InvalidReference, InvalidText, UserString};
use super::source::{Read, Source, width};

/// The strings of the markers 0x20 to 0x3F.
const WELL_KNOWN: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

/// The marker of a well-known string.
pub(super) fn well_known_marker(text: &str) -> Option<u8> {
    // The longest is `GeometryCollection`; most strings of a document are told apart by their first letter.
    let may_be =
        text.len() <= 18 && matches!(text.as_bytes().first(), Some(b'$' | b'_' | b'A'..=b'Z' | b'a'..=b'v'));
    let at = may_be.then(|| WELL_KNOWN.iter().position(|known| *known == text))??;
    Some(0x20 + at as u8)
}

const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";

/// User strings 0 to 31 have a marker each; the numbers of the others go over two bytes.
const USER_STRINGS_OF_ONE_BYTE: u16 = 32;

/// Whether a marker begins a string. GUIDs and bytes are values of their own, which only end up as text.
pub(super) fn is_string(marker: u8) -> bool {
    matches!(marker, 0x20..=0x67 | 0x71..=0xC6)
}

fn is_reference(marker: u8) -> bool {
    matches!(marker, 0xC3..=0xC6)
}

impl<'a> Source<'a> {
    /// The string of a marker for which [`is_string`] holds.
    pub fn string(&mut self, marker: u8) -> Read<Cow<'a, str>> {
        if !is_reference(marker) {
            return self.direct_string(marker);
        }
        let start = self.at() - 1;
        let target = self.unsigned(usize::from(marker - 0xC3) + 1)?;
        let back = self.at();
        let text = self.earlier_string(start, target)?;
        self.jump(back);
        Ok(text)
    }

    /// The string that a reference at `start` names.
    fn earlier_string(&mut self, start: usize, target: usize) -> Read<Cow<'a, str>> {
        if target == 0 || target >= start {
            return Err(self.error(InvalidReference));
        }
        self.jump(target);
        let marker = self.byte()?;
        if !is_string(marker) || is_reference(marker) {
            return Err(self.marker_error(InvalidReference));
        }
        let text = self.direct_string(marker)?;
        if self.at() > start { Err(self.error(InvalidReference)) } else { Ok(text) }
    }

    fn direct_string(&mut self, marker: u8) -> Read<Cow<'a, str>> {
        match marker {
            0x20..=0x3F => {
                let text = WELL_KNOWN[usize::from(marker - 0x20)];
                self.charge(text.len())?;
                Ok(Cow::Borrowed(text))
            }
            0x40..=0x5F => Err(self.marker_error(UserString(u16::from(marker - 0x40)))),
            0x60..=0x67 => {
                let number = u16::from_be_bytes([marker - 0x60, self.byte()?]);
                Err(self.error(UserString(number + USER_STRINGS_OF_ONE_BYTE)))
            }
            0x71 | 0x72 => self.base64_text(width(marker - 0x71), false),
            0x73 | 0x74 => self.base64_text(width(marker - 0x73), true),
            0x75 => self.guid_text(LOWER_HEX, ""),
            0x76 => self.guid_text(UPPER_HEX, ""),
            0x77 => self.guid_text(LOWER_HEX, "\""),
            0x78 => self.nibbles(LOWER_HEX),
            0x79 => self.nibbles(UPPER_HEX),
            0x7A => self.nibbles(DATE_TIME),
            0x7B..=0x7D => {
                let length = self.unsigned(1)?;
                let base = self.byte()?;
                self.packed(length, usize::from(marker - 0x7B) + 4, base)
            }
            0x7E | 0x7F => {
                let length = self.unsigned(width(marker - 0x7E))?;
                self.packed(length, 7, 0)
            }
            0x80..=0xBF => self.plain(usize::from(marker - 0x80)),
            0xC0..=0xC2 => {
                let length = self.unsigned(width(marker - 0xC0))?;
                self.plain(length)
            }
            _ => Err(self.marker_error(InvalidText)),
        }
    }

    fn plain(&mut self, length: usize) -> Read<Cow<'a, str>> {
        let invalid = self.error(InvalidText);
        self.charge(length)?;
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| invalid)
    }

    /// Two letters in each byte, the first one in the low half. What is left over must be zero, so that
    /// a text has one form only.
    fn nibbles(&mut self, letters: &[u8; 16]) -> Read<Cow<'a, str>> {
        let length = usize::from(self.byte()?);
        self.charge(length)?;
        let bytes = self.take(length.div_ceil(2))?;
        if length % 2 == 1 && bytes.last().is_some_and(|last| last >> 4 != 0) {
            return Err(self.marker_error(InvalidText));
        }
        let halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(length);
        Ok(Cow::Owned(halves.map(|half| char::from(letters[usize::from(half)])).collect()))
    }

    /// Letters of a few bits each, lowest bits first, counted from a base letter.
    fn packed(&mut self, length: usize, bits: usize, base: u8) -> Read<Cow<'a, str>> {
        self.charge(length)?;
        let mut bytes = self.take((length * bits).div_ceil(8))?.iter();
        let (mut window, mut filled) = (0u32, 0);
        let mut text = String::with_capacity(length);
        for _ in 0..length {
            if filled < bits {
                let byte = bytes.next().expect("as many bits are taken as the letters need");
                window |= u32::from(*byte) << filled;
                filled += 8;
            }
            let letter = u32::from(base) + (window & ((1 << bits) - 1));
            window >>= bits;
            filled -= bits;
            let letter = u8::try_from(letter).ok().filter(u8::is_ascii);
            text.push(char::from(letter.ok_or_else(|| self.error(InvalidText))?));
        }
        Ok(Cow::Owned(text))
    }

    /// Base64 text, kept as the bytes that it stands for. Its length is counted in groups of four letters,
    /// then comes the number of padding letters, with all bits inverted if the text leaves them out.
    fn base64_text(&mut self, width: usize, is_url: bool) -> Read<Cow<'a, str>> {
        let padded = self.unsigned(width)? * 4;
        let padding = self.byte()?;
        let is_left_out = padding > 2;
        let padding = usize::from(if is_left_out { !padding } else { padding });
        if padding > padded.min(2) {
            return Err(self.marker_error(InvalidText));
        }
        let length = if is_left_out { padded - padding } else { padded };
        self.charge(length)?;
        let bytes = self.take((padded - padding) * 3 / 4)?;
        let mut text = if is_url { URL_SAFE.encode(bytes) } else { STANDARD.encode(bytes) };
        text.truncate(length);
        Ok(Cow::Owned(text))
    }

    /// Text in the shape of a GUID, kept as its digits.
    fn guid_text(&mut self, digits: &[u8; 16], quote: &str) -> Read<Cow<'a, str>> {
        self.charge(36 + 2 * quote.len())?;
        let bytes: [u8; 16] = self.array()?;
        Ok(Cow::Owned(format!("{quote}{}{quote}", grouped(bytes.map(|byte| byte.rotate_left(4)), digits))))
    }

    /// A GUID that is a value: its first three groups are integers in little endian.
    pub fn guid_value(&mut self) -> Read<String> {
        self.charge(36)?;
        let mut bytes: [u8; 16] = self.array()?;
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        Ok(grouped(bytes, LOWER_HEX))
    }

    /// Bytes that are a value become base64 text.
    pub fn bytes_value(&mut self, width: usize) -> Read<String> {
        let length = self.unsigned(width)?;
        self.charge(length)?;
        Ok(STANDARD.encode(self.take(length)?))
    }
}

/// The digits of a GUID in their five groups.
fn grouped(bytes: [u8; 16], digits: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(digits[usize::from(byte >> 4)]));
        text.push(char::from(digits[usize::from(byte & 15)]));
    }
    text
}
