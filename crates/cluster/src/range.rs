//! A partition key range: one physical partition with its budget and its queue of writers.
//!
//! There is no task for an idle partition. A writer that finds the queue without a leader starts one; the leader commits
//! group after group and ends when nothing waits. One group is on its way to the disk at a time: load makes groups
//! bigger.

mod held;
mod leader;
mod totals;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use orrery_doc::{Epk, EpkRange};
use orrery_store::engine::Snapshot;
use orrery_store::limits::{PARTITION_QUEUE_BYTES_MAX, PARTITION_QUEUE_MAX, PartitionLimits};
use orrery_store::{
    Action, Ahead, DefaultTtl, Done, Etag, Fault, ItemKey, Lifetimes, Lsn, Op, Partition, Schema, Txn,
    TxnError,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use crate::committer::{CommitError, Committer, Fuse};
use crate::error::ErrorKind;
use crate::insight::RangeInsight;
use crate::memory::Memory;
use crate::throttle::Budget;
use crate::world::World;

pub(crate) use held::Held;
pub(crate) use totals::Totals;

/// The leader is told of every so many that wait. Telling it of each would cost more than it gains.
const ARRIVALS_TOLD: usize = 8;

pub struct Range {
    /// The id that clients see; unique within the container.
    pub id: u32,
    pub parents: Vec<u32>,
    pub partition: Partition,
    pub budget: Budget,
    pub schema: ArcSwap<Schema>,
    pub counters: RangeCounters,
    pub insight: Arc<RangeInsight>,
    /// What all partitions of the container hold together.
    pub(crate) totals: Arc<Totals>,
    pub(crate) limits: PartitionLimits,
    world: World,
    memory: Memory,
    queue: Mutex<Queue>,
    /// Tells the leader that something waits.
    arrivals: Notify,
    /// Told when the leader has stopped.
    rest: Notify,
    /// Those that took its place, once it is gone.
    successors: OnceLock<Vec<Arc<Range>>>,
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

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Pending>,
    /// Bytes of documents that wait.
    bytes: usize,
    led: bool,
    /// Nothing is taken from the queue for the moment.
    held: bool,
    closed: bool,
}

impl Queue {
    /// There is always room for one.
    fn has_room(&self, work: &Work) -> bool {
        let bytes = self.bytes + work.doc_bytes();
        let is_full = self.waiting.len() >= PARTITION_QUEUE_MAX || bytes > PARTITION_QUEUE_BYTES_MAX;
        !is_full || self.waiting.is_empty()
    }

    fn push(&mut self, pending: Pending) {
        self.bytes += pending.work.doc_bytes();
        self.waiting.push_back(pending);
    }

    fn push_front(&mut self, pending: Pending) {
        self.bytes += pending.work.doc_bytes();
        self.waiting.push_front(pending);
    }

    fn pop(&mut self) -> Option<Pending> {
        let pending = self.waiting.pop_front()?;
        self.bytes -= pending.work.doc_bytes();
        Some(pending)
    }

    fn take_all(&mut self) -> VecDeque<Pending> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

struct Pending {
    work: Work,
    /// It makes room, so that it is let through when the disk is full.
    frees: bool,
    /// What is held for it besides its documents, until it is answered.
    held: Held,
    answer: oneshot::Sender<Told>,
}

/// What the leader says of work.
enum Told {
    Answer(Answer),
    /// It needs more memory than was to be had; so much it had when there was no more.
    Short(Work, u64),
}

impl Pending {
    fn answer(self, answer: Answer) {
        // A client that went away does not undo its write.
        let _ = self.answer.send(Told::Answer(answer));
    }

    /// Gives the work back, to be handed in again with more memory.
    fn give_back(self, bytes: u64) {
        let _ = self.answer.send(Told::Short(self.work, bytes));
    }

    /// Gives the work to the range that its key belongs to now. What belongs to the whole range has lost its purpose.
    fn move_to(self, successors: &[Arc<Range>], committer: &Arc<Committer>) {
        let target = match &self.work {
            Work::Write(txn) => successor(successors, &txn.scope),
            Work::Ahead(ahead) => successor(successors, &ahead.txn.scope),
            _ => None,
        };
        match target {
            Some(range) => range.push(self, committer),
            None => self.answer(Err(WriteError::Unwritten(ErrorKind::RangeGone))),
        }
    }
}

fn successor<'r>(successors: &'r [Arc<Range>], epk: &Epk) -> Option<&'r Arc<Range>> {
    successors.iter().find(|range| range.epk().contains(epk))
}

/// Whether nothing may be erased of a history from before a moment, or of all of it: a job follows it, which needs
/// every entry however old it is, or it is kept after all.
pub(crate) fn wants_history(schema: &Schema, keep_since: Option<u64>) -> bool {
    schema.keeps_replaced || schema.keeps_history && keep_since.is_none()
}

