//! Databases, containers and offers: what exists, and where its partitions are.
//!
//! Readers hold an immutable [`Catalog`]; every change builds a new one after it is durable in partition 0,
//! which is an ordinary partition like all others.

mod account;
mod apply;
mod changes;
mod children;
mod definition;
mod indexes;
mod jobs;
mod load;
mod offers;
mod purge;
mod ranges;
mod record;
#[cfg(test)]
mod scripts;
mod spec;
mod upgrade;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use orrery_doc::{Epk, EpkRange};

use orrery_store::Etag;

use crate::copy::JobRecord;
use crate::offer::Offer;
use crate::range::{Range, RangeInfo, route};
use crate::resource::Resource;
use crate::rid::Rid;
use crate::throttle::Budget;
use crate::throughput::Settings;

pub use account::{AccountRecord, RegionRecord};
pub use children::{Child, ChildKind};
pub use definition::{ContainerDefinition, check_name};
pub(crate) use load::{Loaded, catalog_spec};
pub(crate) use ranges::Succession;
#[cfg(test)]
pub(crate) use record::Record;
pub(crate) use record::{Counters, HoursRecord, RangeIndexRecord, rid_text};
pub use spec::Api;
pub(crate) use upgrade::upgrade;

/// Everything that exists at one moment.
#[derive(Clone)]
pub struct Catalog {
    account: Arc<AccountRecord>,
    databases: BTreeMap<Rid, Arc<Database>>,
    names: HashMap<String, Rid>,
    containers: HashMap<Rid, Arc<Container>>,
    offers: BTreeMap<Rid, Arc<Offer>>,
    offers_by_target: HashMap<Rid, Rid>,
    /// What is below an owner, by kind.
    families: HashMap<(Rid, ChildKind), Arc<children::Family>>,
    /// Copying and re-keying, also what is over; by id.
    jobs: BTreeMap<String, Arc<JobRecord>>,
}

#[derive(Clone)]
pub struct Database {
    pub resource: Resource,
    containers: BTreeMap<Rid, Arc<Container>>,
    names: HashMap<String, Rid>,
    /// What its containers share, when throughput is provisioned here.
    pub(crate) budget: Option<Arc<Budget>>,
}

#[derive(Clone)]
pub struct Container {
    pub resource: Resource,
    pub database: Rid,
    pub database_id: String,
    /// Prefix of its items' keys.
    pub number: u32,
    /// Prefix of its rid terms.
    pub(crate) rid_generation: u32,
    pub definition: ContainerDefinition,
    /// Ordered by key space, without gaps.
    pub(crate) ranges: Vec<Arc<Range>>,
    /// The version of the record that names them.
    pub(crate) ranges_etag: Etag,
    pub(crate) ranges_ts: u64,
    pub(crate) next_range: u32,
    /// Ranges that others have succeeded, and what they held; the newest last, and only so many.
    pub(crate) gone: Arc<Vec<GoneRange>>,
    /// The indexing policy that the active indexes were made by, while others are being built.
    pub(crate) index_made_by: Option<serde_json::Value>,
    /// Set when the container lives from its database's throughput.
    pub(crate) shared_budget: Option<Arc<Budget>>,
    /// What an operator has set besides the offer.
    pub throughput: Arc<Settings>,
    /// In the making: it will take the place of the container of this name, and until then clients do not see it.
    pub(crate) is_hidden: bool,
}

/// A range that is no more.
#[derive(Clone)]
pub struct GoneRange {
    pub id: u32,
    /// What it held.
    pub range: EpkRange,
}

/// What a container holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub items: u64,
    pub bytes: u64,
}

