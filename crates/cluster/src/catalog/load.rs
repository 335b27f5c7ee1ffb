//! Building the catalog from what partition 0 holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use orrery_doc::{Doc, EpkRange};
use orrery_store::engine::Snapshot;
use orrery_store::{ItemHeader, Lifetimes, Partition, PartitionSpec, Scan, View};

use super::account::AccountRecord;
use super::children::load_child;
use super::indexes::Policies;
use super::record::{
    ChildRecord, ContainerRecord, Counters, DatabaseRecord, DroppedRecord, FORMAT, FORMAT_OLDEST, GoneRecord,
    HoursRecord, IndexRecord, OfferRecord, RangesRecord, Record, RetiredRecord, to_doc,
};
use super::{Catalog, Container, ContainerDefinition, Database};
use crate::copy::JobRecord;
use crate::offer::Offer;
use crate::options::{DbOptions, OpenError};
use crate::range::{Range, RangeParts, Totals};
use crate::resource::{Resource, ResourceKind};
use crate::rid::Rid;
use crate::throttle::Budget;
use crate::throughput::{Hours, Settings};
use crate::world::World;

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

type Stored<T> = Vec<(T, ItemHeader)>;

#[derive(Default)]
struct Records {
    read: usize,
    counters: Option<Counters>,
    account: Option<AccountRecord>,
    databases: Stored<DatabaseRecord>,
    containers: Stored<ContainerRecord>,
    ranges: HashMap<Rid, RangesRecord>,
    indexes: HashMap<Rid, IndexRecord>,
    offers: Stored<OfferRecord>,
    throughput: HashMap<Rid, Settings>,
    hours: Vec<HoursRecord>,
    children: Stored<ChildRecord>,
    jobs: Vec<JobRecord>,
    unfinished: Unfinished,
}

impl Loaded {
    pub fn read(
        partition: &Partition,
        snapshot: &Snapshot,
        options: &DbOptions,
        world: &World,
    ) -> Result<Loaded, OpenError> {
        let mut records = Records::read(partition, snapshot)?;
        let counters = records.counters.unwrap_or_else(Counters::first);
        if !(FORMAT_OLDEST..=FORMAT).contains(&counters.format) {
            let (found, oldest, newest) = (counters.format, FORMAT_OLDEST, FORMAT);
            return Err(OpenError::Format { found, oldest, newest });
        }
        let region = &options.account.region;
        let account =
            records.account.clone().map_or_else(|| AccountRecord::first(region), |old| old.named(region));
        let is_account_stored = records.account.as_ref() == Some(&account);
        let builder = Builder { options, snapshot, world };
        let mut catalog = Catalog::empty(account);
        records.jobs.into_iter().for_each(|job| drop(catalog.put_job(job)));
        let offers: HashMap<Rid, OfferRecord> =
            records.offers.iter().map(|(record, _)| (record.target, record.clone())).collect();
        for (record, header) in records.databases {
            let budget = offers.get(&record.rid).map(|offer| builder.budget(offer.throughput));
            catalog.put_database(builder.database(record, &header, budget).map_err(OpenError::Catalog)?);
        }
        for (record, header) in records.containers {
            let missing = |what| OpenError::Catalog(format!("container {} has no {what} record", record.rid));
            let index = records.indexes.remove(&record.rid).ok_or_else(|| missing("index"))?;
            let ranges = records.ranges.remove(&record.rid).ok_or_else(|| missing("ranges"))?;
            let offer = offers.get(&record.rid);
            let settings = records.throughput.remove(&record.rid).unwrap_or_default();
            let mut container = builder.container(record, (ranges, index), &header, offer, &catalog)?;
            container.throughput = Arc::new(settings);
            container.set_budgets(offer.map(|offer| offer.throughput), options, world.monotonic());
            catalog.put_container(container);
        }
        for (record, header) in records.offers {
            catalog.put_offer(make_offer(&record, &header, &catalog));
        }
        for (record, header) in records.children {
            catalog.put_child(load_child(&record, &header).map_err(OpenError::Catalog)?);
        }
        let hours = Hours::load(records.hours);
        let (records, unfinished) = (records.read, records.unfinished);
        Ok(Loaded { catalog, counters, is_account_stored, records, hours, unfinished })
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
            Record::Account(record) => self.account = Some(record),
            Record::Database(record) => self.databases.push((record, header)),
            Record::Container(record) => self.containers.push((record, header)),
            Record::Ranges(record) => drop(self.ranges.insert(record.rid, record)),
            Record::Index(record) => drop(self.indexes.insert(record.rid, record)),
            Record::Retired(record) => self.unfinished.retired.push(record),
            Record::Offer(record) => self.offers.push((record, header)),
            Record::Throughput(record) => drop(self.throughput.insert(record.rid, record.settings)),
            Record::Hours(record) => self.hours.push(record),
            Record::Child(record) => self.children.push((record, header)),
            Record::Job(record) => self.jobs.push(*record),
            Record::Dropped(record) => self.unfinished.dropped.push(record),
        }
    }
}

