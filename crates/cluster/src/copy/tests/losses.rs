//! What a job must not lose on its way, each in the moment in which it could.

use std::time::Instant;

use orrery_store::{Item, ItemId, Lsn};
use orrery_testkit::PATIENCE;

use super::super::align::Pair;
use super::super::control::Live;
use super::super::run::{Runner, Stop};
use super::super::source;
use super::*;
use crate::world::World;

/// The two containers of a job, without the job.
fn pair(db: &Db) -> Pair {
    Pair { db: db.clone(), source: named(db, "c"), target: named(db, "t"), deadline: None }
}

/// A job that has one item parked, and has followed nothing yet.
fn runner_with_parked(db: &Db, parked: &Value) -> Runner {
    let source = named(db, "c");
    let key = PartitionKey::extract(&source.definition.key, doc(parked).as_ref());
    let epk = orrery_doc::epk(&source.definition.key, &key);
    let mut runner =
        Runner::new(Arc::downgrade(&db.inner), "job".to_owned(), Arc::new(Live::default()), World::Real);
    let id = ItemId::new(parked["id"].as_str().expect("an id")).expect("a short id");
    runner.progress.parked.push(Place { epk, id });
    runner
}

async fn two_containers(source: &Value, target: &Value) -> Db {
    let db = open();
    container(&db, "c", &["/pk"], source).await;
    container(&db, "t", &["/city"], target).await;
    db
}

fn item(n: usize) -> Value {
    json!({"id": format!("i{n}"), "pk": "p", "city": format!("c{}", n % 7)})
}

