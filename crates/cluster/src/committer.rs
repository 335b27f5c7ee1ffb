//! Group commit: one thread merges what all partitions have ready into one engine batch and one fsync.
//!
//! Readers never see more than the published snapshot, which moves on only after the fsync.
//! So nobody reads a write that a crash could still undo, and a batch becomes visible as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use orrery_store::engine::{Batch, Engine, EngineError, Snapshot, SyncMode};
use orrery_store::limits::GROUP_BYTES_MAX;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::options::Durability;

/// How long a relaxed write may stay unsynced.
const RELAXED_SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// Why a batch was not written; in both cases nothing of it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitError {
    DiskFull,
    Stopping,
}

pub struct Committer {
    engine: Arc<Engine>,
    published: Arc<ArcSwap<Snapshot>>,
    queue: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub counters: Arc<Counters>,
}

/// For the metrics page.
#[derive(Default)]
pub struct Counters {
    pub groups: AtomicU64,
    pub batches: AtomicU64,
    pub refused: AtomicU64,
}

struct Job {
    batch: Batch,
    done: oneshot::Sender<Result<(), CommitError>>,
}

impl Committer {
    pub fn start(engine: Arc<Engine>, durability: Durability) -> Committer {
        let published = Arc::new(ArcSwap::from_pointee(engine.snapshot()));
        let counters = Arc::new(Counters::default());
        let (sender, receiver) = channel();
        let worker = Worker {
            engine: engine.clone(),
            published: published.clone(),
            counters: counters.clone(),
            durability,
        };
        let thread = std::thread::Builder::new()
            .name("committer".into())
            .spawn(move || worker.run(&receiver))
            .expect("the operating system gives one more thread at start");
        Committer {
            engine,
            published,
            queue: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            counters,
        }
    }

    /// What readers see: everything committed, nothing in flight.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.published.load()
    }

    /// The same, for holding across awaits.
    pub fn snapshot_owned(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns once the batch is as durable as configured, and published.
    pub async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let (done, answer) = oneshot::channel();
        let sender = self.queue.lock().clone().ok_or(CommitError::Stopping)?;
        sender.send(Job { batch, done }).map_err(|_| CommitError::Stopping)?;
        answer.await.unwrap_or(Err(CommitError::Stopping))
    }

    /// Writes what is queued, then stops and closes the engine.
    pub fn stop(&self) {
        self.queue.lock().take();
        if let Some(thread) = self.thread.lock().take() {
            // A panic in the committer has ended the process already; there is nothing to pass on.
            let _ = thread.join();
        }
    }
}

struct Worker {
    engine: Arc<Engine>,
    published: Arc<ArcSwap<Snapshot>>,
    counters: Arc<Counters>,
    durability: Durability,
}

impl Worker {
    fn run(&self, queue: &Receiver<Job>) {
        match self.durability {
            Durability::Durable => queue.iter().for_each(|job| self.write(job, queue)),
            Durability::Relaxed => self.run_relaxed(queue),
        }
    }

    /// Acknowledges first and syncs soon after, also while work keeps coming.
    fn run_relaxed(&self, queue: &Receiver<Job>) {
        let (mut unsynced, mut synced) = (false, Instant::now());
        loop {
            match queue.recv_timeout(RELAXED_SYNC_INTERVAL) {
                Ok(job) => {
                    self.write(job, queue);
                    unsynced = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if unsynced && synced.elapsed() >= RELAXED_SYNC_INTERVAL {
                unsynced = !self.sync();
                synced = Instant::now();
            }
        }
    }

    fn write(&self, first: Job, queue: &Receiver<Job>) {
        let mut batch = first.batch;
        let mut waiting = vec![first.done];
        while batch.bytes() < GROUP_BYTES_MAX {
            let Ok(job) = queue.try_recv() else { break };
            batch.merge(job.batch);
            waiting.push(job.done);
        }
        let sync = match self.durability {
            Durability::Durable => SyncMode::Durable,
            Durability::Relaxed => SyncMode::Relaxed,
        };
        let result = match self.engine.commit(batch, sync) {
            Ok(()) => {
                self.published.store(Arc::new(self.engine.snapshot()));
                Ok(())
            }
            Err(EngineError::DiskFull { .. }) => Err(CommitError::DiskFull),
            Err(error) => stop_the_node(&error),
        };
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        let outcome = if result.is_ok() { &self.counters.batches } else { &self.counters.refused };
        outcome.fetch_add(waiting.len() as u64, Ordering::Relaxed);
        for done in waiting {
            // A client that went away does not undo its write.
            let _ = done.send(result);
        }
    }

    fn sync(&self) -> bool {
        match self.engine.persist() {
            Ok(()) => true,
            Err(EngineError::DiskFull { .. }) => false,
            Err(error) => stop_the_node(&error),
        }
    }
}

/// After an I/O error nobody knows what is on disk: only reading the journal again, at the next start, can tell.
fn stop_the_node(error: &EngineError) -> ! {
    tracing::error!(%error, "the storage engine failed; stopping so that nothing false is acknowledged");
    std::process::abort()
}
