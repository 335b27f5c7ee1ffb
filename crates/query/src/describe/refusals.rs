//! What the service does not plan, though the grammar allows it.
//!
//! Some of it this server can run where one partition holds all the rows; a plan, though, promises an
//! answer over all partitions. All that is wrong is told, in the order in which the service looks: what a query
//! is FROM, its expressions, and then its own clauses.

use crate::ast::*;
use crate::compile::{number, weights};
use crate::error::{Code, Diagnostic};
use crate::functions;
use crate::parameters::Parameters;

/// Finds what the service does not plan.
pub(super) fn check(query: &Query, parameters: &Parameters) -> Vec<Diagnostic> {
    let mut checker = Checker { parameters, found: Vec::new(), ranked: false };
    checker.query(query, false);
    checker.found
}

struct Checker<'q> {
    parameters: &'q Parameters,
    found: Vec<Diagnostic>,
    /// Whether the expression at hand is an item of ORDER BY RANK.
    ranked: bool,
}

impl Checker<'_> {
    fn add(&mut self, code: u16, span: Span, message: impl Into<String>) {
        self.found.push(Diagnostic { code: Code::Sc(code), location: Some(span), message: message.into() });
    }

    fn query(&mut self, query: &Query, is_subquery: bool) {
        let outer = std::mem::replace(&mut self.ranked, false);
        let is_ranked = matches!(query.order_by, Some(OrderBy::Rank(_)));
        self.sources(query, is_ranked && !is_subquery);
        query.filter.iter().chain(&query.group_by).for_each(|expr| self.expr(expr));
        match &query.select.spec {
            SelectSpec::Star(_) => {}
            SelectSpec::Value(expr) => self.expr(expr),
            SelectSpec::List(items) => items.iter().for_each(|item| self.expr(&item.expr)),
        }
        match &query.order_by {
            None => {}
            Some(OrderBy::Items(items)) => items.iter().for_each(|item| self.expr(&item.expr)),
            Some(OrderBy::Rank(items)) => {
                self.ranked = true;
                items.iter().for_each(|item| self.expr(&item.expr));
                self.rank(query, items);
            }
        }
        if is_subquery {
            self.clauses(query);
        }
        self.ranked = outer;
    }

    fn sources(&mut self, query: &Query, is_ranked: bool) {
        let Some(From { sources }) = &query.from else { return };
        if let ([first, .., last], true) = (sources.as_slice(), is_ranked) {
            let message = "The JOIN operator is not allowed with the ORDER BY RANK clause.";
            self.add(2224, first.span.to(last.span), message);
        }
        for source in sources {
            if is_ranked && matches!(source.binding, Binding::Each(_)) {
                let message =
                    "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.";
                self.add(2223, source.span, message);
            }
            match &source.collection {
                Collection::Path { .. } => {}
                Collection::Value(expr) => self.expr(expr),
                Collection::Subquery(inner) => {
                    if is_ranked {
                        let message =
                            "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
                        self.add(2225, source.collection_span, message);
                    }
                    self.query(inner, true);
                }
            }
        }
    }

    /// The clauses that only the outermost query may have.
    fn clauses(&mut self, query: &Query) {
        match query.order_by {
            None => {}
            Some(OrderBy::Items(_)) => {
                self.add(2202, query.order_by_span, "'ORDER BY' is not supported in subqueries.");
            }
            Some(OrderBy::Rank(_)) => {
                let message = "The ORDER BY RANK clause is not supported in subqueries.";
                self.add(2228, query.order_by_span, message);
            }
        }
        if query.select.top.is_some() {
            self.add(2203, query.select.top_span, "'TOP' is not supported in subqueries.");
        }
        if let Some(clause) = &query.offset_limit {
            self.add(2204, clause.span, "'OFFSET LIMIT' clause is not supported in subqueries.");
        }
    }

    fn rank(&mut self, query: &Query, items: &[OrderItem]) {
        if items.len() > 1 {
            self.add(2221, query.order_by_span, NO_SCORE);
        }
        for item in items {
            if item.direction.is_some() {
                self.add(2222, query.order_by_span, SORT_ORDER);
            }
            let ExprKind::Call { udf: false, name, arguments } = &item.expr.kind else { continue };
            let is = |known: &str| known.eq_ignore_ascii_case(name);
            let refusal = match () {
                // A name that does not exist has a complaint of its own.
                () if functions::find(name).is_none() => continue,
                () if is("FullTextScore") || is("VectorDistance") => continue,
                () if is("RRF") => fusion_refusal(arguments, self.parameters),
                () => Some((2221, NO_SCORE)),
            };
            if let Some((code, message)) = refusal {
                self.add(code, query.order_by_span, message);
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Subquery(_, query) = &expr.kind {
            self.query(query, true);
        }
        // What is wrong with the arguments is told before what is wrong with the call.
        expr.operands(|operand| self.expr(operand));
        if let ExprKind::Call { udf: false, name, arguments } = &expr.kind {
            self.call(expr, name, arguments);
        }
    }

    fn call(&mut self, expr: &Expr, name: &str, arguments: &[Expr]) {
        if name.eq_ignore_ascii_case("FullTextScore") && !self.ranked {
            let message = "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
            self.add(2240, expr.span, message);
        }
        if name.eq_ignore_ascii_case("RRF") && !self.ranked {
            let start = expr.span.start as usize;
            let message = format!("'{name}' is not a recognized built-in function name.");
            self.add(2005, Span::new(start, start + name.len()), message);
        }
        if name.eq_ignore_ascii_case("VectorDistance") {
            arguments.iter().skip(2).for_each(|argument| self.options(argument));
        }
    }

    fn options(&mut self, argument: &Expr) {
        let ExprKind::Object(options) = &argument.kind else { return };
        for (name, value) in options {
            let range = match name.as_str() {
                "searchListSizeMultiplier" | "quantizedVectorListMultiplier" => 1.0..=100.0,
                "filterPriority" => 0.0..=1.0,
                _ => continue,
            };
            if let Some(number) = number(value).filter(|value| !range.contains(value)) {
                let (least, most) = (range.start(), range.end());
                let message = format!(
                    "The '{name}' value {number} specified in the VectorDistance function is outside the \
                     supported range. The value must be between {least} and {most}."
                );
                self.add(2213, argument.span, message);
            }
        }
    }
}

const NO_SCORE: &str =
    "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.";

const BAD_WEIGHTS: &str = "The last parameter of the RRF function is an optional array of weights. When present, \
     it must be a literal array of numbers, one for each of the component scores used for the RRF function. The \
     length of this array must be the same as the number of the component scores.";

const SORT_ORDER: &str = "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.";

/// RRF fuses two scores or more; behind them it may have a list of weights, one for each.
fn fusion_refusal(arguments: &[Expr], parameters: &Parameters) -> Option<(u16, &'static str)> {
    let scores = arguments.iter().take_while(|argument| is_score(argument)).count();
    match &arguments[scores..] {
        _ if scores < 2 => Some((2221, NO_SCORE)),
        [] => None,
        [list] if matches!(list.kind, ExprKind::Array(_) | ExprKind::Parameter(_)) => {
            let weights = weights(list, parameters);
            weights.is_none_or(|weights| weights.len() != scores).then_some((2229, BAD_WEIGHTS))
        }
        _ => Some((2221, NO_SCORE)),
    }
}

fn is_score(expr: &Expr) -> bool {
    let is_known =
        |name: &str| ["FullTextScore", "VectorDistance"].iter().any(|known| known.eq_ignore_ascii_case(name));
    matches!(&expr.kind, ExprKind::Call { udf: false, name, .. } if is_known(name))
}
