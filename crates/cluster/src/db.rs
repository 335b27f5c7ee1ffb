//! The facade that gateways call.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use orrery_doc::{Epk, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, epk};
use orrery_query::ProgramCache;
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{INDEX_BUILDS_MAX, LOOK_UPS_MAX};
use orrery_store::{
    Action, Done, Effect, Failed, Fault, Lsn, Op, OpError, Partition, Schema, Target, Txn, TxnError, WholeKey,
};

use tokio::sync::Semaphore;

use crate::catalog::{Catalog, Container, Counters, Loaded, catalog_spec, upgrade};
use crate::committer::Committer;
use crate::copy::Jobs;
use crate::elastic::Balance;
use crate::error::{Error, ErrorKind, Failure, Result};
use crate::insight::Insight;
use crate::look::Look;
use crate::memory::Memory;
use crate::options::{Account, DbOptions, OpenError, disk_options};
use crate::range::{Range, RangeParts, Totals, WriteError};
use crate::receipt::{Charge, Receipt, Served};
use crate::recovery::recover;
use crate::request::{PageOptions, ReadOptions, ReadReply, WriteOptions, WriteReply};
use crate::ru;
use crate::script::Scripts;
use crate::session::{RangeProgress, SessionToken};
use crate::throttle::{Throttled, Who};
use crate::throughput::{Claim, Hours, KeyMark, Lane};
use crate::turns::Turns;
use crate::world::World;

/// From here on a logical partition is watched.
const NEAR_LIMIT_PERCENT: u64 = 80;

/// The whole database; clones share it.
#[derive(Clone)]
pub struct Db {
    pub(crate) inner: Arc<Inner>,
    /// On whose behalf it is asked.
    lane: Lane,
}

pub(crate) struct Inner {
    pub world: World,
    pub options: DbOptions,
    pub committer: Arc<Committer>,
    pub catalog: ArcSwap<Catalog>,
    pub catalog_range: Arc<Range>,
    /// Feeds and queries that take long.
    pub turns: Turns,
    /// Lists of the largest logical partitions that are being made; each holds a thread.
    pub look_ups: Semaphore,
    pub scripts: Scripts,
    /// Queries that were compiled before.
    pub programs: ProgramCache,
    pub memory: Memory,
    pub insight: Insight,
    /// Indexes that may be built at once.
    pub index_builds: Semaphore,
    /// Splits and merges.
    pub balance: Arc<Balance>,
    /// Held while expired items are deleted.
    pub purging: tokio::sync::Mutex<()>,
    /// Held while the catalog changes: one change at a time.
    pub control: tokio::sync::Mutex<Counters>,
    /// What was used of offers.
    pub hours: Hours,
    /// Copying and re-keying that is under way.
    pub jobs: Jobs,
}

impl Db {
    /// Opens or creates the database; must be called inside a tokio runtime.
    pub fn open(options: DbOptions) -> std::result::Result<Db, OpenError> {
        Db::open_in(World::Real, options)
    }

    /// The same in a world of a test's choice.
    pub fn open_in(world: World, options: DbOptions) -> std::result::Result<Db, OpenError> {
        let engine = match disk_options(&options) {
            Some(disk) => Engine::open(disk)?,
            None => Engine::in_memory(),
        };
        let snapshot = engine.snapshot();
        let partition = Partition::open(catalog_spec(), &snapshot)?;
        let memory = Memory::in_world(options.memory, world.clone());
        let mut loaded = Loaded::read(&partition, &snapshot, &options, &memory)?;
        recover(&engine, &partition, &loaded.catalog)?;
        drop(snapshot);
        let catalog_range = catalog_range(partition, &options, &memory);
        upgrade(&engine, &catalog_range, &mut loaded, &options)?;
        let committer = Arc::new(Committer::start(Arc::new(engine), options.durability, world.clone()));
        let inner = Inner {
            catalog_range: Arc::new(catalog_range),
            committer,
            catalog: ArcSwap::from_pointee(loaded.catalog),
            turns: Turns::new(processors(), world.clone()),
            look_ups: Semaphore::new(LOOK_UPS_MAX),
            scripts: Scripts::new(&options.memory),
            programs: ProgramCache::default(),
            memory,
            insight: Insight::default(),
            index_builds: Semaphore::new(INDEX_BUILDS_MAX),
            balance: Arc::default(),
            purging: tokio::sync::Mutex::new(()),
            control: tokio::sync::Mutex::new(loaded.counters),
            hours: loaded.hours,
            jobs: Jobs::default(),
            options,
            world,
        };
        let db = Db::of(Arc::new(inner));
        db.resume_purges(loaded.unfinished);
        db.resume_index_builds();
        db.abandon_merges_later();
        db.balance_later();
        db.purge_expired_later();
        db.observe_partitions_later();
        db.erase_histories_later();
        db.note_hours_later();
        db.resume_jobs();
        Ok(db)
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Db {
        Db { inner, lane: Lane::default() }
    }

    /// Carries a change of the catalog to its end, also when the client that asked for it goes away: a change that is stored
    /// and that nobody sees would make the next one contradict it.
    pub(crate) async fn carry<T, W>(&self, work: impl FnOnce(Db) -> W) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        match self.world().spawn(work(self.clone())).await {
            Ok(done) => done.map_err(charged),
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(_) => Err(Fault::Stopping.into()),
        }
    }

