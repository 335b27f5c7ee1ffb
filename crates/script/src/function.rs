//! User-defined functions: values in, a value out, many times.
//!
//! A function has no context: it sees its arguments and the language. One engine serves all functions of one query
//! on one thread, and their time is counted together, so that a filter over many rows stays as bounded as a
//! procedure is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orrery_doc::{Doc, Value, json};
use rquickjs::function::Args;
use rquickjs::{Ctx, Function, IntoJs, Persistent, Type};

use crate::engine::{Engine, Judge, evaluate};
use crate::{Limits, Program, ScriptError};

/// One argument: a value, or the JSON text of one that is not stored anywhere.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    Value(Value<'a>),
    Json(&'a [u8]),
}

/// The functions of one query. It can be shared between threads; each thread that calls makes an engine.
pub struct Functions {
    /// Tells this set from others in the engines of threads.
    set: u64,
    programs: HashMap<String, Arc<Program>>,
    limits: Limits,
}

thread_local! {
    /// The engine of the set that was last called on this thread.
    static ENGINE: RefCell<Option<(u64, FunctionRunner)>> = const { RefCell::new(None) };
}

impl Functions {
    pub fn new(programs: HashMap<String, Arc<Program>>, limits: Limits) -> Functions {
        static SETS: AtomicU64 = AtomicU64::new(0);
        Functions { set: SETS.fetch_add(1, Ordering::Relaxed), programs, limits }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.programs.contains_key(name)
    }

    /// Calls a function. Nothing stands for undefined.
    pub fn call(&self, name: &str, arguments: &[Argument<'_>]) -> Result<Option<Doc>, ScriptError> {
        let program = self.programs.get(name).ok_or_else(|| ScriptError::UnknownFunction(name.to_owned()))?;
        ENGINE.with_borrow_mut(|engine| {
            let current = engine.take().filter(|(set, _)| *set == self.set);
            let runner = match current {
                Some((_, runner)) => runner,
                None => FunctionRunner::new(self.limits.clone())?,
            };
            let (_, runner) = engine.insert((self.set, runner));
            runner.add(name, program)?;
            runner.call(name, arguments)
        })
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        // An engine left on another thread goes when that thread serves the next set or ends.
        let _ = ENGINE.try_with(|engine| {
            if let Ok(mut engine) = engine.try_borrow_mut()
                && engine.as_ref().is_some_and(|(set, _)| *set == self.set)
            {
                *engine = None;
            }
        });
    }
}

/// One engine with functions. It stays on the thread that made it.
pub struct FunctionRunner {
    // Values of the engine go before the engine.
    functions: HashMap<String, Persistent<Function<'static>>>,
    describe: Persistent<Function<'static>>,
    stringify: Persistent<Function<'static>>,
    engine: Engine,
    limits: Limits,
    spent: Duration,
}

impl FunctionRunner {
    pub fn new(limits: Limits) -> Result<FunctionRunner, ScriptError> {
        let engine = Engine::new(&limits)?;
        let (describe, stringify) = engine.context.with(|ctx| {
            let judge = Judge::harden(&ctx)?;
            let stringify: Function = evaluate(&ctx, "orrery:json", "JSON.stringify")
                .map_err(|error| ScriptError::Engine(error.to_string()))?;
            Ok((Persistent::save(&ctx, judge.describe), Persistent::save(&ctx, stringify)))
        })?;
        let functions = HashMap::new();
        Ok(FunctionRunner { functions, describe, stringify, engine, limits, spent: Duration::ZERO })
    }

    /// Makes a function known by its name. A name that is known stays what it is.
    pub fn add(&mut self, name: &str, program: &Program) -> Result<(), ScriptError> {
        if self.functions.contains_key(name) {
            return Ok(());
        }
        let function = self.timed(|runner, ctx| {
            let main: rquickjs::Value =
                evaluate(ctx, program.file(), program.text()).map_err(|error| runner.judge(ctx, error))?;
            let main = main.into_function().ok_or(ScriptError::NotAFunction)?;
            Ok(Persistent::save(ctx, main))
        })?;
        self.functions.insert(name.to_owned(), function);
        Ok(())
    }