/// Turns records into the live things of the catalog; used at start and after each change.
pub(super) struct Builder<'a> {
    pub options: &'a DbOptions,
    pub snapshot: &'a Snapshot,
    pub world: &'a World,
}

impl Builder<'_> {
    pub fn budget(&self, throughput: u32) -> Arc<Budget> {
        let rate = if self.options.throttle { f64::from(throughput) } else { 0.0 };
        Arc::new(Budget::new(rate, self.world.monotonic()))
    }

    pub fn database(
        &self,
        record: DatabaseRecord,
        header: &ItemHeader,
        budget: Option<Arc<Budget>>,
    ) -> Result<Database, String> {
        let resource = make_resource(ResourceKind::Database, record.rid, to_doc(&record.body)?, header)?;
        Ok(Database { resource, containers: BTreeMap::new(), names: HashMap::new(), budget })
    }

    pub fn container(
        &self,
        record: ContainerRecord,
        (ranges_record, index): (RangesRecord, IndexRecord),
        header: &ItemHeader,
        offer: Option<&OfferRecord>,
        catalog: &Catalog,
    ) -> Result<Container, OpenError> {
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
        let database = record.rid.database_part().and_then(|rid| catalog.database_by_rid(rid));
        let database = database
            .ok_or_else(|| OpenError::Catalog(format!("container {} has no database", record.rid)))?;
        let count = ranges_record.ranges.len();
        let rate = partition_rate(offer.map(|offer| offer.throughput), count, self.options);
        let ranges = self.ranges(&record, (&ranges_record, &index), &definition, header, rate)?;
        let gone = ranges_record.gone.iter().map(GoneRecord::range).collect::<Result<_, String>>();
        let gone = gone.map_err(OpenError::Catalog)?;
        let container = Container {
            resource,
            database: database.resource.rid,
            database_id: database.resource.id.clone(),
            number: record.number,
            rid_generation: record.rids,
            definition,
            ranges,
            next_range: ranges_record.next_range,
            gone: Arc::new(gone),
            index_made_by: index.made_by,
            shared_budget: if offer.is_none() { database.budget.clone() } else { None },
            throughput: Arc::default(),
            is_hidden: catalog.is_hidden(record.rid),
        };
        container.set_budgets(offer.map(|offer| offer.throughput), self.options, self.world.monotonic());
        Ok(container)
    }

    fn ranges(
        &self,
        record: &ContainerRecord,
        (stored, index): (&RangesRecord, &IndexRecord),
        definition: &ContainerDefinition,
        header: &ItemHeader,
        rate: f64,
    ) -> Result<Vec<Arc<Range>>, OpenError> {
        let policies = Policies::of(index, definition).map_err(OpenError::Catalog)?;
        let mut partitions = Vec::with_capacity(stored.ranges.len());
        for range in &stored.ranges {
            let spec = range.spec(record.number, record.rids).map_err(OpenError::Catalog)?;
            partitions.push(Partition::open(spec, self.snapshot)?);
        }
        let totals = Totals::of(&partitions);
        let mut ranges = Vec::with_capacity(stored.ranges.len());
        for (range, partition) in stored.ranges.iter().zip(partitions) {
            let index = index.ranges.iter().find(|index| index.id == range.id);
            let index = index.ok_or_else(|| {
                OpenError::Catalog(format!("range {} of container {} has no index", range.id, record.rid))
            })?;
            let parts = RangeParts {
                id: range.id,
                parents: range.parents.clone(),
                schema: policies.schema(definition, index),
                etag: header.etag,
                ts: header.ts(),
                rate,
                limits: self.options.limits,
                totals: totals.clone(),
                world: self.world.clone(),
            };
            ranges.push(Arc::new(Range::new(partition, parts)));
        }
        ranges.sort_by(|a, b| a.epk().min.cmp(&b.epk().min));
        if ranges.is_empty() {
            return Err(OpenError::Catalog(format!("container {} has no partition", record.rid)));
        }
        Ok(ranges)
    }
}

/// Each partition's even share, never above what one partition can give; zero is unlimited.
pub(super) fn partition_rate(throughput: Option<u32>, partitions: usize, options: &DbOptions) -> f64 {
    let ceiling = f64::from(options.limits.partition_throughput);
    if !options.throttle {
        return 0.0;
    }
    if options.account.serverless {
        return f64::from(orrery_store::limits::SERVERLESS_THROUGHPUT);
    }
    throughput.map_or(ceiling, |units| (f64::from(units) / partitions as f64).min(ceiling))
}

pub(super) fn make_offer(record: &OfferRecord, header: &ItemHeader, catalog: &Catalog) -> Offer {
    let container = catalog.container_by_rid(record.target);
    let target_link = match container {
        Some(container) => format!("dbs/{}/colls/{}/", container.database, record.target),
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
