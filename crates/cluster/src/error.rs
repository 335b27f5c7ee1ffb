//! Why the database refuses a request, by what the caller must do about it.

use orrery_store::{Failed, Fault, OpError, TxnError};

use crate::range::NoLead;
use crate::receipt::{Charge, Receipt};
use crate::resource::ResourceKind;
use crate::throttle::ThrottleCause;

pub type Result<T> = std::result::Result<T, Error>;

/// A refusal, with the charge and the partition state that refusals carry too.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: ErrorKind,
    pub receipt: Option<Receipt>,
}

/// A transaction that was refused.
#[derive(Clone, Debug)]
pub struct Failure {
    pub error: Error,
    /// What each operation cost, up to the one that was refused. Together they are the receipt's charge.
    pub charges: Vec<Charge>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ErrorKind {
    /// One operation of a transaction was refused; `place` says which.
    #[error("{error}")]
    Op { place: usize, error: OpError },
    /// This server could not do it, whatever it is; `place` says at which operation it found out.
    #[error("{fault}")]
    Fault { place: usize, fault: Fault },
    #[error("there is no such {0:?}")]
    NotFound(ResourceKind),
    /// The parent in the path does not exist.
    #[error("the owner, a {0:?}, does not exist")]
    OwnerNotFound(ResourceKind),
    #[error("a {0:?} of this name exists")]
    AlreadyExists(ResourceKind),
    #[error("the version is not the expected one")]
    PreconditionFailed,
    /// The request is malformed; the text is for the client.
    #[error("{0}")]
    Invalid(String),
    /// The partition key in the header and that of the item differ.
    #[error("the partition key of the request is not that of the item")]
    KeyMismatch,
    /// More of this kind than one owner may have.
    #[error("{1}")]
    QuotaExceeded(QuotaKind, String),
    #[error("the request rate is too large; try again after {retry_after_ms} ms")]
    Throttled { retry_after_ms: u32, cause: ThrottleCause },
    /// An earlier change of the throughput waits for physical partitions to split.
    #[error("another change of the throughput is in progress")]
    OfferReplacePending,
    /// The session token names a write that this replica has not seen.
    #[error("the read session is not available")]
    SessionUnavailable,
    /// Another node must be asked; nothing was written.
    #[error("{0}")]
    NoLead(#[from] NoLead),
    /// The partition key range was split, merged, or never existed.
    #[error("the partition key range is gone")]
    RangeGone,
    /// The cursor is not one that such a request was ever answered with.
    #[error("the cursor belongs to another request")]
    CursorMismatch,
    /// The query cannot be answered by one partition; the client must fetch a plan.
    #[error("the query needs a plan")]
    NeedsQueryPlan,
    /// The feed of all versions and deletes cannot be read like this.
    #[error("{0}")]
    History(#[from] HistoryError),
    #[error("the query is wrong: {0}")]
    Query(orrery_query::QueryError),
    /// A script could not do its work; nothing of it happened.
    #[error("{0}")]
    Script(orrery_script::ScriptError),
    /// Others write to the same logical partition all the time; nothing happened, try again.
    #[error("the logical partition kept changing while the script ran")]
    RetryWith,
    /// Too many scripts are running or waiting; nothing happened.
    #[error("too many scripts are waiting")]
    ScriptsBusy,
    /// The work took longer than any request may; ask for less.
    #[error("the request took too long")]
    TimedOut,
    /// Too much work is waiting; nothing was written.
    #[error("too many requests are waiting")]
    Overloaded,
    #[error("{0} is not supported yet")]
    Unsupported(&'static str),
}

/// Why all versions and deletes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("the container does not keep all versions and deletes")]
    NotKept,
    #[error("all versions and deletes are read from now on, or from a continuation")]
    NoSuchStart,
    #[error("changes behind the continuation are older than the container keeps them")]
    Outlived,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    SharedThroughputContainers,
    /// Users, permissions, scripts.
    Children,
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error { kind, receipt: None }
    }
}

impl From<Error> for Box<Failure> {
    fn from(error: Error) -> Self {
        Box::new(Failure { error, charges: Vec::new() })
    }
}

/// A refusal of the store where there is one operation, or none in particular.
impl From<OpError> for ErrorKind {
    fn from(error: OpError) -> Self {
        ErrorKind::Op { place: 0, error }
    }
}

impl From<OpError> for Error {
    fn from(error: OpError) -> Self {
        ErrorKind::from(error).into()
    }
}

/// A fault that no operation in particular has met.
impl From<Fault> for ErrorKind {
    fn from(fault: Fault) -> Self {
        ErrorKind::Fault { place: 0, fault }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        ErrorKind::from(fault).into()
    }
}

impl From<TxnError> for ErrorKind {
    fn from(TxnError { place, error, .. }: TxnError) -> Self {
        match error {
            Failed::Refused(error) => ErrorKind::Op { place, error },
            Failed::Fault(fault) => ErrorKind::Fault { place, fault },
        }
    }
}

impl From<Failed> for ErrorKind {
    fn from(error: Failed) -> Self {
        TxnError::untried(error).into()
    }
}

impl ErrorKind {
    /// Which operation of a transaction met it, if it was met while the operations were tried. A disk that is full and a
    /// server that stops refuse the transaction as a whole.
    pub fn place(&self) -> Option<usize> {
        match self {
            ErrorKind::Fault { fault: Fault::DiskFull | Fault::Stopping, .. } => None,
            ErrorKind::Op { place, .. } | ErrorKind::Fault { place, .. } => Some(*place),
            _ => None,
        }
    }

    /// Nothing goes on here: the server is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self, ErrorKind::Fault { fault: Fault::Stopping, .. })
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, ErrorKind::Fault { fault: Fault::DiskFull, .. })
    }
}

impl From<NoLead> for Error {
    fn from(no_lead: NoLead) -> Self {
        ErrorKind::from(no_lead).into()
    }
}

impl From<HistoryError> for Error {
    fn from(error: HistoryError) -> Self {
        ErrorKind::History(error).into()
    }
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Error {
        ErrorKind::Invalid(message.into()).into()
    }

    /// Whether an operation was refused that its caller knew to be wrong.
    pub fn is_wrong_op(&self) -> bool {
        matches!(self.kind, ErrorKind::Op { error: OpError::Wrong, .. })
    }

    pub fn with(mut self, receipt: Receipt) -> Error {
        self.receipt = Some(receipt);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_while_operations_are_tried_has_a_place_among_them() {
        let failed = |error: Failed| ErrorKind::from(TxnError { place: 3, error, meters: Vec::new() });
        for tried in [
            Failed::Refused(OpError::NotFound),
            Failed::Fault(Fault::Damaged("x".into())),
            Failed::Fault(Fault::Io("x".into())),
            Failed::Fault(Fault::NoMemory { bytes: 1 }),
            Failed::Fault(Fault::TooMuchMemory { bytes: 2, most: 1 }),
        ] {
            let text = tried.to_string();
            let kind = failed(tried);
            assert_eq!((kind.place(), kind.to_string()), (Some(3), text));
        }
        for whole in
            [Fault::DiskFull.into(), Fault::Stopping.into(), ErrorKind::Overloaded, ErrorKind::RangeGone]
        {
            assert_eq!(whole.place(), None, "{whole:?}");
        }
    }
}
