//! From tree to program: names become slots, functions are looked up, parameters become constants,
//! and everything that can be known to be wrong without data is refused here.

mod clauses;
mod computed;
mod constructed;
mod distinct;
mod expressions;
mod findings;
mod given;
mod grouping;
mod made;
mod order;
mod prepared;
mod ranking;
mod stages;
mod vectors;
mod vocabulary;

use std::sync::Arc;

use crate::ast::{Collection, Direction, Query};
use crate::error::{Diagnostic, QueryError, Result};
use crate::limits;
use crate::parameters::Parameters;
use crate::parse;
use crate::program::{Level, Node};
use crate::run::ResumePoint;
use crate::value::Val;
use given::Given;
use grouping::GroupScope;

pub use computed::ComputedProperty;
pub use made::compile_ast;
pub use prepared::Prepared;
pub use vocabulary::{VectorPath, Vocabulary};

pub(crate) use clauses::{item_names, selects_aggregate};
pub(crate) use expressions::constant;
pub(crate) use grouping::contains_aggregate;
pub(crate) use order::{Origin, order_origin, unmapped};
pub(crate) use ranking::{number, scores, weights};

/// A query that is ready to run over the items of a partition.
#[derive(Debug)]
pub struct Program {
    pub(crate) code: Arc<Code>,
    parameters: Parameters,
    /// The values of the parameters that the code names, each at its number.
    pub(crate) values: Vec<Val<'static>>,
    /// Where the client wants the order to begin.
    pub(crate) resume: Option<ResumePoint>,
    text_bytes: usize,
}

/// What a text is compiled to. Many programs share one where no parameter decides about its shape.
#[derive(Debug)]
pub(crate) struct Code {
    /// Levels that must see the whole container before the last one sees their rows.
    pub earlier: Vec<Stage>,
    pub last: Stage,
    query: Arc<Query>,
    user_functions: Vec<String>,
    /// The parameters whose values are looked up when it runs.
    parameters: Vec<String>,
    /// Whether it is the same whatever values the parameters have.
    is_for_all: bool,
    /// Whether its rows are made of the items of the container.
    needs_items: bool,
}

/// One level with the number of slots that it and its subqueries need.
#[derive(Debug)]
pub(crate) struct Stage {
    pub level: Level,
    pub slots: usize,
}

impl Program {
    pub fn query(&self) -> &Query {
        &self.code.query
    }

    /// Whether it has to be fed with items: a query without FROM stands alone, and so does one over a list of its own.
    pub fn needs_items(&self) -> bool {
        self.code.needs_items
    }

    /// The level that sees the items.
    pub(crate) fn first_stage(&self) -> &Stage {
        self.code.earlier.first().unwrap_or(&self.code.last)
    }

    /// The user-defined functions that it calls.
    pub fn user_functions(&self) -> &[String] {
        &self.code.user_functions
    }

    /// How long the text was that it was made of, with its parameters; it takes many times that in memory.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The rows to pass over and the most rows to answer.
    pub(crate) fn counts(&self) -> (u64, Option<u64>) {
        (self.code.last.level.offset, self.code.last.level.limit)
    }

    /// The keys of the last level's order, and from which end each begins.
    pub(crate) fn order(&self) -> &[(Node, Direction)] {
        &self.code.last.level.order_by
    }

    /// Whether the answer depends on rows that were fed on earlier pages, so that every page must
    /// be fed from the first item on. All other programs go on where the last page ended.
    pub fn is_blocking(&self) -> bool {
        !self.code.earlier.is_empty() || self.code.last.level.is_blocking()
    }
}

/// Compiles the text of a query.
pub fn compile(text: &str, parameters: &Parameters) -> Result<Program> {
    compile_with(text, parameters, &Vocabulary::default())
}

/// Compiles the text of a query over a container whose definition gives it a meaning of its own.
pub fn compile_with(text: &str, parameters: &Parameters, vocabulary: &Vocabulary) -> Result<Program> {
    let tree = Arc::new(parse::parse(text)?);
    compile_parsed(text, tree, parameters, vocabulary)
}

/// Compiles what a text was parsed to.
fn compile_parsed(
    text: &str,
    tree: Arc<Query>,
    parameters: &Parameters,
    vocabulary: &Vocabulary,
) -> Result<Program> {
    let code = compile_tree(tree, Given::now(parameters), vocabulary, Purpose::Run)
        .map_err(|error| error.located_in(text))?;
    Ok(Program::new(Arc::new(code), parameters.clone(), text.len()))
}

