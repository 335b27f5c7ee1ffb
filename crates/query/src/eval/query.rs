//! The rows of a query level: FROM and JOIN expansion, and subqueries in full.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::Env;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::program::{CollectionNode, Level, SourceNode};
use crate::run::{Groups, compare};
use crate::value::Val;

/// What a visitor of rows says after each row.
pub(crate) type Visit = Result<ControlFlow<()>>;

/// Binds every combination of the sources that passes the filter, and calls `visit` for each.
pub(crate) fn expand<'a, 'x>(
    level: &'a Level,
    env: &mut Env<'a, 'x>,
    visit: &mut dyn FnMut(&mut Env<'a, 'x>) -> Visit,
) -> Visit {
    expand_from(level, &level.sources, env, visit)
}

fn expand_from<'a, 'x>(
    level: &'a Level,
    sources: &'a [SourceNode],
    env: &mut Env<'a, 'x>,
    visit: &mut dyn FnMut(&mut Env<'a, 'x>) -> Visit,
) -> Visit {
    let Some((source, rest)) = sources.split_first() else {
        env.step()?;
        let passes = match &level.filter {
            Some(filter) => filter.eval(env)?.is_true(),
            None => true,
        };
        return if passes { visit(env) } else { Ok(ControlFlow::Continue(())) };
    };
    let mut bind = |value: Val<'a>, env: &mut Env<'a, 'x>| -> Visit {
        if value.is_undefined() {
            return Ok(ControlFlow::Continue(()));
        }
        env.slots[source.slot] = value;
        expand_from(level, rest, env, visit)
    };
    match &source.collection {
        CollectionNode::Value(node) => {
            let value = node.eval(env)?;
            if source.each { bind_each(&value, env, &mut bind) } else { bind(value, env) }
        }
        CollectionNode::Query(query) => {
            for value in rows_of(query, env, limits::ARRAY_ITEMS)? {
                let flow = if source.each { bind_each(&value, env, &mut bind)? } else { bind(value, env)? };
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            Ok(ControlFlow::Continue(()))
        }
    }
}

fn bind_each<'a, 'x>(
    value: &Val<'a>,
    env: &mut Env<'a, 'x>,
    bind: &mut dyn FnMut(Val<'a>, &mut Env<'a, 'x>) -> Visit,
) -> Visit {
    let Some(list) = value.as_list() else { return Ok(ControlFlow::Continue(())) };
    for item in list.iter() {
        if bind(item, env)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// All rows of a subquery, at most `most`. What lies beyond `most` is not computed where order and
/// grouping allow that.
pub(crate) fn rows_of<'a>(level: &'a Level, env: &mut Env<'a, '_>, most: usize) -> Result<Vec<Val<'a>>> {
    let offset = usize::try_from(level.offset).unwrap_or(usize::MAX);
    let limit = level.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let wanted = most.min(limit);
    let mut rows = if level.grouping.is_some() {
        grouped(level, env)?
    } else if level.order_by.is_empty() {
        unordered(level, env, offset.saturating_add(wanted))?
    } else {
        ordered(level, env)?
    };
    if level.distinct && level.grouping.is_none() && !level.order_by.is_empty() {
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert(canonical(row)));
    }
    rows.drain(..offset.min(rows.len()));
    rows.truncate(wanted);
    Ok(rows)
}

fn unordered<'a>(level: &'a Level, env: &mut Env<'a, '_>, most: usize) -> Result<Vec<Val<'a>>> {
    let mut rows = Vec::new();
    let mut seen = HashSet::new();
    if most == 0 {
        return Ok(rows);
    }
    let _ = expand(level, env, &mut |env| {
        let value = level.select.eval(env)?;
        if value.is_undefined() || (level.distinct && !seen.insert(canonical(&value))) {
            return Ok(ControlFlow::Continue(()));
        }
        push(&mut rows, value)?;
        Ok(if rows.len() >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(rows)
}

fn ordered<'a>(level: &'a Level, env: &mut Env<'a, '_>) -> Result<Vec<Val<'a>>> {
    let mut rows: Vec<(Vec<Val<'a>>, Val<'a>)> = Vec::new();
    let _ = expand(level, env, &mut |env| {
        let value = level.select.eval(env)?;
        if !value.is_undefined() {
            let mut keys = Vec::with_capacity(level.order_by.len());
            for (node, _) in &level.order_by {
                keys.push(node.eval(env)?);
            }
            env.sorts(&keys)?;
            push(&mut rows, (keys, value))?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    rows.sort_by(|(a, _), (b, _)| compare(level, a, b));
    Ok(rows.into_iter().map(|(_, value)| value).collect())
}

fn grouped<'a>(level: &'a Level, env: &mut Env<'a, '_>) -> Result<Vec<Val<'a>>> {
    let Some(grouping) = &level.grouping else { return Ok(Vec::new()) };
    let mut groups = Groups::new(grouping);
    let _ = expand(level, env, &mut |env| {
        groups.add(grouping, env)?;
        Ok(ControlFlow::Continue(()))
    })?;
    // The groups of an outer level may be in use while this one answers.
    let outer_keys = std::mem::take(&mut env.group_keys);
    let outer_aggregates = std::mem::take(&mut env.aggregates);
    let rows = groups.results(level, env);
    env.group_keys = outer_keys;
    env.aggregates = outer_aggregates;
    rows
}

fn push<T>(rows: &mut Vec<T>, row: T) -> Result<()> {
    if rows.len() >= limits::ARRAY_ITEMS {
        return Err(QueryError::LimitExceeded("A subquery returns too many rows."));
    }
    rows.push(row);
    Ok(())
}

fn canonical(value: &Val<'_>) -> Box<[u8]> {
    let mut key = Vec::new();
    value.write_canonical(&mut key);
    key.into()
}
