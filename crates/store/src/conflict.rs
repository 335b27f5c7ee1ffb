//! Writes that lost against others: the third sequence of a partition, beside the feed and the history.
//!
//! Where several regions write, or the last writes of a lost region come back, a write may meet a newer one. The one that is
//! not kept is kept here, for the operator who settles conflicts by hand. Entries stand under the LSN at which the conflict was found, so
//! the sequence is copied, continued after a split and read like the other two. One region that writes alone has none.
//!
//! ```text
//! format u8 | kind u8 | time u64 | region u16 | origin lsn u64 | place bytes u16 | EPK, id | item, unless deleted
//! ```

use bytes::Bytes;
use orrery_doc::Epk;

use crate::feed::FeedCursor;
use crate::item::{Item, read_u16, read_u64};
use crate::{Fault, ItemId, ItemKey, Lsn, keys};

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 1 + 1 + 8 + 2 + 8 + 2;

/// What the write that lost had done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    Created,
    Replaced,
    Deleted,
}

/// A write that lost.
#[derive(Clone, Debug)]
pub struct Conflict {
    pub at: FeedCursor,
    pub kind: ConflictKind,
    /// When it was found, in units of 100 ns since 1970.
    pub time: u64,
    /// Where it was written, and its place in the log of that region.
    pub region: u16,
    pub origin: Lsn,
    pub key: ItemKey,
    /// What was written; a delete wrote nothing.
    pub item: Option<Item>,
}

impl Conflict {
    pub fn encode(&self) -> Vec<u8> {
        let place = &keys::item(0, &self.key)[4..];
        let kind = match self.kind {
            ConflictKind::Created => 1,
            ConflictKind::Replaced => 2,
            ConflictKind::Deleted => 3,
        };
        let mut out = vec![FORMAT, kind];
        out.extend_from_slice(&self.time.to_be_bytes());
        out.extend_from_slice(&self.region.to_be_bytes());
        out.extend_from_slice(&self.origin.0.to_be_bytes());
        out.extend_from_slice(&(place.len() as u16).to_be_bytes());
        out.extend_from_slice(place);
        out.extend(self.item.iter().flat_map(Item::encode));
        out
    }

    pub fn decode(key: &[u8], value: &Bytes) -> Result<Conflict, Fault> {
        let (lsn, place) = keys::parse_conflict(key).ok_or_else(wrong)?;
        let at = FeedCursor { lsn: Lsn(lsn), place };
        let place = place_in(value)?;
        let (epk, id) = Epk::decode_key(place).ok_or_else(wrong)?;
        let id = ItemId::new(id).map_err(|_| wrong())?;
        let rest = value.slice(HEAD_BYTES + place.len()..);
        let item = || Item::decode(&rest).map_err(|error| Fault::Damaged(error.to_string()));
        let (kind, item) = match value[1] {
            1 => (ConflictKind::Created, Some(item()?)),
            2 => (ConflictKind::Replaced, Some(item()?)),
            3 if rest.is_empty() => (ConflictKind::Deleted, None),
            _ => return Err(wrong()),
        };
        let (time, region, origin) = (read_u64(value, 2), read_u16(value, 10), Lsn(read_u64(value, 12)));
        Ok(Conflict { at, kind, time, region, origin, key: ItemKey { epk, id }, item })
    }
}

fn wrong() -> Fault {
    Fault::Damaged("an entry of the conflicts".into())
}

/// The place of the item that an entry is about.
pub(crate) fn place_in(value: &[u8]) -> Result<&[u8], Fault> {
    match value.first() {
        Some(&FORMAT) if value.len() >= HEAD_BYTES => {
            let place_bytes = usize::from(read_u16(value, HEAD_BYTES - 2));
            value.get(HEAD_BYTES..HEAD_BYTES + place_bytes).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}
