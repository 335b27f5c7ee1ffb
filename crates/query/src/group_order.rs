//! In which order the service answers groups, as its recorded answers have it.
//!
//! Groups that an index holds side by side come in the order of their keys: those of one path of which nothing is asked, or
//! how many there are. All others come as their first items were met.

use crate::access::IndexStep;
use crate::ast::{Expr, ExprKind, Literal, Query, SelectSpec};
use crate::compile::Program;
use crate::program::AggregateKind;

impl Program {
    /// Whether the rows are groups that come in the order of their first items.
    pub fn groups_as_created(&self) -> bool {
        let level = &self.code.last.level;
        let has_keys = level.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty());
        let is_plain = self.code.earlier.is_empty() && level.order_by.is_empty();
        has_keys && is_plain && !are_in_index(self.query())
    }
}

fn are_in_index(query: &Query) -> bool {
    let Query { select, from: Some(from), group_by, .. } = query else { return false };
    let ([source], [key]) = (from.sources.as_slice(), group_by.as_slice()) else { return false };
    let is_path = source.name().is_some_and(|root| path_of(key, root).is_some());
    is_path
        && match &select.spec {
            SelectSpec::Star(_) => false,
            SelectSpec::Value(value) => only_counts(value),
            SelectSpec::List(items) => items.iter().all(|item| only_counts(&item.expr)),
        }
}

/// The names that lead from an item to a value.
pub fn path_of(expr: &Expr, root: &str) -> Option<Vec<IndexStep>> {
    match &expr.kind {
        ExprKind::Name(name) if name == root => Some(Vec::new()),
        ExprKind::Member(base, name) => {
            let mut path = path_of(base, root)?;
            path.push(IndexStep::Name(name.as_str().into()));
            Some(path)
        }
        _ => None,
    }
}

/// Whether all aggregates count every row of their group.
pub fn only_counts(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Subquery(..) | ExprKind::Call { udf: true, .. } => false,
        ExprKind::Call { name, arguments, .. } if AggregateKind::from_name(name).is_some() => {
            let is_count = AggregateKind::from_name(name) == Some(AggregateKind::Count);
            let constant = |argument: &Expr| matches!(&argument.kind, ExprKind::Literal(literal) if *literal != Literal::Undefined);
            is_count && matches!(arguments.as_slice(), [argument] if constant(argument))
        }
        _ => {
            let mut counts = true;
            expr.operands(|operand| counts = counts && only_counts(operand));
            counts
        }
    }
}
