//! One expression over one row.
//!
//! `undefined` is an ordinary value here: it is what a missing property gives, what operators give
//! for operands of the wrong type, and what disappears from objects, arrays and result rows.

mod operators;
mod query;

use crate::ast::SubqueryKind;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::program::{LikeNode, Node, PathStep};
use crate::row::Row;
use crate::value::{Fields, Text, Val};

pub(crate) use operators::equal;
pub(crate) use query::{expand, rows_of};

/// What an evaluation may know about the world. Time and chance come from the caller.
#[derive(Clone, Copy)]
pub struct Context<'x> {
    /// The current time in ticks of 100 ns since 1970.
    pub now_ticks: i64,
    /// Where RAND starts.
    pub seed: u64,
    pub udfs: Option<&'x dyn UserFunctions>,
}

impl Context<'static> {
    pub fn at(now_ticks: i64, seed: u64) -> Self {
        Self { now_ticks, seed, udfs: None }
    }
}

/// User-defined functions, run by whoever can run scripts.
pub trait UserFunctions: Sync {
    fn call(&self, name: &str, arguments: &[Val<'_>]) -> std::result::Result<Val<'static>, String>;
}

/// The bindings while a row is evaluated. Slot 0 is the item itself.
pub(crate) struct Env<'a, 'x> {
    pub slots: Vec<Val<'a>>,
    pub cx: &'x Context<'x>,
    pub random: u64,
    /// Rows visited so far; bounded so that nested subqueries cannot run for ever.
    pub steps: u64,
    pub group_keys: Vec<Val<'a>>,
    pub aggregates: Vec<Val<'a>>,
}

impl<'a, 'x> Env<'a, 'x> {
    pub fn new(slots: usize, cx: &'x Context<'x>, row: Option<&'a Row<'a>>) -> Self {
        let mut bound = vec![Val::Undefined; slots.max(1)];
        if let Some(row) = row {
            bound[0] = row_value(row);
        }
        Self { slots: bound, cx, random: cx.seed, steps: 0, group_keys: Vec::new(), aggregates: Vec::new() }
    }

    pub fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > limits::STEPS_PER_DOCUMENT {
            return Err(QueryError::LimitExceeded("The query visits too many rows for one item."));
        }
        Ok(())
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
            Node::Constant(value) => value.clone(),
            Node::Slot(slot) => env.slots[*slot].clone(),
            Node::Path { slot, steps } => walk(&env.slots[*slot], steps),
            Node::Member(base, name) => base.eval(env)?.get(name),
            Node::Index(base, index) => {
                let base = base.eval(env)?;
                let index = index.eval(env)?;
                operators::index(&base, &index)
            }
            Node::Unary(op, operand) => operators::unary(*op, &operand.eval(env)?),
            Node::Binary(op, left, right) => operators::binary(*op, left, right, env)?,
            Node::And(operands) => operators::all(operands, env)?,
            Node::Or(operands) => operators::any(operands, env)?,
            Node::Conditional(operands) => {
                let [condition, then, otherwise] = &**operands;
                let chosen = if condition.eval(env)?.is_true() { then } else { otherwise };
                chosen.eval(env)?
            }
            Node::Between { negated, operands } => operators::between(*negated, operands, env)?,
            Node::In { negated, needle, list } => operators::contained(*negated, needle, list, env)?,
            Node::InConstants { negated, needle, sorted } => match needle.eval(env)? {
                Val::Undefined => Val::Undefined,
                needle => Val::Bool(sorted.binary_search_by(|item| item.order(&needle)).is_ok() != *negated),
            },
            Node::Like { negated, value, pattern } => like(*negated, value, pattern, env)?,
            Node::Array(items) => array(items, env)?,
            Node::Object(properties) => object(properties, env)?,
            Node::Call(function, arguments) => call(function, arguments, env)?,
            Node::Regex(text, regex) => match text.eval(env)? {
                Val::Str(text) => Val::Bool(regex.is_match(text.as_str())),
                _ => Val::Undefined,
            },
            Node::Udf(name, arguments) => udf(name, arguments, env)?,
            Node::Subquery(kind, level) => subquery(*kind, level, env)?,
            Node::GroupKey(i) => env.group_keys.get(*i).cloned().unwrap_or(Val::Undefined),
            Node::Aggregate(i) => env.aggregates.get(*i).cloned().unwrap_or(Val::Undefined),
        })
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
    let found = match pattern {
        LikeNode::Ready(pattern) => pattern.matches(text),
        LikeNode::Late(node, escape) => match node.eval(env)?.as_str() {
            Some(pattern) => crate::pattern::LikePattern::new(pattern, *escape).matches(text),
            None => return Ok(Val::Undefined),
        },
    };
    Ok(Val::Bool(found != negated))
}

fn array<'a>(items: &'a [Node], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut list = Vec::with_capacity(items.len());
    for item in items {
        let value = item.eval(env)?;
        if !value.is_undefined() {
            list.push(value);
        }
    }
    Ok(Val::array(list))
}

fn object<'a>(properties: &'a [(Box<str>, Node)], env: &mut Env<'a, '_>) -> Result<Val<'a>> {
    let mut fields = Vec::with_capacity(properties.len());
    for (name, node) in properties {
        let value = node.eval(env)?;
        if !value.is_undefined() {
            fields.push((Text::Stored(name), value));
        }
    }
    Ok(Val::object(fields))
}

fn call<'a>(
    function: &'static crate::functions::Function,
    arguments: &'a [Node],
    env: &mut Env<'a, '_>,
) -> Result<Val<'a>> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(argument.eval(env)?);
    }
    let random = if function.uses_chance { env.next_random() } else { 0 };
    function.run(&values, env.cx.now_ticks, random)
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
    udfs.call(name, &values).map_err(QueryError::bare)
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
        SubqueryKind::Array => Val::array(rows),
        SubqueryKind::All => Val::Bool(rows.iter().all(Val::is_true)),
        SubqueryKind::Scalar | SubqueryKind::First | SubqueryKind::Last => {
            rows.pop().unwrap_or(Val::Undefined)
        }
    })
}
