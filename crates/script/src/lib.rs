//! Runs stored procedures, triggers and user-defined functions against a host it is given.
//!
//! A [`Program`] is the text of one script, checked once. A call makes a fresh engine, gives it the server-side
//! API (`prelude/`), runs the script, and then runs what waits: promise jobs first, then one callback at a time,
//! until nothing is left. The script reaches the database only through [`Host`], which the caller implements; the
//! host's effects are the caller's to commit when the call succeeded, and to forget when it did not.
//!
//! **What bounds a script.** Memory and stack are limits of the engine. Time is polled by the engine at every call
//! and every backward jump, and by its regular expressions, but only each ten thousandth poll asks the clock, and
//! built-in functions that work on long strings poll nothing. Loops and regular expressions therefore stop within
//! a millisecond of their time, while a script that is written for it (long straight-line comparisons of long
//! strings) can overstay. A caller that must answer in time waits for the call no longer than [`Limits::time`] and
//! a little more, and leaves the thread to end by itself: nothing a script does is visible before its caller says so.
//!
//! Contexts are never shared between calls: a script may change every prototype in reach, and only itself suffers.
//! User-defined functions are the exception, because they run once for each row: one context serves one query.

mod cache;
mod call;
mod clock;
mod desk;
mod engine;
mod error;
mod function;
mod host;
mod limits;
mod prelude;
mod program;

pub use cache::Programs;
pub use call::{Finished, Output, Trigger, call_post_trigger, call_pre_trigger, call_procedure};
pub use error::ScriptError;
pub use function::{Argument, FunctionRunner, Functions};
pub use host::{Answer, Collection, Feed, Host, Quota, Refusal, Reply, Write, WriteKind, WriteOptions};
pub use limits::Limits;
pub use program::Program;
