//! Answers that can be read off an index without looking at the documents.
//!
//! COUNT is the number of entries where the filter is exact. MIN and MAX are the ends of an index. Clients do not
//! send these queries as written: they ask each partition for parts that can be added up, such as
//! `SELECT VALUE [{"item": COUNT(1)}]`, so what counts here is which aggregates are asked for and not what
//! SELECT makes of them.

use super::filter::Analysis;
use super::path::IndexPath;
use super::{Indexes, Proposal};
use crate::ast::Direction;
use crate::compile::Program;
use crate::error::Result;
use crate::eval::{Context, Env};
use crate::program::{Aggregate, AggregateKind, Grouping, Level, Node};
use crate::row::Row;
use crate::value::Val;

/// What the index alone can answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Shortcut {
    None,
    /// The answer is the number of items that the filter proposes, which is exact.
    Count,
    /// The answer is the smallest (ascending) or largest value at a path, over the items that the filter
    /// proposes; `counted`: together with the number of items that have a value there.
    ///
    /// An array or object at the path makes MIN and MAX undefined, so the far end of the index matters too.
    First {
        path: IndexPath,
        direction: Direction,
        counted: bool,
    },
}

/// What all aggregates of a level are about.
#[derive(PartialEq)]
enum Subject {
    /// Every row counts.
    Rows,
    /// Rows count that have a value at this path.
    Path(IndexPath),
}

/// Finds the shortcut for a level, if its filter proves to be exact.
pub(super) fn shortcut(level: &Level, analysis: &Analysis<'_>, indexes: &dyn Indexes) -> Shortcut {
    let Some(Grouping { keys, aggregates }) = &level.grouping else { return Shortcut::None };
    if !keys.is_empty() || level.offset > 0 || level.limit == Some(0) || !is_plain_source(level) {
        return Shortcut::None;
    }
    let Some(subject) = common_subject(aggregates, analysis, indexes) else { return Shortcut::None };
    let has = |kind| aggregates.iter().any(|aggregate| aggregate.kind == kind);
    let only = |kinds: &[AggregateKind]| aggregates.iter().all(|aggregate| kinds.contains(&aggregate.kind));
    use AggregateKind::{Count, Max, Min};
    match subject {
        _ if only(&[Count]) => Shortcut::Count,
        Subject::Path(path) if only(&[Min, Count]) || only(&[Max, Count]) => {
            let direction = if has(Min) { Direction::Ascending } else { Direction::Descending };
            Shortcut::First { path, direction, counted: has(Count) }
        }
        _ => Shortcut::None,
    }
}

/// The path without whose value an item adds nothing to the answer.
pub(super) fn needed_path(
    level: &Level,
    analysis: &Analysis<'_>,
    indexes: &dyn Indexes,
) -> Option<IndexPath> {
    match &level.grouping {
        None => {
            let place = analysis.place(&level.select)?;
            let usable = !place.path.steps().is_empty() && indexes.covers(&place.path);
            usable.then_some(place.path)
        }
        // A group of items without the value exists all the same.
        Some(grouping) if !grouping.keys.is_empty() => None,
        Some(grouping) => match common_subject(&grouping.aggregates, analysis, indexes)? {
            Subject::Path(path) => Some(path),
            Subject::Rows => None,
        },
    }
}

/// What all aggregates are about, if that is the same.
fn common_subject(
    aggregates: &[Aggregate],
    analysis: &Analysis<'_>,
    indexes: &dyn Indexes,
) -> Option<Subject> {
    let (first, rest) = aggregates.split_first()?;
    let common = subject(first, analysis, indexes)?;
    rest.iter().all(|other| subject(other, analysis, indexes).as_ref() == Some(&common)).then_some(common)
}

/// Whether the level has exactly one row for each item.
pub(super) fn is_plain_source(level: &Level) -> bool {
    use crate::program::CollectionNode::Value;
    matches!(level.sources.as_slice(), [source] if !source.each && matches!(source.collection, Value(Node::Slot(0))))
}

fn subject(aggregate: &Aggregate, analysis: &Analysis<'_>, indexes: &dyn Indexes) -> Option<Subject> {
    if let Some(value) = analysis.constant(&aggregate.argument) {
        return (!value.is_undefined()).then_some(Subject::Rows);
    }
    let place = analysis.place(&aggregate.argument)?;
    match place.path.steps() {
        [] => Some(Subject::Rows),
        _ if place.exact && place.path.is_single() && indexes.covers(&place.path) => {
            Some(Subject::Path(place.path))
        }
        _ => None,
    }
}

/// A shortcut may be taken only if the filter is exact: nobody looks at the items.
pub(super) fn allowed(shortcut: Shortcut, filter: &Proposal, exact: bool) -> Shortcut {
    match shortcut {
        Shortcut::Count | Shortcut::First { .. } if exact && *filter != Proposal::Nothing => shortcut,
        _ => Shortcut::None,
    }
}

impl Program {
    /// The value that MIN or MAX of this item is about, for a program whose shortcut is
    /// [`Shortcut::First`].
    pub fn shortcut_value(&self, row: &Row<'_>, cx: &Context<'_>) -> Result<Val<'static>> {
        let stage = self.first_stage();
        let mut env = Env::new(stage.slots, &self.values, cx, Some(row));
        if let Some(source) = stage.level.sources.first() {
            env.slots[source.slot] = env.slots[0].clone();
        }
        match stage.level.grouping.as_ref().and_then(|grouping| grouping.aggregates.first()) {
            Some(aggregate) => Ok(aggregate.argument.eval(&mut env)?.to_owned_val()),
            None => Ok(Val::Undefined),
        }
    }
}
