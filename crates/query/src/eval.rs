//! One expression over one row.
//!
//! `undefined` is an ordinary value here: it is what a missing property gives, what operators give
//! for operands of the wrong type, and what disappears from objects, arrays and result rows.

mod operators;
mod order_key;
mod query;
mod slots;

use std::cell::Cell;

use crate::ast::SubqueryKind;
use crate::error::{QueryError, Result};
use crate::functions::{Call, Function, Geospatial, VectorDistance};
use crate::limits;
use crate::pattern::{LikePattern, like_pattern};
use crate::program::{LikeNode, Node, PathStep};
use crate::row::Row;
use crate::steward::{Held, Steward};
use crate::value::{Fields, Text, Val};

pub(crate) use operators::equal;
pub use order_key::order_key;
pub(crate) use order_key::order_named;
pub(crate) use query::{SEEN_BYTES, drop_doubles, expand, expand_and_forget, rows_of};
use slots::Slots;

/// What an evaluation may know about the world. Time and chance come from the caller.
#[derive(Clone, Copy)]
pub struct Context<'x> {
    /// The current time in ticks of 100 ns since 1970.
    pub now_ticks: i64,
    /// Where RAND starts.
    pub seed: u64,
    pub udfs: Option<&'x dyn UserFunctions>,
    /// How the container understands coordinates.
    pub geospatial: Geospatial,
    /// Who answers for memory and time; nobody where runs are small.
    pub steward: Option<&'x dyn Steward>,
}

impl Context<'static> {
    pub fn at(now_ticks: i64, seed: u64) -> Self {
        Self { now_ticks, seed, udfs: None, geospatial: Geospatial::Geography, steward: None }
    }
}

/// User-defined functions, run by a caller that can run scripts.
pub trait UserFunctions: Sync {
    fn call(&self, name: &str, arguments: &[Val<'_>]) -> Result<Val<'static>>;
}

/// The bindings while a row is evaluated. Slot 0 is the item itself.
pub(crate) struct Env<'a, 'x> {
    pub slots: Slots<'a>,
    /// The values of the program's parameters.
    values: &'a [Val<'static>],
    pub cx: &'x Context<'x>,
    pub random: u64,
    /// Rows visited so far; bounded so that nested subqueries cannot run for ever.
    pub steps: u64,
    /// Work done and bytes made so far, for the same reason.
    work: u64,
    made: u64,
    /// Work after which the run is to rest.
    rest_at: u64,
    /// About what has been made and is still there: at most all that was made since it was last cut.
    pub live: Held<'x>,
    /// The work of reading all of the item, which bounds that of reading any part of it.
    item_work: u64,
    pub group_keys: Vec<Val<'a>>,
    pub aggregates: Vec<Val<'a>>,
}

impl<'a, 'x> Env<'a, 'x> {
    pub fn new(
        slots: usize,
        values: &'a [Val<'static>],
        cx: &'x Context<'x>,
        row: Option<&'a Row<'a>>,
    ) -> Self {
        let mut bound = Slots::new(slots);
        if let Some(row) = row {
            bound[0] = row_value(row);
        }
        Self {
            slots: bound,
            values,
            cx,
            random: cx.seed,
            steps: 0,
            work: 0,
            made: 0,
            rest_at: limits::WORK_BEFORE_REST,
            live: cx.holds_nothing(),
            item_work: row.map_or(0, |row| (row.doc.as_bytes().len() / limits::WORK_BYTES) as u64),
            group_keys: Vec::new(),
            aggregates: Vec::new(),
        }
    }

