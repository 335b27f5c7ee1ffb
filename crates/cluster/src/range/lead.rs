//! What only the leader of a range has: the queue of its writers, its budget, and what was seen of its requests.
//!
//! There is no task for an idle partition. A writer that finds the queue without a leader starts one; the leader commits
//! group after group and ends when nothing waits. One group is on its way to the disk at a time: load makes groups
//! bigger.
//!
//! Another node may lead a range. Then there is a [`NoLead`] in place of the lead, which every writer is refused with and which whoever
//! only counts passes over. A node that is alone leads all that it has.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use orrery_store::limits::PartitionLimits;
use orrery_store::{Ahead, Fault, ItemKey, Txn};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use super::leader::Leader;
use super::queue::{Pending, Queue, Told, Work};
use super::{Answer, Held, Range, WriteError};
use crate::committer::{CommitError, Committer, Fuse};
use crate::error::ErrorKind;
use crate::insight::RangeInsight;
use crate::memory::Memory;
use crate::throttle::Budget;

/// The leader is told of every so many that wait. Telling it of each would cost more than it gains.
const ARRIVALS_TOLD: usize = 8;

pub struct Lead {
    pub budget: Budget,
    pub counters: RangeCounters,
    pub insight: Arc<RangeInsight>,
    pub(crate) limits: PartitionLimits,
    pub(super) memory: Memory,
    pub(super) queue: Mutex<Queue>,
    /// Tells the leader that something waits.
    pub(super) arrivals: Notify,
    /// Told when the leader has stopped.
    pub(super) rest: Notify,
}

/// Who leads a range.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives behind the range's `Arc`, and a read is spared one step"
)]
pub(super) enum Leadership {
    Here(Lead),
    #[cfg_attr(not(test), expect(dead_code, reason = "a node that is alone leads all that it has"))]
    Elsewhere,
}

/// Why a range cannot be written to here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLead {
    #[error("another node leads the partition")]
    Elsewhere,
}

impl From<NoLead> for WriteError {
    fn from(no_lead: NoLead) -> WriteError {
        WriteError::Unwritten(no_lead.into())
    }
}

/// For the metrics page.
#[derive(Default)]
pub struct RangeCounters {
    /// Writes that left a logical partition above 80 % of its limit.
    pub writes_near_limit: AtomicU64,
    /// Writes refused because their logical partition is full.
    pub writes_over_limit: AtomicU64,
    /// Items deleted because their time to live was over.
    pub items_expired: AtomicU64,
}

impl Lead {
    pub(super) fn new(
        budget: Budget,
        insight: RangeInsight,
        limits: PartitionLimits,
        memory: Memory,
    ) -> Lead {
        Lead {
            budget,
            counters: RangeCounters::default(),
            insight: Arc::new(insight),
            limits,
            memory,
            queue: Mutex::default(),
            arrivals: Notify::new(),
            rest: Notify::new(),
        }
    }
}

impl Range {
    /// Queues a transaction and returns when it is durable, or refused.
    pub async fn write(self: &Arc<Self>, committer: &Arc<Committer>, txn: Txn) -> Answer {
        self.enqueue(committer, Work::Write(txn)).await
    }

    /// The same for one that makes room though it does not only delete: it notes what is to be erased.
    pub async fn write_to_free(self: &Arc<Self>, committer: &Arc<Committer>, txn: Txn) -> Answer {
        self.enqueue_as(committer, Work::Write(txn), true, Held::all_it_needs()).await
    }

    /// The same for a transaction that was worked out ahead; it is refused if its logical partition has changed since.
    pub async fn write_ahead(
        self: &Arc<Self>,
        committer: &Arc<Committer>,
        ahead: Ahead,
        held: Held,
    ) -> Answer {
        let work = Work::Ahead(ahead);
        let frees = work.frees();
        self.enqueue_as(committer, work, frees, held).await
    }

    /// Takes the index that is being built a step further, among the writes.
    pub async fn build_index(self: &Arc<Self>, committer: &Arc<Committer>) -> Answer {
        self.enqueue(committer, Work::BuildIndex).await
    }

    /// Erases a part of what is no longer kept of the history, among the writes.
    pub async fn erase_history(
        self: &Arc<Self>,
        committer: &Arc<Committer>,
        keep_since: Option<u64>,
    ) -> Answer {
        self.enqueue(committer, Work::EraseHistory { keep_since }).await
    }

    /// Deletes those of the items that are expired at a moment.
    pub async fn purge(
        self: &Arc<Self>,
        committer: &Arc<Committer>,
        items: Vec<ItemKey>,
        now: u64,
    ) -> Answer {
        self.enqueue(committer, Work::Purge { items, now }).await
    }

