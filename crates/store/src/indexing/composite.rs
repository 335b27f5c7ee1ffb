//! Composite indexes: one entry for each item, made of the values of several paths.
//!
//! The terms of the parts stand behind each other, with all bits turned where a part is descending. No term is the
//! start of another, so the order of the whole is the order of its parts. A path without a value counts as undefined,
//! so that every indexed item has exactly one entry.
//!
//! A part whose term was cut ends the entry: what follows it must not decide the order of items whose first parts only
//! look alike. Equal entries are therefore exactly those that the index cannot order, and a reader in
//! order has to sort only within them.

use orrery_doc::{Doc, TermOrder, Value, encode_term, term_length};

use super::rule::{self, RuleStep};
use super::{ComputedValue, IndexingPolicyError, PathHash, SYSTEM_PROPERTIES, Step};
use crate::limits::{COMPOSITE_INDEX_PATHS_MAX, COMPOSITE_INDEXES_MAX};

/// A composite index of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    /// The names of each path, and whether it is descending.
    pub parts: Vec<(Vec<String>, bool)>,
    /// For each part, the definition of the computed value that its first name is.
    computed: Vec<Option<String>>,
    /// Takes the place of a path's hash in the keys of its entries.
    pub hash: u64,
}

impl Composite {
    fn new(parts: Vec<(Vec<String>, bool)>) -> Composite {
        let computed = vec![None; parts.len()];
        let mut composite = Composite { parts, computed, hash: 0 };
        composite.hash = composite.whole_hash();
        composite
    }

    fn whole_hash(&self) -> u64 {
        let path = |at: usize| self.steps(at).fold(PathHash::ROOT, |hash, step| hash.step(step));
        let parts = self.parts.iter().enumerate().map(|(at, (_, descending))| (path(at), *descending));
        PathHash::composite(parts).value()
    }

    /// Takes the first names of its paths for those of computed values, where they are.
    pub(super) fn name_computed(&mut self, values: &[ComputedValue]) {
        for ((names, _), computed) in self.parts.iter().zip(&mut self.computed) {
            let value = values.iter().find(|value| names.first() == Some(&value.name));
            *computed = value.map(|value| value.definition.clone());
        }
        self.hash = self.whole_hash();
    }

    pub(super) fn has_computed(&self, name: &str) -> bool {
        let mut parts = self.parts.iter().zip(&self.computed);
        parts.any(|((names, _), computed)| computed.is_some() && names[0] == name)
    }

    /// The path of a part.
    pub fn steps(&self, part: usize) -> impl Iterator<Item = Step<'_>> {
        let is_computed = self.computed[part].is_some();
        self.parts[part].0.iter().enumerate().map(move |(at, name)| match at == 0 && is_computed {
            true => Step::Computed(name),
            false => Step::Name(name),
        })
    }

    /// Appends the entry of an item without computed values.
    pub fn encode(&self, root: Value<'_>, ts: u64, out: &mut Vec<u8>) {
        self.encode_with(root, ts, &[], out);
    }

    /// Appends the entry of an item.
    pub(crate) fn encode_with(&self, root: Value<'_>, ts: u64, values: &[(&str, Doc)], out: &mut Vec<u8>) {
        for ((names, descending), computed) in self.parts.iter().zip(&self.computed) {
            let value = match names.as_slice() {
                [first, rest @ ..] if computed.is_some() => {
                    let value = values.iter().find(|(name, _)| name == first);
                    let value = value.map_or(Value::Undefined, |(_, value)| value.root());
                    rest.iter().fold(value, |value, name| value.get(name))
                }
                [name] if name == "_ts" => Value::Int(ts as i64),
                names => names.iter().fold(root, |value, name| value.get(name)),
            };
            let start = out.len();
            let complete = encode_term(value, TermOrder::Sql, out);
            if *descending {
                out[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
            if !complete {
                return;
            }
        }
    }

    /// How many bytes of `entry`, the rest of an index key behind the hash, belong to this index.
    pub fn entry_len(&self, entry: &[u8]) -> Option<usize> {
        let mut at = 0;
        for (_, descending) in &self.parts {
            let (len, complete) = term_len(entry.get(at..)?, *descending)?;
            at += len;
            if !complete {
                break;
            }
        }
        Some(at)
    }
}

/// The length of the term that `bytes` start with, and whether it says everything about its value. With `turned`, all
/// bits of the term are.
pub fn term_len(bytes: &[u8], turned: bool) -> Option<(usize, bool)> {
    term_length(bytes, TermOrder::Sql, turned)
}

/// Reads `compositeIndexes`. One with an array wildcard, or with a system property that is not in the index, is
/// left out: it can never be used.
pub(super) fn read_composites(list: Value<'_>) -> Result<Vec<Composite>, IndexingPolicyError> {
    let shape = IndexingPolicyError::Shape;
    let list = match list {
        Value::Undefined | Value::Null => return Ok(Vec::new()),
        Value::Array(list) if list.len() <= COMPOSITE_INDEXES_MAX => list,
        _ => return Err(shape("'compositeIndexes' must be an array of a limited length")),
    };
    let mut composites: Vec<Composite> = Vec::new();
    for entry in list.iter() {
        let parts = entry.as_array().filter(|parts| parts.len() <= COMPOSITE_INDEX_PATHS_MAX);
        let parts = parts.ok_or(shape("each composite index must be an array of a limited length"))?;
        let parts = parts.iter().map(read_part).collect::<Result<Option<Vec<_>>, _>>()?;
        if let Some(composite) = parts.filter(|parts| !parts.is_empty()).map(Composite::new)
            && !composites.contains(&composite)
        {
            composites.push(composite);
        }
    }
    // Their order means nothing, and two policies should compare equal when they say the same.
    composites.sort_by_key(|composite| composite.hash);
    Ok(composites)
}

fn read_part(part: Value<'_>) -> Result<Option<(Vec<String>, bool)>, IndexingPolicyError> {
    let text = part.get("path").as_str();
    let text = text.ok_or(IndexingPolicyError::Shape("each part of a composite index needs a 'path'"))?;
    let descending = part.get("order").as_str().is_some_and(|order| order.eq_ignore_ascii_case("descending"));
    let name = |step: RuleStep| match step {
        RuleStep::Name(name) => Some(name),
        RuleStep::Elements => None,
    };
    let Some(steps) = rule::parse_plain(text)? else { return Ok(None) };
    let names: Option<Vec<String>> = steps.into_iter().map(name).collect();
    let is_indexed = |names: &Vec<String>| {
        !matches!(names.as_slice(), [name] if SYSTEM_PROPERTIES.contains(&name.as_str())
            && !matches!(name.as_str(), "id" | "_ts"))
    };
    Ok(names.filter(is_indexed).map(|names| (names, descending)))
}
