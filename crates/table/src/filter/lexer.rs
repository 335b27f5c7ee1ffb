//! The words of a filter.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Literal, Operator};
use crate::edm;
use crate::moment;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Operator(Operator),
    Name(String),
    Literal(Literal),
}

/// All words of a text; none if there is one that is no word.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '(' => (Token::Open, &rest[1..]),
            ')' => (Token::Close, &rest[1..]),
            '\'' => {
                let (text, after) = quoted(rest)?;
                (Token::Literal(Literal::String(text)), after)
            }
            '-' | '+' | '.' | '0'..='9' => number(rest)?,
            _ => word(rest)?,
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Some(tokens)
}

/// A quoted text, in which quotes are doubled, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (piece, after) = rest.split_once('\'')?;
        value.push_str(piece);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

fn number(text: &str) -> Option<(Token, &str)> {
    if let Some((sign, after)) = text.split_at_checked(1).filter(|(sign, _)| matches!(*sign, "-" | "+"))
        && let Some((Token::Literal(Literal::Double(value)), rest)) = word(after)
        && value.is_infinite()
    {
        let value = if sign == "-" { -value } else { value };
        return Some((Token::Literal(Literal::Double(value)), rest));
    }
    let is_part = |(at, byte): (usize, u8)| match byte {
        b'0'..=b'9' | b'.' | b'e' | b'E' => true,
        b'-' | b'+' => at == 0 || matches!(text.as_bytes()[at - 1], b'e' | b'E'),
        _ => false,
    };
    let end = text.bytes().enumerate().position(|place| !is_part(place)).unwrap_or(text.len());
    let (digits, mut rest) = text.split_at(end);
    let plain = digits.strip_prefix('+').unwrap_or(digits);
    let suffix = rest.bytes().next().map(|byte| byte.to_ascii_uppercase());
    let literal = match suffix {
        Some(b'L') => Literal::Int(plain.parse().ok()?),
        Some(b'D' | b'F' | b'M') => Literal::Double(finite(plain)?),
        _ => match plain.parse() {
            Ok(whole) => Literal::Int(whole),
            Err(_) => Literal::Double(finite(plain)?),
        },
    };
    if matches!(suffix, Some(b'L' | b'D' | b'F' | b'M')) {
        rest = &rest[1..];
    }
    let ends = rest.chars().next().is_none_or(|next| next.is_whitespace() || next == ')');
    ends.then_some((Token::Literal(literal), rest))
}

fn finite(digits: &str) -> Option<f64> {
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

fn word(text: &str) -> Option<(Token, &str)> {
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '(' | ')' | '\'' | ',');
    let end = text.find(is_end).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if rest.starts_with('\'') {
        let (inner, rest) = quoted(rest)?;
        let literal = match word.to_ascii_lowercase().as_str() {
            "datetime" => Literal::DateTime(moment::parse(&inner)?),
            "guid" => Literal::Guid(edm::guid(&inner)?),
            "x" | "binary" => Literal::Binary(STANDARD.encode(bytes(&inner)?)),
            _ => return None,
        };
        return Some((Token::Literal(literal), rest));
    }
    let token = match word {
        "" => return None,
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "eq" => Token::Operator(Operator::Equal),
        "ne" => Token::Operator(Operator::NotEqual),
        "gt" => Token::Operator(Operator::Greater),
        "ge" => Token::Operator(Operator::GreaterOrEqual),
        "lt" => Token::Operator(Operator::Less),
        "le" => Token::Operator(Operator::LessOrEqual),
        "true" => Token::Literal(Literal::Bool(true)),
        "false" => Token::Literal(Literal::Bool(false)),
        "NaN" => Token::Literal(Literal::Double(f64::NAN)),
        "INF" | "Infinity" => Token::Literal(Literal::Double(f64::INFINITY)),
        name => Token::Name(name.to_owned()),
    };
    Some((token, rest))
}

/// Two hexadecimal digits for each byte.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Option<Literal> {
        match tokens(text)?.as_slice() {
            [Token::Literal(literal)] => Some(literal.clone()),
            _ => None,
        }
    }

    #[test]
    fn literals_of_all_types_are_read() {
        for (text, wanted) in [
            ("'it''s'", Literal::String("it's".into())),
            ("''", Literal::String(String::new())),
            ("123", Literal::Int(123)),
            ("-5L", Literal::Int(-5)),
            ("1099511627776l", Literal::Int(1 << 40)),
            ("1.5", Literal::Double(1.5)),
            ("-1.5e-3", Literal::Double(-0.0015)),
            ("5d", Literal::Double(5.0)),
            ("9223372036854775808", Literal::Double(9_223_372_036_854_775_808.0)),
            ("INF", Literal::Double(f64::INFINITY)),
            ("+INF", Literal::Double(f64::INFINITY)),
            ("Infinity", Literal::Double(f64::INFINITY)),
            ("-INF", Literal::Double(f64::NEG_INFINITY)),
            ("-Infinity", Literal::Double(f64::NEG_INFINITY)),
            ("true", Literal::Bool(true)),
            ("X'6269'", Literal::Binary("Ymk=".into())),
            ("binary'6269'", Literal::Binary("Ymk=".into())),
            ("datetime'1970-01-01T00:00:00Z'", Literal::DateTime(moment::TICKS_TO_1970)),
            (
                "guid'C9DA6455-213D-42C9-9A79-3E9149A57833'",
                Literal::Guid("c9da6455-213d-42c9-9a79-3e9149a57833".into()),
            ),
        ] {
            assert_eq!(literal(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for text in [
            "'open",
            "1x",
            "1.2.3",
            "5LL",
            "X'6'",
            "X'zz'",
            "guid'1'",
            "datetime'x'",
            "else'1'",
            "--1",
            "1e",
            ",",
            "9223372036854775808L",
            "-NaN",
            "-infinite",
            "--INF",
            "-",
        ] {
            assert_eq!(tokens(text), None, "{text}");
        }
    }
}
