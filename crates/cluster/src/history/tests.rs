//! All versions and deletes, from the policy of a container to the erased entry.

use std::ops::Bound;

use orrery_doc::{Doc, PartitionKey, json as text};
use orrery_store::engine::Keyspace;
use orrery_store::limits::PartitionLimits;
use orrery_store::{Action, ChangeKind, FeedCursor, ItemId, Op, Precondition, Target};
use orrery_testkit::{PATIENCE, wait_for_async};
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Container, ContainerDefinition};
use crate::changes::{ChangePage, ChangesFrom};
use crate::copy::{ContainerName, CopyRequest, JobMode};
use crate::error::{Error, HistoryError};
use crate::options::{DbOptions, Durability};
use crate::request::{AccessChoice, Consistency, PageOptions, Scope, WriteOptions};

const MINUTE: u64 = 60 * TICKS_PER_SECOND;

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn definition(retention: Option<u64>) -> ContainerDefinition {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    if let Some(minutes) = retention {
        body["changeFeedPolicy"] = json!({"retentionDuration": minutes});
    }
    ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind))
}

async fn start(retention: Option<u64>) -> (Db, Arc<Container>) {
    start_with(PartitionLimits::default(), retention).await
}

async fn start_with(limits: PartitionLimits, retention: Option<u64>) -> (Db, Arc<Container>) {
    let options =
        DbOptions { durability: Durability::Relaxed, limits, ..DbOptions::in_memory("history", "here") };
    let db = Db::open(options).expect("an empty database opens");
    let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
    let container = db.create_container(database.resource.rid, definition(retention), None).await;
    (db, container.expect("a new container"))
}

async fn write(db: &Db, container: &Arc<Container>, id: &str, action: Action) {
    let key = PartitionKey::from_header("[\"a\"]").expect("a plain key");
    let op = Op {
        target: Target::Id(ItemId::new(id).expect("a short id")),
        action,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    };
    db.write(container, &key, vec![op], &WriteOptions::default()).await.expect("a write succeeds");
}

async fn upsert(db: &Db, container: &Arc<Container>, id: &str) {
    write(db, container, id, Action::Upsert(doc(&json!({"id": id, "pk": "a"})))).await;
}

async fn read(
    db: &Db,
    container: &Arc<Container>,
    from: ChangesFrom,
) -> Result<ChangePage<orrery_store::HistoryEntry>, Error> {
    let page = PageOptions {
        items_max: 100,
        bytes_max: 1 << 20,
        time_max: orrery_testkit::PATIENCE,
        continuation: None,
        consistency: Consistency::Session,
        session: None,
        access: AccessChoice::Auto,
        properties: None,
        order: Default::default(),
    };
    db.all_changes(container, &Scope::Container, from, &page).await
}

async fn now_in(db: &Db, container: &Arc<Container>) -> ChangesFrom {
    let page = read(db, container, ChangesFrom::Now).await.expect("the feed is there");
    assert!(page.changes.is_empty() && page.is_last);
    ChangesFrom::After(page.seen)
}

async fn refusal(db: &Db, container: &Arc<Container>, from: ChangesFrom) -> Option<HistoryError> {
    match read(db, container, from).await {
        Ok(_) => None,
        Err(error) => match error.kind {
            ErrorKind::History(error) => Some(error),
            other => panic!("{other}"),
        },
    }
}

