//! Frames: how bytes on the wire become headers and values, and back.
//!
//! ```text
//!   length 4 | kind of request, or status 4 | activity id 16 | tokens ... || length 4 | payload ...
//!   `----------------- so many bytes ------------------------------------'  if a token says so
//! ```
//!
//! Nothing here allocates for what is read: values are slices of the frame, and the task that reads a frame from a socket looks
//! at its length first. A frame that is not well-formed ends its connection, for there is no way to find the next one.

use super::token::{Kind, Numbered, Size};

/// The head of every frame.
pub(crate) const HEAD_BYTES: usize = 24;
/// The length in front of a payload.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the frame is shorter or longer than a frame may be")]
    Length,
    #[error("a token ends behind its frame")]
    Truncated,
    #[error("a token has a type that there is not")]
    Kind,
    #[error("a token has another type than its number stands for")]
    OtherKind,
    #[error("a token stands twice in its frame")]
    Twice,
    #[error("a token is missing without which no frame can be answered")]
    Missing,
    #[error("a token has a value that it cannot have")]
    Value,
}

/// The first bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bytes of head and tokens.
    pub length: usize,
    pub resource: u16,
    pub operation: u16,
    pub activity: [u8; 16],
}

impl Head {
    /// Reads a head that may announce so many bytes.
    pub fn read(bytes: &[u8; HEAD_BYTES], bytes_max: usize) -> Result<Head, Malformed> {
        let length = u32::from_le_bytes(array(&bytes[..4])) as usize;
        if !(HEAD_BYTES..=bytes_max).contains(&length) {
            return Err(Malformed::Length);
        }
        Ok(Head {
            length,
            resource: u16::from_le_bytes(array(&bytes[4..6])),
            operation: u16::from_le_bytes(array(&bytes[6..8])),
            activity: array(&bytes[8..24]),
        })
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the caller has cut so many bytes")
}

/// A token as it stands in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'f> {
    pub id: u16,
    pub kind: Kind,
    /// Without the length in front of it.
    bytes: &'f [u8],
}

impl<'f> Token<'f> {
    pub fn byte(&self) -> Result<u8, Malformed> {
        self.fixed(Kind::Byte).map(|[byte]: [u8; 1]| byte)
    }

    /// What the number stands for, if this is known; its value then has to have the type that goes with it.
    pub fn meaning<T: Numbered>(&self) -> Result<Option<T>, Malformed> {
        match T::of(self.id) {
            Some(known) if known.kind() != self.kind => Err(Malformed::OtherKind),
            known => Ok(known),
        }
    }

    /// A header that is true or false.
    pub fn flag(&self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Value),
        }
    }

    pub fn number(&self) -> Result<u32, Malformed> {
        self.fixed(Kind::ULong).map(u32::from_le_bytes)
    }

    pub fn guid(&self) -> Result<[u8; 16], Malformed> {
        self.fixed(Kind::Guid)
    }

    pub fn text(&self) -> Result<&'f str, Malformed> {
        match self.kind {
            Kind::SmallString | Kind::String | Kind::ULongString => {
                std::str::from_utf8(self.bytes).map_err(|_| Malformed::Value)
            }
            _ => Err(Malformed::OtherKind),
        }
    }

    pub fn bytes(&self) -> Result<&'f [u8], Malformed> {
        match self.kind {
            Kind::SmallBytes | Kind::Bytes | Kind::ULongBytes => Ok(self.bytes),
            _ => Err(Malformed::OtherKind),
        }
    }

    #[cfg(test)]
    pub fn position(&self) -> Result<u64, Malformed> {
        self.fixed(Kind::LongLong).map(u64::from_le_bytes)
    }

    /// Writes the token as it was read.
    #[cfg(test)]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_le_bytes());
        out.push(self.kind as u8);
        if let Size::Counted(width) = self.kind.size() {
            out.extend_from_slice(&self.bytes.len().to_le_bytes()[..width]);
        }
        out.extend_from_slice(self.bytes);
    }

    fn fixed<const N: usize>(&self, kind: Kind) -> Result<[u8; N], Malformed> {
        debug_assert_eq!(kind.size(), Size::Fixed(N), "a type has one size");
        if self.kind == kind { Ok(array(self.bytes)) } else { Err(Malformed::OtherKind) }
    }
}

/// The tokens of a frame, one after the other.
#[derive(Clone)]
pub(crate) struct Tokens<'f>(&'f [u8]);

impl<'f> Tokens<'f> {
    /// What stands behind the head of a frame.
    pub fn of(bytes: &'f [u8]) -> Tokens<'f> {
        Tokens(bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'f [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn token(&mut self) -> Result<Token<'f>, Malformed> {
        let id = u16::from_le_bytes(array(self.take(2)?));
        let kind = Kind::of(self.take(1)?[0]).ok_or(Malformed::Kind)?;
        let count = match kind.size() {
            Size::Fixed(count) => count,
            Size::Counted(width) => {
                let mut length = [0; 4];
                length[..width].copy_from_slice(self.take(width)?);
                u32::from_le_bytes(length) as usize
            }
        };
        Ok(Token { id, kind, bytes: self.take(count)? })
    }
}

impl<'f> Iterator for Tokens<'f> {
    type Item = Result<Token<'f>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let token = self.token();
        if token.is_err() {
            self.0 = &[];
        }
        Some(token)
    }
}

/// Writes the head and the tokens of an answer.
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub fn new(status: u16, activity: &[u8; 16]) -> Writer {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&u32::from(status).to_le_bytes());
        out.extend_from_slice(activity);
        Writer { out }
    }

    pub fn byte(&mut self, token: impl Numbered, value: u8) {
        self.begin(token, Kind::Byte);
        self.out.push(value);
    }

    pub fn number(&mut self, token: impl Numbered, value: u32) {
        self.begin(token, Kind::ULong);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn position(&mut self, token: impl Numbered, value: u64) {
        self.begin(token, Kind::LongLong);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn float(&mut self, token: impl Numbered, value: f64) {
        self.begin(token, Kind::Double);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn text(&mut self, token: impl Numbered, text: &str) {
        self.text_by(token, |out| out.extend_from_slice(text.as_bytes()));
    }

    /// A text that is written where it belongs. One that is too long for its token is left out, as a header would be.
    pub fn text_by(&mut self, token: impl Numbered, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.out.len();
        self.out.extend_from_slice(&token.id().to_le_bytes());
        self.out.push(token.kind() as u8);
        let Size::Counted(width) = token.kind().size() else { unreachable!("a text has a length") };
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4][..width]);
        write(&mut self.out);
        let length = self.out.len() - at - width;
        match length.checked_shr(8 * width as u32) {
            Some(0) => self.out[at..at + width].copy_from_slice(&length.to_le_bytes()[..width]),
            _ => self.out.truncate(begin),
        }
    }

    fn begin(&mut self, token: impl Numbered, kind: Kind) {
        debug_assert_eq!(token.kind(), kind, "clients read a token by the type that they know");
        self.out.extend_from_slice(&token.id().to_le_bytes());
        self.out.push(kind as u8);
    }

    /// The frame up to its payload, and the length of that if there is one.
    pub fn finish(mut self, payload: Option<usize>) -> Vec<u8> {
        let length = u32::try_from(self.out.len()).expect("tokens are bounded");
        self.out[..4].copy_from_slice(&length.to_le_bytes());
        if let Some(payload) = payload {
            let payload = u32::try_from(payload).expect("answers are bounded");
            self.out.extend_from_slice(&payload.to_le_bytes());
        }
        self.out
    }
}

#[cfg(test)]
mod tests;
