//! The catalog that readers are shown is the one that a start would make of the records.

use orrery_doc::{Doc, PartitionKey, json as text};

use orrery_store::{Action, ItemId, Op, Precondition, Target};
use orrery_testkit::Random;
use serde_json::{Value, json};

use super::*;
use crate::catalog::record::RangeRecord;
use crate::catalog::{Child, ChildKind, Database, Loaded};
use crate::copy::{ContainerName, CopyRequest, RekeyRequest};
use crate::db::Db;
use crate::error::Result;
use crate::options::{DbOptions, Durability};
use crate::request::{Throughput, WriteOptions};
use crate::throttle::Budget;
use crate::throughput::Settings;

const CHANGES: usize = 160;

fn options() -> DbOptions {
    DbOptions { durability: Durability::Relaxed, throttle: true, ..DbOptions::in_memory("apply", "here") }
}

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

/// All that a catalog says, except for what follows from it.
fn told(catalog: &Catalog) -> Vec<String> {
    let mut lines = vec![format!("account {:?}", catalog.account())];
    lines.extend(catalog.databases().map(|database| told_of_database(database)));
    lines.extend(catalog.containers().flat_map(|container| told_of_container(catalog, container)));
    for offer in catalog.offers() {
        let is_found = catalog.offer_of(offer.target).is_some_and(|found| found.rid == offer.rid);
        lines.push(format!("offer {offer:?}, found by its target: {is_found}"));
    }
    let families: BTreeSet<_> = catalog.families.keys().collect();
    for (owner, kind) in families {
        lines.extend(catalog.children(*kind, *owner).map(|child| told_of_child(catalog, child)));
    }
    lines.extend(catalog.jobs().map(|job| format!("job {job:?}")));
    lines
}

fn rate(budget: &Option<Arc<Budget>>) -> Option<f64> {
    budget.as_ref().map(|budget| budget.rate())
}

fn told_of_database(database: &Database) -> String {
    let names: BTreeMap<_, _> = database.names.iter().collect();
    format!("database {:?} of {:?}, {names:?}", database.resource, rate(&database.budget))
}

fn told_of_container(catalog: &Catalog, container: &Arc<Container>) -> Vec<String> {
    let rid = container.resource.rid;
    let by_rid = catalog.container_by_rid(rid).expect("it is found by its id");
    assert!(Arc::ptr_eq(by_rid, container), "one object for {rid}");
    let mut lines = vec![
        format!("container {:?} in {}", container.resource, container.database_id),
        format!("  {:?}", container.definition),
        format!("  number {}, rids {}", container.number, container.rid_generation),
        format!("  hidden {}, shared {:?}", container.is_hidden, rate(&container.shared_budget)),
        format!("  settings {:?}", container.throughput),
        format!("  next range {}, etag {:?}", container.next_range, container.ranges_etag),
        format!("  index {:?}", container.index_record()),
    ];
    lines.extend(container.gone.iter().map(|gone| format!("  gone {} {:?}", gone.id, gone.range)));
    for (range, budget) in container.ranges.iter().zip(container.partition_budgets()) {
        let schema = range.replica.schema.load();
        let history = (schema.keeps_history, schema.keeps_replaced);
        lines.push(format!("  range {:?}", RangeRecord::of(range)));
        lines.push(format!("    rate {} of {}, {history:?}, {:?}", budget.rate, budget.part, schema.ttl));
        lines.push(format!("    {:?} {:?}", schema.key, schema.unique));
        lines.push(format!("    {:?} {:?}", schema.index.policy, schema.building));
    }
    lines
}

fn told_of_child(catalog: &Catalog, child: &Child) -> String {
    let named = catalog.child(child.kind, child.owner, &child.resource.id);
    assert_eq!(named.map(|named| named.number), Some(child.number), "it is found by its name");
    format!("child {child:?}")
}

