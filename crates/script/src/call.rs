//! One call of a stored procedure or a trigger, from its first statement to its last callback.

use std::rc::Rc;
use std::time::Duration;

use orrery_doc::json;
use rquickjs::{Array, Ctx, Function, Value};

use crate::clock::Clock;
use crate::desk::{self, Desk};
use crate::engine::{Engine, Judge, evaluate};
use crate::prelude;
use crate::{Collection, Host, Limits, Program, ScriptError};

/// The host comes back in every case: its effects are committed only when the result says so.
pub struct Finished<H> {
    pub host: H,
    pub result: Result<Output, ScriptError>,
    /// What the script wrote to its console, also if it failed.
    pub log: String,
    pub operations: u32,
    pub elapsed: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// JSON: the response of a procedure or a post-trigger, the request of a pre-trigger. Nothing if it was not set.
    pub body: Option<Vec<u8>>,
}

/// The operation that a trigger belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// `Create`, `Replace`, `Upsert` or `Delete`.
    pub operation: &'a str,
    /// JSON; empty if the operation has no body.
    pub request_body: &'a [u8],
    /// JSON; only a post-trigger sees it.
    pub response_body: &'a [u8],
}

/// Runs a stored procedure. `arguments` is JSON as `Function.apply` takes its second argument: an array with one element
/// for each parameter, what looks like an array, or `null`. Nothing says the same as `null`.
pub fn call_procedure<H: Host + 'static>(
    program: &Program,
    arguments: &[u8],
    logging: bool,
    host: H,
    limits: &Limits,
) -> Finished<H> {
    let trigger = Trigger { operation: "Execute", request_body: arguments, response_body: b"" };
    run(program, &Invocation { kind: "procedure", arguments, trigger, logging }, host, limits)
}

/// Runs a pre-trigger, which may change the body of the request.
pub fn call_pre_trigger<H: Host + 'static>(
    program: &Program,
    trigger: Trigger<'_>,
    logging: bool,
    host: H,
    limits: &Limits,
) -> Finished<H> {
    run(program, &Invocation { kind: "pre", arguments: b"", trigger, logging }, host, limits)
}

/// Runs a post-trigger, which sees the response and may change its body.
pub fn call_post_trigger<H: Host + 'static>(
    program: &Program,
    trigger: Trigger<'_>,
    logging: bool,
    host: H,
    limits: &Limits,
) -> Finished<H> {
    run(program, &Invocation { kind: "post", arguments: b"", trigger, logging }, host, limits)
}

struct Invocation<'a> {
    kind: &'static str,
    arguments: &'a [u8],
    trigger: Trigger<'a>,
    logging: bool,
}

fn run<H: Host + 'static>(
    program: &Program,
    invocation: &Invocation<'_>,
    host: H,
    limits: &Limits,
) -> Finished<H> {
    let desk = Desk::new(host, limits);
    let mut elapsed = Duration::ZERO;
    let result = Engine::new(limits).and_then(|engine| {
        let result =
            engine.context.with(|ctx| drive(&ctx, &engine.clock, program, invocation, &desk, limits));
        elapsed = engine.clock.elapsed();
        result
    });
    let (host, log, operations) = desk.close();
    Finished { host, result, log, operations, elapsed }
}

