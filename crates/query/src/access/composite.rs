//! Composite indexes: one entry for each item, made of the values of several paths, in which what an item lacks counts
//! as undefined.
//!
//! Such an index serves conditions that hold its first paths to single values and the next one to anything: the
//! entries then lie together. It also delivers an order, if it has the ordered paths alone, or behind paths that
//! the filter holds to one value each.

use std::cmp::Reverse;

use super::path::{IndexPath, IndexStep};
use super::proposal::{Leaf, Proposal};
use super::span::{Span, after_prefix, is_complete};
use super::{CompositePaths, IndexOrder, Indexes};
use crate::ast::Direction;
use crate::value::Kind;

/// Intervals of entries that one condition may become.
const SPANS_MAX: usize = 64;

/// What a filter leaves of a composite index.
pub(super) struct Narrowed {
    /// Sorted and apart from each other.
    pub spans: Vec<Span>,
    /// How many of the first paths have a say in it.
    pub parts: usize,
}

fn is_descending(direction: Direction) -> bool {
    direction == Direction::Descending
}

/// The index as a path of its own.
pub(super) fn path_of(parts: &CompositePaths) -> IndexPath {
    let parts = parts.iter().map(|(path, direction)| (path.clone(), is_descending(*direction))).collect();
    IndexPath(vec![IndexStep::Composite(parts)])
}

/// The entries that items can have which pass a filter.
pub(super) fn narrowed(parts: &CompositePaths, filter: &Proposal) -> Narrowed {
    let anything = Span::of_kinds(Kind::Undefined, Kind::Object);
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut used = 0;
    for (path, direction) in parts {
        let spans = filter.terms_at(path);
        if spans == [anything.clone()] || spans.len() * prefixes.len() > SPANS_MAX {
            break;
        }
        used += 1;
        let turned = is_descending(*direction);
        if !spans.iter().all(|span| span.is_one_term() && is_complete(&span.lower)) {
            // What follows an interval, or a value that was cut, is not in order.
            let spans: Vec<Span> =
                spans.into_iter().map(|span| if turned { inverted(&span) } else { span }).collect();
            let behind = |prefix: &Vec<u8>, span: &Span| Span {
                lower: [prefix.as_slice(), &span.lower].concat(),
                upper: [prefix.as_slice(), &span.upper].concat(),
            };
            let spans = prefixes.iter().flat_map(|prefix| spans.iter().map(move |span| behind(prefix, span)));
            return Narrowed { spans: super::span::united(spans.collect()), parts: used };
        }
        let terms: Vec<Vec<u8>> =
            spans.into_iter().map(|span| if turned { flipped(&span.lower) } else { span.lower }).collect();
        prefixes = prefixes
            .iter()
            .flat_map(|prefix| terms.iter().map(move |term| [prefix.as_slice(), term].concat()))
            .collect();
    }
    let spans = match used {
        0 => vec![Span { lower: Vec::new(), upper: vec![0xff] }],
        _ => super::span::united(prefixes.into_iter().map(Span::of_prefix).collect()),
    };
    Narrowed { spans, parts: used }
}

/// The index that delivers an order, if there is one.
pub(super) fn ordering(
    composites: &[CompositePaths],
    order: &[(IndexPath, Direction)],
    filter: &Proposal,
) -> Option<IndexOrder> {
    let serves = |(index, parts): (usize, &CompositePaths)| {
        let fixed = parts.len().checked_sub(order.len())?;
        if fixed == 0 && order.len() == 1 {
            return None;
        }
        let (first, rest) = parts.split_at(fixed);
        let reversed = matches(rest, order)?;
        let mut prefix = Vec::new();
        for (path, direction) in first {
            let spans = filter.terms_at(path);
            let [span] = spans.as_slice() else { return None };
            if !span.is_one_term() || !is_complete(&span.lower) {
                return None;
            }
            let turned = is_descending(*direction);
            prefix.extend(if turned { flipped(&span.lower) } else { span.lower.clone() });
        }
        Some((fixed, IndexOrder::Composite { index, reversed, fixed, prefix }))
    };
    let found = composites.iter().enumerate().filter_map(serves).max_by_key(|(fixed, _)| *fixed);
    found.map(|(_, order)| order)
}

