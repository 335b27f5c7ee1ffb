//! What went wrong here, apart from what is refused.
//!
//! ```text
//!   a transaction ──evaluated──▶ what it comes to: every copy of the partition comes to the same
//!        │                 └──▶ OpError: it is refused, by every copy that is asked at this place of its log
//!        └───────────────────▶ Fault:   this copy could not find out; another one may, and so may this one later
//! ```
//!
//! So a refusal is an answer like any other, and may be told as soon as what it saw is durable. A fault says nothing of the
//! transaction. One that comes while a commit is applied leaves no copy to go on from: it ends the process, and never gets here.

use crate::engine::EngineError;
use crate::{DamagedItem, OpError};

/// Why this copy of a partition could not do what others perhaps can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("stored data is damaged: {0}")]
    Damaged(String),
    /// The operating system failed the storage engine.
    #[error("{0}")]
    Io(String),
    /// Nothing was written; the disk must get room first.
    #[error("the disk is full")]
    DiskFull,
    /// Others have the memory that it needs. So much it held when there was no more.
    #[error("there is no memory for what the transaction holds")]
    NoMemory { bytes: u64 },
    /// It would hold more than one transaction may on this machine, whatever others do.
    #[error("the transaction would hold {bytes} bytes of memory, and one may hold {most}")]
    TooMuchMemory { bytes: u64, most: u64 },
    /// Nothing was written.
    #[error("the server is stopping")]
    Stopping,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        match error {
            EngineError::DiskFull { .. } => Fault::DiskFull,
            EngineError::Stopped(_) => Fault::Stopping,
            EngineError::Io(_) => Fault::Io(error.to_string()),
            EngineError::Corrupt(_)
            | EngineError::Locked(_)
            | EngineError::Outdated(_)
            | EngineError::UnknownFormat { .. }
            | EngineError::Oversized => Fault::Damaged(error.to_string()),
        }
    }
}

impl From<DamagedItem> for Fault {
    fn from(error: DamagedItem) -> Fault {
        Fault::Damaged(error.to_string())
    }
}

/// Why nothing came of a transaction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failed {
    /// It was evaluated, and this is the answer.
    #[error("{0}")]
    Refused(#[from] OpError),
    /// It could not be evaluated here.
    #[error("{0}")]
    Fault(#[from] Fault),
}
