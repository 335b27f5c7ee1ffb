//! Keeps the engine from meeting a full disk.
//!
//! What was acknowledged must go to tables one day, and merges need room before they give room back.
//! So commits are refused while there is still space for everything that background work may yet
//! write: the write buffers, one more journal segment, and the output of the largest merge. Refusing
//! is cheap and leaves no trace, and commits are taken again as soon as there is room.
//!
//! What makes room must not be refused for want of room. Deletes write too, and merges give back what they
//! delete only later, so batches that free something may use most of what is kept free; what is left then is for the
//! merges that end it. On a small volume half is kept free, and write buffers and tables are small
//! ([`Tuning::for_volume`](super::tuning::Tuning::for_volume)).
//!
//! The operator's limit on disk use works the same way, against what tables occupy, write buffers will,
//! and the journal must keep. A merge may exceed it for a moment by the size of its output, and the
//! journal's files, which are written over again and again, by theirs: at most some hundred MiB that do
//! not grow with the data.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::EngineError;
use super::directory::JOURNAL_FOLDER;

/// The figures are measured anew after this time, or sooner when much has been written.
const MEASURE_EVERY: Duration = Duration::from_millis(500);
const MEASURE_BYTES: u64 = 16 << 20;
/// A commit that finds older figures than this measures itself: it is the first after a rest.
const STALE_AFTER: Duration = Duration::from_secs(2);
/// The part of the reserve that batches which make room leave to merges.
const LEFT_TO_MERGES: u64 = 8;
/// How far such batches may go above an operator's limit: a part of it, and what a small one needs.
const ABOVE_LIMIT_PART: u64 = 4;
const ABOVE_LIMIT_BYTES: u64 = 16 << 20;
/// A full disk counts as full until this part of the reserve is free besides it, so that it does not change every moment.
const ROOM_AGAIN_PART: u64 = 64;

pub(super) struct Space {
    path: PathBuf,
    reserve: u64,
    limit: AtomicU64,
    refused: AtomicU64,
    is_full: AtomicBool,
    used: AtomicU64,
    free: AtomicU64,
    /// Bytes committed since the figures were measured.
    since: AtomicU64,
    /// When that was; held while a thread measures.
    measured: Mutex<Instant>,
}

impl Space {
    pub fn new(path: &Path, reserve: u64, limit: Option<u64>) -> Space {
        let space = Space {
            path: path.to_owned(),
            reserve,
            limit: AtomicU64::new(limit.unwrap_or(u64::MAX)),
            refused: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            used: AtomicU64::new(0),
            free: AtomicU64::new(0),
            since: AtomicU64::new(0),
            measured: Mutex::new(Instant::now()),
        };
        space.measure();
        space
    }

    /// Admits a batch of so many bytes, or refuses it. `pending` bytes are in write buffers and in the journal.
    pub fn admit(&self, bytes: u64, pending: u64, frees: bool) -> Result<(), EngineError> {
        // Where another thread is measuring, there is nothing to do and no reason to wait.
        let is_stale = self.measured.try_lock().is_some_and(|at| at.elapsed() >= STALE_AFTER);
        if is_stale {
            self.measure();
        }
        let mut fits = self.fits(bytes, pending, frees);
        if !fits {
            // The figures may be stale to our disadvantage: space may just have been freed.
            self.measure();
            fits = self.fits(bytes, pending, frees);
        }
        if !fits {
            return Err(self.refuse());
        }
        self.since.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn fits(&self, bytes: u64, pending: u64, frees: bool) -> bool {
        // The batch goes to the journal and later to a table, as does what came since.
        let pending = self.since.load(Ordering::Relaxed) + bytes + pending + bytes;
        let (used, free) = (self.used.load(Ordering::Relaxed), self.free.load(Ordering::Relaxed));
        let limit = self.limit.load(Ordering::Relaxed);
        let (reserve, limit) = match frees {
            true => (
                self.reserve / LEFT_TO_MERGES,
                limit.saturating_add(limit / ABOVE_LIMIT_PART + ABOVE_LIMIT_BYTES),
            ),
            false => (self.reserve, limit),
        };
        free >= reserve.saturating_add(pending) && used.saturating_add(pending) <= limit
    }

    /// Whether batches are refused unless they make room.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Looks whether a full disk has room again.
    pub fn look_again(&self, pending: u64) {
        let room = self.reserve.min(self.limit.load(Ordering::Relaxed)) / ROOM_AGAIN_PART;
        if self.fits(room, pending, false) {
            self.is_full.store(false, Ordering::Relaxed);
        }
    }

    pub fn refuse(&self) -> EngineError {
        self.is_full.store(true, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        let (used, free) = (self.used.load(Ordering::Relaxed), self.free.load(Ordering::Relaxed));
        EngineError::DiskFull { used, free }
    }

    /// Measures if it is time to. Called by a thread that can wait: looking at folders takes long while
    /// their files come and go.
    pub fn measure_if_due(&self) {
        let since = self.since.load(Ordering::Relaxed);
        let is_watched = since > 0 || self.is_full();
        if since >= MEASURE_BYTES || (is_watched && self.measured.lock().elapsed() >= MEASURE_EVERY) {
            self.measure();
        }
    }

    /// A file system that does not answer is taken to have room; a real shortage then shows as an error.
    fn measure(&self) {
        let mut measured = self.measured.lock();
        let seen = self.since.load(Ordering::Relaxed);
        self.used.store(occupied(&self.path, false).unwrap_or(0), Ordering::Relaxed);
        self.free.store(free(&self.path).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.since.fetch_sub(seen, Ordering::Relaxed);
        *measured = Instant::now();
    }

    /// A write that met a full disk in spite of all is a refusal like any other.
    pub fn translate(&self, error: EngineError) -> EngineError {
        match error {
            error if error.is_want_of_room() => {
                self.measure();
                self.refuse()
            }
            other => other,
        }
    }

    pub fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
        // Judge the next commit by fresh figures.
        self.measure();
    }

    pub fn used(&self) -> u64 {
        occupied(&self.path, true).unwrap_or(0)
    }

    pub fn free(&self) -> Option<u64> {
        free(&self.path)
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// The size of the volume that a path is on, or will be.
pub(super) fn volume_bytes(path: &Path) -> Option<u64> {
    let folder = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_blocks.saturating_mul(stat.f_frsize)).filter(|bytes| *bytes > 0)
}

fn free(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Blocks that the files below a directory occupy, those of the journal only if asked for. Directories
/// nest three deep; files come and go while we look.
fn occupied(path: &Path, with_journal: bool) -> io::Result<u64> {
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
                let folder = entry?.path();
                if with_journal || !folder.ends_with(JOURNAL_FOLDER) {
                    folders.push((folder, depth + 1));
                }
            } else {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    Ok(bytes)
}
