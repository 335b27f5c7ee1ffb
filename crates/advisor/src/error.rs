//! Why no advice can be given.

use crate::candidate::CandidateError;

#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    #[error("the workload cannot be read: {0}")]
    Format(serde_json::Error),
    #[error("{place}: {why}")]
    Workload { place: String, why: String },
    #[error("candidate {text:?}: {why}")]
    Candidate { text: String, why: CandidateError },
    #[error("candidate {candidate}: {path} is neither a field of the workload nor a property of the sample")]
    UnknownPath { candidate: String, path: String },
    #[error("there are more {what} than {limit}")]
    TooMany { what: &'static str, limit: usize },
    #[error("there are no items to look at: describe them in items.fields, or give a sample")]
    NoItems,
    #[error("the question takes too long to work out; ask with fewer operations, filters or candidates")]
    TooLong,
    #[error("no candidate is given and nothing in the items looks like one")]
    NoCandidates,
}

/// The message has the cause's words in it, so the cause is not shown as one again.
impl From<serde_json::Error> for AdviceError {
    fn from(why: serde_json::Error) -> AdviceError {
        AdviceError::Format(why)
    }
}
