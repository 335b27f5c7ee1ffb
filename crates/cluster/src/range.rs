//! A partition key range: one physical partition with its budget and its queue of writers.
//!
//! There is no task for an idle partition. Whoever finds the queue without a leader starts one; the leader commits
//! group after group and ends when nothing waits. One group is in flight at a time: load makes groups bigger.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use arc_swap::ArcSwap;
use orrery_doc::EpkRange;
use orrery_store::limits::{GROUP_TXNS_MAX, PARTITION_QUEUE_MAX, PartitionLimits};
use orrery_store::{Done, Etag, Group, Lsn, Partition, Prepared, Schema, Txn, TxnError};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::committer::{CommitError, Committer};
use crate::error::ErrorKind;
use crate::throttle::Budget;

/// Evaluations between two points where the leader lets other tasks run.
const EVALUATIONS_PER_TURN: usize = 16;

pub struct Range {
    /// The id that clients see; unique within the container.
    pub id: u32,
    pub parents: Vec<u32>,
    pub partition: Partition,
    pub budget: Budget,
    pub schema: ArcSwap<Schema>,
    pub etag: Etag,
    pub ts: u64,
    pub counters: RangeCounters,
    limits: PartitionLimits,
    queue: Mutex<Queue>,
}

/// For the metrics page.
#[derive(Default)]
pub struct RangeCounters {
    /// Writes that left a logical partition above 80 % of its limit.
    pub writes_near_limit: AtomicU64,
    /// Writes refused because their logical partition is full.
    pub writes_over_limit: AtomicU64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Pending>,
    led: bool,
    closed: bool,
}

struct Pending {
    txn: Txn,
    answer: oneshot::Sender<Answer>,
}

/// What a transaction comes back with, or why nothing of it happened.
pub type Answer = Result<Done, WriteError>;

#[derive(Clone, Debug)]
pub enum WriteError {
    Refused(Box<TxnError>),
    Unwritten(ErrorKind),
}

/// What a client may know of a range.
#[derive(Clone, Debug)]
pub struct RangeInfo {
    pub id: u32,
    pub range: EpkRange,
    pub parents: Vec<u32>,
    pub lsn: Lsn,
    pub throughput_fraction: f64,
    pub etag: Etag,
    pub ts: u64,
}

/// What makes a range besides its partition.
pub struct RangeParts {
    pub id: u32,
    pub parents: Vec<u32>,
    pub schema: Schema,
    pub etag: Etag,
    pub ts: u64,
    pub rate: f64,
    pub limits: PartitionLimits,
}

impl Range {
    pub fn new(partition: Partition, parts: RangeParts) -> Range {
        Range {
            id: parts.id,
            parents: parts.parents,
            partition,
            budget: Budget::new(parts.rate, Instant::now()),
            schema: ArcSwap::from_pointee(parts.schema),
            etag: parts.etag,
            ts: parts.ts,
            counters: RangeCounters::default(),
            limits: parts.limits,
            queue: Mutex::default(),
        }
    }

    pub fn epk(&self) -> &EpkRange {
        &self.partition.spec.range
    }

    /// Queues a transaction and returns when it is durable, or refused.
    pub async fn write(self: &Arc<Self>, committer: &Arc<Committer>, txn: Txn) -> Answer {
        let (answer, answered) = oneshot::channel();
        let lead = {
            let mut queue = self.queue.lock();
            if queue.closed {
                return Err(WriteError::Unwritten(ErrorKind::RangeGone));
            }
            if queue.waiting.len() >= PARTITION_QUEUE_MAX {
                return Err(WriteError::Unwritten(ErrorKind::Overloaded));
            }
            queue.waiting.push_back(Pending { txn, answer });
            !std::mem::replace(&mut queue.led, true)
        };
        if lead {
            let (range, committer) = (self.clone(), committer.clone());
            tokio::spawn(async move { range.lead(&committer).await });
        }
        answered.await.unwrap_or(Err(WriteError::Unwritten(ErrorKind::Stopping)))
    }

    /// Refuses all further writes; those already queued are still answered.
    pub fn close(&self) {
        self.queue.lock().closed = true;
    }

    /// True once nothing of this range can be written any more.
    pub fn is_quiet(&self) -> bool {
        let queue = self.queue.lock();
        queue.closed && !queue.led
    }

    async fn lead(&self, committer: &Committer) {
        loop {
            let group = {
                let mut queue = self.queue.lock();
                let count = queue.waiting.len().min(GROUP_TXNS_MAX);
                if count == 0 {
                    queue.led = false;
                    return;
                }
                queue.waiting.drain(..count).collect::<Vec<_>>()
            };
            self.commit(committer, group).await;
        }
    }

    async fn commit(&self, committer: &Committer, group: Vec<Pending>) {
        let (mut prepared, answers) = self.evaluate(committer, &group).await;
        let batch = std::mem::take(&mut prepared.batch);
        let written = if batch.is_empty() { Ok(()) } else { committer.commit(batch).await };
        match written {
            Ok(()) => self.partition.publish(prepared),
            Err(error) => tracing::warn!(range = self.id, ?error, "a group was not written"),
        }
        for (pending, answer) in group.into_iter().zip(answers) {
            let answer = match written {
                Ok(()) => answer,
                // What a transaction saw of its group never happened, so even a refusal is void.
                Err(error) => Err(WriteError::Unwritten(error.into())),
            };
            // A client that went away does not undo its write.
            let _ = pending.answer.send(answer);
        }
    }

    async fn evaluate(&self, committer: &Committer, group: &[Pending]) -> (Prepared, Vec<Answer>) {
        let snapshot = committer.snapshot_owned();
        let schema = self.schema.load_full();
        let mut running = Group::new(&self.partition, &snapshot, &schema, self.limits);
        let mut answers = Vec::with_capacity(group.len());
        for (place, pending) in group.iter().enumerate() {
            if place % EVALUATIONS_PER_TURN == EVALUATIONS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
            answers.push(running.run(&pending.txn).map_err(WriteError::Refused));
        }
        (running.finish(), answers)
    }
}

impl From<CommitError> for ErrorKind {
    fn from(error: CommitError) -> ErrorKind {
        match error {
            CommitError::DiskFull => ErrorKind::DiskFull,
            CommitError::Stopping => ErrorKind::Stopping,
        }
    }
}
