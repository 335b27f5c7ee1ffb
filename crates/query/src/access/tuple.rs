//! Tuple indexes: one entry for each element of an array, made of several of its values.
//!
//! Conditions on the elements of an array say no more than that some element meets each. A tuple index knows whether
//! it is the same element, which is what a condition on one alias means.

use std::cmp::Reverse;

use super::filter::{Analysis, Found, Place};
use super::path::{IndexPath, IndexStep};
use super::proposal::{Leaf, Proposal};
use super::span::{Span, term_of, united};
use crate::ast::BinaryOp;
use crate::program::{Node, PathStep, SourceNode};
use crate::value::Val;

/// Entries that one condition may ask for.
const TERMS_MAX: usize = 64;

/// That a value within an element is one of some constants.
struct Held {
    slot: usize,
    path: IndexPath,
    values: Vec<Val<'static>>,
}

impl Analysis<'_> {
    /// What a filter demands, all conditions of it being about rows of these sources. Each alias is one element, so
    /// conditions are brought together by alias: two aliases may range over one array.
    pub(super) fn conditions(&mut self, sources: &[SourceNode], filter: &Node) -> Vec<Found> {
        let mut parts: Vec<&Node> = Vec::new();
        conjuncts(filter, &mut parts);
        let mut done = vec![false; parts.len()];
        let mut found = Vec::new();
        let tuples = self.tuples(sources);
        let held: Vec<Option<Held>> = match tuples.is_empty() {
            true => Vec::new(),
            false => parts.iter().map(|part| self.held(part)).collect(),
        };
        for (slot, place, members) in tuples {
            let is_about = |held: &Held, member: &IndexPath| held.slot == slot && held.path == *member;
            let at = |member: &IndexPath| {
                held.iter().position(|held| held.as_ref().is_some_and(|held| is_about(held, member)))
            };
            let Some(used) = members.iter().map(at).collect::<Option<Vec<usize>>>() else { continue };
            if used.iter().all(|&i| done[i]) {
                continue;
            }
            let values = used.iter().filter_map(|&i| held[i].as_ref()).map(|held| held.values.as_slice());
            let values: Vec<&[Val<'static>]> = values.collect();
            if let Some((leaf, complete)) = entries(&place, &members, &values) {
                found.push(leaf);
                // What a term does not say in full is asked of single paths too.
                used.into_iter().filter(|_| complete).for_each(|i| done[i] = true);
            }
        }
        let rest = parts.into_iter().zip(done).filter(|(_, done)| !done);
        let rest = rest.map(|(part, _)| self.when(part, true));
        // What is always true is no condition.
        found.extend(rest.filter(|part| !part.exact || part.proposal != Proposal::Everything));
        found
    }

    /// That a value within an element is one of some constants, if the condition says so.
    fn held(&self, node: &Node) -> Option<Held> {
        let (subject, values) = match node {
            Node::Binary(BinaryOp::Equal, a, b) => match (self.constant(a), self.constant(b)) {
                (None, Some(value)) => (&**a, vec![value]),
                (Some(value), None) => (&**b, vec![value]),
                _ => return None,
            },
            Node::InConstants { negated: false, needle, sorted } => {
                (&**needle, sorted.iter().filter(|value| !value.is_undefined()).cloned().collect())
            }
            _ => return None,
        };
        let Node::Path { slot, steps } = subject else { return None };
        let name = |step: &PathStep| match step {
            PathStep::Name(name) => Some(IndexStep::Name(name.clone())),
            PathStep::Index(_) => None,
        };
        let path = steps.iter().map(name).collect::<Option<Vec<_>>>()?;
        let usable = !values.is_empty() && values.iter().all(|value| !value.is_undefined());
        usable.then_some(Held { slot: *slot, path: IndexPath(path), values })
    }

    /// The tuple indexes over elements that aliases stand for: the slot of the alias, its place, and the members; those
    /// with the most members first.
    fn tuples(&self, sources: &[SourceNode]) -> Vec<(usize, Place, Vec<IndexPath>)> {
        let mut found = Vec::new();
        for source in sources.iter().filter(|source| source.each) {
            if let Some(place) = self.places.get(source.slot).cloned().flatten() {
                let tuples = self.indexes.tuples(&place.path).into_iter();
                found.extend(tuples.map(|members| (source.slot, place.clone(), members)));
            }
        }
        found.sort_by_key(|(.., members)| Reverse(members.len()));
        found
    }

    /// For ARRAY_CONTAINS with a partial object: some element has all of these members. Also which of them a tuple index
    /// answers for.
    pub(super) fn element_with(
        &self,
        elements: &Place,
        fields: &[(Box<str>, Val<'static>)],
    ) -> Option<(Found, Vec<IndexPath>)> {
        let answer = |members: Vec<IndexPath>| {
            let value = |member: &IndexPath| {
                let [IndexStep::Name(name)] = member.steps() else { return None };
                let (_, value) = fields.iter().find(|(field, _)| field == name)?;
                // An object again stands for all that have its members.
                (!matches!(value, Val::Object(_) | Val::Undefined)).then_some(std::slice::from_ref(value))
            };
            let values = members.iter().map(value).collect::<Option<Vec<_>>>()?;
            entries(elements, &members, &values).map(|(found, _)| (found.inexact(), members))
        };
        let tuples = self.indexes.tuples(&elements.path).into_iter();
        tuples.filter_map(answer).max_by_key(|(_, members)| members.len())
    }
}

/// The parts of nested ANDs.
fn conjuncts<'n>(node: &'n Node, parts: &mut Vec<&'n Node>) {
    match node {
        Node::And(operands) => operands.iter().for_each(|operand| conjuncts(operand, parts)),
        node => parts.push(node),
    }
}

/// The entries of elements that have one of the values at each member, and whether they say all of it.
fn entries(place: &Place, members: &[IndexPath], values: &[&[Val<'static>]]) -> Option<(Found, bool)> {
    if values.iter().map(|values| values.len()).try_fold(1usize, usize::checked_mul)? > TERMS_MAX {
        return None;
    }
    // An entry ends with the first term that was cut.
    let mut open: Vec<Vec<u8>> = vec![Vec::new()];
    let mut ended: Vec<Vec<u8>> = Vec::new();
    for values in values {
        let mut next = Vec::new();
        for entry in &open {
            for value in *values {
                let (term, complete) = term_of(value);
                let longer = [entry.as_slice(), &term].concat();
                if complete { next.push(longer) } else { ended.push(longer) }
            }
        }
        open = next;
    }
    let complete = ended.is_empty();
    let spans = united(open.into_iter().chain(ended).map(Span::of_prefix).collect());
    let path = place.path.then(IndexStep::Members(members.to_vec()));
    let exact = complete && place.exact;
    Some((Found { proposal: Proposal::Leaf(Leaf { path, spans, exact }), exact }, complete))
}
