//! The bytes of a body, and how much more text they may stand for.

use super::{BinaryJsonError, BinaryJsonErrorKind};

pub(super) type Read<T> = Result<T, BinaryJsonError>;

pub(super) struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
    room: usize,
}

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8], room: usize) -> Source<'a> {
        Source { bytes, at: 0, room }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// Continues somewhere else; reads there are checked as everywhere.
    pub fn jump(&mut self, at: usize) {
        self.at = at;
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn byte(&mut self) -> Read<u8> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.ends())?;
        self.at += 1;
        Ok(byte)
    }

    /// The next bytes. Nothing is allocated for a length that the body does not have.
    pub fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let end = self.at.checked_add(length).ok_or_else(|| self.ends())?;
        let taken = self.bytes.get(self.at..end).ok_or_else(|| self.ends())?;
        self.at = end;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("as many bytes are taken as were asked for"))
    }

    /// An unsigned integer of 1 to 4 bytes.
    pub fn unsigned(&mut self, width: usize) -> Read<usize> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Where a payload of this length ends.
    pub fn end_of(&self, length: usize) -> Read<usize> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        end.ok_or_else(|| self.ends())
    }

    /// Counts text that the document will have. Called before the text is made.
    pub fn charge(&mut self, text: usize) -> Read<()> {
        self.room = self.room.checked_sub(text).ok_or_else(|| self.error(BinaryJsonErrorKind::TooLarge))?;
        Ok(())
    }

    pub fn error(&self, kind: BinaryJsonErrorKind) -> BinaryJsonError {
        BinaryJsonError { kind, offset: self.at }
    }

    /// An error of the marker that was read last.
    pub fn marker_error(&self, kind: BinaryJsonErrorKind) -> BinaryJsonError {
        BinaryJsonError { kind, offset: self.at.saturating_sub(1) }
    }

    fn ends(&self) -> BinaryJsonError {
        self.error(BinaryJsonErrorKind::UnexpectedEnd)
    }
}

/// Forms of one kind often differ in the width of their length only: 1, 2 or 4 bytes, in this order.
pub(super) fn width(form: u8) -> usize {
    1 << form
}
