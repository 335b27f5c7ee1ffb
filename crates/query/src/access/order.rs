//! ORDER BY from the order of an index.
//!
//! The service answers ORDER BY from an index or not at all, and clients' tests rely on the refusal, so a
//! query whose order no index delivers is refused although this engine could sort it.

use super::filter::Analysis;
use super::path::IndexPath;
use super::proposal::Proposal;
use super::span::Span;
use super::{CompositePaths, IndexOrder, Indexes, composite};
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
    filter: &Proposal,
) -> Option<IndexOrder> {
    if level.order_by.is_empty() || level.grouping.is_some() || (level.distinct && !level.keys_are_rows) {
        return None;
    }
    let mut order = order_paths(level, analysis)?;
    // An index that begins with what the filter holds to one value visits fewer items. Of several with one
    // value, DISTINCT wants one only, and a composite index does not keep them together.
    let composite = match level.distinct && order.len() == 1 {
        true => None,
        false => composite::ordering(&analysis.composites, &order, filter),
    };
    match order.len() {
        1 if composite.is_none() => {
            let (path, direction) = order.remove(0);
            indexes.covers(&path).then_some(IndexOrder::Single { path, direction })
        }
        _ => composite,
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

/// The terms of the index that rows can have, undefined included.
pub(super) fn order_terms(
    order: Option<&IndexOrder>,
    filter: &Proposal,
    composites: &[CompositePaths],
) -> Vec<Span> {
    match order {
        Some(IndexOrder::Single { path, .. }) => filter.terms_at(path),
        Some(IndexOrder::Composite { index, .. }) => composite::narrowed(&composites[*index], filter).spans,
        None => Vec::new(),
    }
}

/// Refuses an ORDER BY that no index serves, in the service's words.
pub fn check_order(program: &Program, indexes: &dyn Indexes) -> Result<()> {
    let Stage { level, .. } = program.first_stage();
    if level.order_by.is_empty() || level.order_is_implied || level.grouping.is_some() {
        return Ok(());
    }
    let mut analysis = Analysis::new(indexes, program);
    let found = analysis.level(level);
    // What is no path into the item is refused elsewhere, or is sorted by looking at every row.
    let Some(order) = order_paths(level, &analysis) else { return Ok(()) };
    match order.as_slice() {
        [(path, _)] if !indexes.covers(path) && !is_free(path) => Err(QueryError::bare(EXCLUDED)),
        [_] => Ok(()),
        _ if composite::ordering(&analysis.composites, &order, &found.proposal).is_some() => Ok(()),
        _ => Err(QueryError::bare(NO_COMPOSITE)),
    }
}

/// Properties that the store adds can always be ordered by, and so can what is computed from the item.
fn is_free(path: &IndexPath) -> bool {
    match path.steps() {
        [super::IndexStep::Computed(_), ..] => true,
        [super::IndexStep::Name(name)] => {
            &**name == "id" || crate::row::SystemField::from_name(name).is_some()
        }
        _ => false,
    }
}
