//! What ORDER BY RANK ranks by: one score, or RRF over several, with weights or without.

use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::parameters::Parameters;

/// The scores that an item of ORDER BY RANK is made of.
pub(crate) fn scores(item: &Expr) -> &[Expr] {
    match &item.kind {
        ExprKind::Call { udf: false, name, arguments } if is_fusion(name) => {
            let count = arguments
                .iter()
                .take_while(|argument| matches!(argument.kind, ExprKind::Call { .. }))
                .count();
            &arguments[..count]
        }
        _ => std::slice::from_ref(item),
    }
}

pub(crate) fn is_fusion(name: &str) -> bool {
    name.eq_ignore_ascii_case("RRF")
}

/// Numbers that stand in a list or are the value of a parameter. None if it is anything else.
pub(crate) fn weights(expr: &Expr, parameters: &Parameters) -> Option<Vec<f64>> {
    match &expr.kind {
        ExprKind::Array(items) => items.iter().map(number).collect(),
        ExprKind::Parameter(name) => {
            let value = parameters.get(name);
            value.as_list()?.iter().map(|item| item.as_f64()).collect()
        }
        _ => None,
    }
}

pub(crate) fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Some(*value as f64),
        ExprKind::Literal(Literal::Double(value)) => Some(*value),
        ExprKind::Unary(UnaryOp::Minus, operand) => number(operand).map(|value| -value),
        _ => None,
    }
}

/// The nearest vectors come first: nobody says so or the contrary, except the queries of a plan, which have another name for it.
pub(super) fn refuse_direction(item: &OrderItem) -> Result<()> {
    let is_distance = |name: &str| name.eq_ignore_ascii_case("VectorDistance");
    match &item.expr.kind {
        ExprKind::Call { udf: false, name, .. } if is_distance(name) && item.direction.is_some() => {
            let text =
                "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
            Err(QueryError::bare(text))
        }
        _ => Ok(()),
    }
}
