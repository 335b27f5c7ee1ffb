//! Indexes that change under a running server.

use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use orrery_doc::{Doc, PartitionKey, json as text};
use orrery_store::engine::Keyspace;
use orrery_store::indexing::Step;
use orrery_store::limits::INDEX_BUILDS_MAX;
use orrery_store::{Action, ItemId, Op, Precondition, Target};
use orrery_testkit::{eventually_async, wait_for_async};
use serde_json::{Value, json};

use super::*;
use crate::catalog::record::RecordId;
use crate::options::{DbOptions, Durability, OpenError, Storage};
use crate::request::{Throughput, WriteOptions};

const FOUR_PARTITIONS: u32 = 24_000;

fn options(storage: Storage) -> DbOptions {
    DbOptions { storage, durability: Durability::Relaxed, ..DbOptions::in_memory("indexes", "here") }
}

fn on_disk(path: &Path) -> Storage {
    Storage::Disk {
        path: path.to_owned(),
        cache_bytes: 8 << 20,
        disk_bytes_max: None,
        write_buffer_bytes: None,
    }
}

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn definition(policy: Value) -> ContainerDefinition {
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let body = json!({"id": "c", "partitionKey": key, "indexingPolicy": policy});
    ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind))
}

fn only_a() -> Value {
    let composite = json!([{"path": "/a"}, {"path": "/n", "order": "descending"}]);
    json!({"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}], "compositeIndexes": [composite]})
}

async fn start(storage: Storage, throughput: u32) -> (Db, Arc<Container>) {
    let db = Db::open(options(storage)).expect("an empty database opens");
    let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
    let throughput = Some(Throughput::Manual(throughput));
    let container = db.create_container(database.resource.rid, definition(json!({})), throughput).await;
    (db, container.expect("a new container"))
}

/// Writes items `from..to` in pages; a number that `deletes` is deleted.
async fn write(db: &Db, container: &Arc<Container>, numbers: impl Iterator<Item = usize>, turn: usize) {
    let mut by_key: std::collections::BTreeMap<usize, Vec<Op>> = Default::default();
    for number in numbers {
        let key = number % 17;
        let (id, tags) = (format!("i{number}"), [number % 3, turn]);
        let body =
            json!({"id": id, "pk": key.to_string(), "a": number / 3, "n": turn, "t": tags, "o": {"x": turn}});
        let action = Action::Upsert(doc(&body));
        let op = Op {
            target: Target::Id(ItemId::new(id).expect("a short id")),
            action,
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        by_key.entry(key).or_default().push(op);
    }
    for (key, ops) in by_key {
        let key = PartitionKey::from_header(&format!("[\"{key}\"]")).expect("a plain key");
        db.write(container, &key, ops, &WriteOptions::default()).await.expect("a write succeeds");
    }
}

async fn delete(db: &Db, container: &Arc<Container>, number: usize) {
    let key = PartitionKey::from_header(&format!("[\"{}\"]", number % 17)).expect("a plain key");
    let target = Target::Id(ItemId::new(format!("i{number}")).expect("a short id"));
    let op = Op {
        target,
        action: Action::Delete,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    };
    // It may be gone already.
    let _ = db.write(container, &key, vec![op], &WriteOptions::default()).await;
}

fn now(db: &Db) -> Arc<Container> {
    db.catalog().containers().next().expect("there is one container").clone()
}

fn entries(db: &Db, generation: u32) -> usize {
    let (lower, upper) = (generation.to_be_bytes(), (generation + 1).to_be_bytes());
    let (lower, upper) = (Bound::Included(&lower[..]), Bound::Excluded(&upper[..]));
    db.inner.committer.snapshot().keys(Keyspace::Index, lower, upper, false).count()
}

fn active(container: &Container) -> Vec<u32> {
    container.ranges.iter().map(|range| range.replica.index().generation).collect()
}

fn assert_sound(db: &Db) {
    for range in db.verify().unwrap_or_else(|error| panic!("{}", error.kind)) {
        assert_eq!(range.result.findings, Vec::<String>::new(), "range {}", range.range_id);
    }
}

/// Waits until the container's indexes are those of its policy and nothing is left of others.
async fn wait_until_settled(db: &Db, old: &[u32]) {
    eventually_async("the end of the build", || now(db).index_progress() == 100).await;
    let is_erased = || old.iter().all(|generation| entries(db, *generation) == 0);
    eventually_async("the end of the old index", is_erased).await;
    assert_sound(db);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_policy_is_built_while_writes_go_on() {
    let (db, container) = start(Storage::Memory, FOUR_PARTITIONS).await;
    assert_eq!(container.ranges.len(), 4);
    write(&db, &container, 0..3_000, 0).await;
    let old = active(&container);
    let done = Arc::new(AtomicBool::new(false));
    let writer = {
        let (db, container, done) = (db.clone(), container.clone(), done.clone());
        tokio::spawn(async move {
            let mut turn = 1;
            while !done.load(Ordering::Relaxed) || turn < 5 {
                write(&db, &container, (turn..3_500).step_by(37), turn).await;
                for number in (turn..3_000).step_by(301) {
                    delete(&db, &container, number).await;
                }
                turn += 1;
            }
        })
    };
    let nobody_builds = db.inner.index_builds.acquire_many(INDEX_BUILDS_MAX as u32).await.expect("permits");
    let container = db.replace_container(container.resource.rid, definition(only_a()), None).await;
    let container = container.expect("a policy can change");
    assert!(container.index_progress() < 100);
    assert_eq!(active(&container), old, "what is not complete is not used");
    drop(nobody_builds);
    eventually_async("the end of the build", || {
        assert_sound(&db);
        now(&db).index_progress() == 100
    })
    .await;
    done.store(true, Ordering::Relaxed);
    writer.await.expect("the writer succeeds");
    assert!(active(&now(&db)).iter().all(|generation| !old.contains(generation)));
    assert_eq!(now(&db).ranges[0].replica.index().composites().len(), 1);
    wait_until_settled(&db, &old).await;
    db.close().await;
}

#[tokio::test]
async fn a_restart_goes_on_with_a_build_and_with_erasing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, container) = start(on_disk(directory.path()), 400).await;
    write(&db, &container, 0..6_000, 0).await;
    let old = active(&container);
    let etag = db.replace_container(container.resource.rid, definition(only_a()), None).await;
    let etag = etag.expect("a policy can change").resource.etag;
    eventually_async("a first step", || now(&db).index_progress() > 0).await;
    db.close().await;
    drop((db, container));
    let db = reopen(directory.path()).await;
    let progress = now(&db).index_progress();
    assert!(progress > 0 && progress < 100, "{progress} % of the build was stored");
    assert_eq!(active(&now(&db)), old);
    assert_sound(&db);
    write(&db, &now(&db), (0..7_000).step_by(29), 1).await;
    eventually_async("the end of the build", || now(&db).index_progress() == 100).await;
    let new = active(&now(&db));
    assert_ne!(new, old);
    db.close().await;
    drop(db);
    let db = reopen(directory.path()).await;
    assert_eq!((now(&db).index_progress(), active(&now(&db))), (100, new));
    assert_eq!(now(&db).resource.etag, etag, "a finished index is no change of the container");
    wait_until_settled(&db, &old).await;
    db.close().await;
}

fn special(computed: &str, geospatial: &str) -> ContainerDefinition {
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let mut spatial = json!({"path": "/loc/*", "types": ["Point"]});
    if geospatial == "Geometry" {
        spatial["boundingBox"] = json!({"xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1});
    }
    let body = json!({
        "id": "c",
        "partitionKey": key,
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}, {"path": "/twice/?"}, {"path": "/t/[]/{x,y}/?"}],
            "spatialIndexes": [spatial],
            "compositeIndexes": [[{"path": "/twice"}, {"path": "/n"}]],
        },
        "computedProperties": [{"name": "twice", "query": format!("SELECT VALUE {computed} FROM c")}],
        "geospatialConfig": {"type": geospatial},
    });
    ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind))
}

