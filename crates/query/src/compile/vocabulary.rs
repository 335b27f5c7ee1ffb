//! What the text of a query means in one container: its computed properties, and what its vectors are measured by.

use super::computed::{Definition, definition};
use crate::error::Result;
use crate::functions::VectorDistance;

/// What a container's definition says that texts of queries depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vocabulary {
    pub(super) computed: Vec<Definition>,
    pub(super) vectors: Vec<VectorPath>,
}

/// One entry of a container's vector policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorPath {
    /// The names of the path, from the item down.
    pub path: Vec<String>,
    pub distance: VectorDistance,
}

impl Vocabulary {
    /// Reads the definitions of computed properties: a name and a query such as `SELECT VALUE LOWER(c.name) FROM c`.
    pub fn new<'t>(computed: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Self> {
        let read = |(name, text)| definition(name, text);
        Ok(Self { computed: computed.into_iter().map(read).collect::<Result<_>>()?, vectors: Vec::new() })
    }

    #[must_use]
    pub fn with_vectors(self, vectors: Vec<VectorPath>) -> Self {
        Self { vectors, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.computed.is_empty() && self.vectors.is_empty()
    }

    /// The names of the computed properties.
    pub fn computed_names(&self) -> impl Iterator<Item = &str> {
        self.computed.iter().map(|definition| definition.name.as_str())
    }
}
