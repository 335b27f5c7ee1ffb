//! LIKE patterns: `%` any run, `_` any one character, `[a-f]` and `[^a-f]` classes, with an
//! optional escape character.
//!
//! The `%` cut a pattern into segments. The first must begin the text and the last must end it; each
//! of the others is looked for behind the one before, and the first place where it fits is as good as
//! any later one. A segment of plain characters is found by a search that is linear whatever the text;
//! one with wildcards is tried place by place, which is why its length is bounded.

use crate::error::{QueryError, Result};
use crate::limits;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikePattern {
    /// What stands between the `%`; without any `%` there is one segment.
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Plain(String),
    Wild(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Any,
    Char(char),
    /// Ranges in order, none touching another.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Reads a pattern, unless it is too long.
pub(crate) fn like_pattern(pattern: &str, escape: Option<char>) -> Result<LikePattern> {
    if pattern.len() > limits::LIKE_PATTERN_BYTES {
        return Err(QueryError::LimitExceeded("The pattern of a LIKE is too long."));
    }
    Ok(LikePattern::new(pattern, escape))
}

impl LikePattern {
    pub fn new(pattern: &str, escape: Option<char>) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut segments = Vec::new();
        let mut parts = Vec::new();
        let mut at = 0;
        // A class that is not closed proves that no later one is. To look for that again and again would take time
        // that grows with the square of the pattern.
        let mut closes = true;
        while at < chars.len() {
            let c = chars[at];
            at += 1;
            if Some(c) == escape && at < chars.len() {
                parts.push(Part::Char(chars[at]));
                at += 1;
                continue;
            }
            match c {
                '%' => segments.push(Segment::new(std::mem::take(&mut parts))),
                '_' => parts.push(Part::Any),
                '[' if closes => match class(&chars, at) {
                    Some((part, end)) => {
                        parts.push(part);
                        at = end;
                    }
                    None => {
                        closes = false;
                        parts.push(Part::Char('['));
                    }
                },
                c => parts.push(Part::Char(c)),
            }
        }
        segments.push(Segment::new(parts));
        Self { segments }
    }

    /// Whether a segment with wildcards is too long to be looked for everywhere in a long text.
    pub fn is_too_long(&self) -> bool {
        let inner = self.segments.get(1..self.segments.len() - 1).unwrap_or_default();
        inner.iter().any(|segment| match segment {
            Segment::Plain(_) => false,
            Segment::Wild(parts) => parts.len() > limits::LIKE_WILD_PARTS,
        })
    }

    pub fn matches(&self, text: &str) -> bool {
        let (first, rest) = self.segments.split_first().expect("a pattern has a segment");
        let Some(mut text) = first.strip_from(text) else { return false };
        let Some((last, inner)) = rest.split_last() else { return text.is_empty() };
        for segment in inner {
            match segment.find_in(text) {
                Some(behind) => text = behind,
                None => return false,
            }
        }
        last.ends(text)
    }

    /// The text that must begin every match, for prefix search in an index.
    pub fn literal_prefix(&self) -> String {
        match &self.segments[0] {
            Segment::Plain(text) => text.clone(),
            Segment::Wild(parts) => parts.iter().map_while(Part::literal).collect(),
        }
    }

    /// The only text that can match, when the pattern has no wildcard at all.
    pub fn exact(&self) -> Option<String> {
        match self.segments.as_slice() {
            [Segment::Plain(text)] => Some(text.clone()),
            _ => None,
        }
    }
}

impl Segment {
    fn new(parts: Vec<Part>) -> Self {
        match parts.iter().map(Part::literal).collect() {
            Some(text) => Self::Plain(text),
            None => Self::Wild(parts),
        }
    }

    /// What is left of a text that begins with the segment.
    fn strip_from<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Plain(plain) => text.strip_prefix(plain.as_str()),
            Self::Wild(parts) => {
                let mut rest = text.chars();
                parts.iter().all(|part| rest.next().is_some_and(|c| part.accepts(c))).then_some(rest.as_str())
            }
        }
    }

    /// What is left behind the first place where the segment fits.
    fn find_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Plain(plain) => Some(&text[text.find(plain.as_str())? + plain.len()..]),
            Self::Wild(_) => {
                let mut starts = text.char_indices();
                starts.find_map(|(at, _)| self.strip_from(&text[at..]))
            }
        }
    }

    fn ends(&self, text: &str) -> bool {
        match self {
            Self::Plain(plain) => text.ends_with(plain.as_str()),
            Self::Wild(parts) => {
                let mut rest = text.chars();
                parts.iter().rev().all(|part| rest.next_back().is_some_and(|c| part.accepts(c)))
            }
        }
    }
}

