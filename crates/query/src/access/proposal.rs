//! Conditions on the index entries of an item, and how they combine.

use std::collections::HashMap;

use super::path::IndexPath;
use super::span::{Span, common, united};
use crate::value::Kind;

/// Which items may have a row that passes. It may propose too many items, never too few.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    Everything,
    Nothing,
    Leaf(Leaf),
    All(Vec<Proposal>),
    Any(Vec<Proposal>),
}

/// The item has an entry at `path` whose term lies in one of the spans.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    pub path: IndexPath,
    /// Sorted and apart from each other.
    pub spans: Vec<Span>,
    /// Whether every item that has such an entry passes the condition that this leaf stands for.
    pub exact: bool,
}

/// What is known of one path while conditions are joined.
struct Gathered {
    /// Where its leaf is kept.
    at: usize,
    /// The spans of each condition.
    sets: Vec<Vec<Span>>,
    exact: bool,
}

impl Leaf {
    /// Whether only one term qualifies, so that its entries come in the order of the items.
    pub fn is_single_term(&self) -> bool {
        match self.spans.as_slice() {
            [span] => span.is_one_term(),
            _ => false,
        }
    }

    /// Whether items that lack the path qualify, which no entry can tell.
    fn wants_absence(&self) -> bool {
        let undefined = Span::of_kind(Kind::Undefined);
        self.spans.first().is_some_and(|span| span.lower < undefined.upper)
    }
}

impl Proposal {
    /// What must hold for all of some conditions to be met.
    pub(crate) fn all(parts: impl IntoIterator<Item = Proposal>) -> Proposal {
        Proposal::joined(parts, true)
    }

    /// What must hold for any of some conditions to be met.
    pub(crate) fn any(parts: impl IntoIterator<Item = Proposal>) -> Proposal {
        Proposal::joined(parts, false)
    }

    fn joined(parts: impl IntoIterator<Item = Proposal>, all: bool) -> Proposal {
        let (neutral, decisive) = match all {
            true => (Proposal::Everything, Proposal::Nothing),
            false => (Proposal::Nothing, Proposal::Everything),
        };
        let mut pending: Vec<Proposal> = parts.into_iter().filter(|part| *part != neutral).collect();
        // Most filters have one condition.
        match pending.as_slice() {
            [] => return neutral,
            [Proposal::Everything | Proposal::Nothing | Proposal::Leaf(_)] => return pending.remove(0),
            _ => {}
        }
        let mut kept: Vec<Proposal> = Vec::new();
        let mut leaves: HashMap<IndexPath, Gathered> = HashMap::new();
        pending.reverse();
        while let Some(part) = pending.pop() {
            match part {
                part if part == neutral => {}
                part if part == decisive => return decisive,
                Proposal::All(inner) if all => pending.extend(inner.into_iter().rev()),
                Proposal::Any(inner) if !all => pending.extend(inner.into_iter().rev()),
                // An item has one value there, so it must lie in what the conditions have in common. Of
                // several elements of an array each may meet one condition.
                Proposal::Leaf(mut leaf) if !all || leaf.path.is_single() => {
                    let spans = std::mem::take(&mut leaf.spans);
                    if let Some(known) = leaves.get_mut(&leaf.path) {
                        known.sets.push(spans);
                        known.exact &= leaf.exact;
                    } else {
                        let gathered = Gathered { at: kept.len(), sets: vec![spans], exact: leaf.exact };
                        leaves.insert(leaf.path.clone(), gathered);
                        kept.push(Proposal::Leaf(leaf));
                    }
                }
                part => kept.push(part),
            }
        }
        for gathered in leaves.into_values() {
            let Proposal::Leaf(leaf) = &mut kept[gathered.at] else { continue };
            let several = gathered.sets.len() > 1;
            leaf.exact = gathered.exact;
            leaf.spans = match all {
                true => common(gathered.sets),
                false => united(gathered.sets.into_iter().flatten().collect()),
            };
            if several && leaf.spans.is_empty() {
                return decisive;
            }
        }
        match kept.len() {
            0 => neutral,
            1 => kept.remove(0),
            _ if all => Proposal::All(kept),
            _ => Proposal::Any(kept),
        }
    }

    /// The same without conditions that speak of absent entries, which only a scan can find.
    pub(crate) fn of_entries(self) -> Proposal {
        match self {
            Proposal::Leaf(leaf) if leaf.wants_absence() => Proposal::Everything,
            Proposal::All(parts) => Proposal::all(parts.into_iter().map(Proposal::of_entries)),
            Proposal::Any(parts) => Proposal::any(parts.into_iter().map(Proposal::of_entries)),
            other => other,
        }
    }

    /// The terms that the value at one path can have, undefined included.
    pub(crate) fn terms_at(&self, path: &IndexPath) -> Vec<Span> {
        let anything = || vec![Span::of_kinds(Kind::Undefined, Kind::Object)];
        match self {
            Proposal::Nothing => Vec::new(),
            Proposal::Leaf(leaf) if leaf.path == *path => leaf.spans.clone(),
            Proposal::Everything | Proposal::Leaf(_) => anything(),
            Proposal::All(parts) => {
                let all = parts.iter().map(|part| part.terms_at(path));
                common(std::iter::once(anything()).chain(all).collect())
            }
            Proposal::Any(parts) => united(parts.iter().flat_map(|part| part.terms_at(path)).collect()),
        }
    }

    /// Calls `visit` for every leaf.
    pub fn for_each_leaf<'p>(&'p self, visit: &mut impl FnMut(&'p Leaf)) {
        match self {
            Proposal::Everything | Proposal::Nothing => {}
            Proposal::Leaf(leaf) => visit(leaf),
            Proposal::All(parts) | Proposal::Any(parts) => {
                parts.iter().for_each(|part| part.for_each_leaf(visit));
            }
        }
    }
}
