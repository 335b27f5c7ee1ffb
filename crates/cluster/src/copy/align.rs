//! Bringing the target in line with what the source wants of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_doc::{Doc, Epk, PartitionKey, epk};
use orrery_store::engine::Snapshot;
use orrery_store::limits::WRITE_COPIES;
use orrery_store::{
    Action, ChangeKind, FLAG_UNINDEXED, Fault, HistoryEntry, Item, ItemId, ItemKey, Op, OpError,
    Precondition, Target, Txn,
};
use tokio::task::JoinSet;

use super::job::{Collision, CollisionCause, Place};
use super::source::refuse;
use crate::catalog::Container;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Consumer;
use crate::range::WriteError;

/// Operations of one transaction, which lie in one logical partition.
const OPS_PER_TXN: usize = 50;
/// Before a write is tried again that found the disk or a queue full.
const PAUSE_REFUSED: Duration = Duration::from_millis(100);
/// How long a write waits for its memory before it looks at the deadline.
const MEMORY_PATIENCE: Duration = Duration::from_secs(1);

/// The two containers of a job, as they are during one step.
#[derive(Clone)]
pub(super) struct Pair {
    pub db: Db,
    pub source: Arc<Container>,
    pub target: Arc<Container>,
    /// Until when a write is tried again that found the disk or a queue full; without it, as long as it takes.
    pub deadline: Option<Instant>,
}

/// What is to be true of one item of the source.
pub(super) struct Wish {
    source: ItemKey,
    /// Places in the target where an older version may lie.
    stale: Vec<ItemKey>,
    /// The copy of the item goes before it comes again: two items may have exchanged the values of a unique key, and
    /// then neither can be overwritten first.
    afresh: bool,
    wanted: Option<Wanted>,
}

struct Wanted {
    place: ItemKey,
    doc: Doc,
    indexed: bool,
    unlinked: bool,
    /// When the source was given this version.
    time: u64,
}

/// What came of some wishes.
#[derive(Default)]
pub(super) struct Aligned {
    pub collisions: Vec<Collision>,
    /// Items that met a unique key of another.
    pub parked: Vec<Place>,
}

/// The operations of a step by the logical partition of the target, each with the item of the source it is for.
type Plan = BTreeMap<Epk, Vec<(ItemKey, Op)>>;

