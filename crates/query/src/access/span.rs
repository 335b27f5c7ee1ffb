//! Intervals of encoded terms, and sets of them.
//!
//! The bytes are those of [`orrery_doc::encode_term`] in the order of the SQL dialect: one mark for the type,
//! then the value. Undefined has a mark too, though no entry of a plain index ever holds it; the analysis of a
//! filter uses it to speak of items that lack a path.

use orrery_doc::{Bounds, DocBuilder, TermOrder, TermType, Value, encode_term, term_length};

use crate::value::{Kind, Val};

/// The order of the terms that filters are turned into.
pub(crate) const ORDER: TermOrder = TermOrder::Sql;

/// The terms from `lower` up to but not including `upper`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub lower: Vec<u8>,
    pub upper: Vec<u8>,
}

impl Span {
    /// The span of all terms that begin with these bytes; of one term, if they are a whole one.
    pub fn of_prefix(prefix: Vec<u8>) -> Self {
        let upper = after_prefix(&prefix);
        Self { lower: prefix, upper }
    }

    pub fn contains(&self, term: &[u8]) -> bool {
        self.lower.as_slice() <= term && term < self.upper.as_slice()
    }

    pub fn is_empty(&self) -> bool {
        self.lower >= self.upper
    }

    /// Whether it holds one term only.
    pub(crate) fn is_one_term(&self) -> bool {
        is_whole_term(&self.lower) && after_prefix(&self.lower) == self.upper
    }

    /// All terms of one type.
    pub(crate) fn of_kind(kind: Kind) -> Self {
        Self::of_kinds(kind, kind)
    }

    /// All terms of the types from one to another.
    pub(crate) fn of_kinds(first: Kind, last: Kind) -> Self {
        Self { lower: vec![bounds(first).first], upper: vec![bounds(last).behind] }
    }

    /// Everything but undefined.
    pub(crate) fn defined() -> Self {
        let Bounds { first, behind } = ORDER.defined();
        Self { lower: vec![first], upper: vec![behind] }
    }

    /// All strings that begin with a text, and whether the span holds nothing else.
    pub(crate) fn of_text_prefix(text: &str) -> (Self, bool) {
        if text.is_empty() {
            return (Self::of_kind(Kind::String), true);
        }
        let mut term = Vec::new();
        let complete = encode_term(Value::Str(text), ORDER, &mut term);
        // Without its end of two bytes, a string's term begins the terms of all longer strings.
        term.truncate(term.len() - 2);
        (Self::of_prefix(term), complete)
    }
}

/// The first bytes behind everything that begins with `prefix`. Type marks end far below `ff`, so there
/// always are some.
pub fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < 0xff {
            bytes.push(last + 1);
            return bytes;
        }
    }
    vec![0xff]
}

/// Whether the bytes are a whole term and not the beginning of many.
pub(crate) fn is_whole_term(bytes: &[u8]) -> bool {
    TermType::of_term(bytes, ORDER) != Some(TermType::Undefined)
        && term_length(bytes, ORDER, false).is_some_and(|(length, _)| length == bytes.len())
}

/// Whether a whole term says everything about its value.
pub(crate) fn is_complete(term: &[u8]) -> bool {
    term_length(term, ORDER, false).is_none_or(|(_, complete)| complete)
}

/// Where the terms of a type lie.
fn bounds(kind: Kind) -> Bounds {
    let kind = match kind {
        Kind::Undefined => TermType::Undefined,
        Kind::Null => TermType::Null,
        Kind::Bool => TermType::Bool,
        Kind::Number => TermType::Number,
        Kind::String => TermType::String,
        Kind::Array => TermType::Array,
        Kind::Object => TermType::Object,
    };
    kind.bounds(ORDER).unwrap_or_else(|| ORDER.defined())
}

/// The term of a value, and whether it says everything about it.
pub fn term_of(value: &Val<'_>) -> (Vec<u8>, bool) {
    let mut term = Vec::new();
    if value.is_undefined() {
        term.push(bounds(Kind::Undefined).first);
        return (term, true);
    }
    let complete = match value {
        Val::Str(text) => encode_term(Value::Str(text.as_str()), ORDER, &mut term),
        Val::Int(number) => encode_term(Value::Int(*number), ORDER, &mut term),
        value => {
            let mut builder = DocBuilder::new();
            value.write_doc(&mut builder);
            encode_term(builder.finish().root(), ORDER, &mut term)
        }
    };
    (term, complete)
}

/// Sorts spans and joins those that touch.
pub(crate) fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    let mut united: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match united.last_mut() {
            Some(last) if span.lower <= last.upper => {
                if last.upper < span.upper {
                    last.upper = span.upper;
                }
            }
            _ => united.push(span),
        }
    }
    united
}

/// What lies in both of two sorted sets.
pub(crate) fn intersected(a: &[Span], b: &[Span]) -> Vec<Span> {
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let span = Span {
            lower: x.lower.as_slice().max(&y.lower).to_vec(),
            upper: x.upper.as_slice().min(&y.upper).to_vec(),
        };
        if !span.is_empty() {
            common.push(span);
        }
        if x.upper <= y.upper {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}

/// What lies in all of some sorted sets. They are taken in pairs, and what they have in common again: one after the
/// other, a set that grows would be copied for each.
pub(crate) fn common(mut sets: Vec<Vec<Span>>) -> Vec<Span> {
    while sets.len() > 1 {
        sets = sets
            .chunks_mut(2)
            .map(|pair| match pair {
                [a, b] => intersected(a, b),
                rest => rest.iter_mut().flat_map(std::mem::take).collect(),
            })
            .collect();
    }
    sets.pop().unwrap_or_default()
}

/// What lies in `whole` and in none of the sorted `parts`.
pub(crate) fn without(whole: Span, parts: &[Span]) -> Vec<Span> {
    let mut rest = Vec::with_capacity(parts.len() + 1);
    let mut lower = whole.lower;
    for part in parts {
        if part.lower > lower {
            let upper = part.lower.clone().min(whole.upper.clone());
            rest.push(Span { lower, upper });
        }
        lower = part.upper.clone();
    }
    rest.push(Span { lower, upper: whole.upper });
    rest.retain(|span| !span.is_empty());
    rest
}
