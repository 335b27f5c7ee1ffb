//! Changes whose askers go away.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use orrery_doc::json as text;
use orrery_store::engine::{Batch, Keyspace};
use orrery_store::keys;
use orrery_store::limits::PartitionLimits;
use orrery_testkit::wait_for_async;
use serde_json::{Value, json};

use super::*;
use crate::options::{Account, DbOptions, Durability, Storage};
use crate::request::Consistency;

fn open() -> Db {
    open_on(Storage::Memory)
}

fn open_on(storage: Storage) -> Db {
    Db::open(options(storage)).expect("the storage opens")
}

fn options(storage: Storage) -> DbOptions {
    let account = Account {
        name: "changes".into(),
        region: "here".into(),
        consistency: Consistency::Session,
        serverless: false,
    };
    let limits = PartitionLimits::default();
    let memory = Default::default();
    DbOptions { storage, durability: Durability::Relaxed, limits, throttle: false, account, memory }
}

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn definition(id: &str) -> ContainerDefinition {
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    ContainerDefinition::parse(&doc(&json!({"id": id, "partitionKey": key}))).expect("a definition")
}

/// Asks for a change and goes away before it is done.
async fn leave<T>(change: impl Future<Output = Result<T>>) {
    let mut change = pin!(change);
    let began = poll_fn(|context| Poll::Ready(change.as_mut().poll(context))).await;
    assert!(began.is_pending(), "the change was over before anybody could leave");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_asker_goes_away_is_carried_to_its_end() {
    let db = open();
    let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("new");
    let owner = database.resource.rid;
    let first = db.create_container(owner, definition("first"), None).await.expect("new");
    // Nobody can be quicker than those who leave.
    let turn = db.inner.control.lock().await;
    leave(db.delete_container(first.resource.rid, None)).await;
    leave(db.create_container(owner, definition("second"), None)).await;
    drop(turn);
    let third = db.create_container(owner, definition("third"), None).await.expect("new");
    let is_deleted = |catalog: &Catalog| catalog.container_by_rid(first.resource.rid).is_none();
    let is_made = |catalog: &Catalog| catalog.database("d").is_some_and(|d| d.container("second").is_some());
    wait_for_async(|| match (is_deleted(&db.catalog()), is_made(&db.catalog())) {
        (true, true) => Ok(()),
        (deleted, made) => Err(format!("the first is deleted: {deleted}; the second is made: {made}")),
    })
    .await;
    let catalog = db.catalog();
    assert!(is_deleted(&catalog), "it is deleted on disk");
    let second = catalog.database("d").and_then(|database| database.container("second"));
    let second = second.expect("it is there on disk");
    assert_ne!(second.number, third.number, "no number is given twice");
    let partition = |container: &Container| container.ranges[0].replica.partition.spec.number;
    assert_ne!(partition(second), partition(&third));
}

/// What stands where the state of the next partition will be keeps the container from being opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_cannot_be_opened_leaves_nothing_and_its_numbers_are_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, cache_bytes) = (directory.path().to_owned(), 8 << 20);
    let storage = Storage::Disk { path, cache_bytes, disk_bytes_max: None, write_buffer_bytes: None };
    let db = open_on(storage.clone());
    let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("new");
    let owner = database.resource.rid;
    let before = db.inner.control.lock().await.clone();
    let mut damage = Batch::new();
    damage.put(Keyspace::Meta, keys::partition_state(before.partition).to_vec(), "no state");
    db.inner.committer.commit(damage).await.expect("a commit");
    let refused = db.create_container(owner, definition("c"), None).await;
    let damaged = |kind: &ErrorKind| matches!(kind, ErrorKind::Fault { fault: Fault::Damaged(_), .. });
    assert!(refused.is_err_and(|error| damaged(&error.kind)));
    let made = db.create_container(owner, definition("c"), None).await.expect("other numbers, another place");
    assert_ne!(
        (made.number, made.ranges[0].replica.partition.spec.number),
        (before.container, before.partition)
    );
    db.close().await;
    drop(db);
    let again = || Db::open(options(storage.clone())).map_err(|error| error.to_string());
    let db = wait_for_async(again).await;
    let found: Vec<Rid> = db.catalog().containers().map(|container| container.resource.rid).collect();
    assert_eq!(found, [made.resource.rid]);
}
