//! What waits to be written to a range.

use std::collections::VecDeque;
use std::sync::Arc;

use orrery_store::limits::{PARTITION_QUEUE_BYTES_MAX, PARTITION_QUEUE_MAX};
use orrery_store::{Action, Ahead, Done, ItemKey, Op, Txn, TxnError};
use tokio::sync::oneshot;

use super::descriptor::successor;
use super::{Held, Range};
use crate::committer::Committer;
use crate::error::ErrorKind;

#[derive(Default)]
pub(super) struct Queue {
    pub waiting: VecDeque<Pending>,
    /// Bytes of documents that wait.
    bytes: usize,
    pub led: bool,
    /// Nothing is taken from the queue for the moment.
    pub held: bool,
    pub closed: bool,
}

impl Queue {
    /// There is always room for one.
    pub fn has_room(&self, work: &Work) -> bool {
        let bytes = self.bytes + work.doc_bytes();
        let is_full = self.waiting.len() >= PARTITION_QUEUE_MAX || bytes > PARTITION_QUEUE_BYTES_MAX;
        !is_full || self.waiting.is_empty()
    }

    pub fn push(&mut self, pending: Pending) {
        self.bytes += pending.work.doc_bytes();
        self.waiting.push_back(pending);
    }

    pub fn push_front(&mut self, pending: Pending) {
        self.bytes += pending.work.doc_bytes();
        self.waiting.push_front(pending);
    }

    pub fn pop(&mut self) -> Option<Pending> {
        let pending = self.waiting.pop_front()?;
        self.bytes -= pending.work.doc_bytes();
        Some(pending)
    }

    pub fn take_all(&mut self) -> VecDeque<Pending> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

pub(super) struct Pending {
    pub work: Work,
    /// It makes room, so that it is let through when the disk is full.
    pub frees: bool,
    /// What is held for it besides its documents, until it is answered.
    pub held: Held,
    pub answer: oneshot::Sender<Told>,
}

/// What the leader says of work.
pub(super) enum Told {
    Answer(Answer),
    /// It needs more memory than was to be had; so much it had when there was no more.
    Short(Work, u64),
}

impl Pending {
    pub fn answer(self, answer: Answer) {
        // A client that went away does not undo its write.
        let _ = self.answer.send(Told::Answer(answer));
    }

    /// Gives the work back, to be handed in again with more memory.
    pub fn give_back(self, bytes: u64) {
        let _ = self.answer.send(Told::Short(self.work, bytes));
    }

    /// Gives the work to the range that its key belongs to now. What belongs to the whole range has lost its purpose.
    pub fn move_to(self, successors: &[Arc<Range>], committer: &Arc<Committer>) {
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

/// What goes through the queue: all of it is evaluated in order, so nothing needs a lock against anything else.
pub(super) enum Work {
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
    pub fn frees(&self) -> bool {
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
    pub fn doc_bytes(&self) -> usize {
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

#[cfg(test)]
mod tests {
    use orrery_doc::Epk;
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