/// What the container of a name has at the place of an item.
fn stored(db: &Db, id: &str, value: &Value) -> Item {
    let container = named(db, id);
    let key = PartitionKey::extract(&container.definition.key, doc(value).as_ref());
    let epk = orrery_doc::epk(&container.definition.key, &key);
    let range = container.range_of(&epk);
    let snapshot = db.inner.committer.snapshot_owned();
    let view = range.replica.view(&snapshot, range.replica.partition.lsn());
    let target = Target::Id(ItemId::new(value["id"].as_str().expect("an id")).expect("a short id"));
    view.item(&epk, &target).expect("it can be read").expect("it is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_a_page_has_cut_is_followed_to_its_end() {
    let db = two_containers(&json!({}), &json!({})).await;
    let slow = CopyRequest { rate: Some(50), ..request("t", JobMode::Online) };
    let job = db.copy_container(slow).await.expect("a job").job;
    wait_until(&db, &job.id, |report| report.phase == JobPhase::Following).await;
    let source = named(&db, "c");
    let key = PartitionKey::extract(&source.definition.key, doc(&item(0)).as_ref());
    let batch = (0..100).map(|n| op(&format!("i{n}"), Action::Upsert(doc(&item(n))))).collect();
    db.write(&source, &key, batch, &WriteOptions::default()).await.expect("a batch");
    // The first page ends within the batch, which nothing follows.
    wait_until(&db, &job.id, |report| report.changes_applied > 0).await;
    db.complete_job(&job.id).await.expect("a cut-over");
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Completed, "{report:?}");
    assert_eq!(items(&db, "t").await, items(&db, "c").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_of_a_transaction_is_pending() {
    let db = two_containers(&json!({"changeFeedPolicy": {"retentionDuration": 10}}), &json!({})).await;
    let source = named(&db, "c");
    let key = PartitionKey::extract(&source.definition.key, doc(&item(0)).as_ref());
    let range = source.range_of(&orrery_doc::epk(&source.definition.key, &key)).clone();
    let mut intervals = vec![Interval::new(range.epk(), range.replica.partition.lsn())];
    assert_eq!(source::pending(&source, &intervals), (0, vec![]));
    let batch = (0..10).map(|n| op(&format!("i{n}"), Action::Upsert(doc(&item(n))))).collect();
    db.write(&source, &key, batch, &WriteOptions::default()).await.expect("a batch");
    for expected in [4, 4, 2] {
        assert_eq!(source::pending(&source, &intervals), (1, vec![0]));
        let page = source::changes(&db, &source, &intervals[0], 4).expect("a page");
        assert_eq!(page.changes.len(), expected);
        intervals[0].set_cursor(page.seen);
    }
    assert_eq!(source::pending(&source, &intervals), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_were_erased_are_missed_rather_than_skipped() {
    let db = two_containers(&json!({"changeFeedPolicy": {"retentionDuration": 10}}), &json!({})).await;
    upsert(&db, "c", &item(0)).await;
    let source = named(&db, "c");
    let key = PartitionKey::extract(&source.definition.key, doc(&item(0)).as_ref());
    let range = source.range_of(&orrery_doc::epk(&source.definition.key, &key)).clone();
    let early = Interval::new(range.epk(), Lsn(0));
    assert_eq!(source::changes(&db, &source, &early, 100).expect("a page").changes.len(), 1);
    let later = db.world().now() + crate::history::ticks(Duration::from_secs(3_600));
    db.erase_histories(later).await.expect("the database runs");
    let refused = source::changes(&db, &source, &early, 100).err().expect("an entry is gone");
    assert!(matches!(refused.kind, ErrorKind::History(_)), "{refused:?}");
    let current = Interval::new(range.epk(), range.replica.partition.lsn());
    assert!(source::changes(&db, &source, &current, 100).expect("a page").changes.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_items_stay_until_the_target_has_answered() {
    let db = two_containers(&json!({}), &json!({})).await;
    upsert(&db, "c", &item(0)).await;
    let pair = pair(&db);
    let mut runner = runner_with_parked(&db, &item(0));
    // Nothing can be written to a container that is gone.
    db.delete_container(pair.target.resource.rid, None).await.expect("it is there");
    assert!(matches!(runner.settle_parked(&pair).await, Err(Stop::Again)));
    assert_eq!(runner.progress.parked.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_over_that_takes_too_long_forgets_nothing() {
    let db = two_containers(&json!({"changeFeedPolicy": {"retentionDuration": 10}}), &json!({})).await;
    let source = named(&db, "c");
    let mut runner = runner_with_parked(&db, &item(0));
    for range in &source.ranges {
        runner.progress.intervals.push(Interval::new(range.epk(), range.replica.partition.lsn()));
    }
    let before = runner.progress.intervals.clone();
    upsert(&db, "c", &item(0)).await;
    upsert(&db, "c", &item(1)).await;
    let late = Pair { deadline: Some(Instant::now()), ..pair(&db) };
    assert!(matches!(runner.follow_tail(&late).await, Err(Stop::Again)));
    assert_eq!((runner.progress.parked.len(), &runner.progress.intervals), (1, &before));
    assert!(runner.follow_tail(&pair(&db)).await.is_ok());
    assert!(runner.progress.parked.is_empty());
    assert_eq!(items(&db, "t").await, items(&db, "c").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_are_refused_again_and_again_end_with_the_hold() {
    let db = two_containers(&json!({}), &json!({})).await;
    upsert(&db, "c", &item(0)).await;
    let late = Pair { deadline: Some(Instant::now()), ..pair(&db) };
    let mut runner = runner_with_parked(&db, &item(0));
    // The catalog knows these partitions, but they take nothing.
    for range in &late.target.ranges {
        range.close(&db.inner.committer);
    }
    let settled = tokio::time::timeout(PATIENCE, runner.settle_parked(&late)).await;
    assert!(matches!(settled.expect("it ends"), Err(Stop::Again)));
    assert_eq!(runner.progress.parked.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_rewrite_renews_the_life_of_the_copy() {
    let lasting = json!({"defaultTtl": 3_600});
    let db = two_containers(&lasting, &lasting).await;
    upsert(&db, "c", &item(0)).await;
    let job = db.copy_container(request("t", JobMode::Online)).await.expect("a job").job;
    wait_until(&db, &job.id, |report| report.phase == JobPhase::Following).await;
    let before = stored(&db, "t", &item(0)).header.time;
    upsert(&db, "c", &item(0)).await;
    db.complete_job(&job.id).await.expect("a cut-over");
    let report = wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(report.job.state, JobState::Completed, "{report:?}");
    let after = stored(&db, "t", &item(0)).header.time;
    assert!(after > before, "the copy lives from {before}, though its original was renewed");
    // What is as young as its original is not written again.
    let is_younger = after >= stored(&db, "c", &item(0)).header.time;
    let job = db.copy_container(request("t", JobMode::Offline)).await.expect("a job").job;
    wait_until(&db, &job.id, |report| report.job.state.is_over()).await;
    assert_eq!(stored(&db, "t", &item(0)).header.time == after, is_younger);
}
