//! A thread that seals full write buffers and takes out what flushes and merges leave behind.
//!
//! fjall would seal write buffers itself: every commit that finds one too large asks its worker to, in
//! a queue of a thousand places. While the worker is busy with a flush, fast commits fill the queue;
//! the worker then takes one of those requests, wants to queue the flush that follows from it, and
//! waits for ever for a place in its own queue. So fjall is told that write buffers are never too
//! large, and we seal them.
//!
//! A version of a tree that nobody reads any more is dropped by fjall while it holds the lock that
//! every reader and the committer need. Dropping it means freeing a write buffer node by node, and
//! deleting the tables that a merge replaced; together that took up to 400 ms on the benchmark
//! machine. We cannot move fjall's drop, but we can make it cheap: while we hold
//! another reference to the write buffers and the versions, fjall's drop only counts down, and the
//! real one happens here, without a lock.
//!
//! The same thread moves fjall's watermark. fjall works out which versions are still needed when a
//! write buffer fills up, so on a node that came to rest it would keep replaced tables for ever.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fjall::AbstractTree;
use parking_lot::Mutex;

use super::Keyspace;
use super::disk::Shared;

const EVERY: Duration = Duration::from_millis(50);
/// How often it looks for versions that nobody reads any more: each look costs milliseconds.
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// Replaced versions of one keyspace that we hold for a long-lived snapshot's sake before we let
/// them go anyway.
const VERSIONS_MAX: usize = 8;
/// fjall looks for versions to drop when this many snapshots have been closed.
const SNAPSHOTS_PER_SWEEP: u32 = 10_000;

/// References that keep fjall's own drops cheap.
#[derive(Default)]
pub(super) struct Leftovers {
    buffers: Mutex<[Buffers; Keyspace::ALL.len()]>,
    versions: Mutex<[Vec<Box<dyn Any + Send>>; Keyspace::ALL.len()]>,
}

/// fjall does not export the type of a write buffer; we only count references to it.
#[derive(Default)]
struct Buffers {
    newest: Option<u64>,
    held: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Leftovers {
    /// Holds on to the write buffers that commits now go to. Returns the size of the largest.
    pub fn hold_buffers(&self, shared: &Shared) -> u64 {
        let mut largest = 0;
        let mut buffers = self.buffers.lock();
        for keyspace in Keyspace::ALL {
            let Some(handle) = shared.existing(keyspace) else { continue };
            let buffer = handle.tree.active_memtable();
            largest = largest.max(buffer.size());
            let slot = &mut buffers[keyspace as usize];
            if slot.newest != Some(buffer.id()) {
                slot.newest = Some(buffer.id());
                slot.held.push(buffer);
            }
        }
        largest
    }

    /// Holds on to the version, and thereby the tables, that a merge is about to replace.
    pub fn hold_version(&self, keyspace: Keyspace, version: impl Any + Send) {
        self.versions.lock()[keyspace as usize].push(Box::new(version));
    }

    fn drop_buffers(&self) {
        let mut buffers = self.buffers.lock();
        let unused = |slot: &mut Buffers| {
            slot.held.extract_if(.., |buffer| Arc::strong_count(buffer) == 1).collect::<Vec<_>>()
        };
        let dropped: Vec<_> = buffers.iter_mut().map(unused).collect();
        drop(buffers);
        drop(dropped);
    }

    fn drop_versions(&self, shared: &Shared) {
        if self.versions.lock().iter().all(Vec::is_empty) {
            return;
        }
        let oldest_read = shared.sweep();
        for keyspace in Keyspace::ALL {
            let Some(handle) = shared.existing(keyspace) else { continue };
            let tree = &handle.tree;
            // A failure leaves a small file behind, which the next start removes.
            let _ = tree.get_version_history_lock().maintenance(handle.path(), oldest_read);
            let free = tree.version_free_list_len() == 0;
            let mut versions = self.versions.lock();
            let held = &mut versions[keyspace as usize];
            let count = if free { held.len() } else { held.len().saturating_sub(VERSIONS_MAX) };
            let dropped: Vec<_> = held.drain(..count).collect();
            drop(versions);
            drop(dropped);
        }
    }
}

impl Shared {
    fn seal_full_buffers(&self) {
        for keyspace in Keyspace::ALL {
            let Some(handle) = self.existing(keyspace) else { continue };
            if handle.tree.active_memtable().size() >= self.tuning.memtable_bytes {
                // A failure here is one of the journal's, and the next commit reports it.
                let _ = handle.rotate_memtable();
            }
        }
    }

    /// Lets fjall find out what nobody reads any more, and returns the oldest sequence number that
    /// somebody still reads at.
    fn sweep(&self) -> u64 {
        self.refresh_latest();
        for _ in 0..SNAPSHOTS_PER_SWEEP {
            drop(self.database.snapshot());
        }
        self.oldest_read()
    }
}

pub(super) struct Janitor {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Janitor {
    pub fn start(shared: &Arc<Shared>) -> Janitor {
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(shared), Arc::clone(&stop));
        let thread = thread::Builder::new().name("janitor".into()).spawn(move || {
            let mut swept = Instant::now();
            while !stopped.load(Ordering::Acquire) {
                thread::park_timeout(EVERY);
                shared.seal_full_buffers();
                shared.leftovers.drop_buffers();
                if swept.elapsed() >= SWEEP_EVERY {
                    shared.leftovers.drop_versions(&shared);
                    swept = Instant::now();
                }
            }
        });
        let thread = thread.expect("the system gives us a thread at start");
        Janitor { stop, thread: Mutex::new(Some(thread)) }
    }

    /// Has full write buffers sealed now rather than soon.
    pub fn wake(&self) {
        if let Some(thread) = self.thread.lock().as_ref() {
            thread.thread().unpark();
        }
    }

    pub fn join(&self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.lock().take() {
            thread.thread().unpark();
            // A janitor that panicked has nothing more to do, and we are on our way out.
            let _ = thread.join();
        }
    }
}