    pub fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > limits::STEPS_PER_DOCUMENT {
            return Err(QueryError::LimitExceeded("The query visits too many rows for one item."));
        }
        if self.steps.is_multiple_of(limits::STEPS_BEFORE_REST) {
            self.cx.rest();
        }
        Ok(())
    }

    pub(crate) fn worked(&mut self, steps: u64) -> Result<()> {
        self.work = self.work.saturating_add(steps);
        if self.work >= self.rest_at { self.rest() } else { Ok(()) }
    }

    #[cold]
    fn rest(&mut self) -> Result<()> {
        if self.work > limits::WORK_PER_DOCUMENT {
            return Err(QueryError::LimitExceeded("The query does too much work for one item."));
        }
        self.rest_at = self.work.saturating_add(limits::WORK_BEFORE_REST);
        self.cx.rest();
        Ok(())
    }

    /// Counts the work of finding the place of a row among others by its keys.
    pub(crate) fn sorts(&mut self, keys: &[Val<'_>]) -> Result<()> {
        let bytes: usize = keys.iter().filter_map(Val::as_str).map(str::len).sum();
        self.worked((bytes / limits::WORK_BYTES * limits::SORT_COMPARISONS) as u64)
    }

    /// Counts a value that was made. Parts that it has in common with others count again: values
    /// that hold one another twice, and so on, would else grow without bound where they are written.
    fn made(&mut self, value: &Val<'_>) -> Result<()> {
        self.made_bytes(value.made_bytes(limits::MADE_BYTES_PER_DOCUMENT))
    }

    fn made_bytes(&mut self, bytes: u64) -> Result<()> {
        self.made = self.made.saturating_add(bytes);
        if self.made > limits::MADE_BYTES_PER_DOCUMENT {
            return Err(QueryError::LimitExceeded("The query makes too much data of one item."));
        }
        self.live.add(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn next_random(&mut self) -> u64 {
        // SplitMix64: small, and good enough for RAND.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

fn row_value<'a>(row: &'a Row<'a>) -> Val<'a> {
    match row.doc.root() {
        orrery_doc::Value::Object(object) if row.system.is_none() => Val::Object(Fields::Stored(object)),
        orrery_doc::Value::Object(_) => Val::Object(Fields::Row(row)),
        other => Val::from(other),
    }
}

impl Node {
    pub(crate) fn eval<'a>(&'a self, env: &mut Env<'a, '_>) -> Result<Val<'a>> {
        Ok(match self {
            Node::Constant(value) => value.lend(),
            Node::Parameter(number) => env.values[*number].lend(),
            Node::Slot(slot) => env.slots[*slot].clone(),
            Node::Path { slot, steps } => {
                env.worked(search_work(&env.slots[*slot]))?;
                walk(&env.slots[*slot], steps)
            }
            Node::Computed { value, .. } => value.eval(env)?,
            Node::Member(base, name) => {
                let base = base.eval(env)?;
                env.worked(search_work(&base))?;
                base.get(name)
            }
            Node::Index(base, index) => {
                let base = base.eval(env)?;
                let index = index.eval(env)?;
                env.worked(1 + search_work(&base))?;
                operators::index(&base, &index)
            }
            Node::Unary(op, operand) => operators::unary(*op, &operand.eval(env)?),
            Node::Binary(op, left, right) => operators::binary(*op, left, right, env)?,
            Node::And(operands) => operators::all(operands, env)?,
            Node::Or(operands) => operators::any(operands, env)?,
            Node::Conditional(operands) => {
                env.worked(1)?;
                let [condition, then, otherwise] = &**operands;
                let chosen = if condition.eval(env)?.is_true() { then } else { otherwise };
                chosen.eval(env)?
            }
            Node::Between { negated, operands } => operators::between(*negated, operands, env)?,
            Node::In { negated, needle, list } => operators::contained(*negated, needle, list, env)?,
            Node::InConstants { negated, needle, sorted } => {
                operators::contained_in_constants(*negated, needle, sorted, env)?
            }
            Node::Like { negated, value, pattern } => like(*negated, value, pattern, env)?,
            Node::Array(items) => array(items, env)?,
            Node::Object(properties) => object(properties, env)?,
            Node::Call(function, arguments) => call(function, arguments, env)?,
            Node::Regex(text, regex) => match text.eval(env)? {
                Val::Str(text) => {
                    env.worked(1 + (text.as_str().len() / limits::WORK_BYTES) as u64)?;
                    Val::Bool(regex.is_match(text.as_str(), &mut |work| env.worked(work))?)
                }
                _ => Val::Undefined,
            },
            Node::OrderKey { order, slot, steps } => order_key::of_path(*order, *slot, steps, env)?,
            Node::VectorDistance { distance, vectors } => vector_distance(*distance, vectors, env)?,
            Node::Udf(name, arguments) => udf(name, arguments, env)?,
            Node::Subquery(kind, level) => subquery(*kind, level, env)?,
            Node::GroupKey(i) => env.group_keys.get(*i).cloned().unwrap_or(Val::Undefined),
            Node::Aggregate(i) => env.aggregates.get(*i).cloned().unwrap_or(Val::Undefined),
        })
    }
}

/// Members of stored objects are found by search; those of made ones by looking at all, which must
/// not be forgotten when there are thousands.
fn search_work(value: &Val<'_>) -> u64 {
    match value {
        Val::Object(Fields::Made(fields)) => fields.len() as u64 / 8,
        _ => 0,
    }
}

fn walk<'a>(start: &Val<'a>, steps: &[PathStep]) -> Val<'a> {
    let mut steps = steps.iter();
    let mut value = match steps.next() {
        Some(PathStep::Name(name)) => start.get(name),
        Some(PathStep::Index(index)) => start.index(*index),
        None => start.clone(),
    };
    for step in steps {
        value = match step {
            PathStep::Name(name) => value.get(name),
            PathStep::Index(index) => value.index(*index),
        };
    }
    value
}

