//! Reads JSON text straight into the document format.
//!
//! The text is checked as UTF-8 once, then read front to back by a loop that keeps its place in the
//! builder's stack of open containers. Nothing recurses, so the depth limit is a rule, not a defence of
//! the stack. The grammar is RFC 8259 to the letter; a byte order mark in front is skipped, because some
//! clients send one.

use std::fmt;

use crate::builder::DocBuilder;
use crate::format::Doc;
use crate::typed::VarintRef;

/// The deepest nesting that the service accepts in an item.
pub const DEFAULT_MAX_DEPTH: usize = 128;

/// The longest text that is read at all. The document of a hostile text can be about five times as
/// long as the text, and its offsets have 32 bits.
pub const MAX_TEXT_BYTES: usize = 512 << 20;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonError {
    pub kind: JsonErrorKind,
    /// The byte at which reading stopped.
    pub offset: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonErrorKind {
    UnexpectedEnd,
    UnexpectedByte,
    InvalidUtf8,
    InvalidEscape,
    InvalidNumber,
    NumberOutOfRange,
    ControlCharacter,
    TrailingText,
    TooDeep,
    TooLong,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            JsonErrorKind::UnexpectedEnd => "the text ends too early",
            JsonErrorKind::UnexpectedByte => "unexpected character",
            JsonErrorKind::InvalidUtf8 => "the text is not valid UTF-8",
            JsonErrorKind::InvalidEscape => "invalid escape sequence in a string",
            JsonErrorKind::InvalidNumber => "invalid number",
            JsonErrorKind::NumberOutOfRange => "number out of range",
            JsonErrorKind::ControlCharacter => "control character in a string",
            JsonErrorKind::TrailingText => "unexpected text after the value",
            JsonErrorKind::TooDeep => "the text is nested too deeply",
            JsonErrorKind::TooLong => "the text is too long",
        };
        write!(f, "{what} at byte {}", self.offset)
    }
}

impl std::error::Error for JsonError {}

/// Reads a text that holds exactly one JSON value of any type.
///
/// Integers that fit an `i64` stay integers, other numbers become doubles; `-0` is a double, because an
/// integer has no sign of zero and the partition key hash can tell the two apart.
pub fn parse(text: &[u8], max_depth: usize) -> Result<Doc, JsonError> {
    read(text, max_depth, false)
}

/// The same for callers to whom a large integer is no double: integers of up to 128 bits are varints if no `i64` holds them,
/// and larger ones are refused.
pub fn parse_wide(text: &[u8], max_depth: usize) -> Result<Doc, JsonError> {
    read(text, max_depth, true)
}

fn read(text: &[u8], max_depth: usize, wide: bool) -> Result<Doc, JsonError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(JsonError { kind: JsonErrorKind::TooLong, offset: MAX_TEXT_BYTES });
    }
    let text = std::str::from_utf8(text)
        .map_err(|error| JsonError { kind: JsonErrorKind::InvalidUtf8, offset: error.valid_up_to() })?;
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: if text.starts_with('\u{feff}') { 3 } else { 0 },
        builder: DocBuilder::with_capacity(text.len() + text.len() / 4 + 16),
        unescaped: String::new(),
        max_depth: max_depth.min(crate::MAX_DEPTH),
        wide,
    };
    parser.document()?;
    Ok(parser.builder.finish())
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    builder: DocBuilder,
    /// The last string that had escapes.
    unescaped: String,
    max_depth: usize,
    /// Whether integers beyond 64 bits stay integers.
    wide: bool,
}

/// What follows a value or an opening bracket.
enum Next {
    Value,
    Closed,
}

impl<'t> Parser<'t> {
    fn document(&mut self) -> Result<(), JsonError> {
        loop {
            if let Next::Value = self.value()? {
                continue;
            }
            // A value has ended; so may any number of containers around it.
            loop {
                let Some(in_object) = self.builder.in_object() else {
                    self.skip_space();
                    return match self.peek() {
                        None => Ok(()),
                        Some(_) => Err(self.error(JsonErrorKind::TrailingText)),
                    };
                };
                if let Next::Value = self.after_value(in_object)? {
                    break;
                }
            }
        }
    }

    /// Reads a scalar, or enters a container. Says whether a value must follow at once.
    fn value(&mut self) -> Result<Next, JsonError> {
        self.skip_space();
        match self.peek().ok_or(self.error(JsonErrorKind::UnexpectedEnd))? {
            b'{' => {
                self.enter()?;
                self.builder.begin_object();
                self.skip_space();
                if self.peek() == Some(b'}') {
                    self.at += 1;
                    self.builder.end_object();
                    return Ok(Next::Closed);
                }
                self.field_name()?;
                return Ok(Next::Value);
            }
            b'[' => {
                self.enter()?;
                self.builder.begin_array();
                self.skip_space();
                if self.peek() != Some(b']') {
                    return Ok(Next::Value);
                }
                self.at += 1;
                self.builder.end_array();
            }
            b'"' => {
                let place = self.string()?;
                self.builder.str(place.read(self.text, &self.unescaped));
            }
            b't' => {
                self.word("true")?;
                self.builder.bool(true);
            }
            b'f' => {
                self.word("false")?;
                self.builder.bool(false);
            }
            b'n' => {
                self.word("null")?;
                self.builder.null();
            }
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(self.error(JsonErrorKind::UnexpectedByte)),
        }
        Ok(Next::Closed)
    }