/// Compares while nothing changes the catalog.
async fn compare(db: &Db, after: &str) {
    let _still = db.inner.control.lock().await;
    let shown = db.catalog();
    let snapshot = db.inner.committer.snapshot_owned();
    let partition = &db.inner.catalog_range.replica.partition;
    let made = Loaded::read(partition, &snapshot, db.options(), db.memory());
    let made = made.unwrap_or_else(|error| panic!("after {after}: {error}"));
    let (shown, made) = (told(&shown), told(&made.catalog));
    for (shown, made) in shown.iter().zip(&made) {
        assert_eq!(shown, made, "after {after}");
    }
    assert_eq!(shown.len(), made.len(), "after {after}");
}

/// An owner who changes whatever there is.
struct Owner {
    db: Db,
    random: Random,
    named: usize,
}

impl Owner {
    fn name(&mut self, kind: &str) -> String {
        self.named += 1;
        format!("{kind}{}", self.named)
    }

    fn database(&mut self) -> Option<Arc<Database>> {
        let all: Vec<_> = self.db.catalog().databases().cloned().collect();
        (!all.is_empty()).then(|| self.random.pick(&all).clone())
    }

    fn container(&mut self) -> Option<Arc<Container>> {
        let all: Vec<_> = self.db.catalog().containers().filter(|one| !one.is_hidden).cloned().collect();
        (!all.is_empty()).then(|| self.random.pick(&all).clone())
    }

    fn throughput(&mut self) -> Option<Throughput> {
        let manual = |units| Some(Throughput::Manual(units));
        let autoscale = Some(Throughput::Autoscale { max: 4_000, increment_percent: None });
        *self.random.pick(&[None, manual(400), manual(1_000), manual(14_000), autoscale])
    }

