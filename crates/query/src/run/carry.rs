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
    /// The same of groups in the order in which their first items were created.
    EmittedAsCreated(u64),
    /// The last row that is out, and how many are.
    Sorted { after: Position, taken: u64 },
    /// Nothing is out, but the client wants no row up to here.
    From(Position),
    /// The same in few bytes: the first so many of the keys are whole, the next is a string of which only the
    /// beginning is there, and the others are left out. See [`Carry::shortened`].
    Cut { after: Position, whole: usize, taken: u64 },
}

const STREAMING: u8 = 1;
const EMITTED: u8 = 2;
const SORTED: u8 = 3;
const CUT: u8 = 4;
const FROM: u8 = 5;
const EMITTED_AS_CREATED: u8 = 6;

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
            Self::EmittedAsCreated(rows) => {
                out.push(EMITTED_AS_CREATED);
                put(*rows, &mut out);
            }
            Self::Sorted { after, taken } => {
                out.push(SORTED);
                put_position(after, *taken, &mut out);
            }
            Self::From(point) => {
                out.push(FROM);
                put_position(point, 0, &mut out);
            }
            Self::Cut { after, whole, taken } => {
                out.push(CUT);
                put(*whole as u64, &mut out);
                put_position(after, *taken, &mut out);
            }
        }
        out
    }

    /// The carry in at most about so many bytes, if long strings are what makes it long. Of the first of them the
    /// beginning is kept, and of what follows nothing: the row itself, found by its place, has the rest.
    pub fn shortened(&self, bytes_max: usize) -> Option<Self> {
        let Self::Sorted { after, taken } = self else { return None };
        let mut left = bytes_max.checked_sub(POSITION_BYTES + after.place.len())?;
        let mut keys = Vec::new();
        for (whole, key) in after.keys.iter().enumerate() {
            let mut bytes = Vec::new();
            put_key(key, &mut bytes);
            if bytes.len() <= left {
                left -= bytes.len();
                keys.push(key.clone());
                continue;
            }
            let text = key.as_str()?;
            let most = left.checked_sub(KEY_BYTES)?.min(text.len());
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end))?;
            keys.push(Val::text(&text[..end]));
            let after = Position { keys, place: after.place.clone(), row_of_item: after.row_of_item };
            return Some(Self::Cut { after, whole, taken: *taken });
        }
        None
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = || QueryError::InvalidContinuation("The continuation is damaged.");
        let mut reader = Reader { bytes };
        let carry = reader.carry().ok_or_else(damaged)?;
        if reader.bytes.is_empty() { Ok(carry) } else { Err(damaged()) }
    }
}

/// What a position takes besides its keys and its place, and a string besides its text, at most.
const POSITION_BYTES: usize = 48;
const KEY_BYTES: usize = 16;

fn put_position(after: &Position, taken: u64, out: &mut Vec<u8>) {
    put(taken, out);
    put(after.row_of_item, out);
    put_bytes(&after.place, out);
    put(after.keys.len() as u64, out);
    after.keys.iter().for_each(|key| put_key(key, out));
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
            EMITTED_AS_CREATED => Carry::EmittedAsCreated(self.number()?),
            SORTED => {
                let (after, taken) = self.position()?;
                Carry::Sorted { after, taken }
            }
            FROM => Carry::From(self.position()?.0),
            CUT => {
                let whole = usize::try_from(self.number()?).ok()?;
                let (after, taken) = self.position()?;
                let is_cut =
                    after.keys.len() == whole.checked_add(1)? && after.keys[whole].as_str().is_some();
                Carry::Cut { after: Some(after).filter(|_| is_cut)?, whole, taken }
            }
            _ => return None,
        })
    }

    fn position(&mut self) -> Option<(Position, u64)> {
        let taken = self.number()?;
        let row_of_item = self.number()?;
        let place = self.blob()?.to_vec();
        let count = self.number().filter(|count| *count <= MOST_KEYS)?;
        let keys = (0..count).map(|_| self.key()).collect::<Option<Vec<_>>>()?;
        Some((Position { keys, place, row_of_item }, taken))
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
