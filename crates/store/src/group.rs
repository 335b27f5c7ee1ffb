//! A group of transactions on their way into one commit.
//!
//! The leader of a partition takes what waits, evaluates each transaction against the last snapshot plus what
//! earlier transactions of the same group did, and turns the net effect of the whole group into one engine batch.
//! Net effect matters: an item written five times in a group costs one put, and no key appears twice in a batch.
//!
//! ```text
//!            a transaction                 the group                           the engine
//!   op ──> locate ──> visible ──> draft ──> changes[key] = (before, after)
//!   op ──> locate ──> visible ──> draft ──> created, sizes, entries    ─finish─> one batch, no key twice
//!            │          │           ▲
//!            │          └ an expired item is not there
//!            └ asks the draft, then the group, then the snapshot
//! ```
//!
//! **Three layers are asked in turn.** What an operation sees of an item is what the operations before it in the transaction left
//! (the *draft*), else what earlier transactions left (the *group*), else what is published (the *snapshot*). A refused
//! transaction drops its draft, so nothing of it was ever in the group.
//!
//! **`before` is written once.** A change keeps the version that the snapshot has and the last one that the group made of it. Index
//! entries, path counts, the feed and the sizes follow from these two, whatever happened between them; an item that was created
//! and deleted within the group leaves nothing but a higher LSN.
//!
//! **Evaluation decides, `apply` records.** All that depends on the clock or on what is stored is decided once, by the leader. The
//! batch is bytes, in the order of its keys whatever the tables here hash to: a replica inserts it and arrives at the same bytes.
//!
//! **LSNs count transactions that wrote.** One that only read, or was refused, has the LSN of the state that it saw.

mod claims;
mod funds;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use orrery_doc::{Doc, DocBuilder, Epk, PartitionKey, json};

use crate::ahead::{Ahead, Stamp};
use crate::build::{Build, Reached};
use crate::engine::{Batch, Keyspace, Snapshot};
use crate::history::{HistoryBounds, HistoryMove};
use crate::indexing::IndexingMode;
use crate::item::TICKS_PER_SECOND;
use crate::limits::{ITEM_BYTES_MAX, PartitionLimits, TERMS_COUNTED_BYTES, TXN_READ_BYTES_MAX, WRITE_COPIES};
use crate::log::Commit;
use crate::net_effect::{BuildMove, Change, NetEffect, Version};
use crate::partition::REGION;
use crate::path_counts::PathCountChange;
use crate::terms::{Terms, TermsSize};
use crate::ttl::own_ttl;
use crate::unique::{EntryTable, Holders, encode_holders};
use crate::view::{find_rid, read_item};
use crate::{
    Action, Edited, Effect, Etag, Failed, Fault, Item, ItemHeader, ItemId, ItemKey, LogicalSize, Lsn, Meter,
    Op, OpError, Outcome, Owner, Partition, PartitionState, Precondition, Schema, SchemaMark, Target, Txn,
    TxnError, keys,
};

use self::funds::Account;
pub use self::funds::Lender;
pub(crate) use self::funds::{Funds, Ledger};

pub struct Group<'a> {
    partition: &'a Partition,
    snapshot: &'a Snapshot,
    schema: &'a Schema,
    limits: PartitionLimits,
    state: PartitionState,
    changes: HashMap<ItemKey, Change>,
    created: HashMap<u64, ItemKey>,
    sizes: HashMap<Epk, LogicalSize>,
    /// Entries of unique keys.
    entries: EntryTable,
    /// Present while an index is being built.
    build: Option<BuildMove>,
    history: HistoryMove,
    funds: Funds<'a>,
}

/// A group ready for the engine, and the state that holds once the engine has it.
pub struct Prepared {
    pub batch: Batch,
    pub state: PartitionState,
    /// The LSN of the state that it was worked out from.
    pub(crate) before: Lsn,
    pub(crate) sizes: HashMap<Epk, LogicalSize>,
    /// New path counts of every index that the partition keeps up.
    pub(crate) counts: Vec<(u32, PathCountChange)>,
    pub(crate) build: Option<Build>,
    pub(crate) history: Option<HistoryBounds>,
    /// Present when the group is the first under other indexes.
    pub(crate) schema: Option<SchemaMark>,
}