fn like<'a>(negated: bool, value: &'a Node, pattern: &'a LikeNode, env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let value = value.eval(env)?;
    let Some(text) = value.as_str() else { return Ok(Val::Undefined) };
    env.worked(1 + (text.len() / limits::WORK_BYTES) as u64)?;
    let found = match pattern {
        LikeNode::Ready(pattern) => like_matches(pattern, text)?,
        LikeNode::Late(node, escape) => match node.eval(env)?.as_str() {
            Some(pattern) => {
                env.worked(pattern.len() as u64)?;
                like_matches(&like_pattern(pattern, *escape)?, text)?
            }
            None => return Ok(Val::Undefined),
        },
    };
    Ok(Val::Bool(found != negated))
}

fn like_matches(pattern: &LikePattern, text: &str) -> Result<bool> {
    if pattern.is_too_long() {
        return Err(QueryError::LimitExceeded("The pattern of a LIKE is too long."));
    }
    Ok(pattern.matches(text))
}

fn array<'a>(items: &'a [Node], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut list = Vec::with_capacity(items.len());
    for item in items {
        let value = item.eval(env)?;
        if !value.is_undefined() {
            list.push(value);
        }
    }
    let list = Val::array(list);
    env.made(&list)?;
    Ok(list)
}

fn object<'a>(properties: &'a [(Box<str>, Node)], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut fields = Vec::with_capacity(properties.len());
    for (name, node) in properties {
        let value = node.eval(env)?;
        if !value.is_undefined() {
            fields.push((Text::Stored(name), value));
        }
    }
    let object = Val::object(fields);
    env.made(&object)?;
    Ok(object)
}

/// Calls of few arguments are the rule, and need no allocation.
fn call<'a>(function: &'static Function, arguments: &'a [Node], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    match arguments {
        [] => call_with(function, &[], env),
        [a] => {
            let values = [a.eval(env)?];
            call_with(function, &values, env)
        }
        [a, b] => {
            let values = [a.eval(env)?, b.eval(env)?];
            call_with(function, &values, env)
        }
        [a, b, c] => {
            let values = [a.eval(env)?, b.eval(env)?, c.eval(env)?];
            call_with(function, &values, env)
        }
        many => {
            let mut values = Vec::with_capacity(many.len());
            for argument in many {
                values.push(argument.eval(env)?);
            }
            call_with(function, &values, env)
        }
    }
}

fn call_with<'a>(function: &'static Function, values: &[Val<'a>], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    env.worked(1 + values.iter().map(|value| value.work(env.item_work)).sum::<u64>())?;
    let call = Call {
        now_ticks: env.cx.now_ticks,
        random: if function.uses_chance { env.next_random() } else { 0 },
        geospatial: env.cx.geospatial,
        work: Cell::new(0),
        made: Cell::new(0),
    };
    let answer = function.run(values, &call)?;
    env.worked(call.work.get())?;
    env.made_bytes(call.made.get())?;
    env.made(&answer)?;
    Ok(answer)
}

fn vector_distance<'a>(
    distance: VectorDistance,
    vectors: &'a [Node; 2],
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let [a, b] = vectors;
    let (a, b) = (a.eval(env)?, b.eval(env)?);
    let (Some(a), Some(b)) = (a.as_list(), b.as_list()) else { return Ok(Val::Undefined) };
    env.worked(1 + a.len().min(b.len()) as u64)?;
    Ok(distance.measure(a, b).map_or(Val::Undefined, Val::number))
}

fn udf<'a>(name: &str, arguments: &'a [Node], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(argument.eval(env)?);
    }
    let Some(udfs) = env.cx.udfs else {
        return Err(QueryError::Unsupported(format!(
            "The user defined function '{name}' cannot be run here."
        )));
    };
    let answer = udfs.call(name, &values)?;
    env.made(&answer)?;
    Ok(answer)
}

fn subquery<'a>(
    kind: SubqueryKind,
    level: &'a crate::program::Level,
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let most = match kind {
        SubqueryKind::Scalar | SubqueryKind::Exists | SubqueryKind::First => 1,
        SubqueryKind::Array | SubqueryKind::All | SubqueryKind::Last => limits::ARRAY_ITEMS,
    };
    let mut rows = rows_of(level, env, most)?;
    Ok(match kind {
        SubqueryKind::Exists => Val::Bool(!rows.is_empty()),
        SubqueryKind::Array => {
            let list = Val::array(rows);
            env.made(&list)?;
            list
        }
        SubqueryKind::All => Val::Bool(rows.iter().all(Val::is_true)),
        SubqueryKind::Scalar | SubqueryKind::First | SubqueryKind::Last => {
            rows.pop().unwrap_or(Val::Undefined)
        }
    })
}
