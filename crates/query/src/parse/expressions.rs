//! Scalar expressions, by precedence climbing.

use super::Parser;
use crate::ast::*;
use crate::error::{QueryError, Result};
use crate::lexer;
use crate::token::{Keyword, Kind, Symbol};
use crate::value::MAX_SAFE;

/// Binding strengths, from loose to tight.
mod strength {
    pub const CONDITIONAL: u8 = 1;
    pub const COALESCE: u8 = 2;
    pub const OR: u8 = 3;
    pub const AND: u8 = 4;
    pub const TEST: u8 = 5;
    pub const BIT_OR: u8 = 6;
    pub const BIT_XOR: u8 = 7;
    pub const BIT_AND: u8 = 8;
    pub const EQUALITY: u8 = 9;
    pub const RELATION: u8 = 10;
    pub const CONCAT: u8 = 11;
    pub const SHIFT: u8 = 12;
    pub const SUM: u8 = 13;
    pub const PRODUCT: u8 = 14;
}

/// What the token after an operand asks for.
enum Operator {
    Conditional,
    And,
    Or,
    Test,
    Binary(BinaryOp),
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.nested(|parser| parser.climb(strength::CONDITIONAL))
    }

    pub(super) fn expression_list(&mut self) -> Result<Vec<Expr>> {
        let mut list = vec![self.expression()?];
        while self.take_symbol(Symbol::Comma) {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    /// Parses operators that bind at least as tightly as `least`. A left-leaning chain makes the
    /// tree taller without making this recursion deeper, so the loop counts height itself.
    fn climb(&mut self, least: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((operator, bond)) = self.operator().filter(|(_, bond)| *bond >= least) {
            let flat = matches!(
                (&operator, &left.kind),
                (Operator::And, ExprKind::And(_)) | (Operator::Or, ExprKind::Or(_))
            );
            left = self.operate(left, operator, bond)?;
            if !flat {
                self.grow()?;
            }
            if bond == strength::TEST {
                // BETWEEN, IN and LIKE do not chain: only looser operators may follow.
                if self.operator().is_some_and(|(_, next)| next >= strength::TEST) {
                    return Err(self.unexpected());
                }
            }
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(Operator, u8)> {
        use BinaryOp::*;
        let symbol = match self.token().kind {
            Kind::Keyword(Keyword::And) => return Some((Operator::And, strength::AND)),
            Kind::Keyword(Keyword::Or) => return Some((Operator::Or, strength::OR)),
            Kind::Keyword(Keyword::Between | Keyword::In | Keyword::Like) => {
                return Some((Operator::Test, strength::TEST));
            }
            Kind::Keyword(Keyword::Not) => {
                let next = self.peek(1).kind;
                let test = matches!(next, Kind::Keyword(Keyword::Between | Keyword::In | Keyword::Like));
                return test.then_some((Operator::Test, strength::TEST));
            }
            Kind::Symbol(symbol) => symbol,
            _ => return None,
        };
        let (op, bond) = match symbol {
            Symbol::Question => return Some((Operator::Conditional, strength::CONDITIONAL)),
            Symbol::Coalesce => (Coalesce, strength::COALESCE),
            Symbol::Pipe => (BitOr, strength::BIT_OR),
            Symbol::Caret => (BitXor, strength::BIT_XOR),
            Symbol::Ampersand => (BitAnd, strength::BIT_AND),
            Symbol::Equal => (Equal, strength::EQUALITY),
            Symbol::NotEqual => (NotEqual, strength::EQUALITY),
            Symbol::Less => (Less, strength::RELATION),
            Symbol::LessOrEqual => (LessOrEqual, strength::RELATION),
            Symbol::Greater => (Greater, strength::RELATION),
            Symbol::GreaterOrEqual => (GreaterOrEqual, strength::RELATION),
            Symbol::Concat => (Concat, strength::CONCAT),
            Symbol::ShiftLeft => (ShiftLeft, strength::SHIFT),
            Symbol::ShiftRight => (ShiftRight, strength::SHIFT),
            Symbol::ShiftRightZero => (ShiftRightZero, strength::SHIFT),
            Symbol::Plus => (Add, strength::SUM),
            Symbol::Minus => (Subtract, strength::SUM),
            Symbol::Star => (Multiply, strength::PRODUCT),
            Symbol::Slash => (Divide, strength::PRODUCT),
            Symbol::Percent => (Modulo, strength::PRODUCT),
            _ => return None,
        };
        Some((Operator::Binary(op), bond))
    }

    fn operate(&mut self, left: Expr, operator: Operator, bond: u8) -> Result<Expr> {
        let start = left.span;
        match operator {
            Operator::Conditional => {
                self.advance();
                let then = self.expression()?;
                self.expect_symbol(Symbol::Colon)?;
                let otherwise = self.nested(|parser| parser.climb(strength::CONDITIONAL))?;
                let span = start.to(otherwise.span);
                Ok(Expr::new(ExprKind::Conditional(Box::new([left, then, otherwise])), span))
            }
            Operator::And => {
                self.advance();
                Ok(left.and(self.nested(|parser| parser.climb(bond + 1))?))
            }
            Operator::Or => {
                self.advance();
                Ok(left.or(self.nested(|parser| parser.climb(bond + 1))?))
            }
            Operator::Test => self.test(left),
            Operator::Binary(op) => {
                self.advance();
                let right = self.nested(|parser| parser.climb(bond + 1))?;
                let span = start.to(right.span);
                Ok(Expr::new(ExprKind::Binary(op, Box::new(left), Box::new(right)), span))
            }
        }
    }

    /// `[NOT] BETWEEN a AND b`, `[NOT] IN (...)`, `[NOT] LIKE p [ESCAPE e]`.
    fn test(&mut self, left: Expr) -> Result<Expr> {
        let start = left.span;
        let negated = self.take_keyword(Keyword::Not);
        let kind = if self.take_keyword(Keyword::Between) {
            let low = self.nested(|parser| parser.climb(strength::BIT_OR))?;
            self.expect_keyword(Keyword::And)?;
            let high = self.nested(|parser| parser.climb(strength::BIT_OR))?;
            ExprKind::Between { negated, operands: Box::new([left, low, high]) }
        } else if self.take_keyword(Keyword::In) {
            self.expect_symbol(Symbol::LeftParen)?;
            let list = self.expression_list()?;
            self.expect_symbol(Symbol::RightParen)?;
            ExprKind::In { negated, needle: Box::new(left), list }
        } else {
            self.expect_keyword(Keyword::Like)?;
            let pattern = Box::new(self.nested(|parser| parser.climb(strength::BIT_OR))?);
            let escape = if self.take_keyword(Keyword::Escape) { Some(self.string()?) } else { None };
            ExprKind::Like { negated, value: Box::new(left), pattern, escape }
        };
        Ok(Expr::new(kind, start.to(self.last_span())))
    }

    fn unary(&mut self) -> Result<Expr> {
        let token = self.token();
        let op = match token.kind {
            Kind::Symbol(Symbol::Plus) => UnaryOp::Plus,
            Kind::Symbol(Symbol::Minus) => UnaryOp::Minus,
            Kind::Symbol(Symbol::Tilde) => UnaryOp::BitNot,
            Kind::Keyword(Keyword::Not) => UnaryOp::Not,
            _ => return self.primary(),
        };
        self.advance();
        let number = self.token();
        if op == UnaryOp::Minus && number.kind == Kind::Number && number.span.start == token.span.end {
            self.advance();
            let span = token.span.to(number.span);
            let literal = self.number(number.span, true)?;
            return self.postfix(Expr::new(ExprKind::Literal(literal), span));
        }
        if op == UnaryOp::Minus && number.kind == Kind::Keyword(Keyword::Infinity) {
            self.advance();
            let literal = Literal::Double(f64::NEG_INFINITY);
            return self.postfix(Expr::new(ExprKind::Literal(literal), token.span.to(number.span)));
        }
        let operand = self.nested(Self::unary)?;
        let span = token.span.to(operand.span);
        Ok(Expr::new(ExprKind::Unary(op, Box::new(operand)), span))
    }

    pub(super) fn primary(&mut self) -> Result<Expr> {
        let token = self.token();
        let kind = match token.kind {
            Kind::Number => {
                self.advance();
                ExprKind::Literal(self.number(token.span, false)?)
            }
            Kind::String => ExprKind::Literal(Literal::String(self.string()?)),
            Kind::Parameter => {
                self.advance();
                ExprKind::Parameter(token.span.text(self.text).to_owned())
            }
            Kind::Symbol(Symbol::LeftParen) => return self.parenthesised(),
            Kind::Symbol(Symbol::LeftBracket) => self.array()?,
            Kind::Symbol(Symbol::LeftBrace) => self.object()?,
            Kind::Keyword(word) if !matches!(self.peek(1).kind, Kind::Symbol(Symbol::LeftParen)) => {
                match self.constant(word) {
                    Some(literal) => ExprKind::Literal(literal),
                    None if word == Keyword::Udf => self.udf()?,
                    None => ExprKind::Name(self.name()?),
                }
            }
            Kind::Keyword(word) => self.called_keyword(word)?,
            Kind::Identifier => {
                let name = self.name()?;
                if self.at_symbol(Symbol::LeftParen) {
                    let arguments = self.arguments()?;
                    ExprKind::Call { udf: false, name, arguments }
                } else {
                    ExprKind::Name(name)
                }
            }
            _ => return Err(self.unexpected()),
        };
        self.postfix(Expr::new(kind, token.span.to(self.last_span())))
    }

    fn constant(&mut self, word: Keyword) -> Option<Literal> {
        let literal = match word {
            Keyword::True => Literal::Bool(true),
            Keyword::False => Literal::Bool(false),
            Keyword::Null => Literal::Null,
            Keyword::Undefined => Literal::Undefined,
            Keyword::NaN => Literal::Double(f64::NAN),
            Keyword::Infinity => Literal::Double(f64::INFINITY),
            _ => return None,
        };
        self.advance();
        Some(literal)
    }

    /// A keyword before `(`: a subquery form, or a function with the name of a keyword.
    fn called_keyword(&mut self, word: Keyword) -> Result<ExprKind> {
        let subquery = self.peek(2).kind == Kind::Keyword(Keyword::Select);
        let kind = match word {
            Keyword::Exists => SubqueryKind::Exists,
            Keyword::Array => SubqueryKind::Array,
            Keyword::All if subquery => SubqueryKind::All,
            Keyword::First if subquery => SubqueryKind::First,
            Keyword::Last if subquery => SubqueryKind::Last,
            word if word.usable_as_name() => {
                let name = self.name()?;
                let arguments = self.arguments()?;
                return Ok(ExprKind::Call { udf: false, name, arguments });
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        self.expect_symbol(Symbol::LeftParen)?;
        let query = self.query()?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(ExprKind::Subquery(kind, Box::new(query)))
    }

    fn udf(&mut self) -> Result<ExprKind> {
        self.expect_keyword(Keyword::Udf)?;
        let mut name = String::new();
        while self.take_symbol(Symbol::Dot) {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&self.name()?);
        }
        if name.is_empty() {
            return Err(self.unexpected());
        }
        let arguments = self.arguments()?;
        Ok(ExprKind::Call { udf: true, name, arguments })
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect_symbol(Symbol::LeftParen)?;
        if self.take_symbol(Symbol::RightParen) {
            return Ok(Vec::new());
        }
        let list = self.expression_list()?;
        self.expect_symbol(Symbol::RightParen)?;
        Ok(list)
    }

    fn parenthesised(&mut self) -> Result<Expr> {
        let open = self.advance().span;
        let mut expr = if self.at_keyword(Keyword::Select) {
            let query = self.query()?;
            Expr::new(ExprKind::Subquery(SubqueryKind::Scalar, Box::new(query)), open)
        } else {
            // Parentheses are no node of the tree. Chains are printed with one pair for each operator, and must not be
            // taller when they are read again.
            self.deeper(|parser| parser.climb(strength::CONDITIONAL))?
        };
        self.expect_symbol(Symbol::RightParen)?;
        expr.span = open.to(self.last_span());
        self.postfix(expr)
    }

    fn array(&mut self) -> Result<ExprKind> {
        self.expect_symbol(Symbol::LeftBracket)?;
        if self.take_symbol(Symbol::RightBracket) {
            return Ok(ExprKind::Array(Vec::new()));
        }
        let list = self.expression_list()?;
        self.expect_symbol(Symbol::RightBracket)?;
        Ok(ExprKind::Array(list))
    }

    fn object(&mut self) -> Result<ExprKind> {
        self.expect_symbol(Symbol::LeftBrace)?;
        let mut properties = Vec::new();
        if self.take_symbol(Symbol::RightBrace) {
            return Ok(ExprKind::Object(properties));
        }
        loop {
            let name = if lexer::is_name(self.token().kind) { self.name()? } else { self.string()? };
            self.expect_symbol(Symbol::Colon)?;
            properties.push((name, self.expression()?));
            if !self.take_symbol(Symbol::Comma) {
                break;
            }
        }
        self.expect_symbol(Symbol::RightBrace)?;
        Ok(ExprKind::Object(properties))
    }

    /// `.name` and `[index]` after an operand.
    fn postfix(&mut self, mut base: Expr) -> Result<Expr> {
        loop {
            let start = base.span;
            let kind = if self.take_symbol(Symbol::Dot) {
                ExprKind::Member(Box::new(base), self.name()?)
            } else if self.take_symbol(Symbol::LeftBracket) {
                let index = self.expression()?;
                self.expect_symbol(Symbol::RightBracket)?;
                ExprKind::Index(Box::new(base), Box::new(index))
            } else {
                return Ok(base);
            };
            base = Expr::new(kind, start.to(self.last_span()));
            self.grow()?;
        }
    }

    fn number(&self, span: Span, negative: bool) -> Result<Literal> {
        let text = span.text(self.text);
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        if let Some(digits) = digits {
            let value = u64::from_str_radix(digits, 16).map_err(|_| bad_number(span, text))?;
            let value = i64::try_from(value).map_err(|_| bad_number(span, text))?;
            return Ok(Literal::Int(if negative { -value } else { value }));
        }
        if !text.contains(['.', 'e', 'E']) {
            let signed = if negative { format!("-{text}") } else { text.to_owned() };
            if let Ok(value) = signed.parse::<i64>() {
                return Ok(Literal::Int(value));
            }
        }
        let value =
            text.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(|| bad_number(span, text))?;
        let value = if negative { -value } else { value };
        // `2.0` and `2` are one number, and are printed as one.
        let whole = value.fract() == 0.0 && value.abs() <= MAX_SAFE;
        Ok(if whole { Literal::Int(value as i64) } else { Literal::Double(value) })
    }
}

fn bad_number(span: Span, text: &str) -> QueryError {
    QueryError::at(1012, span, format!("Syntax error, invalid numeric value token '{text}'."))
}
