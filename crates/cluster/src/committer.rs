//! Group commit: one thread merges what all partitions have ready into one engine batch and one fsync.
//!
//! Readers never see more than the published snapshot, which moves on only after the fsync.
//! So nobody reads a write that a crash could still undo, and a batch becomes visible as a whole.
//!
//! Each partition has one batch under way, and hands in the next soon after the last was answered. If the
//! first to come were written at once, the others would wait for a whole sync, each time anew. So a
//! group waits a moment, far shorter than a sync, for the partitions that have been writing lately.

use std::collections::HashSet;
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
/// The time without work after which the published snapshot is taken anew.
const IDLE: Duration = Duration::from_secs(1);
/// The longest that a group waits for partitions that have been writing lately.
const GATHER_MAX: Duration = Duration::from_micros(300);

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
    /// The partition that it comes from, if others should wait for its next one.
    from: Option<u32>,
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
        self.submit(None, batch).await
    }

    /// The same for a partition's writers: the next groups wait a moment for what they have by then.
    pub async fn commit_for(&self, partition: u32, batch: Batch) -> Result<(), CommitError> {
        self.submit(Some(partition), batch).await
    }

    async fn submit(&self, from: Option<u32>, batch: Batch) -> Result<(), CommitError> {
        let (done, answer) = oneshot::channel();
        let sender = self.queue.lock().clone().ok_or(CommitError::Stopping)?;
        sender.send(Job { from, batch, done }).map_err(|_| CommitError::Stopping)?;
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
        let _fuse = Fuse;
        match self.durability {
            Durability::Durable => self.run_durable(queue),
            Durability::Relaxed => self.run_relaxed(queue),
        }
    }

    fn run_durable(&self, queue: &Receiver<Job>) {
        let mut gathering = Gathering::default();
        loop {
            match queue.recv_timeout(IDLE) {
                Ok(first) => self.write(gathering.group(first, queue)),
                // What is published is the same data, but the engine may let go of older versions of it.
                Err(RecvTimeoutError::Timeout) => self.publish(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Acknowledges first and syncs soon after, also while work keeps coming.
    fn run_relaxed(&self, queue: &Receiver<Job>) {
        let (mut unsynced, mut synced) = (false, Instant::now());
        loop {
            match queue.recv_timeout(RELAXED_SYNC_INTERVAL) {
                Ok(job) => {
                    let mut group = CommitGroup::of(job);
                    while group.has_room()
                        && let Ok(job) = queue.try_recv()
                    {
                        group.add(job);
                    }
                    self.write(group);
                    unsynced = true;
                }
                Err(RecvTimeoutError::Timeout) => self.publish(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if unsynced && synced.elapsed() >= RELAXED_SYNC_INTERVAL {
                unsynced = !self.sync();
                synced = Instant::now();
            }
        }
    }

    fn write(&self, group: CommitGroup) {
        let CommitGroup { batch, waiting, .. } = group;
        let sync = match self.durability {
            Durability::Durable => SyncMode::Durable,
            Durability::Relaxed => SyncMode::Relaxed,
        };
        let result = match self.engine.commit(batch, sync) {
            Ok(()) => {
                self.publish();
                Ok(())
            }
            Err(EngineError::DiskFull { .. }) => {
                // Nothing new is to be seen, but readers must not hold on to tables that merges have replaced:
                // that is where room comes from.
                self.publish();
                Err(CommitError::DiskFull)
            }
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

    fn publish(&self) {
        self.published.store(Arc::new(self.engine.snapshot()));
    }

    fn sync(&self) -> bool {
        match self.engine.persist() {
            Ok(()) => true,
            Err(EngineError::DiskFull { .. }) => false,
            Err(error) => stop_the_node(&error),
        }
    }
}

/// What is written with one sync.
struct CommitGroup {
    from: HashSet<u32>,
    batch: Batch,
    waiting: Vec<oneshot::Sender<Result<(), CommitError>>>,
}

impl CommitGroup {
    fn of(job: Job) -> CommitGroup {
        CommitGroup { from: job.from.into_iter().collect(), batch: job.batch, waiting: vec![job.done] }
    }

    fn add(&mut self, job: Job) {
        self.from.extend(job.from);
        self.batch.merge(job.batch);
        self.waiting.push(job.done);
    }

    fn has_room(&self) -> bool {
        self.batch.bytes() < GROUP_BYTES_MAX
    }
}

/// Whose batches the next group waits for: those of the last two groups, since partitions that miss each
/// other take turns.
#[derive(Default)]
struct Gathering {
    last: HashSet<u32>,
    before_last: HashSet<u32>,
}

impl Gathering {
    fn group(&mut self, first: Job, queue: &Receiver<Job>) -> CommitGroup {
        let deadline = Instant::now() + GATHER_MAX;
        let mut group = CommitGroup::of(first);
        while group.has_room() {
            let wait = match self.is_complete(&group) {
                true => Duration::ZERO,
                false => deadline.saturating_duration_since(Instant::now()),
            };
            let Ok(job) = queue.recv_timeout(wait) else { break };
            group.add(job);
        }
        self.before_last = std::mem::replace(&mut self.last, group.from.clone());
        group
    }

    fn is_complete(&self, group: &CommitGroup) -> bool {
        self.last.union(&self.before_last).all(|partition| group.from.contains(partition))
    }
}

/// Ends the process when the writer that holds it panics: without it nothing could be written any more, and those who
/// wait would wait for ever. Everything that was acknowledged is on disk.
pub(crate) struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                "a writer has panicked; stopping, the next start finds all that was acknowledged"
            );
            std::process::abort()
        }
    }
}

/// After an I/O error nobody knows what is on disk: only reading the journal again, at the next start, can tell.
fn stop_the_node(error: &EngineError) -> ! {
    tracing::error!(%error, "the storage engine failed; stopping so that nothing false is acknowledged");
    std::process::abort()
}
