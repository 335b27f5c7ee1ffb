//! What an index can do for a program: the index proposes, the document decides.
//!
//! [`plan_access`] reads a compiled program and says which index entries an item must have so that any row of
//! it can pass ([`Proposal`]), whether an index delivers the order that is asked for ([`IndexOrder`]), and
//! whether the answer can be read off the index alone ([`Shortcut`]). Nothing here knows how entries are
//! stored: a path is a list of steps, and a condition on it is a set of intervals of encoded terms.
//!
//! One rule makes all of it safe. A proposal may hold too many items, never too few, because every proposed
//! item is still checked by the program itself. So an expression that is not understood is simply
//! [`Proposal::Everything`], and a wrong guess costs time and no rows. Only where a part is called *exact* does
//! the reverse hold too, and only then may rows be counted without looking at them.

mod advice;
mod composite;
mod explain;
mod filter;
mod metrics;
mod order;
mod path;
mod proposal;
mod shortcut;
mod span;
mod spatial;
mod tuple;

use crate::ast::Direction;
use crate::compile::Program;
use filter::Analysis;

pub use advice::{Advice, advice, advice_json};
pub use explain::{Chosen, Explanation, explain};
pub use metrics::{IndexMetrics, index_metrics};
pub use order::check_order;
pub use path::{IndexPath, IndexStep};
pub use proposal::{Leaf, Proposal};
pub use shortcut::Shortcut;
pub use span::{Span, after_prefix, term_of};

/// The indexes that a container has ready.
pub trait Indexes {
    /// Whether every value at this path is found in the index.
    fn covers(&self, path: &IndexPath) -> bool;

    /// The composite indexes. Plans name them by their number in this list.
    fn composites(&self) -> Vec<CompositePaths> {
        Vec::new()
    }

    /// Whether the cells of every shape at this path are found in the index.
    fn spatial(&self, _: &IndexPath) -> bool {
        false
    }

    /// The tuple indexes over the elements that this path leads to, each as the paths of its members.
    fn tuples(&self, _: &IndexPath) -> Vec<Vec<IndexPath>> {
        Vec::new()
    }
}

/// The paths of a composite index with their directions.
pub type CompositePaths = Vec<(IndexPath, Direction)>;

/// What the indexes offer to one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    pub filter: Proposal,
    /// Whether the items that `filter` proposes are exactly those that pass the whole WHERE clause and have the
    /// value that SELECT asks for.
    pub filter_exact: bool,
    pub order: Option<IndexOrder>,
    /// The terms that the index of the order can have where a row passes, sorted. Undefined counts as the term
    /// `10`, so for a single path a list that begins behind it proves that no passing row lacks the path.
    pub order_terms: Vec<Span>,
    /// For DISTINCT in the order of an index: of all items with one term, the first gives the only row. A term
    /// that was cut may stand for several values.
    pub one_per_term: bool,
    pub shortcut: Shortcut,
}

/// An index whose order is the order that the program asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexOrder {
    Single {
        path: IndexPath,
        direction: Direction,
    },
    /// The filter holds the first `fixed` paths to one value each; `prefix` is what their terms are.
    Composite {
        index: usize,
        reversed: bool,
        fixed: usize,
        prefix: Vec<u8>,
    },
}

/// Finds what the indexes can do for a program. Only the level that sees the items matters; what later ones
/// do with its rows is their own affair.
pub fn plan_access(program: &Program, indexes: &dyn Indexes) -> Access {
    let stage = program.first_stage();
    let level = &stage.level;
    let mut analysis = Analysis::new(indexes, program);
    let found = analysis.level(level);
    let exact = found.exact && shortcut::is_plain_source(level);
    // A value that is not there makes no row and is not counted, so items without it need not be looked at.
    let needed = match shortcut::needed_path(level, &analysis, indexes) {
        Some(path) => Proposal::Leaf(Leaf { path, spans: vec![Span::defined()], exact: true }),
        None => Proposal::Everything,
    };
    let alone = program.code.earlier.is_empty();
    let shortcut = if alone { shortcut::shortcut(level, &analysis, indexes) } else { Shortcut::None };
    let filter = match shortcut {
        // The end of an index is found without asking for more.
        Shortcut::First { .. } if exact => found.proposal,
        _ => Proposal::all([found.proposal, needed]),
    };
    let of_entries = filter.clone().of_entries();
    let mut complete = of_entries == filter;
    let served = composite::served(of_entries, &analysis.composites, indexes, &mut complete);
    let filter_exact = exact && complete;
    let order = if alone { order::index_order(level, &analysis, indexes, &filter) } else { None };
    let order =
        order.filter(|order| !level.distinct || (filter_exact && order::is_about_order(&served, order)));
    let order_terms = order::order_terms(order.as_ref(), &filter, &analysis.composites);
    let one_per_term = level.distinct && order.is_some();
    let shortcut = shortcut::allowed(shortcut, &served, filter_exact);
    Access { filter: served, filter_exact, order, order_terms, one_per_term, shortcut }
}

#[cfg(test)]
mod tests;
