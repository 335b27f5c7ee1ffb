//! Who may use a data directory, and how.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::EngineError;

/// How a directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// By the one process that writes to it.
    Own,
    /// By those that only look. Nothing on disk is changed, and nobody may own the directory meanwhile.
    Look,
}

impl Access {
    /// Takes a file of a directory for this process, for as long as the file is open.
    pub fn lock(self, file: &File, directory: &Path) -> Result<(), EngineError> {
        let operation = match self {
            Access::Own => FlockOperation::NonBlockingLockExclusive,
            Access::Look => FlockOperation::NonBlockingLockShared,
        };
        match flock(file, operation) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(EngineError::Locked(directory.to_owned())),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}
