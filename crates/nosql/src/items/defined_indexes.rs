//! The indexes that a container's definition promises, as the query planner asks for them.
//!
//! What is ready at this moment may be less, while an index is built for a changed policy. The definition
//! decides what is refused; what is ready only decides how fast the rest is.

use orrery_cluster::store::indexing::{Composite, IndexingMode, IndexingPolicy, Step};
use orrery_query::ast::Direction;
use orrery_query::{IndexPath, IndexStep, Indexes};

pub(crate) struct DefinedIndexes<'a>(pub &'a IndexingPolicy);

impl Indexes for DefinedIndexes<'_> {
    fn covers(&self, path: &IndexPath) -> bool {
        let steps: Vec<Step<'_>> = path.steps().iter().map(step).collect();
        self.0.mode != IndexingMode::None && self.0.covers(&steps)
    }

    fn composite(&self, order: &[(IndexPath, Direction)]) -> Option<(usize, bool)> {
        let composites = self.0.composites();
        let find = |reversed| composites.iter().position(|composite| serves(composite, order, reversed));
        find(false).map(|index| (index, false)).or_else(|| find(true).map(|index| (index, true)))
    }
}

fn step(step: &IndexStep) -> Step<'_> {
    match step {
        IndexStep::Name(name) => Step::Name(name),
        IndexStep::Elements => Step::Elements,
    }
}

fn serves(composite: &Composite, order: &[(IndexPath, Direction)], reversed: bool) -> bool {
    let fits = |((names, descending), (path, direction)): (&(Vec<String>, bool), &(IndexPath, Direction))| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (*descending != reversed) == (*direction == Direction::Descending)
            && *path == IndexPath::of_names(&names)
    };
    composite.parts.len() == order.len() && composite.parts.iter().zip(order).all(fits)
}
