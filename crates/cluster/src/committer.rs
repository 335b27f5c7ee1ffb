//! Group commit: one thread merges what all partitions have ready into one engine batch and one fsync.
//!
//! Readers never see more than the published snapshot, which moves on only after the fsync.
//! So nobody reads a write that a crash could still undo, and a batch becomes visible as a whole.
//!
//! Writers need not wait for the disk. Once the engine has taken a batch it can only become durable, and before all
//! that comes after it, or the process ends. So partitions are told twice: when the batch is applied, from where they
//! work out what comes next while the disk is busy, and when it is durable, which is when clients may hear of it.
//!
//! Each partition has one batch under way, and hands in the next soon after the last was answered. If the
//! first to come were written at once, the others would wait for a whole sync, each time anew. So a
//! group waits a moment, far shorter than a sync, for the partitions that have been writing lately.

mod group;
mod step;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use arc_swap::{ArcSwap, Guard};
use orrery_store::engine::{Batch, Engine, EngineError, Snapshot};
use orrery_store::{TICKS_PER_SECOND, is_ahead};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::options::Durability;
use crate::world::{ThreadPlan, World};
use step::{Core, Event, Next};

/// Why a batch was not written; in both cases nothing of it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitError {
    DiskFull,
    Stopping,
}

pub struct Committer {
    engine: Arc<Engine>,
    snapshots: Arc<Snapshots>,
    queue: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub counters: Arc<Counters>,
    told_of_clock: AtomicBool,
}

/// The two states of the data that are of interest; they differ while the disk is busy.
struct Snapshots {
    /// Everything durable: what readers see.
    published: ArcSwap<Snapshot>,
    /// Everything that the engine has taken: what the next writes are worked out from.
    applied: ArcSwap<Snapshot>,
}

impl Snapshots {
    fn of(engine: &Engine) -> Snapshots {
        let snapshot = Arc::new(engine.snapshot());
        Snapshots { published: ArcSwap::new(snapshot.clone()), applied: ArcSwap::new(snapshot) }
    }
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
    waiting: Waiting,
}

/// Who is told how far a batch is. Nobody hears that it is durable who did not hear that it was applied.
struct Waiting {
    applied: oneshot::Sender<Result<(), CommitError>>,
    durable: oneshot::Sender<()>,
}

/// A batch on its way.
pub struct Submitted {
    applied: oneshot::Receiver<Result<(), CommitError>>,
    durable: oneshot::Receiver<()>,
}

/// A batch that the engine has taken. It becomes durable, or the process ends.
pub struct Syncing(oneshot::Receiver<()>);

impl Submitted {
    /// Returns once the engine has taken the batch: [`Committer::applied`] has it, readers do not see it.
    pub async fn applied(self) -> Result<Syncing, CommitError> {
        self.applied.await.unwrap_or(Err(CommitError::Stopping))?;
        Ok(Syncing(self.durable))
    }
}

impl Syncing {
    /// Returns once the batch is as durable as configured, and published.
    pub async fn durable(self) -> Result<(), CommitError> {
        self.0.await.map_err(|_| CommitError::Stopping)
    }
}

impl Committer {
    pub fn start(engine: Arc<Engine>, durability: Durability, world: World) -> Committer {
        let snapshots = Arc::new(Snapshots::of(&engine));
        let counters = Arc::new(Counters::default());
        let (sender, receiver) = channel();
        let now = world.monotonic();
        let core = Core::new(engine.clone(), snapshots.clone(), counters.clone(), durability, now);
        let plan = ThreadPlan { name: "committer", stack_bytes: None };
        let driver = {
            let (engine, world) = (engine.clone(), world.clone());
            move || drive(core, &engine, &world, &receiver)
        };
        let thread = world.thread(plan, driver).expect("the operating system gives one more thread at start");
        Committer {
            engine,
            snapshots,
            queue: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            counters,
            told_of_clock: AtomicBool::new(false),
        }
    }

