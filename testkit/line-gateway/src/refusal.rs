//! Why a request is refused, in the protocol's codes.

use orrery_cluster::store::OpError;
use orrery_cluster::{Error, ErrorKind};
use orrery_query::QueryError;

use crate::add::NotANumber;

#[derive(Debug)]
pub struct Refusal {
    /// What a program looks at.
    pub code: &'static str,
    /// What a person reads.
    pub text: String,
}

impl Refusal {
    pub fn wrong(text: impl Into<String>) -> Refusal {
        Refusal { code: "WRONG", text: text.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let code = match &error.kind {
            ErrorKind::Op { error: OpError::NotFound, .. } | ErrorKind::NotFound(_) => "MISSING",
            ErrorKind::Op { error: OpError::Conflict, .. } | ErrorKind::AlreadyExists(_) => "EXISTS",
            ErrorKind::Op { error: OpError::Edit(edit), .. }
                if edit.downcast_ref::<NotANumber>().is_some() =>
            {
                "NUMBER"
            }
            ErrorKind::Throttled { .. } | ErrorKind::Overloaded => "BUSY",
            ErrorKind::Invalid(_) | ErrorKind::Query(_) => "WRONG",
            _ => "FAILED",
        };
        Refusal { code, text: error.kind.to_string() }
    }
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Refusal {
        Refusal::wrong(error.to_string())
    }
}