impl Part {
    fn literal(&self) -> Option<char> {
        match self {
            Part::Char(c) => Some(*c),
            _ => None,
        }
    }

    fn accepts(&self, c: char) -> bool {
        match self {
            Part::Any => true,
            Part::Char(wanted) => *wanted == c,
            Part::Class { negated, ranges } => {
                let next = ranges.partition_point(|(_, high)| *high < c);
                ranges.get(next).is_some_and(|(low, _)| *low <= c) != *negated
            }
        }
    }
}

/// Reads a class whose `[` is already taken; `None` when it is not closed.
fn class(chars: &[char], start: usize) -> Option<(Part, usize)> {
    let negated = chars.get(start) == Some(&'^');
    let mut at = start + usize::from(negated);
    let mut ranges = Vec::new();
    let mut empty = true;
    loop {
        let low = *chars.get(at)?;
        at += 1;
        if low == ']' && !empty {
            return Some((Part::Class { negated, ranges: merged(ranges) }, at));
        }
        empty = false;
        match (chars.get(at), chars.get(at + 1)) {
            (Some('-'), Some(high)) if *high != ']' => {
                ranges.push((low, *high));
                at += 2;
            }
            _ => ranges.push((low, low)),
        }
    }
}

/// The same characters in ranges that are in order and do not overlap.
fn merged(mut ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    ranges.retain(|(low, high)| low <= high);
    ranges.sort_unstable();
    let mut kept: Vec<(char, char)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match kept.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => kept.push((low, high)),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(LikePattern::new(pattern, Some('!')).matches(text), expected, "{text} LIKE {pattern}");
    }

    #[test]
    fn wildcards_match_as_the_service_documents() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("", "", true),
            ("", "a", false),
            ("a%", "abc", true),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("_b_", "abc", true),
            ("_b_", "abcd", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "zx", true),
            ("a!%", "a%", true),
            ("a!%", "ab", false),
            ("50[%]", "50%", true),
            ("[", "[", true),
            ("[a]_[b[c", "ax[b[c", true),
            ("[[a", "[[a", true),
            ("[]%[a", "[]x[a", true),
            ("%a%a%b", "aaaaaab", true),
            ("é_", "éß", true),
            ("é_", "é", false),
            ("%_é", "ßé", true),
            ("%_é", "é", false),
            ("_%_", "a", false),
            ("_%_", "ab", true),
            ("%[b-a]%", "ab", false),
            ("[a-cx-zb-d]", "d", true),
            ("[^a-cx-z]", "d", true),
            ("[]a]", "]", true),
            ("a%b%c", "a-b-c-b-c", true),
            ("a%b%c", "a-c-b", false),
            ("%a_c%a_d", "abcabd", true),
            ("ab%ba", "aba", false),
            ("%%", "", true),
        ] {
            check(pattern, text, expected);
        }
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let text = "a".repeat(20_000);
        let pattern = LikePattern::new(&"%a".repeat(2_000), None);
        assert!(pattern.matches(&text));
        let pattern = LikePattern::new(&format!("{}b", "%a".repeat(2_000)), None);
        assert!(!pattern.matches(&text));
        let text = "a".repeat(2_000_000);
        for pattern in [
            format!("%{}b%", "a".repeat(200_000)),
            format!("%b{}%", "a".repeat(200_000)),
            format!("{}%{}b", "_".repeat(1_000_000), "a".repeat(200_000)),
        ] {
            assert!(!LikePattern::new(&pattern, None).matches(&text));
        }
        assert!(LikePattern::new(&format!("%{}_%", "a".repeat(300)), None).is_too_long());
        assert!(!LikePattern::new(&format!("{}_%", "a".repeat(300)), None).is_too_long());
    }

    #[test]
    fn classes_that_are_not_closed_are_read_once() {
        let text = "[".repeat(1_000_000);
        assert_eq!(LikePattern::new(&text, None).exact(), Some(text));
    }

    #[test]
    fn prefix_and_exact_text_are_found() {
        assert_eq!(LikePattern::new("ab%c", None).literal_prefix(), "ab");
        assert_eq!(LikePattern::new("a!%", Some('!')).exact().as_deref(), Some("a%"));
        assert_eq!(LikePattern::new("a%", None).exact(), None);
    }
}