impl Catalog {
    /// An account with nothing in it.
    fn empty(account: AccountRecord) -> Catalog {
        Catalog {
            account: Arc::new(account),
            databases: BTreeMap::new(),
            names: HashMap::new(),
            containers: HashMap::new(),
            offers: BTreeMap::new(),
            offers_by_target: HashMap::new(),
            families: HashMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    pub fn account(&self) -> &Arc<AccountRecord> {
        &self.account
    }

    /// In the order of creation.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(self.names.get(name)?)
    }

    pub fn database_by_rid(&self, rid: Rid) -> Option<&Arc<Database>> {
        self.databases.get(&rid)
    }

    pub fn container_by_rid(&self, rid: Rid) -> Option<&Arc<Container>> {
        self.containers.get(&rid)
    }

    pub fn containers(&self) -> impl Iterator<Item = &Arc<Container>> {
        self.databases.values().flat_map(|database| database.all_containers())
    }

    pub fn offers(&self) -> impl Iterator<Item = &Arc<Offer>> {
        self.offers.values()
    }

    pub fn offer(&self, rid: Rid) -> Option<&Arc<Offer>> {
        self.offers.get(&rid)
    }

    /// The offer of a database or container, if it has one of its own.
    pub fn offer_of(&self, target: Rid) -> Option<&Arc<Offer>> {
        self.offers.get(self.offers_by_target.get(&target)?)
    }

    fn put_database(&mut self, database: Database) -> Arc<Database> {
        let database = Arc::new(database);
        self.names.insert(database.resource.id.clone(), database.resource.rid);
        self.databases.insert(database.resource.rid, database.clone());
        database
    }

    fn put_container(&mut self, container: Container) -> Arc<Container> {
        let is_led = container.ranges.iter().all(|range| range.lead().is_ok());
        assert!(is_led, "a node that is alone leads all ranges that it publishes");
        let container = Arc::new(container);
        let rid = container.resource.rid;
        self.containers.insert(rid, container.clone());
        if let Some(database) = self.databases.get_mut(&container.database) {
            let database = Arc::make_mut(database);
            if !container.is_hidden {
                database.names.insert(container.resource.id.clone(), rid);
            }
            database.containers.insert(rid, container.clone());
        }
        container
    }

    fn put_offer(&mut self, offer: Offer) -> Arc<Offer> {
        let offer = Arc::new(offer);
        self.offers_by_target.insert(offer.target, offer.rid);
        self.offers.insert(offer.rid, offer.clone());
        offer
    }

    fn remove_database(&mut self, rid: Rid) {
        if let Some(database) = self.databases.remove(&rid) {
            self.names.remove(&database.resource.id);
            self.remove_children(rid);
            database.containers.keys().for_each(|container| self.remove_container(*container));
            self.remove_offer(rid);
        }
    }

    fn remove_container(&mut self, rid: Rid) {
        if let Some(container) = self.containers.remove(&rid) {
            if let Some(database) = self.databases.get_mut(&container.database) {
                let database = Arc::make_mut(database);
                if database.names.get(&container.resource.id) == Some(&rid) {
                    database.names.remove(&container.resource.id);
                }
                database.containers.remove(&rid);
            }
            self.remove_children(rid);
            self.remove_offer(rid);
        }
    }

    fn remove_offer(&mut self, target: Rid) {
        if let Some(offer) = self.offers_by_target.remove(&target) {
            self.offers.remove(&offer);
        }
    }
}

impl Database {
    pub fn container(&self, name: &str) -> Option<&Arc<Container>> {
        self.containers.get(self.names.get(name)?)
    }

    /// In the order of creation, without those that clients do not see.
    pub fn containers(&self) -> impl Iterator<Item = &Arc<Container>> {
        self.containers.values().filter(|container| !container.is_hidden)
    }

    pub(crate) fn all_containers(&self) -> impl Iterator<Item = &Arc<Container>> {
        self.containers.values()
    }
}

impl Container {
    /// Current physical partitions, in the order of the key space.
    pub fn ranges(&self) -> Vec<RangeInfo> {
        let info = |(range, part): (&Arc<Range>, f64)| RangeInfo {
            id: range.descriptor.id,
            range: range.epk().clone(),
            parents: range.descriptor.parents.clone(),
            lsn: range.replica.partition.lsn(),
            throughput_fraction: part,
            etag: self.ranges_etag,
            ts: self.ranges_ts,
        };
        self.ranges.iter().zip(self.parts()).map(info).collect()
    }

    /// What all of its partitions hold.
    pub fn usage(&self) -> Usage {
        self.ranges.first().map_or_else(Usage::default, |range| range.replica.totals.usage())
    }

    /// The partition that a key belongs to; the key space has no gaps.
    pub(crate) fn range_of(&self, epk: &Epk) -> &Arc<Range> {
        route(&self.ranges, epk)
    }

    /// A range that others have succeeded not long ago.
    pub fn gone_range(&self, id: u32) -> Option<&GoneRange> {
        self.gone.iter().find(|gone| gone.id == id)
    }

    /// What one of the current partitions holds of the key space.
    pub fn epk_of(&self, range: u32) -> Option<&EpkRange> {
        self.range_by_id(range).map(|range| range.epk())
    }

    /// How far one of the current partitions is.
    pub fn lsn_of(&self, range: u32) -> Option<orrery_store::Lsn> {
        self.range_by_id(range).map(|range| range.replica.partition.lsn())
    }

    pub(crate) fn range_by_id(&self, id: u32) -> Option<&Arc<Range>> {
        self.ranges.iter().find(|range| range.descriptor.id == id)
    }
}
