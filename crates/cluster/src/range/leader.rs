//! The leader of a range: takes what waits, works it out in groups, and has each group written.
//!
//! The next group is worked out while the disk makes the last one durable. That is no gamble: a batch that the engine
//! has taken becomes durable before all that follows it, or the process ends. What must wait are the answers. A
//! transaction may have seen what the group before it did, also one that wrote nothing or was refused, so the leader
//! answers a group only after all earlier groups are durable and published.

use std::pin::pin;
use std::sync::Arc;

use orrery_store::limits::{
    EXPIRED_BYTES_PER_STEP, GROUP_HELD_BYTES_MAX, GROUP_TXNS_MAX, HISTORY_ERASED_PER_STEP, INDEX_BUILD_BYTES,
    INDEX_BUILD_ITEMS,
};
use orrery_store::{Applied, Done, Failed, Fault, Group, Prepared, Schema, TxnError};
use tokio::task::yield_now;

use super::queue::{Pending, Work};
use super::{Answer, Descriptor, Lead, NoLead, Range, Replica, WriteError, wants_history};
use crate::catalog::Usage;
use crate::committer::{CommitError, Committer, Syncing};
use crate::memory::{Fund, Hold};

/// Evaluations between two points where the leader lets other tasks run.
const EVALUATIONS_PER_TURN: usize = 16;

/// What leads a range as long as something waits for it.
pub(super) struct Leader<'r> {
    descriptor: &'r Descriptor,
    replica: &'r Replica,
    lead: &'r Lead,
}

/// Those whose transactions make up a group, each with what it will be answered.
#[derive(Default)]
struct Members {
    answers: Vec<(Pending, Answer)>,
    /// The next that waits found no memory beside them.
    are_all: bool,
    /// What they hold, until they are answered.
    hold: Option<Hold>,
}

/// A group that was worked out.
struct Worked {
    prepared: Prepared,
    members: Members,
}

/// A group that the engine has and the disk perhaps not yet.
struct UnderWay {
    syncing: Syncing,
    applied: Applied,
    members: Members,
}

