//! Paths as the index knows them.

use std::fmt;

use crate::program::PathStep;

/// The way from an item to a value that is in the index. All elements of an array share one path.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexPath(pub Vec<IndexStep>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexStep {
    Name(Box<str>),
    /// Into any element of an array.
    Elements,
    /// At the start: a computed property.
    Computed(Box<str>),
    /// At the end: the cells of the map that a shape covers.
    Cells,
    /// At the end, behind elements: one entry for each element, made of the values at these paths within it.
    Members(Vec<IndexPath>),
    /// The only step: one entry for each item, made of the values at these paths; the flag says descending.
    Composite(Vec<(IndexPath, bool)>),
}

impl IndexPath {
    /// A path of names only.
    pub fn of_names(names: &[&str]) -> Self {
        Self(names.iter().map(|name| IndexStep::Name((*name).into())).collect())
    }

    /// Whether an item has at most one entry here: no array is entered on the way.
    pub fn is_single(&self) -> bool {
        let is_many =
            |step: &IndexStep| matches!(step, IndexStep::Elements | IndexStep::Cells | IndexStep::Members(_));
        !self.0.iter().any(is_many)
    }

    /// For each term that an entry is made of, whether its bits are turned.
    pub fn parts(&self) -> Vec<bool> {
        match self.0.last() {
            Some(IndexStep::Members(members)) => vec![false; members.len()],
            Some(IndexStep::Composite(parts)) => parts.iter().map(|(_, descending)| *descending).collect(),
            _ => vec![false],
        }
    }

    pub fn steps(&self) -> &[IndexStep] {
        &self.0
    }

    /// The path one step further into the elements of an array.
    pub(crate) fn elements(&self) -> Self {
        self.then(IndexStep::Elements)
    }

    pub(crate) fn then(&self, step: IndexStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The path further along the steps of an expression, and whether the way was exact: an index cannot
    /// tell the elements of an array apart.
    pub(crate) fn follow(&self, steps: &[PathStep]) -> (Self, bool) {
        let mut path = self.0.clone();
        let mut exact = true;
        for step in steps {
            path.push(match step {
                PathStep::Name(name) => IndexStep::Name(name.clone()),
                PathStep::Index(_) => {
                    exact = false;
                    IndexStep::Elements
                }
            });
        }
        (Self(path), exact)
    }
}

/// As indexing policies write it: `/a/b/[]/c`, with quotes around names that need them.
impl fmt::Display for IndexPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                IndexStep::Elements => f.write_str("/[]")?,
                // The path of the shape says it all.
                IndexStep::Cells => {}
                IndexStep::Members(members) => {
                    let members: Vec<String> = members
                        .iter()
                        .map(|path| path.to_string().trim_start_matches('/').to_owned())
                        .collect();
                    write!(f, "/{{{}}}", members.join(","))?;
                }
                IndexStep::Composite(parts) => {
                    let order = |descending: bool| if descending { "DESC" } else { "ASC" };
                    let parts: Vec<String> = parts
                        .iter()
                        .map(|(path, descending)| format!("{path} {}", order(*descending)))
                        .collect();
                    write!(f, "({})", parts.join(", "))?;
                }
                IndexStep::Name(name) | IndexStep::Computed(name) if is_plain(name) => write!(f, "/{name}")?,
                IndexStep::Name(name) | IndexStep::Computed(name) => {
                    write!(f, "/\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))?;
                }
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}
