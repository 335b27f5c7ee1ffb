//! What ORDER BY may name.
//!
//! The service orders by what an index of the container can order by: a path into the item, which may be known by
//! the name that a subquery gave it. What is computed for each row has no such path, and the elements of an array
//! are no order of items.

use std::rc::Rc;

use crate::ast::*;
use crate::compile::{item_names, selects_aggregate};
use crate::error::{Code, Diagnostic, QueryError, Result};
use crate::functions;

/// Where a value comes from. What is made of one thing twice shares what is known of it: objects in objects could
/// else grow by a power of two with each subquery.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// A path into the item.
    Item,
    /// A path into an element of an array that was joined.
    Element,
    /// An object that the query makes, by its members.
    Made(Rc<[(String, Origin)]>),
    /// An expression.
    Computed,
}

/// The names in scope, innermost last.
type Scope = Vec<(String, Origin)>;

/// Refuses an order that no index can deliver.
pub(super) fn check(query: &Query) -> Result<()> {
    let Some(OrderBy::Items(items)) = &query.order_by else { return Ok(()) };
    if query.from.is_none() || !query.group_by.is_empty() || selects_aggregate(&query.select) {
        return Ok(());
    }
    for item in items {
        match order_origin(query, &item.expr) {
            Origin::Item => {}
            Origin::Element => return Err(refusal("Order-by over correlated collections is not supported.")),
            Origin::Computed | Origin::Made(_) => return Err(unmapped()),
        }
    }
    Ok(())
}

/// The refusal of an order by what has no path.
pub(crate) fn unmapped() -> QueryError {
    refusal("Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.")
}

fn refusal(message: &str) -> QueryError {
    let message = message.to_owned();
    QueryError::Invalid(vec![Diagnostic { code: Code::Number(2206), location: None, message }])
}

/// Where an ORDER BY item of a query comes from. Distances between vectors and scores of texts have indexes of their own.
pub(crate) fn order_origin(query: &Query, item: &Expr) -> Origin {
    if matches!(&item.kind, ExprKind::Call { udf: false, name, .. } if functions::is_score(name)) {
        return Origin::Item;
    }
    let mut scope = Scope::new();
    bind(query, &mut scope, true);
    origin(keyed(item), &scope)
}

/// The place of a value in another order comes from where the value does.
fn keyed(item: &Expr) -> &Expr {
    match &item.kind {
        ExprKind::Call { udf: false, name, arguments } if name.eq_ignore_ascii_case("ORDERKEY") => {
            arguments.get(1).unwrap_or(item)
        }
        _ => item,
    }
}

/// Adds the names of a FROM clause. Who asks for the elements of an array and nothing else has them in place of
/// items; `leads` says that the query is the outermost, or the one that its rows come from.
fn bind(query: &Query, scope: &mut Scope, leads: bool) {
    for (i, source) in query.from.iter().flat_map(|from| &from.sources).enumerate() {
        let is_first = leads && i == 0;
        let found = match &source.collection {
            Collection::Path { root, steps, .. } => {
                let base = named(root, scope).unwrap_or(Origin::Item);
                steps.iter().fold(base, |base, step| match step {
                    Step::Name(name) | Step::Key(name) => member(base, name),
                    Step::Index(_) => element(base),
                })
            }
            Collection::Subquery(inner) => row(inner, scope, is_first),
            Collection::Value(value) => origin(value, scope),
        };
        let found = match (&source.binding, found) {
            (Binding::Each(_), Origin::Item) if !is_first => Origin::Element,
            (Binding::Each(_), Origin::Made(_)) => Origin::Computed,
            (_, found) => found,
        };
        if let Some(name) = source.name() {
            scope.push((name.to_owned(), found));
        }
    }
}

/// Where the rows of a subquery come from.
fn row(query: &Query, scope: &Scope, leads: bool) -> Origin {
    if !query.group_by.is_empty() || selects_aggregate(&query.select) {
        return Origin::Computed;
    }
    let mut scope = scope.clone();
    bind(query, &mut scope, leads);
    match &query.select.spec {
        SelectSpec::Star(_) => scope.pop().map_or(Origin::Computed, |(_, origin)| origin),
        SelectSpec::Value(value) => origin(value, &scope),
        SelectSpec::List(items) => {
            let origins = items.iter().map(|item| origin(&item.expr, &scope));
            Origin::Made(item_names(items).into_iter().zip(origins).collect())
        }
    }
}

fn origin(expr: &Expr, scope: &Scope) -> Origin {
    match &expr.kind {
        // A name that nobody knows is an error of its own.
        ExprKind::Name(name) => named(name, scope).unwrap_or(Origin::Item),
        ExprKind::Member(base, name) => member(origin(base, scope), name),
        ExprKind::Index(base, index) => match &index.kind {
            ExprKind::Literal(Literal::String(name)) => member(origin(base, scope), name),
            ExprKind::Literal(_) | ExprKind::Parameter(_) => element(origin(base, scope)),
            _ => Origin::Computed,
        },
        ExprKind::Object(members) => {
            Origin::Made(members.iter().map(|(name, value)| (name.clone(), origin(value, scope))).collect())
        }
        _ => Origin::Computed,
    }
}

fn named(name: &str, scope: &Scope) -> Option<Origin> {
    scope.iter().rev().find(|(known, _)| known == name).map(|(_, origin)| origin.clone())
}

fn member(base: Origin, name: &str) -> Origin {
    match base {
        Origin::Made(members) => {
            let found = members.iter().find(|(known, _)| known == name);
            found.map_or(Origin::Computed, |(_, origin)| origin.clone())
        }
        base => base,
    }
}

fn element(base: Origin) -> Origin {
    match base {
        Origin::Made(_) => Origin::Computed,
        base => base,
    }
}
