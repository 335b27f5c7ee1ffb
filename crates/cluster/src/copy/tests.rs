//! Jobs against a database in memory, with writers that go on meanwhile.

mod losses;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orrery_doc::{Doc, PartitionKey, json as text};
use orrery_store::{Action, ItemId, Op, OpError, Precondition, Target};
use orrery_testkit::wait_for_async;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Container, ContainerDefinition};
use crate::db::Db;
use crate::error::ErrorKind;
use crate::options::{DbOptions, Durability};
use crate::request::{AccessChoice, Consistency, PageOptions, Scope, Throughput, WriteOptions};

const TWO_PARTITIONS: u32 = 12_000;

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn open() -> Db {
    Db::open(DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("copy", "here") })
        .expect("an empty database opens")
}

async fn container(db: &Db, id: &str, paths: &[&str], more: &Value) {
    let database = db.catalog().database("d").cloned();
    let database = match database {
        Some(database) => database,
        None => db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database"),
    };
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let mut body = json!({"id": id, "partitionKey": {"paths": paths, "kind": kind, "version": 2}});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let definition = ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind));
    let throughput = Some(Throughput::Manual(TWO_PARTITIONS));
    db.create_container(database.resource.rid, definition, throughput).await.expect("a new container");
}

fn named(db: &Db, id: &str) -> Arc<Container> {
    let catalog = db.catalog();
    catalog.database("d").and_then(|database| database.container(id)).expect("the container is there").clone()
}

fn name(id: &str) -> ContainerName {
    ContainerName { database: "d".into(), container: id.into() }
}

