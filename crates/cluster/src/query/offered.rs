//! The indexes of a container, as the planner asks for them.
//!
//! What a partition has ready may be less than what the definition promises, while an index is built for a changed
//! policy. The definition decides what is refused and what metrics say; what is ready decides how fast the rest is.

use orrery_query::ast::Direction;
use orrery_query::{CompositePaths, IndexPath, IndexStep, Indexes};
use orrery_store::ActiveIndex;
use orrery_store::index::EntryList;
use orrery_store::indexing::{Composite, IndexingPolicy, PathHash, Step, Tuple};

pub enum OfferedIndexes<'a> {
    /// What is ready in a partition.
    Ready(&'a ActiveIndex),
    /// What a definition promises.
    Defined(&'a IndexingPolicy),
}

impl Indexes for OfferedIndexes<'_> {
    fn covers(&self, path: &IndexPath) -> bool {
        let Some(steps) = steps(path) else { return false };
        match self {
            OfferedIndexes::Ready(active) => active.covers(&steps),
            OfferedIndexes::Defined(policy) => policy.covers(&steps),
        }
    }

    fn composites(&self) -> Vec<CompositePaths> {
        let composites = match self {
            OfferedIndexes::Ready(active) => active.composites(),
            OfferedIndexes::Defined(policy) => policy.composites(),
        };
        composites.iter().map(composite_paths).collect()
    }

    fn spatial(&self, path: &IndexPath) -> bool {
        let Some(steps) = steps(path) else { return false };
        match self {
            OfferedIndexes::Ready(active) => active.is_spatial(&steps),
            OfferedIndexes::Defined(policy) => policy.is_spatial(&steps),
        }
    }

    fn tuples(&self, elements: &IndexPath) -> Vec<Vec<IndexPath>> {
        let tuples = match self {
            OfferedIndexes::Ready(active) => active.tuples(),
            OfferedIndexes::Defined(policy) => policy.tuples(),
        };
        let Some(steps) = steps(elements).filter(|_| !tuples.is_empty()) else { return Vec::new() };
        let is_over = |tuple: &&Tuple| tuple.path().eq(steps.iter().copied());
        let members = |tuple: &Tuple| tuple.members.iter().map(|names| path_of_names(names)).collect();
        tuples.iter().filter(is_over).map(members).collect()
    }
}

/// The way through documents; none if the path is that of another kind of index.
fn steps(path: &IndexPath) -> Option<Vec<Step<'_>>> {
    path.steps().iter().map(step).collect()
}

fn step(step: &IndexStep) -> Option<Step<'_>> {
    match step {
        IndexStep::Name(name) => Some(Step::Name(name)),
        IndexStep::Elements => Some(Step::Elements),
        IndexStep::Computed(name) => Some(Step::Computed(name)),
        IndexStep::Cells | IndexStep::Members(_) | IndexStep::Composite(_) => None,
    }
}

fn path_of_names(names: &[String]) -> IndexPath {
    IndexPath::of_names(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn composite_paths(composite: &Composite) -> CompositePaths {
    let step = |step: Step<'_>| match step {
        Step::Name(name) => IndexStep::Name(name.into()),
        Step::Elements => IndexStep::Elements,
        Step::Computed(name) => IndexStep::Computed(name.into()),
    };
    let part = |(at, (_, descending)): (usize, &(Vec<String>, bool))| {
        let direction = if *descending { Direction::Descending } else { Direction::Ascending };
        (IndexPath(composite.steps(at).map(step).collect()), direction)
    };
    composite.parts.iter().enumerate().map(part).collect()
}

/// Where the entries of a path are.
pub(super) fn list_of(path: &IndexPath) -> EntryList {
    EntryList { path_hash: hash_of(path), parts: path.parts() }
}

pub(super) fn hash_of(path: &IndexPath) -> u64 {
    hash(path).value()
}

fn hash(path: &IndexPath) -> PathHash {
    path.steps().iter().fold(PathHash::ROOT, |hash, step| match step {
        IndexStep::Name(name) => hash.name(name),
        IndexStep::Elements => hash.elements(),
        IndexStep::Computed(name) => hash.step(Step::Computed(name)),
        IndexStep::Cells => hash.cells(),
        IndexStep::Members(members) => hash.members(members.iter().map(self::hash)),
        IndexStep::Composite(parts) => {
            PathHash::composite(parts.iter().map(|(path, descending)| (self::hash(path), *descending)))
        }
    })
}
