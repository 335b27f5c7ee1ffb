//! One JavaScript engine: a runtime with its limits, one context, and the hardened globals.

use std::rc::Rc;

use rquickjs::allocator::RustAllocator;
use rquickjs::context::EvalOptions;
use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, FromJs, Function, Runtime, Type, Value};

use crate::clock::Clock;
use crate::prelude;
use crate::{Limits, ScriptError};

/// What scripts may use of the language. Weak references would make the garbage collector visible, and the
/// clocks and exceptions of browsers are not part of the service.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

pub(crate) struct Engine {
    pub context: Context,
    pub clock: Rc<Clock>,
}

impl Engine {
    pub fn new(limits: &Limits) -> Result<Engine, ScriptError> {
        let unavailable = |error: rquickjs::Error| ScriptError::Engine(error.to_string());
        let runtime = Runtime::new_with_alloc(RustAllocator).map_err(unavailable)?;
        runtime.set_memory_limit(limits.memory_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        let clock = Rc::new(Clock::start(limits.time));
        let polled = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || polled.is_over())));
        let context = Context::custom::<Language>(&runtime).map_err(unavailable)?;
        Ok(Engine { context, clock })
    }
}

/// Evaluates a text in the global scope. Scripts are not strict unless they say so.
pub(crate) fn evaluate<'js, T: FromJs<'js>>(ctx: &Ctx<'js>, name: &str, text: &str) -> rquickjs::Result<T> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(text, options)
}

/// Puts failures into words. It must be made before any text of a user runs.
#[derive(Clone)]
pub(crate) struct Judge<'js> {
    pub describe: Function<'js>,
}

impl<'js> Judge<'js> {
    /// Hardens the globals of the context.
    pub fn harden(ctx: &Ctx<'js>) -> Result<Judge<'js>, ScriptError> {
        let describe = prelude::load(ctx, prelude::HARDEN)?;
        Ok(Judge { describe })
    }

    /// Why the engine stopped. The time comes first: what else is reported then is a consequence.
    pub fn judge(
        &self,
        ctx: &Ctx<'js>,
        error: rquickjs::Error,
        clock: &Clock,
        limits: &Limits,
    ) -> ScriptError {
        let thrown = ctx.catch();
        if clock.was_over() {
            return ScriptError::TimedOut { limit: limits.time };
        }
        let out_of_memory = ScriptError::OutOfMemory { limit_bytes: limits.memory_bytes };
        match error {
            // When not even the error can be allocated, the engine throws null. A script that throws null itself
            // is told the same, which is the lesser evil.
            rquickjs::Error::Exception if !matches!(thrown.type_of(), Type::Uninitialized | Type::Null) => {}
            rquickjs::Error::Exception | rquickjs::Error::Allocation | rquickjs::Error::Unknown => {
                return out_of_memory;
            }
            other => {
                let message = other.to_string();
                return ScriptError::Threw { message, stack: String::new(), number: None };
            }
        }
        match self.describe(thrown) {
            Some((_, message, _)) if message == "InternalError: out of memory" => out_of_memory,
            Some((number, message, stack)) => ScriptError::Threw { message, stack, number },
            None if clock.was_over() => ScriptError::TimedOut { limit: limits.time },
            None => out_of_memory,
        }
    }

    /// The number, the text and the stack; nothing if the engine is too far gone to say.
    fn describe(&self, thrown: Value<'js>) -> Option<(Option<u32>, String, String)> {
        let described: String = self.describe.call((thrown,)).ok()?;
        let mut parts = described.splitn(3, '\0');
        let number = parts.next()?.parse::<i64>().ok()?;
        let message = parts.next()?.to_owned();
        let stack = parts.next().map(own_frames).unwrap_or_default();
        Some((u32::try_from(number).ok(), message, stack))
    }
}

/// The frames of the user's own text, in the form of the service.
pub(crate) fn own_frames(stack: &str) -> String {
    let frames = stack.lines().map(str::trim).filter(|frame| !frame.is_empty());
    let own = frames.filter(|frame| !frame.contains(prelude::SCHEME) && !frame.contains("(native)"));
    own.map(|frame| format!("   {frame}")).collect::<Vec<_>>().join("\n")
}
