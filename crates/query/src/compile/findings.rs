//! What is wrong with a query: all of it, not only what is met first.

use super::Compiler;
use crate::ast::Query;
use crate::error::{Code, Diagnostic, QueryError, Result};
use crate::limits;

impl Compiler<'_> {
    /// Notes what is wrong and goes on without the part that it is about. Refusals that are no findings, such
    /// as of what cannot be run yet, end the search.
    pub(super) fn noted<T>(&mut self, part: Result<T>) -> Result<Option<T>> {
        match part {
            Ok(part) => Ok(Some(part)),
            Err(QueryError::Invalid(list)) if list.iter().all(|finding| finding.code != Code::None) => {
                self.findings.extend(list);
                self.findings.truncate(limits::FINDINGS);
                Ok(None)
            }
            // What is wrong is told first.
            Err(_) if !self.findings.is_empty() => Ok(None),
            Err(other) => Err(other),
        }
    }
}

/// Every place that calls a function counts.
pub(super) fn too_many_functions(query: &Query, calls: usize) -> Option<Diagnostic> {
    (calls > limits::USER_FUNCTIONS).then(|| Diagnostic {
        code: Code::Sc(3005),
        location: Some(query.span),
        message: format!(
            "The SQL query exceeded the maximum number of user-defined function calls. The allowed limit is {}.",
            limits::USER_FUNCTIONS
        ),
    })
}
