//! The bytes of a body, taken in pieces.

use super::row::{Code, Value};
use super::schema::Type;
use super::{HybridRowError, HybridRowErrorKind as Kind};

pub(super) type Read<T> = Result<T, HybridRowError>;

/// The longest varint of a length: 32 bits.
const LENGTH_BYTES_MAX: usize = 5;
/// The longest varint of a value: 64 bits.
const VARINT_BYTES_MAX: usize = 10;

#[derive(Clone)]
pub(super) struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where these bytes begin in the body, for errors.
    base: usize,
}

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes, at: 0, base: 0 }
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// How many bytes have been taken.
    pub fn taken(&self) -> usize {
        self.at
    }

    /// The next bytes, if there are as many.
    pub fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error(Kind::UnexpectedEnd))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// The next bytes as a source of their own, which ends with them.
    pub fn part(&mut self, length: usize) -> Read<Source<'a>> {
        let base = self.base + self.at;
        Ok(Source { bytes: self.take(length)?, at: 0, base })
    }

    pub fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("as many bytes are taken as were asked for"))
    }

    pub fn byte(&mut self) -> Read<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn uint32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Checks the version and returns the schema id.
    pub fn row_header(&mut self) -> Read<u32> {
        match self.byte()? {
            super::VERSION => self.uint32(),
            _ => Err(self.error(Kind::Version)),
        }
    }

    /// A varint that counts something.
    pub fn length(&mut self) -> Read<usize> {
        let bytes = self.varint(LENGTH_BYTES_MAX)?;
        let number = bytes.iter().rev().fold(0u64, |number, byte| number << 7 | u64::from(byte & 0x7F));
        usize::try_from(number)
            .ok()
            .filter(|_| number <= u64::from(u32::MAX))
            .ok_or_else(|| self.error(Kind::Varint))
    }

    /// The bytes of a varint.
    fn varint(&mut self, most: usize) -> Read<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        match rest.iter().take(most).position(|byte| *byte < 0x80) {
            Some(last) => self.take(last + 1),
            None if rest.len() < most => Err(self.error(Kind::UnexpectedEnd)),
            None => Err(self.error(Kind::Varint)),
        }
    }

    pub fn text(&mut self, length: usize) -> Read<&'a str> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.error(Kind::Text))
    }

    /// A value whose type the schema tells.
    pub fn value(&mut self, kind: Type) -> Read<Value<'a>> {
        Ok(match kind {
            // One bit among the presence bits, which no schema of batches has.
            Type::Bool => return Err(self.error(Kind::Type)),
            Type::Int32 => Value::Int32(i32::from_le_bytes(self.array()?)),
            Type::UInt32 => Value::UInt32(self.uint32()?),
            Type::Float64 => Value::Float64(f64::from_le_bytes(self.array()?)),
            Type::Utf8 => {
                let length = self.length()?;
                Value::Utf8(self.text(length)?)
            }
            Type::Binary => {
                let length = self.length()?;
                Value::Binary(self.take(length)?)
            }
        })
    }

    /// A value that its code describes. Those of types which no batch has are kept as they are.
    pub fn coded(&mut self, code: u8) -> Read<Value<'a>> {
        let bytes = match Code(code) {
            Code::NULL => return Ok(Value::Null),
            Code::FALSE => return Ok(Value::Bool(false)),
            Code::TRUE => return Ok(Value::Bool(true)),
            Code::INT32 => return self.value(Type::Int32),
            Code::UINT32 => return self.value(Type::UInt32),
            Code::FLOAT64 => return self.value(Type::Float64),
            Code::UTF8 => return self.value(Type::Utf8),
            Code::BINARY => return self.value(Type::Binary),
            // Integers of 8, 16 and 64 bits, with and without a sign.
            Code(5 | 9) => self.take(1)?,
            Code(6 | 10) => self.take(2)?,
            Code(8 | 12) => self.take(8)?,
            // Integers of any length.
            Code(13 | 14) => self.varint(VARINT_BYTES_MAX)?,
            // Short floats, decimals, times, GUIDs, long floats, Unix times, object ids.
            Code(15) => self.take(4)?,
            Code(17 | 19 | 22) => self.take(16)?,
            Code(18 | 23) => self.take(8)?,
            Code(24) => self.take(12)?,
            _ => return Err(self.error(Kind::Type)),
        };
        Ok(Value::Other(code, bytes))
    }

    pub fn error(&self, kind: Kind) -> HybridRowError {
        HybridRowError { kind, offset: self.base + self.at }
    }
}
