use orrery_doc::json as text;
use serde_json::json;

use super::*;
use crate::catalog::ContainerDefinition;
use crate::options::{DbOptions, Durability};

use crate::throughput::{BucketLimit, Priority};

async fn open(throughput: u32) -> (Db, Arc<Container>) {
    let options = DbOptions {
        durability: Durability::Relaxed,
        throttle: true,
        ..DbOptions::in_memory("test", "Local")
    };
    let db = Db::open(options).expect("an empty database opens");
    let doc = |body: serde_json::Value| text::parse(body.to_string().as_bytes(), 16).expect("JSON");
    let database = db.create_database("d", doc(json!({"id": "d"})), None).await.expect("a database");
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let definition = ContainerDefinition::parse(&doc(body)).expect("a definition");
    let throughput = Some(Throughput::Manual(throughput));
    let container = db.create_container(database.resource.rid, definition, throughput).await;
    (db, container.expect("a container"))
}

fn offer(db: &Db, container: &Container) -> Arc<Offer> {
    db.catalog().offer_of(container.resource.rid).expect("it has an offer").clone()
}

fn rates(db: &Db, container: &Container) -> Vec<f64> {
    let catalog = db.catalog();
    let container = catalog.container_by_rid(container.resource.rid).expect("it is there");
    container.partition_budgets().iter().map(|budget| budget.rate.round()).collect()
}

#[tokio::test]
async fn what_needs_splits_is_pending_and_a_second_such_change_must_wait() {
    let (db, container) = open(400).await;
    let _nobody_splits = db.inner.balance.turn().await;
    let rid = offer(&db, &container).rid;
    let raised = db.replace_offer(rid, Throughput::Manual(12_000), None).await.expect("it is accepted");
    assert!(db.offer_status(&db.catalog(), &raised).is_pending);
    assert_eq!(rates(&db, &container), [10_000.0], "a partition gives what it can meanwhile");
    let further = db.replace_offer(rid, Throughput::Manual(30_000), None).await.expect_err("it must wait");
    assert!(matches!(further.kind, ErrorKind::OfferReplacePending), "{}", further.kind);
    let back = db.replace_offer(rid, Throughput::Manual(9_000), None).await.expect("this needs no split");
    assert!(!db.offer_status(&db.catalog(), &back).is_pending);
    assert_eq!(rates(&db, &container), [9_000.0]);
}

#[tokio::test]
async fn a_division_stays_when_a_bucket_changes_and_the_other_way_round() {
    let (db, container) = open(12_000).await;
    let rid = container.resource.rid;
    let change = Redistribution { targets: vec![(0, 9_000.0)], sources: vec![] };
    db.redistribute_throughput(rid, Some(change)).await.expect("a division");
    let bucket = BucketLimit { id: 1, percent: 50, is_default: true };
    let settings = Settings { buckets: vec![bucket], default_priority: Priority::Low, ..Settings::default() };
    db.replace_throughput_settings(rid, settings).await.expect("settings");
    assert_eq!(rates(&db, &container), [9_000.0, 3_000.0]);
    let equal = db.redistribute_throughput(rid, None).await.expect("equal parts");
    assert_eq!(rates(&db, &container), [6_000.0, 6_000.0]);
    assert_eq!((equal.throughput.buckets.as_slice(), equal.throughput.is_custom()), (&[bucket][..], false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_of_a_split_share_what_their_parent_was_given() {
    let (db, container) = open(12_000).await;
    let rid = container.resource.rid;
    let change = Redistribution { targets: vec![(0, 8_000.0)], sources: vec![] };
    let container = db.redistribute_throughput(rid, Some(change)).await.expect("a division");
    db.split(&container, 0, 2).await.expect("a split");
    assert_eq!(rates(&db, &container), [4_000.0, 4_000.0, 4_000.0]);
    let split = db.catalog().container_by_rid(rid).expect("it is there").clone();
    db.split(&split, 1, 2).await.expect("a split");
    assert_eq!(rates(&db, &container), [4_000.0, 4_000.0, 2_000.0, 2_000.0]);
}
