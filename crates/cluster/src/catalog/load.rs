//! Building the catalog from what partition 0 holds.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use orrery_doc::{Doc, EpkRange};
use orrery_store::engine::Snapshot;
use orrery_store::{ItemHeader, Lifetimes, Partition, PartitionSpec, Scan, View};

use super::account::AccountRecord;
use super::apply::{Change, ContainerParts};
use super::indexes::Policies;
use super::record::{
    ContainerRecord, Counters, DatabaseRecord, DroppedRecord, FORMAT, FORMAT_OLDEST, GoneRecord, HoursRecord,
    IndexRecord, OfferRecord, RangesRecord, Record, RetiredRecord, to_doc,
};
use super::{Catalog, Container, ContainerDefinition, Database, Usage};
use crate::memory::Memory;
use crate::offer::Offer;
use crate::options::{DbOptions, OpenError};
use crate::range::{Range, RangeParts, Totals};
use crate::resource::{Resource, ResourceKind};
use crate::rid::Rid;
use crate::throttle::Budget;
use crate::throughput::Hours;

/// The catalog as it was when the server stopped.
pub struct Loaded {
    pub catalog: Catalog,
    /// Those that are stored, with the format of what they were stored with.
    pub counters: Counters,
    /// Whether the account's record is stored as it is in the catalog.
    pub is_account_stored: bool,
    /// How many were read.
    pub records: usize,
    pub hours: Hours,
    pub unfinished: Unfinished,
}

/// What the server was erasing when it stopped.
#[derive(Default)]
pub struct Unfinished {
    pub dropped: Vec<DroppedRecord>,
    pub retired: Vec<RetiredRecord>,
}

#[derive(Default)]
struct Records {
    read: usize,
    counters: Option<Counters>,
    account: Option<AccountRecord>,
    hours: Vec<HoursRecord>,
    unfinished: Unfinished,
    /// What the catalog that readers see is made of.
    shown: Vec<(Record, ItemHeader)>,
}

impl Loaded {
    pub fn read(
        partition: &Partition,
        snapshot: &Snapshot,
        options: &DbOptions,
        memory: &Memory,
    ) -> Result<Loaded, OpenError> {
        let records = Records::read(partition, snapshot)?;
        let counters = records.counters.clone().unwrap_or_else(Counters::first);
        if !(FORMAT_OLDEST..=FORMAT).contains(&counters.format) {
            let (found, oldest, newest) = (counters.format, FORMAT_OLDEST, FORMAT);
            return Err(OpenError::Format { found, oldest, newest });
        }
        let region = &options.account.region;
        let account =
            records.account.clone().map_or_else(|| AccountRecord::first(region), |old| old.named(region));
        let is_account_stored = records.account.as_ref() == Some(&account);
        let builder = Builder { options, snapshot, memory, opened: RefCell::default() };
        let mut catalog = Catalog::empty(account);
        let number = records.read;
        catalog.apply(Change { put: records.shown, gone: vec![] }, &builder)?;
        let (hours, unfinished) = (Hours::load(records.hours), records.unfinished);
        Ok(Loaded { catalog, counters, is_account_stored, records: number, hours, unfinished })
    }
}

impl Records {
    fn read(partition: &Partition, snapshot: &Snapshot) -> Result<Records, OpenError> {
        let view = View::new(partition, snapshot, partition.lsn(), Lifetimes::ENDLESS);
        let mut records = Records::default();
        let mut failure = None;
        let everything = EpkRange::full();
        let scanned = view.scan(&everything, None, |key, item| match Record::from_doc(&item.doc) {
            Ok(record) => {
                records.add(record, item.header);
                Scan::Continue
            }
            Err(error) => {
                failure = Some(format!("{}: {error}", key.id));
                Scan::Stop
            }
        });
        scanned.map_err(|error| OpenError::Catalog(error.to_string()))?;
        failure.map_or(Ok(records), |text| Err(OpenError::Catalog(text)))
    }

    fn add(&mut self, record: Record, header: ItemHeader) {
        self.read += 1;
        match record {
            Record::Counters(record) => self.counters = Some(record),
            // The operator may have given the only region another name since.
            Record::Account(record) => self.account = Some(record),
            Record::Retired(record) => self.unfinished.retired.push(record),
            Record::Dropped(record) => self.unfinished.dropped.push(record),
            Record::Hours(record) => self.hours.push(record),
            record => self.shown.push((record, header)),
        }
    }
}

