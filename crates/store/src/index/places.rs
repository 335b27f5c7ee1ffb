//! Places of items, as they stand at the end of index keys and of item keys: the EPK, then the id.

use orrery_doc::{Epk, EpkRange};

use crate::limits::{INDEX_COLLECTED_BYTES_MAX, INDEX_COLLECTED_MAX};
use crate::{ItemId, ItemKey};

/// The encoded place of an item.
pub fn place_of(key: &ItemKey) -> Vec<u8> {
    let mut place = Vec::with_capacity(24 + key.id.len());
    key.epk.encode_key(&mut place);
    place.extend_from_slice(key.id.as_bytes());
    place
}

/// The item that a place names.
pub fn key_at(place: &[u8]) -> Option<ItemKey> {
    let (epk, id) = Epk::decode_key(place)?;
    Some(ItemKey { epk, id: ItemId::new(id).ok()? })
}

/// A half-open range of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceRange {
    pub lower: Vec<u8>,
    pub upper: Vec<u8>,
}

impl PlaceRange {
    /// The places of an EPK range that lie behind `after`.
    pub fn new(range: &EpkRange, after: Option<&ItemKey>) -> PlaceRange {
        let mut lower = boundary(&range.min);
        if let Some(after) = after {
            // With a zero behind it, it is the very next byte string.
            let mut next = place_of(after);
            next.push(0);
            lower = lower.max(next);
        }
        PlaceRange { lower, upper: boundary(&range.max) }
    }

    pub fn contains(&self, place: &[u8]) -> bool {
        self.lower.as_slice() <= place && place < self.upper.as_slice()
    }
}

/// The terminator sorts below every continuation, so a boundary without it lies before all keys that start
/// with its bytes.
fn boundary(epk: &Epk) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    epk.encode_key(&mut bytes);
    bytes.truncate(bytes.len() - 2);
    bytes
}

/// Many places in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    bytes: Vec<u8>,
    spans: Vec<(u32, u32)>,
}

impl Places {
    /// Adds a place; refuses it when there are too many.
    pub fn push(&mut self, place: &[u8]) -> bool {
        if self.spans.len() >= INDEX_COLLECTED_MAX
            || self.bytes.len() + place.len() > INDEX_COLLECTED_BYTES_MAX
        {
            return false;
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(place);
        self.spans.push((start, self.bytes.len() as u32));
        true
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// What they take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<(u32, u32)>() * self.spans.capacity()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.spans.get(at).map(|&span| slice(&self.bytes, span))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.spans.iter().map(|&span| slice(&self.bytes, span))
    }

    /// Brings the places into key order, each once.
    pub fn sort(&mut self) {
        let Places { bytes, spans } = self;
        spans.sort_unstable_by(|&a, &b| slice(bytes, a).cmp(slice(bytes, b)));
        spans.dedup_by(|a, b| slice(bytes, *a) == slice(bytes, *b));
    }

    /// Whether a place is among them. They must be sorted.
    pub fn contains(&self, place: &[u8]) -> bool {
        self.get(self.lower_bound(0, place)) == Some(place)
    }

    /// The number of the first place, from `from` on, that is not below `place`. They must be sorted.
    pub(super) fn lower_bound(&self, from: usize, place: &[u8]) -> usize {
        from + self.spans[from..].partition_point(|&span| slice(&self.bytes, span) < place)
    }
}

fn slice(bytes: &[u8], (start, end): (u32, u32)) -> &[u8] {
    &bytes[start as usize..end as usize]
}