impl<'r> Leader<'r> {
    pub(super) fn of(range: &'r Range) -> Result<Leader<'r>, NoLead> {
        Ok(Leader { descriptor: &range.descriptor, replica: &range.replica, lead: range.lead()? })
    }

    /// Commits group after group until nothing waits.
    pub(super) async fn lead(&self, committer: &Committer) {
        let mut under_way = None;
        loop {
            let worked = self.gather(committer, under_way.take()).await;
            under_way = match worked {
                Some(worked) => self.hand_in(committer, worked).await,
                None if self.stop_leading() => return,
                None => None,
            };
        }
    }

    /// Works out what waits and, as long as the group before is not durable, what comes. None when there was nothing.
    async fn gather(&self, committer: &Committer, before: Option<UnderWay>) -> Option<Worked> {
        let (snapshot, schema) = (committer.applied(), self.replica.schema.load_full());
        let fund = Fund::new(&self.lead.memory);
        let mut group =
            Group::new(&self.replica.partition, &snapshot, &schema, self.lead.limits).lent_by(&fund);
        committer.note_clock(self.replica.partition.state().time, self.replica.world.now());
        let mut members = Members::default();
        let mut is_complete = before.is_none();
        let mut completing = pin!(self.complete(before));
        loop {
            let is_full = committer.engine().is_full();
            // What is worked out while nothing is under way has all the memory that this partition can have.
            let more = self.work_out(&mut group, &schema, &mut members, (is_full, is_complete));
            tokio::select! {
                biased;
                () = &mut completing, if !is_complete => is_complete = true,
                () = yield_now(), if more => {}
                () = self.lead.arrivals.notified(), if !more && !is_complete => {}
                else => break,
            }
        }
        if members.answers.is_empty() {
            return None;
        }
        let prepared = group.finish();
        members.hold = Some(fund.take());
        Some(Worked { prepared, members })
    }

    /// Works out a turn of what waits; false when the group has no room for more, or nothing waits for it.
    fn work_out(
        &self,
        group: &mut Group<'_>,
        schema: &Arc<Schema>,
        members: &mut Members,
        (is_full, is_alone): (bool, bool),
    ) -> bool {
        for _ in 0..EVALUATIONS_PER_TURN {
            let Some(pending) = self.next_for(schema, group, members) else { return false };
            // Refused before it is worked out, so that what makes room is not refused with it.
            if is_full && !pending.frees {
                pending.answer(Err(WriteError::Unwritten(Fault::DiskFull.into())));
                continue;
            }
            let answer = self.evaluate(group, schema, &pending);
            if let Some(bytes) = short_of(&answer) {
                if is_alone && members.answers.is_empty() {
                    pending.give_back(bytes);
                    continue;
                }
                // It may find some when these, and those before them, are written.
                members.are_all = true;
                self.lead.queue.lock().push_front(pending);
                return false;
            }
            members.answers.push((pending, answer));
        }
        true
    }

    /// The next that waits, if it may join a group which is worked out under this schema.
    fn next_for(&self, schema: &Arc<Schema>, group: &Group<'_>, members: &Members) -> Option<Pending> {
        let is_large = group.held_bytes() >= GROUP_HELD_BYTES_MAX;
        if members.are_all || is_large || members.answers.len() >= GROUP_TXNS_MAX {
            return None;
        }
        let mut queue = self.lead.queue.lock();
        // A schema change must hold for every write that is queued after it.
        if queue.held || !Arc::ptr_eq(&self.replica.schema.load(), schema) {
            return None;
        }
        queue.pop()
    }

    /// True if there is nothing left to do: then another leader may begin.
    fn stop_leading(&self) -> bool {
        let mut queue = self.lead.queue.lock();
        if !queue.held && !queue.waiting.is_empty() {
            return false;
        }
        queue.led = false;
        self.lead.rest.notify_waiters();
        true
    }

    /// Gives a group to the engine. All groups before it are durable.
    async fn hand_in(&self, committer: &Committer, worked: Worked) -> Option<UnderWay> {
        let Worked { mut prepared, members } = worked;
        let mut batch = std::mem::take(&mut prepared.batch);
        if batch.is_empty() {
            self.replica.partition.publish(self.apply(prepared));
            members.answer(Ok(()));
            return None;
        }
        let frees = members.answers.iter().all(|(pending, _)| pending.frees);
        batch.set_frees(frees);
        let taken = match committer.submit_for(self.replica.partition.spec.number, batch) {
            Ok(submitted) => submitted.applied().await,
            Err(error) => Err(error),
        };
        match taken {
            Ok(syncing) => {
                let applied = self.apply(prepared);
                Some(UnderWay { syncing, applied, members })
            }
            // The committer has told the operator, once.
            Err(CommitError::DiskFull) => {
                self.put_back(members, frees);
                None
            }
            Err(error) => {
                tracing::warn!(range = self.descriptor.id, ?error, "a group was not written");
                members.answer(Err(error));
                None
            }
        }
    }

    /// Takes over what a group has come to; nobody else does, so that nothing is counted twice.
    fn apply(&self, prepared: Prepared) -> Applied {
        let before = Usage::of(&self.replica.partition.state());
        let applied = self.replica.partition.apply(prepared);
        self.replica.totals.moved(before, Usage::of(&self.replica.partition.state()));
        applied
    }

    /// After the disk was found full: what makes room is tried again without the rest.
    fn put_back(&self, members: Members, was_tried_alone: bool) {
        let mut freeing = Vec::new();
        for (pending, _) in members.answers {
            match pending.frees && !was_tried_alone {
                true => freeing.push(pending),
                false => pending.answer(Err(WriteError::Unwritten(Fault::DiskFull.into()))),
            }
        }
        let mut queue = self.lead.queue.lock();
        freeing.into_iter().rev().for_each(|pending| queue.push_front(pending));
    }

    /// Waits until a group is durable, shows it to readers and answers those whose it was.
    async fn complete(&self, under_way: Option<UnderWay>) {
        let Some(UnderWay { syncing, applied, members }) = under_way else { return };
        let durable = syncing.durable().await;
        if durable.is_ok() {
            self.replica.partition.publish(applied);
        }
        members.answer(durable);
    }

    fn evaluate(&self, group: &mut Group<'_>, schema: &Schema, pending: &Pending) -> Answer {
        let own = pending.held.bytes();
        match &pending.work {
            Work::Write(txn) => group.run_with(txn, own).map_err(WriteError::Refused),
            Work::Ahead(ahead) => group.run_ahead(ahead, own).map_err(WriteError::Refused),
            Work::BuildIndex => self.step(group.build(INDEX_BUILD_ITEMS, INDEX_BUILD_BYTES)),
            // The task that asked for it may have looked before the history was wanted.
            Work::EraseHistory { keep_since } if wants_history(schema, *keep_since) => {
                Ok(self.nothing_written())
            }
            Work::EraseHistory { keep_since } => {
                self.step(group.erase_history(*keep_since, HISTORY_ERASED_PER_STEP))
            }
            Work::Purge { items, now } => match group.purge(items, *now, EXPIRED_BYTES_PER_STEP) {
                Ok(outcomes) => Ok(Done { outcomes, ..self.nothing_written() }),
                Err(error) => self.step(Err(error)),
            },
            Work::Settle => Ok(self.nothing_written()),
        }
    }

    /// The answer to background work.
    fn step(&self, result: Result<(), impl Into<Failed>>) -> Answer {
        match result {
            Ok(()) => Ok(self.nothing_written()),
            Err(error) => Err(WriteError::Refused(Box::new(TxnError::untried(error)))),
        }
    }

    fn nothing_written(&self) -> Done {
        Done { lsn: self.replica.partition.lsn(), outcomes: Vec::new(), logical_bytes: (0, 0) }
    }
}

impl Members {
    fn answer(self, written: Result<(), CommitError>) {
        for (pending, answer) in self.answers {
            pending.answer(match written {
                Ok(()) => answer,
                // What a transaction saw of its group never happened, so even a refusal is void.
                Err(error) => Err(WriteError::Unwritten(Fault::from(error).into())),
            });
        }
    }
}

/// What a transaction held when it found no more memory, if it did not.
fn short_of(answer: &Answer) -> Option<u64> {
    match answer {
        Err(WriteError::Refused(refusal)) => match refusal.error {
            Failed::Fault(Fault::NoMemory { bytes }) => Some(bytes),
            _ => None,
        },
        _ => None,
    }
}
