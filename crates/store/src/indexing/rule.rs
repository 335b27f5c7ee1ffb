//! Paths of a policy as they are written.

use super::{IndexingPolicyError, Step, Tuple};
use crate::limits::TUPLE_MEMBERS_MAX;

/// The most parts of one path; documents nest no deeper.
const MAX_STEPS: usize = 128;

/// A path of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule {
    pub steps: Vec<RuleStep>,
    /// Ends in `*`, not in `?`.
    pub whole_subtree: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleStep {
    Name(String),
    Elements,
}

/// What an included or excluded path can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Rule(Rule),
    /// `/a/[]/{b,c}/?`
    Tuple(Tuple),
}

impl RuleStep {
    pub fn as_step(&self) -> Step<'_> {
        match self {
            RuleStep::Name(name) => Step::Name(name),
            RuleStep::Elements => Step::Elements,
        }
    }
}

/// Reads a path of a policy.
pub(super) fn parse_rule(text: &str) -> Result<Parsed, IndexingPolicyError> {
    let refused =
        |rest: &str| IndexingPolicyError::Path { path: text.to_owned(), position: text.len() - rest.len() };
    // The root alone is an old way to write everything.
    if text == "/" {
        return Ok(Parsed::Rule(Rule { steps: Vec::new(), whole_subtree: true }));
    }
    let mut rest = text;
    let mut steps = Vec::new();
    loop {
        let part = rest.strip_prefix('/').ok_or_else(|| refused(rest))?;
        match part {
            "*" => return Ok(Parsed::Rule(Rule { steps, whole_subtree: true })),
            "?" => return Ok(Parsed::Rule(Rule { steps, whole_subtree: false })),
            _ if steps.len() == MAX_STEPS => return Err(refused(part)),
            _ => {}
        }
        if let Some(members) = part.strip_prefix('{') {
            let is_of_elements = steps.last() == Some(&RuleStep::Elements);
            let members = read_members(members).filter(|_| is_of_elements).ok_or_else(|| refused(part))?;
            return Ok(Parsed::Tuple(Tuple::new(steps, members)));
        }
        if let Some(quoted) = part.strip_prefix('"') {
            let (name, after) = read_quoted(quoted).ok_or_else(|| refused(part))?;
            steps.push(RuleStep::Name(name));
            rest = after;
            continue;
        }
        let end = part.find('/').ok_or_else(|| refused(""))?;
        let (name, after) = part.split_at(end);
        if name == "[]" {
            steps.push(RuleStep::Elements);
        } else if name.is_empty() || name.contains(['*', '?', '[', ']', '{', '}', '"', '\\']) {
            return Err(refused(part));
        } else {
            steps.push(RuleStep::Name(name.to_owned()));
        }
        rest = after;
    }
}

/// Reads the members of a tuple whose opening brace is already taken, up to the end of the path.
fn read_members(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut rest, mut members, mut names) = (text, Vec::new(), Vec::new());
    loop {
        rest = rest.trim_start();
        let after = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, after) = read_quoted(quoted)?;
                names.push(name);
                after
            }
            None => {
                let (name, after) = rest.split_at(rest.find(['/', ',', '}'])?);
                let name = name.trim_end();
                if name.is_empty() || name.contains(['*', '?', '[', ']', '{', '"', '\\']) {
                    return None;
                }
                names.push(name.to_owned());
                after
            }
        };
        let after = after.trim_start();
        rest = after.get(1..)?;
        if after.starts_with('/') && names.len() < MAX_STEPS {
            continue;
        }
        members.push(std::mem::take(&mut names));
        match after.as_bytes()[0] {
            b',' if members.len() < TUPLE_MEMBERS_MAX => {}
            b'}' if rest == "/?" => return Some(members),
            _ => return None,
        }
    }
}

/// Reads a quoted name whose opening quote is already taken, and gives what follows.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((name, &text[at + 1..])),
            '\\' => name.push(characters.next()?.1),
            character => name.push(character),
        }
    }
    None
}

/// Reads a path without an end mark, as composite indexes have it. None for one that ends in a wildcard all the same.
pub(super) fn parse_plain(text: &str) -> Result<Option<Vec<RuleStep>>, IndexingPolicyError> {
    if text.ends_with("/*") || text.ends_with("/?") || text == "/" {
        return Ok(None);
    }
    match parse_rule(&format!("{text}/?"))? {
        Parsed::Rule(rule) => Ok(Some(rule.steps)),
        Parsed::Tuple(_) => Ok(None),
    }
}
