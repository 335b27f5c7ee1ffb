//! SELECT, FROM, WHERE, GROUP BY, ORDER BY, OFFSET LIMIT.

use super::Parser;
use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::lexer;
use crate::limits;
use crate::token::{Keyword, Kind, Symbol};

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Result<Query> {
        self.nested(|parser| {
            let start = parser.token().span;
            let select = parser.select()?;
            let from = if parser.take_keyword(Keyword::From) { Some(parser.from()?) } else { None };
            let filter = if parser.take_keyword(Keyword::Where) { Some(parser.expression()?) } else { None };
            let group_by = parser.group_by()?;
            let order_start = parser.token().span;
            let order_by = parser.order_by()?;
            let order_by_span = order_start.to(parser.last_span());
            let offset_limit = parser.offset_limit()?;
            let span = start.to(parser.last_span());
            Ok(Query { select, from, filter, group_by, order_by, order_by_span, offset_limit, span })
        })
    }

    /// `FROM c WHERE ...` without a SELECT, as conditional patch sends it.
    pub(super) fn bare_condition(&mut self) -> Result<Query> {
        let start = self.token().span;
        self.expect_keyword(Keyword::From)?;
        let from = Some(self.from()?);
        let filter = if self.take_keyword(Keyword::Where) { Some(self.expression()?) } else { None };
        let spec = SelectSpec::Star(start);
        let select = Select { distinct: false, top: None, top_span: start, spec, span: start };
        Ok(Query {
            select,
            from,
            filter,
            group_by: Vec::new(),
            order_by: None,
            order_by_span: start,
            offset_limit: None,
            span: start.to(self.last_span()),
        })
    }

    fn select(&mut self) -> Result<Select> {
        let start = self.token().span;
        self.expect_keyword(Keyword::Select)?;
        let distinct = self.take_keyword(Keyword::Distinct);
        let top_start = self.token().span;
        let top = if self.take_keyword(Keyword::Top) { Some(self.count(Counted::Top)?) } else { None };
        let top_span = top_start.to(self.last_span());
        let token = self.token();
        let spec = if self.take_symbol(Symbol::Star) {
            SelectSpec::Star(token.span)
        } else if self.take_keyword(Keyword::Value) {
            let value = self.expression()?;
            // The row has no name to give, but clients write one.
            self.alias()?;
            SelectSpec::Value(Box::new(value))
        } else {
            let mut items = vec![self.select_item()?];
            while self.take_symbol(Symbol::Comma) {
                items.push(self.select_item()?);
            }
            SelectSpec::List(items)
        };
        Ok(Select { distinct, top, top_span, spec, span: start.to(self.last_span()) })
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        let expr = self.expression()?;
        let alias = self.alias()?;
        Ok(SelectItem { expr, alias })
    }

    /// A name behind an expression, with AS or without.
    fn alias(&mut self) -> Result<Option<String>> {
        let is_there = self.take_keyword(Keyword::As) || lexer::is_name(self.token().kind);
        is_there.then(|| self.name()).transpose()
    }

    fn count(&mut self, counted: Counted) -> Result<Count> {
        let token = self.token();
        let kind = match token.kind {
            Kind::Parameter => CountKind::Parameter(token.span.text(self.text).to_owned()),
            Kind::Number => {
                let value = token.span.text(self.text).parse::<u64>().ok();
                let value = value.filter(|v| *v <= limits::ROW_COUNT);
                CountKind::Literal(value.ok_or_else(|| counted.refuse(token.span))?)
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Count { kind, span: token.span })
    }

    pub(super) fn from(&mut self) -> Result<From> {
        let mut sources = vec![self.source()?];
        while self.take_keyword(Keyword::Join) {
            if sources.len() > limits::JOINS {
                let message = format!("The query exceeded the maximum number of joins ({}).", limits::JOINS);
                return Err(QueryError::at(3036, self.token().span, message));
            }
            sources.push(self.source()?);
        }
        Ok(From { sources })
    }

    fn source(&mut self) -> Result<Source> {
        let start = self.token().span;
        let each = lexer::is_name(self.token().kind) && self.peek(1).kind == Kind::Keyword(Keyword::In);
        if each {
            let name = self.name()?;
            self.expect_keyword(Keyword::In)?;
            let collection_start = self.token().span;
            let collection = self.collection()?;
            let collection_span = collection_start.to(self.last_span());
            let span = start.to(self.last_span());
            return Ok(Source { collection, collection_span, binding: Binding::Each(name), span });
        }
        let collection = self.collection()?;
        let collection_span = start.to(self.last_span());
        let binding = if self.take_keyword(Keyword::As) || lexer::is_name(self.token().kind) {
            Binding::Alias(self.name()?)
        } else {
            Binding::Implicit
        };
        Ok(Source { collection, collection_span, binding, span: start.to(self.last_span()) })
    }

    fn collection(&mut self) -> Result<Collection> {
        let start = self.token().span;
        if self.at_symbol(Symbol::LeftParen) && self.peek(1).kind == Kind::Keyword(Keyword::Select) {
            self.advance();
            let query = self.query()?;
            self.expect_symbol(Symbol::RightParen)?;
            return Ok(Collection::Subquery(Box::new(query)));
        }
        if !lexer::is_name(self.token().kind) || self.peek(1).kind == Kind::Symbol(Symbol::LeftParen) {
            let value = self.primary()?;
            let span = value.span;
            // More parentheses than needed change nothing: a path is a path, a query a query.
            if let Some((root, steps)) = path_of(&value) {
                return Ok(Collection::Path { root, steps, span });
            }
            return Ok(match value.kind {
                ExprKind::Subquery(SubqueryKind::Scalar, query) => Collection::Subquery(query),
                kind => Collection::Value(Box::new(Expr::new(kind, span))),
            });
        }
        let root = self.name()?;
        let mut steps = Vec::new();
        loop {
            if self.take_symbol(Symbol::Dot) {
                steps.push(Step::Name(self.name()?));
            } else if self.take_symbol(Symbol::LeftBracket) {
                steps.push(self.bracket_step()?);
                self.expect_symbol(Symbol::RightBracket)?;
            } else {
                break;
            }
        }
        Ok(Collection::Path { root, steps, span: start.to(self.last_span()) })
    }

    fn bracket_step(&mut self) -> Result<Step> {
        let token = self.token();
        match token.kind {
            Kind::String => Ok(Step::Key(self.string()?)),
            Kind::Number => {
                let index = token.span.text(self.text).parse().map_err(|_| self.unexpected())?;
                self.advance();
                Ok(Step::Index(index))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn group_by(&mut self) -> Result<Vec<Expr>> {
        if !self.take_keyword(Keyword::Group) {
            return Ok(Vec::new());
        }
        self.expect_keyword(Keyword::By)?;
        self.expression_list()
    }

    fn order_by(&mut self) -> Result<Option<OrderBy>> {
        if !self.take_keyword(Keyword::Order) {
            return Ok(None);
        }
        self.expect_keyword(Keyword::By)?;
        let ranked = self.at_keyword(Keyword::Rank)
            && (lexer::is_name(self.peek(1).kind) || self.peek(1).kind == Kind::Keyword(Keyword::Udf));
        if ranked {
            self.advance();
        }
        let mut items = vec![self.order_item(ranked)?];
        while self.take_symbol(Symbol::Comma) {
            items.push(self.order_item(ranked)?);
        }
        Ok(Some(if ranked { OrderBy::Rank(items) } else { OrderBy::Items(items) }))
    }

    fn order_item(&mut self, ranked: bool) -> Result<OrderItem> {
        let start = self.token();
        let expr = self.expression()?;
        if ranked && !matches!(expr.kind, ExprKind::Call { .. }) {
            let near = start.span.text(self.text);
            let message = format!("Syntax error, incorrect syntax near '{near}'.");
            return Err(QueryError::at(1001, start.span, message));
        }
        let direction = if self.take_keyword(Keyword::Asc) {
            Some(Direction::Ascending)
        } else if self.take_keyword(Keyword::Desc) {
            Some(Direction::Descending)
        } else {
            None
        };
        Ok(OrderItem { expr, direction })
    }

    fn offset_limit(&mut self) -> Result<Option<OffsetLimit>> {
        let start = self.token().span;
        if !self.take_keyword(Keyword::Offset) {
            return Ok(None);
        }
        let offset = self.count(Counted::Offset)?;
        self.expect_keyword(Keyword::Limit)?;
        let limit = self.count(Counted::Limit)?;
        Ok(Some(OffsetLimit { offset, limit, span: start.to(self.last_span()) }))
    }
}

/// A name with constant steps behind it.
fn path_of(expr: &Expr) -> Option<(String, Vec<Step>)> {
    let (base, step) = match &expr.kind {
        ExprKind::Name(root) => return Some((root.clone(), Vec::new())),
        ExprKind::Member(base, name) => (base, Step::Name(name.clone())),
        ExprKind::Index(base, index) => match &index.kind {
            ExprKind::Literal(Literal::String(name)) => (base, Step::Key(name.clone())),
            ExprKind::Literal(Literal::Int(index)) => (base, Step::Index(u64::try_from(*index).ok()?)),
            _ => return None,
        },
        _ => return None,
    };
    let (root, mut steps) = path_of(base)?;
    steps.push(step);
    Some((root, steps))
}

/// Which clause a row count belongs to; each has its own complaint.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Top,
    Offset,
    Limit,
}

impl Counted {
    pub(crate) fn refuse(self, span: Span) -> QueryError {
        match self {
            Self::Top => {
                QueryError::at(2060, span, "The count value provided for a TOP clause must be an integer.")
            }
            Self::Offset => {
                QueryError::at(2062, span, "The OFFSET count value exceeds the maximum allowed value.")
            }
            Self::Limit => {
                QueryError::at(2061, span, "The LIMIT count value exceeds the maximum allowed value.")
            }
        }
    }
}
