//! Whose items lie in a logical partition.
//!
//! Several keys may have one place, and a reader of one of them must see nothing of the others. So a reader that counts
//! items without a look at them has to know that all of them are its own. The size of a logical partition says so: it keeps
//! a digest of the key as long as there is only one.

use orrery_doc::{Doc, PartitionKey, PartitionKeyDef};
use sha2::{Digest, Sha256};

/// Bytes of a digest: nobody finds another key with the same.
pub(crate) const DIGEST_BYTES: usize = 16;

/// What is known of the keys of some items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Nothing, or that they are several.
    #[default]
    Unknown,
    /// They have one key, and this is its digest.
    One([u8; DIGEST_BYTES]),
}

impl Owner {
    /// The owner of items of a key. A key whose place no other has needs none.
    pub fn of(def: &PartitionKeyDef, key: &PartitionKey) -> Owner {
        if !def.may_share_place(key) {
            return Owner::Unknown;
        }
        let digest = Sha256::digest(key.identity());
        let mut first = [0; DIGEST_BYTES];
        first.copy_from_slice(&digest[..DIGEST_BYTES]);
        Owner::One(first)
    }

    pub(crate) fn of_item(def: &PartitionKeyDef, doc: &Doc) -> Owner {
        Owner::of(def, &PartitionKey::extract(def, doc.as_ref()))
    }

    /// The owner of items of both.
    pub(crate) fn and(self, other: Owner) -> Owner {
        if self == other { self } else { Owner::Unknown }
    }
}