impl Pair {
    /// Whether the time is over in which this should have been done.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.db.world().is_past(deadline))
    }

    /// Where the target would have an item; none when its key is too long for it.
    fn place(&self, doc: &Doc, id: &ItemId) -> Option<ItemKey> {
        let def = &self.target.definition.key;
        let key = PartitionKey::extract(def, doc.as_ref());
        key.check_length().ok()?;
        Some(ItemKey { epk: epk(def, &key), id: id.clone() })
    }

    /// Which item of the source a copy is of: its properties tell the key, and the id is the same.
    fn origin(&self, copy: &Item, id: &ItemId) -> ItemKey {
        let def = &self.source.definition.key;
        let key = PartitionKey::extract(def, copy.doc.as_ref());
        ItemKey { epk: epk(def, &key), id: id.clone() }
    }

    fn read(&self, container: &Container, snapshot: &Snapshot, key: &ItemKey) -> Result<Option<Item>> {
        let range = container.range_of(&key.epk);
        let lsn = range.replica.partition.lsn();
        let view = range.replica.view(snapshot, lsn);
        view.item(&key.epk, &Target::Id(key.id.clone())).map_err(refuse)
    }

    /// A wish for an item that the walk has met.
    fn wish_for(&self, source: ItemKey, stale: Vec<ItemKey>, item: Option<Item>, out: &mut Wishes) {
        let Some(item) = item else {
            out.wishes.push(Wish { source, stale, afresh: false, wanted: None });
            return;
        };
        match self.place(&item.doc, &source.id) {
            Some(place) => {
                let indexed = item.header.flags & FLAG_UNINDEXED == 0;
                let unlinked = item.header.is_unlinked();
                let wanted = Some(Wanted { place, doc: item.doc, indexed, unlinked, time: item.header.time });
                out.wishes.push(Wish { source, stale, afresh: false, wanted });
            }
            None => {
                out.collisions.push(self.collision(CollisionCause::KeyTooLong, &item.doc, &source.id, None));
                out.wishes.push(Wish { source, stale, afresh: false, wanted: None });
            }
        }
    }

    pub fn wishes_of_items(&self, items: Vec<(ItemKey, Item)>) -> Wishes {
        let mut out = Wishes::default();
        items.into_iter().for_each(|(key, item)| self.wish_for(key, vec![], Some(item), &mut out));
        out
    }

    /// What a page of changes invites to look at, as it is now.
    pub fn wishes_of_changes(&self, changes: Vec<HistoryEntry>, parked: &[Place]) -> Result<Wishes> {
        let mut stale: BTreeMap<(Epk, ItemId), Vec<ItemKey>> = BTreeMap::new();
        for place in parked {
            stale.entry((place.epk.clone(), place.id.clone())).or_default();
        }
        for change in changes {
            let epk = change.key.epk.clone();
            let (gone, id) = match (change.kind, change.replaced) {
                (ChangeKind::Deleted | ChangeKind::Expired, _) => (Some(change.item), change.key.id.clone()),
                (_, Some(replaced)) => (Some(replaced.item), replaced.id),
                (_, None) => (None, change.key.id.clone()),
            };
            stale.entry((epk.clone(), change.key.id)).or_default();
            let places = stale.entry((epk, id.clone())).or_default();
            if let Some(place) = gone.and_then(|gone| self.place(&gone.doc, &id))
                && !places.contains(&place)
            {
                places.push(place);
            }
        }
        let snapshot = self.db.inner.committer.snapshot_owned();
        let mut out = Wishes::default();
        for ((epk, id), places) in stale {
            let key = ItemKey { epk, id };
            let item = self.read(&self.source, &snapshot, &key)?;
            let afresh = parked.iter().any(|place| place.epk == key.epk && place.id == key.id);
            self.wish_for(key, places, item, &mut out);
            if let Some(wish) = out.wishes.last_mut() {
                wish.afresh = afresh;
            }
        }
        Ok(out)
    }

    /// Makes the wishes come true: first what goes, then what comes.
    pub async fn align(&self, wishes: Wishes) -> Result<Aligned> {
        let mut done = Aligned { collisions: wishes.collisions, parked: Vec::new() };
        let wishes = wishes.wishes;
        let deletes = self.db.world().blocking(|| self.plan_deletes(&wishes))?;
        if !deletes.is_empty() {
            self.write(deletes, &mut done).await?;
        }
        let upserts = self.db.world().blocking(|| self.plan_upserts(wishes, &mut done))?;
        self.write(upserts, &mut done).await?;
        Ok(done)
    }

    fn plan_deletes(&self, wishes: &[Wish]) -> Result<Plan> {
        let snapshot = self.db.inner.committer.snapshot_owned();
        let mut plan = Plan::new();
        for wish in wishes {
            let wanted = wish.wanted.as_ref().map(|wanted| &wanted.place);
            let stale = wish.stale.iter().filter(|place| Some(*place) != wanted);
            for place in stale.chain(wanted.filter(|_| wish.afresh)) {
                let Some(copy) = self.read(&self.target, &snapshot, place)? else { continue };
                if self.origin(&copy, &place.id) != wish.source {
                    continue;
                }
                let op = Op {
                    target: Target::Id(place.id.clone()),
                    action: Action::Delete,
                    precondition: Precondition::IfMatch(Some(copy.header.etag)),
                    indexed: true,
                    unlinked: false,
                };
                plan.entry(place.epk.clone()).or_default().push((wish.source.clone(), op));
            }
        }
        Ok(plan)
    }

    fn plan_upserts(&self, wishes: Vec<Wish>, done: &mut Aligned) -> Result<Plan> {
        let snapshot = self.db.inner.committer.snapshot_owned();
        let mut taken: HashMap<(Epk, ItemId), ItemKey> = HashMap::new();
        let mut plan = Plan::new();
        for Wish { source, wanted, .. } in wishes {
            let Some(Wanted { place, doc, indexed, unlinked, time }) = wanted else { continue };
            let slot = (place.epk.clone(), place.id.clone());
            let mut other = taken.get(&slot).cloned();
            let is_taken = other.is_some();
            if !is_taken && let Some(copy) = self.read(&self.target, &snapshot, &place)? {
                let origin = self.origin(&copy, &place.id);
                if origin != source {
                    other = Some(origin);
                } else if copy.doc.bytes() == doc.bytes()
                    && copy.header.time >= time.min(self.db.world().now())
                {
                    // An older copy is written again though it is the same: its time to live began too early.
                    taken.insert(slot, source);
                    continue;
                }
            }
            if let Some(other) = other {
                match self.rivalry(&source, &other, &place)? {
                    Rivalry::Collision(key) => {
                        done.collisions.push(self.collision(
                            CollisionCause::SameId,
                            &doc,
                            &source.id,
                            Some(key),
                        ));
                        continue;
                    }
                    Rivalry::NotWanted => continue,
                    Rivalry::Other => {}
                }
                if is_taken && let Some(ops) = plan.get_mut(&place.epk) {
                    ops.retain(|(for_item, _)| *for_item != other);
                }
            }
            taken.insert(slot, source.clone());
            let op = Op {
                target: Target::Id(place.id),
                action: Action::Upsert(doc),
                precondition: Precondition::None,
                indexed,
                unlinked,
            };
            plan.entry(place.epk).or_default().push((source, op));
        }
        Ok(plan)
    }

    /// Two items of the source want one place, or did so a moment ago: who wants it in one snapshot of the source?
    fn rivalry(&self, item: &ItemKey, other: &ItemKey, place: &ItemKey) -> Result<Rivalry> {
        let snapshot = self.db.inner.committer.snapshot_owned();
        let wanting = |key: &ItemKey| -> Result<Option<Item>> {
            let item = self.read(&self.source, &snapshot, key)?;
            Ok(item.filter(|item| self.place(&item.doc, &key.id).as_ref() == Some(place)))
        };
        Ok(match (wanting(item)?, wanting(other)?) {
            (None, _) => Rivalry::NotWanted,
            (Some(_), None) => Rivalry::Other,
            (Some(_), Some(other)) => {
                let key = PartitionKey::extract(&self.source.definition.key, other.doc.as_ref());
                Rivalry::Collision(key.to_json())
            }
        })
    }

    fn collision(&self, cause: CollisionCause, doc: &Doc, id: &ItemId, other: Option<String>) -> Collision {
        let key =
            |container: &Container| PartitionKey::extract(&container.definition.key, doc.as_ref()).to_json();
        Collision {
            cause,
            id: id.to_string(),
            source_key: key(&self.source),
            target_key: key(&self.target),
            other_source_key: other,
        }
    }

    /// Writes everything, many transactions at once; those that are refused are tried operation by operation.
    async fn write(&self, plan: Plan, done: &mut Aligned) -> Result<()> {
        let mut writes = JoinSet::new();
        for (scope, ops) in plan {
            let mut ops = ops.into_iter().peekable();
            while ops.peek().is_some() {
                let part: Vec<(ItemKey, Op)> = ops.by_ref().take(OPS_PER_TXN).collect();
                let (pair, scope) = (self.clone(), scope.clone());
                self.db.world().spawn_among(&mut writes, async move { pair.write_part(scope, part).await });
            }
        }
        let mut failure = None;
        while let Some(written) = writes.join_next().await {
            match written.map_err(|_| Fault::Stopping.into()).flatten() {
                Ok(met) => {
                    for (source, doc) in met {
                        let collision = self.collision(CollisionCause::UniqueKey, &doc, &source.id, None);
                        done.collisions.push(collision);
                        done.parked.push(Place::from(source));
                    }
                }
                // What waits in a queue is written all the same, so the others are waited for: who tries again must
                // see what they have left in the target.
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Returns the items that met a unique key of another.
    async fn write_part(&self, scope: Epk, part: Vec<(ItemKey, Op)>) -> Result<Vec<(ItemKey, Doc)>> {
        let ops: Vec<Op> = part.iter().map(|(_, op)| op.clone()).collect();
        match self.write_txn(&scope, ops).await {
            Ok(()) => return Ok(Vec::new()),
            Err(error) if part.len() == 1 => return met(error, part),
            Err(error) if may_go_alone(&error.kind) => {}
            Err(error) => return Err(error),
        }
        let mut all = Vec::new();
        for (source, op) in part {
            if let Err(error) = self.write_txn(&scope, vec![op.clone()]).await {
                all.extend(met(error, vec![(source, op)])?);
            }
        }
        Ok(all)
    }

    async fn write_txn(&self, scope: &Epk, ops: Vec<Op>) -> Result<()> {
        let rid = self.target.resource.rid;
        let mut target = self.target.clone();
        loop {
            let txn = Txn { scope: scope.clone(), key: None, ops: ops.clone(), now: self.db.world().now() };
            let memory = self.db.memory();
            let bytes = (txn.text_bytes() * WRITE_COPIES).min(memory.shares().writes);
            // As a gateway has it for a body.
            let Some(_held) = memory.take(Consumer::Writes, bytes, MEMORY_PATIENCE).await else {
                if self.is_late() {
                    return Err(ErrorKind::Overloaded.into());
                }
                self.db.world().sleep(PAUSE_REFUSED).await;
                continue;
            };
            match target.range_of(scope).write(&self.db.inner.committer, txn).await {
                Ok(_) => return Ok(()),
                Err(WriteError::Refused(refusal)) => {
                    return Err(ErrorKind::from(*refusal).into());
                }
                Err(WriteError::Unwritten(kind)) if kind.is_stopping() => return Err(kind.into()),
                Err(WriteError::Unwritten(kind)) if self.is_late() => return Err(kind.into()),
                Err(WriteError::Unwritten(ErrorKind::RangeGone)) => {
                    let current = self.db.catalog().container_by_rid(rid).cloned();
                    target = current.ok_or_else(|| Error::from(ErrorKind::RangeGone))?;
                    self.db.world().sleep(PAUSE_REFUSED).await;
                }
                Err(WriteError::Unwritten(_)) => self.db.world().sleep(PAUSE_REFUSED).await,
            }
        }
    }
}

/// Whether the operations of a failed transaction may be done one by one.
fn may_go_alone(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Op { .. } | ErrorKind::Fault { fault: Fault::TooMuchMemory { .. }, .. })
}

/// What a refused operation means: some refusals are no trouble, some concern the item, all others end the job.
fn met(error: Error, part: Vec<(ItemKey, Op)>) -> Result<Vec<(ItemKey, Doc)>> {
    let ErrorKind::Op { error: refusal, .. } = &error.kind else { return Err(error) };
    match refusal {
        // Another client deleted or changed the copy meanwhile.
        OpError::NotFound | OpError::PreconditionFailed => Ok(Vec::new()),
        OpError::UniqueConflict => {
            let doc = |(source, op): (ItemKey, Op)| match op.action {
                Action::Upsert(doc) => Some((source, doc)),
                _ => None,
            };
            Ok(part.into_iter().filter_map(doc).collect())
        }
        _ => Err(error),
    }
}

/// What a page asks of the target, and items that cannot have a place there.
#[derive(Default)]
pub(super) struct Wishes {
    wishes: Vec<Wish>,
    collisions: Vec<Collision>,
}

enum Rivalry {
    /// Both want it; the key of the other.
    Collision(String),
    /// The item has changed since; that change is still to be read.
    NotWanted,
    /// The other no longer wants it.
    Other,
}
