//! Turns SQL into a plan, runs it over a source of items, and merges pages.
//!
//! The room is pure and synchronous: it asks, the caller fetches. Reading order: `ast`, `parse`,
//! `print`, then `eval` (one expression over one row), `run` (one partition's page) and `describe`
//! (what a client must know to run the query over all partitions).

pub mod access;
pub mod ast;
mod cache;
mod compile;
mod describe;
mod error;
mod eval;
mod functions;
mod group_order;
mod lexer;
pub mod limits;
mod parameters;
pub mod parse;
mod pattern;
pub mod print;
mod program;
mod routing;
mod row;
mod run;
mod sort_key;
mod steward;
mod token;
mod value;

pub use access::{
    Access, Advice, Chosen, CompositePaths, Explanation, IndexMetrics, IndexOrder, IndexPath, IndexStep,
    Indexes, Leaf, Proposal, Shortcut, Span, advice, advice_json, check_order, explain, index_metrics,
    plan_access,
};
pub use cache::ProgramCache;
pub use compile::{
    ComputedProperty, Prepared, Program, VectorPath, Vocabulary, compile, compile_ast, compile_condition,
    compile_with,
};
pub use describe::{
    DistinctType, Features, PlanRange, PlanSettings, QueryInfo, QueryPlan, Ranking, TextStatistics, describe,
    describe_with, needs_plan,
};
pub use error::{Code, Diagnostic, QueryError, Result};
pub use eval::{Context, UserFunctions, order_key};
pub use functions::{Geospatial, VectorDistance, function_names};
pub use group_order::{only_counts, path_of};
pub use parameters::Parameters;
pub use pattern::LikePattern;
pub use program::AggregateKind;
pub use routing::{PinnedKeys, partition_key_filter};
pub use row::{Row, SystemField, SystemProperties, SystemProps, SystemValue};
pub use run::{Carry, Documents, Flow, Measured, PageEnd, Position, ResumePoint, Room, Rows, Run, Sink};
pub use steward::Steward;
pub use token::keywords;
pub use value::{Fields, Kind, List, Text, Val};