/// A group between two of its transactions; see [`Group::pause`].
pub(crate) struct Progress {
    pub state: PartitionState,
    pub changes: HashMap<ItemKey, Change>,
    pub created: HashMap<u64, ItemKey>,
    pub sizes: HashMap<Epk, LogicalSize>,
    pub entries: EntryTable,
    pub ledger: Ledger,
}

/// A transaction that took effect in its group.
#[derive(Clone, Debug)]
pub struct Done {
    pub lsn: Lsn,
    pub outcomes: Vec<Outcome>,
    /// Bytes of the logical partition before and after; equal when nothing was written.
    pub logical_bytes: (u64, u64),
}

/// What one transaction did so far; dropped as a whole when an operation fails.
#[derive(Default)]
struct Draft {
    writes: Vec<Write>,
    /// The last write of each item, once there are more than can be looked through.
    places: HashMap<ItemKey, usize>,
    /// Entries of unique keys whose holders it changed.
    holders: HashMap<Vec<u8>, Holders>,
    bytes: i64,
    items: i64,
    /// Of the items that it wrote.
    owner: Option<Owner>,
    /// The rid of an item that is being renamed.
    moving: Option<u64>,
    /// What it holds in memory.
    account: Account,
}

/// Writes of a transaction that are looked through one by one; scripts may have thousands.
const WRITES_SCANNED: usize = 64;

impl Draft {
    fn push(&mut self, write: Write) {
        if self.writes.len() == WRITES_SCANNED {
            self.places =
                self.writes.iter().enumerate().map(|(place, write)| (write.key.clone(), place)).collect();
        }
        if self.writes.len() >= WRITES_SCANNED {
            self.places.insert(write.key.clone(), self.writes.len());
        }
        self.writes.push(write);
    }

    /// What the transaction last did to an item.
    fn last(&self, key: &ItemKey) -> Option<&Write> {
        match self.writes.len() <= WRITES_SCANNED {
            true => self.writes.iter().rev().find(|write| write.key == *key),
            false => self.places.get(key).map(|place| &self.writes[*place]),
        }
    }
}

/// What a transaction did to one item; an item may be written several times.
pub(crate) struct Write {
    pub key: ItemKey,
    pub before: Option<Version>,
    pub after: Option<Version>,
    /// Why it was removed, if it was.
    pub removal: Removal,
}

/// Why an item was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    Request,
    /// Its time to live is over.
    Expiry,
}

/// What an operation needs to know besides the stored data.
struct Moment {
    lsn: Lsn,
    place: u16,
    time: u64,
    /// When the request came: what is expired by then is not there.
    now: u64,
    /// What the operation was given when it was worked out ahead.
    stamp: Option<Stamp>,
}

impl Moment {
    fn etag(&self) -> Etag {
        let own = || Etag::of(self.lsn.0, self.place, self.time / TICKS_PER_SECOND);
        self.stamp.map_or_else(own, |stamp| stamp.etag)
    }
}

