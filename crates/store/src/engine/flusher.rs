//! A thread that puts write buffers into tables, and takes out what flushes and merges leave behind.
//!
//! A version of a tree that nobody reads any more is dropped by the tree while it holds the lock that
//! every reader needs. Dropping it means freeing a write buffer node by node, and deleting the tables
//! that a merge replaced; together that took up to 400 ms on the benchmark machine. We cannot move
//! that drop, but we can make it cheap: while we hold another reference to the write buffers and the
//! versions, it only counts down, and the real one happens here, without a lock.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lsm_tree::{AbstractTree, Memtable};
use parking_lot::Mutex;

use super::shared::{Fuse, Shared};
use super::{EngineError, Keyspace};

const EVERY: Duration = Duration::from_millis(50);
/// How often it looks for versions that nobody reads any more.
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// Replaced versions of one keyspace that we hold for a long-lived snapshot's sake before we let
/// them go anyway.
const VERSIONS_MAX: usize = 8;
/// Journal segments that are held before what the oldest holds goes to tables. They are replayed
/// after a kill.
const SEGMENTS_MAX: usize = 3;
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// The time without commits after which write buffers are flushed that are not full. Every read looks into them first,
/// and after a kill they have to be filled again.
const REST_AFTER: Duration = Duration::from_secs(1);

/// References that keep the trees' own drops cheap.
#[derive(Default)]
pub(super) struct Leftovers {
    buffers: Mutex<Vec<Arc<Memtable>>>,
    versions: Mutex<[Vec<Box<dyn Any + Send>>; Keyspace::ALL.len()]>,
}

impl Leftovers {
    /// Holds on to a write buffer that is about to be flushed.
    pub fn hold_buffer(&self, buffer: Arc<Memtable>) {
        self.buffers.lock().push(buffer);
    }

    /// Holds on to the version, and thereby the tables, that a merge is about to replace.
    pub fn hold_version(&self, keyspace: Keyspace, version: impl Any + Send) {
        self.versions.lock()[keyspace as usize].push(Box::new(version));
    }

    fn drop_buffers(&self) {
        let unused = |buffer: &mut Arc<Memtable>| Arc::strong_count(buffer) == 1;
        let dropped: Vec<_> = self.buffers.lock().extract_if(.., unused).collect();
        drop(dropped);
    }

    fn drop_versions(&self, shared: &Shared) {
        if self.versions.lock().iter().all(Vec::is_empty) && self.buffers.lock().is_empty() {
            return;
        }
        shared.refresh_point();
        let oldest_read = shared.points.oldest();
        for (keyspace, tree) in shared.existing_trees() {
            tree.forget_versions(oldest_read);
            let free = tree.tree.version_free_list_len() == 0;
            let mut versions = self.versions.lock();
            let held = &mut versions[keyspace as usize];
            let count = if free { held.len() } else { held.len().saturating_sub(VERSIONS_MAX) };
            let dropped: Vec<_> = held.drain(..count).collect();
            drop(versions);
            drop(dropped);
        }
    }
}

pub(super) struct Flusher {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Flusher {
    pub fn start(shared: &Arc<Shared>) -> Flusher {
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(shared), Arc::clone(&stop));
        let thread = thread::Builder::new().name("flusher".into()).spawn(move || run(&shared, &stopped));
        let thread = thread.expect("the system gives us a thread at start");
        Flusher { stop, thread: Mutex::new(Some(thread)) }
    }

    /// For an engine that is only read.
    pub fn none() -> Flusher {
        Flusher { stop: Arc::default(), thread: Mutex::new(None) }
    }

    /// Has full write buffers flushed now rather than soon.
    pub fn wake(&self) {
        if let Some(thread) = self.thread.lock().as_ref() {
            thread.thread().unpark();
        }
    }

    pub fn join(&self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.lock().take() {
            thread.thread().unpark();
            // A flusher that panicked has nothing more to do, and we are on our way out.
            let _ = thread.join();
        }
    }
}

/// Whether there have been commits lately.
struct Activity {
    /// The last sequence number that was seen, and when it was new.
    last: u64,
    since: Instant,
}

impl Activity {
    fn is_at_rest(&mut self, last: u64) -> bool {
        if std::mem::replace(&mut self.last, last) != last {
            self.since = Instant::now();
        }
        self.since.elapsed() >= REST_AFTER
    }
}

fn run(shared: &Shared, stopped: &AtomicBool) {
    let _fuse = Fuse(shared);
    let mut swept = Instant::now();
    let mut activity = Activity { last: 0, since: swept };
    while !stopped.load(Ordering::Acquire) {
        thread::park_timeout(EVERY);
        let at_rest = activity.is_at_rest(shared.last_commit());
        match flush_due(shared, at_rest, stopped) {
            Ok(()) => {}
            // Nothing is lost, and there may be room later. Not parked: commits would wake it again and again.
            Err(error) if error.is_full_disk() => {
                shared.flushes_lack_room.store(true, Ordering::Relaxed);
                thread::sleep(FAILURE_PAUSE);
            }
            // Nobody knows whether there will ever be a flush again, and write buffers must not grow for ever.
            Err(error) => return shared.stop(&format!("a flush failed: {error}")),
        }
        shared.tend_journal(at_rest);
        shared.space.measure_if_due();
        if shared.space.is_full() {
            let (journal, buffered) = shared.held_bytes();
            shared.space.look_again(journal + buffered);
        }
        shared.leftovers.drop_buffers();
        if swept.elapsed() >= SWEEP_EVERY {
            shared.leftovers.drop_versions(shared);
            shared.blocks.drop_replaced();
            swept = Instant::now();
        }
    }
}

fn flush_due(shared: &Shared, at_rest: bool, stopped: &AtomicBool) -> Result<(), EngineError> {
    for keyspace in shared.due_for_flush(SEGMENTS_MAX, at_rest) {
        if stopped.load(Ordering::Acquire) {
            break;
        }
        shared.flush(keyspace)?;
        shared.leftovers.drop_buffers();
    }
    Ok(())
}
