//! What SELECT may say once rows are grouped: GROUP BY keys, aggregates, and what is made of them.

use super::Compiler;
use crate::ast::{Expr, ExprKind};
use crate::error::{Code, Diagnostic, QueryError, Result};
use crate::print::print_expression;
use crate::program::{Aggregate, AggregateKind, Node};

pub(super) struct GroupScope {
    keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
}

impl GroupScope {
    pub fn new(keys: Vec<Expr>) -> Self {
        Self { keys, aggregates: Vec::new() }
    }
}

impl Compiler<'_> {
    /// Compiles what only a grouped level treats in its own way; `None` for everything else.
    pub(super) fn grouped(&mut self, expr: &Expr) -> Result<Option<Node>> {
        let Some(group) = &self.group else { return Ok(None) };
        if let Some(key) = group.keys.iter().position(|key| key == expr) {
            return Ok(Some(Node::GroupKey(key)));
        }
        match &expr.kind {
            ExprKind::Call { udf: false, name, arguments } => match AggregateKind::from_name(name) {
                Some(kind) => self.aggregate(expr, kind, arguments).map(Some),
                None => Ok(None),
            },
            ExprKind::Name(_) | ExprKind::Member(..) | ExprKind::Index(..) => {
                if let Some(group) = &self.group
                    && is_path(expr)
                    && !has_key_prefix(expr, &group.keys)
                {
                    return Err(QueryError::Invalid(vec![not_grouped(expr)]));
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn aggregate(&mut self, expr: &Expr, kind: AggregateKind, arguments: &[Expr]) -> Result<Node> {
        let [argument] = arguments else {
            let name = print_expression(expr);
            let name = name.split('(').next().unwrap_or_default().to_ascii_uppercase();
            let message = format!("The {name} function requires 1 argument(s).");
            return Err(QueryError::at(2050, expr.span, message));
        };
        // An aggregate over the container is put together from those of its partitions; one over what an item
        // holds has no such bounds.
        if contains_aggregate(argument) || (self.levels == 1 && contains_subquery(argument)) {
            return Err(QueryError::at(
                2101,
                expr.span,
                "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.",
            ));
        }
        let group = self.group.take();
        let argument = self.expr(argument);
        self.group = group;
        let aggregate = Aggregate { kind, argument: argument? };
        let group = self.group.as_mut().expect("aggregates are compiled inside a group only");
        group.aggregates.push(aggregate);
        Ok(Node::Aggregate(group.aggregates.len() - 1))
    }
}

/// Whether an aggregate stands in the expression, outside of subqueries.
pub(crate) fn contains_aggregate(expr: &Expr) -> bool {
    if let ExprKind::Call { udf: false, name, .. } = &expr.kind
        && AggregateKind::from_name(name).is_some()
    {
        return true;
    }
    let mut found = false;
    expr.operands(|operand| found = found || contains_aggregate(operand));
    found
}

pub(super) fn contains_subquery(expr: &Expr) -> bool {
    if matches!(expr.kind, ExprKind::Subquery(..)) {
        return true;
    }
    let mut found = false;
    expr.operands(|operand| found = found || contains_subquery(operand));
    found
}

/// A name with any number of members and indexes behind it.
fn is_path(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) => true,
        ExprKind::Member(base, _) | ExprKind::Index(base, _) => is_path(base),
        _ => false,
    }
}

fn has_key_prefix(expr: &Expr, keys: &[Expr]) -> bool {
    keys.contains(expr)
        || match &expr.kind {
            ExprKind::Member(base, _) | ExprKind::Index(base, _) => has_key_prefix(base, keys),
            _ => false,
        }
}

fn not_grouped(expr: &Expr) -> Diagnostic {
    let reference = print_expression(expr);
    Diagnostic {
        code: Code::Sc(2102),
        location: Some(expr.span),
        message: format!(
            "Property reference '{reference}' is invalid in the select list because it is not contained in \
             either an aggregate function or the GROUP BY clause."
        ),
    }
}
