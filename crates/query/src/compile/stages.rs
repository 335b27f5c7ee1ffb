//! Subqueries over the whole container.
//!
//! `SELECT ... FROM (SELECT ... FROM root OFFSET 5 LIMIT 5) AS r` is not a subquery over each item:
//! the inner query must see all items before the outer one sees its rows. Such an inner query becomes
//! a stage of its own, and its rows are the items of the outer one.

use crate::ast::*;
use crate::describe::needs_plan;

/// Takes the inner query out of a FROM clause if it ranges over the container as a whole. The outer
/// query then reads the inner one's rows as its items.
pub(super) fn peel(outer: &mut Query) -> Option<Query> {
    let first = outer.from.as_mut()?.sources.first_mut()?;
    if !matches!(&first.collection, Collection::Subquery(inner) if is_global(inner)) {
        return None;
    }
    let root = first.name().unwrap_or("root").to_owned();
    let items = Collection::Path { root, steps: Vec::new(), span: first.span };
    match std::mem::replace(&mut first.collection, items) {
        Collection::Subquery(inner) => Some(*inner),
        _ => None,
    }
}

fn is_global(query: &Query) -> bool {
    let Some(first) = query.from.as_ref().and_then(|from| from.sources.first()) else { return false };
    match &first.collection {
        Collection::Path { .. } => needs_plan(query),
        Collection::Subquery(inner) => needs_plan(query) || is_global(inner),
        Collection::Value(_) => false,
    }
}
