//! From text to tree: recursive descent over the token list, precedence climbing for operators.
//!
//! Every call that can nest goes through `Parser::nested`, which bounds both the recursion here and
//! the height of the tree that others will walk, so a hostile text ends in an error and never in a
//! stack overflow.

mod clauses;
mod expressions;

pub(crate) use clauses::Counted;

use crate::ast::{Expr, Query, Span};
use crate::error::{QueryError, Result};
use crate::lexer;
use crate::limits;
use crate::token::{Keyword, Kind, Symbol, Token};

/// Parses a whole query.
pub fn parse(text: &str) -> Result<Query> {
    run(text, |parser| {
        let query = parser.query()?;
        parser.expect_end()?;
        Ok(query)
    })
}

/// Parses the condition of a patch, `FROM c WHERE ...`, as `SELECT * FROM c WHERE ...`. A whole
/// query is accepted too.
pub fn parse_condition(text: &str) -> Result<Query> {
    run(text, |parser| {
        let query =
            if parser.at_keyword(Keyword::Select) { parser.query()? } else { parser.bare_condition()? };
        parser.expect_end()?;
        Ok(query)
    })
}

/// Parses one scalar expression, such as a filter without a query around it.
pub fn parse_expression(text: &str) -> Result<Expr> {
    run(text, |parser| {
        let expr = parser.expression()?;
        parser.expect_end()?;
        Ok(expr)
    })
}

fn run<T>(text: &str, body: impl FnOnce(&mut Parser<'_>) -> Result<T>) -> Result<T> {
    let parsed = lexer::tokens(text).and_then(|tokens| {
        let mut parser = Parser { text, tokens, at: 0, depth: 0, height: 0 };
        body(&mut parser)
    });
    parsed.map_err(|error| error.located_in(text))
}

pub(crate) struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    /// How deep the parser stands now.
    depth: u32,
    /// How tall the tallest tree is that was completed at this level. It can exceed what `depth`
    /// ever was, because chains of operators lean to the left without recursion.
    height: u32,
}

impl<'t> Parser<'t> {
    fn token(&self) -> Token {
        self.peek(0)
    }

    fn peek(&self, ahead: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + ahead).min(last)]
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// The span of the token before the current one.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn at_keyword(&self, word: Keyword) -> bool {
        self.token().kind == Kind::Keyword(word)
    }

    fn at_symbol(&self, symbol: Symbol) -> bool {
        self.token().kind == Kind::Symbol(symbol)
    }

    fn take_keyword(&mut self, word: Keyword) -> bool {
        let found = self.at_keyword(word);
        if found {
            self.advance();
        }
        found
    }

    fn take_symbol(&mut self, symbol: Symbol) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect_keyword(&mut self, word: Keyword) -> Result<()> {
        if self.take_keyword(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_symbol(&mut self, symbol: Symbol) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_end(&self) -> Result<()> {
        if self.token().kind == Kind::End { Ok(()) } else { Err(self.unexpected()) }
    }

    fn name(&mut self) -> Result<String> {
        let token = self.token();
        if !lexer::is_name(token.kind) {
            return Err(self.unexpected());
        }
        self.advance();
        Ok(token.span.text(self.text).to_owned())
    }

    fn string(&mut self) -> Result<String> {
        let token = self.token();
        if token.kind != Kind::String {
            return Err(self.unexpected());
        }
        self.advance();
        lexer::unescape(self.text, token.span).map_err(|span| {
            QueryError::at(1011, span, "Syntax error, invalid escape sequence in a string literal.")
        })
    }

    fn unexpected(&self) -> QueryError {
        let token = self.token();
        if token.kind == Kind::End {
            return QueryError::at(1001, token.span, "Syntax error, unexpected end of the query text.");
        }
        let near = token.span.text(self.text);
        QueryError::at(1001, token.span, format!("Syntax error, incorrect syntax near '{near}'."))
    }

    /// Runs `body` one level deeper, or refuses. What it parsed adds one level to the tree.
    fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper(|parser| {
            let result = body(parser)?;
            parser.grow()?;
            Ok(result)
        })
    }

    /// Runs `body` one level deeper, or refuses. The tree is as tall as what it parsed.
    fn deeper<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= limits::EXPRESSION_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let siblings = std::mem::take(&mut self.height);
        let result = body(self)?;
        self.depth -= 1;
        self.height = self.height.max(siblings);
        Ok(result)
    }

    /// Puts one more node on top of what was parsed at this level.
    fn grow(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > limits::EXPRESSION_DEPTH { Err(self.too_deep()) } else { Ok(()) }
    }

    fn too_deep(&self) -> QueryError {
        QueryError::at(
            1020,
            self.token().span,
            format!("The query is nested deeper than {} levels.", limits::EXPRESSION_DEPTH),
        )
    }
}
