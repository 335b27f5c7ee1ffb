//! Our own JavaScript, compiled once.
//!
//! Parsing the prelude takes longer than most procedures run, and every call has a context of its own. So the files
//! are compiled to the engine's bytecode when the first call needs them, and each context only loads that. They are
//! modules because the engine writes the bytecode of nothing else; no loader is installed, so scripts cannot import
//! them or anything.

use std::sync::LazyLock;

use rquickjs::loader::Loader;
use rquickjs::loader::bundle::Bundle;
use rquickjs::{Context, Ctx, FromJs, Module, Runtime, WriteOptions};

use crate::ScriptError;

/// Frames of these files are ours and not shown to users.
pub(crate) const SCHEME: &str = "orrery:";
pub(crate) const HARDEN: &str = "orrery:harden.js";
pub(crate) const CONTEXT: &str = "orrery:context.js";

const FILES: [(&str, &str); 2] =
    [(HARDEN, include_str!("prelude/harden.js")), (CONTEXT, include_str!("prelude/context.js"))];

type Compiled = &'static [(&'static str, &'static [u8])];

/// The bytecode lives as long as the process, as the contexts that read it may.
static COMPILED: LazyLock<Result<Compiled, String>> = LazyLock::new(|| {
    let compiled = || -> rquickjs::Result<Vec<(&'static str, &'static [u8])>> {
        let context = Context::full(&Runtime::new()?)?;
        context.with(|ctx| FILES.iter().map(|(name, text)| compile(&ctx, name, text)).collect())
    };
    compiled().map(|files| &*files.leak()).map_err(|error| error.to_string())
});

fn compile(
    ctx: &Ctx<'_>,
    name: &'static str,
    text: &'static str,
) -> rquickjs::Result<(&'static str, &'static [u8])> {
    let module = Module::declare(ctx.clone(), name, text)?;
    let options = WriteOptions { strip_source: true, ..WriteOptions::default() };
    Ok((name, module.write(options)?.leak()))
}

/// What one of our files exports, made in this context.
pub(crate) fn load<'js, T: FromJs<'js>>(ctx: &Ctx<'js>, name: &str) -> Result<T, ScriptError> {
    let files = COMPILED.as_ref().map_err(|error| ScriptError::Engine(error.clone()))?;
    let made = || -> rquickjs::Result<T> {
        let (module, _) = Bundle(*files).load(ctx, name, None)?.eval()?;
        module.get("default")
    };
    made().map_err(|error| {
        let thrown = matches!(error, rquickjs::Error::Exception).then(|| ctx.catch());
        ScriptError::Engine(format!("{error} {thrown:?}"))
    })
}
