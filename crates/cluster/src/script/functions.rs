//! User-defined functions in queries.
//!
//! A query names its functions, so they are looked up before it reads anything; one that does not exist is an error
//! once it is called, as in the service: a query over no items gets none. All functions of a page share one engine
//! and one amount of time.

use std::collections::HashMap;

use orrery_doc::{Doc, Value};
use orrery_query::{Fields, List, Program, QueryError, UserFunctions, Val};
use orrery_script::{Argument, Functions, ScriptError};

use crate::catalog::{ChildKind, Container};
use crate::db::Db;
use crate::error::{ErrorKind, Result};

pub(crate) struct QueryFunctions(Functions);

impl Db {
    /// What a query may call; nothing for most.
    pub(crate) fn functions_of(
        &self,
        container: &Container,
        program: &Program,
    ) -> Result<Option<QueryFunctions>> {
        if program.user_functions().is_empty() {
            return Ok(None);
        }
        let (catalog, scripts) = (self.catalog(), &self.inner.scripts);
        let mut programs = HashMap::new();
        for name in program.user_functions() {
            let child = catalog.child(ChildKind::Function, container.resource.rid, name);
            let Some(child) = child else { continue };
            let program = scripts.program(child).map_err(|error| QueryError::bare(error.to_string()));
            programs.insert(name.clone(), program.map_err(ErrorKind::Query)?);
        }
        Ok(Some(QueryFunctions(Functions::new(programs, scripts.limits.clone()))))
    }
}

impl UserFunctions for QueryFunctions {
    fn call(&self, name: &str, arguments: &[Val<'_>]) -> orrery_query::Result<Val<'static>> {
        if !self.0.contains(name) {
            let message = format!("'udf.{name}' is not a recognized user-defined function name.");
            return Err(QueryError::bare(message));
        }
        let made: Vec<Option<Vec<u8>>> = arguments.iter().map(text_of_made).collect();
        let given: Vec<Argument<'_>> = arguments.iter().zip(&made).map(argument).collect();
        let answer = self.0.call(name, &given).map_err(refusal)?;
        Ok(answer.as_ref().map_or(Val::Undefined, |doc: &Doc| Val::from(doc.root()).to_owned_val()))
    }
}

/// Values that a query made or that stand for a whole item are handed over as text; stored ones as they are.
fn text_of_made(value: &Val<'_>) -> Option<Vec<u8>> {
    match value {
        Val::Array(List::Made(_)) | Val::Object(Fields::Row(_) | Fields::Made(_)) => {
            let mut text = Vec::new();
            value.write_json(&mut text);
            Some(text)
        }
        _ => None,
    }
}

fn argument<'a>((value, made): (&'a Val<'_>, &'a Option<Vec<u8>>)) -> Argument<'a> {
    if let Some(text) = made {
        return Argument::Json(text);
    }
    Argument::Value(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => Value::Bool(*value),
        Val::Int(value) => Value::Int(*value),
        Val::Double(value) => Value::Double(*value),
        Val::Str(text) => Value::Str(text.as_str()),
        Val::Array(List::Stored(array)) => Value::Array(*array),
        Val::Object(Fields::Stored(object)) => Value::Object(*object),
        Val::Undefined | Val::Array(_) | Val::Object(_) => Value::Undefined,
    })
}

fn refusal(error: ScriptError) -> QueryError {
    match error {
        ScriptError::TimedOut { .. } => QueryError::FunctionTimedOut(error.text()),
        other => QueryError::bare(other.text()),
    }
}
