//! Index metrics: which indexes a query uses, and which it could use if they were there.
//!
//! The service has two forms for the same facts; old clients get the first in base64, newer ones the second.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::filter::Analysis;
use super::order::order_paths;
use super::path::{IndexPath, IndexStep};
use super::proposal::{Leaf, Proposal};
use super::{CompositePaths, IndexOrder, Indexes, composite, shortcut};
use crate::ast::Direction;
use crate::compile::Program;
use crate::print::quote;
use crate::program::{Level, Node};

/// The indexes of a query, named as indexing policies name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexMetrics {
    pub utilized_single: Vec<String>,
    pub potential_single: Vec<String>,
    pub utilized_composite: Vec<Vec<String>>,
    pub potential_composite: Vec<Vec<String>>,
}

/// Indexes as they would be if every path had one. Those of other kinds are as they are.
struct Ideal<'i>(&'i dyn Indexes);

impl Indexes for Ideal<'_> {
    fn covers(&self, _: &IndexPath) -> bool {
        true
    }

    fn spatial(&self, path: &IndexPath) -> bool {
        self.0.spatial(path)
    }

    fn tuples(&self, elements: &IndexPath) -> Vec<Vec<IndexPath>> {
        self.0.tuples(elements)
    }
}

/// Finds the indexes of a query. `scope` holds the paths of the partition key where the request gave one: the
/// service counts that as the use of an index.
pub fn index_metrics(program: &Program, indexes: &dyn Indexes, scope: &[IndexPath]) -> IndexMetrics {
    let stage = program.first_stage();
    let level = &stage.level;
    let ideal = Ideal(indexes);
    let mut analysis = Analysis::new(&ideal, program);
    let mut filter = analysis.level(level).proposal;
    if let Node::Call(..) = level.select {
        filter = Proposal::all([filter, analysis.when(&level.select, true).proposal]);
    }
    let order = order_paths(level, &analysis).unwrap_or_default();
    let composites = indexes.composites();
    let used = used_composites(&composites, &filter, &order);
    let is_in_composite =
        |path: &IndexPath| used.iter().any(|parts| parts.iter().any(|(part, _)| part == path));
    let wished = match used.is_empty() {
        true => wished_composite(&filter, &order, level, &analysis),
        false => None,
    };
    let mut conditions: Vec<&IndexPath> = Vec::new();
    filter.for_each_leaf(&mut |leaf| conditions.push(&leaf.path));
    // The last condition comes first, as the service lists them.
    conditions.reverse();
    let mut paths = conditions;
    let silent = silent_order(&order, &paths, wished.as_deref());
    paths.extend(order.iter().map(|(path, _)| path));
    paths.retain(|path| !is_in_composite(path) && silent != Some(*path));
    let aggregated = match level.grouping {
        Some(_) => shortcut::needed_path(level, &analysis, &ideal),
        None => None,
    };
    paths.extend(aggregated.iter().chain(scope));
    let mut seen = HashSet::new();
    let mut metrics = IndexMetrics::default();
    for path in paths.into_iter().filter(|path| seen.insert(*path)) {
        let is_special = matches!(path.steps().last(), Some(IndexStep::Cells | IndexStep::Members(_)));
        let known = is_special || scope.contains(path) || indexes.covers(path);
        let list = if known { &mut metrics.utilized_single } else { &mut metrics.potential_single };
        list.push(format!("{path}/?"));
    }
    metrics.utilized_composite = used.iter().map(|parts| specs(parts)).collect();
    metrics.potential_composite = wished.iter().map(|parts| specs(parts)).collect();
    metrics
}

/// The path of an ORDER BY that the service does not list: one that has a condition, beside conditions on other
/// paths, and that no composite index is wished for.
fn silent_order<'p>(
    order: &'p [(IndexPath, Direction)],
    conditions: &[&IndexPath],
    wished: Option<&[(IndexPath, Direction)]>,
) -> Option<&'p IndexPath> {
    let [(path, _)] = order else { return None };
    let is_beside = conditions.contains(&path) && conditions.iter().any(|condition| *condition != path);
    let is_wished = wished.is_some_and(|parts| parts.iter().any(|(part, _)| part == path));
    (is_beside && !is_wished).then_some(path)
}

/// The composite indexes that serve the order, or the conditions of the filter.
fn used_composites(
    composites: &[CompositePaths],
    filter: &Proposal,
    order: &[(IndexPath, Direction)],
) -> Vec<CompositePaths> {
    let mut used = Vec::new();
    if let (false, Some(IndexOrder::Composite { index, .. })) =
        (order.is_empty(), composite::ordering(composites, order, filter))
    {
        used.push(index);
    }
    let mut complete = true;
    let served = composite::served(filter.clone(), composites, &Ideal(&NoIndexes), &mut complete);
    served.for_each_leaf(&mut |leaf| {
        let index = composites.iter().position(|parts| composite::path_of(parts) == leaf.path);
        used.extend(index.filter(|index| !used.contains(index)));
    });
    used.into_iter().map(|index| composites[index].clone()).collect()
}

