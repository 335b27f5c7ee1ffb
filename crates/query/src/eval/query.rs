//! The rows of a query level: FROM and JOIN expansion, and subqueries in full.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::Env;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::program::{CollectionNode, Level, SourceNode};
use crate::run::{GroupOrder, Groups, compare};
use crate::sort_key::sort_key;
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

/// The same for a visitor that keeps nothing of what is made for a row.
pub(crate) fn expand_and_forget<'a, 'x>(
    level: &'a Level,
    env: &mut Env<'a, 'x>,
    visit: &mut dyn FnMut(&mut Env<'a, 'x>) -> Visit,
) -> Visit {
    expand(level, env, &mut |env| {
        let live = env.live.bytes();
        let flow = visit(env)?;
        env.live.cut_to(live);
        Ok(flow)
    })
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
            Some(filter) => {
                // Nothing of what a filter makes outlives it.
                let live = env.live.bytes();
                let passes = filter.eval(env)?.is_true();
                env.live.cut_to(live);
                passes
            }
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
        drop_doubles(&mut rows, env)?;
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
        if value.is_undefined() || (level.distinct && !is_new(&mut seen, &value, env)?) {
            return Ok(ControlFlow::Continue(()));
        }
        push(&mut rows, value, env)?;
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
                keys.push(sort_key(node.eval(env)?));
            }
            env.sorts(&keys)?;
            env.live.add(size_of_val(keys.as_slice()) + limits::ALLOCATION_BYTES)?;
            push(&mut rows, (keys, value), env)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    rows.sort_by(|(a, _), (b, _)| compare(level, a, b));
    Ok(rows.into_iter().map(|(_, value)| value).collect())
}

fn grouped<'a>(level: &'a Level, env: &mut Env<'a, '_>) -> Result<Vec<Val<'a>>> {
    let Some(grouping) = &level.grouping else { return Ok(Vec::new()) };
    let mut groups = Groups::new(grouping, env.cx);
    let _ = expand(level, env, &mut |env| {
        groups.add(grouping, env)?;
        Ok(ControlFlow::Continue(()))
    })?;
    // The groups of an outer level may be in use while this one answers.
    let outer_keys = std::mem::take(&mut env.group_keys);
    let outer_aggregates = std::mem::take(&mut env.aggregates);
    let rows = groups.results(GroupOrder::Keys, level, env);
    env.group_keys = outer_keys;
    env.aggregates = outer_aggregates;
    rows
}

fn push<T>(rows: &mut Vec<T>, row: T, env: &mut Env<'_, '_>) -> Result<()> {
    if rows.len() >= limits::ARRAY_ITEMS {
        return Err(QueryError::LimitExceeded("A subquery returns too many rows."));
    }
    // Lists double when they grow.
    env.live.add(2 * size_of::<T>())?;
    rows.push(row);
    Ok(())
}

/// Leaves the first of equal rows.
pub(crate) fn drop_doubles(rows: &mut Vec<Val<'_>>, env: &mut Env<'_, '_>) -> Result<()> {
    let mut seen = HashSet::new();
    let mut failure = None;
    rows.retain(|row| {
        let is_new = is_new(&mut seen, row, env);
        is_new.unwrap_or_else(|error| {
            failure = Some(error);
            false
        })
    });
    failure.map_or(Ok(()), Err)
}

/// Whether no equal row was met before.
fn is_new(seen: &mut HashSet<Box<[u8]>>, row: &Val<'_>, env: &mut Env<'_, '_>) -> Result<bool> {
    let mut key = Vec::new();
    row.write_canonical_within(&mut key, env.cx.row_bytes_max())?;
    if seen.contains(key.as_slice()) {
        return Ok(false);
    }
    env.live.add(key.len() + SEEN_BYTES)?;
    seen.insert(key.into());
    Ok(true)
}

/// What a row takes in a set of rows, besides its bytes.
pub(crate) const SEEN_BYTES: usize = 2 * size_of::<Box<[u8]>>() + limits::ALLOCATION_BYTES;
