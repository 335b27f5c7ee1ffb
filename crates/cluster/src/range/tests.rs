use orrery_doc::{Doc, PartitionKey, epk, json as text};
use orrery_store::{Action, ItemId, Op, OpError, Precondition, Target, Txn};

use super::*;
use crate::catalog::{Container, ContainerDefinition};
use crate::db::Db;
use crate::error::ErrorKind;
use crate::look::Look;
use crate::options::{DbOptions, Durability};
use crate::request::{Consistency, ReadOptions, WriteOptions};

fn doc(json: &str) -> Doc {
    text::parse(json.as_bytes(), 64).expect("a test document is JSON")
}

fn create() -> Op {
    Op {
        target: Target::Id(ItemId::new("1").expect("a short id")),
        action: Action::Create(doc(r#"{"id":"1","pk":"a"}"#)),
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

fn open() -> Db {
    Db::open(DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("range", "here") })
        .expect("an empty database opens")
}

/// A database with a container of one item, and the key of that.
async fn written() -> (Db, Arc<Container>, PartitionKey) {
    let db = open();
    let database = db.create_database("d", doc(r#"{"id":"d"}"#), None).await.expect("a new database");
    let body = doc(r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#);
    let definition = ContainerDefinition::parse(&body).unwrap_or_else(|error| panic!("{}", error.kind));
    let container = db.create_container(database.resource.rid, definition, None).await.expect("a container");
    let key = PartitionKey::from_header(r#"["a"]"#).expect("a plain key");
    db.write(&container, &key, vec![create()], &WriteOptions::default()).await.expect("a new item");
    (db, container, key)
}

#[tokio::test]
async fn a_look_at_an_item_is_done_at_once_on_a_node_that_is_alone() {
    let (db, container, key) = written().await;
    let options =
        ReadOptions { consistency: Consistency::Session, session: None, precondition: Precondition::None };
    let look = |target: &Target| db.read_now(&container, &key, target, &options);
    let Ok(Look::Done(reply)) = look(&create().target) else { panic!("it is here") };
    assert_eq!(reply.item.header.lsn, container.ranges[0].replica.partition.lsn());
    let waited = db.read(&container, &key, &create().target, &options).await.expect("it is here");
    assert_eq!(waited.item.header.lsn, reply.item.header.lsn);
    let missing = look(&Target::Id("2".into())).expect_err("nobody wrote it");
    assert!(matches!(missing.kind, ErrorKind::Op { error: OpError::NotFound, .. }), "{missing:?}");
    db.close().await;
}

/// As it is on a node that has a copy of a partition which another node leads.
#[tokio::test]
async fn a_range_that_is_led_elsewhere_is_read_here_and_not_written() {
    let (db, container, key) = written().await;
    let (committer, led) = (&db.inner.committer, &container.ranges[0]);
    let snapshot = committer.snapshot_owned();
    let parts = RangeParts {
        id: led.descriptor.id,
        parents: led.descriptor.parents.clone(),
        schema: Schema::clone(&led.replica.schema.load()),
        rate: 0.0,
        limits: PartitionLimits::default(),
        totals: led.replica.totals.clone(),
        memory: db.memory().clone(),
    };
    let partition = Partition::open(led.replica.partition.spec.clone(), &snapshot).expect("it reads back");
    let range = Arc::new(Range::new(partition, parts).led_elsewhere());

    assert_eq!(range.descriptor, led.descriptor);
    let scope = epk(&container.definition.key, &key);
    assert!(Arc::ptr_eq(route(std::slice::from_ref(&range), &scope), &range));
    let (lsn, snapshot, _) = range.replica.schema_point(committer).expect("it is there");
    let view = range.replica.view(&snapshot, lsn);
    let found = view.item(&scope, &create().target).expect("it reads back");
    assert_eq!(found.map(|item| item.header.lsn), Some(lsn));

    assert_eq!(range.lead().err(), Some(NoLead::Elsewhere));
    let txn = Txn { scope, key: Some(key), ops: vec![create()], now: db.world().now() };
    let refused = range.write(committer, txn).await.expect_err("it is not written here");
    assert!(matches!(refused, WriteError::Unwritten(ErrorKind::NoLead(NoLead::Elsewhere))), "{refused:?}");
    assert_eq!(range.hold().await, Err(NoLead::Elsewhere));
    assert!(range.is_quiet());
    range.release(committer);
    range.hand_over(std::slice::from_ref(led), committer);
    assert!(range.replica.check_there().is_err(), "a copy hears of its successors too");
    db.close().await;
}
