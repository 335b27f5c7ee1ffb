//! Keys that are told apart within one place.
//!
//! An item's place is its effective partition key and its id, and several keys may have one EPK: those of the older forms
//! look at the beginning of long strings only, and for the others a key with the hash of another is easily made. A request
//! for one of these keys must see nothing of the others: not read it, not overwrite it, not delete it. That is decided by the
//! item's own document.
//!
//! Writes always compare ([`crate::Txn::key`]). Readers do for keys that can share a place
//! ([`PartitionKeyDef::may_share_place`]); for all others there is no `WholeKey`.

use orrery_doc::{Doc, Epk, PartitionKey, PartitionKeyDef, epk};

use crate::Owner;

/// A key whose place may be that of other keys too, or the first levels of one.
#[derive(Clone, Copy, Debug)]
pub struct WholeKey<'a> {
    def: &'a PartitionKeyDef,
    key: &'a PartitionKey,
}

impl<'a> WholeKey<'a> {
    /// The key, if items of its place have to be asked whether they are its own.
    pub fn of(def: &'a PartitionKeyDef, key: &'a PartitionKey) -> Option<WholeKey<'a>> {
        def.may_share_place(key).then_some(WholeKey { def, key })
    }

    /// The one place of its items and their owner; a prefix has many places.
    pub(crate) fn own_place(&self) -> Option<(Epk, Owner)> {
        self.key.is_full(self.def).then(|| (epk(self.def, self.key), Owner::of(self.def, self.key)))
    }

    /// Whether a document that lies in the place of the key has this very key.
    pub fn is_of(&self, doc: &Doc) -> bool {
        self.key.is_of(self.def, doc.as_ref())
    }
}
