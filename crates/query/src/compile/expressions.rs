//! Scalar expressions.

use super::clauses::unresolved;
use super::{Compiler, Purpose, constructed};
use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::eval::order_named;
use crate::functions;
use crate::pattern::like_pattern;
use crate::program::{AggregateKind, LikeNode, Node, PathStep};
use crate::value::Val;

impl Compiler<'_> {
    /// Compiles an expression. One that is wrong is noted, and stands for undefined while more is looked for.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Node> {
        let node = self.sound(expr);
        Ok(self.noted(node)?.unwrap_or(Node::Constant(Val::Undefined)))
    }

    fn sound(&mut self, expr: &Expr) -> Result<Node> {
        if let Some(node) = self.grouped(expr)? {
            return Ok(node);
        }
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Node::Constant(constant(literal)),
            ExprKind::Parameter(name) => Node::Constant(self.given.value(name)),
            ExprKind::Name(name) => Node::Slot(self.slot(name, expr.span)?),
            ExprKind::Member(base, name) => {
                let base = self.expr(base)?;
                self.named(base, name)?
            }
            ExprKind::Index(base, index) => self.index(base, index, expr.span)?,
            ExprKind::Unary(op, operand) => Node::Unary(*op, Box::new(self.expr(operand)?)),
            ExprKind::Binary(op, left, right) if op.is_comparison() => {
                Node::Binary(*op, Box::new(self.operand(left)?), Box::new(self.operand(right)?))
            }
            ExprKind::Binary(op, left, right) => {
                Node::Binary(*op, Box::new(self.expr(left)?), Box::new(self.expr(right)?))
            }
            ExprKind::And(operands) => Node::And(self.list(operands)?),
            ExprKind::Or(operands) => Node::Or(self.list(operands)?),
            ExprKind::Conditional(operands) => Node::Conditional(Box::new(self.three(operands)?)),
            ExprKind::Between { negated, operands } => {
                let [value, low, high] = &**operands;
                let operands = [self.operand(value)?, self.operand(low)?, self.operand(high)?];
                Node::Between { negated: *negated, operands: Box::new(operands) }
            }
            ExprKind::In { negated, needle, list } => {
                contained(*negated, Box::new(self.expr(needle)?), self.list(list)?)
            }
            ExprKind::Like { negated, value, pattern, escape } => Node::Like {
                negated: *negated,
                value: Box::new(self.expr(value)?),
                pattern: self.like(pattern, escape.as_deref(), expr.span)?,
            },
            ExprKind::Array(items) => constructed::array(self.list(items)?),
            ExprKind::Object(properties) => {
                let mut nodes = Vec::with_capacity(properties.len());
                for (name, value) in properties {
                    nodes.push((name.as_str().into(), self.expr(value)?));
                }
                constructed::object(nodes)
            }
            ExprKind::Call { udf: true, name, arguments } => {
                self.user_functions.push(name.clone());
                Node::Udf(name.as_str().into(), self.list(arguments)?)
            }
            ExprKind::Call { udf: false, name, arguments } => self.call(expr, name, arguments)?,
            ExprKind::Subquery(kind, query) => Node::Subquery(*kind, Box::new(self.level(query)?)),
            ExprKind::Placeholder(text) => {
                return Err(QueryError::bare(format!("The placeholder {text} was not filled in.")));
            }
        })
    }

    /// One side of a comparison. A parameter there needs no value yet.
    fn operand(&mut self, expr: &Expr) -> Result<Node> {
        match &expr.kind {
            ExprKind::Parameter(name) if self.group.is_none() => Ok(self.given.operand(name)),
            _ => self.expr(expr),
        }
    }

    fn list(&mut self, list: &[Expr]) -> Result<Vec<Node>> {
        list.iter().map(|expr| self.expr(expr)).collect()
    }

    fn three(&mut self, operands: &[Expr; 3]) -> Result<[Node; 3]> {
        Ok([self.expr(&operands[0])?, self.expr(&operands[1])?, self.expr(&operands[2])?])
    }

    fn slot(&self, name: &str, span: Span) -> Result<usize> {
        let found = self.names.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, slot)| *slot).ok_or_else(|| unresolved(name, span))
    }

    fn index(&mut self, base: &Expr, index: &Expr, span: Span) -> Result<Node> {
        let base = self.expr(base)?;
        if depends_on_row(index) {
            let message = "The specified query includes 'member indexer' which is currently not supported.";
            return Err(QueryError::at(2990, span, message));
        }
        Ok(match self.expr(index)? {
            Node::Constant(Val::Str(name)) => self.named(base, name.as_str())?,
            Node::Constant(Val::Int(place)) if place >= 0 => {
                member(base, PathStep::Index(usize::try_from(place).unwrap_or(usize::MAX)))
            }
            index => Node::Index(Box::new(base), Box::new(index)),
        })
    }

    fn named(&mut self, base: Node, name: &str) -> Result<Node> {
        Ok(match self.computed(&base, name)? {
            Some(node) => node,
            None => member(base, PathStep::Name(name.into())),
        })
    }

    fn like(&mut self, pattern: &Expr, escape: Option<&str>, span: Span) -> Result<LikeNode> {
        let escape = match escape.map(|text| (text.chars().next(), text.chars().count())) {
            None => None,
            Some((Some(c), 1)) => Some(c),
            Some(_) => {
                return Err(QueryError::at(2070, span, "The ESCAPE of a LIKE must be one character."));
            }
        };
        Ok(match self.expr(pattern)? {
            Node::Constant(Val::Str(pattern)) => LikeNode::Ready(like_pattern(pattern.as_str(), escape)?),
            node => LikeNode::Late(Box::new(node), escape),
        })
    }

    fn call(&mut self, expr: &Expr, name: &str, arguments: &[Expr]) -> Result<Node> {
        let function = functions::find(name);
        if let Some(later) = function.filter(|function| function.is_later() && self.purpose == Purpose::Run) {
            return Err(QueryError::Unsupported(later.refusal()));
        }
        // What is wrong with the arguments is told before what is wrong with the call.
        let mut nodes = self.list(arguments)?;
        let Some(function) = function else {
            let end = expr.span.start as usize + name.len();
            let span = Span::new(expr.span.start as usize, end);
            if AggregateKind::from_name(name).is_some() {
                return Err(QueryError::at(2100, span, "An aggregate is not allowed here."));
            }
            let message = format!("'{name}' is not a recognized built-in function name.");
            return Err(QueryError::at(2005, span, message));
        };
        if arguments.len() < function.least || arguments.len() > function.most {
            return Err(QueryError::at(2050, expr.span, function.arity_text()));
        }
        if function.name == "ORDERKEY" {
            return order_key(nodes, expr.span);
        }
        if matches!(function.name, "VECTORDISTANCE" | "_VECTORSCORE") {
            return self.vector_distance(nodes, expr.span);
        }
        if function.name == "REGEXMATCH" {
            let modifiers = match nodes.get(2) {
                None => Some(""),
                Some(Node::Constant(Val::Str(modifiers))) => Some(modifiers.as_str()),
                Some(_) => None,
            };
            if let (Node::Constant(Val::Str(pattern)), Some(modifiers)) = (&nodes[1], modifiers) {
                let regex = functions::regex(pattern.as_str(), modifiers)?;
                self.given.is_large();
                return Ok(match regex {
                    Some(regex) => Node::Regex(Box::new(nodes.swap_remove(0)), Box::new(regex)),
                    None => Node::Constant(Val::Undefined),
                });
            }
        }
        if let ("ARRAY_CONTAINS", [Node::Constant(Val::Array(list)), _]) = (function.name, nodes.as_slice()) {
            // Clients send long lists of keys this way; IN finds its way through them.
            let list = list.iter().map(Node::Constant).collect();
            return Ok(contained(false, Box::new(nodes.swap_remove(1)), list));
        }
        Ok(Node::Call(function, nodes))
    }
}

