//! JSON text in and out.

mod parse;
mod write;

pub use parse::{DEFAULT_MAX_DEPTH, JsonError, JsonErrorKind, MAX_TEXT_BYTES, parse};
pub use write::{size, write, write_fields, write_str};
