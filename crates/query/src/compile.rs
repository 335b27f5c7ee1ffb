//! From tree to program: names become slots, functions are looked up, parameters become constants,
//! and everything that can be known to be wrong without data is refused here.

mod clauses;
mod expressions;
mod grouping;

use crate::ast::Query;
use crate::error::{Diagnostic, QueryError, Result};
use crate::parameters::Parameters;
use crate::parse;
use crate::program::Level;
use grouping::GroupScope;

/// A query that is ready to run over the items of a partition.
#[derive(Debug)]
pub struct Program {
    pub(crate) level: Level,
    pub(crate) slots: usize,
    query: Query,
}

impl Program {
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Whether the answer depends on rows that were fed on earlier pages, so that every page must
    /// be fed from the first item on. All other programs go on where the last page ended.
    pub fn is_blocking(&self) -> bool {
        self.level.is_blocking()
    }
}

/// Compiles the text of a query.
pub fn compile(text: &str, parameters: &Parameters) -> Result<Program> {
    compile_query(parse::parse(text)?, parameters).map_err(|error| error.located_in(text))
}

/// Compiles the condition of a patch, `from c where ...`; see [`crate::Program::accepts`].
pub fn compile_condition(text: &str, parameters: &Parameters) -> Result<Program> {
    compile_query(parse::parse_condition(text)?, parameters).map_err(|error| error.located_in(text))
}

/// Compiles a tree. Locations of errors stay byte offsets.
pub(crate) fn compile_query(query: Query, parameters: &Parameters) -> Result<Program> {
    let mut compiler =
        Compiler { parameters, names: Vec::new(), slots: 1, group: None, findings: Vec::new() };
    let level = compiler.level(&query)?;
    if !compiler.findings.is_empty() {
        return Err(QueryError::Invalid(compiler.findings));
    }
    Ok(Program { level, slots: compiler.slots, query })
}

struct Compiler<'q> {
    parameters: &'q Parameters,
    /// The names in scope, innermost last, with their slots. Slot 0 is the item itself.
    names: Vec<(String, usize)>,
    slots: usize,
    /// Set while the SELECT and ORDER BY of a grouped level are compiled.
    group: Option<GroupScope>,
    /// Findings that do not stop the search for more.
    findings: Vec<Diagnostic>,
}