/// Nothing beyond the ideal.
struct NoIndexes;

impl Indexes for NoIndexes {
    fn covers(&self, _: &IndexPath) -> bool {
        false
    }
}

fn specs(parts: &[(IndexPath, Direction)]) -> Vec<String> {
    let spec = |(path, direction): &(IndexPath, Direction)| match direction {
        Direction::Ascending => format!("{path} ASC"),
        Direction::Descending => format!("{path} DESC"),
    };
    parts.iter().map(spec).collect()
}

/// The composite index that would serve best: equal values first, then one interval or the order.
fn wished_composite(
    filter: &Proposal,
    order: &[(IndexPath, Direction)],
    level: &Level,
    analysis: &Analysis<'_>,
) -> Option<Vec<(IndexPath, Direction)>> {
    if order.len() > 1 {
        return Some(order.to_vec());
    }
    let leaves: Vec<&Leaf> = match filter {
        Proposal::Leaf(leaf) => vec![leaf],
        Proposal::All(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Proposal::Leaf(leaf) => Some(leaf),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let leaves: Vec<&Leaf> = leaves.into_iter().filter(|leaf| leaf.path.is_single()).collect();
    let (equal, others): (Vec<&Leaf>, Vec<&Leaf>) =
        leaves.into_iter().partition(|leaf| leaf.is_single_term());
    let mut parts: Vec<(IndexPath, Direction)> =
        equal.iter().map(|leaf| (leaf.path.clone(), Direction::Ascending)).collect();
    let ordered = order.first().filter(|(path, _)| equal.iter().all(|leaf| leaf.path != *path));
    match (others.as_slice(), ordered) {
        ([], None) => {
            let keys = level.grouping.as_ref().map_or(&[][..], |grouping| &grouping.keys);
            let is_grouped = |path: &IndexPath| {
                keys.iter().any(|key| analysis.place(key).is_some_and(|place| place.path == *path))
            };
            return (parts.len() > 1 && parts.iter().all(|(path, _)| is_grouped(path))).then_some(parts);
        }
        ([], Some(order)) => parts.push(order.clone()),
        ([range], None) => parts.push((range.path.clone(), Direction::Ascending)),
        ([range], Some((path, direction))) if range.path == *path => parts.push((path.clone(), *direction)),
        _ => return None,
    }
    (parts.len() > 1).then_some(parts)
}

impl IndexMetrics {
    /// The first form, as JSON.
    pub fn to_v1_json(&self) -> String {
        let single = |specs: &[String]| {
            list(specs, |spec, out| {
                out.push_str("{\"FilterExpression\":\"\",\"IndexSpec\":");
                quote(spec, out);
                out.push_str(
                    ",\"FilterPreciseSet\":true,\"IndexPreciseSet\":true,\"IndexImpactScore\":\"High\"}",
                );
            })
        };
        let composite = |indexes: &[Vec<String>]| {
            list(indexes, |specs, out| {
                let _ = write!(
                    out,
                    "{{\"IndexSpecs\":{},\"IndexPreciseSet\":true,\"IndexImpactScore\":\"High\"}}",
                    list(specs, |spec, out| quote(spec, out))
                );
            })
        };
        format!(
            "{{\"UtilizedSingleIndexes\":{},\"PotentialSingleIndexes\":{},\
             \"UtilizedCompositeIndexes\":{},\"PotentialCompositeIndexes\":{}}}",
            single(&self.utilized_single),
            single(&self.potential_single),
            composite(&self.utilized_composite),
            composite(&self.potential_composite),
        )
    }

    /// The second form, as JSON.
    pub fn to_v2_json(&self) -> String {
        let single = |specs: &[String], score: &str| {
            list(specs, |spec, out| {
                out.push_str("{\"IndexSpec\":");
                quote(spec, out);
                out.push_str(score);
                out.push('}');
            })
        };
        let composite = |indexes: &[Vec<String>], score: &str| {
            list(indexes, |specs, out| {
                let specs = list(specs, |spec, out| quote(spec, out));
                let _ = write!(out, "{{\"IndexSpecs\":{specs}{score}}}");
            })
        };
        // Only what could be gained has a score.
        const SCORE: &str = ",\"IndexImpactScore\":\"High\"";
        format!(
            "{{\"UtilizedIndexes\":{{\"SingleIndexes\":{},\"CompositeIndexes\":{}}},\
             \"PotentialIndexes\":{{\"SingleIndexes\":{},\"CompositeIndexes\":{}}}}}",
            single(&self.utilized_single, ""),
            composite(&self.utilized_composite, ""),
            single(&self.potential_single, SCORE),
            composite(&self.potential_composite, SCORE),
        )
    }
}

/// A JSON array.
fn list<T>(items: &[T], write: impl Fn(&T, &mut String)) -> String {
    let mut out = String::from("[");
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(item, &mut out);
    }
    out.push(']');
    out
}