/// Compiles the condition of a patch, `from c where ...`; see [`crate::Program::accepts`].
pub fn compile_condition(text: &str, parameters: &Parameters) -> Result<Program> {
    compile_query(parse::parse_condition(text)?, parameters).map_err(|error| error.located_in(text))
}

/// Compiles a tree. Locations of errors stay byte offsets.
pub(crate) fn compile_query(query: Query, parameters: &Parameters) -> Result<Program> {
    let vocabulary = Vocabulary::default();
    let code = compile_tree(Arc::new(query), Given::now(parameters), &vocabulary, Purpose::Run)?;
    Ok(Program::new(Arc::new(code), parameters.clone(), 0))
}

/// Compiles a tree to find what is wrong with it, for a plan: functions that cannot be run yet are
/// no error.
pub(crate) fn compile_plan(
    query: Query,
    parameters: &Parameters,
    vocabulary: &Vocabulary,
) -> Result<Program> {
    let code = compile_tree(Arc::new(query), Given::now(parameters), vocabulary, Purpose::Plan)?;
    Ok(Program::new(Arc::new(code), parameters.clone(), 0))
}

impl Program {
    /// Gives the parameters of the code their values.
    fn new(code: Arc<Code>, parameters: Parameters, text_bytes: usize) -> Program {
        let values = code.parameters.iter().map(|name| parameters.get(name)).collect();
        let text_bytes = text_bytes + parameters.text_bytes();
        Program { code, parameters, values, resume: None, text_bytes }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Run,
    Plan,
}

fn compile_tree<'q>(
    query: Arc<Query>,
    mut given: Given<'q>,
    vocabulary: &'q Vocabulary,
    purpose: Purpose,
) -> Result<Code> {
    let mut stages = Vec::new();
    let mut user_functions = Vec::new();
    let mut findings = Vec::new();
    let mut rest = Some(Query::clone(&query));
    while let Some(mut outer) = rest.take() {
        rest = stages::peel(&mut outer);
        // The rows of an inner level are no items of the container.
        let (computed, vectors) = match rest {
            None => (vocabulary.computed.as_slice(), vocabulary.vectors.as_slice()),
            Some(_) => (&[][..], &[][..]),
        };
        let mut compiler = Compiler {
            given,
            purpose,
            computed,
            vectors,
            names: Vec::new(),
            items: vec![0],
            has_items: ranges_over_items(&outer),
            slots: 1,
            levels: 0,
            group: None,
            findings: Vec::new(),
            user_functions: Vec::new(),
        };
        let level = compiler.level(&outer);
        let level = compiler.noted(level)?;
        // What is inside comes first.
        findings.splice(0..0, compiler.findings);
        stages.extend(level.map(|level| Stage { level, slots: compiler.slots }));
        user_functions.extend(compiler.user_functions);
        given = compiler.given;
    }
    findings.extend(findings::too_many_functions(&query, user_functions.len()));
    if !findings.is_empty() {
        findings.truncate(limits::FINDINGS);
        return Err(QueryError::Invalid(findings));
    }
    if purpose == Purpose::Run {
        order::check(&query)?;
    }
    let mut last = stages.remove(0);
    if stages.is_empty() {
        distinct::order_by_value(&mut last.level);
    }
    stages.reverse();
    let (is_for_all, needs_items) = (given.is_for_all(), ranges_over_items(&query));
    let parameters = given.into_names();
    Ok(Code { earlier: stages, last, query, user_functions, parameters, is_for_all, needs_items })
}

/// Whether the rows of a query are made of the items of the container.
fn ranges_over_items(query: &Query) -> bool {
    let Some(first) = query.from.as_ref().and_then(|from| from.sources.first()) else { return false };
    match &first.collection {
        Collection::Path { .. } => true,
        Collection::Subquery(inner) => ranges_over_items(inner),
        Collection::Value(value) => grouping::contains_subquery(value),
    }
}

struct Compiler<'q> {
    given: Given<'q>,
    purpose: Purpose,
    /// The computed properties that items have.
    computed: &'q [computed::Definition],
    vectors: &'q [VectorPath],
    /// The names in scope, innermost last, with their slots. Slot 0 is the item itself.
    names: Vec<(String, usize)>,
    /// The slots that hold the item as a whole.
    items: Vec<usize>,
    /// Whether there is an item at all: a query without FROM has none, and neither have its subqueries.
    has_items: bool,
    slots: usize,
    /// How many queries enclose the one at hand, itself included.
    levels: usize,
    /// Set while the SELECT and ORDER BY of a grouped level are compiled.
    group: Option<GroupScope>,
    /// Findings that do not stop the search for more.
    findings: Vec<Diagnostic>,
    user_functions: Vec<String>,
}