    fn definition(&mut self, id: &str) -> ContainerDefinition {
        let mut body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        });
        if self.random.one_in(2) {
            body["defaultTtl"] = json!(*self.random.pick(&[-1, 1_000]));
        }
        if self.random.one_in(2) {
            let path = *self.random.pick(&["/a/?", "/b/*", "/c/?"]);
            body["indexingPolicy"] =
                json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": path}]});
        }
        ContainerDefinition::parse(&doc(&body)).expect("a good definition")
    }

    /// Makes one change and says which. Some are refused, which must change nothing.
    async fn change(&mut self) -> String {
        let (what, done) = match self.random.below(14) {
            0 => ("a new database", self.new_database().await),
            1..=3 => ("a new container", self.new_container().await),
            4 => ("another definition", self.other_definition().await),
            5 | 6 => ("a child", self.child().await),
            7 => ("another offer", self.other_offer().await),
            8 => ("other settings", self.settings().await),
            9 => ("a split", self.split().await),
            10 => ("a merge", self.merge().await),
            11 => ("a job", self.job().await),
            12 => ("an end of a job", self.end_of_job().await),
            _ => ("something dropped", self.dropped().await),
        };
        match done {
            Ok(()) => what.to_owned(),
            Err(error) => format!("{what}, which was refused: {}", error.kind),
        }
    }

    async fn new_database(&mut self) -> Result<()> {
        let (id, throughput) = (self.name("d"), self.throughput());
        self.db.create_database(&id, doc(&json!({"id": id, "own": [1, 2.5]})), throughput).await.map(drop)
    }

    async fn new_container(&mut self) -> Result<()> {
        let Some(database) = self.database() else { return self.new_database().await };
        let id = self.name("c");
        let (definition, throughput) = (self.definition(&id), self.throughput());
        let container = self.db.create_container(database.resource.rid, definition, throughput).await?;
        for number in 0..12 {
            let key = PartitionKey::from_header(&format!("[\"p{number}\"]")).expect("a key");
            let id = format!("i{number}");
            let action = Action::Create(doc(&json!({"id": id, "pk": format!("p{number}"), "a": number})));
            let target = Target::Id(ItemId::new(id).expect("a short id"));
            let op = Op { target, action, precondition: Precondition::None, indexed: true, unlinked: false };
            self.db.write(&container, &key, vec![op], &WriteOptions::default()).await?;
        }
        Ok(())
    }

    async fn other_definition(&mut self) -> Result<()> {
        let Some(container) = self.container() else { return Ok(()) };
        let definition = self.definition(&container.resource.id);
        self.db.replace_container(container.resource.rid, definition, None).await.map(drop)
    }

    async fn child(&mut self) -> Result<()> {
        let kind = *self.random.pick(&ChildKind::ALL);
        let (database, container) = (self.database(), self.container());
        let users = |database: &Arc<Database>| {
            let user = self.db.catalog().children(ChildKind::User, database.resource.rid).next().cloned();
            user.map(|user| user.resource.rid)
        };
        let owner = match kind {
            ChildKind::RoleDefinition | ChildKind::RoleAssignment => Some(Rid::ACCOUNT),
            ChildKind::User | ChildKind::EncryptionKey => database.map(|one| one.resource.rid),
            ChildKind::Permission => database.as_ref().and_then(users),
            _ => container.map(|one| one.resource.rid),
        };
        let Some(owner) = owner else { return Ok(()) };
        let there: Vec<Rid> =
            self.db.catalog().children(kind, owner).map(|child| child.resource.rid).collect();
        if !there.is_empty() && self.random.one_in(3) {
            return self.db.delete_child(kind, owner, *self.random.pick(&there), None).await;
        }
        let id = self.name("x");
        let body = doc(&json!({"id": id, "body": "function f() {}", "n": 1e3}));
        match there.first() {
            Some(rid) if self.random.one_in(2) => {
                self.db.replace_child(kind, owner, *rid, body, None).await.map(drop)
            }
            _ => self.db.create_child(kind, owner, body).await.map(drop),
        }
    }

    async fn other_offer(&mut self) -> Result<()> {
        let offers: Vec<_> = self.db.catalog().offers().cloned().collect();
        let Some(throughput) = self.throughput().filter(|_| !offers.is_empty()) else { return Ok(()) };
        let offer = self.random.pick(&offers).rid;
        self.db.replace_offer(offer, throughput, None).await.map(drop)
    }

    async fn settings(&mut self) -> Result<()> {
        let Some(container) = self.container() else { return Ok(()) };
        let mut settings = Settings::default();
        if self.random.one_in(2) {
            settings.default_priority = crate::throughput::Priority::Low;
        }
        self.db.replace_throughput_settings(container.resource.rid, settings).await.map(drop)
    }

    async fn split(&mut self) -> Result<()> {
        let Some(container) = self.container() else { return Ok(()) };
        let range = self.random.pick(&container.ranges).descriptor.id;
        self.db.split(&container, range, 2).await.map(drop)
    }

    async fn merge(&mut self) -> Result<()> {
        let Some(container) = self.container().filter(|one| one.ranges.len() > 1) else { return Ok(()) };
        self.db
            .merge(&container, container.ranges[0].descriptor.id, container.ranges[1].descriptor.id)
            .await
            .map(drop)
    }

    async fn job(&mut self) -> Result<()> {
        let (Some(source), Some(target)) = (self.container(), self.container()) else { return Ok(()) };
        let name = |one: &Container| ContainerName {
            database: one.database_id.clone(),
            container: one.resource.id.clone(),
        };
        match self.random.one_in(2) {
            true => {
                let request = CopyRequest {
                    source: name(&source),
                    target: name(&target),
                    mode: Default::default(),
                    rate: None,
                    completes_itself: self.random.one_in(2),
                };
                self.db.copy_container(request).await.map(drop)
            }
            false => {
                let key = json!({"paths": ["/a"], "kind": "Hash", "version": 2});
                let request = RekeyRequest {
                    container: name(&source),
                    partition_key: key,
                    rate: None,
                    completes_itself: self.random.one_in(2),
                };
                self.db.rekey_container(request).await.map(drop)
            }
        }
    }

    async fn end_of_job(&mut self) -> Result<()> {
        let jobs = self.db.jobs();
        if jobs.is_empty() {
            return Ok(());
        }
        let id = self.random.pick(&jobs).job.id.clone();
        match self.random.below(3) {
            0 => self.db.complete_job(&id).await.map(drop),
            1 => self.db.cancel_job(&id).await.map(drop),
            _ => self.db.delete_job(&id).await,
        }
    }

    async fn dropped(&mut self) -> Result<()> {
        let Some(container) = self.container() else { return Ok(()) };
        match self.random.one_in(5) {
            true => self.db.delete_database(container.database, None).await,
            false => self.db.delete_container(container.resource.rid, None).await,
        }
    }
}

