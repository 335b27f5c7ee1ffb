use std::sync::Arc;

use orrery_doc::{Doc, PartitionKey, json as text};
use orrery_store::{Action, Fault, ItemId, Op, Precondition, Target};
use orrery_testkit::eventually_async;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Container, ContainerDefinition};
use crate::db::Db;
use crate::error::Error;
use crate::memory::{MemoryShares, MemoryUse};
use crate::options::{DbOptions, Durability};
use crate::request::{WriteOptions, WriteReply};

const MIB: u64 = 1024 * 1024;
/// The share for writes, of which a transaction may have three quarters.
const WRITES: u64 = 8 * MIB;

struct World {
    db: Db,
    container: Arc<Container>,
}

fn doc(value: &Value) -> Doc {
    text::parse(value.to_string().as_bytes(), 64).expect("a test document is JSON")
}

fn op(id: &str, action: Action) -> Op {
    let target = Target::Id(ItemId::new(id).expect("a short id"));
    Op { target, action, precondition: Precondition::None, indexed: true, unlinked: false }
}

fn delete(id: &str) -> Op {
    op(id, Action::Delete)
}

impl World {
    async fn new() -> World {
        let options = DbOptions {
            durability: Durability::Relaxed,
            memory: MemoryShares { writes: WRITES, ..MemoryShares::default() },
            ..DbOptions::in_memory("held", "here")
        };
        let db = Db::open(options).expect("an empty database opens");
        let database = db.create_database("d", doc(&json!({"id": "d"})), None).await.expect("a new database");
        let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let definition =
            ContainerDefinition::parse(&doc(&body)).unwrap_or_else(|error| panic!("{}", error.kind));
        let container = db.create_container(database.resource.rid, definition, None).await;
        World { db, container: container.expect("a new container") }
    }

    async fn write(&self, ops: Vec<Op>) -> Result<WriteReply, Error> {
        let key = PartitionKey::from_header(r#"["a"]"#).expect("a plain key");
        self.db.write(&self.container, &key, ops, &WriteOptions::default()).await
    }

    async fn create(&self, id: &str, bytes: usize) {
        let body = json!({"id": id, "pk": "a", "text": "x".repeat(bytes)});
        self.write(vec![op(id, Action::Create(doc(&body)))]).await.expect("a new item");
    }

    fn used(&self) -> MemoryUse {
        self.db.memory().usage()[Consumer::Writes as usize]
    }
}

#[tokio::test]
async fn a_batch_that_could_never_be_held_is_refused_for_good() {
    let world = World::new().await;
    let ids: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    for id in &ids {
        world.create(id, 1_000_000).await;
    }
    let all = || ids.iter().map(|id| delete(id)).collect();
    let refused = world.write(all()).await.expect_err("ten megabytes are too much");
    assert!(
        matches!(refused.kind, ErrorKind::Fault { fault: Fault::TooMuchMemory { most, .. }, .. } if most == WRITES / 4 * 3),
        "{refused:?}"
    );
    for id in &ids {
        world.write(vec![delete(id)]).await.expect("one after the other they go");
    }
    eventually_async("all of it is given back", || world.used().used_bytes == 0).await;
    assert!(world.used().highest_bytes >= MIB, "{:?}", world.used());
}

#[tokio::test]
async fn a_transaction_that_finds_no_memory_waits_for_it_and_small_ones_do_not() {
    let world = World::new().await;
    for id in ["1", "2", "3"] {
        world.create(id, 1_000_000).await;
    }
    let others = world.db.memory().try_take(Consumer::Writes, WRITES - MIB).expect("nobody else has any");
    let large = world.write(["1", "2", "3"].map(delete).to_vec());
    let beside = async {
        eventually_async("it waits", || world.used().waiting == 1).await;
        world.create("small", 100).await;
        assert_eq!(world.used().waiting, 1, "nothing has changed for it");
        drop(others);
    };
    let (done, ()) = tokio::join!(large, beside);
    assert_eq!(done.expect("now there is enough").outcomes.len(), 3);
    eventually_async("all of it is given back", || world.used().used_bytes == 0).await;
}

/// It holds memory for its body already, and two of them would wait for each other.
#[tokio::test]
async fn a_large_body_that_needs_more_does_not_wait() {
    let world = World::new().await;
    let _others = world.db.memory().try_take(Consumer::Writes, WRITES - MIB).expect("nobody else has any");
    let numbers = |count: usize| json!({"id": "1", "pk": "a", "all": Vec::from_iter(0..count)});
    let refused = world.write(vec![op("1", Action::Create(doc(&numbers(10_000))))]).await;
    assert!(matches!(refused, Err(Error { kind: ErrorKind::Overloaded, .. })), "{refused:?}");
    assert_eq!((world.used().waited, world.used().waiting), (0, 0));
}
