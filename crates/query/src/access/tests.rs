//! The planner against items in memory: a proposal must hold for every item that has a row, and where it is
//! exact for no other.

mod order;
mod plans;
mod proposals;

use orrery_doc::{Doc, TermOrder, Value, encode_term};

use super::*;
use crate::eval::Context;
use crate::parameters::Parameters;
use crate::row::Row;

/// Every path is indexed, except those that are named.
#[derive(Default)]
struct Ready {
    excluded: Vec<IndexPath>,
    composites: Vec<Vec<(IndexPath, Direction)>>,
}

impl Indexes for Ready {
    fn covers(&self, path: &IndexPath) -> bool {
        !self.excluded.contains(path)
    }

    fn composite(&self, order: &[(IndexPath, Direction)]) -> Option<(usize, bool)> {
        let turned: Vec<(IndexPath, Direction)> = order
            .iter()
            .map(|(path, direction)| match direction {
                Direction::Ascending => (path.clone(), Direction::Descending),
                Direction::Descending => (path.clone(), Direction::Ascending),
            })
            .collect();
        self.composites.iter().enumerate().find_map(|(i, parts)| {
            (parts == order).then_some((i, false)).or((*parts == turned).then_some((i, true)))
        })
    }
}

fn program(text: &str) -> Program {
    crate::compile(text, &Parameters::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn document(json: &str) -> Doc {
    orrery_doc::json::parse(json.as_bytes(), orrery_doc::MAX_DEPTH).expect("the test's own document")
}

/// The entries that an index has for an item.
fn entries(doc: &Doc) -> Vec<(IndexPath, Vec<u8>)> {
    let mut found = Vec::new();
    if let Value::Object(object) = doc.root() {
        for (name, value) in object.iter() {
            walk(value, IndexPath::of_names(&[name]), &mut found);
        }
    }
    found
}

fn walk(value: Value<'_>, path: IndexPath, found: &mut Vec<(IndexPath, Vec<u8>)>) {
    let mut term = Vec::new();
    encode_term(value, TermOrder::Sql, &mut term);
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            let mut path = path.clone();
            path.0.push(IndexStep::Name(name.into()));
            walk(value, path, found);
        }),
        Value::Array(array) => array.iter().for_each(|value| walk(value, path.elements(), found)),
        _ => {}
    }
    found.push((path, term));
}

/// Whether an item with these entries is proposed.
fn holds(proposal: &Proposal, entries: &[(IndexPath, Vec<u8>)]) -> bool {
    match proposal {
        Proposal::Everything => true,
        Proposal::Nothing => false,
        Proposal::Leaf(leaf) => entries
            .iter()
            .any(|(path, term)| *path == leaf.path && leaf.spans.iter().any(|span| span.contains(term))),
        Proposal::All(parts) => parts.iter().all(|part| holds(part, entries)),
        Proposal::Any(parts) => parts.iter().any(|part| holds(part, entries)),
    }
}

/// How many rows an item has.
fn rows_of(program: &Program, doc: &Doc) -> usize {
    let rows = program.run_all([Row::plain(doc.as_ref())], &Context::at(0, 0));
    rows.expect("the test's own query runs").len()
}
