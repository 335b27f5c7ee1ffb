//! Reads a filter: `or` binds less than `and`, and that less than `not`.
//!
//! Clients make long filters by putting parentheses around what they have and adding a comparison, so a filter may have
//! hundreds of levels of them and yet be one chain. Therefore nothing here calls itself: what waits for the rest of the
//! filter lies on a stack, chains of one word become flat lists whatever parentheses stand in them, and what is limited
//! is the depth of the filter that comes out.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::lexer::{Token, tokens};
use super::{Filter, Literal, Operator};
use crate::errors::Refusal;
use crate::limits::{FILTER_BYTES_MAX, FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};

pub(crate) fn parse(text: &str) -> Result<Filter, Refusal> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(Refusal::invalid(format!("The filter is longer than {FILTER_BYTES_MAX} bytes.")));
    }
    let tokens = tokens(text).ok_or_else(Refusal::bad_address)?;
    Parser { tokens: tokens.into_iter().peekable(), waiting: Vec::new(), comparisons: 0 }.read()
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
    waiting: Vec<Waiting>,
    comparisons: usize,
}

/// What waits for the filter behind it.
enum Waiting {
    Parenthesis,
    Not,
    And(Part),
    Or(Part),
}

/// A part of the filter, and how deep it is.
struct Part {
    filter: Filter,
    depth: usize,
}

impl Parser {
    fn read(mut self) -> Result<Filter, Refusal> {
        loop {
            let mut part = match self.next()? {
                Token::Not => {
                    self.waiting.push(Waiting::Not);
                    continue;
                }
                Token::Open => {
                    self.waiting.push(Waiting::Parenthesis);
                    continue;
                }
                first => Part { filter: self.comparison(first)?, depth: 0 },
            };
            // Parentheses that close here have more behind them, or the filter ends.
            loop {
                match self.tokens.next() {
                    Some(Token::And) => {
                        part = self.joined(part, false)?;
                        self.waiting.push(Waiting::And(part));
                        break;
                    }
                    Some(Token::Or) => {
                        part = self.joined(part, true)?;
                        self.waiting.push(Waiting::Or(part));
                        break;
                    }
                    Some(Token::Close) => {
                        part = self.joined(part, true)?;
                        self.waiting.pop().ok_or_else(Refusal::bad_address)?;
                    }
                    None => {
                        part = self.joined(part, true)?;
                        return if self.waiting.is_empty() {
                            Ok(part.filter)
                        } else {
                            Err(Refusal::bad_address())
                        };
                    }
                    Some(_) => return Err(Refusal::bad_address()),
                }
            }
        }
    }

    /// A part with all that has waited for it, up to a parenthesis; or only what binds as tightly as `and`.
    fn joined(&mut self, mut part: Part, with_or: bool) -> Result<Part, Refusal> {
        loop {
            part = match self.waiting.pop() {
                Some(Waiting::Not) => {
                    Part { filter: Filter::Not(Box::new(part.filter)), depth: part.depth + 1 }
                }
                Some(Waiting::And(left)) => left.and(part),
                Some(Waiting::Or(left)) if with_or => left.or(part),
                Some(other) => {
                    self.waiting.push(other);
                    return Ok(part);
                }
                None => return Ok(part),
            };
            if part.depth > FILTER_DEPTH_MAX {
                return Err(Refusal::invalid(format!(
                    "The filter is nested deeper than {FILTER_DEPTH_MAX} levels."
                )));
            }
        }
    }