/// Whether the index has computed values, composite indexes of them, and cells of shapes.
fn has_special(container: &Container) -> [bool; 3] {
    let index = container.ranges[0].replica.index();
    let is_computed = index.covers(&[Step::Computed("twice")]);
    [is_computed, !index.composites().is_empty(), index.is_spatial(&[Step::Name("loc")])]
}

#[tokio::test]
async fn what_is_computed_is_indexed_anew_when_its_definition_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, container) = start(on_disk(directory.path()), 400).await;
    let rid = container.resource.rid;
    write(&db, &container, 0..500, 0).await;
    let mut old = active(&container);
    for (computed, geospatial, spatial) in [
        ("c.n * 2", "Geography", true),
        ("c.n + c.n", "Geography", true),
        ("c.n + c.n", "Geometry", false),
        ("c.n + c.n", "Geography", true),
    ] {
        let container = db.replace_container(rid, special(computed, geospatial), None).await;
        let container = container.expect("a definition can change");
        if container.index_progress() < 100 {
            assert!(!has_special(&container)[0], "entries of another definition are not used");
        }
        assert_sound(&db);
        wait_until_settled(&db, &old).await;
        assert_ne!(active(&now(&db)), old, "{computed} {geospatial}");
        assert_eq!(has_special(&now(&db)), [true, true, spatial], "{computed} {geospatial}");
        old = active(&now(&db));
    }
    // A build that a restart interrupts goes on, and until its end the old entries mean what they meant.
    write(&db, &now(&db), 0..4_000, 1).await;
    db.replace_container(rid, special("c.n - 1", "Geometry"), None).await.expect("a definition can change");
    eventually_async("a first step", || now(&db).index_progress() > 0).await;
    db.close().await;
    drop((db, container));
    let db = reopen(directory.path()).await;
    assert_eq!(active(&now(&db)), old);
    assert_eq!(has_special(&now(&db)), [false, false, false]);
    assert_sound(&db);
    wait_until_settled(&db, &old).await;
    assert_eq!(has_special(&now(&db)), [true, true, false]);
    db.close().await;
}

