//! Time to live and unique keys, from the definition of a container to the deleted item.

use std::ops::Bound;

use orrery_doc::{Doc, PartitionKey, json as text};
use orrery_query::{Parameters, compile};
use orrery_store::engine::Keyspace;
use orrery_store::{Action, FeedCursor, ItemId, Lsn, Op, OpError, Precondition, Target, Txn, keys};
use orrery_testkit::wait_for_async;
use serde_json::{Value, json};

use super::*;
use crate::catalog::ContainerDefinition;
use crate::changes::ChangesFrom;
use crate::error::Error;
use crate::options::{DbOptions, Durability, Storage};
use crate::request::{
    AccessChoice, Consistency, PageOptions, ReadOptions, Scope, Throughput, WriteOptions, WriteReply,
};
use crate::throttle::Who;
use crate::throughput::Claim;
use crate::world::{self, ByHand};

/// Longer than the shortest life.
const A_LIFE: Duration = Duration::from_millis(1_100);
/// An item whose life is the shortest is there for so long at least.
const MOST_OF_A_LIFE: Duration = Duration::from_millis(900);
/// When these tests take place, since 1970.
const NOW: Duration = Duration::from_millis(1_790_000_000_250);
const FOUR_PARTITIONS: u32 = 24_000;
/// The rate of a budget that is not limited.
const UNLIMITED: f64 = 0.0;

struct World {
    hand: Arc<ByHand>,
    db: Db,
    container: Arc<Container>,
}

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn key(name: &str) -> PartitionKey {
    PartitionKey::from_header(&json!([name]).to_string()).expect("a plain key")
}

fn definition(more: &Value) -> ContainerDefinition {
    let mut body = json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"compositeIndexes": [[{"path": "/few"}, {"path": "/n", "order": "descending"}]]},
    });
    let more = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(more);
    ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind))
}

/// Opens what was closed; a task of before may hold it for a moment longer.
async fn open_again(hand: &Arc<ByHand>, options: &DbOptions) -> Db {
    let open = || Db::open_in(world::World::ByHand(hand.clone()), options.clone());
    wait_for_async(|| open().map_err(|error| format!("what was closed does not open: {error}"))).await
}

fn options(storage: Storage, throttle: bool) -> DbOptions {
    DbOptions { storage, durability: Durability::Relaxed, throttle, ..DbOptions::in_memory("ttl", "here") }
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

impl World {
    async fn new(more: Value, throughput: u32) -> World {
        World::on(options(Storage::Memory, false), more, throughput).await
    }

    async fn on(options: DbOptions, more: Value, throughput: u32) -> World {
        let (time, hand) = world::World::by_hand(NOW, 1);
        let db = Db::open_in(time, options).expect("an empty database opens");
        let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
        let throughput = Some(Throughput::Manual(throughput));
        let container = db.create_container(database.resource.rid, definition(&more), throughput).await;
        World { hand, db, container: container.expect("a new container") }
    }

    /// One round of deleting, for which time passes as far as it pauses.
    async fn purge(&self) {
        let round = self.hand.pass_during(PAUSE, self.db.purge_expired());
        round.await.expect("nobody stops");
    }

    async fn write(&self, pk: &str, ops: Vec<Op>) -> Result<WriteReply, Error> {
        self.db.write(&self.container, &key(pk), ops, &WriteOptions::default()).await
    }

    async fn create(&self, pk: &str, id: &str, body: Value) -> Result<WriteReply, Error> {
        self.write(pk, vec![op(id, Action::Create(doc(&body)))]).await
    }

    async fn replace_definition(&mut self, more: Value) {
        let replaced = self.db.replace_container(self.container.resource.rid, definition(&more), None).await;
        self.container = replaced.expect("a good definition");
    }

    fn page(
        &self,
        items_max: usize,
        continuation: Option<crate::Cursor>,
        access: AccessChoice,
    ) -> PageOptions {
        PageOptions {
            items_max,
            bytes_max: 4 << 20,
            time_max: orrery_testkit::PATIENCE,
            continuation,
            consistency: Consistency::Session,
            session: None,
            access,
            properties: None,
            order: Default::default(),
        }
    }

    /// All rows of a query, in pages.
    async fn rows(&self, scope: &Scope, query: &str, access: AccessChoice, merged: bool) -> Vec<String> {
        let program = compile(query, &Parameters::default()).expect(query);
        let (mut rows, mut continuation) = (Vec::new(), None);
        loop {
            let page = self.page(7, continuation, access);
            let answer = match merged {
                true => self.db.query_merged(&self.container, scope, &program, &page).await,
                false => self.db.query(&self.container, scope, &program, &page).await,
            };
            let answer = answer.unwrap_or_else(|error| panic!("{query}: {error:?}"));
            rows.extend(answer.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
            continuation = answer.continuation;
            if continuation.is_none() {
                return rows;
            }
        }
    }

    async fn feed(&self) -> usize {
        let (mut items, mut continuation) = (0, None);
        loop {
            let page = self.page(7, continuation, AccessChoice::Auto);
            let answer = self.db.read_feed(&self.container, &Scope::Container, &page).await.expect("a page");
            items += answer.items.len();
            continuation = answer.continuation;
            if continuation.is_none() {
                return items;
            }
        }
    }

    async fn is_there(&self, pk: &str, id: &str) -> bool {
        let options = ReadOptions {
            consistency: Consistency::Session,
            session: None,
            precondition: Precondition::None,
        };
        let target = Target::Id(ItemId::new(id).expect("a short id"));
        match self.db.read(&self.container, &key(pk), &target, &options).await {
            Ok(_) => true,
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::Op { error: OpError::NotFound, .. }), "{error:?}");
                false
            }
        }
    }

    fn verify(&self) {
        for range in self.db.verify().expect("stored items decode") {
            assert_eq!(range.result.findings, Vec::<String>::new());
        }
    }
}

