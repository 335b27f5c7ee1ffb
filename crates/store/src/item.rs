//! The stored form of an item: a fixed header, then the document.
//!
//! ```text
//! format u8 | flags u8 | lsn u64 | place u16 | time u64 | etag u64 | ttl u32 | rid u64 | json bytes u32
//!           | with FLAG_ORIGIN: region u16, origin lsn u64, resolution time u64 | document
//! ```
//! System properties are rendered from the header and never stored in the document.
//! `ttl` is what the item says about its own life: see [`crate::TTL_BY_DEFAULT`] and [`crate::TTL_NEVER`].

use bytes::Bytes;
use orrery_doc::{Doc, DocBuilder, DocRef};

use crate::{Etag, Lsn};

const FORMAT: u8 = 1;
pub const HEADER_BYTES: usize = 44;

/// Set when the client asked that this item stay out of the index.
pub const FLAG_UNINDEXED: u8 = 1;
/// Set when the item was written in another region. The header is then followed by its origin.
pub const FLAG_ORIGIN: u8 = 2;
/// Set when the client asked that this item be written without its links.
pub const FLAG_UNLINKED: u8 = 4;
/// Flags of which this build knows what they mean for what follows.
const FLAGS_KNOWN: u8 = FLAG_UNINDEXED | FLAG_ORIGIN | FLAG_UNLINKED;
const ORIGIN_BYTES: usize = 2 + 8 + 8;

/// Where an item was written, if not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub region: u16,
    /// Its place in the log of that region.
    pub lsn: Lsn,
    /// By which it was compared with writes of other regions, in units of 100 ns since 1970.
    pub resolution_time: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemHeader {
    /// Without [`FLAG_ORIGIN`]: the origin tells that.
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
    pub origin: Option<Origin>,
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
    /// What stands for an item that is not there.
    pub(crate) fn none() -> Item {
        let header = ItemHeader {
            flags: 0,
            lsn: Lsn(0),
            place: 0,
            time: 0,
            etag: Etag(0),
            ttl: 0,
            rid: 0,
            json_bytes: 0,
            origin: None,
        };
        Item { header, doc: DocBuilder::new().finish() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let h = &self.header;
        let doc = self.doc.bytes();
        debug_assert_eq!(h.flags & FLAG_ORIGIN, 0, "the origin tells that itself");
        let origin_flag = if h.origin.is_some() { FLAG_ORIGIN } else { 0 };
        let mut out = Vec::with_capacity(h.stored_bytes() + doc.len());
        out.extend_from_slice(&[FORMAT, h.flags | origin_flag]);
        out.extend_from_slice(&h.lsn.0.to_be_bytes());
        out.extend_from_slice(&h.place.to_be_bytes());
        out.extend_from_slice(&h.time.to_be_bytes());
        out.extend_from_slice(&h.etag.0.to_be_bytes());
        out.extend_from_slice(&h.ttl.to_be_bytes());
        out.extend_from_slice(&h.rid.to_be_bytes());
        out.extend_from_slice(&h.json_bytes.to_be_bytes());
        if let Some(origin) = &h.origin {
            out.extend_from_slice(&origin.region.to_be_bytes());
            out.extend_from_slice(&origin.lsn.0.to_be_bytes());
            out.extend_from_slice(&origin.resolution_time.to_be_bytes());
        }
        debug_assert_eq!(out.len(), h.stored_bytes());
        out.extend_from_slice(doc);
        out
    }

    pub fn decode(bytes: &Bytes) -> Result<Item, DamagedItem> {
        let header = ItemHeader::decode(bytes)?;
        Ok(Item { header, doc: Doc::from_trusted(bytes.slice(header.stored_bytes()..)) })
    }

    pub fn root(&self) -> DocRef<'_> {
        self.doc.as_ref()
    }
}

impl ItemHeader {
    pub fn decode(bytes: &[u8]) -> Result<ItemHeader, DamagedItem> {
        if bytes.len() <= HEADER_BYTES {
            return Err(DamagedItem);
        }
        match bytes[0] {
            FORMAT => ItemHeader::decode_first(bytes),
            _ => Err(DamagedItem),
        }
    }

    #[inline]
    fn decode_first(bytes: &[u8]) -> Result<ItemHeader, DamagedItem> {
        let flags = bytes[1];
        let is_known = flags & !FLAGS_KNOWN == 0;
        let has_origin = flags & FLAG_ORIGIN != 0;
        if !is_known || has_origin && bytes.len() <= HEADER_BYTES + ORIGIN_BYTES {
            return Err(DamagedItem);
        }
        Ok(ItemHeader {
            flags: flags & !FLAG_ORIGIN,
            lsn: Lsn(read_u64(bytes, 2)),
            place: u16::from_be_bytes([bytes[10], bytes[11]]),
            time: read_u64(bytes, 12),
            etag: Etag(read_u64(bytes, 20)),
            ttl: read_u32(bytes, 28),
            rid: read_u64(bytes, 32),
            json_bytes: read_u32(bytes, 40),
            origin: has_origin.then(|| Origin {
                region: read_u16(bytes, 44),
                lsn: Lsn(read_u64(bytes, 46)),
                resolution_time: read_u64(bytes, 54),
            }),
        })
    }

    /// Bytes in front of the document.
    #[inline]
    fn stored_bytes(&self) -> usize {
        if self.origin.is_some() { HEADER_BYTES + ORIGIN_BYTES } else { HEADER_BYTES }
    }

    /// Whether answers may leave out where the item and its attachments are.
    #[inline]
    pub fn is_unlinked(&self) -> bool {
        self.flags & FLAG_UNLINKED != 0
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

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

#[cfg(test)]
mod tests {
    use orrery_doc::json;

    use super::*;

    fn item(flags: u8, origin: Option<Origin>) -> Item {
        let doc = json::parse(br#"{"a":1}"#, 8).expect("JSON");
        let (lsn, etag) = (Lsn(2), Etag(4));
        let header =
            ItemHeader { flags, lsn, place: 3, time: 5, etag, ttl: 6, rid: 7, json_bytes: 7, origin };
        Item { header, doc }
    }

    #[test]
    fn an_item_reads_back_with_and_without_an_origin() {
        let origin = Origin { region: 9, lsn: Lsn(10), resolution_time: 11 };
        let all = FLAG_UNINDEXED | FLAG_UNLINKED;
        for item in
            [item(0, None), item(FLAG_UNINDEXED, None), item(FLAG_UNLINKED, None), item(all, Some(origin))]
        {
            let bytes = Bytes::from(item.encode());
            let read = Item::decode(&bytes).expect("an item");
            assert_eq!((read.header, read.doc.bytes()), (item.header, item.doc.bytes()));
            assert_eq!(Bytes::from(read.encode()), bytes);
        }
        let (plain, other) = (item(0, None).encode(), item(0, Some(origin)).encode());
        assert_eq!(plain.len() + ORIGIN_BYTES, other.len(), "only items of other regions are longer");
    }

    #[test]
    fn other_formats_flags_and_lengths_are_refused() {
        let origin = Origin { region: 9, lsn: Lsn(10), resolution_time: 11 };
        let bytes = item(0, Some(origin)).encode();
        for end in 0..=HEADER_BYTES + ORIGIN_BYTES {
            assert!(ItemHeader::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
        for (place, value) in [(0, 2), (1, 8), (1, 0x80)] {
            let mut bytes = bytes.clone();
            bytes[place] = value;
            assert!(ItemHeader::decode(&bytes).is_err(), "{value} at {place}");
        }
    }
}