/// Background tasks may hold the old storage for a moment after it was closed.
async fn reopen(path: &Path) -> Db {
    let open = || Db::open(options(on_disk(path)));
    wait_for_async(|| open().map_err(|error| format!("what was closed does not open: {error}"))).await
}

#[tokio::test]
async fn policies_may_change_faster_than_indexes_are_built() {
    let (db, container) = start(Storage::Memory, 400).await;
    write(&db, &container, 0..2_000, 0).await;
    let (rid, first) = (container.resource.rid, active(&container));
    let replace =
        async |policy: Value| db.replace_container(rid, definition(policy), None).await.expect("a change");
    let second = replace(only_a()).await.builds();
    let third = replace(json!({"indexingMode": "none", "automatic": false})).await.builds();
    assert_ne!(second, third);
    assert_eq!(replace(json!({})).await.builds(), [], "the first index still serves");
    assert_eq!((now(&db).index_progress(), active(&now(&db))), (100, first.clone()));
    let abandoned: Vec<u32> = second.iter().chain(&third).map(|(_, generation)| *generation).collect();
    wait_until_settled(&db, &abandoned).await;
    let same = json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [], "automatic": true});
    assert_eq!(replace(same).await.index_progress(), 100, "nothing has to be built");
    replace(json!({"indexingMode": "none", "automatic": false})).await;
    wait_until_settled(&db, &first).await;
    assert!(active(&now(&db)).iter().all(|generation| entries(&db, *generation) == 0));
    db.close().await;
}

#[tokio::test]
async fn what_a_policy_takes_out_is_no_longer_offered_and_what_it_adds_not_yet() {
    let (db, container) = start(Storage::Memory, 400).await;
    write(&db, &container, 0..1_000, 0).await;
    let covered =
        |db: &Db| ["a", "n", "id"].map(|name| now(db).ranges[0].replica.index().covers(&[Step::Name(name)]));
    assert_eq!(covered(&db), [true, true, true]);
    let rid = container.resource.rid;
    db.replace_container(rid, definition(only_a()), None).await.expect("a policy can change");
    assert_eq!(covered(&db), [true, false, true]);
    assert!(now(&db).ranges[0].replica.index().composites().is_empty());
    eventually_async("the end of the build", || now(&db).index_progress() == 100).await;
    assert_eq!(covered(&db), [true, false, true]);
    db.replace_container(rid, definition(json!({})), None).await.expect("a policy can change");
    assert_eq!(covered(&db), [true, false, true]);
    assert!(now(&db).ranges[0].replica.index().composites().is_empty(), "it was taken out");
    eventually_async("the end of the build", || now(&db).index_progress() == 100).await;
    assert_eq!(covered(&db), [true, true, true]);
    db.close().await;
}