    /// Reads the comma or closing bracket behind a value.
    fn after_value(&mut self, in_object: bool) -> Result<Next, JsonError> {
        self.skip_space();
        match (self.peek(), in_object) {
            (Some(b','), true) => {
                self.at += 1;
                self.field_name()?;
                Ok(Next::Value)
            }
            (Some(b','), false) => {
                self.at += 1;
                Ok(Next::Value)
            }
            (Some(b'}'), true) => {
                self.at += 1;
                self.builder.end_object();
                Ok(Next::Closed)
            }
            (Some(b']'), false) => {
                self.at += 1;
                self.builder.end_array();
                Ok(Next::Closed)
            }
            (Some(_), _) => Err(self.error(JsonErrorKind::UnexpectedByte)),
            (None, _) => Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
    }

    fn enter(&mut self) -> Result<(), JsonError> {
        if self.builder.depth() >= self.max_depth {
            return Err(self.error(JsonErrorKind::TooDeep));
        }
        self.at += 1;
        Ok(())
    }

    fn field_name(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        self.expect_peek(b'"')?;
        let place = self.string()?;
        self.builder.name(place.read(self.text, &self.unescaped));
        self.skip_space();
        self.expect_peek(b':')?;
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        for &byte in word.as_bytes() {
            self.expect_peek(byte)?;
            self.at += 1;
        }
        Ok(())
    }

    /// Reads a string, leaving its text where it stands if it has no escapes.
    fn string(&mut self) -> Result<StringPlace, JsonError> {
        self.at += 1;
        let start = self.at;
        self.skip_plain();
        if self.peek() == Some(b'"') {
            let end = self.at;
            self.at += 1;
            return Ok(StringPlace::Text(start, end));
        }
        self.unescaped.clear();
        let mut run = start;
        loop {
            self.skip_plain();
            match self.peek() {
                Some(b'"') => {
                    self.unescaped.push_str(&self.text[run..self.at]);
                    self.at += 1;
                    return Ok(StringPlace::Unescaped);
                }
                Some(b'\\') => {
                    self.unescaped.push_str(&self.text[run..self.at]);
                    let character = self.escape()?;
                    self.unescaped.push(character);
                    run = self.at;
                }
                Some(_) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            }
        }
    }

    /// Moves to the next quote, backslash or control character.
    fn skip_plain(&mut self) {
        self.at += super::plain_length(&self.bytes[self.at..]);
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        let invalid = JsonError { kind: JsonErrorKind::InvalidEscape, offset: start };
        self.at += 1;
        let kind = self.peek().ok_or(self.error(JsonErrorKind::UnexpectedEnd))?;
        self.at += 1;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.hex4(invalid)?;
                let code = match unit {
                    0xd800..=0xdbff => {
                        if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
                            return Err(invalid);
                        }
                        self.at += 2;
                        let low = self.hex4(invalid)?;
                        if !(0xdc00..=0xdfff).contains(&low) {
                            return Err(invalid);
                        }
                        0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
                    }
                    unit => unit,
                };
                // A low surrogate on its own is no character.
                char::from_u32(code).ok_or(invalid)?
            }
            _ => return Err(invalid),
        })
    }

    fn hex4(&mut self, invalid: JsonError) -> Result<u32, JsonError> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(invalid)?;
        let mut unit = 0;
        for &digit in digits {
            unit = unit * 16 + char::from(digit).to_digit(16).ok_or(invalid)?;
        }
        self.at += 4;
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let digits = self.at;
        self.digits()?;
        if self.bytes[digits] == b'0' && self.at > digits + 1 {
            return Err(JsonError { kind: JsonErrorKind::InvalidNumber, offset: start });
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if integer && text != "-0" {
            if let Ok(value) = text.parse::<i64>() {
                self.builder.int(value);
                return Ok(());
            }
            if self.wide {
                return self.wide_integer(start);
            }
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => self.builder.double(value),
            _ => return Err(JsonError { kind: JsonErrorKind::NumberOutOfRange, offset: start }),
        };
        Ok(())
    }

    /// An integer that begins at `start` and is too large for 64 bits.
    fn wide_integer(&mut self, start: usize) -> Result<(), JsonError> {
        let out_of_range = JsonError { kind: JsonErrorKind::NumberOutOfRange, offset: start };
        let value: i128 = self.text[start..self.at].parse().map_err(|_| out_of_range)?;
        self.builder.varint(VarintRef::new(&value.to_be_bytes()).ok_or(out_of_range)?);
        Ok(())
    }

    /// Moves past one digit or more.
    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => Err(self.error(JsonErrorKind::InvalidNumber)),
        }
    }

    fn expect_peek(&self, byte: u8) -> Result<(), JsonError> {
        match self.peek() {
            Some(found) if found == byte => Ok(()),
            Some(_) => Err(self.error(JsonErrorKind::UnexpectedByte)),
            None => Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { kind, offset: self.at }
    }
}

/// Where the text of a string that was just read is found.
enum StringPlace {
    Text(usize, usize),
    Unescaped,
}

impl StringPlace {
    fn read<'s>(&self, text: &'s str, unescaped: &'s str) -> &'s str {
        match self {
            StringPlace::Text(start, end) => &text[*start..*end],
            StringPlace::Unescaped => unescaped,
        }
    }
}