    pub fn call(&mut self, name: &str, arguments: &[Argument<'_>]) -> Result<Option<Doc>, ScriptError> {
        let function = self.functions.get(name).cloned();
        let function = function.ok_or_else(|| ScriptError::UnknownFunction(name.to_owned()))?;
        self.timed(|runner, ctx| {
            let failed = |error| runner.judge(ctx, error);
            let function = function.restore(ctx).map_err(failed)?;
            let mut given = Args::new(ctx.clone(), arguments.len());
            for argument in arguments {
                given.push_arg(to_js(ctx, *argument).map_err(failed)?).map_err(failed)?;
            }
            let result: rquickjs::Value = function.call_arg(given).map_err(failed)?;
            let result = runner.to_doc(ctx, result);
            // Nobody waits for promises of a function, but their jobs must not pile up.
            let mut jobs = 0;
            while jobs < 1_000 && ctx.execute_pending_job() {
                jobs += 1;
            }
            result
        })
    }

    /// Runs with the time that is left, and counts what was used.
    fn timed<T>(
        &mut self,
        work: impl FnOnce(&FunctionRunner, &Ctx<'_>) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        let left = self.limits.time.saturating_sub(self.spent);
        if left.is_zero() {
            return Err(ScriptError::TimedOut { limit: self.limits.time });
        }
        self.engine.clock.restart(left);
        let result = self.engine.context.with(|ctx| work(self, &ctx));
        self.spent += self.engine.clock.elapsed();
        result
    }

    fn judge(&self, ctx: &Ctx<'_>, error: rquickjs::Error) -> ScriptError {
        match self.describe.clone().restore(ctx) {
            Ok(describe) => Judge { describe }.judge(ctx, error, &self.engine.clock, &self.limits),
            Err(error) => ScriptError::Engine(error.to_string()),
        }
    }

    fn to_doc<'js>(&self, ctx: &Ctx<'js>, value: rquickjs::Value<'js>) -> Result<Option<Doc>, ScriptError> {
        let scalar = match value.type_of() {
            Type::Undefined => return Ok(None),
            Type::Null => Some(Value::Null),
            Type::Bool => value.as_bool().map(Value::Bool),
            Type::Int => value.as_int().map(|int| Value::Int(int.into())),
            Type::Float => value.as_float().map(number),
            _ => None,
        };
        if let Some(scalar) = scalar {
            return Ok(Some(Doc::from_value(scalar)));
        }
        let failed = |error| self.judge(ctx, error);
        let stringify = self.stringify.clone().restore(ctx).map_err(failed)?;
        let text: Option<String> = stringify.call((value,)).map_err(failed)?;
        let Some(text) = text else { return Ok(None) };
        if text.len() > self.limits.body_bytes {
            return Err(ScriptError::TooLarge { what: "value", limit: self.limits.body_bytes });
        }
        json::parse(text.as_bytes(), json::DEFAULT_MAX_DEPTH).map(Some).map_err(|error| ScriptError::Threw {
            message: error.to_string(),
            stack: String::new(),
            number: None,
        })
    }
}

/// Numbers of the language are doubles; whole ones come back as the integers they were. What JSON cannot write is null.
fn number(value: f64) -> Value<'static> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        Value::Null
    } else if value.fract() == 0.0 && value.abs() < EXACT && !(value == 0.0 && value.is_sign_negative()) {
        Value::Int(value as i64)
    } else {
        Value::Double(value)
    }
}

fn to_js<'js>(ctx: &Ctx<'js>, argument: Argument<'_>) -> rquickjs::Result<rquickjs::Value<'js>> {
    let value = match argument {
        Argument::Value(value) => value,
        Argument::Json(text) => return ctx.json_parse(text),
    };
    match value {
        Value::Undefined => Ok(rquickjs::Value::new_undefined(ctx.clone())),
        Value::Null => Ok(rquickjs::Value::new_null(ctx.clone())),
        Value::Bool(bool) => Ok(rquickjs::Value::new_bool(ctx.clone(), bool)),
        Value::Int(int) => (int as f64).into_js(ctx),
        Value::Double(double) => double.into_js(ctx),
        Value::Str(text) => text.into_js(ctx),
        Value::Array(_) | Value::Object(_) | Value::Map(_) | Value::Typed(_) => {
            let mut text = Vec::new();
            json::write(value, &mut text);
            ctx.json_parse(text)
        }
    }
}