#[tokio::test]
async fn a_container_can_be_dropped_while_its_index_is_built() {
    let (db, container) = start(Storage::Memory, 400).await;
    write(&db, &container, 0..2_000, 0).await;
    let rid = container.resource.rid;
    let container = db.replace_container(rid, definition(only_a()), None).await.expect("a policy can change");
    eventually_async("a first step", || container.index_progress() > 0).await;
    db.delete_container(rid, None).await.expect("it can be dropped");
    let empty = |db: &Db| {
        let snapshot = db.inner.committer.snapshot();
        let count = |keyspace| snapshot.keys(keyspace, Bound::Unbounded, Bound::Unbounded, false).count();
        // Partition 0 keeps its own state, size and schema, and the records of the counters, the account and the database.
        (count(Keyspace::Meta), count(Keyspace::Index)) == (3, 3)
    };
    eventually_async("the end of what it left behind", || empty(&db)).await;
    db.close().await;
}

#[tokio::test]
async fn data_of_another_format_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, _) = start(on_disk(directory.path()), 400).await;
    let mut counters = db.inner.control.lock().await;
    let next = Counters { format: 1, ..counters.clone() };
    db.store(&mut counters, next, &[], &[]).await.expect("a write succeeds");
    drop(counters);
    db.close().await;
    drop(db);
    // Background tasks may hold the storage for a moment, which is another reason to refuse.
    let found = wait_for_async(|| match Db::open(options(on_disk(directory.path()))) {
        Err(OpenError::Format { found, .. }) => Ok(found),
        Err(error) => Err(format!("it is refused for another reason: {error}")),
        Ok(_) => Err("it opens".to_owned()),
    });
    assert_eq!(found.await, 1);
}

/// Opens what another holds for a moment still.
async fn open_as(options: &DbOptions) -> Db {
    let open = || Db::open(options.clone()).map_err(|error| error.to_string());
    wait_for_async(open).await
}

/// What the catalog of a stopped database holds under an id.
async fn stored(options: &DbOptions, id: &str) -> Value {
    let disk = crate::options::disk_options(options).expect("it is on disk");
    let inspect = || orrery_store::engine::Engine::inspect(&disk).engine.map_err(|error| error.to_string());
    let engine = wait_for_async(inspect).await;
    let snapshot = engine.snapshot();
    let key = orrery_store::ItemKey { epk: orrery_doc::Epk::MIN, id: ItemId::new(id).expect("a short id") };
    let item = snapshot.get(Keyspace::Item, &orrery_store::keys::item(0, &key)).expect("it reads back");
    let item = orrery_store::Item::decode(&item.expect("a record")).expect("an item");
    serde_json::to_value(Record::from_doc(&item.doc).expect("a record")).expect("plain data")
}

#[tokio::test]
async fn data_of_the_format_before_is_brought_to_this_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (db, _) = start(on_disk(directory.path()), 400).await;
    let mut counters = db.inner.control.lock().await;
    let next = Counters { format: 4, ..counters.clone() };
    db.store(&mut counters, next, &[], &[RecordId::Account]).await.expect("a write succeeds");
    drop(counters);
    db.close().await;
    drop(db);
    let options = options(on_disk(directory.path()));
    let db = open_as(&options).await;
    let lsn = db.catalog_lsn();
    assert!(db.catalog().database("d").is_some());
    db.close().await;
    drop(db);
    assert_eq!(stored(&options, "counters").await["format"], 5);
    assert_eq!(stored(&options, "account").await["regions"][0]["name"], "here");
    let db = open_as(&options).await;
    assert_eq!(db.catalog_lsn(), lsn, "once is enough");
    db.close().await;
    drop(db);
}

/// With one region the operator names it at each start; its id stays.
#[tokio::test]
async fn the_region_has_the_name_of_the_last_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(on_disk(directory.path()));
    for name in ["here", "there", "there"] {
        options.account.region = name.to_owned();
        let db = open_as(&options).await;
        let region = db.catalog().account().regions[0].clone();
        assert_eq!((region.id, &region.name[..], region.write), (0, name, true));
        db.close().await;
        drop(db);
        assert_eq!(stored(&options, "account").await["regions"][0]["name"], name);
    }
}
