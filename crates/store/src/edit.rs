//! Edits: writes that follow from what is stored.
//!
//! A create or a replace brings its document along. An edit brings a function instead, which the partition calls with the
//! stored item when its turn comes, between the writes before it and those after it, and which answers with the new
//! document. What such a function means is its gateway's affair: a list of changes to paths, an operator that adds to a
//! number, cells of a row that each have a time of their own. The partition sees to conditions, sizes, indexes and
//! versions, as for any other write.
//!
//! An edit must be deterministic: a partition calls it whenever it works the transaction out, which may be more than
//! once, and takes the last answer. Time is an argument for that reason.

use std::fmt;
use std::sync::Arc;

use orrery_doc::Doc;

use crate::Item;

/// A write as a function of what is stored.
pub trait Edit: fmt::Debug + Send + Sync {
    /// Works out what becomes of the stored item. There is always one unless [`Edit::may_create`] says otherwise. The new
    /// document must have the partition key of the transaction, and the id that the operation names. `now` is the
    /// transaction's time, in units of 100 ns since 1970.
    fn edit(&self, stored: Option<&Item>, now: u64) -> Result<Edited, EditRefusal>;

    /// Whether an item may come of an edit of none. Where it may not, such an edit is refused as one of an item that is
    /// not there.
    fn may_create(&self) -> bool {
        false
    }

    /// Bytes of the values that it brings along, which are held in memory until its turn comes.
    fn value_bytes(&self) -> usize;

    /// How many properties it changes, for the price.
    fn properties(&self) -> u32;
}

/// What an edit comes to.
#[derive(Clone, Debug)]
pub enum Edited {
    /// The document that takes the place of the stored one.
    To(Doc),
    /// Nothing is to be done: the item stays as it is, or stays away.
    Unchanged,
}

/// Why an edit was refused, in a type of the gateway that made the edit.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EditRefusal(Arc<dyn std::error::Error + Send + Sync>);

/// Refusals that say the same are the same: the type is the gateway's, and the text is all that others know of it.
impl PartialEq for EditRefusal {
    fn eq(&self, other: &EditRefusal) -> bool {
        self.to_string() == other.to_string()
    }
}

impl EditRefusal {
    pub fn new(why: impl std::error::Error + Send + Sync + 'static) -> EditRefusal {
        EditRefusal(Arc::new(why))
    }

    /// The refusal in the type that it was made of.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}
