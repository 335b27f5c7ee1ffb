//! Where a term ends.

use super::{MAX_STRING_BYTES, TermOrder, TermType};

/// The length of the term that `bytes` start with, and whether it says everything about its value. With `turned`, all
/// bits of the term are, as in a part of an index that descends.
pub fn term_length(bytes: &[u8], order: TermOrder, turned: bool) -> Option<(usize, bool)> {
    let term = Turned { bytes, mask: if turned { 0xff } else { 0 } };
    let kind = TermType::of_term(&[term.byte(0)?], order)?;
    let fixed = |length: usize| (bytes.len() >= length).then_some((length, true));
    match kind {
        TermType::MinKey
        | TermType::Undefined
        | TermType::BsonUndefined
        | TermType::Null
        | TermType::Bool
        | TermType::MaxKey => fixed(1),
        TermType::Number if order == TermOrder::Sql => fixed(if term.byte(9)? == 0x80 { 10 } else { 12 }),
        TermType::Number if term.byte(9)? == 0x80 => fixed(10),
        TermType::Number => term.digits_end(),
        TermType::Day => fixed(5),
        TermType::Date | TermType::Timestamp | TermType::Time => fixed(9),
        TermType::ObjectId => fixed(13),
        TermType::TimeUuid | TermType::Duration => fixed(17),
        TermType::Uuid => fixed(18),
        TermType::Binary if order == TermOrder::Bson => term.sized_end(1, 0),
        TermType::DbPointer => term.sized_end(0, 12),
        TermType::Regex => match term.text_end(1)? {
            (end, true) => term.text_end(end),
            cut => Some(cut),
        },
        TermType::String
        | TermType::Array
        | TermType::Object
        | TermType::Map
        | TermType::Binary
        | TermType::Code
        | TermType::ScopedCode
        | TermType::Inet => term.text_end(1),
    }
}

/// Bytes of which all bits may be turned.
struct Turned<'a> {
    bytes: &'a [u8],
    mask: u8,
}

impl Turned<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).map(|byte| byte ^ self.mask)
    }

    /// The end of escaped bytes: the first zero that is no part of them, and what follows it.
    fn text_end(&self, start: usize) -> Option<(usize, bool)> {
        let mut at = start;
        loop {
            at += self.bytes.get(at..)?.iter().position(|byte| byte ^ self.mask == 0)?;
            match self.byte(at + 1)? {
                0xff => at += 2,
                end => return Some((at + 2, end == 0)),
            }
        }
    }

    /// The end of bytes whose length stands in front of them.
    fn sized_end(&self, front: usize, behind: usize) -> Option<(usize, bool)> {
        let length = (1..5).try_fold(0usize, |length, at| Some(length << 8 | usize::from(self.byte(at)?)))?;
        let complete = length <= MAX_STRING_BYTES;
        let end = 5 + front + length.min(MAX_STRING_BYTES) + if complete { behind } else { 0 };
        (self.bytes.len() >= end).then_some((end, complete))
    }

    /// The end of the digits of a number that no double is.
    fn digits_end(&self) -> Option<(usize, bool)> {
        // The double nearest to a small number is zero, and then only the side tells its sign.
        let is_zero = self.byte(1)? == 0x80 && (2..9).all(|at| self.byte(at) == Some(0));
        let negative = self.byte(1)? < 0x80 || (is_zero && self.byte(9)? < 0x80);
        let mask = if negative { 0xff } else { 0 };
        (15..self.bytes.len()).find_map(|at| match self.byte(at)? ^ mask {
            0 => Some((at + 1, true)),
            0xff => Some((at + 1, false)),
            _ => None,
        })
    }
}
