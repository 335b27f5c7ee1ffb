//! Several keys in one place: nothing that is done under one of them concerns the items of another.

use orrery_doc::{Doc, Epk, EpkRange, PartitionKey, PartitionKeyDef, PartitionKeyVersion, epk, json};
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, FeedCursor, Group, ItemId, Lifetimes, Lsn, Op, OpError, Outcome, Partition, Scan, Schema,
    TICKS_PER_SECOND, Target, Txn, View, WholeKey,
};

use super::ground::{self, key_def, op};

/// The place of a key of version 1 depends on its first hundred letters.
fn key(last: char) -> String {
    format!("{}{last}", "x".repeat(100))
}

fn doc(id: &str, last: char, n: u32) -> Doc {
    json::parse(format!(r#"{{"id":"{id}","pk":"{}","n":{n}}}"#, key(last)).as_bytes(), 8).expect("JSON")
}

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let def = PartitionKeyDef { version: PartitionKeyVersion::V1, ..key_def() };
        World { engine, partition, schema: Schema::new(def, 9, IndexingPolicy::default()) }
    }

    fn whole(&self, last: char) -> (Epk, WholeKey) {
        let key = PartitionKey::from_header(&format!("[\"{}\"]", key(last))).expect("a key");
        let whole = WholeKey::of(&self.schema.key, &key).expect("keys this long may share their place");
        (epk(&self.schema.key, &key), whole)
    }

    fn run(&self, last: char, ops: Vec<Op>) -> Result<Vec<Outcome>, OpError> {
        let (scope, whole) = self.whole(last);
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let txn = Txn { scope, key: Some(whole), ops, now: 100 * TICKS_PER_SECOND };
        let done = group.run(&txn).map(|done| done.outcomes).map_err(|refusal| refusal.error);
        ground::commit(&self.engine, &self.partition, group);
        done
    }

    /// The number of items that a scan, a count and the feed show under a key, which must be the same.
    fn count(&self, last: char) -> usize {
        let (scope, whole) = self.whole(last);
        let snapshot = self.engine.snapshot();
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        let view = view.only(Some(&whole));
        let range = EpkRange { max: scope.next().expect("not the last"), min: scope };
        let (mut scanned, mut fed) = (0, 0);
        view.scan(&range, None, |_, _| {
            scanned += 1;
            Scan::Continue
        })
        .expect("items decode");
        view.changes(&range, FeedCursor::after(Lsn(0)), |_, item| {
            fed += usize::from(item.is_some());
            Scan::Continue
        })
        .expect("items decode");
        assert_eq!((scanned, view.count_items(&range).expect("items decode")), (fed, fed as u64));
        fed
    }
}

#[test]
fn no_action_reaches_an_item_of_another_key_in_its_place() {
    let world = World::new();
    assert_eq!(world.whole('a').0, world.whole('b').0, "the keys share a place");
    let created = world.run('a', vec![op("1", Action::Create(doc("1", 'a', 1)))]).expect("a new item");
    let rid = created[0].item.header.rid;
    let missing = [
        Action::Read,
        Action::Delete,
        Action::Replace(doc("1", 'b', 2)),
        Action::Rename { id: ItemId::from("2"), doc: doc("2", 'b', 2) },
        Action::Wrong { needs_item: true },
    ];
    for action in missing {
        let by_rid = Op { target: Target::Rid(rid), ..op("1", action.clone()) };
        for op in [op("1", action.clone()), by_rid] {
            let answer = world.run('b', vec![op]);
            assert!(matches!(answer, Err(OpError::NotFound)), "{action:?}: {answer:?}");
        }
    }
    for action in [Action::Create(doc("1", 'b', 2)), Action::Upsert(doc("1", 'b', 2))] {
        let answer = world.run('b', vec![op("1", action.clone())]);
        assert!(matches!(answer, Err(OpError::KeyCollision)), "{action:?}: {answer:?}");
    }
    assert_eq!((world.count('a'), world.count('b')), (1, 0));
    let read = world.run('a', vec![op("1", Action::Read)]).expect("nothing happened to it");
    assert_eq!(read[0].item.doc.bytes(), doc("1", 'a', 1).bytes());
}

#[test]
fn an_item_is_not_renamed_onto_one_of_another_key() {
    let world = World::new();
    world.run('a', vec![op("1", Action::Create(doc("1", 'a', 1)))]).expect("a new item");
    world.run('b', vec![op("2", Action::Create(doc("2", 'b', 2)))]).expect("a new item");
    let rename = Action::Rename { id: ItemId::from("1"), doc: doc("1", 'b', 3) };
    assert!(matches!(world.run('b', vec![op("2", rename)]), Err(OpError::KeyCollision)));
    // A batch that has written under the id sees what it has written, and the other key still does not.
    let batch = vec![op("3", Action::Create(doc("3", 'a', 4))), op("2", Action::Delete)];
    assert!(matches!(world.run('a', batch), Err(OpError::NotFound)));
    assert_eq!((world.count('a'), world.count('b')), (1, 1));
}
