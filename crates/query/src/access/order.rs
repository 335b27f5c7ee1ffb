//! ORDER BY from the order of an index.
//!
//! The service answers ORDER BY from an index or not at all, and clients' tests rely on the refusal, so a
//! query whose order no index delivers is refused although this engine could sort it.

use super::filter::Analysis;
use super::path::IndexPath;
use super::proposal::Proposal;
use super::span::Span;
use super::{IndexOrder, Indexes};
use crate::ast::Direction;
use crate::compile::{Program, Stage};
use crate::error::{QueryError, Result};
use crate::program::Level;

const NO_COMPOSITE: &str =
    "The order by query does not have a corresponding composite index that it can be served from.";
const EXCLUDED: &str = "The index path corresponding to the specified order-by item is excluded.";

/// The paths of an ORDER BY, if all its items are paths to one value of the item. `None` when any is not.
pub(super) fn order_paths(level: &Level, analysis: &Analysis<'_>) -> Option<Vec<(IndexPath, Direction)>> {
    let path = |(node, direction): &(crate::program::Node, Direction)| {
        let place = analysis.place(node)?;
        let usable = place.exact && place.path.is_single() && !place.path.steps().is_empty();
        usable.then_some((place.path, *direction))
    };
    level.order_by.iter().map(path).collect()
}

/// The index that delivers the rows of the level in order.
pub(super) fn index_order(
    level: &Level,
    analysis: &Analysis<'_>,
    indexes: &dyn Indexes,
) -> Option<IndexOrder> {
    if level.order_by.is_empty() || level.grouping.is_some() || (level.distinct && !level.keys_are_rows) {
        return None;
    }
    let mut order = order_paths(level, analysis)?;
    match order.len() {
        1 => {
            let (path, direction) = order.remove(0);
            indexes.covers(&path).then_some(IndexOrder::Single { path, direction })
        }
        _ => indexes.composite(&order).map(|(index, reversed)| IndexOrder::Composite { index, reversed }),
    }
}

/// Whether a filter asks for nothing but values of the order path.
pub(super) fn is_about_order(filter: &Proposal, order: &IndexOrder) -> bool {
    match (filter, order) {
        (Proposal::Everything, _) => true,
        (Proposal::Leaf(leaf), IndexOrder::Single { path, .. }) => leaf.path == *path,
        _ => false,
    }
}

/// The values of the order path that rows can have, undefined included; all when there is no single path.
pub(super) fn order_terms(order: Option<&IndexOrder>, filter: &Proposal) -> Vec<Span> {
    match order {
        Some(IndexOrder::Single { path, .. }) => filter.terms_at(path),
        _ => Vec::new(),
    }
}

/// Refuses an ORDER BY that no index serves, in the service's words.
pub fn check_order(program: &Program, indexes: &dyn Indexes) -> Result<()> {
    let first = program.first_stage();
    let Stage { level, slots } = first;
    if level.order_by.is_empty() || level.order_is_implied || level.grouping.is_some() {
        return Ok(());
    }
    let mut analysis = Analysis::new(indexes, *slots);
    let found = analysis.level(level);
    // What is no path into the item is refused elsewhere, or is sorted by looking at every row.
    let Some(order) = order_paths(level, &analysis) else { return Ok(()) };
    match order.as_slice() {
        [(path, _)] if !indexes.covers(path) && !is_system(path) => Err(QueryError::bare(EXCLUDED)),
        [_] => Ok(()),
        _ if has_composite(&order, &found.proposal, indexes) => Ok(()),
        _ => Err(QueryError::bare(NO_COMPOSITE)),
    }
}

/// A composite index may begin with a path that the filter holds to one value.
fn has_composite(order: &[(IndexPath, Direction)], filter: &Proposal, indexes: &dyn Indexes) -> bool {
    if indexes.composite(order).is_some() {
        return true;
    }
    let mut served = false;
    filter.for_each_leaf(&mut |leaf| {
        if leaf.is_single_term() && leaf.path.is_single() {
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut longer = vec![(leaf.path.clone(), direction)];
                longer.extend_from_slice(order);
                served = served || indexes.composite(&longer).is_some();
            }
        }
    });
    served
}

/// Properties that the store adds can always be ordered by.
fn is_system(path: &IndexPath) -> bool {
    match path.steps() {
        [super::IndexStep::Name(name)] => {
            &**name == "id" || crate::row::SystemField::from_name(name).is_some()
        }
        _ => false,
    }
}
