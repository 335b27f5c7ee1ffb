//! What tells the items of a logical partition apart: bytes that a gateway chooses.
//!
//! The store orders items by them and compares them, and knows nothing else about them. NoSQL takes the UTF-8 of the
//! document's `id`, Table that of the row key, MongoDB the term of `_id`, CQL the terms of the clustering columns. An id
//! may be empty, so none stands for "before the first item" or "behind the last": who means a bound says so.
//!
//! Ids are in every key and every answer and are cloned on the way. Usual ones, such as a UUID in letters, stand in the value
//! itself; longer ones are shared.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::limits::ITEM_ID_BYTES_MAX;

/// Ids of so many bytes need no memory of their own. A UUID has 36 letters.
const INLINE_BYTES: usize = 38;

/// An item's key within its logical partition.
#[derive(Clone)]
pub struct ItemId(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

/// Bytes that are too many for an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an item id has at most {ITEM_ID_BYTES_MAX} bytes, and this one has {0}")]
pub struct ItemIdTooLong(pub usize);

impl ItemId {
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<ItemId, ItemIdTooLong> {
        let bytes = bytes.as_ref();
        if bytes.len() > ITEM_ID_BYTES_MAX {
            return Err(ItemIdTooLong(bytes.len()));
        }
        if bytes.len() > INLINE_BYTES {
            return Ok(ItemId(Repr::Shared(bytes.into())));
        }
        let mut inline = [0; INLINE_BYTES];
        inline[..bytes.len()].copy_from_slice(bytes);
        Ok(ItemId(Repr::Inline { len: bytes.len() as u8, bytes: inline }))
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Shared(bytes) => bytes,
        }
    }

    /// The text of an id that is text, as those of NoSQL are.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }

    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

/// The empty id.
impl Default for ItemId {
    fn default() -> ItemId {
        ItemId(Repr::Inline { len: 0, bytes: [0; INLINE_BYTES] })
    }
}

/// Ids that stand in the program.
impl From<&'static str> for ItemId {
    fn from(text: &'static str) -> ItemId {
        ItemId::new(text).expect("ids in the program are short")
    }
}

impl PartialEq for ItemId {
    fn eq(&self, other: &ItemId) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ItemId {}

impl PartialOrd for ItemId {
    fn partial_cmp(&self, other: &ItemId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ItemId {
    fn cmp(&self, other: &ItemId) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for ItemId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// The text, or bytes that are none as a program writes them. Reports name items so.
impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => f.write_str(text),
            None => write!(f, "{}", self.as_bytes().escape_ascii()),
        }
    }
}

impl fmt::Debug for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_compared_by_their_bytes_wherever_they_stand() {
        let lengths = [0, 1, INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1, ITEM_ID_BYTES_MAX];
        let made: Vec<Vec<u8>> =
            lengths.iter().flat_map(|&length| [0x00, b'a', 0xFF].map(|byte| vec![byte; length])).collect();
        for a in &made {
            let id = ItemId::new(a).expect("not too long");
            assert_eq!((id.as_bytes(), id.len(), id.is_empty()), (a.as_slice(), a.len(), a.is_empty()));
            for b in &made {
                let other = ItemId::new(b).expect("not too long");
                assert_eq!(id.cmp(&other), a.cmp(b), "{id:?} {other:?}");
                assert_eq!(HashSet::from([id.clone(), other]).len() == 1, a == b);
            }
        }
    }

    #[test]
    fn ids_have_a_limit_and_need_no_encoding() {
        let long = vec![b'x'; ITEM_ID_BYTES_MAX + 1];
        assert_eq!(ItemId::new(&long), Err(ItemIdTooLong(ITEM_ID_BYTES_MAX + 1)));
        let bytes = ItemId::new([0xFF, 0x00, b'a']).expect("a short id");
        assert_eq!((bytes.as_str(), bytes.to_string()), (None, "\\xff\\x00a".to_owned()));
        assert_eq!(ItemId::from("é").to_string(), "é");
    }
}
