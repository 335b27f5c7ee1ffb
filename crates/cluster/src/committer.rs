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

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Guard};
use orrery_store::engine::{Batch, Engine, EngineError, Snapshot};
use orrery_store::limits::GROUP_BYTES_MAX;
use orrery_store::{TICKS_PER_SECOND, is_ahead};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::options::Durability;
use crate::world::{ThreadPlan, World};

/// How long a relaxed write may stay unsynced.
const RELAXED_SYNC_INTERVAL: Duration = Duration::from_millis(100);
/// The time without work after which the published snapshot is taken anew.
const IDLE: Duration = Duration::from_secs(1);
/// How long a disk that was full must have had room before that is believed to last.
const ROOM_FOR: Duration = Duration::from_secs(10);
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
        let worker = Worker {
            engine: engine.clone(),
            snapshots: snapshots.clone(),
            counters: counters.clone(),
            durability,
            full_seen: Cell::new(None),
            world: world.clone(),
        };
        let thread = world
            .thread(ThreadPlan { name: "committer", stack_bytes: None }, move || worker.run(&receiver))
            .expect("the operating system gives one more thread at start");
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

struct Worker {
    engine: Arc<Engine>,
    snapshots: Arc<Snapshots>,
    counters: Arc<Counters>,
    durability: Durability,
    /// When the disk was last seen to be full, as long as the operator has not been told that it is not.
    full_seen: Cell<Option<Instant>>,
    world: World,
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
                Ok(first) => self.write(gathering.group(first, queue, &self.world)),
                // What is published is the same data, but the engine may let go of older versions of it.
                Err(RecvTimeoutError::Timeout) => self.publish(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Acknowledges first and syncs soon after, also while work keeps coming.
    fn run_relaxed(&self, queue: &Receiver<Job>) {
        let (mut unsynced, mut synced) = (false, self.world.monotonic());
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
            if unsynced && self.world.since(synced) >= RELAXED_SYNC_INTERVAL {
                self.sync();
                (unsynced, synced) = (false, self.world.monotonic());
            }
        }
    }

    fn write(&self, group: CommitGroup) {
        let CommitGroup { growing, freeing, .. } = group;
        // The disk comes second, so that writers can go on while it is busy.
        let shares =
            [growing, freeing].map(|share| (self.take(share.batch, share.waiting.len()), share.waiting));
        let is_any_taken = shares.iter().any(|(taken, waiting)| taken.is_ok() && !waiting.is_empty());
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        self.note_room();
        // Also after a refusal: nothing new is to be seen then, but readers must not hold on to tables that merges
        // have replaced, for that is where room comes from.
        let snapshot = Arc::new(self.engine.snapshot());
        self.snapshots.applied.store(snapshot.clone());
        let mut waiting = Vec::new();
        for (taken, share) in shares {
            for Waiting { applied, durable } in share {
                // A client that went away does not undo its write.
                let _ = applied.send(taken);
                waiting.push(durable);
            }
        }
        if is_any_taken && self.durability == Durability::Durable {
            self.sync();
        }
        self.snapshots.published.store(snapshot);
        for durable in waiting {
            let _ = durable.send(());
        }
    }

    fn take(&self, batch: Batch, count: usize) -> Result<(), CommitError> {
        if count == 0 {
            return Ok(());
        }
        let taken = match self.engine.commit(batch) {
            Ok(()) => Ok(()),
            Err(EngineError::DiskFull { .. }) => Err(CommitError::DiskFull),
            Err(error) => stop_the_node(&error),
        };
        let outcome = if taken.is_ok() { &self.counters.batches } else { &self.counters.refused };
        outcome.fetch_add(count as u64, Ordering::Relaxed);
        taken
    }

    /// Tells the operator once that the disk is full, and once that it no longer is. A disk at its brink takes a little
    /// each time that something was flushed or merged, so it must have had room for a while.
    fn note_room(&self) {
        let since = self.full_seen.get();
        if self.engine.is_full() {
            self.full_seen.set(Some(self.world.monotonic()));
            if since.is_none() {
                let (used, free) = (self.engine.disk_bytes(), self.engine.free_disk_bytes());
                tracing::warn!(
                    used,
                    free,
                    "the disk is full, or the limit on disk use is reached: writes are refused, what deletes is not"
                );
            }
        } else if since.is_some_and(|since| self.world.since(since) >= ROOM_FOR) {
            self.full_seen.set(None);
            let (used, free) = (self.engine.disk_bytes(), self.engine.free_disk_bytes());
            tracing::warn!(used, free, "there is room on the disk again: writes are taken");
        }
    }

    /// Shows the data as the engine has it. Nothing may be under way.
    fn publish(&self) {
        self.note_room();
        let snapshot = Arc::new(self.engine.snapshot());
        self.snapshots.applied.store(snapshot.clone());
        self.snapshots.published.store(snapshot);
    }

    fn sync(&self) {
        self.engine.persist().unwrap_or_else(|error| stop_the_node(&error));
    }
}

/// What is written with one sync. What makes room is a batch of its own: on a full disk it is taken and the other refused.
#[derive(Default)]
struct CommitGroup {
    from: HashSet<u32>,
    growing: CommitShare,
    freeing: CommitShare,
}

#[derive(Default)]
struct CommitShare {
    batch: Batch,
    waiting: Vec<Waiting>,
}

impl CommitGroup {
    fn of(job: Job) -> CommitGroup {
        let mut group = CommitGroup::default();
        group.add(job);
        group
    }

    fn add(&mut self, job: Job) {
        self.from.extend(job.from);
        let share = if job.batch.frees() { &mut self.freeing } else { &mut self.growing };
        // The first is taken as it is: most groups have one.
        match share.waiting.is_empty() {
            true => share.batch = job.batch,
            false => share.batch.merge(job.batch),
        }
        share.waiting.push(job.waiting);
    }

    fn has_room(&self) -> bool {
        self.growing.batch.bytes() + self.freeing.batch.bytes() < GROUP_BYTES_MAX
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
    fn group(&mut self, first: Job, queue: &Receiver<Job>, world: &World) -> CommitGroup {
        let deadline = world.monotonic() + GATHER_MAX;
        let mut group = CommitGroup::of(first);
        while group.has_room() {
            let wait = match self.is_complete(&group) {
                true => Duration::ZERO,
                false => world.until(deadline),
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
