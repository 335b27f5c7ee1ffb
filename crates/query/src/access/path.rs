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
}

impl IndexPath {
    /// A path of names only.
    pub fn of_names(names: &[&str]) -> Self {
        Self(names.iter().map(|name| IndexStep::Name((*name).into())).collect())
    }

    /// Whether an item has at most one value here: no array is entered on the way.
    pub fn is_single(&self) -> bool {
        !self.0.contains(&IndexStep::Elements)
    }

    pub fn steps(&self) -> &[IndexStep] {
        &self.0
    }

    /// The path one step further into the elements of an array.
    pub(crate) fn elements(&self) -> Self {
        let mut steps = self.0.clone();
        steps.push(IndexStep::Elements);
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
                IndexStep::Name(name) if is_plain(name) => write!(f, "/{name}")?,
                IndexStep::Name(name) => {
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
