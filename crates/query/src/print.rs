//! From tree back to text, as the service writes it into rewritten queries.

use std::fmt::Write as _;

use crate::ast::*;
use crate::limits;

/// How clauses are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Everything on one line, numbers with the fewest digits that read back the same.
    Line,
    /// A line per clause, indented subqueries and numbers with 17 digits, as C's `%.17g` prints
    /// them: the form of rewritten queries.
    Clauses,
}

/// The canonical text of a query.
pub fn print(query: &Query, layout: Layout) -> String {
    let mut printer = Printer { out: String::new(), layout, indent: 0 };
    printer.query(query);
    printer.out
}

/// The text of an expression as it stands in a rewritten query.
pub fn print_expression(expr: &Expr) -> String {
    let mut printer = Printer { out: String::new(), layout: Layout::Clauses, indent: 0 };
    printer.expr(expr);
    printer.out
}

/// Appends `text` as a JSON string.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                write!(out, "\\u{:04X}", c as u32).expect("writing to a string cannot fail")
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A double in the manner of C's `%g`, with all 17 digits or with as few as needed.
fn double(value: f64, all_digits: bool) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Infinity".into() } else { "Infinity".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = if all_digits { format!("{value:.16e}") } else { format!("{value:e}") };
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if !(-5..17).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{dot}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}

struct Printer {
    out: String,
    layout: Layout,
    indent: usize,
}

impl Printer {
    /// Starts a new clause.
    fn clause(&mut self) {
        match self.layout {
            Layout::Line => self.out.push(' '),
            Layout::Clauses => {
                self.out.push('\n');
                self.out.extend(std::iter::repeat_n(' ', self.indent * 4));
            }
        }
    }

    fn query(&mut self, query: &Query) {
        self.select(&query.select);
        if let Some(from) = &query.from {
            self.clause();
            self.out.push_str("FROM ");
            for (i, source) in from.sources.iter().enumerate() {
                if i > 0 {
                    self.clause();
                    self.out.push_str("JOIN ");
                }
                self.source(source);
            }
        }
        if let Some(filter) = &query.filter {
            self.clause();
            self.out.push_str("WHERE ");
            self.expr(filter);
        }
        if !query.group_by.is_empty() {
            self.clause();
            self.out.push_str("GROUP BY ");
            self.list(&query.group_by);
        }
        if let Some(order_by) = &query.order_by {
            self.clause();
            self.order_by(order_by);
        }
        if let Some(OffsetLimit { offset, limit, .. }) = &query.offset_limit {
            self.clause();
            self.out.push_str("OFFSET ");
            self.count(offset);
            self.out.push_str(" LIMIT ");
            self.count(limit);
        }
    }