/// What goes through the queue: all of it is evaluated in order, so nothing needs a lock against anything else.
enum Work {
    Write(Txn),
    /// What a script has worked out beside the queue.
    Ahead(Ahead),
    /// A step of the index that is being built.
    BuildIndex,
    /// A step of erasing what the history holds from before a moment, or all of it.
    EraseHistory {
        keep_since: Option<u64>,
    },
    /// Items that were found to be expired at this moment.
    Purge {
        items: Vec<ItemKey>,
        now: u64,
    },
    /// Nothing; the answer says that all groups before it are done.
    Settle,
}

impl Work {
    /// Whether it takes away more than it brings, whatever is stored.
    fn frees(&self) -> bool {
        let only_deletes = |txn: &Txn| {
            let brings_nothing =
                |op: &Op| matches!(op.action, Action::Delete | Action::Read | Action::Wrong { .. });
            txn.ops.iter().all(brings_nothing)
        };
        match self {
            Work::Write(txn) => only_deletes(txn),
            Work::Ahead(ahead) => only_deletes(&ahead.txn),
            Work::EraseHistory { .. } | Work::Purge { .. } | Work::Settle => true,
            Work::BuildIndex => false,
        }
    }

    /// Bytes of the documents that it brings along.
    fn doc_bytes(&self) -> usize {
        match self {
            Work::Write(txn) => txn.doc_bytes(),
            Work::Ahead(ahead) => ahead.txn.doc_bytes(),
            Work::BuildIndex | Work::EraseHistory { .. } | Work::Purge { .. } | Work::Settle => 0,
        }
    }
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
    pub rate: f64,
    pub limits: PartitionLimits,
    pub totals: Arc<Totals>,
    pub memory: Memory,
}

