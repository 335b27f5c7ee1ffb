//! The database of the test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orrery_cluster::store::{Action, ItemId, Op, Precondition, Target};
use orrery_cluster::{
    AccessChoice, Consistency, Container, ContainerDefinition, Db, DbOptions, PageOptions, RangeInfo, Scope,
    Storage, Throughput, WriteOptions,
};
use orrery_doc::{Doc, EpkRange, PartitionKey, divide, epk, json};
use orrery_query::{Parameters, Program, compile};
use orrery_testkit::{eventually_async, wait_for_async};
use serde_json::{Value, json};

pub struct World {
    pub db: Db,
    /// As it was in the beginning: requests that take long hold such old ones.
    pub container: Arc<Container>,
}

pub fn to_doc(value: &Value) -> Doc {
    json::parse(value.to_string().as_bytes(), 32).expect("JSON")
}

pub fn key(text: &str) -> PartitionKey {
    PartitionKey::from_header(&json!([text]).to_string()).expect("a key")
}

pub fn op(id: &str, action: Action) -> Op {
    Op {
        target: Target::Id(ItemId::new(id).expect("a short id")),
        action,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

pub fn page() -> PageOptions {
    PageOptions {
        items_max: 100,
        bytes_max: 4_000_000,
        time_max: Duration::from_secs(60),
        continuation: None,
        consistency: Consistency::Session,
        session: None,
        access: AccessChoice::Auto,
        properties: None,
        order: Default::default(),
    }
}

impl World {
    pub async fn open() -> World {
        World::with(Storage::Memory).await
    }

    pub async fn on_disk(path: &Path) -> World {
        World::with(Storage::Disk {
            path: path.to_owned(),
            cache_bytes: 1 << 20,
            disk_bytes_max: None,
            write_buffer_bytes: None,
        })
        .await
    }

    async fn with(storage: Storage) -> World {
        let options = DbOptions { storage, ..DbOptions::in_memory("test", "here") };
        // What was closed before may be held by a task for a moment longer.
        let open = || Db::open(options.clone());
        let db =
            wait_for_async(|| open().map_err(|error| format!("the storage does not open: {error}"))).await;
        if let Some(database) = db.catalog().database("db") {
            let container = database.container("c").expect("made before").clone();
            return World { db, container };
        }
        let database = db.create_database("db", to_doc(&json!({"id": "db"})), None).await.expect("new");
        let definition = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/unique"]}]},
            "defaultTtl": -1,
        });
        let definition = ContainerDefinition::parse(&to_doc(&definition)).expect("a definition");
        let throughput = Some(Throughput::Manual(1_000));
        let container =
            db.create_container(database.resource.rid, definition, throughput).await.expect("new");
        World { db, container }
    }

    pub async fn close(self) {
        self.db.close().await;
    }

    /// The container as it is now.
    pub fn now(&self) -> Arc<Container> {
        self.db.catalog().container_by_rid(self.container.resource.rid).expect("it is never dropped").clone()
    }

    pub fn ranges(&self) -> Vec<RangeInfo> {
        self.now().ranges()
    }

    pub async fn split(&self, range: u32, children: u32) {
        let ids = self.db.split(&self.container, range, children).await.expect("it can be split");
        assert_eq!(ids.len(), children as usize);
        self.check_ranges();
    }

    pub async fn merge(&self, left: u32, right: u32) {
        self.db.merge(&self.container, left, right).await.expect("they can be merged");
        self.check_ranges();
    }

    fn check_ranges(&self) {
        let ranges = self.ranges();
        let full = EpkRange::full();
        assert_eq!((&ranges[0].range.min, &ranges[ranges.len() - 1].range.max), (&full.min, &full.max));
        assert!(ranges.windows(2).all(|pair| pair[0].range.max == pair[1].range.min), "there are no gaps");
    }

    /// Upserts the item of a number, alone in its logical partition.
    pub async fn put(&self, number: usize, bytes: usize) {
        let name = format!("k{number}");
        let item = json!({"id": name, "pk": name, "n": number, "text": "x".repeat(bytes), "unique": number});
        let ops = vec![op(&name, Action::Upsert(to_doc(&item)))];
        self.db
            .write(&self.container, &key(&name), ops, &WriteOptions::default())
            .await
            .expect("acknowledged");
    }

    /// Which of so many even parts of the key space a number's key lies in.
    pub fn hash_part(&self, number: usize, parts: u32) -> usize {
        let definition = &self.container.definition.key;
        let epk = epk(definition, &key(&format!("k{number}")));
        divide(definition, &EpkRange::full(), parts).partition_point(|boundary| *boundary <= epk)
    }

    pub fn bytes(&self) -> Vec<u64> {
        let ranges = self.db.stats();
        ranges.ranges.iter().map(|range| range.bytes).collect()
    }

    pub async fn rows(&self, text: &str, access: AccessChoice) -> Vec<Value> {
        let program: Program = compile(text, &Parameters::default()).expect("a query");
        let mut page = PageOptions { access, ..page() };
        let mut rows = Vec::new();
        loop {
            let answer = self.db.query_merged(&self.container, &Scope::Container, &program, &page).await;
            let answer = answer.unwrap_or_else(|error| panic!("{text}: {}", error.kind));
            rows.extend(answer.rows.iter().map(|row| serde_json::from_slice::<Value>(row).expect("JSON")));
            page.continuation = answer.continuation;
            if page.continuation.is_none() {
                return rows;
            }
        }
    }

    /// Asks for all items in several ways, before and after the indexes of the new partitions are there.
    pub async fn check_counts(&self, items: usize) {
        for round in 0..2 {
            for access in [AccessChoice::Auto, AccessChoice::ScanOnly, AccessChoice::IndexAlways] {
                let count = self.rows("SELECT VALUE COUNT(1) FROM c", access).await;
                assert_eq!(count, [json!(items)], "{access:?}, round {round}");
                let count = self.rows("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", access).await;
                assert_eq!(count, [json!(items)], "{access:?}, round {round}");
                let mut ids = self.rows("SELECT VALUE CONCAT(c.pk, c.id) FROM c ORDER BY c.n", access).await;
                assert_eq!(ids.len(), items, "{access:?}, round {round}");
                ids.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                ids.dedup();
                assert_eq!(ids.len(), items, "no item comes twice");
            }
            if round == 0 {
                self.await_indexes().await;
            }
        }
    }

    /// Waits until every partition has its own index.
    async fn await_indexes(&self) {
        let what = "new partitions have indexes of their own";
        eventually_async(what, || !self.now().borrows_indexes()).await;
    }

    pub fn verify(&self) {
        for range in self.db.verify().expect("items decode") {
            assert_eq!(range.result.findings, Vec::<String>::new(), "range {}", range.range_id);
        }
    }
}
