//! Transactions that are worked out beside the write path.
//!
//! A script may run for seconds, and the leader of a partition must not wait for it. So a script works on a
//! [`Workbench`]: a snapshot and its own writes on top, evaluated by the same [`Group`] that the leader uses, one
//! operation at a time. What it did becomes an [`Ahead`]: the operations, the rids and versions that the script has
//! already seen of its items, and the version of the logical partition that everything was read from. The leader
//! runs it like any transaction, unless the logical partition has another version by then. All that the script read
//! lies in that logical partition, so what commits is as if the script had run at that moment, alone.
//!
//! The versions (ETags) are those of the LSN that would follow the snapshot. No other version of the same item can
//! have them: earlier versions have smaller LSNs, the check excludes others in between, and later ones are larger.

use std::sync::Arc;

use orrery_doc::{Epk, PartitionKey};

use crate::engine::Snapshot;
use crate::group::{Ledger, Progress};
use crate::limits::PartitionLimits;
use crate::{
    Action, Etag, Fault, Group, Item, ItemId, ItemKey, Lender, Lifetimes, Lsn, Op, Outcome, Partition,
    Schema, TICKS_PER_SECOND, Target, Txn, TxnError,
};

/// A transaction that was worked out, and what it depends on.
#[derive(Clone, Debug)]
pub struct Ahead {
    pub txn: Txn,
    /// The version of the logical partition that it was worked out from; none if that does not matter.
    pub base: Option<Lsn>,
    /// For each operation, what it has been told.
    pub stamps: Vec<Stamp>,
}

/// What an item was shown with before it was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub etag: Etag,
    pub rid: u64,
}

/// One logical partition as a transaction in the making sees it.
pub struct Workbench {
    snapshot: Arc<Snapshot>,
    schema: Arc<Schema>,
    limits: PartitionLimits,
    scope: Epk,
    /// See [`Txn::key`].
    key: Option<PartitionKey>,
    now: u64,
    base: Lsn,
    /// The LSN that would follow the snapshot's.
    lsn: Lsn,
    progress: Option<Progress>,
    ops: Vec<Op>,
    stamps: Vec<Stamp>,
    lender: Option<Arc<dyn Lender>>,
}

impl Workbench {
    /// `snapshot` and `schema` must belong together, and `now` is in units of 100 ns since 1970.
    pub fn new(
        partition: &Partition,
        snapshot: Arc<Snapshot>,
        schema: Arc<Schema>,
        limits: PartitionLimits,
        scope: Epk,
        now: u64,
    ) -> Result<Workbench, Fault> {
        let state = partition.state_at(&snapshot)?;
        let view = crate::View::new(partition, &snapshot, state.lsn, schema.lifetimes(now));
        let size = view.logical_size(&scope)?;
        let lsn = Lsn(state.lsn.0 + 1);
        let progress = Progress {
            state,
            changes: Default::default(),
            created: Default::default(),
            sizes: [(scope.clone(), size)].into(),
            entries: Default::default(),
            ledger: Ledger::with(0),
        };
        Ok(Workbench {
            snapshot,
            schema,
            limits,
            scope,
            key: None,
            now,
            base: size.version(),
            lsn,
            progress: Some(progress),
            ops: Vec::new(),
            stamps: Vec::new(),
            lender: None,
        })
    }

    /// The same for a transaction that holds no more than it is lent, besides so many bytes that are held for it already.
    pub fn lent_by(mut self, lender: Arc<dyn Lender>, own: u64) -> Workbench {
        if let Some(progress) = &mut self.progress {
            progress.ledger = Ledger::with(own);
        }
        Workbench { lender: Some(lender), ..self }
    }

    /// About how many bytes of memory it holds.
    pub fn held_bytes(&self) -> u64 {
        self.progress.as_ref().map_or(0, |progress| progress.ledger.held())
    }

    /// The same for a transaction under one key, whose place may hold items of others too.
    pub fn only(self, key: PartitionKey) -> Workbench {
        Workbench { key: Some(key), ..self }
    }

    /// Runs one operation. A refused one did nothing, and the next may follow.
    pub fn run(&mut self, partition: &Partition, op: Op) -> Result<Outcome, Box<TxnError>> {
        let etag = Etag::of(self.lsn.0, self.ops.len() as u16, self.now / TICKS_PER_SECOND);
        let stamp = Stamp { etag, rid: if op.action.may_create() { partition.next_rid() } else { 0 } };
        let (scope, key) = (self.scope.clone(), self.key.clone());
        let mut txn = Txn { scope, key, ops: vec![op], now: self.now };
        let progress = self.progress.take().expect("a bench has its progress between two operations");
        let group = Group::new(partition, &self.snapshot, &self.schema, self.limits);
        let mut group = group.resume(progress, self.lender.as_deref());
        let result = group.run_stamped(&txn, &[stamp], 0);
        self.progress = Some(group.pause());
        let outcome = result?.outcomes.pop().expect("one operation has one outcome");
        let op = txn.ops.pop().expect("it is the one that was run");
        if !matches!(op.action, Action::Read) {
            self.keep(op, Stamp { rid: outcome.item.header.rid, ..stamp }, outcome.id.clone());
        }
        Ok(outcome)
    }

    /// Remembers a write. An item that was named by rid has been found and need not be looked for again, unless the id that
    /// is known now is a new one.
    fn keep(&mut self, op: Op, stamp: Stamp, id: ItemId) {
        let target = match op.action {
            Action::Rename { .. } => op.target,
            _ => Target::Id(id),
        };
        self.ops.push(Op { target, ..op });
        self.stamps.push(stamp);
    }

    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The LSN of the snapshot.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.lsn.0 - 1)
    }

    pub fn lifetimes(&self) -> Lifetimes {
        self.schema.lifetimes(self.now)
    }

    pub fn scope(&self) -> &Epk {
        &self.scope
    }

    /// How many writes were accepted.
    pub fn writes(&self) -> usize {
        self.ops.len()
    }

    /// The items that differ from the snapshot; none stands for one that was deleted.
    pub fn changes(&self) -> impl Iterator<Item = (&ItemKey, Option<&Item>)> {
        let changes = self.progress.iter().flat_map(|progress| &progress.changes);
        changes.map(|(key, change)| (key, change.after.as_ref().map(|version| version.item())))
    }

    /// What is to be committed. If nothing was written, there is nothing to commit.
    pub fn finish(self) -> Ahead {
        let txn = Txn { scope: self.scope, key: self.key, ops: self.ops, now: self.now };
        Ahead { txn, base: Some(self.base), stamps: self.stamps }
    }
}
