//! The stored form of an item: a fixed header, then the document.
//!
//! ```text
//! format u8 | flags u8 | lsn u64 | place u16 | time u64 | etag u64 | ttl u32 | rid u64 | json bytes u32 | document
//! ```
//! System properties are rendered from the header and never stored in the document.
//! `ttl` is what the item says about its own life: see [`crate::TTL_BY_DEFAULT`] and [`crate::TTL_NEVER`].

use bytes::Bytes;
use orrery_doc::{Doc, DocRef};

use crate::{Etag, Lsn};

const FORMAT: u8 = 1;
pub const HEADER_BYTES: usize = 44;

/// Set when the client asked that this item stay out of the index.
pub const FLAG_UNINDEXED: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemHeader {
    pub flags: u8,
    pub lsn: Lsn,
    /// Place within its transaction.
    pub place: u16,
    /// Time of the write in units of 100 ns since 1970.
    pub time: u64,
    pub etag: Etag,
    /// Seconds that the item lives after its write, unless it is one of the two values with a name.
    pub ttl: u32,
    pub rid: u64,
    /// Bytes of the document as compact JSON, without system properties: what sizes and charges count.
    pub json_bytes: u32,
}

/// One version of an item.
#[derive(Clone, Debug)]
pub struct Item {
    pub header: ItemHeader,
    pub doc: Doc,
}

/// Stored bytes that are not an item of a format this build knows.
#[derive(Clone, Debug, thiserror::Error)]
#[error("stored item is damaged or of a newer format")]
pub struct DamagedItem;

impl Item {
    pub fn encode(&self) -> Vec<u8> {
        let h = &self.header;
        let doc = self.doc.bytes();
        let mut out = Vec::with_capacity(HEADER_BYTES + doc.len());
        out.extend_from_slice(&[FORMAT, h.flags]);
        out.extend_from_slice(&h.lsn.0.to_be_bytes());
        out.extend_from_slice(&h.place.to_be_bytes());
        out.extend_from_slice(&h.time.to_be_bytes());
        out.extend_from_slice(&h.etag.0.to_be_bytes());
        out.extend_from_slice(&h.ttl.to_be_bytes());
        out.extend_from_slice(&h.rid.to_be_bytes());
        out.extend_from_slice(&h.json_bytes.to_be_bytes());
        debug_assert_eq!(out.len(), HEADER_BYTES);
        out.extend_from_slice(doc);
        out
    }

    pub fn decode(bytes: &Bytes) -> Result<Item, DamagedItem> {
        let header = ItemHeader::decode(bytes)?;
        Ok(Item { header, doc: Doc::from_trusted(bytes.slice(HEADER_BYTES..)) })
    }

    pub fn root(&self) -> DocRef<'_> {
        self.doc.as_ref()
    }
}

impl ItemHeader {
    pub fn decode(bytes: &[u8]) -> Result<ItemHeader, DamagedItem> {
        if bytes.len() <= HEADER_BYTES || bytes[0] != FORMAT {
            return Err(DamagedItem);
        }
        Ok(ItemHeader {
            flags: bytes[1],
            lsn: Lsn(read_u64(bytes, 2)),
            place: u16::from_be_bytes([bytes[10], bytes[11]]),
            time: read_u64(bytes, 12),
            etag: Etag(read_u64(bytes, 20)),
            ttl: read_u32(bytes, 28),
            rid: read_u64(bytes, 32),
            json_bytes: read_u32(bytes, 40),
        })
    }

    /// The service's `_ts`.
    pub fn ts(&self) -> u64 {
        self.time / TICKS_PER_SECOND
    }
}

pub const TICKS_PER_SECOND: u64 = 10_000_000;

pub(crate) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}