impl<'a> Group<'a> {
    /// `snapshot` must hold everything that was published of this partition.
    pub fn new(
        partition: &'a Partition,
        snapshot: &'a Snapshot,
        schema: &'a Schema,
        limits: PartitionLimits,
    ) -> Group<'a> {
        let build = schema.building.as_ref().map(|index| {
            let from = partition.build_of(index.generation);
            BuildMove { to: from.clone(), from, items: Vec::new() }
        });
        Group {
            partition,
            snapshot,
            schema,
            limits,
            state: partition.state(),
            changes: HashMap::new(),
            created: HashMap::new(),
            sizes: HashMap::new(),
            entries: EntryTable::default(),
            build,
            history: HistoryMove::new(partition.history()),
            funds: Funds::none(),
        }
    }

    /// The same for a group that holds no more than it is lent.
    pub fn lent_by(self, lender: &'a dyn Lender) -> Group<'a> {
        Group { funds: Funds::of_many(lender), ..self }
    }

    /// About how many bytes of memory the group holds.
    pub fn held_bytes(&self) -> u64 {
        self.funds.held()
    }

    /// Erases entries of the history that are older than the container keeps them, or all when it keeps none.
    pub fn erase_history(&mut self, keep_since: Option<u64>, entries_max: usize) -> Result<(), Fault> {
        self.history.erase(&self.partition.spec, self.snapshot, keep_since, entries_max)
    }

    /// Takes the index that is being built a step further; does nothing when there is none.
    pub fn build(&mut self, items_max: usize, bytes_max: usize) -> Result<(), Fault> {
        let (Some(index), Some(build)) = (&self.schema.building, &mut self.build) else { return Ok(()) };
        if index.policy.mode == IndexingMode::None {
            // There is nothing to write, so nothing has to be looked at.
            build.to.reached = Reached::Everything;
            return Ok(());
        }
        let (funds, policy) = (&mut self.funds, &index.policy);
        // The first may be as large as it is, or the build would never come past it.
        let mut next = Account::endless(0);
        let mut admit = |key: &ItemKey, item: &Item| {
            let mut account = std::mem::take(&mut next);
            let bytes = item.doc.bytes().len() as u64 + funds::of_index(key, item, policy);
            funds.hold(&mut account, bytes).map(|()| funds.keep(&account))
        };
        let limits = (items_max, bytes_max);
        let step = build.to.reached.step(&self.partition.spec, self.snapshot, limits, &mut admit)?;
        build.to.items += step.items.len() as u64;
        build.to.reached = step.reached;
        build.items.extend(step.items);
        Ok(())
    }

    /// Runs a transaction: all of its operations take effect in this group, or none.
    pub fn run(&mut self, txn: &Txn) -> Result<Done, Box<TxnError>> {
        self.run_with(txn, 0)
    }

    /// The same for one for which so many bytes of memory are held already, besides those for the documents that it brings.
    pub fn run_with(&mut self, txn: &Txn, own: u64) -> Result<Done, Box<TxnError>> {
        self.run_stamped(txn, &[], own + txn.text_bytes() * WRITE_COPIES)
    }

    /// Runs a transaction that was worked out ahead, unless its logical partition has changed since.
    pub fn run_ahead(&mut self, ahead: &Ahead, own: u64) -> Result<Done, Box<TxnError>> {
        let size = self.load_size(&ahead.txn.scope).map_err(|fault| Box::new(TxnError::untried(fault)))?;
        if ahead.base.is_some_and(|base| base != size.version()) {
            return Err(Box::new(TxnError::untried(OpError::Overtaken)));
        }
        self.run_stamped(&ahead.txn, &ahead.stamps, own)
    }

    pub(crate) fn run_stamped(
        &mut self,
        txn: &Txn,
        stamps: &[Stamp],
        own: u64,
    ) -> Result<Done, Box<TxnError>> {
        // What takes one item away must never be too large for that.
        let is_endless = matches!(txn.ops.as_slice(), [Op { action: Action::Delete, .. }]);
        let account = if is_endless { Account::endless(own) } else { Account::with(own) };
        let mut draft = Draft { account, ..Draft::default() };
        let mut outcomes = Vec::with_capacity(txn.ops.len());
        let mut answer_bytes = 0;
        let lsn = Lsn(self.state.lsn.0 + 1);
        let time = self.state.next_time(txn.now);
        for (place, op) in txn.ops.iter().enumerate() {
            let stamp = stamps.get(place).copied();
            let moment = Moment { lsn, place: place as u16, time, now: txn.now, stamp };
            let mut meter = Meter::default();
            let evaluated = self.evaluate(txn, op, &moment, &mut draft, &mut meter);
            let fitting = evaluated.and_then(|outcome| {
                answer_bytes += read_bytes(&outcome);
                // Said before anything is written: a client that gets no answer takes the transaction for undone.
                let is_fitting = answer_bytes <= TXN_READ_BYTES_MAX;
                is_fitting.then_some(outcome).ok_or(Failed::Refused(OpError::AnswerTooLarge))
            });
            match fitting {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    let before = outcomes.iter().map(|done: &Outcome| done.meter);
                    let meters = before.chain([meter]).collect();
                    return Err(Box::new(TxnError { place, error, meters }));
                }
            }
        }
        self.funds.keep(&draft.account);
        if draft.writes.is_empty() {
            return Ok(Done { lsn: self.state.lsn, outcomes, logical_bytes: (0, 0) });
        }
        let logical_bytes = self.apply(&txn.scope, draft, lsn, time);
        Ok(Done { lsn, outcomes, logical_bytes })
    }

    /// Records the effect of an evaluated transaction; returns the logical partition's bytes before and after.
    fn apply(&mut self, scope: &Epk, draft: Draft, lsn: Lsn, time: u64) -> (u64, u64) {
        self.state.lsn = lsn;
        self.state.time = time;
        self.state.rids_given = self.partition.rids_given();
        self.state.items = self.state.items.saturating_add_signed(draft.items);
        self.state.bytes = self.state.bytes.saturating_add_signed(draft.bytes);
        let size =
            self.sizes.get_mut(scope).expect("evaluating a write loads the size of its logical partition");
        let before = size.bytes;
        size.bytes = before.saturating_add_signed(draft.bytes);
        let logical_bytes = (before, size.bytes);
        if let Some(owner) = draft.owner {
            size.admit(owner);
        }
        size.items = size.items.saturating_add_signed(draft.items);
        size.lsn = lsn;
        if self.schema.keeps_history {
            let keeps_replaced = self.schema.keeps_replaced;
            self.history.record(&self.partition.spec, lsn, time, &draft.writes, keeps_replaced);
        }
        self.entries.apply(draft.holders);
        for Write { key, before, after, .. } in draft.writes {
            if let (None, Some(version)) = (&before, &after) {
                self.created.insert(version.item().header.rid, key.clone());
            }
            match self.changes.entry(key) {
                Entry::Occupied(mut change) => change.get_mut().after = after,
                Entry::Vacant(slot) => {
                    slot.insert(Change { before, after });
                }
            }
        }
        logical_bytes
    }

    fn evaluate(
        &mut self,
        txn: &Txn,
        op: &Op,
        moment: &Moment,
        draft: &mut Draft,
        meter: &mut Meter,
    ) -> Result<Outcome, Failed> {
        // Whatever it is refused for, something was looked at.
        let outcome = self.perform(txn, op, moment, draft, meter).inspect_err(|_| meter.misses += 1)?;
        Ok(Outcome { meter: *meter, ..outcome })
    }

    fn perform(
        &mut self,
        txn: &Txn,
        op: &Op,
        moment: &Moment,
        draft: &mut Draft,
        meter: &mut Meter,
    ) -> Result<Outcome, Failed> {
        let key = self.locate(&txn.scope, &op.target, draft)?.ok_or(OpError::NotFound)?;
        check_ttl(&op.action)?;
        let is_home = |doc| self.is_at_home(txn, None, doc);
        debug_assert!(op.action.doc().is_none_or(is_home), "a document comes under its own key");
        let stored = self.visible(txn, op, &key, draft)?;
        match &op.action {
            Action::Create(doc) => match stored {
                Some(version) => Err(self.conflict(&version, doc).into()),
                None => self.put(key, None, doc.clone(), op, moment, draft, meter),
            },
            Action::Upsert(doc) => {
                check(op.precondition, stored.as_ref())?;
                self.put(key, stored, doc.clone(), op, moment, draft, meter)
            }
            Action::Replace(doc) => {
                let version = existing(stored, op.precondition)?;
                self.put(key, Some(version), doc.clone(), op, moment, draft, meter)
            }
            Action::Rename { id, doc } => {
                let version = existing(stored, op.precondition)?;
                self.rename(key, id.clone(), version, doc.clone(), op, moment, draft, meter)
            }
            Action::Edit(edit) => {
                if stored.is_none() && !edit.may_create() {
                    return Err(OpError::NotFound.into());
                }
                check(op.precondition, stored.as_ref())?;
                match edit.edit(stored.as_ref().map(Version::item), moment.now).map_err(OpError::Edit)? {
                    Edited::To(doc) => {
                        if !self.is_at_home(txn, stored.as_ref(), &doc) {
                            return Err(OpError::OutOfPlace.into());
                        }
                        meter.properties_patched += edit.properties();
                        self.put(key, stored, doc, op, moment, draft, meter)
                    }
                    Edited::Unchanged => Ok(unchanged(key, stored.as_ref(), meter)),
                }
            }
            Action::Delete => {
                let version = existing(stored, op.precondition)?;
                self.remove(key, version, Removal::Request, draft, meter)
            }
            Action::Read => {
                let version = stored.ok_or(OpError::NotFound)?;
                Ok(read(key, &version, op.precondition, meter))
            }
            Action::Wrong { needs_item: true } if stored.is_none() => Err(OpError::NotFound.into()),
            Action::Wrong { .. } => Err(OpError::Wrong.into()),
        }
    }

    /// The key that an operation means; `None` when no item has the rid.
    fn locate(&self, scope: &Epk, target: &Target, draft: &Draft) -> Result<Option<ItemKey>, Fault> {
        let rid = match target {
            Target::Id(id) => return Ok(Some(ItemKey { epk: scope.clone(), id: id.clone() })),
            Target::Rid(rid) => *rid,
        };
        let drafted = draft
            .writes
            .iter()
            .rev()
            .find(|write| write.after.as_ref().is_some_and(|version| version.item().header.rid == rid));
        let key = match drafted {
            Some(write) => Some(write.key.clone()),
            None => match self.created.get(&rid) {
                Some(key) => Some(key.clone()),
                None => find_rid(self.partition, self.snapshot, rid)?,
            },
        };
        let Some(key) = key.filter(|key| key.epk == *scope) else { return Ok(None) };
        // The id may belong to a newer item by now, which then has another rid.
        let rid_of = |version: &Option<Version>| version.as_ref().map(|version| version.item().header.rid);
        let current = match self.known(&key, draft) {
            Some(version) => rid_of(version),
            None => read_item(self.partition, self.snapshot, &key)?.map(|item| item.header.rid),
        };
        Ok((current == Some(rid)).then_some(key))
    }

    /// The version that this transaction, or one before it in the group, has left of an item.
    fn known<'d>(&'d self, key: &ItemKey, draft: &'d Draft) -> Option<&'d Option<Version>> {
        let drafted = draft.last(key).map(|write| &write.after);
        drafted.or_else(|| self.changes.get(key).map(|change| &change.after))
    }

    /// The version of an item that this transaction sees.
    fn lookup(&mut self, key: &ItemKey, draft: &mut Draft) -> Result<Option<Version>, Fault> {
        if let Some(version) = self.known(key, draft) {
            return Ok(version.clone());
        }
        let stored = read_item(self.partition, self.snapshot, key)?;
        stored.map(|item| self.version(item, draft)).transpose()
    }

    /// The version that an operation is about, if it is there for it: not expired, and of the transaction's own key.
    /// What holds an id under another key of the same place cannot be written over, and nothing else is told of it.
    fn visible(
        &mut self,
        txn: &Txn,
        op: &Op,
        key: &ItemKey,
        draft: &mut Draft,
    ) -> Result<Option<Version>, Failed> {
        let stored = self.lookup(key, draft)?;
        let may_create = op.action.may_create();
        let stored = match may_create {
            true => self.unless_expired(key, stored, txn.now, draft)?,
            false => stored.filter(|version| !self.is_over(version.item(), txn.now)),
        };
        let is_own = |version: &Version| {
            let doc = version.item().doc.as_ref();
            txn.key.as_ref().is_none_or(|key| key.is_of(&self.schema.key, doc))
        };
        match stored {
            Some(version) if !is_own(&version) && may_create => Err(OpError::KeyCollision.into()),
            stored => Ok(stored.filter(is_own)),
        }
    }

    /// Terms may be many times what they are made of, so those of a large item are counted before.
    fn version(&mut self, item: Item, draft: &mut Draft) -> Result<Version, Fault> {
        let policy = &self.schema.index.policy;
        let is_large = item.doc.bytes().len() > TERMS_COUNTED_BYTES;
        let expected = if is_large { TermsSize::of(&item, policy) } else { TermsSize::default() };
        let expected = funds::of_version(&item, expected);
        self.funds.hold(&mut draft.account, expected)?;
        let version = Version::new(item, policy);
        let found = funds::of_version(version.item(), version.terms().size());
        self.funds.hold(&mut draft.account, found.saturating_sub(expected))?;
        Ok(version)
    }

    /// Accounts for what a change of an item becomes in the batch.
    fn hold_change(
        &mut self,
        key: &ItemKey,
        (before, after): (Option<&Version>, Option<&Version>),
        changed: TermsSize,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let bytes = |version: Option<&Version>| version.map_or(0, |v| v.item().doc.bytes().len() as u64);
        let mut held = bytes(after) + funds::of_changes(key, changed);
        if self.schema.keeps_history {
            let is_told = after.is_none() || self.schema.keeps_replaced;
            held += bytes(after) + if is_told { bytes(before) } else { 0 };
        }
        if let Some(building) = &self.schema.building {
            let versions = before.into_iter().chain(after);
            held +=
                versions.map(|version| funds::of_index(key, version.item(), &building.policy)).sum::<u64>();
        }
        self.funds.hold(&mut draft.account, held)
    }

    /// Two keys with one place and one id would be one item to us: say so instead of mixing them.
    fn conflict(&self, stored: &Version, doc: &Doc) -> OpError {
        let key_of = |doc: &Doc| PartitionKey::extract(&self.schema.key, doc.as_ref());
        if key_of(&stored.item().doc) == key_of(doc) { OpError::Conflict } else { OpError::KeyCollision }
    }

    /// Whether a document has the key of its transaction; where that has none, of the item that it takes the place of.
    fn is_at_home(&self, txn: &Txn, stored: Option<&Version>, doc: &Doc) -> bool {
        let def = &self.schema.key;
        let key_of = |doc: &Doc| PartitionKey::extract(def, doc.as_ref());
        match (&txn.key, stored) {
            (Some(key), _) => key.is_of(def, doc.as_ref()),
            (None, Some(stored)) => key_of(&stored.item().doc) == key_of(doc),
            (None, None) => true,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one write, each from another place")]
    fn put(
        &mut self,
        key: ItemKey,
        before: Option<Version>,
        doc: Doc,
        op: &Op,
        moment: &Moment,
        draft: &mut Draft,
        meter: &mut Meter,
    ) -> Result<Outcome, Failed> {
        let json_bytes = json::size(doc.root());
        if json_bytes > ITEM_BYTES_MAX {
            return Err(OpError::TooLarge { bytes: json_bytes }.into());
        }
        let growth = json_bytes as i64 - before.as_ref().map_or(0, |v| i64::from(v.item().header.json_bytes));
        self.check_size(&key.epk, growth, draft)?;
        let ttl = own_ttl(&doc)?;
        self.claim(&key, before.as_ref().map(|version| &version.item().doc), Some(&doc), moment.now, draft)?;
        let rid = match before.as_ref().map(|version| version.item().header.rid).or(draft.moving) {
            Some(rid) => rid,
            None => moment.stamp.map_or_else(|| self.partition.next_rid(), |stamp| stamp.rid),
        };
        let header = ItemHeader {
            flags: op.flags(),
            lsn: moment.lsn,
            place: moment.place,
            time: moment.time,
            etag: moment.etag(),
            ttl,
            rid,
            json_bytes: json_bytes as u32,
            origin: None,
        };
        let after = self.version(Item { header, doc }, draft)?;
        let changed = count_write(before.as_ref(), Some(&after), meter);
        self.hold_change(&key, (before.as_ref(), Some(&after)), changed, draft)?;
        draft.bytes += growth;
        draft.items += i64::from(before.is_none());
        let owner = Owner::of_item(&self.schema.key, &after.item().doc);
        draft.owner = Some(draft.owner.map_or(owner, |others| others.and(owner)));
        let effect = if before.is_none() { Effect::Created } else { Effect::Replaced };
        let outcome = Outcome { effect, item: after.item().clone(), id: key.id.clone(), meter: *meter };
        draft.push(Write { key, before, after: Some(after), removal: Removal::Request });
        Ok(outcome)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one write, each from another place")]
    fn rename(
        &mut self,
        key: ItemKey,
        id: ItemId,
        before: Version,
        doc: Doc,
        op: &Op,
        moment: &Moment,
        draft: &mut Draft,
        meter: &mut Meter,
    ) -> Result<Outcome, Failed> {
        let target = ItemKey { epk: key.epk.clone(), id };
        let occupant = self.lookup(&target, draft)?;
        if let Some(occupant) = self.unless_expired(&target, occupant, moment.now, draft)? {
            return Err(self.conflict(&occupant, &doc).into());
        }
        draft.moving = Some(before.item().header.rid);
        self.remove(key, before, Removal::Request, draft, meter)?;
        let outcome = self.put(target, None, doc, op, moment, draft, meter)?;
        draft.moving = None;
        Ok(Outcome { effect: Effect::Replaced, ..outcome })
    }

    fn remove(
        &mut self,
        key: ItemKey,
        before: Version,
        removal: Removal,
        draft: &mut Draft,
        meter: &mut Meter,
    ) -> Result<Outcome, Failed> {
        self.load_size(&key.epk)?;
        self.claim(&key, Some(&before.item().doc), None, 0, draft)?;
        let changed = count_write(Some(&before), None, meter);
        self.hold_change(&key, (Some(&before), None), changed, draft)?;
        draft.bytes -= i64::from(before.item().header.json_bytes);
        draft.items -= 1;
        let item = before.item().clone();
        let outcome = Outcome { effect: Effect::Deleted, item, id: key.id.clone(), meter: *meter };
        draft.push(Write { key, before: Some(before), after: None, removal });
        Ok(outcome)
    }

    /// A full logical partition still takes writes that make it smaller.
    fn check_size(&mut self, scope: &Epk, growth: i64, draft: &Draft) -> Result<(), Failed> {
        let limit = self.limits.logical_partition_bytes;
        let size = self.load_size(scope)?;
        let after = size.bytes.saturating_add_signed(draft.bytes + growth);
        if growth > 0 && after > limit { Err(OpError::LogicalPartitionFull.into()) } else { Ok(()) }
    }

    fn load_size(&mut self, scope: &Epk) -> Result<LogicalSize, Fault> {
        if let Some(size) = self.sizes.get(scope) {
            return Ok(*size);
        }
        let size = self.partition.logical_size(scope, self.snapshot)?;
        self.sizes.insert(scope.clone(), size);
        Ok(size)
    }

    /// What the transactions so far have come to, without what they were read from.
    pub(crate) fn pause(self) -> Progress {
        let Group { state, changes, created, sizes, entries, funds, .. } = self;
        Progress { state, changes, created, sizes, entries, ledger: funds.ledger }
    }

    /// Goes on where a group of the same partition and snapshot was paused.
    pub(crate) fn resume(self, progress: Progress, lender: Option<&'a dyn Lender>) -> Group<'a> {
        let Progress { state, changes, created, sizes, entries, ledger } = progress;
        Group { state, changes, created, sizes, entries, funds: Funds::of_one(lender, ledger), ..self }
    }

    /// Turns the net effect of the group into one batch. The same group gives the same bytes, whatever the order in which
    /// its tables remember things: copies of the partition are handed these bytes.
    pub fn finish(self) -> Prepared {
        let spec = &self.partition.spec;
        let mut effect = NetEffect::new(spec, self.schema, self.build.as_ref());
        for (key, change) in sorted(&self.changes) {
            effect.change(key, change);
        }
        effect.build(&self.changes);
        let (mut batch, counts) = self.partition.with_counts(|counts| effect.finish(counts));
        for (epk, size) in sorted(&self.sizes) {
            let key = keys::logical_size(spec.container, epk);
            match size.items {
                0 => batch.delete(Keyspace::Meta, key),
                _ => batch.put(Keyspace::Meta, key, size.encode()),
            }
        }
        for (entry, holders) in self.entries.changed() {
            match holders.is_empty() {
                true => batch.delete(Keyspace::Index, entry.to_vec()),
                false => batch.put(Keyspace::Index, entry.to_vec(), encode_holders(holders)),
            }
        }
        if !self.changes.is_empty() {
            batch.put(Keyspace::Meta, keys::partition_state(spec.number).to_vec(), self.state.encode());
        }
        let is_built = self.build.as_ref().is_some_and(|build| build.from != build.to);
        let schema = SchemaMark::after(self.partition.schema_mark(), self.schema)
            .filter(|_| is_built || !self.changes.is_empty());
        if let Some(mark) = schema {
            batch.put(Keyspace::Meta, keys::schema_mark(spec.number).to_vec(), mark.encode());
        }
        let build = self.build.map(|build| build.to);
        let partition_state = self.partition.state();
        let moved = (&partition_state, self.state.lsn);
        let history = self.history.finish(spec, self.schema.keeps_history, moved, &mut batch);
        let before = partition_state.lsn;
        Prepared { batch, state: self.state, before, sizes: self.sizes, counts, build, history, schema }
    }
}

impl Prepared {
    /// What a copy of the partition has to be told of the group, before its batch is handed to the engine.
    pub fn commit(&self) -> Commit {
        let PartitionState { epoch, lsn, time, .. } = self.state;
        let first = Lsn(self.before.0 + 1).min(lsn);
        Commit { epoch, region: u16::from(REGION), first, last: lsn, time, batch: self.batch.clone() }
    }
}

/// The entries of a table in the order of their keys.
fn sorted<K: Ord, V>(table: &HashMap<K, V>) -> Vec<(&K, &V)> {
    let mut entries: Vec<(&K, &V)> = table.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Charges a write; answers which entries of the index come or go.
fn count_write(before: Option<&Version>, after: Option<&Version>, meter: &mut Meter) -> TermsSize {
    if let Some(version) = before {
        meter.items_removed += 1;
        meter.bytes_removed += u64::from(version.item().header.json_bytes);
    }
    if let Some(version) = after {
        meter.items_written += 1;
        meter.bytes_written += u64::from(version.item().header.json_bytes);
    }
    let none = Terms::default();
    let (before, after) = (before.map_or(&none, Version::terms), after.map_or(&none, Version::terms));
    let mut changed = TermsSize::default();
    Terms::diff(before, after, |difference| {
        changed.add(difference.term);
        let terms = if difference.added { &mut meter.terms_added } else { &mut meter.terms_removed };
        *terms += u32::from(difference.mark.charged);
    });
    changed
}

/// A document that can never be stored is refused whatever is stored now.
fn check_ttl(action: &Action) -> Result<(), OpError> {
    action.doc().map_or(Ok(()), |doc| own_ttl(doc).map(|_| ()))
}

fn existing(stored: Option<Version>, precondition: Precondition) -> Result<Version, OpError> {
    let version = stored.ok_or(OpError::NotFound)?;
    check(precondition, Some(&version))?;
    Ok(version)
}

fn check(precondition: Precondition, stored: Option<&Version>) -> Result<(), OpError> {
    let header = stored.map(|version| &version.item().header);
    if precondition.admits(header) { Ok(()) } else { Err(OpError::PreconditionFailed) }
}

fn read(key: ItemKey, version: &Version, precondition: Precondition, meter: &mut Meter) -> Outcome {
    let mut item = version.item().clone();
    meter.items_read += 1;
    meter.bytes_read += u64::from(item.header.json_bytes);
    let effect = match precondition.admits(Some(&item.header)) {
        true => Effect::Read,
        false => {
            // Nobody is shown what they have already, so it need not be held until the group is written.
            item.doc = DocBuilder::new().finish();
            Effect::NotModified
        }
    };
    Outcome { effect, item, id: key.id, meter: *meter }
}

/// The outcome of an edit that had nothing to do: it has read what is there.
fn unchanged(key: ItemKey, stored: Option<&Version>, meter: &mut Meter) -> Outcome {
    let (effect, item) = match stored {
        Some(version) => (Effect::Unchanged, version.item().clone()),
        None => (Effect::Absent, Item::none()),
    };
    meter.items_read += 1;
    meter.bytes_read += u64::from(item.header.json_bytes);
    Outcome { effect, item, id: key.id, meter: *meter }
}

/// Bytes that an operation adds to what the answer to its transaction must hold.
fn read_bytes(outcome: &Outcome) -> usize {
    match outcome.effect {
        Effect::Read | Effect::Unchanged => outcome.item.header.json_bytes as usize,
        Effect::Created | Effect::Replaced | Effect::Deleted | Effect::NotModified | Effect::Absent => 0,
    }
}
