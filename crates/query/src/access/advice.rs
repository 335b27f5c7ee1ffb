//! Advice on how a query could be written to make better use of an index.
//!
//! The service names each piece of advice by a number, and clients know the words. The rules look at the
//! text of the query alone.

use crate::ast::*;
use crate::compile::Program;
use crate::value::Val;

/// One piece of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// As clients know it: `QA1002`.
    pub id: &'static str,
    pub text: &'static str,
}

const PARTIAL_MATCH: Advice =
    Advice { id: "QA1000", text: "EXISTS with a subquery can replace a partial match by ARRAY_CONTAINS." };
const DISTINCT_JOIN: Advice =
    Advice { id: "QA1001", text: "EXISTS with a subquery can replace DISTINCT over a JOIN." };
const CONTAINS: Advice = Advice {
    id: "QA1002",
    text: "STARTSWITH can use the index better than CONTAINS, where a prefix is meant.",
};
const ANY_CASE: Advice = Advice {
    id: "QA1003",
    text: "A computed property with LOWER serves comparisons that ignore letter case better.",
};
const END: Advice =
    Advice { id: "QA1004", text: "A computed property with REVERSE turns ENDSWITH into STARTSWITH." };
const GROUPED_EXPRESSION: Advice =
    Advice { id: "QA1005", text: "A computed property can replace the expression in GROUP BY." };
const UPPER_LOWER: Advice =
    Advice { id: "QA1006", text: "A computed property can replace UPPER or LOWER in a comparison." };
const DATE_TIME: Advice =
    Advice { id: "QA1007", text: "GetCurrentDateTimeStatic is computed once for the whole query." };
const TICKS: Advice =
    Advice { id: "QA1008", text: "GetCurrentTicksStatic is computed once for the whole query." };
const TIMESTAMP: Advice =
    Advice { id: "QA1009", text: "GetCurrentTimestampStatic is computed once for the whole query." };

/// The advice for a query, conditions first, each piece once.
pub fn advice(program: &Program) -> Vec<Advice> {
    let mut adviser = Adviser { program, found: Vec::new() };
    adviser.query(program.query());
    adviser.found
}

/// The advice as the service's header has it: `[{"Id":"QA1002","Params":[]}]`.
pub fn advice_json(advice: &[Advice]) -> String {
    let entries: Vec<String> =
        advice.iter().map(|advice| format!("{{\"Id\":\"{}\",\"Params\":[]}}", advice.id)).collect();
    format!("[{}]", entries.join(","))
}

struct Adviser<'p> {
    program: &'p Program,
    found: Vec<Advice>,
}

impl Adviser<'_> {
    fn add(&mut self, advice: Advice) {
        if !self.found.contains(&advice) {
            self.found.push(advice);
        }
    }

    fn query(&mut self, query: &Query) {
        let sources = query.from.as_ref().map_or(&[][..], |from| &from.sources);
        for source in sources {
            match &source.collection {
                Collection::Subquery(inner) => self.query(inner),
                Collection::Value(expr) => self.expr(expr),
                Collection::Path { .. } => {}
            }
        }
        if query.select.distinct && sources.len() > 1 {
            self.add(DISTINCT_JOIN);
        }
        query.filter.iter().for_each(|filter| self.expr(filter));
        for key in &query.group_by {
            if matches!(key.kind, ExprKind::Call { .. } | ExprKind::Binary(..) | ExprKind::Unary(..)) {
                self.add(GROUPED_EXPRESSION);
            }
            self.expr(key);
        }
        match &query.select.spec {
            SelectSpec::Star(_) => {}
            SelectSpec::Value(expr) => self.expr(expr),
            SelectSpec::List(items) => items.iter().for_each(|item| self.expr(&item.expr)),
        }
        if let Some(OrderBy::Items(items) | OrderBy::Rank(items)) = &query.order_by {
            items.iter().for_each(|item| self.expr(&item.expr));
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Call { udf: false, name, arguments } => self.call(name, arguments),
            ExprKind::Binary(op, left, right)
                if op.is_comparison() && (changes_case(left) || changes_case(right)) =>
            {
                self.add(UPPER_LOWER);
            }
            ExprKind::Subquery(_, query) => self.query(query),
            _ => {}
        }
        let mut operands = Vec::new();
        expr.operands(|operand| operands.push(operand));
        operands.into_iter().for_each(|operand| self.expr(operand));
    }

    fn call(&mut self, name: &str, arguments: &[Expr]) {
        let flagged = arguments.get(2).is_some_and(|flag| self.is_true(flag));
        match name.to_ascii_uppercase().as_str() {
            "ARRAY_CONTAINS" if flagged => self.add(PARTIAL_MATCH),
            "CONTAINS" => self.add(CONTAINS),
            "STARTSWITH" | "STRINGEQUALS" if flagged => self.add(ANY_CASE),
            "ENDSWITH" => self.add(END),
            "GETCURRENTDATETIME" => self.add(DATE_TIME),
            "GETCURRENTTICKS" => self.add(TICKS),
            "GETCURRENTTIMESTAMP" => self.add(TIMESTAMP),
            _ => {}
        }
    }

    fn is_true(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(literal) => *literal == Literal::Bool(true),
            ExprKind::Parameter(name) => matches!(self.program.parameters().get(name), Val::Bool(true)),
            _ => false,
        }
    }
}

fn changes_case(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call { udf: false, name, .. } => {
            name.eq_ignore_ascii_case("UPPER") || name.eq_ignore_ascii_case("LOWER")
        }
        _ => false,
    }
}