/// Turns records into the live things of the catalog; used at start and after each change.
pub(super) struct Builder<'a> {
    pub options: &'a DbOptions,
    pub snapshot: &'a Snapshot,
    pub memory: &'a Memory,
    /// Partitions that were opened before their records were stored, so that opening them cannot fail afterwards.
    pub opened: RefCell<Vec<Partition>>,
}

impl Builder<'_> {
    /// Zero is unlimited.
    pub fn rate(&self, throughput: u32) -> f64 {
        if self.options.throttle { f64::from(throughput) } else { 0.0 }
    }

    pub fn budget(&self, throughput: u32) -> Arc<Budget> {
        Arc::new(Budget::new(self.rate(throughput), self.memory.world().monotonic()))
    }

    fn open(&self, spec: PartitionSpec) -> Result<Partition, OpenError> {
        let mut opened = self.opened.borrow_mut();
        match opened.iter().position(|partition| partition.spec.number == spec.number) {
            Some(place) => Ok(opened.swap_remove(place)),
            None => Ok(Partition::open(spec, self.snapshot)?),
        }
    }

    pub fn database(&self, record: DatabaseRecord, header: &ItemHeader) -> Result<Database, String> {
        let resource = make_resource(ResourceKind::Database, record.rid, to_doc(&record.body)?, header)?;
        Ok(Database { resource, containers: BTreeMap::new(), names: HashMap::new(), budget: None })
    }

    /// What a container's own record says, and what jobs and the server add to it.
    pub fn definition(
        &self,
        record: &ContainerRecord,
        header: &ItemHeader,
        catalog: &Catalog,
    ) -> Result<(Resource, ContainerDefinition), OpenError> {
        let body = to_doc(&record.body).map_err(OpenError::Catalog)?;
        let mut definition = ContainerDefinition::stored(&body)
            .map_err(|error| OpenError::Catalog(format!("container {}: {}", record.rid, error.kind)))?;
        definition.api = record.api;
        definition.order = record.order;
        definition.is_followed = catalog.is_followed(record.rid);
        definition.previous_key = catalog.previous_key(record.rid);
        definition.retention_default = self.options.limits.retention;
        let resource =
            make_resource(ResourceKind::Container, record.rid, body, header).map_err(OpenError::Catalog)?;
        Ok((resource, definition))
    }

    /// A container that was not there before, from all of its records.
    pub fn container(
        &self,
        rid: Rid,
        parts: ContainerParts,
        catalog: &Catalog,
    ) -> Result<Container, OpenError> {
        let missing = |what| OpenError::Catalog(format!("container {rid} has no {what} record"));
        let (record, header) = parts.container.ok_or_else(|| missing("container"))?;
        let index = parts.index.ok_or_else(|| missing("index"))?;
        let (ranges, ranges_header) = parts.ranges.ok_or_else(|| missing("ranges"))?;
        let (resource, definition) = self.definition(&record, &header, catalog)?;
        let database = rid.database_part().and_then(|rid| catalog.database_by_rid(rid));
        let database =
            database.ok_or_else(|| OpenError::Catalog(format!("container {rid} has no database")))?;
        let policies = Policies::of(&index, &definition).map_err(OpenError::Catalog)?;
        let units = catalog.offer_of(rid).map(|offer| offer.throughput.ceiling());
        let mut container = Container {
            resource,
            database: database.resource.rid,
            database_id: database.resource.id.clone(),
            number: record.number,
            rid_generation: record.rids,
            definition,
            ranges: vec![],
            ranges_etag: ranges_header.etag,
            ranges_ts: ranges_header.ts(),
            next_range: 0,
            gone: Arc::default(),
            index_made_by: index.made_by.clone(),
            shared_budget: database.budget.clone().filter(|_| units.is_none()),
            throughput: Arc::new(parts.settings.unwrap_or_default()),
            is_hidden: catalog.is_hidden(rid),
        };
        self.exchange_ranges(&mut container, (ranges, ranges_header), (&index, &policies), units)?;
        Ok(container)
    }

    /// Gives a container the ranges of a record. Those that it has already stay as they are.
    pub fn exchange_ranges(
        &self,
        container: &mut Container,
        (record, header): (RangesRecord, ItemHeader),
        (index, policies): (&IndexRecord, &Policies),
        units: Option<u32>,
    ) -> Result<(), OpenError> {
        let rid = record.rid;
        let rate = partition_rate(units, record.ranges.len(), self.options);
        let known = |id: u32| container.range_by_id(id).cloned();
        let mut opened = Vec::new();
        for stored in record.ranges.iter().filter(|stored| known(stored.id).is_none()) {
            let spec = stored.spec(container.number, container.rid_generation).map_err(OpenError::Catalog)?;
            opened.push((stored, self.open(spec)?));
        }
        let mut ranges: Vec<Arc<Range>> =
            record.ranges.iter().filter_map(|stored| known(stored.id)).collect();
        let totals = totals_after(container, &ranges, opened.iter().map(|(_, partition)| partition));
        for (stored, partition) in opened {
            let of_range = index.ranges.iter().find(|index| index.id == stored.id);
            let of_range = of_range.ok_or_else(|| {
                OpenError::Catalog(format!("range {} of container {rid} has no index", stored.id))
            })?;
            let parts = RangeParts {
                id: stored.id,
                parents: stored.parents.clone(),
                schema: policies.schema(&container.definition, of_range),
                rate,
                limits: self.options.limits,
                totals: totals.clone(),
                memory: self.memory.clone(),
            };
            ranges.push(Arc::new(Range::new(partition, parts)));
        }
        ranges.sort_by(|a, b| a.epk().min.cmp(&b.epk().min));
        if ranges.is_empty() {
            return Err(OpenError::Catalog(format!("container {rid} has no partition")));
        }
        let gone = record.gone.iter().map(GoneRecord::range).collect::<Result<_, String>>();
        container.gone = Arc::new(gone.map_err(OpenError::Catalog)?);
        container.next_range = record.next_range;
        (container.ranges_etag, container.ranges_ts) = (header.etag, header.ts());
        container.ranges = ranges;
        Ok(())
    }
}

