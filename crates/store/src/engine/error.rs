//! Why the engine refused, sorted by what the caller must do about it.

use std::io;
use std::path::{Path, PathBuf};

/// An engine's refusal. After any of them, nothing of the refused batch is visible.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Refuse the write and try again later: nothing was written and the engine is as it was.
    #[error("the disk is full, or the limit on disk use is reached: {used} bytes used, {free} free")]
    DiskFull { used: u64, free: u64 },
    /// Do not start: another process owns the directory.
    #[error("the data directory {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// Do not start: the directory was written before the storage engine got its present form.
    #[error(
        "the data directory {} was written by an earlier version of the server, whose files this one cannot read; \
         read the data with that version and write it to a new directory",
        .0.display()
    )]
    Outdated(PathBuf),
    /// Do not start: the directory was written by a version of the server that this one does not know.
    #[error(
        "the data directory {} has format {found}, and this version of the server reads format {known}; use the version \
         that wrote it, or a newer one",
        path.display()
    )]
    UnknownFormat { path: PathBuf, found: u64, known: u64 },
    /// Do not start, or stop: stored data does not read back. Restore from another copy.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The engine was closed, or an input/output error left it unable to write. Everything that was
    /// acknowledged is safe; the engine must be opened again before it takes writes.
    #[error("the storage engine takes no more writes and must be opened again: {0}")]
    Stopped(String),
    /// A key is empty or longer than 65,535 bytes, or a value is longer than 4 GiB.
    #[error("a key or value is outside the sizes that the storage engine can hold")]
    Oversized,
    /// The operating system failed us.
    #[error("input/output error in the storage engine: {0}")]
    Io(#[from] io::Error),
}

impl EngineError {
    /// Whether it may be gone once there is room again.
    pub(super) fn is_want_of_room(&self) -> bool {
        matches!(self, EngineError::Io(error) if is_want_of_room(error))
    }

    /// Whether a flush or merge that ended so may be tried again. One that ran out of files may not: a tree that
    /// could not open its folder has perhaps put its new list of tables in place already, and would write over it.
    pub(super) fn is_full_disk(&self) -> bool {
        matches!(self, EngineError::Io(error) if is_full_disk(error))
    }
}

/// What to say of a file that does not read back.
pub(super) fn damage(file: &Path, offset: Option<u64>, what: &str) -> EngineError {
    let place = offset.map_or(String::new(), |offset| format!(", byte {offset}"));
    EngineError::Corrupt(format!(
        "{}{place}: {what}. The server does not start on a part of the data: restore the whole data directory from \
         another copy",
        file.display()
    ))
}

/// Whether the system had no room on disk, or no file to open, at this moment.
pub(super) fn is_want_of_room(error: &io::Error) -> bool {
    let is_out_of_files = || {
        [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
    };
    is_full_disk(error) || is_out_of_files()
}

fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What a tree's failure means.
pub(super) fn read_error(error: lsm_tree::Error) -> EngineError {
    match error {
        lsm_tree::Error::Io(error) => io_error(error),
        other => EngineError::Corrupt(other.to_string()),
    }
}

fn io_error(error: io::Error) -> EngineError {
    match error.kind() {
        // A file that ends too early or does not parse was written whole once.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => EngineError::Corrupt(error.to_string()),
        _ => EngineError::Io(error),
    }
}