fn is_unique_conflict(answer: &Result<WriteReply, Error>) -> bool {
    let conflict = |error: &Error| matches!(error.kind, ErrorKind::Op { error: OpError::UniqueConflict, .. });
    answer.as_ref().is_err_and(conflict)
}

/// Items of three logical partitions; two of three end soon, in both ways.
async fn fill(world: &World, only_the_living: bool) {
    for number in 0..150 {
        let (pk, id) = (format!("p{}", number % 4), format!("i{:03}", number * 77 % 150));
        let mut body = json!({
            "id": id, "pk": pk, "n": number, "few": number % 5, "t": [number % 3, number % 7], "s": format!("s{number}"),
        });
        match number % 3 {
            0 => body["ttl"] = json!(if number % 2 == 0 { -1 } else { 1_000 }),
            _ if only_the_living => continue,
            1 => body["ttl"] = json!(1),
            _ => {}
        }
        world.create(&pk, &id, body).await.expect("a new item");
    }
}

const QUERIES: [&str; 24] = [
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.few = 1",
    "SELECT VALUE c.id FROM c WHERE c.s = 's3' OR c.s = 's4'",
    "SELECT VALUE c.id FROM c WHERE c.n BETWEEN 10 AND 30",
    "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.t, 2) AND c.few IN (1, 2)",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC OFFSET 3 LIMIT 20",
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY c.few",
    "SELECT VALUE c.id FROM c ORDER BY c.few, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.missing",
    "SELECT VALUE [c.id, t] FROM c JOIN t IN c.t WHERE t > 1",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(1) FROM c WHERE c.few = 1",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 10 AND c.few < 3",
    "SELECT VALUE COUNT(c.ttl) FROM c",
    "SELECT VALUE MIN(c.n) FROM c",
    "SELECT VALUE MAX(c.n) FROM c",
    "SELECT VALUE MAX(c.s) FROM c WHERE c.s < 's5'",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT MIN(c.n) AS m, COUNT(c.n) AS k FROM c",
    "SELECT c.few, COUNT(1) AS k FROM c GROUP BY c.few",
    "SELECT DISTINCT VALUE c.few FROM c",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.ttl)",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_query_sees_what_is_expired() {
    for (throughput, merged) in [(400, false), (FOUR_PARTITIONS, true)] {
        let world = World::new(json!({"defaultTtl": 1}), throughput).await;
        let plain = World::new(json!({}), throughput).await;
        let _nobody_deletes = world.db.inner.purging.lock().await;
        fill(&world, false).await;
        fill(&plain, true).await;
        world.hand.advance(A_LIFE);
        assert_eq!(world.container.usage().items, 150);
        for scope in [Scope::Container, Scope::Key(key("p1"))] {
            for query in QUERIES {
                let expected = plain.rows(&scope, query, AccessChoice::ScanOnly, merged).await;
                for access in [AccessChoice::ScanOnly, AccessChoice::Auto, AccessChoice::IndexAlways] {
                    let rows = world.rows(&scope, query, access, merged).await;
                    assert_eq!(rows, expected, "{query} with {access:?}");
                }
            }
        }
        assert_eq!(world.feed().await, plain.feed().await);
        assert_eq!(world.container.usage().items, 150, "nothing was deleted in between");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_item_is_not_read_and_not_in_the_change_feed() {
    let world = World::new(json!({"defaultTtl": -1}), 400).await;
    let _nobody_deletes = world.db.inner.purging.lock().await;
    world.create("a", "long", json!({"id": "long", "pk": "a"})).await.expect("a new item");
    let short = "short";
    world.create("a", short, json!({"id": short, "pk": "a", "ttl": 1})).await.expect("a new item");
    world.hand.advance(MOST_OF_A_LIFE);
    assert!(world.is_there("a", short).await, "it ended before its time");
    world.hand.advance(A_LIFE - MOST_OF_A_LIFE);
    assert!(!world.is_there("a", short).await);
    assert!(world.is_there("a", "long").await);
    let page = world.page(10, None, AccessChoice::Auto);
    let from = ChangesFrom::After(FeedCursor::after(Lsn(0)));
    let changes = world.db.changes(&world.container, &Scope::Container, from, &page).await.expect("a page");
    assert_eq!(changes.changes.len(), 1);
    for action in [Action::Delete, Action::Replace(doc(&json!({"id": short, "pk": "a"})))] {
        let refused = world.write("a", vec![op(short, action)]).await;
        assert!(
            refused.is_err_and(|error| matches!(error.kind, ErrorKind::Op { error: OpError::NotFound, .. }))
        );
    }
    world.create("a", short, json!({"id": short, "pk": "a"})).await.expect("the old one is not there");
    world.verify();
}

/// What one write leaves that came while the clock was twelve years ahead.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_ahead_of_the_clock_stops_neither_times_nor_expiry() {
    let world = World::new(json!({"defaultTtl": 1}), 400).await;
    let range = world.container.ranges[0].clone();
    let body = json!({"id": "ahead", "pk": "a"});
    let scope = orrery_doc::epk(&world.container.definition.key, &key("a"));
    let ahead = world.db.world().now() + 12 * 365 * 86_400 * orrery_store::TICKS_PER_SECOND;
    let txn = Txn { scope, key: None, ops: vec![op("ahead", Action::Create(doc(&body)))], now: ahead };
    range.write(&world.db.inner.committer, txn).await.expect("a new item");
    let before = world.db.world().now();
    let reply = world.create("a", "now", json!({"id": "now", "pk": "a"})).await.expect("a new item");
    let time = reply.outcomes[0].item.header.time;
    assert!((before..=world.db.world().now()).contains(&time), "{time} is not the time of the clock");
    // Before the clock moves: a task that purges by then would hold this until the clock moves again.
    let _alone = world.db.inner.purging.lock().await;
    world.hand.advance(A_LIFE);
    assert!(!world.is_there("a", "now").await);
    world.purge().await;
    assert_eq!(world.container.usage().items, 1, "the item that is ahead lives on");
    world.verify();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_default_takes_effect_at_once() {
    let mut world = World::new(json!({}), 400).await;
    world.create("a", "1", json!({"id": "1", "pk": "a"})).await.expect("a new item");
    world.create("a", "2", json!({"id": "2", "pk": "a", "ttl": 1})).await.expect("a new item");
    world.hand.advance(A_LIFE);
    let shown = async |world: &World| [world.is_there("a", "1").await, world.is_there("a", "2").await];
    assert_eq!(shown(&world).await, [true, true]);
    let db = world.db.clone();
    let _nobody_deletes = db.inner.purging.lock().await;
    world.replace_definition(json!({"defaultTtl": -1})).await;
    assert_eq!(shown(&world).await, [true, false]);
    world.replace_definition(json!({"defaultTtl": 1})).await;
    assert_eq!(shown(&world).await, [false, false]);
    world.replace_definition(json!({"defaultTtl": 1_000})).await;
    assert_eq!(shown(&world).await, [true, false]);
    world.replace_definition(json!({})).await;
    assert_eq!(shown(&world).await, [true, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_expired_is_deleted_also_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let storage = || Storage::Disk {
        path: directory.path().to_owned(),
        cache_bytes: 8 << 20,
        disk_bytes_max: None,
        write_buffer_bytes: None,
    };
    let unique = json!({"uniqueKeys": [{"paths": ["/n"]}]});
    let world = World::on(
        options(storage(), false),
        json!({"defaultTtl": 1, "uniqueKeyPolicy": unique}),
        FOUR_PARTITIONS,
    )
    .await;
    {
        let _nobody_deletes = world.db.inner.purging.lock().await;
        fill(&world, false).await;
        world.hand.advance(A_LIFE);
        world.verify();
        world.db.close().await;
    }
    let hand = world.hand.clone();
    drop(world);
    let db = open_again(&hand, &options(storage(), false)).await;
    let container = db.catalog().containers().next().expect("the container is there").clone();
    let world = World { hand, db, container };
    assert_eq!(world.feed().await, 50, "what is expired stays hidden");
    wait_for_async(|| {
        world.hand.advance(INTERVAL);
        match world.container.usage().items {
            50 => Ok(()),
            items => Err(format!("{items} items are stored instead of the 50 that live")),
        }
    })
    .await;
    assert_eq!(world.feed().await, 50);
    world.verify();
    world.db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_leaves_half_of_the_throughput_to_others() {
    let world = World::on(options(Storage::Memory, true), json!({"defaultTtl": 1}), 400).await;
    let _nobody_deletes = world.db.inner.purging.lock().await;
    let budget = &world.container.ranges[0].lead().expect("a node that is alone leads").budget;
    // Without a limit nothing is banked, however long the writes and the wait take.
    budget.set_rate(UNLIMITED, world.db.world().monotonic());
    for number in 0..10 {
        let ops = (0..100).map(|n| {
            let id = format!("{number}-{n}");
            op(&id, Action::Create(doc(&json!({"id": id, "pk": "a"}))))
        });
        world.write("a", ops.collect()).await.expect("new items");
    }
    world.hand.advance(A_LIFE);
    budget.set_rate(400.0, world.db.world().monotonic());
    let before = world.container.usage().items;
    world.purge().await;
    let deleted = before - world.container.usage().items;
    assert!((1..1_000).contains(&deleted), "{deleted} were deleted");
    assert!(budget.admit(Claim::default(), || Who(0), world.db.world().monotonic()).is_ok());
    for _ in 0..5 {
        world.hand.advance(Duration::from_millis(200));
        world.purge().await;
        assert!(budget.admit(Claim::default(), || Who(0), world.db.world().monotonic()).is_ok());
    }
    budget.set_rate(UNLIMITED, world.db.world().monotonic());
    world.purge().await;
    assert_eq!(world.container.usage().items, 0);
}

/// Half a second's worth of such a budget is less than what deleting an item costs.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_a_few_units_deletes_what_is_expired_too() {
    let world = World::on(options(Storage::Memory, true), json!({"defaultTtl": 1}), 400).await;
    let _nobody_deletes = world.db.inner.purging.lock().await;
    let budget = &world.container.ranges[0].lead().expect("a node that is alone leads").budget;
    budget.set_rate(UNLIMITED, world.db.world().monotonic());
    for id in ["1", "2"] {
        world.create("a", id, json!({"id": id, "pk": "a"})).await.expect("a new item");
    }
    budget.set_rate(15.0, world.db.world().monotonic());
    world.hand.advance(A_LIFE);
    for _ in 0..1_200 {
        world.purge().await;
        world.hand.advance(Duration::from_millis(50));
    }
    assert_eq!(world.container.usage().items, 0, "nothing is deleted in a minute");
    world.verify();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_one_gets_the_unique_value() {
    let unique = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}, {"paths": ["/a", "/b"]}]}});
    let world = Arc::new(World::new(unique, 400).await);
    for round in 0..20 {
        let writers = (0..16).map(|writer| {
            let world = world.clone();
            tokio::spawn(async move {
                let id = format!("{round}-{writer}");
                // Half of them share one key, half the other.
                let (u, a) = if writer % 2 == 0 { (-1, writer) } else { (writer, -1) };
                let body = json!({"id": id, "pk": "a", "u": [round, u], "a": a, "b": round});
                world.create("a", &id, body).await
            })
        });
        let mut written = 0;
        for writer in writers.collect::<Vec<_>>() {
            let answer = writer.await.expect("no writer panics");
            assert!(answer.is_ok() || is_unique_conflict(&answer), "{answer:?}");
            written += usize::from(answer.is_ok());
        }
        assert_eq!(written, 2);
    }
    world.verify();
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_all_of_a_logical_partition_or_the_container_frees_its_values() {
    let unique = json!({"defaultTtl": -1, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}});
    let world = World::new(unique, 400).await;
    let body = |id: &str, u: &str| json!({"id": id, "pk": "a", "u": u, "ttl": 1_000});
    world.create("a", "1", body("1", "x")).await.expect("a new item");
    assert!(is_unique_conflict(&world.create("a", "2", body("2", "x")).await));
    world.write("a", vec![op("1", Action::Delete)]).await.expect("it was there");
    world.create("a", "2", body("2", "x")).await.expect("the value is free");
    world.verify();
    let generation = world.container.ranges[0].replica.partition.spec.rid_generation;
    let entries = || {
        let snapshot = world.db.inner.committer.snapshot_owned();
        let prefix = generation.to_be_bytes();
        let upper = keys::after_prefix(&prefix);
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        snapshot.keys(Keyspace::Index, Bound::Included(&prefix), upper, false).count()
    };
    assert_eq!(entries(), 3, "a rid, a value and an end");
    world.db.delete_container(world.container.resource.rid, None).await.expect("the container goes");
    wait_for_async(|| {
        world.hand.advance(INTERVAL);
        match entries() {
            0 => Ok(()),
            entries => Err(format!("{entries} entries stay")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_may_end_among_expired_items_and_is_charged_for_them() {
    let world = World::new(json!({"defaultTtl": 1}), 400).await;
    let _nobody_deletes = world.db.inner.purging.lock().await;
    for number in 0..60 {
        let id = format!("{number:02}");
        let mut body = json!({"id": id, "pk": "a", "few": 1});
        if number == 59 {
            body["ttl"] = json!(-1);
        }
        world.create("a", &id, body).await.expect("a new item");
    }
    world.hand.advance(A_LIFE);
    let hurried = |continuation, access| PageOptions {
        time_max: Duration::ZERO,
        ..world.page(100, continuation, access)
    };
    let page =
        world.db.read_feed(&world.container, &Scope::Container, &hurried(None, AccessChoice::Auto)).await;
    let page = page.expect("a page");
    assert!(page.items.is_empty() && page.continuation.is_some());
    assert!(page.receipt.charge.total() > 2.0, "looking at them is work");
    let (mut items, mut pages, mut continuation) = (0, 1, page.continuation);
    while let Some(from) = continuation {
        let page = hurried(Some(from), AccessChoice::Auto);
        let page = world.db.read_feed(&world.container, &Scope::Container, &page).await.expect("a page");
        (items, pages, continuation) = (items + page.items.len(), pages + 1, page.continuation);
    }
    assert_eq!((items, pages), (1, 4));
    let program =
        compile("SELECT VALUE c.id FROM c WHERE c.few = 1", &Parameters::default()).expect("a query");
    for access in [AccessChoice::ScanOnly, AccessChoice::IndexAlways] {
        let (mut rows, mut pages, mut continuation) = (0, 0, None);
        loop {
            let page = hurried(continuation, access);
            let page = world.db.query(&world.container, &Scope::Container, &program, &page).await;
            let page = page.expect("a page");
            assert!(pages == 3 || page.receipt.charge.total() > 2.4, "{:?}", page.receipt.charge);
            (rows, pages, continuation) = (rows + page.rows.len(), pages + 1, page.continuation);
            if continuation.is_none() {
                break;
            }
        }
        assert_eq!((rows, pages), (1, 4), "{access:?}");
    }
}

#[tokio::test]
async fn large_items_that_expire_together_are_deleted_a_few_at_a_time() {
    let world = World::new(json!({"defaultTtl": 1}), 400).await;
    for number in 0..30 {
        let id = number.to_string();
        let body = json!({"id": id, "pk": "a", "text": "x".repeat(300_000)});
        world.create("a", &id, body).await.expect("a new item");
    }
    let writes = || world.db.memory().usage()[crate::memory::Consumer::Writes as usize];
    let before = writes().highest_bytes;
    world.hand.advance(A_LIFE);
    world.purge().await;
    let left: u64 = world.container.ranges.iter().map(|range| range.replica.partition.state().items).sum();
    assert_eq!(left, 0, "one round has many steps");
    let most = writes().highest_bytes;
    assert!(
        before < 1 << 20 && (1 << 20..4 << 20).contains(&most),
        "{before} bytes before, {most} in the end"
    );
}
