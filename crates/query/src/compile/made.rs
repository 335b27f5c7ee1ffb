//! Queries that no text stands for: other languages make the tree themselves and have the same planner.
//!
//! The parser refuses texts that are too long, too deep or join too much, and never makes some trees at all. A caller that makes
//! a tree is held to the same here, before anything walks it that trusts the parser.

use std::sync::Arc;

use super::{Code, Given, Program, Purpose, Vocabulary, compile_tree};
use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::parameters::Parameters;
use crate::parse::Counted;

/// What a node counts besides its names and texts: about what it would take in a text.
const NODE_BYTES: usize = 4;

/// Compiles a tree that was made by code, over a container with a vocabulary of its own. What is wrong with it is told
/// without places, since there is no text.
pub fn compile_ast(query: Query, parameters: &Parameters, vocabulary: &Vocabulary) -> Result<Program> {
    let mut check = Check { bytes: 0 };
    check.query(&query, 1).map_err(without_places)?;
    let code: Code = compile_tree(Arc::new(query), Given::now(parameters), vocabulary, Purpose::Run)
        .map_err(without_places)?;
    Ok(Program::new(Arc::new(code), parameters.clone(), check.bytes))
}

fn without_places(mut error: QueryError) -> QueryError {
    if let QueryError::Invalid(findings) = &mut error {
        findings.iter_mut().for_each(|finding| finding.location = None);
    }
    error
}

/// Walks a tree no deeper than a parsed one could be.
struct Check {
    /// About how long a text the tree would have.
    bytes: usize,
}

impl Check {
    fn query(&mut self, query: &Query, depth: u32) -> Result<()> {
        self.enter(depth)?;
        let Query { select, from, filter, group_by, order_by, offset_limit, .. } = query;
        match &select.spec {
            SelectSpec::Star(_) => {}
            SelectSpec::Value(value) => self.expr(value, depth + 1)?,
            SelectSpec::List(items) => {
                at_least(items.len(), 1, "A SELECT list")?;
                for item in items {
                    self.text(item.alias.as_deref().unwrap_or_default())?;
                    self.expr(&item.expr, depth + 1)?;
                }
            }
        }
        if let Some(top) = &select.top {
            self.count(top, Counted::Top)?;
        }
        if let Some(from) = from {
            at_least(from.sources.len(), 1, "A FROM clause")?;
            if from.sources.len() > limits::JOINS + 1 {
                let message = format!("The query exceeded the maximum number of joins ({}).", limits::JOINS);
                return Err(QueryError::at(3036, Span::default(), message));
            }
            from.sources.iter().try_for_each(|source| self.source(source, depth))?;
        }
        self.exprs(filter, depth)?;
        self.exprs(group_by, depth)?;
        if let Some(OrderBy::Items(items) | OrderBy::Rank(items)) = order_by {
            at_least(items.len(), 1, "An ORDER BY clause")?;
            self.exprs(items.iter().map(|item| &item.expr), depth)?;
        }
        if let Some(OffsetLimit { offset, limit, .. }) = offset_limit {
            self.count(offset, Counted::Offset)?;
            self.count(limit, Counted::Limit)?;
        }
        Ok(())
    }

    fn source(&mut self, source: &Source, depth: u32) -> Result<()> {
        if let Binding::Alias(name) | Binding::Each(name) = &source.binding {
            self.text(name)?;
        }
        match &source.collection {
            Collection::Subquery(query) => self.query(query, depth + 1),
            Collection::Value(value) => self.expr(value, depth + 1),
            Collection::Path { root, steps, .. } => {
                self.text(root)?;
                steps.iter().try_for_each(|step| match step {
                    Step::Name(name) | Step::Key(name) => self.text(name),
                    Step::Index(_) => self.text(""),
                })
            }
        }
    }

    fn exprs<'e>(&mut self, list: impl IntoIterator<Item = &'e Expr>, depth: u32) -> Result<()> {
        list.into_iter().try_for_each(|expr| self.expr(expr, depth + 1))
    }

    fn expr(&mut self, expr: &Expr, depth: u32) -> Result<()> {
        self.enter(depth)?;
        match &expr.kind {
            ExprKind::Literal(Literal::String(text)) => self.text(text)?,
            ExprKind::Parameter(name) | ExprKind::Name(name) | ExprKind::Member(_, name) => {
                self.text(name)?
            }
            ExprKind::Call { name, .. } => self.text(name)?,
            ExprKind::Object(properties) => properties.iter().try_for_each(|(name, _)| self.text(name))?,
            ExprKind::And(list) => at_least(list.len(), 2, "An AND")?,
            ExprKind::Or(list) => at_least(list.len(), 2, "An OR")?,
            ExprKind::In { list, .. } => at_least(list.len(), 1, "An IN")?,
            ExprKind::Like { escape, .. } => self.text(escape.as_deref().unwrap_or_default())?,
            ExprKind::Subquery(_, query) => self.query(query, depth + 1)?,
            _ => {}
        }
        let mut checked = Ok(());
        expr.operands(|operand| {
            if checked.is_ok() {
                checked = self.expr(operand, depth + 1);
            }
        });
        checked
    }

    fn count(&mut self, count: &Count, counted: Counted) -> Result<()> {
        match &count.kind {
            CountKind::Literal(value) if *value > limits::ROW_COUNT => Err(counted.refuse(count.span)),
            CountKind::Literal(_) => Ok(()),
            CountKind::Parameter(name) => self.text(name),
        }
    }

    fn enter(&mut self, depth: u32) -> Result<()> {
        if depth > limits::EXPRESSION_DEPTH {
            let message = format!("The query is nested deeper than {} levels.", limits::EXPRESSION_DEPTH);
            return Err(QueryError::at(1020, Span::default(), message));
        }
        self.text("")
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.bytes += NODE_BYTES + text.len();
        match self.bytes > limits::QUERY_BYTES {
            true => Err(QueryError::bare(format!(
                "The query text exceeds the maximum length of {} bytes.",
                limits::QUERY_BYTES
            ))),
            false => Ok(()),
        }
    }
}

/// The parser makes no shorter lists, and what reads trees relies on it.
fn at_least(length: usize, least: usize, what: &str) -> Result<()> {
    match length >= least {
        true => Ok(()),
        false => {
            Err(QueryError::bare(format!("{what} needs at least {least} members; the tree has {length}.")))
        }
    }
}