    /// What readers see: everything committed, nothing in flight.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.snapshots.published.load()
    }

    /// The same, for holding across awaits.
    pub fn snapshot_owned(&self) -> Arc<Snapshot> {
        self.snapshots.published.load_full()
    }

    /// What the next writes of a partition are worked out from: everything that the engine has taken.
    pub fn applied(&self) -> Arc<Snapshot> {
        self.snapshots.applied.load_full()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Tells the operator, once, that times were stored which are far ahead of the clock.
    pub fn note_clock(&self, stored: u64, now: u64) {
        if is_ahead(stored, now) && !self.told_of_clock.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                ahead_seconds = (stored - now) / TICKS_PER_SECOND,
                "items were written with times far ahead of the clock, which was wrong then or is wrong now; \
                 from here on times follow the clock again"
            );
        }
    }

    /// Returns once the batch is as durable as configured, and published.
    pub async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        self.submit(None, batch)?.applied().await?.durable().await
    }

    /// Hands in a batch of a partition's writers: the next groups wait a moment for what they have by then.
    pub fn submit_for(&self, partition: u32, batch: Batch) -> Result<Submitted, CommitError> {
        self.submit(Some(partition), batch)
    }

    fn submit(&self, from: Option<u32>, batch: Batch) -> Result<Submitted, CommitError> {
        let (tells_applied, applied) = oneshot::channel();
        let (tells_durable, durable) = oneshot::channel();
        let waiting = Waiting { applied: tells_applied, durable: tells_durable };
        let sender = self.queue.lock().clone().ok_or(CommitError::Stopping)?;
        sender.send(Job { from, batch, waiting }).map_err(|_| CommitError::Stopping)?;
        Ok(Submitted { applied, durable })
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

/// Brings the core its events and does what it asks for, on a thread of its own. Its waits are the system's in every world; they
/// are short, and what is decided by the time is decided by the world's.
fn drive(mut core: Core, engine: &Engine, world: &World, queue: &Receiver<Job>) {
    let _fuse = Fuse;
    let mut next = core.rest(world.monotonic());
    loop {
        let event = match next {
            // Beside the world: a thread cannot be woken by a clock that it does not poll.
            Next::Wait(time) => match queue.recv_timeout(time) {
                Ok(job) => Event::Came(job),
                Err(RecvTimeoutError::Timeout) => Event::Quiet,
                Err(RecvTimeoutError::Disconnected) => Event::Closed,
            },
            Next::Sync => {
                engine.persist().unwrap_or_else(|error| stop_the_node(&error));
                Event::Synced
            }
            Next::End => return,
        };
        next = core.step(event, world.monotonic());
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

#[cfg(test)]
mod tests {
    use orrery_store::engine::{DiskOptions, Keyspace};

    use super::*;

    const BATCHES: u32 = 100;

    fn batch(number: u32) -> Batch {
        let mut batch = Batch::new();
        batch.put(Keyspace::Meta, number.to_be_bytes().to_vec(), vec![1]);
        batch
    }

    fn holds(snapshot: &Snapshot, number: u32) -> bool {
        snapshot.contains(Keyspace::Meta, &number.to_be_bytes()).expect("what is stored reads back")
    }

    #[tokio::test]
    async fn writers_see_a_batch_when_it_is_applied_and_readers_when_it_is_durable() {
        let folder = tempfile::tempdir().expect("a folder");
        for durability in [Durability::Durable, Durability::Relaxed] {
            let path = folder.path().join(format!("{durability:?}"));
            let engine = Engine::open(DiskOptions::new(path)).expect("a new engine opens");
            let committer = Committer::start(Arc::new(engine), durability, World::Real);
            for number in 0..BATCHES {
                let submitted = committer.submit_for(7, batch(number)).expect("nobody has stopped it");
                let syncing = submitted.applied().await.expect("there is room");
                assert!(holds(&committer.applied(), number), "{durability:?}: {number} is not applied");
                syncing.durable().await.expect("nobody has stopped it");
                assert!(holds(&committer.snapshot(), number), "{durability:?}: {number} is not published");
            }
            committer.stop();
            let late = committer.commit(batch(BATCHES)).await;
            assert_eq!(late, Err(CommitError::Stopping));
        }
    }

    #[tokio::test]
    async fn readers_are_never_ahead_of_writers() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Engine::open(DiskOptions::new(folder.path())).expect("a new engine opens");
        let committer = Arc::new(Committer::start(Arc::new(engine), Durability::Durable, World::Real));
        let looking = {
            // It ends with the committer, also when the test fails before the last batch.
            let committer = Arc::downgrade(&committer);
            std::thread::spawn(move || {
                let mut last = 0;
                while last + 1 < BATCHES
                    && let Some(committer) = committer.upgrade()
                {
                    let (published, applied) = (committer.snapshot_owned(), committer.applied());
                    last = (last..BATCHES)
                        .take_while(|number| holds(&published, *number))
                        .last()
                        .unwrap_or(last);
                    let seen = (0..BATCHES).filter(|number| holds(&published, *number));
                    seen.for_each(|number| assert!(holds(&applied, number), "{number} was read too soon"));
                }
            })
        };
        for number in 0..BATCHES {
            committer.commit(batch(number)).await.expect("there is room");
        }
        looking.join().expect("readers saw nothing that writers did not");
    }
}