impl Range {
    pub fn new(partition: Partition, parts: RangeParts) -> Range {
        let world = parts.memory.world().clone();
        let insight = RangeInsight::new(&parts.schema.key, &partition.spec.range, world.clone());
        Range {
            id: parts.id,
            parents: parts.parents,
            partition,
            budget: Budget::new(parts.rate, world.monotonic()),
            schema: ArcSwap::from_pointee(parts.schema),
            counters: RangeCounters::default(),
            insight: Arc::new(insight),
            totals: parts.totals,
            limits: parts.limits,
            world,
            memory: parts.memory,
            queue: Mutex::default(),
            arrivals: Notify::new(),
            rest: Notify::new(),
            successors: OnceLock::new(),
        }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn epk(&self) -> &EpkRange {
        &self.partition.spec.range
    }

    /// Which items are there now. Where nothing expires, the clock is not asked.
    pub fn lifetimes(&self) -> Lifetimes {
        match self.schema.load().ttl {
            DefaultTtl::Off => Lifetimes::ENDLESS,
            ttl => Lifetimes::at(ttl, self.world.now()),
        }
    }

    /// The index that readers may use; see [`Range::schema_point`] for the snapshot to use it with.
    #[cfg(test)]
    pub fn index(&self) -> Arc<orrery_store::ActiveIndex> {
        self.schema.load().index.clone()
    }

    /// A snapshot, the schema that it follows, and an LSN that it holds at least.
    ///
    /// The active index may change at any time, and the old one is erased soon after. Seeing the same schema before and
    /// after the snapshot was taken proves that its index was complete before and untouched until then. A range that
    /// others have succeeded has nobody who looks after its index.
    pub fn schema_point(
        &self,
        committer: &Committer,
    ) -> std::result::Result<(Lsn, Arc<Snapshot>, Arc<Schema>), ErrorKind> {
        loop {
            let schema = self.schema.load_full();
            let lsn = self.partition.lsn();
            let snapshot = committer.snapshot_owned();
            self.check_there()?;
            if Arc::ptr_eq(&self.schema.load(), &schema) {
                return Ok((lsn, snapshot, schema));
            }
        }
    }

    /// Refuses when others have taken this range's place.
    pub fn check_there(&self) -> std::result::Result<(), ErrorKind> {
        if self.successors.get().is_some() { Err(ErrorKind::RangeGone) } else { Ok(()) }
    }

    /// Refuses when the container of this range was exchanged for another: what is stored here is being erased, which a
    /// snapshot that was taken before this was asked does not see yet. Items of a range that was split stay, so
    /// a request that reads them need not ask again.
    pub fn check_kept(&self) -> std::result::Result<(), ErrorKind> {
        match self.successors.get() {
            Some(successors) if successors.is_empty() => Err(ErrorKind::RangeGone),
            _ => Ok(()),
        }
    }

    /// The range that a key belongs to now: this one, or the successor of it.
    pub fn current(self: &Arc<Self>, epk: &Epk) -> Arc<Range> {
        let mut range = self;
        while let Some(next) = range.successors.get().and_then(|list| successor(list, epk)) {
            range = next;
        }
        range.clone()
    }

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
    fn push(self: &Arc<Self>, pending: Pending, committer: &Arc<Committer>) {
        let mut queue = self.queue.lock();
        if queue.closed {
            drop(queue);
            let successors = self.successors.get().map_or(&[][..], Vec::as_slice);
            return pending.move_to(successors, committer);
        }
        if !queue.has_room(&pending.work) {
            drop(queue);
            return pending.answer(Err(WriteError::Unwritten(ErrorKind::Overloaded)));
        }
        queue.push(pending);
        if queue.led && queue.waiting.len().is_multiple_of(ARRIVALS_TOLD) {
            self.arrivals.notify_one();
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
        self.world.spawn(async move {
            let mut leading = pin!(range.lead(&committer));
            // The fuse is there while the leader works, not when it is dropped with the runtime.
            poll_fn(|context| {
                let _fuse = Fuse;
                leading.as_mut().poll(context)
            })
            .await;
        });
    }

    /// Lets writers wait, and returns when nothing is under way: what was committed is published.
    pub async fn hold(&self) {
        loop {
            let rested = self.rest.notified();
            tokio::pin!(rested);
            // From here on a leader that stops is not missed.
            rested.as_mut().enable();
            {
                let mut queue = self.queue.lock();
                queue.held = true;
                if !queue.led {
                    return;
                }
            }
            rested.await;
        }
    }

    /// Lets writers go on.
    pub fn release(self: &Arc<Self>, committer: &Arc<Committer>) {
        let mut queue = self.queue.lock();
        queue.held = false;
        self.start_leader(queue, committer);
    }

    /// Ends this range, which must be held: what waits here is done by those who take its place.
    pub fn hand_over(&self, successors: &[Arc<Range>], committer: &Arc<Committer>) {
        let known = self.successors.set(successors.to_vec());
        assert!(known.is_ok(), "a range is succeeded once");
        let waiting = {
            let mut queue = self.queue.lock();
            queue.closed = true;
            queue.take_all()
        };
        for pending in waiting {
            pending.move_to(successors, committer);
        }
    }

    /// Refuses all further writes; those already queued are still answered.
    pub fn close(self: &Arc<Self>, committer: &Arc<Committer>) {
        self.queue.lock().closed = true;
        // A split that was under way finds its container gone; nobody else would let them go.
        self.release(committer);
    }

    /// True once nothing of this range can be written any more.
    pub fn is_quiet(&self) -> bool {
        let queue = self.queue.lock();
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

#[cfg(test)]
mod tests {
    use orrery_doc::{Doc, json};
    use orrery_store::{Precondition, Target};

    use super::*;

    fn text(bytes: usize) -> Doc {
        json::parse(format!("{{\"text\":\"{}\"}}", "x".repeat(bytes)).as_bytes(), 8).expect("JSON")
    }

    fn pending(doc: &Doc) -> Pending {
        let op = Op {
            target: Target::Id("a".into()),
            action: Action::Upsert(doc.clone()),
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        Pending {
            frees: false,
            held: Held::default(),
            work: Work::Write(Txn { scope: Epk::MIN, key: None, ops: vec![op], now: 0 }),
            answer: oneshot::channel().0,
        }
    }

    fn push_until_full(queue: &mut Queue, doc: &Doc) -> usize {
        let next = || {
            let next = pending(doc);
            let has_room = queue.has_room(&next.work);
            if has_room {
                queue.push(next);
            }
            has_room
        };
        std::iter::repeat_with(next).take(PARTITION_QUEUE_MAX + 1).take_while(|taken| *taken).count()
    }

    #[test]
    fn a_queue_is_full_by_count_or_by_bytes() {
        let mut queue = Queue::default();
        assert_eq!(push_until_full(&mut queue, &text(1)), PARTITION_QUEUE_MAX);
        let mut queue = Queue::default();
        let large = text(1 << 20);
        let fitting = PARTITION_QUEUE_BYTES_MAX / large.bytes().len();
        assert_eq!(push_until_full(&mut queue, &large), fitting);
        // What was taken makes room again, and what was handed over makes all of it.
        assert!(queue.pop().is_some());
        assert_eq!(push_until_full(&mut queue, &large), 1);
        assert_eq!(queue.take_all().len(), fitting);
        assert_eq!(push_until_full(&mut queue, &large), fitting);
    }

    #[test]
    fn an_empty_queue_takes_one_of_any_size() {
        let mut queue = Queue::default();
        let huge = text(PARTITION_QUEUE_BYTES_MAX + 1);
        assert_eq!(push_until_full(&mut queue, &huge), 1);
    }
}
