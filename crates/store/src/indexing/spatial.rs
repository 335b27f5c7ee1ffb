//! Spatial indexes: one entry for each cell of the map that a shape covers.
//!
//! A policy may name the types of shapes that it wants indexed, but a query does not say which types it looks for. So
//! all shapes at a path are indexed, whatever the policy says of types.

use orrery_doc::{MAX_DEPTH, Value, geo};

use super::rule::{Parsed, Rule, parse_rule};
use super::{IndexingPolicyError, PathHash, Step};
use crate::limits::INDEX_PATHS_MAX;

/// A path with shapes: the value at its end, or with `/*` everything from there on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spatial(Rule);

impl Spatial {
    pub fn covers(&self, path: &[Step<'_>]) -> bool {
        let steps = &self.0.steps;
        let starts = path.len() >= steps.len() && steps.iter().zip(path).all(|(a, b)| a.as_step() == *b);
        starts && !path.is_empty() && (self.0.whole_subtree || path.len() == steps.len())
    }

    /// Visits the hash of a path and the term of a cell, for each cell of each shape.
    pub fn for_each_cell(&self, root: Value<'_>, visit: &mut impl FnMut(u64, &[u8])) {
        self.enter(root, PathHash::ROOT, 0, visit);
    }

    fn enter(&self, value: Value<'_>, hash: PathHash, depth: usize, visit: &mut impl FnMut(u64, &[u8])) {
        if let Some(step) = self.0.steps.get(depth) {
            match (step.as_step(), value) {
                (Step::Name(name), value) => self.enter(value.get(name), hash.name(name), depth + 1, visit),
                (Step::Elements, Value::Array(array)) => {
                    array.iter().for_each(|element| self.enter(element, hash.elements(), depth + 1, visit));
                }
                (Step::Elements | Step::Computed(_), _) => {}
            }
            return;
        }
        if depth > 0 {
            let path = hash.cells().value();
            geo::cells_of(value).into_iter().for_each(|cell| visit(path, &cell.term()));
        }
        if !self.0.whole_subtree || depth >= MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(name, field)| self.enter(field, hash.name(name), depth + 1, visit));
            }
            Value::Array(array) => {
                array.iter().for_each(|element| self.enter(element, hash.elements(), depth + 1, visit));
            }
            _ => {}
        }
    }
}

/// Reads `spatialIndexes`. A path without a mark at its end means the value there.
pub(super) fn read_spatials(list: Value<'_>) -> Result<Vec<Spatial>, IndexingPolicyError> {
    let shape = IndexingPolicyError::Shape;
    let list = match list {
        Value::Undefined | Value::Null => return Ok(Vec::new()),
        Value::Array(list) if list.len() <= INDEX_PATHS_MAX => list,
        _ => return Err(shape("'spatialIndexes' must be an array of a limited length")),
    };
    let mut spatials: Vec<Spatial> = Vec::new();
    for entry in list.iter() {
        let text = entry.get("path").as_str().ok_or(shape("each spatial index needs a 'path'"))?;
        let has_mark = text.ends_with("/*") || text.ends_with("/?") || text == "/";
        let parsed = if has_mark { parse_rule(text) } else { parse_rule(&format!("{text}/?")) };
        if let Parsed::Rule(rule) = parsed? {
            let spatial = Spatial(rule);
            if !spatials.contains(&spatial) {
                spatials.push(spatial);
            }
        }
    }
    // Their order means nothing, and two policies should compare equal when they say the same.
    spatials.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(spatials)
}
