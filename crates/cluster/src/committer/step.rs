//! What the committer does next: a step function without a thread, a queue or a clock of its own.
//!
//! ```text
//!   Came, Quiet ──▶ gather ──▶ commit, tell "applied" ──▶ Sync ──▶ Synced ──▶ publish, tell "durable"
//!                     ▲                                    the driver does it       │
//!                     └──────────────────────── Wait ◀─────────────────────────────┘
//! ```
//!
//! The driver brings one event after the other and does what each step asks for. It decides nothing, so a test that drives the core in
//! another way, event by event, sees the committer as it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use orrery_store::engine::{Batch, Engine, EngineError, Snapshot};
use tokio::sync::oneshot;

use super::group::{CommitGroup, Gathering};
use super::{CommitError, Counters, Job, Snapshots, Waiting, stop_the_node};
use crate::options::Durability;

/// How long a relaxed write may stay unsynced.
const RELAXED_SYNC_INTERVAL: Duration = Duration::from_millis(100);
/// The time without work after which the published snapshot is taken anew.
const IDLE: Duration = Duration::from_secs(1);
/// How long a disk that was full must have had room before that is believed to last.
const ROOM_FOR: Duration = Duration::from_secs(10);
/// The longest that a group waits for partitions that have been writing lately.
const GATHER_MAX: Duration = Duration::from_micros(300);

/// What has happened since the last step.
pub(super) enum Event {
    Came(Job),
    /// Nothing came for as long as was asked for.
    Quiet,
    /// What was asked to be synced is durable.
    Synced,
    /// Nothing will come any more.
    Closed,
}

/// What is to be done before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Take what comes, but wait for no longer than this.
    Wait(Duration),
    Sync,
    End,
}

pub(super) struct Core {
    engine: Arc<Engine>,
    snapshots: Arc<Snapshots>,
    counters: Arc<Counters>,
    durability: Durability,
    gathering: Gathering,
    /// What has come, and until when more may join it.
    group: Option<(CommitGroup, Instant)>,
    syncing: Option<Syncing>,
    /// When everything was synced last, and whether anything was written since.
    synced: Instant,
    is_unsynced: bool,
    /// When the disk was last seen to be full, as long as the operator has not been told that it is not.
    full_seen: Option<Instant>,
}

/// What the engine has taken and the disk perhaps not.
struct Syncing {
    snapshot: Arc<Snapshot>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Core {
    pub fn new(
        engine: Arc<Engine>,
        snapshots: Arc<Snapshots>,
        counters: Arc<Counters>,
        durability: Durability,
        now: Instant,
    ) -> Core {
        Core {
            engine,
            snapshots,
            counters,
            durability,
            gathering: Gathering::default(),
            group: None,
            syncing: None,
            synced: now,
            is_unsynced: false,
            full_seen: None,
        }
    }

    pub fn step(&mut self, event: Event, now: Instant) -> Next {
        debug_assert!(
            self.syncing.is_none() || matches!(event, Event::Synced),
            "nothing is done while a sync is under way"
        );
        match event {
            Event::Came(job) => self.add(job, now),
            Event::Quiet | Event::Closed if self.group.is_some() => self.write(now),
            Event::Quiet => {
                // What is published is the same data, but the engine may let go of older versions of it.
                self.publish_anew(now);
                self.rest(now)
            }
            Event::Synced => {
                (self.is_unsynced, self.synced) = (false, now);
                if let Some(Syncing { snapshot, waiting }) = self.syncing.take() {
                    self.publish(snapshot, waiting);
                }
                self.rest(now)
            }
            Event::Closed => Next::End,
        }
    }

    /// Waits for the next work, unless what was acknowledged must be synced by now.
    pub fn rest(&self, now: Instant) -> Next {
        match self.durability {
            Durability::Durable => Next::Wait(IDLE),
            Durability::Relaxed => match self.is_unsynced && now - self.synced >= RELAXED_SYNC_INTERVAL {
                true => Next::Sync,
                false => Next::Wait(RELAXED_SYNC_INTERVAL),
            },
        }
    }

    fn add(&mut self, job: Job, now: Instant) -> Next {
        let (group, until) = match self.group.take() {
            Some((mut group, until)) => {
                group.add(job);
                (group, until)
            }
            None => (CommitGroup::of(job), now + GATHER_MAX),
        };
        let has_room = group.has_room();
        // Writers that do not wait for the disk need not be waited for.
        let is_complete = self.durability == Durability::Relaxed || self.gathering.is_complete(&group);
        self.group = Some((group, until));
        match has_room {
            false => self.write(now),
            true if is_complete => Next::Wait(Duration::ZERO),
            true => Next::Wait(until.saturating_duration_since(now)),
        }
    }

    fn write(&mut self, now: Instant) -> Next {
        let Some((CommitGroup { from, growing, freeing }, _)) = self.group.take() else {
            return self.rest(now);
        };
        self.gathering.note(from);
        // The disk comes second, so that writers can go on while it is busy.
        let shares =
            [growing, freeing].map(|share| (self.take(share.batch, share.waiting.len()), share.waiting));
        let is_any_taken = shares.iter().any(|(taken, waiting)| taken.is_ok() && !waiting.is_empty());
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        self.note_room(now);
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
            self.syncing = Some(Syncing { snapshot, waiting });
            return Next::Sync;
        }
        self.is_unsynced = true;
        self.publish(snapshot, waiting);
        self.rest(now)
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

    fn publish(&self, snapshot: Arc<Snapshot>, waiting: Vec<oneshot::Sender<()>>) {
        self.snapshots.published.store(snapshot);
        for durable in waiting {
            let _ = durable.send(());
        }
    }

    /// Shows the data as the engine has it. Nothing may be under way.
    fn publish_anew(&mut self, now: Instant) {
        self.note_room(now);
        let snapshot = Arc::new(self.engine.snapshot());
        self.snapshots.applied.store(snapshot.clone());
        self.snapshots.published.store(snapshot);
    }

    /// Tells the operator once that the disk is full, and once that it no longer is. A disk at its brink takes a little
    /// each time that something was flushed or merged, so it must have had room for a while.
    fn note_room(&mut self, now: Instant) {
        let since = self.full_seen;
        if self.engine.is_full() {
            self.full_seen = Some(now);
            if since.is_none() {
                let (used, free) = (self.engine.disk_bytes(), self.engine.free_disk_bytes());
                tracing::warn!(
                    used,
                    free,
                    "the disk is full, or the limit on disk use is reached: writes are refused, what deletes is not"
                );
            }
        } else if since.is_some_and(|since| now - since >= ROOM_FOR) {
            self.full_seen = None;
            let (used, free) = (self.engine.disk_bytes(), self.engine.free_disk_bytes());
            tracing::warn!(used, free, "there is room on the disk again: writes are taken");
        }
    }
}

#[cfg(test)]
mod tests;
