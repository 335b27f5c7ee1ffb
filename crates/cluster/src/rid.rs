//! Resource ids as the service makes them.
//!
//! A database is 4 bytes, a container 8, what lives in a container 16, an offer 3, a user 8, a permission 16.
//! Bytes are big-endian, shown in base64 with `/` replaced by `-`.
//! Byte 4 of a container has its high bit set, which tells it from a user.
//! The high nibble of the last byte tells what a 16-byte id names.

use std::fmt;

use crate::catalog::ChildKind;
use crate::resource::ResourceKind;

/// The id of any resource, at most 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rid {
    bytes: [u8; 16],
    len: u8,
}

/// The form of a [`Rid`] that clients see, on the stack: every item that is shown carries several.
pub struct RidText {
    bytes: [u8; 24],
    len: usize,
}

impl RidText {
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

impl Rid {
    /// Stands for the account, as the owner of what is below no database. Databases are numbered from one.
    pub const ACCOUNT: Rid = Rid { bytes: [0; 16], len: 4 };

    pub fn database(number: u32) -> Rid {
        Rid::from_slice(&number.to_be_bytes())
    }

    pub fn container(database: Rid, number: u32) -> Rid {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&database.bytes[..4]);
        bytes[4..].copy_from_slice(&(number | 0x8000_0000).to_be_bytes());
        Rid::from_slice(&bytes)
    }

    pub fn offer(number: u32) -> Rid {
        Rid::from_slice(&number.to_be_bytes()[1..])
    }

    /// What lives in a database beside containers: the high bit of byte 4 stays clear.
    pub fn user(database: Rid, number: u32) -> Rid {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&database.bytes[..4]);
        bytes[4..].copy_from_slice(&(number & 0x7FFF_FFFF).to_be_bytes());
        Rid::from_slice(&bytes)
    }

    /// What lives in a container: `number` fills 60 bits, the kind the last 4.
    pub fn child(container: Rid, kind: ResourceKind, number: u64) -> Rid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&container.bytes[..8]);
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes[15] = (bytes[15] & 0x0F) | (child_tag(kind) << 4);
        Rid::from_slice(&bytes)
    }

    /// The number given to [`Rid::child`].
    pub fn child_number(&self) -> Option<u64> {
        let mut bytes: [u8; 8] = self.bytes.get(8..16)?.try_into().ok()?;
        (self.len == 16).then(|| {
            bytes[7] &= 0x0F;
            u64::from_le_bytes(bytes)
        })
    }

    /// The number of something that lies directly below `owner`.
    pub fn number_below(&self, owner: Rid) -> Option<u32> {
        if owner.len == 0 || !self.as_bytes().starts_with(owner.as_bytes()) {
            return None;
        }
        match (owner.len, self.len) {
            (4, 8) => Some(u32::from_be_bytes(self.bytes[4..8].try_into().ok()?) & 0x7FFF_FFFF),
            (8, 16) => u32::try_from(self.child_number()?).ok(),
            _ => None,
        }
    }

    /// What this lies directly below, if it is below anything.
    pub fn owner(&self) -> Option<Rid> {
        match self.len {
            8 => Some(Rid::from_slice(&self.bytes[..4])),
            16 => Some(Rid::from_slice(&self.bytes[..8])),
            _ => None,
        }
    }

    /// The first 4 bytes: the database that all of this belongs to.
    pub fn database_part(&self) -> Option<Rid> {
        (self.len >= 4).then(|| Rid::from_slice(&self.bytes[..4]))
    }

    /// The first 8 bytes, when they name a container.
    pub fn container_part(&self) -> Option<Rid> {
        (self.len >= 8 && self.bytes[4] & 0x80 != 0).then(|| Rid::from_slice(&self.bytes[..8]))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    pub fn from_slice(slice: &[u8]) -> Rid {
        let mut bytes = [0; 16];
        bytes[..slice.len()].copy_from_slice(slice);
        Rid { bytes, len: slice.len() as u8 }
    }

    /// The form shown to clients.
    pub fn text(&self) -> RidText {
        let len = self.len as usize;
        // What follows the id is zero, as base64 wants it.
        let mut padded = [0u8; 18];
        padded[..16].copy_from_slice(&self.bytes);
        let mut out = RidText { bytes: [b'='; 24], len: len.div_ceil(3) * 4 };
        for (four, three) in out.bytes[..out.len].chunks_exact_mut(4).zip(padded.chunks_exact(3)) {
            let joined = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            for (place, letter) in four.iter_mut().enumerate() {
                *letter = ALPHABET[(joined >> (18 - 6 * place)) as usize & 63];
            }
        }
        let padding = (3 - len % 3) % 3;
        out.bytes[out.len - padding..out.len].fill(b'=');
        out
    }

    /// Reads the form shown to clients; anything else, whatever its length, is `None`.
    pub fn parse(text: &str) -> Option<Rid> {
        // Padding is part of the form: without it, short names would pass for ids.
        // 24 characters without any decode to 18 bytes, which is no id, but must fit while we find out.
        if text.len() > 24 || !text.len().is_multiple_of(4) {
            return None;
        }
        let text = text.trim_end_matches('=').as_bytes();
        let (mut bytes, mut len, mut bits, mut held) = ([0u8; 18], 0, 0u32, 0u32);
        for &c in text {
            let six = match c {
                b'/' => 63,
                _ => ALPHABET.iter().position(|&a| a == c)?,
            };
            held = (held << 6) | six as u32;
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes[len] = (held >> bits) as u8;
                len += 1;
            }
        }
        matches!(len, 3 | 4 | 8 | 16).then(|| Rid::from_slice(&bytes[..len]))
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(self.text().as_bytes()).expect("the alphabet is ASCII"))
    }
}

impl fmt::Debug for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn child_tag(kind: ResourceKind) -> u8 {
    match kind {
        ResourceKind::PartitionKeyRange => 0x5,
        ResourceKind::Child(ChildKind::Function) => 0x6,
        ResourceKind::Child(ChildKind::Trigger) => 0x7,
        ResourceKind::Child(ChildKind::Procedure) => 0x8,
        _ => 0x0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_they_were_written() {
        let database = Rid::database(0x7a1b_3300);
        let container = Rid::container(database, 0x3c51_4600);
        let item = Rid::child(container, ResourceKind::Item, 1);
        assert_eq!(container.to_string(), "ehszALxRRgA=");
        assert_eq!(item.to_string(), "ehszALxRRgABAAAAAAAAAA==");
        for rid in [database, container, item, Rid::offer(77)] {
            assert_eq!(Rid::parse(&rid.to_string()), Some(rid));
        }
        assert_eq!(item.child_number(), Some(1));
        assert_eq!(item.container_part(), Some(container));
        assert_eq!(item.database_part(), Some(database));
    }

    #[test]
    fn a_partition_key_range_carries_its_tag() {
        let container = Rid::container(Rid::database(1), 1);
        assert!(Rid::child(container, ResourceKind::PartitionKeyRange, 0).to_string().ends_with("AAUA=="));
    }

    #[test]
    fn a_name_of_24_plain_characters_is_no_rid() {
        assert_eq!(Rid::parse("query-iterable-container"), None);
    }

    #[test]
    fn other_text_is_no_rid() {
        for text in
            ["", "A", "mydb12", "mydb1234", "not a rid", "====", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "é"]
        {
            assert_eq!(Rid::parse(text), None, "{text}");
        }
    }
}