    /// Returns when no group is under way that began with an older schema.
    pub async fn settle(self: &Arc<Self>, committer: &Arc<Committer>) -> Answer {
        self.enqueue(committer, Work::Settle).await
    }

    async fn enqueue(self: &Arc<Self>, committer: &Arc<Committer>, work: Work) -> Answer {
        let frees = work.frees();
        self.enqueue_as(committer, work, frees, Held::default()).await
    }

    async fn enqueue_as(
        self: &Arc<Self>,
        committer: &Arc<Committer>,
        mut work: Work,
        frees: bool,
        mut held: Held,
    ) -> Answer {
        loop {
            let (answer, answered) = oneshot::channel();
            self.push(Pending { work, frees, held, answer }, committer);
            match answered.await {
                Ok(Told::Answer(answer)) => return answer,
                Ok(Told::Short(again, had)) => {
                    held = self.more_memory(&again, had).await.map_err(WriteError::Unwritten)?;
                    work = again;
                }
                Err(_) => return Err(WriteError::Unwritten(Fault::Stopping.into())),
            }
        }
    }

    /// Queues work here, or where it belongs by now.
    pub(super) fn push(self: &Arc<Self>, pending: Pending, committer: &Arc<Committer>) {
        let lead = match self.lead() {
            Ok(lead) => lead,
            Err(no_lead) => return pending.answer(Err(no_lead.into())),
        };
        let mut queue = lead.queue.lock();
        if queue.closed {
            drop(queue);
            let successors = self.replica.successors.get().map_or(&[][..], Vec::as_slice);
            return pending.move_to(successors, committer);
        }
        if !queue.has_room(&pending.work) {
            drop(queue);
            return pending.answer(Err(WriteError::Unwritten(ErrorKind::Overloaded)));
        }
        queue.push(pending);
        if queue.led && queue.waiting.len().is_multiple_of(ARRIVALS_TOLD) {
            lead.arrivals.notify_one();
        }
        self.start_leader(queue, committer);
    }

    /// Starts a leader if there is work and nobody who does it.
    fn start_leader(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>, committer: &Arc<Committer>) {
        if queue.held || queue.waiting.is_empty() || std::mem::replace(&mut queue.led, true) {
            return;
        }
        drop(queue);
        let (range, committer) = (self.clone(), committer.clone());
        self.replica.world.spawn(async move {
            let Ok(leader) = Leader::of(&range) else { return };
            let mut leading = pin!(leader.lead(&committer));
            // The fuse is there while the leader works, not when it is dropped with the runtime.
            poll_fn(|context| {
                let _fuse = Fuse;
                leading.as_mut().poll(context)
            })
            .await;
        });
    }

    /// Lets writers wait, and returns when nothing is under way: what was committed is published.
    pub async fn hold(&self) -> Result<(), NoLead> {
        let lead = self.lead()?;
        loop {
            let rested = lead.rest.notified();
            tokio::pin!(rested);
            // From here on a leader that stops is not missed.
            rested.as_mut().enable();
            {
                let mut queue = lead.queue.lock();
                queue.held = true;
                if !queue.led {
                    return Ok(());
                }
            }
            rested.await;
        }
    }

    /// Lets writers go on, if any were held here.
    pub fn release(self: &Arc<Self>, committer: &Arc<Committer>) {
        let Ok(lead) = self.lead() else { return };
        let mut queue = lead.queue.lock();
        queue.held = false;
        self.start_leader(queue, committer);
    }

    /// Ends this range, which must be held where it is led: what waits there is done by those who take its place.
    pub fn hand_over(&self, successors: &[Arc<Range>], committer: &Arc<Committer>) {
        let known = self.replica.successors.set(successors.to_vec());
        assert!(known.is_ok(), "a range is succeeded once");
        let Ok(lead) = self.lead() else { return };
        let waiting = {
            let mut queue = lead.queue.lock();
            queue.closed = true;
            queue.take_all()
        };
        for pending in waiting {
            pending.move_to(successors, committer);
        }
    }

    /// Refuses all further writes; those already queued are still answered.
    pub fn close(self: &Arc<Self>, committer: &Arc<Committer>) {
        let Ok(lead) = self.lead() else { return };
        lead.queue.lock().closed = true;
        // A split that was under way finds its container gone; nobody else would let them go.
        self.release(committer);
    }

    /// True once nothing of this range can be written here any more.
    pub fn is_quiet(&self) -> bool {
        let Ok(lead) = self.lead() else { return true };
        let queue = lead.queue.lock();
        queue.closed && !queue.led
    }
}

impl From<CommitError> for Fault {
    fn from(error: CommitError) -> Fault {
        match error {
            CommitError::DiskFull => Fault::DiskFull,
            CommitError::Stopping => Fault::Stopping,
        }
    }
}