/// Whether the parts are in this order, and then whether they must be read backwards.
fn matches(parts: &[(IndexPath, Direction)], order: &[(IndexPath, Direction)]) -> Option<bool> {
    let same_paths = parts.iter().zip(order).all(|(a, b)| a.0 == b.0);
    let same = parts.iter().zip(order).filter(|(a, b)| a.1 == b.1).count();
    match same_paths {
        true if same == parts.len() => Some(false),
        true if same == 0 => Some(true),
        _ => None,
    }
}

/// A filter with the leaves that a composite index serves better, or that nothing else serves, replaced by leaves of
/// that index. `complete` becomes false when a condition had to be left out.
pub(super) fn served(
    filter: Proposal,
    composites: &[CompositePaths],
    indexes: &dyn Indexes,
    complete: &mut bool,
) -> Proposal {
    if composites.is_empty() {
        return filter;
    }
    match filter {
        Proposal::Any(parts) => {
            let parts = parts.into_iter().map(|part| served(part, composites, indexes, complete));
            Proposal::any(parts.collect::<Vec<_>>())
        }
        Proposal::All(parts) => served_all(parts, composites, indexes, complete),
        Proposal::Leaf(leaf) if !is_own(&leaf) || indexes.covers(&leaf.path) => Proposal::Leaf(leaf),
        Proposal::Leaf(leaf) => served_all(vec![Proposal::Leaf(leaf)], composites, indexes, complete),
        other => other,
    }
}

/// Whether the leaf is about a value of the item.
fn is_own(leaf: &Leaf) -> bool {
    let is_index =
        |step: &IndexStep| matches!(step, IndexStep::Cells | IndexStep::Members(_) | IndexStep::Composite(_));
    !leaf.path.steps().iter().any(is_index)
}

fn served_all(
    parts: Vec<Proposal>,
    composites: &[CompositePaths],
    indexes: &dyn Indexes,
    complete: &mut bool,
) -> Proposal {
    let (mut leaves, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Proposal::Leaf(leaf) if leaf.path.is_single() && is_own(&leaf) => leaves.push(leaf),
            Proposal::Leaf(leaf) => rest.push(Proposal::Leaf(leaf)),
            part => rest.push(served(part, composites, indexes, complete)),
        }
    }
    let mut found = Vec::new();
    loop {
        let conditions = Proposal::all(leaves.iter().cloned().map(Proposal::Leaf));
        let gain = |parts: &CompositePaths| {
            let narrowed = narrowed(parts, &conditions);
            let used = &parts[..narrowed.parts];
            let alone = used.len() == 1 && indexes.covers(&used[0].0);
            (!used.is_empty() && !alone).then_some((used.len(), narrowed.spans))
        };
        let best = composites.iter().filter_map(|parts| Some((gain(parts)?, parts)));
        // The shorter of two that do the same has the smaller entries.
        let rank = |((used, _), parts): &((usize, Vec<Span>), &CompositePaths)| (*used, Reverse(parts.len()));
        let Some(((used, spans), parts)) = best.max_by_key(rank) else { break };
        let is_used = |leaf: &Leaf| parts[..used].iter().any(|(path, _)| *path == leaf.path);
        let exact = leaves.iter().filter(|leaf| is_used(leaf)).all(|leaf| leaf.exact);
        leaves.retain(|leaf| !is_used(leaf));
        found.push(Proposal::Leaf(Leaf { path: path_of(parts), spans, exact }));
    }
    for leaf in leaves {
        match indexes.covers(&leaf.path) {
            true => found.push(Proposal::Leaf(leaf)),
            false => *complete = false,
        }
    }
    Proposal::all(found.into_iter().chain(rest))
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// The same interval of terms whose bits are turned. No term is the start of another, so what comes before a bound
/// comes behind the turned bound and all that begins with it.
fn inverted(span: &Span) -> Span {
    Span { lower: after_prefix(&flipped(&span.upper)), upper: after_prefix(&flipped(&span.lower)) }
}
