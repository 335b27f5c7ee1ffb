//! Reads a filter: `or` binds less than `and`, and that less than `not`.
//!
//! Chains of `and` and of `or` are flat lists, so depth comes from parentheses and `not` alone, and that is limited.

use super::lexer::{Token, tokens};
use super::{Filter, Literal, Operator};
use crate::errors::Refusal;
use crate::limits::{FILTER_BYTES_MAX, FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};

pub(crate) fn parse(text: &str) -> Result<Filter, Refusal> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(Refusal::invalid(format!("The filter is longer than {FILTER_BYTES_MAX} bytes.")));
    }
    let tokens = tokens(text).ok_or_else(Refusal::bad_address)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, comparisons: 0 };
    let filter = parser.any()?;
    if parser.at == tokens.len() { Ok(filter) } else { Err(Refusal::bad_address()) }
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    comparisons: usize,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Filter, Refusal> {
        self.chain(&Token::Or, Filter::Or, |parser| parser.chain(&Token::And, Filter::And, Parser::one))
    }

    /// Operands with one word between them.
    fn chain(
        &mut self,
        joint: &Token,
        join: fn(Vec<Filter>) -> Filter,
        operand: impl Fn(&mut Self) -> Result<Filter, Refusal>,
    ) -> Result<Filter, Refusal> {
        let first = operand(self)?;
        if self.peek() != Some(joint) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.peek() == Some(joint) {
            self.at += 1;
            operands.push(operand(self)?);
        }
        Ok(join(operands))
    }

    fn one(&mut self) -> Result<Filter, Refusal> {
        match self.next()? {
            Token::Not => {
                let inner = self.deeper(Parser::one)?;
                Ok(Filter::Not(Box::new(inner)))
            }
            Token::Open => {
                let inner = self.deeper(Parser::any)?;
                match self.next()? {
                    Token::Close => Ok(inner),
                    _ => Err(Refusal::bad_address()),
                }
            }
            Token::Name(property) => {
                // A property by itself is a condition if it is a boolean one.
                let Some(Token::Operator(operator)) = self.peek().cloned() else {
                    return self.compare(property, Operator::Equal, Literal::Bool(true));
                };
                self.at += 1;
                match self.next()? {
                    Token::Literal(literal) => self.compare(property, operator, literal),
                    _ => Err(Refusal::bad_address()),
                }
            }
            Token::Literal(literal) => match (self.peek().cloned(), literal) {
                (Some(Token::Operator(operator)), literal) => {
                    self.at += 1;
                    match self.next()? {
                        Token::Name(property) => self.compare(property, operator.turned(), literal),
                        _ => Err(Refusal::bad_address()),
                    }
                }
                (_, Literal::Bool(value)) => Ok(Filter::Constant(value)),
                _ => Err(Refusal::bad_address()),
            },
            _ => Err(Refusal::bad_address()),
        }
    }

    fn compare(&mut self, property: String, operator: Operator, literal: Literal) -> Result<Filter, Refusal> {
        self.comparisons += 1;
        if self.comparisons > FILTER_COMPARISONS_MAX {
            return Err(Refusal::invalid(format!(
                "The filter has more than {FILTER_COMPARISONS_MAX} comparisons."
            )));
        }
        Ok(Filter::Compare { property, operator, literal })
    }

    fn deeper(&mut self, inner: fn(&mut Self) -> Result<Filter, Refusal>) -> Result<Filter, Refusal> {
        if self.depth == FILTER_DEPTH_MAX {
            return Err(Refusal::invalid(format!(
                "The filter is nested deeper than {FILTER_DEPTH_MAX} levels."
            )));
        }
        self.depth += 1;
        let parsed = inner(self);
        self.depth -= 1;
        parsed
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Result<Token, Refusal> {
        let token = self.peek().cloned().ok_or_else(Refusal::bad_address)?;
        self.at += 1;
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        fn show(filter: &Filter) -> String {
            let list = |list: &[Filter], joint: &str| {
                format!("({})", list.iter().map(show).collect::<Vec<_>>().join(joint))
            };
            match filter {
                Filter::And(operands) => list(operands, " & "),
                Filter::Or(operands) => list(operands, " | "),
                Filter::Not(inner) => format!("!{}", show(inner)),
                Filter::Compare { property, operator, literal } => {
                    format!("{property} {operator:?} {literal:?}")
                }
                Filter::Constant(value) => value.to_string(),
            }
        }
        parse(text).ok().map(|filter| show(&filter))
    }

    #[test]
    fn words_bind_as_they_should() {
        for (text, wanted) in [
            ("a eq 1", "a Equal Int(1)"),
            ("1 lt a", "a Greater Int(1)"),
            ("a eq 1 or b eq 2 and c eq 3", "(a Equal Int(1) | (b Equal Int(2) & c Equal Int(3)))"),
            ("(a eq 1 or b eq 2) and c eq 3", "((a Equal Int(1) | b Equal Int(2)) & c Equal Int(3))"),
            ("not a eq 1 and b", "(!a Equal Int(1) & b Equal Bool(true))"),
            ("not(a eq 1)", "!a Equal Int(1)"),
            ("true", "true"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in [
            "",
            "a",
            "a eq",
            "eq 1",
            "a eq 1 and",
            "(a eq 1",
            "a eq 1)",
            "a b",
            "a eq b",
            "1",
            "aaa bbb ccc",
            "not",
        ] {
            let is_flag = text == "a";
            assert_eq!(shown(text).is_some(), is_flag, "{text}");
        }
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth: usize| format!("{}a eq 1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(FILTER_DEPTH_MAX)).is_ok());
        assert!(parse(&nested(FILTER_DEPTH_MAX + 1)).is_err());
        assert!(parse(&nested(15_000)).is_err());
        assert!(parse(&"not ".repeat(5_000)).is_err());
        let chain = |count: usize| vec!["a eq 1"; count].join(" or ");
        assert!(parse(&chain(FILTER_COMPARISONS_MAX)).is_ok());
        assert!(parse(&chain(FILTER_COMPARISONS_MAX + 1)).is_err());
        assert!(parse(&"x".repeat(FILTER_BYTES_MAX + 1)).is_err());
    }
}
