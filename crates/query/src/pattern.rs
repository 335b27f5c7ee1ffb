//! LIKE patterns: `%` any run, `_` any one character, `[a-f]` and `[^a-f]` classes, with an
//! optional escape character.
//!
//! The matcher remembers only the last `%` and goes back to it on a mismatch, so its time is bounded
//! by the product of text and pattern between two `%`, and never exponential.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikePattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Run,
    Any,
    Char(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl LikePattern {
    pub fn new(pattern: &str, escape: Option<char>) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut parts = Vec::with_capacity(chars.len());
        let mut at = 0;
        while at < chars.len() {
            let c = chars[at];
            at += 1;
            if Some(c) == escape && at < chars.len() {
                parts.push(Part::Char(chars[at]));
                at += 1;
                continue;
            }
            match c {
                '%' if parts.last() == Some(&Part::Run) => {}
                '%' => parts.push(Part::Run),
                '_' => parts.push(Part::Any),
                '[' => match class(&chars, at) {
                    Some((part, end)) => {
                        parts.push(part);
                        at = end;
                    }
                    None => parts.push(Part::Char('[')),
                },
                c => parts.push(Part::Char(c)),
            }
        }
        Self { parts }
    }

    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut part = 0;
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let mut next = rest.clone();
            let step = match (self.parts.get(part), next.next()) {
                (None, None) => return true,
                (Some(Part::Run), _) => {
                    part += 1;
                    if part == self.parts.len() {
                        return true;
                    }
                    retry = Some((part, rest.clone()));
                    continue;
                }
                (_, None) => return false,
                (None, Some(_)) => false,
                (Some(Part::Any), Some(_)) => true,
                (Some(Part::Char(wanted)), Some(c)) => *wanted == c,
                (Some(Part::Class { negated, ranges }), Some(c)) => {
                    ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
                }
            };
            if step {
                rest = next;
                part += 1;
                continue;
            }
            let Some((run, from)) = retry.as_mut() else { return false };
            if from.next().is_none() {
                return false;
            }
            part = *run;
            rest = from.clone();
        }
    }

    /// The text that must begin every match, for prefix search in an index.
    pub fn literal_prefix(&self) -> String {
        self.parts.iter().map_while(Part::literal).collect()
    }

    /// The only text that can match, when the pattern has no wildcard at all.
    pub fn exact(&self) -> Option<String> {
        self.parts.iter().map(Part::literal).collect()
    }
}

impl Part {
    fn literal(&self) -> Option<char> {
        match self {
            Part::Char(c) => Some(*c),
            _ => None,
        }
    }
}

/// Reads a class whose `[` is already taken; `None` when it is not closed.
fn class(chars: &[char], start: usize) -> Option<(Part, usize)> {
    let negated = chars.get(start) == Some(&'^');
    let mut at = start + usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let low = *chars.get(at)?;
        at += 1;
        if low == ']' && !ranges.is_empty() {
            return Some((Part::Class { negated, ranges }, at));
        }
        match (chars.get(at), chars.get(at + 1)) {
            (Some('-'), Some(high)) if *high != ']' => {
                ranges.push((low, *high));
                at += 2;
            }
            _ => ranges.push((low, low)),
        }
    }
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
            ("%a%a%b", "aaaaaab", true),
            ("é_", "éß", true),
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
    }

    #[test]
    fn prefix_and_exact_text_are_found() {
        assert_eq!(LikePattern::new("ab%c", None).literal_prefix(), "ab");
        assert_eq!(LikePattern::new("a!%", Some('!')).exact().as_deref(), Some("a%"));
        assert_eq!(LikePattern::new("a%", None).exact(), None);
    }
}