/// Each step makes a change of some kind, beside which splits, builds and jobs go on by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_are_shown_what_a_start_would_make_of_the_records() {
    let db = Db::open(options()).expect("an empty database opens");
    let random = Random::from_environment();
    let mut owner = Owner { db: db.clone(), random, named: 0 };
    for step in 0..CHANGES {
        let what = owner.change().await;
        compare(&db, &format!("step {step}, {what} (seed {})", owner.random.seed())).await;
    }
    assert!(db.catalog().databases().next().is_some(), "the test has made nothing that stayed");
}

/// A database with a container that has an offer, and a child that no start could read.
async fn with_bad_child(db: &Db) -> (Arc<Container>, Record) {
    let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a database");
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let definition = ContainerDefinition::parse(&doc(&body)).expect("a good definition");
    let offer = Some(Throughput::Manual(400));
    let container = db.create_container(database.resource.rid, definition, offer).await.expect("a container");
    let (child, owner, number) = (ChildKind::Procedure, container.resource.rid, 77);
    let body = json!({"body": "a script without a name"});
    (container, Record::Child(ChildRecord { rid: child.rid(owner, number), child, owner, number, body }))
}

/// Whichever record of a change fails, the others have not reached what requests use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_fails_reaches_nothing_in_use() {
    let db = Db::open(options()).expect("an empty database opens");
    let (container, bad) = with_bad_child(&db).await;
    let rid = container.resource.rid;
    let mut offer = db.catalog().offers().find(|offer| offer.target == rid).map(|offer| OfferRecord {
        rid: offer.rid,
        target: rid,
        autoscale: false,
        throughput: 9_000,
        increment_percent: None,
        highest: 9_000,
    });
    let redefined = ContainerRecord {
        rid,
        number: container.number,
        api: container.definition.api,
        order: container.definition.order,
        body: json!({
            "id": "c", "defaultTtl": 60, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        }),
        rids: container.rid_generation,
    };
    let offer = Record::Offer(offer.take().expect("the container has an offer"));
    let in_use = || {
        let ranges = container
            .ranges
            .iter()
            .map(|range| (range.replica.schema.load_full().ttl, range.lead().map(|lead| lead.budget.rate())));
        format!("{:?}", ranges.collect::<Vec<_>>())
    };
    let before = in_use();
    let mut counters = db.inner.control.lock().await;
    let next = counters.clone();
    let put = vec![Record::Container(redefined), offer, bad];
    let changed = db.change_catalog(&mut counters, next, put, vec![]).await;
    assert!(changed.is_err(), "one of them cannot be read");
    assert_eq!(in_use(), before);
}

/// A record that is new and cannot be read must not meet the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_child_that_cannot_be_read_is_taken_back() {
    let db = Db::open(options()).expect("an empty database opens");
    let (_, bad) = with_bad_child(&db).await;
    let mut counters = db.inner.control.lock().await;
    let next = counters.clone();
    let changed = db.change_catalog(&mut counters, next, vec![bad], vec![]).await;
    assert!(changed.is_err(), "it cannot be read");
    drop(counters);
    compare(&db, "a child that was taken back").await;
}