/// The key of what is stored at a path. Anything else has lost its type already.
fn order_key(nodes: Vec<Node>, span: Span) -> Result<Node> {
    let order = match nodes.first() {
        Some(Node::Constant(Val::Str(name))) => order_named(name.as_str()),
        _ => None,
    };
    match (order, nodes.into_iter().nth(1)) {
        (Some(order), Some(Node::Path { slot, steps })) => Ok(Node::OrderKey { order, slot, steps }),
        _ => {
            let message =
                "ORDERKEY takes the name of an order ('sql', 'bson' or 'cql') and a path below the item.";
            Err(QueryError::at(2050, span, message))
        }
    }
}

/// Whether an expression says something else for each row, and not for each query only.
fn depends_on_row(expr: &Expr) -> bool {
    if matches!(expr.kind, ExprKind::Name(_) | ExprKind::Subquery(..)) {
        return true;
    }
    let mut found = false;
    expr.operands(|operand| found = found || depends_on_row(operand));
    found
}

fn contained(negated: bool, needle: Box<Node>, list: Vec<Node>) -> Node {
    if !list.iter().all(|item| matches!(item, Node::Constant(_))) {
        return Node::In { negated, needle, list };
    }
    let constants = list.into_iter().filter_map(|item| match item {
        Node::Constant(value) if !value.is_undefined() => Some(value),
        _ => None,
    });
    let mut sorted: Vec<Val<'static>> = constants.collect();
    sorted.sort_by(|a, b| a.order(b));
    Node::InConstants { negated, needle, sorted }
}

/// One more step, kept flat when the base is a slot or a path already.
fn member(base: Node, step: PathStep) -> Node {
    match (base, step) {
        (Node::Slot(slot), step) => Node::Path { slot, steps: Box::new([step]) },
        (Node::Path { slot, steps }, step) => {
            let steps = steps.into_iter().chain([step]).collect();
            Node::Path { slot, steps }
        }
        (base, PathStep::Name(name)) => Node::Member(Box::new(base), name),
        (base, PathStep::Index(index)) => {
            let index = Val::Int(i64::try_from(index).unwrap_or(i64::MAX));
            Node::Index(Box::new(base), Box::new(Node::Constant(index)))
        }
    }
}

pub(crate) fn constant(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Undefined => Val::Undefined,
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Double(value) if value.is_finite() => Val::number(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(text) => Val::text(text.as_str()),
    }
}