fn keys_in(db: &Db, keyspace: Keyspace, first: u8) -> usize {
    let snapshot = db.inner.committer.snapshot_owned();
    let keys = snapshot.keys(keyspace, Bound::Included(&[first]), Bound::Unbounded, false);
    keys.filter(|key| key.as_ref().is_ok_and(|key| key[0] == first)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_is_there_for_those_who_ask_for_it() {
    let (db, container) = start(None).await;
    for from in [ChangesFrom::Now, ChangesFrom::Beginning] {
        assert_eq!(refusal(&db, &container, from).await, Some(HistoryError::NotKept));
    }
    upsert(&db, &container, "1").await;
    assert_eq!(keys_in(&db, Keyspace::Feed, 0xFF), 0, "what nobody asked for is not kept");
    let (db, container) = start(Some(10)).await;
    for from in [ChangesFrom::Beginning, ChangesFrom::Time(0)] {
        assert_eq!(refusal(&db, &container, from).await, Some(HistoryError::NoSuchStart));
    }
    let start = now_in(&db, &container).await;
    upsert(&db, &container, "1").await;
    upsert(&db, &container, "1").await;
    write(&db, &container, "1", Action::Delete).await;
    let page = read(&db, &container, start).await.expect("the feed is there");
    let kinds: Vec<_> = page.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Created, ChangeKind::Replaced, ChangeKind::Deleted]);
    assert!(page.is_last);
    assert_eq!(page.seen, FeedCursor::after(page.changes[2].at.lsn));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_keeps_versions_where_a_container_does_not_say() {
    let limits = PartitionLimits { retention: Some(Duration::from_secs(600)), ..PartitionLimits::default() };
    let (db, container) = start_with(limits, None).await;
    assert!(
        container.definition.body.root().get("changeFeedPolicy").is_undefined(),
        "it is no part of the body"
    );
    let start = now_in(&db, &container).await;
    upsert(&db, &container, "1").await;
    write(&db, &container, "1", Action::Delete).await;
    assert_eq!(read(&db, &container, start).await.expect("the feed is there").changes.len(), 2);
    let again = db.replace_container(container.resource.rid, definition(None), None).await.expect("replaced");
    assert_eq!(read(&db, &again, start).await.expect("a replace changes nothing").changes.len(), 2);
    db.erase_histories(db.world().now() + 15 * MINUTE).await.expect("the database runs");
    assert_eq!(refusal(&db, &again, start).await, Some(HistoryError::Outlived), "ten minutes, not for ever");
    let (db, container) = start_with(limits, Some(0)).await;
    assert_eq!(refusal(&db, &container, ChangesFrom::Now).await, Some(HistoryError::NotKept), "it said no");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_erased_and_its_reader_is_told() {
    let (db, container) = start(Some(10)).await;
    let start = now_in(&db, &container).await;
    upsert(&db, &container, "1").await;
    let middle = now_in(&db, &container).await;
    db.erase_histories(db.world().now() + 5 * MINUTE).await.expect("the database runs");
    assert_eq!(read(&db, &container, start).await.expect("it is young").changes.len(), 1);
    db.erase_histories(db.world().now() + 15 * MINUTE).await.expect("the database runs");
    assert_eq!(keys_in(&db, Keyspace::Feed, 0xFF), 0);
    assert_eq!(refusal(&db, &container, start).await, Some(HistoryError::Outlived));
    upsert(&db, &container, "2").await;
    let page = read(&db, &container, middle).await.expect("nothing behind it is missing");
    assert_eq!(page.changes.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_goes_takes_the_history_along() {
    let (db, container) = start(Some(10)).await;
    let before = now_in(&db, &container).await;
    upsert(&db, &container, "1").await;
    let rid = container.resource.rid;
    let container = db.replace_container(rid, definition(None), None).await.expect("a policy may go");
    assert_eq!(refusal(&db, &container, before).await, Some(HistoryError::NotKept));
    upsert(&db, &container, "2").await;
    db.erase_histories(db.world().now()).await.expect("the database runs");
    assert_eq!((keys_in(&db, Keyspace::Feed, 0xFF), keys_in(&db, Keyspace::Meta, b'H')), (0, 0));
    let container = db.replace_container(rid, definition(Some(10)), None).await.expect("and come back");
    assert_eq!(refusal(&db, &container, before).await, Some(HistoryError::Outlived));
    let after = now_in(&db, &container).await;
    upsert(&db, &container, "3").await;
    assert_eq!(read(&db, &container, after).await.expect("from here on").changes.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_container_leaves_no_history() {
    let (db, container) = start(Some(10)).await;
    upsert(&db, &container, "1").await;
    assert_eq!((keys_in(&db, Keyspace::Feed, 0xFF), keys_in(&db, Keyspace::Meta, b'H')), (1, 1));
    db.delete_container(container.resource.rid, None).await.expect("it can go");
    wait_for_async(|| match (keys_in(&db, Keyspace::Feed, 0xFF), keys_in(&db, Keyspace::Meta, b'H')) {
        (0, 0) => Ok(()),
        (entries, states) => Err(format!("{entries} entries and {states} states of the history stay")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_new_job_follows_is_not_erased_by_a_round_that_began_before() {
    let (db, source) = start(None).await;
    let mut target = json!({"id": "t", "partitionKey": {"paths": ["/city"], "kind": "Hash", "version": 2}});
    target["indexingPolicy"] = json!({"indexingMode": "none", "automatic": false});
    let target = ContainerDefinition::parse(&doc(&target)).unwrap_or_else(|error| panic!("{}", error.kind));
    db.create_container(source.database, target, None).await.expect("a new container");
    let name = |id: &str| ContainerName { database: "d".into(), container: id.into() };
    let request = CopyRequest {
        source: name("c"),
        target: name("t"),
        mode: JobMode::Online,
        rate: Some(1),
        completes_itself: false,
    };
    let job = db.copy_container(request).await.expect("a job").job;
    db.pause_job(&job.id).await.expect("a pause");
    upsert(&db, &source, "1").await;
    upsert(&db, &source, "2").await;
    // The round looked at the container before the job was there, and found that it keeps nothing.
    for range in &source.ranges {
        range.erase_history(&db.inner.committer, None).await.expect("the database runs");
        range.erase_history(&db.inner.committer, Some(u64::MAX)).await.expect("the database runs");
        let round = tokio::time::timeout(PATIENCE, db.erase_history(range, None)).await;
        round.expect("the round comes to an end").expect("the database runs");
    }
    assert_eq!(keys_in(&db, Keyspace::Feed, 0xFF), 2);
    db.cancel_job(&job.id).await.expect("it ends");
    db.erase_histories(db.world().now()).await.expect("the database runs");
    assert_eq!(keys_in(&db, Keyspace::Feed, 0xFF), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_comes_back_keeps_what_a_round_was_erasing() {
    let (db, container) = start(Some(10)).await;
    upsert(&db, &container, "1").await;
    let range = &container.ranges[0];
    let round = tokio::time::timeout(PATIENCE, db.erase_history(range, None)).await;
    round.expect("the round comes to an end").expect("the database runs");
    assert_eq!(keys_in(&db, Keyspace::Feed, 0xFF), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_do_not_merge_before_their_history_is_erased() {
    let (db, container) = start(Some(10)).await;
    upsert(&db, &container, "1").await;
    let ids = db.split(&container, container.ranges[0].descriptor.id, 2).await.expect("it can be split");
    let rid = container.resource.rid;
    let container = db.replace_container(rid, definition(None), None).await.expect("a policy may go");
    let refused = db.merge(&container, ids[0], ids[1]).await.map_err(|error| error.kind);
    assert!(matches!(refused, Err(ErrorKind::Overloaded)), "{refused:?}");
    db.erase_histories(db.world().now()).await.expect("the database runs");
    db.merge(&container, ids[0], ids[1]).await.expect("nothing is left to erase");
    assert_eq!((keys_in(&db, Keyspace::Feed, 0xFF), keys_in(&db, Keyspace::Meta, b'H')), (0, 0));
}
