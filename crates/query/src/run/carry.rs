//! What one page hands to the next, small enough for a continuation token.

use orrery_doc::{Doc, DocBuilder};

pub use super::sorted::Position;
use crate::error::{QueryError, Result};
use crate::value::Val;

/// The state between two pages of one partition.
#[derive(Debug, Clone, PartialEq)]
pub enum Carry {
    Streaming {
        /// Rows passed over for OFFSET.
        skipped: u64,
        /// Rows answered, for TOP and LIMIT.
        taken: u64,
        /// Rows of the item to be fed first that are already out.
        done_of_item: u64,
    },
    /// How many results of a blocking program are out.
    Emitted(u64),
    /// The last row that is out, and how many are.
    Sorted { after: Position, taken: u64 },
}

const STREAMING: u8 = 1;
const EMITTED: u8 = 2;
const SORTED: u8 = 3;

/// More order keys than any query has.
const MOST_KEYS: u64 = 1_000;

impl Carry {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Streaming { skipped, taken, done_of_item } => {
                out.push(STREAMING);
                [*skipped, *taken, *done_of_item].iter().for_each(|value| put(*value, &mut out));
            }
            Self::Emitted(rows) => {
                out.push(EMITTED);
                put(*rows, &mut out);
            }
            Self::Sorted { after, taken } => {
                out.push(SORTED);
                put(*taken, &mut out);
                put(after.row_of_item, &mut out);
                put_bytes(&after.place, &mut out);
                put(after.keys.len() as u64, &mut out);
                for key in &after.keys {
                    put_key(key, &mut out);
                }
            }
        }
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = || QueryError::InvalidContinuation("The continuation is damaged.");
        let mut reader = Reader { bytes };
        let carry = reader.carry().ok_or_else(damaged)?;
        if reader.bytes.is_empty() { Ok(carry) } else { Err(damaged()) }
    }
}

/// LEB128: seven bits a byte, low ones first.
fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A document has no undefined, so an undefined key is an empty one.
fn put_key(key: &Val<'_>, out: &mut Vec<u8>) {
    if key.is_undefined() {
        return put_bytes(&[], out);
    }
    let mut builder = DocBuilder::new();
    key.write_doc(&mut builder);
    put_bytes(builder.finish().bytes(), out);
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn carry(&mut self) -> Option<Carry> {
        let (kind, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(match *kind {
            STREAMING => Carry::Streaming {
                skipped: self.number()?,
                taken: self.number()?,
                done_of_item: self.number()?,
            },
            EMITTED => Carry::Emitted(self.number()?),
            SORTED => {
                let taken = self.number()?;
                let row_of_item = self.number()?;
                let place = self.blob()?.to_vec();
                let count = self.number().filter(|count| *count <= MOST_KEYS)?;
                let keys = (0..count).map(|_| self.key()).collect::<Option<Vec<_>>>()?;
                Carry::Sorted { after: Position { keys, place, row_of_item }, taken }
            }
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn blob(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (blob, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(blob)
    }

    fn key(&mut self) -> Option<Val<'static>> {
        let blob = self.blob()?;
        if blob.is_empty() {
            return Some(Val::Undefined);
        }
        let doc = Doc::from_bytes(blob.to_vec().into()).ok()?;
        Some(Val::from(doc.root()).to_owned_val())
    }
}
