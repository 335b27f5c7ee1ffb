//! Reading a value back from its term.

use super::marks::{TermOrder, TermType};
use super::term_length;
use crate::partition_key::KeyComponent;

/// The scalar that a whole term of SQL stands for; none where the term was cut, or stands for something else. Numbers are
/// read as doubles, as keys have them.
pub fn read_scalar(term: &[u8]) -> Option<KeyComponent> {
    const ORDER: TermOrder = TermOrder::Sql;
    let kind = TermType::of_term(term, ORDER)?;
    let (length, complete) = term_length(term, ORDER, false)?;
    if length != term.len() || !complete {
        return None;
    }
    match kind {
        TermType::Null => Some(KeyComponent::Null),
        TermType::Bool => Some(KeyComponent::Bool(kind.bounds(ORDER)?.first != *term.first()?)),
        TermType::Number => {
            let bits = u64::from_be_bytes(*term.get(1..)?.first_chunk()?);
            let is_negative = bits >> 63 == 0;
            Some(KeyComponent::Number(f64::from_bits(if is_negative { !bits } else { bits ^ 1 << 63 })))
        }
        TermType::String => read_text(term.get(1..length - 2)?).map(KeyComponent::Str),
        _ => None,
    }
}

/// A zero stands as `00 ff`.
fn read_text(escaped: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(byte);
        if byte == 0 {
            rest.next();
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_STRING_BYTES, encode_term};
    use super::*;
    use crate::value::Value;

    fn read(value: Value<'_>) -> Option<KeyComponent> {
        let mut term = Vec::new();
        encode_term(value, TermOrder::Sql, &mut term);
        read_scalar(&term)
    }

    #[test]
    fn scalars_are_read_back_from_their_terms() {
        for number in [0.0, 1.0, -1.0, 0.1, -2.5e300, 9_007_199_254_740_993.0, f64::MAX, f64::MIN_POSITIVE] {
            assert_eq!(read(Value::Double(number)), Some(KeyComponent::Number(number)));
        }
        for number in [0, 7, -7, i64::MAX, i64::MIN, (1 << 53) + 1] {
            assert_eq!(read(Value::Int(number)), Some(KeyComponent::Number(number as f64)));
        }
        let long = "é".repeat(MAX_STRING_BYTES / 2);
        for text in ["", "a", "a\0b", "\0\0", "\u{ffff}", &long] {
            assert_eq!(read(Value::Str(text)), Some(KeyComponent::Str(text.to_owned())));
        }
        assert_eq!(read(Value::Bool(true)), Some(KeyComponent::Bool(true)));
        assert_eq!(read(Value::Bool(false)), Some(KeyComponent::Bool(false)));
        assert_eq!(read(Value::Null), Some(KeyComponent::Null));
        assert_eq!(read(Value::Undefined), None);
        assert_eq!(read(Value::Str(&(long + "!"))), None, "what was cut could be any of many");
        assert_eq!(read_scalar(&[]), None);
    }
}