fn drive<H: Host + 'static>(
    ctx: &Ctx<'_>,
    clock: &Rc<Clock>,
    program: &Program,
    invocation: &Invocation<'_>,
    desk: &Rc<Desk<H>>,
    limits: &Limits,
) -> Result<Output, ScriptError> {
    let judge = Judge::harden(ctx)?;
    let failed = |error| judge.judge(ctx, error, clock, limits);
    // The bodies are parsed while the context is made, before the script runs: what is thrown there is their fault.
    let sent_so = |error| match failed(error) {
        ScriptError::Threw { .. } => ScriptError::Arguments,
        other => other,
    };
    let entries = enter_context(ctx, clock, invocation, desk, limits)?.map_err(sent_so)?;
    let arguments = Some(text(invocation.arguments)?).filter(|text| !text.is_empty());
    let arguments: Value = entries.list.call((arguments,)).map_err(sent_so)?;
    let main: Value = evaluate(ctx, program.file(), program.text()).map_err(failed)?;
    let main = main.into_function().ok_or(ScriptError::NotAFunction)?;
    entries.enter.call::<_, ()>((main, arguments)).map_err(failed)?;
    let mut jobs = 0;
    loop {
        settle(ctx, clock, limits, &mut jobs)?;
        if !entries.step.call::<_, bool>(()).map_err(failed)? {
            break;
        }
    }
    let body: Option<String> = entries.finish.call(()).map_err(failed)?;
    let body = body.map(String::into_bytes);
    if body.as_ref().is_some_and(|body| body.len() > limits.body_bytes) {
        return Err(ScriptError::TooLarge { what: "body", limit: limits.body_bytes });
    }
    Ok(Output { body })
}

/// Runs promise jobs until none waits. A job that throws has rejected its promise; the loop goes on.
fn settle(ctx: &Ctx<'_>, clock: &Clock, limits: &Limits, jobs: &mut u32) -> Result<(), ScriptError> {
    loop {
        if clock.is_over() {
            return Err(ScriptError::TimedOut { limit: limits.time });
        }
        if !ctx.execute_pending_job() {
            return Ok(());
        }
        *jobs += 1;
        if *jobs > limits.jobs {
            return Err(ScriptError::TooManyJobs { limit: limits.jobs });
        }
    }
}

struct Entries<'js> {
    list: Function<'js>,
    enter: Function<'js>,
    step: Function<'js>,
    finish: Function<'js>,
}

fn enter_context<'js, H: Host + 'static>(
    ctx: &Ctx<'js>,
    clock: &Rc<Clock>,
    invocation: &Invocation<'_>,
    desk: &Rc<Desk<H>>,
    limits: &Limits,
) -> Result<rquickjs::Result<Entries<'js>>, ScriptError> {
    let setup = setup(&desk.collection(), invocation, limits)?;
    let install: Function = prelude::load(ctx, prelude::CONTEXT)?;
    let made = || -> rquickjs::Result<Entries<'js>> {
        let call = Function::new(ctx.clone(), desk::call(desk, clock))?;
        let log = Function::new(ctx.clone(), desk::log(desk))?;
        let made: Array = install.call((call, log, setup))?;
        Ok(Entries { list: made.get(0)?, enter: made.get(1)?, step: made.get(2)?, finish: made.get(3)? })
    };
    Ok(made())
}

/// What the prelude must know, as JSON.
fn setup(
    collection: &Collection,
    invocation: &Invocation<'_>,
    limits: &Limits,
) -> Result<String, ScriptError> {
    let mut out = Vec::new();
    let mut field = |name: &str, value: &str| {
        out.push(if out.is_empty() { b'{' } else { b',' });
        json::write_str(name, &mut out);
        out.push(b':');
        json::write_str(value, &mut out);
    };
    field("kind", invocation.kind);
    field("selfLink", &collection.self_link);
    field("altLink", &collection.alt_link);
    field("quotaMost", &collection.quota.most);
    field("quotaUsed", &collection.quota.used);
    field("operation", invocation.trigger.operation);
    field("requestBody", text(invocation.trigger.request_body)?);
    field("responseBody", text(invocation.trigger.response_body)?);
    field("argumentsMax", &limits.arguments.to_string());
    if invocation.logging {
        field("logging", "on");
    }
    out.push(b'}');
    String::from_utf8(out).map_err(|_| ScriptError::Arguments)
}

fn text(bytes: &[u8]) -> Result<&str, ScriptError> {
    std::str::from_utf8(bytes).map_err(|_| ScriptError::Arguments)
}
