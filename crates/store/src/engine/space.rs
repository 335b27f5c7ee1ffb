//! Keeps fjall from ever meeting a full disk.
//!
//! When a write to its journal fails, or a flush does, fjall refuses all further writes until it is
//! opened again. Nothing acknowledged is lost, but a server that must be restarted because a disk was
//! full for a minute is not what an operator wants. So commits are refused while there is still room
//! for everything that background work may yet write: the write buffers, one more journal, and the
//! output of the largest merge. Refusing is cheap and leaves no trace, and commits are taken again as
//! soon as there is room.
//!
//! The operator's limit on disk use works the same way, against what our own files occupy and write
//! buffers will. A merge may exceed it for a moment by the size of its output.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::EngineError;

/// The file system is asked again after this time, or sooner when much has been written.
const MEASURE_EVERY: Duration = Duration::from_millis(500);
const MEASURE_BYTES: u64 = 16 << 20;
pub(super) struct Space {
    path: PathBuf,
    reserve: u64,
    limit: AtomicU64,
    refused: AtomicU64,
    measured: Mutex<Measured>,
}

struct Measured {
    at: Instant,
    used: u64,
    free: u64,
    /// Bytes committed since.
    since: u64,
}

impl Space {
    pub fn new(path: &Path, reserve: u64, limit: Option<u64>) -> Space {
        let measured = measure(path);
        Space {
            path: path.to_owned(),
            reserve,
            limit: AtomicU64::new(limit.unwrap_or(u64::MAX)),
            refused: AtomicU64::new(0),
            measured: Mutex::new(measured),
        }
    }

    /// Admits a batch of so many bytes, or refuses it. `buffered` bytes are in write buffers and will
    /// go to tables.
    pub fn admit(&self, bytes: u64, buffered: u64) -> Result<(), EngineError> {
        let mut measured = self.measured.lock();
        if measured.since >= MEASURE_BYTES || measured.at.elapsed() >= MEASURE_EVERY {
            *measured = measure(&self.path);
        }
        if self.fits(&measured, bytes, buffered) {
            measured.since += bytes;
            return Ok(());
        }
        // The figures may be stale to our disadvantage: space may just have been freed.
        if measured.since > 0 {
            *measured = measure(&self.path);
            if self.fits(&measured, bytes, buffered) {
                measured.since += bytes;
                return Ok(());
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(EngineError::DiskFull { used: measured.used, free: measured.free })
    }

    fn fits(&self, measured: &Measured, bytes: u64, buffered: u64) -> bool {
        // The batch goes to the journal and later to a table, as does what came since.
        let pending = measured.since + bytes + buffered + bytes;
        let limit = self.limit.load(Ordering::Relaxed);
        measured.free >= self.reserve.saturating_add(pending)
            && measured.used.saturating_add(pending) <= limit
    }

    pub fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
        // Judge the next commit by fresh figures.
        *self.measured.lock() = measure(&self.path);
    }

    pub fn used(&self) -> u64 {
        occupied(&self.path).unwrap_or(0)
    }

    pub fn free(&self) -> Option<u64> {
        free(&self.path)
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// A file system that does not answer is taken to have room; a real shortage then shows as an error.
fn measure(path: &Path) -> Measured {
    Measured {
        at: Instant::now(),
        used: occupied(path).unwrap_or(0),
        free: free(path).unwrap_or(u64::MAX),
        since: 0,
    }
}

fn free(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Blocks that the files below a directory occupy. Journals are created larger than they are, so
/// lengths would not do. Directories nest three deep; files come and go while we look.
fn occupied(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let Ok(metadata) = entry.as_ref().map_err(drop).and_then(|e| e.metadata().map_err(drop)) else {
                continue;
            };
            if metadata.is_dir() && depth < 4 {
                folders.push((entry?.path(), depth + 1));
            } else {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    Ok(bytes)
}
