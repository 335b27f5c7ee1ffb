//! What is told of partitions that serve real requests, split ones included.

use orrery_doc::{Doc, KeyComponent, PartitionKey, Path, json as text};
use orrery_query::{Parameters, compile};
use orrery_store::{Action, ItemId, Op, Precondition, Target};
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Container, ContainerDefinition};
use crate::options::{DbOptions, Durability};
use crate::request::{AccessChoice, Consistency, PageOptions, ReadOptions, Scope, Throughput, WriteOptions};

struct World {
    db: Db,
    rid: Rid,
}

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn key(name: &str) -> PartitionKey {
    PartitionKey::from_header(&json!([name]).to_string()).expect("a plain key")
}

impl World {
    async fn new() -> World {
        let options =
            DbOptions { durability: Durability::Relaxed, ..DbOptions::in_memory("insight", "here") };
        let db = Db::open(options).expect("an empty database opens");
        let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
        let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let definition = ContainerDefinition::parse(&doc(&definition)).expect("a definition");
        let throughput = Some(Throughput::Manual(400));
        let container = db.create_container(database.resource.rid, definition, throughput).await;
        let rid = container.expect("a new container").resource.rid;
        World { db, rid }
    }

    fn container(&self) -> Arc<Container> {
        self.db.catalog().container_by_rid(self.rid).expect("it is there").clone()
    }

    async fn create(&self, pk: &str, id: &str) {
        let body = doc(&json!({"id": id, "pk": pk, "fill": "x".repeat(100)}));
        let target = Target::Id(ItemId::new(id).expect("a short id"));
        let op = Op {
            target,
            action: Action::Create(body),
            precondition: Precondition::None,
            indexed: true,
            unlinked: false,
        };
        let written = self.db.write(&self.container(), &key(pk), vec![op], &WriteOptions::default()).await;
        written.expect("a new item");
    }

    async fn read(&self, pk: &str, id: &str) {
        let target = Target::Id(ItemId::new(id).expect("a short id"));
        let options = ReadOptions {
            consistency: Consistency::Session,
            session: None,
            precondition: Precondition::None,
        };
        let (container, key) = (self.container(), key(pk));
        self.db.read(&container, &key, &target, &options).await.expect("the item is there");
    }

    async fn query(&self, scope: Scope, query: &str) {
        let program = compile(query, &Parameters::default()).expect(query);
        let page = PageOptions {
            items_max: 100,
            bytes_max: 4 << 20,
            time_max: orrery_testkit::PATIENCE,
            continuation: None,
            consistency: Consistency::Session,
            session: None,
            access: AccessChoice::Auto,
            properties: None,
            order: Default::default(),
        };
        self.db.query(&self.container(), &scope, &program, &page).await.expect(query);
    }

    /// Ends the running second, whatever the clock says.
    fn end_second(&self) {
        end_second(&self.db.inner, self.db.insight_second() + 1);
    }

    fn seen(&self) -> ContainerInsight {
        self.db.container_insight(&self.container(), Window::Minute)
    }
}

fn requests(slots: &[Slot]) -> u32 {
    slots.iter().map(|slot| slot.requests).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_starts_new_windows_and_the_container_goes_on() {
    let world = World::new().await;
    for n in 0..50 {
        world.create(&format!("k{n}"), "a").await;
    }
    world.end_second();
    assert_eq!(world.seen().whole.requests_total, 50);
    // What comes between the last second and the split counts too.
    world.read("k1", "a").await;
    world.db.split(&world.container(), 0, 2).await.expect("a split");
    world.read("k2", "a").await;
    world.end_second();
    let seen = world.seen();
    assert_eq!((seen.whole.requests_total, requests(&seen.whole.window)), (52, 52));
    assert_eq!(seen.partitions.len(), 2);
    let of_children: u64 = seen.partitions.iter().map(|child| child.use_of.requests_total).sum();
    assert_eq!(of_children, 1, "children inherit no counts");
    let bytes: u64 = seen.partitions.iter().map(|child| child.bytes).sum();
    assert_eq!(seen.whole.window.last().map(|slot| slot.bytes), Some(bytes));
    assert_eq!(seen.partitions[0].share.1, seen.partitions[1].share.0, "no gap in the key space");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_told_by_heat_and_by_size() {
    let world = World::new().await;
    for n in 0..40 {
        world.create(&format!("k{}", n % 20), &format!("i{n}")).await;
    }
    world.create("big", "one").await;
    world.create("big", "two").await;
    world.create("big", "three").await;
    for _ in 0..30 {
        world.read("k3", "i3").await;
    }
    world.query(Scope::Key(key("k3")), "SELECT * FROM c").await;
    world.end_second();
    let hottest = world.db.hottest_keys(&world.container(), Window::Minute, HotBy::Requests, 3);
    assert_eq!(hottest[0].key, "[\"k3\"]");
    // 33, less a part of those in the minute before if that has just ended.
    assert!((30.0..=33.0).contains(&hottest[0].requests), "{hottest:?}");
    let listed = world.db.largest_keys(&world.container(), 2);
    let (looked_up, cut) = world.db.look_up_largest_keys(&world.container(), 2).await.expect("sizes");
    assert!(!cut);
    let place = |large: &LargePartitionKey| (large.epk.clone(), large.key.clone(), large.bytes);
    assert_eq!(place(&listed[0]), place(&looked_up[0]), "writes and the store agree");
    assert_eq!((looked_up[0].key.as_deref(), looked_up[0].items), (Some("[\"big\"]"), Some(3)));
    let (_, heat) = world.db.heat(&world.container(), Window::Minute);
    let warm = heat[0].rows.iter().flatten().map(|cell| cell.requests).sum::<u32>();
    assert_eq!(warm, 74, "every request that named a key is on the map");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_tells_kinds_and_known_paths_until_it_is_stopped() {
    let world = World::new().await;
    world.create("a", "before").await;
    assert!(world.db.start_recording(&world.container()));
    world.create("a", "one").await;
    world.create("b", "two").await;
    world.read("a", "one").await;
    world.query(Scope::Container, "SELECT * FROM c WHERE c.email = 'x' AND c.n > 1").await;
    world.query(Scope::Key(key("a")), "SELECT * FROM c").await;
    world.db.stop_recording(&world.container());
    world.create("a", "after").await;
    let recording = world.db.recording(&world.container()).expect("a recording");
    let told: Vec<String> = recording
        .operations
        .iter()
        .map(|one| {
            let paths: Vec<&str> = one.filters.iter().map(|known| known.path.as_str()).collect();
            format!("{} {} {}", one.kind.name(), one.count, paths.join(" "))
        })
        .collect();
    assert_eq!(told, ["create 2 ", "read 1 /pk /id", "query 1 /email", "query 1 /pk"]);
    let touched: Vec<&[Touch]> = recording.operations.iter().map(|one| one.touched.by.as_slice()).collect();
    let [[_, _], [Touch::Item(read)], [Touch::Values(email)], [Touch::Values(pk)]] = touched[..] else {
        panic!("{touched:?}");
    };
    let item = world.db.item_of_rid(&world.container(), *read).expect("it can be read").expect("it is there");
    assert_eq!(item.doc.get(&Path::parse_property("/id").expect("a path")), orrery_doc::Value::Str("one"));
    let named = |path: &str, value: &str| vec![(path.to_owned(), KeyComponent::Str(value.to_owned()))];
    assert_eq!((email, pk), (&named("/email", "x"), &named("/pk", "a")));
    assert!(!recording.is_running());
}