    fn select(&mut self, select: &Select) {
        self.out.push_str("SELECT ");
        if select.distinct {
            self.out.push_str("DISTINCT ");
        }
        if let Some(top) = &select.top {
            self.out.push_str("TOP ");
            self.count(top);
            self.out.push(' ');
        }
        match &select.spec {
            SelectSpec::Star(_) => self.out.push('*'),
            SelectSpec::Value(expr) => {
                self.out.push_str("VALUE ");
                self.expr(expr);
            }
            SelectSpec::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.expr(&item.expr);
                    if let Some(alias) = &item.alias {
                        self.out.push_str(" AS ");
                        self.out.push_str(alias);
                    }
                }
            }
        }
    }

    fn count(&mut self, count: &Count) {
        match &count.kind {
            CountKind::Literal(value) => {
                write!(self.out, "{value}").expect("writing to a string cannot fail");
            }
            CountKind::Parameter(name) => self.out.push_str(name),
        }
    }

    fn source(&mut self, source: &Source) {
        if let Binding::Each(name) = &source.binding {
            self.out.push_str(name);
            self.out.push_str(" IN ");
        }
        match &source.collection {
            Collection::Path { root, steps, .. } => {
                self.out.push_str(root);
                steps.iter().for_each(|step| self.step(step));
            }
            Collection::Subquery(query) => self.subquery(query),
            Collection::Value(expr) => self.expr(expr),
        }
        if let Binding::Alias(name) = &source.binding {
            self.out.push_str(" AS ");
            self.out.push_str(name);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Name(name) => {
                self.out.push('.');
                self.out.push_str(name);
            }
            Step::Key(name) => {
                self.out.push('[');
                quote(name, &mut self.out);
                self.out.push(']');
            }
            Step::Index(index) => {
                write!(self.out, "[{index}]").expect("writing to a string cannot fail");
            }
        }
    }

    fn subquery(&mut self, query: &Query) {
        self.out.push('(');
        if self.layout == Layout::Clauses {
            self.indent += 1;
            self.clause();
            self.query(query);
            self.indent -= 1;
            self.clause();
        } else {
            self.query(query);
        }
        self.out.push(')');
    }

    fn order_by(&mut self, order_by: &OrderBy) {
        let items = match order_by {
            OrderBy::Items(items) => {
                self.out.push_str("ORDER BY ");
                items
            }
            OrderBy::Rank(items) => {
                self.out.push_str("ORDER BY RANK ");
                items
            }
        };
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.expr(&item.expr);
            match item.direction {
                Some(Direction::Ascending) => self.out.push_str(" ASC"),
                Some(Direction::Descending) => self.out.push_str(" DESC"),
                None => {}
            }
        }
    }

    fn list(&mut self, list: &[Expr]) {
        for (i, expr) in list.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Parameter(name) | ExprKind::Name(name) => self.out.push_str(name),
            ExprKind::Member(base, name) => {
                self.base(base);
                self.out.push('.');
                self.out.push_str(name);
            }
            ExprKind::Index(base, index) => {
                self.base(base);
                self.out.push('[');
                self.expr(index);
                self.out.push(']');
            }
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Binary(op, left, right) => self.infix(left, op.symbol(), right),
            ExprKind::And(operands) => self.logical(operands, " AND "),
            ExprKind::Or(operands) => self.logical(operands, " OR "),
            ExprKind::Conditional(operands) => self.between(operands, " ? ", " : "),
            ExprKind::Between { negated, operands } => {
                let between = if *negated { " NOT BETWEEN " } else { " BETWEEN " };
                self.between(operands, between, " AND ");
            }
            ExprKind::In { negated, needle, list } => {
                self.out.push('(');
                self.expr(needle);
                self.out.push_str(if *negated { " NOT IN (" } else { " IN (" });
                self.list(list);
                self.out.push_str("))");
            }
            ExprKind::Like { negated, value, pattern, escape } => {
                self.like(*negated, value, pattern, escape.as_deref());
            }
            ExprKind::Array(list) => {
                self.out.push('[');
                self.list(list);
                self.out.push(']');
            }
            ExprKind::Object(properties) => self.object(properties),
            ExprKind::Call { udf, name, arguments } => {
                self.out.push_str(if *udf { "udf." } else { "" });
                self.out.push_str(name);
                self.out.push('(');
                self.list(arguments);
                self.out.push(')');
            }
            ExprKind::Subquery(kind, query) => {
                self.out.push_str(match kind {
                    SubqueryKind::Scalar => "",
                    SubqueryKind::Exists => "EXISTS",
                    SubqueryKind::Array => "ARRAY",
                    SubqueryKind::All => "ALL",
                    SubqueryKind::First => "FIRST",
                    SubqueryKind::Last => "LAST",
                });
                self.subquery(query);
            }
            ExprKind::Placeholder(text) => self.out.push_str(text),
        }
    }

    /// What stands before `.` or `[`. A number needs parentheses, or `1.a` would not parse.
    fn base(&mut self, base: &Expr) {
        if matches!(base.kind, ExprKind::Literal(Literal::Int(_) | Literal::Double(_))) {
            self.out.push('(');
            self.expr(base);
            self.out.push(')');
        } else {
            self.expr(base);
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        self.out.push_str(match op {
            UnaryOp::Plus => "(+ ",
            UnaryOp::Minus => "(- ",
            UnaryOp::BitNot => "(~ ",
            UnaryOp::Not => "(NOT ",
        });
        self.expr(operand);
        self.out.push(')');
    }

    fn infix(&mut self, left: &Expr, symbol: &str, right: &Expr) {
        self.out.push('(');
        self.expr(left);
        self.out.push(' ');
        self.out.push_str(symbol);
        self.out.push(' ');
        self.expr(right);
        self.out.push(')');
    }

    fn between(&mut self, operands: &[Expr; 3], first: &str, second: &str) {
        self.out.push('(');
        self.expr(&operands[0]);
        self.out.push_str(first);
        self.expr(&operands[1]);
        self.out.push_str(second);
        self.expr(&operands[2]);
        self.out.push(')');
    }

    /// The service nests to the left, `((a AND b) AND c)`; very long chains stay flat.
    fn logical(&mut self, operands: &[Expr], word: &str) {
        let nested = operands.len() <= limits::NESTED_LOGICAL_OPERANDS;
        let opening = if nested { operands.len() - 1 } else { 1 };
        self.out.extend(std::iter::repeat_n('(', opening));
        for (i, operand) in operands.iter().enumerate() {
            if i > 0 {
                self.out.push_str(word);
            }
            self.expr(operand);
            if nested && i > 0 {
                self.out.push(')');
            }
        }
        if !nested {
            self.out.push(')');
        }
    }

    fn like(&mut self, negated: bool, value: &Expr, pattern: &Expr, escape: Option<&str>) {
        self.out.push('(');
        self.expr(value);
        self.out.push_str(if negated { " NOT LIKE " } else { " LIKE " });
        self.expr(pattern);
        if let Some(escape) = escape {
            self.out.push_str(" ESCAPE ");
            quote(escape, &mut self.out);
        }
        self.out.push(')');
    }

    fn object(&mut self, properties: &[(String, Expr)]) {
        self.out.push('{');
        for (i, (name, value)) in properties.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            quote(name, &mut self.out);
            self.out.push_str(": ");
            self.expr(value);
        }
        self.out.push('}');
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Undefined => self.out.push_str("undefined"),
            Literal::Null => self.out.push_str("null"),
            Literal::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Literal::Int(value) => write!(self.out, "{value}").expect("writing to a string cannot fail"),
            Literal::Double(value) => {
                self.out.push_str(&double(*value, self.layout == Layout::Clauses));
            }
            Literal::String(text) => quote(text, &mut self.out),
        }
    }
}