fn op(id: &str, action: Action) -> Op {
    Op {
        target: Target::Id(ItemId::new(id).expect("a short id")),
        action,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

/// Writes to the container of a name, whatever key it has by then.
async fn write(db: &Db, id: &str, item: &Value, op: impl Fn() -> Op) -> Result<(), OpError> {
    let body = doc(item);
    loop {
        let container = named(db, id);
        let key = PartitionKey::extract(&container.definition.key, body.as_ref());
        match db.write(&container, &key, vec![op()], &WriteOptions::default()).await {
            Ok(_) => return Ok(()),
            Err(error) => match error.kind {
                // The container was exchanged for another: a client asks again.
                ErrorKind::RangeGone => tokio::time::sleep(Duration::from_millis(1)).await,
                ErrorKind::Op { error, .. } => return Err(error),
                kind => panic!("{kind}"),
            },
        }
    }
}

async fn upsert(db: &Db, container: &str, item: &Value) {
    let id = item["id"].as_str().expect("an id");
    let done = write(db, container, item, || op(id, Action::Upsert(doc(item)))).await;
    done.expect("an upsert is not refused");
}

/// All items by id and by what a source is keyed by.
async fn items(db: &Db, id: &str) -> BTreeMap<(String, String), String> {
    let (mut all, mut continuation) = (BTreeMap::new(), None);
    loop {
        let page = PageOptions {
            items_max: 1_000,
            bytes_max: 4 << 20,
            time_max: orrery_testkit::PATIENCE,
            continuation,
            consistency: Consistency::Session,
            session: None,
            access: AccessChoice::Auto,
            properties: None,
            order: Default::default(),
        };
        let found = db.read_feed(&named(db, id), &Scope::Container, &page).await.expect("a page");
        for item in found.items {
            let mut out = Vec::new();
            text::write(item.doc.root(), &mut out);
            let value: Value = serde_json::from_slice(&out).expect("JSON");
            let key = (value["id"].to_string(), value["pk"].to_string());
            assert!(all.insert(key, value.to_string()).is_none(), "an item came twice: {value}");
        }
        continuation = found.continuation;
        if continuation.is_none() {
            return all;
        }
    }
}

#[track_caller]
fn wait_until(db: &Db, id: &str, what: impl Fn(&JobReport) -> bool) -> impl Future<Output = JobReport> {
    wait_for_async(move || {
        let report = db.job(id).expect("the job is there");
        if what(&report) { Ok(report) } else { Err(format!("the job does not come on: {report:?}")) }
    })
}

/// One of some writers. Each has items of its own, and knows what they must be in the end.
struct Writer {
    db: Db,
    number: u64,
    state: u64,
    model: BTreeMap<String, Value>,
}

impl Writer {
    fn new(db: &Db, number: u64) -> Writer {
        Writer { db: db.clone(), number, state: number + 1, model: BTreeMap::new() }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % below
    }

    fn some_id(&mut self) -> Option<String> {
        let count = self.model.len() as u64;
        if count == 0 {
            return None;
        }
        let place = self.random(count) as usize;
        self.model.keys().nth(place).cloned()
    }

    async fn run(mut self, stop: Arc<AtomicBool>) -> BTreeMap<String, Value> {
        let mut n = 0;
        while !stop.load(Ordering::Relaxed) {
            n += 1;
            self.turn(n).await;
        }
        self.model
    }

    async fn turn(&mut self, n: u64) {
        let chosen = self.random(10);
        let old = self.some_id();
        match (chosen, old) {
            (0..4, _) | (_, None) => {
                let id = format!("{}-{n}", self.number);
                let (pk, city) = (self.random(40), self.random(25));
                let item = json!({"id": id, "pk": format!("p{pk}"), "city": format!("c{city}"), "n": n});
                upsert(&self.db, "c", &item).await;
                self.model.insert(id, item);
            }
            (4..7, Some(id)) => {
                let mut item = self.model[&id].clone();
                item["n"] = json!(n);
                upsert(&self.db, "c", &item).await;
                self.model.insert(id, item);
            }
            (7, Some(id)) => self.move_city(id).await,
            (8, Some(id)) => self.rename(id, n).await,
            (_, Some(id)) => {
                let item = self.model.remove(&id).expect("known");
                let done = write(&self.db, "c", &item, || op(&id, Action::Delete)).await;
                done.expect("it was there");
            }
        }
    }

    /// Changes what a copy may be keyed by; where the container itself is, that is another item.
    async fn move_city(&mut self, id: String) {
        let old = self.model[&id].clone();
        let city = self.random(25);
        let mut new = old.clone();
        new["city"] = json!(format!("c{city}"));
        loop {
            let container = named(&self.db, "c");
            if container.definition.key.paths.len() > 1 {
                let done = write(&self.db, "c", &old, || op(&id, Action::Delete)).await;
                done.expect("it was there");
                upsert(&self.db, "c", &new).await;
                break;
            }
            let key = PartitionKey::extract(&container.definition.key, doc(&old).as_ref());
            let replace = vec![op(&id, Action::Replace(doc(&new)))];
            match self.db.write(&container, &key, replace, &WriteOptions::default()).await {
                Ok(_) => break,
                Err(error) => assert!(matches!(error.kind, ErrorKind::RangeGone), "{error:?}"),
            }
        }
        self.model.insert(id, new);
    }

    async fn rename(&mut self, id: String, n: u64) {
        let old = self.model[&id].clone();
        let other = format!("{}-{n}r", self.number);
        let mut new = old.clone();
        new["id"] = json!(other);
        let rename =
            || op(&id, Action::Rename { id: ItemId::new(&other).expect("a short id"), doc: doc(&new) });
        write(&self.db, "c", &old, rename).await.expect("it was there");
        self.model.remove(&id);
        self.model.insert(other, new);
    }
}

async fn filled(db: &Db, count: u64) {
    let mut writer = Writer::new(db, 0);
    for n in 0..count {
        let (pk, city) = (writer.random(40), writer.random(25));
        let item =
            json!({"id": format!("old-{n}"), "pk": format!("p{pk}"), "city": format!("c{city}"), "n": n});
        upsert(db, "c", &item).await;
    }
}

type Writers = Vec<tokio::task::JoinHandle<BTreeMap<String, Value>>>;

fn start_writers(db: &Db) -> (Arc<AtomicBool>, Writers) {
    let stop = Arc::new(AtomicBool::new(false));
    let start = |number| tokio::spawn(Writer::new(db, number).run(stop.clone()));
    let writers = (1..=3).map(start).collect();
    (stop, writers)
}

fn request(target: &str, mode: JobMode) -> CopyRequest {
    CopyRequest {
        source: name("c"),
        target: name(target),
        mode,
        rate: Some(100_000),
        completes_itself: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_follows_writers_splits_and_merges_and_is_exact_at_the_cut_over() {
    let db = open();
    container(&db, "c", &["/pk"], &json!({})).await;
    container(
        &db,
        "t",
        &["/city", "/pk"],
        &json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}}),
    )
    .await;
    filled(&db, 2_000).await;
    let (stop, writers) = start_writers(&db);
    let job = db.copy_container(request("t", JobMode::Online)).await.expect("a job").job;
    db.split(&named(&db, "c"), 0, 2).await.expect("a split");
    wait_until(&db, &job.id, |report| report.phase == JobPhase::Following).await;
    db.pause_job(&job.id).await.expect("a pause");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let paused = db.job(&job.id).expect("the job").job.state;
    assert_eq!(paused, JobState::Paused);
    let parts = db.split(&named(&db, "t"), 1, 2).await.expect("a split");
    db.resume_job(&job.id).await.expect("to go on");
    db.merge(&named(&db, "t"), parts[0], parts[1]).await.expect("a merge");
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer ends well");
    }
    db.complete_job(&job.id).await.expect("a cut-over");
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Completed, "{report:?}");
    assert_eq!(report.percent, 100.0);
    assert_eq!(report.job.cut_over.as_ref().expect("a moment").lsns.len(), 3);
    assert_eq!(items(&db, "c").await, items(&db, "t").await);
    assert!(report.changes_applied > 0, "{report:?}");
    assert!(!named(&db, "c").definition.is_followed, "nobody follows it any more");
    assert!(!named(&db, "c").ranges[0].replica.schema.load().keeps_history);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_gets_another_key_while_clients_write() {
    let db = open();
    container(&db, "c", &["/pk"], &json!({"defaultTtl": -1})).await;
    filled(&db, 1_000).await;
    let before = named(&db, "c");
    let body = json!({"id": "s", "body": "function () {}"});
    let scripts = crate::catalog::ChildKind::Procedure;
    db.create_child(scripts, before.resource.rid, doc(&body)).await.expect("a script");
    let (stop, writers) = start_writers(&db);
    let key = json!({"paths": ["/pk", "/city"], "kind": "MultiHash", "version": 2});
    let request = RekeyRequest {
        container: name("c"),
        partition_key: key,
        rate: Some(100_000),
        completes_itself: false,
    };
    let job = db.rekey_container(request).await.expect("a job").job;
    let count = db.catalog().database("d").expect("it is there").containers().count();
    assert_eq!(count, 1, "what is in the making is not seen");
    wait_until(&db, &job.id, |report| report.phase == JobPhase::Following).await;
    db.complete_job(&job.id).await.expect("a cut-over");
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Completed, "{report:?}");
    stop.store(true, Ordering::Relaxed);
    let mut expected = BTreeMap::new();
    for writer in writers {
        expected.extend(writer.await.expect("a writer ends well"));
    }
    let after = named(&db, "c");
    assert_eq!(after.definition.key.paths.len(), 2);
    assert_ne!(after.resource.rid, before.resource.rid);
    assert_eq!(
        db.catalog().offer_of(after.resource.rid).expect("its offer").throughput.ceiling(),
        TWO_PARTITIONS
    );
    assert!(db.catalog().offer_of(before.resource.rid).is_none());
    assert!(db.catalog().child(scripts, after.resource.rid, "s").is_some(), "scripts come along");
    let mine = |(id, _): &(String, String)| !id.starts_with("\"old-");
    let found: BTreeMap<String, Value> = items(&db, "c")
        .await
        .into_iter()
        .filter(|(key, _)| mine(key))
        .map(|(_, item)| serde_json::from_str::<Value>(&item).expect("JSON"))
        .map(|item| (item["id"].as_str().expect("an id").to_owned(), item))
        .collect();
    assert_eq!(found.len(), expected.len());
    assert_eq!(found, expected, "every acknowledged write is there");
    assert_eq!(items(&db, "c").await.len(), expected.len() + 1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_that_would_collide_are_counted_and_shown() {
    let db = open();
    container(&db, "c", &["/pk"], &json!({})).await;
    for (pk, id, city) in
        [("a", "1", "x"), ("b", "1", "x"), ("c", "1", "x"), ("a", "2", "x"), ("b", "2", "y")]
    {
        upsert(&db, "c", &json!({"id": id, "pk": pk, "city": city})).await;
    }
    let key = json!({"paths": ["/city"], "kind": "Hash", "version": 2});
    let request =
        RekeyRequest { container: name("c"), partition_key: key, rate: None, completes_itself: true };
    let job = db.rekey_container(request.clone()).await.expect("a job").job;
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!((report.job.state, report.job.progress.collisions.count), (JobState::Failed, 2), "{report:?}");
    let example = &report.job.progress.collisions.examples[0];
    assert_eq!((example.cause, example.id.as_str()), (CollisionCause::SameId, "1"));
    assert_eq!(example.target_key, r#"["x"]"#);
    assert_eq!(named(&db, "c").definition.key.paths.len(), 1);
    assert_eq!(db.catalog().containers().count(), 1, "nothing is left of the new one");
    for pk in ["b", "c"] {
        let item = json!({"id": "1", "pk": pk, "city": "x"});
        write(&db, "c", &item, || op("1", Action::Delete)).await.expect("it was there");
    }
    let waiting = RekeyRequest { completes_itself: false, ..request };
    let job = db.rekey_container(waiting).await.expect("a job").job;
    wait_until(&db, &job.id, |report| report.phase == JobPhase::Following).await;
    upsert(&db, "c", &json!({"id": "2", "pk": "b", "city": "x"})).await;
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!((report.job.state, report.job.progress.collisions.count), (JobState::Failed, 1), "{report:?}");
    assert_eq!(items(&db, "c").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unique_keys_that_change_hands_do_not_end_a_job() {
    let db = open();
    let unique = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}});
    container(&db, "c", &["/pk"], &json!({})).await;
    container(&db, "t", &["/city"], &unique).await;
    let item = |id: &str, pk: &str, mail: &str| json!({"id": id, "pk": pk, "city": "x", "mail": mail});
    upsert(&db, "c", &item("1", "a", "m")).await;
    let job = db.copy_container(request("t", JobMode::Online)).await.expect("a job").job;
    wait_until(&db, &job.id, |report| report.phase == JobPhase::Following).await;
    for n in 0..40 {
        // Whichever feed is read first, one of the two meets the other's old value.
        let (one, two) = if n % 2 == 0 { ("k", "m") } else { ("m", "k") };
        upsert(&db, "c", &item("1", "a", "between")).await;
        upsert(&db, "c", &item("2", "b", two)).await;
        upsert(&db, "c", &item("1", "a", one)).await;
    }
    db.complete_job(&job.id).await.expect("a cut-over");
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Completed, "{report:?}");
    assert_eq!(items(&db, "c").await, items(&db, "t").await);
    upsert(&db, "c", &item("3", "c", "m")).await;
    upsert(&db, "c", &item("4", "d", "m")).await;
    let job = db.copy_container(request("t", JobMode::Offline)).await.expect("a job").job;
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Failed);
    let causes: Vec<_> =
        report.job.progress.collisions.examples.iter().map(|example| example.cause).collect();
    assert!(causes.contains(&CollisionCause::UniqueKey), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_refused_that_make_no_sense_and_can_be_cancelled() {
    let db = open();
    container(&db, "c", &["/pk"], &json!({})).await;
    container(&db, "t", &["/city"], &json!({})).await;
    filled(&db, 200).await;
    let same = CopyRequest { target: name("c"), ..request("t", JobMode::Offline) };
    assert!(db.copy_container(same).await.is_err());
    assert!(db.copy_container(request("none", JobMode::Offline)).await.is_err());
    let slow = CopyRequest { rate: Some(1), ..request("t", JobMode::Online) };
    let job = db.copy_container(slow.clone()).await.expect("a job").job;
    assert!(db.copy_container(request("t", JobMode::Online)).await.is_err(), "the target has a job");
    let key = json!({"paths": ["/city"], "kind": "Hash", "version": 2});
    let rekey = RekeyRequest { container: name("c"), partition_key: key, rate: None, completes_itself: true };
    assert!(db.rekey_container(rekey).await.is_err(), "the source has a job");
    assert!(db.delete_job(&job.id).await.is_err(), "it is not over");
    let cancelled = db.cancel_job(&job.id).await.expect("it ends");
    assert_eq!((cancelled.job.state, cancelled.phase), (JobState::Cancelled, JobPhase::Over));
    assert_eq!(db.resume_job(&job.id).await.expect("no harm").job.state, JobState::Cancelled);
    db.delete_job(&job.id).await.expect("it is over");
    assert!(db.job(&job.id).is_none() && db.pause_job(&job.id).await.is_err());
    let job = db.copy_container(slow).await.expect("a job").job;
    db.delete_container(named(&db, "t").resource.rid, None).await.expect("it is there");
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Failed);
}
