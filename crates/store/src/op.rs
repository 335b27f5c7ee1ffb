//! What a client asks of a partition, and what it is told.

use std::sync::Arc;

use orrery_doc::{Doc, Epk, PartitionKey, json};

use crate::edit::{Edit, EditRefusal};
use crate::item::{FLAG_UNINDEXED, FLAG_UNLINKED, Item, ItemHeader};
use crate::limits::TERMS_COUNTED_BYTES;
use crate::{Etag, Failed, ItemId};

/// Operations on one logical partition that happen together or not at all.
#[derive(Clone, Debug)]
pub struct Txn {
    pub scope: Epk,
    /// The key of the operations: items of other keys in its place are not there for them. None where the place has one key
    /// only, or where it is meant with all of its keys.
    pub key: Option<PartitionKey>,
    pub ops: Vec<Op>,
    /// Time of the request in units of 100 ns since 1970: time enters the partition only here.
    pub now: u64,
}

#[derive(Clone, Debug)]
pub struct Op {
    pub target: Target,
    pub action: Action,
    pub precondition: Precondition,
    /// False when the client sent the indexing directive `Exclude`.
    pub indexed: bool,
    /// True when the client asked that the item be written without its links, which answers may then leave out.
    pub unlinked: bool,
}

impl Op {
    /// What the item that it writes remembers of it.
    pub(crate) fn flags(&self) -> u8 {
        let unindexed = if self.indexed { 0 } else { FLAG_UNINDEXED };
        let unlinked = if self.unlinked { FLAG_UNLINKED } else { 0 };
        unindexed | unlinked
    }
}

/// Items are addressed by their id, or by the `_rid` that links carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Id(ItemId),
    Rid(u64),
}

#[derive(Clone, Debug)]
pub enum Action {
    Create(Doc),
    Upsert(Doc),
    Replace(Doc),
    /// A replace whose document carries another id: the item moves there and stays the same resource.
    Rename {
        id: ItemId,
        doc: Doc,
    },
    /// The document follows from the stored one.
    Edit(Arc<dyn Edit>),
    Delete,
    /// Batches may read what they wrote.
    Read,
    /// An operation that its caller knows to be wrong. It is refused when its turn comes: what is wrong before it is told
    /// first, and all that was tried is charged.
    Wrong {
        /// It is about an item, and if there is none then that is what is told.
        needs_item: bool,
    },
}

impl Txn {
    /// Bytes of the documents that it brings along.
    pub fn doc_bytes(&self) -> usize {
        self.ops.iter().map(|op| op.action.doc_bytes()).sum()
    }

    /// Bytes of the texts that they came as, or about that.
    pub fn text_bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.action.text_bytes()).sum()
    }
}

impl Action {
    /// Whether an item may come of it where none was.
    pub(crate) fn may_create(&self) -> bool {
        match self {
            Action::Create(_) | Action::Upsert(_) => true,
            Action::Edit(edit) => edit.may_create(),
            Action::Replace(_)
            | Action::Rename { .. }
            | Action::Delete
            | Action::Read
            | Action::Wrong { .. } => false,
        }
    }

    /// Bytes of the text that its document came as, or about that: one of many small values is larger than its text.
    pub fn text_bytes(&self) -> u64 {
        let bytes = self.doc_bytes();
        let text = match self.doc() {
            Some(doc) if bytes > TERMS_COUNTED_BYTES => json::size(doc.root()).min(bytes),
            _ => bytes,
        };
        text as u64
    }

    /// The document that is to be stored.
    pub(crate) fn doc(&self) -> Option<&Doc> {
        match self {
            Action::Create(doc) | Action::Upsert(doc) | Action::Replace(doc) | Action::Rename { doc, .. } => {
                Some(doc)
            }
            Action::Edit(_) | Action::Delete | Action::Read | Action::Wrong { .. } => None,
        }
    }

    fn doc_bytes(&self) -> usize {
        match self {
            Action::Edit(edit) => edit.value_bytes(),
            action => action.doc().map_or(0, |doc| doc.bytes().len()),
        }
    }
}

/// What must hold of the stored version before anything happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    #[default]
    None,
    /// `None` stands for a version that no item can have, such as a malformed one.
    IfMatch(Option<Etag>),
    IfMatchAny,
    IfNoneMatch(Option<Etag>),
    IfNoneMatchAny,
    /// The version that was written at this time, in units of 100 ns since 1970. A partition gives each time once.
    IfWrittenAt(u64),
}

impl Precondition {
    /// Whether a write may go on, given the stored version if there is one.
    pub fn admits(self, stored: Option<&ItemHeader>) -> bool {
        let version = stored.map(|header| header.etag);
        match self {
            Precondition::None | Precondition::IfMatchAny => true,
            Precondition::IfMatch(wanted) => version.is_none() || version == wanted,
            Precondition::IfNoneMatch(unwanted) => version.is_none() || version != unwanted,
            Precondition::IfNoneMatchAny => stored.is_none(),
            Precondition::IfWrittenAt(time) => stored.is_none_or(|header| header.time == time),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Created,
    Replaced,
    Deleted,
    Read,
    /// A read whose version the client already has.
    NotModified,
    /// An edit that had nothing to do to the item.
    Unchanged,
    /// An edit that might have made an item and did not. What its outcome shows is an empty item.
    Absent,
}

/// The answer to one operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub effect: Effect,
    /// The item after the operation; for a delete, as it was.
    pub item: Item,
    /// The id, since links by `_rid` do not carry it.
    pub id: ItemId,
    pub meter: crate::Meter,
}

/// Why an operation was refused; each says what the client must do. It follows from the operation and from what is stored, so every copy
/// of the partition refuses it alike; what depends on the machine is a [`Fault`](crate::Fault).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OpError {
    #[error("there is no such item")]
    NotFound,
    #[error("an item with this id exists")]
    Conflict,
    /// A write would put an item where its partition key does not: a mistake of the gateway, which is to be told so.
    #[error("the item would not lie where its partition key says")]
    OutOfPlace,
    #[error("an item of another partition key has the same hash and id")]
    KeyCollision,
    #[error("another item has the same values at a unique key")]
    UniqueConflict,
    #[error("'{0}' is not a valid time to live")]
    InvalidTtl(String),
    #[error("the stored version is not the expected one")]
    PreconditionFailed,
    /// The caller knows why; see [`Action::Wrong`].
    #[error("the operation is wrong in itself")]
    Wrong,
    /// An edit does not apply to what is stored; its gateway knows why.
    #[error("{0}")]
    Edit(#[from] EditRefusal),
    #[error("the item would have {bytes} bytes")]
    TooLarge { bytes: usize },
    #[error("the items that the transaction reads are too large for one answer")]
    AnswerTooLarge,
    #[error("the logical partition is full")]
    LogicalPartitionFull,
    /// The logical partition was written to since the transaction was worked out; work it out again.
    #[error("the logical partition has changed")]
    Overtaken,
}

/// A transaction that failed: nothing of it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnError {
    /// Which operation failed; those before it are undone.
    pub place: usize,
    pub error: Failed,
    /// The work of each operation up to and including the failed one, which is charged.
    pub meters: Vec<crate::Meter>,
}

impl TxnError {
    /// A transaction that failed before any of its operations was tried.
    pub fn untried(error: impl Into<Failed>) -> TxnError {
        TxnError { place: 0, error: error.into(), meters: Vec::new() }
    }
}