    /// The database of a background task, which must not keep it open.
    pub(crate) fn alive(inner: &Weak<Inner>) -> Option<Db> {
        inner.upgrade().map(Db::of)
    }

    /// The same database, asked on behalf of requests of a priority or a throughput bucket.
    pub fn in_lane(&self, lane: Lane) -> Db {
        Db { inner: self.inner.clone(), lane }
    }

    /// Writes what is queued and closes the storage, so that the next start replays nothing.
    pub async fn close(&self) {
        self.close_hours().await;
        let inner = self.inner.clone();
        let stopped = self.world().aside(move || {
            inner.committer.stop();
            inner.committer.engine().close()
        });
        match stopped.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the storage did not close cleanly"),
            Err(error) => tracing::error!(%error, "stopping the committer failed"),
        }
    }

    pub fn account(&self) -> &Account {
        &self.inner.options.account
    }

    pub(crate) fn world(&self) -> &World {
        &self.inner.world
    }

    pub fn options(&self) -> &DbOptions {
        &self.inner.options
    }

    /// The budget that everything takes its memory from.
    pub fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// Whether writes are refused at present, except those that make room.
    pub fn is_disk_full(&self) -> bool {
        self.inner.committer.engine().is_full()
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog.load_full()
    }

    /// The same for those who look and are done: it need not be counted who holds it.
    pub fn catalog_now(&self) -> impl Deref<Target = Arc<Catalog>> {
        self.inner.catalog.load()
    }

    /// How far the catalog's own partition is.
    pub fn catalog_lsn(&self) -> Lsn {
        self.inner.catalog_range.replica.partition.lsn()
    }

    /// Reads one item, and waits where the copy of its partition that is here must catch up first.
    pub async fn read(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        target: &Target,
        options: &ReadOptions,
    ) -> Result<ReadReply> {
        loop {
            match self.read_now(container, key, target, options)? {
                Look::Done(reply) => return Ok(reply),
                Look::Wait(wait) => wait.over().await,
            }
        }
    }

    /// The same without waiting: what was published is there.
    pub fn read_now(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        target: &Target,
        options: &ReadOptions,
    ) -> Result<Look<ReadReply>> {
        let epk = epk(&container.definition.key, key);
        let range = container.range_of(&epk);
        let lsn = self
            .admit_key(
                container,
                range,
                KeyMark::of(&epk),
                || Who::of((&epk, target)),
                options.session.as_ref(),
            )
            .inspect_err(|error| range.note(|insight| insight.refused(&epk, key, error)))?;
        let snapshot = self.inner.committer.snapshot();
        range.replica.check_kept()?;
        let whole_key = WholeKey::of(&container.definition.key, key);
        let view = range.replica.view(&snapshot, lsn).only(whole_key);
        let found = view.item(&epk, target);
        drop(snapshot);
        let served = |item_lsn| Some(Served { range_id: range.descriptor.id, lsn, item_lsn });
        match found {
            Ok(Some(item)) => {
                let charge = ru::read(u64::from(item.header.json_bytes), options.consistency);
                self.pay_key(container, range, KeyMark::of(&epk), &charge);
                range.note(|insight| insight.keyed(&epk, key, charge.total()));
                self.record_read(container, &item);
                let not_modified = !options.precondition.admits(Some(&item.header));
                let receipt = Receipt { charge, served: served(Some(item.header.lsn)) };
                Ok(Look::Done(ReadReply { item, not_modified, receipt }))
            }
            Ok(None) => {
                let charge = ru::miss();
                self.pay_key(container, range, KeyMark::of(&epk), &charge);
                range.note(|insight| insight.keyed(&epk, key, charge.total()));
                let kind = ErrorKind::from(OpError::NotFound);
                Err(Error::from(kind).with(Receipt { charge, served: served(None) }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs operations on one logical partition, all or none.
    pub async fn write(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        ops: Vec<Op>,
        options: &WriteOptions,
    ) -> Result<WriteReply> {
        self.write_together(container, key, ops, options).await.map_err(|failure| failure.error)
    }

    /// The same for those who want to know what each operation cost that was tried in vain.
    pub async fn write_together(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        ops: Vec<Op>,
        options: &WriteOptions,
    ) -> std::result::Result<WriteReply, Box<Failure>> {
        let scope = epk(&container.definition.key, key);
        let range = container.range_of(&scope);
        // Writes go to the newest state whatever the token says, so it decides nothing unless something is read too.
        let reads = || ops.iter().any(|op| matches!(op.action, Action::Read));
        let session = options.session.as_ref().filter(|_| reads());
        let mark = KeyMark::of(&scope);
        let before = self
            .admit_key(container, range, mark, || who_writes(&scope, &ops), session)
            .inspect_err(|error| range.note(|insight| insight.refused(&scope, key, error)))?;
        let kind = self.kind_to_record(&ops);
        let txn = Txn { scope: scope.clone(), key: Some(key.clone()), ops, now: self.world().now() };
        let answer = range.write(&self.inner.committer, txn).await;
        // The partition may have been split while the write waited.
        let range = &range.current(&scope);
        match answer {
            Ok(Done { lsn, outcomes, logical_bytes }) => {
                self.watch_size(container, range, key, logical_bytes);
                range.note(|insight| insight.sized(&scope, key, logical_bytes));
                let charges: Vec<Charge> = outcomes.iter().map(|outcome| ru::write(&outcome.meter)).collect();
                let charge = Charge::sum(&charges);
                self.pay_key(container, range, mark, &charge);
                range.note(|insight| insight.keyed(&scope, key, charge.total()));
                self.record_write(container, kind, &outcomes);
                let shown = outcomes.last().filter(|outcome| outcome.effect != Effect::Absent);
                let item_lsn = shown.map(|outcome| outcome.item.header.lsn);
                let served = Some(Served { range_id: range.descriptor.id, lsn, item_lsn });
                Ok(WriteReply { outcomes, charges, receipt: Receipt { charge, served } })
            }
            Err(WriteError::Refused(refusal)) => Err(self.refuse(container, range, mark, *refusal))
                .inspect_err(|failure| range.note(|insight| insight.refused(&scope, key, &failure.error))),
            Err(WriteError::Unwritten(kind)) => {
                let served = Some(Served { range_id: range.descriptor.id, lsn: before, item_lsn: None });
                Err(Error::from(kind).with(Receipt { charge: Charge::default(), served }).into())
            }
        }
    }

    /// Warns once, when a logical partition comes near the size at which it takes no more.
    fn watch_size(&self, container: &Container, range: &Range, key: &PartitionKey, bytes: (u64, u64)) {
        let limit = self.inner.options.limits.logical_partition_bytes;
        let near = limit / 100 * NEAR_LIMIT_PERCENT;
        if bytes.1 < near {
            return;
        }
        if let Ok(lead) = range.lead() {
            lead.counters.writes_near_limit.fetch_add(1, Ordering::Relaxed);
        }
        if bytes.0 < near {
            tracing::warn!(
                database = container.database_id,
                container = container.resource.id,
                range = range.descriptor.id,
                partition_key = key.to_json(),
                bytes = bytes.1,
                limit,
                "a logical partition is near its size limit"
            );
        }
    }

    fn refuse(&self, container: &Container, range: &Range, mark: KeyMark, refusal: TxnError) -> Box<Failure> {
        if matches!(refusal.error, Failed::Refused(OpError::LogicalPartitionFull))
            && let Ok(lead) = range.lead()
        {
            lead.counters.writes_over_limit.fetch_add(1, Ordering::Relaxed);
        }
        let charges: Vec<Charge> = refusal.meters.iter().map(ru::write).collect();
        let charge = Charge::sum(&charges);
        self.pay_key(container, range, mark, &charge);
        let served = Some(Served {
            range_id: range.descriptor.id,
            lsn: range.replica.partition.lsn(),
            item_lsn: None,
        });
        let kind = ErrorKind::from(refusal);
        Box::new(Failure { error: Error::from(kind).with(Receipt { charge, served }), charges })
    }

    /// Checks the budgets and the session; the LSN returned is one that the next snapshot holds at least.
    pub(crate) fn admit(&self, container: &Container, range: &Range, page: &PageOptions) -> Result<Lsn> {
        let who = || Who::of((range.descriptor.id, &page.continuation));
        self.admit_key(container, range, KeyMark::default(), who, page.session.as_ref())
    }

    /// The same for a request that concerns one logical partition.
    pub(crate) fn admit_key(
        &self,
        container: &Container,
        range: &Range,
        key: KeyMark,
        who: impl Fn() -> Who,
        session: Option<&SessionToken>,
    ) -> Result<Lsn> {
        let lead = range.lead()?;
        let now = self.world().monotonic();
        let claim = Claim { lane: self.lane, key };
        let lsn = range.replica.partition.lsn();
        let served = Some(Served { range_id: range.descriptor.id, lsn, item_lsn: None });
        let shared = container.shared_budget.as_ref().map_or(Ok(()), |budget| {
            // Budgets of partitions know the container's default; one that is shared has many containers.
            let priority = self.lane.priority.or(Some(container.throughput.default_priority));
            let claim = Claim { lane: Lane { priority, bucket: None }, key: KeyMark::default() };
            let keep = |refused: &Throttled| lead.budget.keep_place(who(), now + refused.wait);
            budget.admit(claim, || Who::of((container.resource.rid, who())), now).inspect_err(keep)
        });
        if let Err(refused) = shared.and_then(|()| lead.budget.admit(claim, who, now)) {
            lead.insight.throttled();
            let (retry_after_ms, cause) = (refused.wait_ms() as u32, refused.cause);
            let receipt = Receipt { charge: Charge::default(), served };
            return Err(Error::from(ErrorKind::Throttled { retry_after_ms, cause }).with(receipt));
        }
        if session.is_some_and(|session| self.is_behind(range, lsn, session)) {
            let receipt = Receipt { charge: ru::miss(), served };
            return Err(Error::from(ErrorKind::SessionUnavailable).with(receipt));
        }
        Ok(lsn)
    }

    /// Whether a client has seen more of a range than is there.
    pub(crate) fn is_behind(&self, range: &Range, lsn: Lsn, session: &SessionToken) -> bool {
        let catalog = self.catalog_now();
        let account = catalog.account();
        let state = account.is_written_in_many().then(|| range.replica.partition.state());
        let regions = state.as_ref().map(|state| &state.regions[..]);
        let here = RangeProgress { version: account.version, lsn, regions };
        session.is_ahead(range.descriptor.id, &range.descriptor.parents, here)
    }

    pub(crate) fn pay(&self, container: &Container, range: &Range, charge: &Charge) {
        self.pay_key(container, range, KeyMark::default(), charge);
    }

    /// The same for a request that concerned one logical partition.
    pub(crate) fn pay_key(&self, container: &Container, range: &Range, key: KeyMark, charge: &Charge) {
        let (units, now) = (charge.total(), self.world().monotonic());
        if let Ok(lead) = range.lead() {
            lead.insight.charged(units);
            lead.budget.pay(Claim { lane: self.lane, key }, units, now);
        }
        if let Some(budget) = &container.shared_budget {
            budget.pay(Claim::default(), units, now);
        }
    }

    /// The same for work that no client has asked for.
    pub(crate) fn pay_aside(&self, container: &Container, range: &Range, charge: &Charge) {
        let (units, now) = (charge.total(), self.world().monotonic());
        if let Ok(lead) = range.lead() {
            lead.insight.charged(units);
            lead.budget.pay_aside(units, now);
        }
        if let Some(budget) = &container.shared_budget {
            budget.pay_aside(units, now);
        }
    }
}

/// A change of the catalog that was refused after a look at what is there costs what a look costs.
fn charged(error: Error) -> Error {
    let has_looked = matches!(
        error.kind,
        ErrorKind::AlreadyExists(_)
            | ErrorKind::NotFound(_)
            | ErrorKind::OwnerNotFound(_)
            | ErrorKind::PreconditionFailed
    );
    match has_looked && error.receipt.is_none() {
        true => error.with(Receipt { charge: Charge::flat("catalog read", ru::METADATA_READ), served: None }),
        false => error,
    }
}

/// A write is recognised by what it does to which items.
fn who_writes(scope: &Epk, ops: &[Op]) -> Who {
    let each = |op: &Op| Who::of((std::mem::discriminant(&op.action), &op.target)).0;
    ops.iter().fold(Who::of(scope), |who, op| Who::of((who, each(op))))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The catalog's own partition: no budget, no index, one logical partition.
pub(crate) fn catalog_range(partition: Partition, options: &DbOptions, memory: &Memory) -> Range {
    let key =
        PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths: vec![] };
    let mut limits = options.limits;
    limits.logical_partition_bytes = u64::MAX;
    let schema = Schema::new(key, 0, IndexingPolicy::none());
    let totals = Totals::of([&partition]);
    let parts =
        RangeParts { id: 0, parents: vec![], schema, rate: 0.0, limits, totals, memory: memory.clone() };
    Range::new(partition, parts)
}
