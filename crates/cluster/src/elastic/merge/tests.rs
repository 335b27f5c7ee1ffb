//! A merge that builds for a long time, and what others do meanwhile.

use orrery_doc::{Doc, PartitionKey, json as text};
use orrery_store::limits::INDEX_BUILDS_MAX;
use orrery_store::{Action, ItemId, Op, Precondition, Target};
use orrery_testkit::wait_for_async;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{ContainerDefinition, Usage};
use crate::options::{DbOptions, Durability};
use crate::request::WriteOptions;

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

/// A container with some items in four partitions that have built their indexes.
async fn start() -> (Db, Arc<Container>) {
    let options = DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("merge", "here") };
    let db = Db::open(options).expect("an empty database opens");
    let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let definition = ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind));
    let container = db.create_container(database.resource.rid, definition, None).await.expect("a new one");
    for number in 0..40 {
        let id = format!("{number}");
        let action = Action::Create(doc(&json!({"id": id, "pk": id})));
        let key = PartitionKey::from_header(&json!([id]).to_string()).expect("a plain key");
        let op = Op {
            target: Target::Id(ItemId::new(id).expect("a short id")),
            action,
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        db.write(&container, &key, vec![op], &WriteOptions::default()).await.expect("a write succeeds");
    }
    db.split(&container, container.ranges[0].descriptor.id, 4).await.expect("it can be split");
    db.await_indexes(container.resource.rid).await.expect("they are built");
    (db, container)
}

/// The ids of the ranges, and of those that are being merged.
fn ranges(db: &Db, container: &Container) -> (Vec<u32>, Vec<u32>) {
    let catalog = db.catalog();
    let now = catalog.container_by_rid(container.resource.rid).expect("it is never dropped");
    let is_merging = |range: &&Arc<Range>| {
        range.replica.schema.load().building.as_ref().is_some_and(|index| index.is_shared)
    };
    let ids = now.ranges.iter().map(|range| range.descriptor.id).collect();
    (ids, now.ranges.iter().filter(is_merging).map(|range| range.descriptor.id).collect())
}

fn verify(db: &Db) {
    for range in db.verify().expect("stored items decode") {
        assert_eq!(range.result.findings, Vec::<String>::new());
    }
}

/// Starts a merge of the first two ranges that cannot build; returns when they are marked.
async fn start_merge(db: &Db, container: &Arc<Container>) -> tokio::task::JoinHandle<Result<u32>> {
    let (ids, _) = ranges(db, container);
    let (asking, asked) = (db.clone(), container.clone());
    let merge = tokio::spawn(async move { asking.merge(&asked, ids[0], ids[1]).await });
    wait_for_async(|| match ranges(db, container).1.len() {
        2.. => Ok(()),
        marked => {
            assert!(!merge.is_finished(), "it waits");
            Err(format!("{marked} ranges are marked"))
        }
    })
    .await;
    merge
}

#[tokio::test(flavor = "multi_thread")]
async fn others_split_while_a_merge_builds() {
    let (db, container) = start().await;
    let nobody_builds = db.inner.index_builds.acquire_many(INDEX_BUILDS_MAX as u32).await.expect("permits");
    let merge = start_merge(&db, &container).await;
    let (ids, _) = ranges(&db, &container);
    let refused = db.merge(&container, ids[1], ids[2]).await.map_err(|error| error.kind);
    assert!(matches!(refused, Err(ErrorKind::Overloaded)), "{refused:?}");
    db.split(&container, ids[3], 2).await.expect("it does not wait for the merge");
    drop(nobody_builds);
    merge.await.expect("no panic").expect("they are merged");
    let (ids, merging) = ranges(&db, &container);
    assert_eq!((ids.len(), merging.len()), (4, 0));
    db.await_indexes(container.resource.rid).await.expect("they are built");
    verify(&db);
}

/// Answers tell what a container holds, from sums that are kept up.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_container_holds_is_the_sum_of_its_partitions_after_every_change() {
    let (db, container) = start().await;
    let check = |items| {
        let now = db.catalog().container_by_rid(container.resource.rid).expect("it is never dropped").clone();
        let sum = Usage::sum(now.ranges.iter().map(|range| Usage::of(&range.replica.partition.state())));
        assert_eq!((now.usage(), now.usage().items), (sum, items));
    };
    check(40);
    let delete = async |id: &str| {
        let op = Op {
            target: Target::Id(ItemId::new(id).expect("a short id")),
            action: Action::Delete,
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        let key = PartitionKey::from_header(&json!([id]).to_string()).expect("a plain key");
        db.write(&container, &key, vec![op], &WriteOptions::default()).await.expect("it is there");
    };
    delete("3").await;
    check(39);
    db.split(&container, ranges(&db, &container).0[1], 2).await.expect("it can be split");
    check(39);
    delete("4").await;
    db.await_indexes(container.resource.rid).await.expect("they are built");
    let (ids, _) = ranges(&db, &container);
    db.merge(&container, ids[0], ids[1]).await.expect("neighbours merge");
    delete("5").await;
    check(37);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_splits_ends_its_merge() {
    let (db, container) = start().await;
    let nobody_builds = db.inner.index_builds.acquire_many(INDEX_BUILDS_MAX as u32).await.expect("permits");
    let merge = start_merge(&db, &container).await;
    let (ids, _) = ranges(&db, &container);
    db.split(&container, ids[0], 2).await.expect("it does not wait for the merge");
    drop(nobody_builds);
    assert!(merge.await.expect("no panic").is_err(), "one of the two is no more");
    let (ids, merging) = ranges(&db, &container);
    assert_eq!((ids.len(), merging.len()), (5, 0), "the other one is as it was");
    db.merge(&container, ids[0], ids[1]).await.expect("new neighbours merge");
    db.merge(&container, ids[2], ids[3]).await.expect("and so does the one that was left");
    verify(&db);
}
