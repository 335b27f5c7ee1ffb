//! Values that carry the time at which they were written, as each column of a CQL row does.
//!
//! Readers that do not ask for cells see through them: [`Value`](crate::Value) is what the cell holds, and a deleted
//! one is not there. Only what merges writes by their times, or lets them expire, reads a [`Cell`]. All times are
//! microseconds since 1970; the one of writing is whatever the client said it was.

use crate::format::{TAG_CELL, read_blob};
use crate::value::Value;

const HAS_EXPIRY: u8 = 0x01;
const IS_DELETED: u8 = 0x02;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell<'a> {
    /// Which of two writes is the later.
    pub written: i64,
    pub expiry: Option<Expiry>,
    pub content: Content<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content<'a> {
    Value(Value<'a>),
    /// A tombstone: what was written before is gone. The server's clock at the deletion tells how long it is kept.
    Deleted {
        at: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// The first moment at which the cell is not there any more.
    pub at: i64,
    /// The seconds that were asked for.
    pub seconds: u32,
}

impl<'a> Cell<'a> {
    /// Whether there is a value at this time.
    pub fn is_live(&self, now: i64) -> bool {
        matches!(self.content, Content::Value(_)) && self.expiry.is_none_or(|expiry| now < expiry.at)
    }

    /// Reads the cell that starts at the first byte, if there is one.
    pub(crate) fn of_encoded(value: &'a [u8]) -> Option<Cell<'a>> {
        let (&TAG_CELL, payload) = value.split_first()? else { return None };
        Cell::read_parts(read_blob(payload)?.0).map(|(cell, _)| cell)
    }

    /// Reads a payload, with the bytes of the value inside, if it has one.
    pub(crate) fn read_parts(payload: &'a [u8]) -> Option<(Cell<'a>, Option<&'a [u8]>)> {
        let (&flags, rest) = payload.split_first()?;
        let (written, mut rest) = number(rest)?;
        let mut expiry = None;
        if flags & HAS_EXPIRY != 0 {
            let (at, behind) = number(rest)?;
            let (seconds, behind) = behind.split_first_chunk::<4>()?;
            expiry = Some(Expiry { at, seconds: u32::from_le_bytes(*seconds) });
            rest = behind;
        }
        match flags & !HAS_EXPIRY {
            // A cell inside a cell would have two times.
            0 if rest.first() != Some(&TAG_CELL) => {
                let content = Content::Value(Value::try_read(rest)?);
                Some((Cell { written, expiry, content }, Some(rest)))
            }
            IS_DELETED => {
                let (at, behind) = number(rest)?;
                let content = Content::Deleted { at };
                behind.is_empty().then_some((Cell { written, expiry, content }, None))
            }
            _ => None,
        }
    }

    /// Appends everything in front of the value.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>) {
        let deleted = match self.content {
            Content::Value(_) => None,
            Content::Deleted { at } => Some(at),
        };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(flag(self.expiry.is_some(), HAS_EXPIRY) | flag(deleted.is_some(), IS_DELETED));
        out.extend_from_slice(&self.written.to_le_bytes());
        if let Some(expiry) = self.expiry {
            out.extend_from_slice(&expiry.at.to_le_bytes());
            out.extend_from_slice(&expiry.seconds.to_le_bytes());
        }
        if let Some(at) = deleted {
            out.extend_from_slice(&at.to_le_bytes());
        }
    }
}

fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((i64::from_le_bytes(*number), rest))
}