    /// A comparison, or what stands for one.
    fn comparison(&mut self, first: Token) -> Result<Filter, Refusal> {
        let operator = match self.tokens.peek() {
            Some(Token::Operator(operator)) => Some(*operator),
            _ => None,
        };
        let Some(operator) = operator else {
            return match first {
                // A property by itself is a condition if it is a boolean one.
                Token::Name(property) => self.compare(property, Operator::Equal, Literal::Bool(true)),
                Token::Literal(Literal::Bool(value)) => Ok(Filter::Constant(value)),
                _ => Err(Refusal::bad_address()),
            };
        };
        self.tokens.next();
        match (first, self.next()?) {
            (Token::Name(property), Token::Literal(literal)) => self.compare(property, operator, literal),
            (Token::Literal(literal), Token::Name(property)) => {
                self.compare(property, operator.turned(), literal)
            }
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

    fn next(&mut self) -> Result<Token, Refusal> {
        self.tokens.next().ok_or_else(Refusal::bad_address)
    }
}

impl Part {
    fn and(self, right: Part) -> Part {
        let is_chain = |filter: &Filter| matches!(filter, Filter::And(_));
        self.chained(right, is_chain, Filter::And)
    }

    fn or(self, right: Part) -> Part {
        let is_chain = |filter: &Filter| matches!(filter, Filter::Or(_));
        self.chained(right, is_chain, Filter::Or)
    }

    /// Both as one chain, into which chains of the same word are taken as they are.
    fn chained(self, right: Part, is_chain: fn(&Filter) -> bool, chain: fn(Vec<Filter>) -> Filter) -> Part {
        let depth_of = |part: &Part| part.depth + usize::from(!is_chain(&part.filter));
        let depth = depth_of(&self).max(depth_of(&right));
        let mut operands = self.operands(is_chain);
        operands.append(&mut right.operands(is_chain));
        Part { filter: chain(operands), depth }
    }

    fn operands(self, is_chain: fn(&Filter) -> bool) -> Vec<Filter> {
        let is_chain = is_chain(&self.filter);
        match self.filter {
            Filter::And(list) | Filter::Or(list) if is_chain => list,
            one => vec![one],
        }
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
            "()",
            ")",
            "a) or (b",
            "(a or b",
            "a or or b",
            "a not b",
            "1 eq 1",
        ] {
            let is_flag = text == "a";
            assert_eq!(shown(text).is_some(), is_flag, "{text}");
        }
    }

    /// As `CombineFilters` of the SDKs makes them, called in a loop.
    fn nested_on_the_left(joints: &[&str], count: usize) -> String {
        (1..count).fold("(p eq 0)".to_owned(), |filter, place| {
            format!("({filter}) {} (p eq {place})", joints[place % joints.len()])
        })
    }

    #[test]
    fn chains_are_flat_whatever_parentheses_are_in_them() {
        let wanted = |joint: &str| {
            let list: Vec<String> = (0..200).map(|place| format!("p Equal Int({place})")).collect();
            Some(format!("({})", list.join(joint)))
        };
        assert_eq!(shown(&nested_on_the_left(&["or"], 200)), wanted(" | "));
        assert_eq!(shown(&nested_on_the_left(&["and"], 200)), wanted(" & "));
        let right = (0..199)
            .rev()
            .fold("(p eq 199)".to_owned(), |filter, place| format!("(p eq {place}) or ({filter})"));
        assert_eq!(shown(&right), wanted(" | "));
        assert_eq!(
            shown("((a or b) and (c and d)) and e").as_deref(),
            shown("(a or b) and c and d and e").as_deref()
        );
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth: usize| format!("{}a eq 1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(shown(&nested(15_000)), shown("a eq 1"), "parentheses alone make nothing deeper");
        let turns = |depth: usize| nested_on_the_left(&["and", "or"], depth + 1);
        assert!(parse(&turns(FILTER_DEPTH_MAX)).is_ok());
        assert!(parse(&turns(FILTER_DEPTH_MAX + 1)).is_err());
        let negated = |depth: usize| format!("{}a eq 1", "not ".repeat(depth));
        assert!(parse(&negated(FILTER_DEPTH_MAX)).is_ok());
        assert!(parse(&negated(FILTER_DEPTH_MAX + 1)).is_err());
        assert!(parse(&negated(8_000)).is_err());
        assert!(parse(&"not ".repeat(5_000)).is_err());
        assert!(parse(&"(".repeat(FILTER_BYTES_MAX)).is_err());
        let chain = |count: usize| vec!["a eq 1"; count].join(" or ");
        assert!(parse(&chain(FILTER_COMPARISONS_MAX)).is_ok());
        assert!(parse(&chain(FILTER_COMPARISONS_MAX + 1)).is_err());
        assert!(parse(&"x".repeat(FILTER_BYTES_MAX + 1)).is_err());
    }
}
