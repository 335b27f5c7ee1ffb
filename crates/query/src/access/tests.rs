//! The planner against items in memory: a proposal must hold for every item that has a row, and where it is
//! exact for no other.

mod order;
mod others;
mod plans;
mod proposals;

use orrery_doc::{Doc, TermOrder, Value, encode_term};

use super::*;
use crate::eval::Context;
use crate::parameters::Parameters;
use crate::row::Row;

/// Every path is indexed, except those that are named, and what else is named.
#[derive(Default)]
struct Ready {
    excluded: Vec<IndexPath>,
    composites: Vec<CompositePaths>,
    spatial: Vec<IndexPath>,
    tuples: Vec<(IndexPath, Vec<IndexPath>)>,
}

impl Indexes for Ready {
    fn covers(&self, path: &IndexPath) -> bool {
        !self.excluded.contains(path)
    }

    fn composites(&self) -> Vec<CompositePaths> {
        self.composites.clone()
    }

    fn spatial(&self, path: &IndexPath) -> bool {
        self.spatial.contains(path)
    }

    fn tuples(&self, elements: &IndexPath) -> Vec<Vec<IndexPath>> {
        self.tuples.iter().filter(|(path, _)| path == elements).map(|(_, members)| members.clone()).collect()
    }
}

impl Ready {
    /// The entries that an item has in all these indexes.
    fn entries(&self, doc: &Doc) -> Vec<(IndexPath, Vec<u8>)> {
        let mut found = entries(doc);
        found.retain(|(path, _)| self.covers(path));
        for parts in &self.composites {
            let values = parts.iter().map(|(path, _)| values_at(doc.root(), path.steps()));
            let turned: Vec<bool> = parts.iter().map(|(_, d)| *d == Direction::Descending).collect();
            let values: Vec<Value<'_>> =
                values.map(|list| list.first().copied().unwrap_or(Value::Undefined)).collect();
            found.push((composite::path_of(parts), entry(&values, &turned)));
        }
        for (path, members) in &self.tuples {
            for element in values_at(doc.root(), path.steps()) {
                let value = |member: &IndexPath| {
                    values_at(element, member.steps()).first().copied().unwrap_or(Value::Undefined)
                };
                let values: Vec<Value<'_>> = members.iter().map(value).collect();
                if values.iter().any(|value| !value.is_undefined()) {
                    let path = path.then(IndexStep::Members(members.clone()));
                    found.push((path, entry(&values, &vec![false; values.len()])));
                }
            }
        }
        for path in &self.spatial {
            for cell in values_at(doc.root(), path.steps()).into_iter().flat_map(orrery_doc::geo::cells_of) {
                found.push((path.then(IndexStep::Cells), cell.term().to_vec()));
            }
        }
        found
    }
}

/// The values that a path leads to.
fn values_at<'a>(value: Value<'a>, steps: &[IndexStep]) -> Vec<Value<'a>> {
    match (steps, value) {
        ([], Value::Undefined) => vec![],
        ([], value) => vec![value],
        ([IndexStep::Name(name), rest @ ..], value) => values_at(value.get(name), rest),
        ([IndexStep::Elements, rest @ ..], Value::Array(array)) => {
            array.iter().flat_map(|element| values_at(element, rest)).collect()
        }
        _ => vec![],
    }
}

/// The terms of several values, up to the first that is cut.
fn entry(values: &[Value<'_>], turned: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    for (value, turned) in values.iter().zip(turned) {
        let start = out.len();
        let complete = encode_term(*value, TermOrder::Sql, &mut out);
        if *turned {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        if !complete {
            break;
        }
    }
    out
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