/// What a container holds once some of its ranges are gone and others have come.
fn totals_after<'p>(
    container: &Container,
    kept: &[Arc<Range>],
    opened: impl Iterator<Item = &'p Partition>,
) -> Arc<Totals> {
    let Some(first) = container.ranges.first() else { return Totals::of(opened) };
    let is_kept = |range: &Arc<Range>| kept.iter().any(|other| Arc::ptr_eq(other, range));
    let gone = container.ranges.iter().filter(|range| !is_kept(range));
    let held = Usage::sum(gone.map(|range| Usage::of(&range.replica.partition.state())));
    let hold = Usage::sum(opened.map(|partition| Usage::of(&partition.state())));
    debug_assert_eq!(held, hold, "successors hold what was held before them");
    first.replica.totals.moved(held, hold);
    first.replica.totals.clone()
}

/// Each partition's even share, never above what one partition can give; zero is unlimited.
fn partition_rate(throughput: Option<u32>, partitions: usize, options: &DbOptions) -> f64 {
    let ceiling = f64::from(options.limits.partition_throughput);
    if !options.throttle {
        return 0.0;
    }
    if options.account.serverless {
        return f64::from(orrery_store::limits::SERVERLESS_THROUGHPUT);
    }
    throughput.map_or(ceiling, |units| (f64::from(units) / partitions as f64).min(ceiling))
}

pub(super) fn make_offer(record: &OfferRecord, header: &ItemHeader) -> Offer {
    let target_link = match record.target.owner() {
        Some(database) => format!("dbs/{database}/colls/{}/", record.target),
        None => format!("dbs/{}/", record.target),
    };
    Offer {
        rid: record.rid,
        target: record.target,
        target_link,
        throughput: record.throughput(),
        highest: record.highest,
        etag: header.etag,
        ts: header.ts(),
    }
}

pub(super) fn make_resource(
    kind: ResourceKind,
    rid: Rid,
    body: Doc,
    header: &ItemHeader,
) -> Result<Resource, String> {
    let id = body.root().get("id").as_str().ok_or_else(|| format!("{rid} has no id"))?.to_owned();
    Ok(Resource { kind, rid, id, body, etag: header.etag, lsn: header.lsn, ts: header.ts() })
}

/// Partition 0: the catalog's own.
pub(crate) fn catalog_spec() -> PartitionSpec {
    let range = EpkRange::full();
    PartitionSpec { number: 0, container: 0, rid_generation: 0, range, rid_prefix: 0, sources: vec![] }
}
