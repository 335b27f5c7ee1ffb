//! Values that are computed from an item and not stored in it.
//!
//! Their definitions are expressions of the query language, which this room does not know. The cluster, which does, hands over
//! a [`Computer`] for each. A policy has to name a computed value: wildcards are about what is stored.

use std::fmt;
use std::sync::Arc;

use orrery_doc::{Doc, DocRef};

/// Computes one value from an item, always the same from the same item.
pub trait Computer: fmt::Debug + Send + Sync {
    /// The value, if the item has it.
    fn value(&self, item: DocRef<'_>) -> Option<Doc>;
}

/// A computed value of a container.
#[derive(Clone, Debug)]
pub struct ComputedValue {
    /// What queries and policies call it, as if it were a property of the item.
    pub name: String,
    /// What it is computed by. Equal definitions give equal values.
    pub definition: String,
    pub computer: Arc<dyn Computer>,
}

impl PartialEq for ComputedValue {
    fn eq(&self, other: &ComputedValue) -> bool {
        self.name == other.name && self.definition == other.definition
    }
}

impl Eq for ComputedValue {}
