//! Turns SQL into a plan, runs it over a source of items, and merges pages.
//!
//! The room is pure and synchronous: it asks, the caller fetches. Reading order: `ast`, `parse`,
//! `print`, then `eval` (one expression over one row), `run` (one partition's page) and `describe`
//! (what a client must know to run the query over all partitions).

pub mod ast;
mod error;
mod lexer;
pub mod limits;
pub mod parse;
pub mod print;
mod token;

pub use error::{Code, Diagnostic, QueryError, Result};
