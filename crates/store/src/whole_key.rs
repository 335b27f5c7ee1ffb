//! Keys that are told apart within one place.
//!
//! An item's place is its effective partition key and its id, and the EPKs of the older forms look at the beginning of
//! long strings only. So items of several keys may lie in one logical partition. A request for one of these keys must
//! see nothing of the others: not read it, not overwrite it, not delete it. That is decided by the item's own document.
//!
//! All of it is for keys that can share a place ([`PartitionKeyDef::may_share_place`]); for all others there is no
//! `WholeKey`, and nothing is compared.

use orrery_doc::{Doc, PartitionKey, PartitionKeyDef};

/// A key whose place may be that of other keys too.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeKey {
    def: PartitionKeyDef,
    key: PartitionKey,
}

impl WholeKey {
    /// The key, if items of its place have to be asked whether they are its own.
    pub fn of(def: &PartitionKeyDef, key: &PartitionKey) -> Option<WholeKey> {
        def.may_share_place(key).then(|| WholeKey { def: def.clone(), key: key.clone() })
    }

    /// Whether a document that lies in the place of the key has this very key.
    pub fn is_of(&self, doc: &Doc) -> bool {
        PartitionKey::extract(&self.def, doc.as_ref()) == self.key
    }
}
