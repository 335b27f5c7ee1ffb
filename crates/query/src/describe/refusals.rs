//! What the service does not plan, though the grammar allows it.
//!
//! Some of it this server can run where one partition holds all the rows; a plan, though, promises an
//! answer over all partitions.

use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::functions;

/// Refuses a query with the service's code.
pub(super) fn check(query: &Query) -> Result<()> {
    Checker { subquery: false, ranked: false }.query(query)
}

#[derive(Clone, Copy)]
struct Checker {
    subquery: bool,
    /// Whether the expression at hand is an item of ORDER BY RANK.
    ranked: bool,
}

impl Checker {
    fn query(self, query: &Query) -> Result<()> {
        if self.subquery {
            refuse_in_subquery(query)?;
        }
        if let Some(OrderBy::Rank(items)) = &query.order_by {
            refuse_with_rank(query, items)?;
        }
        self.expressions(query)
    }

    fn expressions(self, query: &Query) -> Result<()> {
        let plain = Checker { ranked: false, ..self };
        match &query.select.spec {
            SelectSpec::Star(_) => {}
            SelectSpec::Value(expr) => plain.expr(expr)?,
            SelectSpec::List(items) => items.iter().try_for_each(|item| plain.expr(&item.expr))?,
        }
        for source in query.from.iter().flat_map(|from| &from.sources) {
            match &source.collection {
                Collection::Path { .. } => {}
                Collection::Subquery(query) => Checker { subquery: true, ranked: false }.query(query)?,
                Collection::Value(expr) => plain.expr(expr)?,
            }
        }
        query.filter.iter().chain(&query.group_by).try_for_each(|expr| plain.expr(expr))?;
        match &query.order_by {
            None => Ok(()),
            Some(OrderBy::Items(items)) => items.iter().try_for_each(|item| plain.expr(&item.expr)),
            Some(OrderBy::Rank(items)) => {
                let ranked = Checker { ranked: true, ..self };
                items.iter().try_for_each(|item| ranked.expr(&item.expr))
            }
        }
    }

    fn expr(self, expr: &Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Subquery(_, query) => Checker { subquery: true, ranked: false }.query(query)?,
            ExprKind::Call { udf: false, name, arguments } => self.call(expr, name, arguments)?,
            _ => {}
        }
        let mut result = Ok(());
        expr.operands(|operand| {
            if result.is_ok() {
                result = self.expr(operand);
            }
        });
        result
    }

    fn call(self, expr: &Expr, name: &str, arguments: &[Expr]) -> Result<()> {
        if name.eq_ignore_ascii_case("FullTextScore") && !self.ranked {
            let message = "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
            return Err(QueryError::at(2240, expr.span, message));
        }
        if name.eq_ignore_ascii_case("RRF") {
            return refuse_weights(arguments);
        }
        if name.eq_ignore_ascii_case("VectorDistance") {
            return arguments.iter().skip(2).try_for_each(refuse_options);
        }
        Ok(())
    }
}

fn refuse_in_subquery(query: &Query) -> Result<()> {
    if let Some(order_by) = &query.order_by {
        let (code, clause, items) = match order_by {
            OrderBy::Items(items) => (2202, "ORDER BY", items),
            OrderBy::Rank(items) => (2228, "ORDER BY RANK", items),
        };
        let span = items.iter().map(|item| item.expr.span).reduce(Span::to).unwrap_or(query.span);
        return Err(unsupported(code, clause, span));
    }
    if let Some(top) = &query.select.top {
        return Err(unsupported(2203, "TOP", top.span));
    }
    match &query.offset_limit {
        Some(clause) => Err(unsupported(2204, "OFFSET LIMIT", clause.offset.span.to(clause.limit.span))),
        None => Ok(()),
    }
}

fn unsupported(code: u16, clause: &str, span: Span) -> QueryError {
    QueryError::at(code, span, format!("'{clause}' is not supported in subqueries."))
}

fn refuse_with_rank(query: &Query, items: &[OrderItem]) -> Result<()> {
    for item in items {
        let scored = matches!(&item.expr.kind, ExprKind::Call { udf: false, name, .. } if scores(name));
        refuse_unknown(&item.expr)?;
        if !scored {
            let message =
                "The ORDER BY RANK clause must have a VectorDistance, FullTextScore or RRF function.";
            return Err(QueryError::at(2221, item.expr.span, message));
        }
    }
    let Some(from) = &query.from else { return Ok(()) };
    let refusal = |code: u16, what: &str, span: Span| {
        Err(QueryError::at(code, span, format!("{what} is not allowed with the ORDER BY RANK clause.")))
    };
    for source in &from.sources {
        if matches!(source.collection, Collection::Subquery(_)) {
            return refusal(2225, "A subquery in the FROM clause", source.span);
        }
    }
    match from.sources.as_slice() {
        [first] if matches!(first.binding, Binding::Each(_)) => refusal(2223, "The IN keyword", first.span),
        [_, joined, ..] => refusal(2224, "A JOIN", joined.span),
        _ => Ok(()),
    }
}

fn scores(name: &str) -> bool {
    ["FullTextScore", "VectorDistance", "RRF"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A name that does not exist has a complaint of its own.
fn refuse_unknown(expr: &Expr) -> Result<()> {
    match &expr.kind {
        ExprKind::Call { udf: false, name, .. } if functions::find(name).is_none() => {
            let start = expr.span.start as usize;
            let message = format!("'{name}' is not a recognized built-in function name.");
            Err(QueryError::at(2005, Span::new(start, start + name.len()), message))
        }
        _ => Ok(()),
    }
}

/// The last argument of RRF may be a list of weights, one for each of the others.
fn refuse_weights(arguments: &[Expr]) -> Result<()> {
    let Some((last, components)) = arguments.split_last() else { return Ok(()) };
    let ExprKind::Array(weights) = &last.kind else { return Ok(()) };
    if weights.len() != components.len() || !weights.iter().all(|weight| number(weight).is_some()) {
        let message = "The weights of the RRF function must be numbers, one for each of its components.";
        return Err(QueryError::at(2229, last.span, message));
    }
    Ok(())
}

fn refuse_options(argument: &Expr) -> Result<()> {
    let ExprKind::Object(options) = &argument.kind else { return Ok(()) };
    for (name, value) in options {
        let range = match name.as_str() {
            "searchListSizeMultiplier" | "quantizedVectorListMultiplier" => 1.0..=100.0,
            "filterPriority" => 0.0..=1.0,
            _ => continue,
        };
        if number(value).is_some_and(|value| !range.contains(&value)) {
            let (least, most) = (range.start(), range.end());
            let message =
                format!("The option {name} of the VectorDistance function must be from {least} to {most}.");
            return Err(QueryError::at(2213, value.span, message));
        }
    }
    Ok(())
}

fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Some(*value as f64),
        ExprKind::Literal(Literal::Double(value)) => Some(*value),
        _ => None,
    }
}
