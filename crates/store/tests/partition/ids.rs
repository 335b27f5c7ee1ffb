//! Ids are bytes: whatever a gateway chooses, an item is found by it, and everything that names items names it.

use orrery_doc::{Doc, EpkRange, Path, json};
use orrery_store::engine::Engine;
use orrery_store::index::key_at;
use orrery_store::indexing::{IndexingPolicy, path_hash};
use orrery_store::limits::{ITEM_ID_BYTES_MAX, PartitionLimits};
use orrery_store::{
    Action, FeedCursor, Group, ItemId, Lifetimes, Lsn, Op, OpError, Outcome, Partition, Precondition, Scan,
    Schema, TICKS_PER_SECOND, Target, Txn, UniqueKeys, View,
};

use super::ground::{self, key_def, refused, scope};

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
}

/// No id stands in the document: the store must not look for one there.
fn doc(n: usize) -> Doc {
    json::parse(format!(r#"{{"pk":"a","n":{n},"_id":{n}}}"#).as_bytes(), 8).expect("JSON")
}

fn id(bytes: &[u8]) -> ItemId {
    ItemId::new(bytes).expect("a short id")
}

fn op(id: &ItemId, action: Action) -> Op {
    Op {
        target: Target::Id(id.clone()),
        action,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

/// Ids that no text has, that look like ends of keys, none at all, and the longest; in their order.
fn ids() -> Vec<ItemId> {
    let long = vec![0xFF; ITEM_ID_BYTES_MAX];
    let ids: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\xFF", b"a", b"a\0", b"\xC3\x28", &long[..40], &long];
    ids.map(id).to_vec()
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let mut schema = Schema::new(key_def(), 9, IndexingPolicy::default());
        schema.unique = UniqueKeys::new(vec![vec![Path::parse_property("/n").expect("a path")]]);
        (schema.keeps_history, schema.keeps_replaced) = (true, true);
        World { engine, partition, schema }
    }

    fn run(&self, op: Op) -> Result<Outcome, OpError> {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let txn = Txn { scope: scope("a"), key: None, ops: vec![op], now: 100 * TICKS_PER_SECOND };
        let done = group.run(&txn).map(|mut done| done.outcomes.remove(0)).map_err(refused);
        ground::commit(&self.engine, &self.partition, group);
        let report = self.partition.verify(&self.engine.snapshot(), &self.schema).expect("items decode");
        assert_eq!(report.findings, Vec::<String>::new());
        done
    }

    fn view<T>(&self, look: impl FnOnce(View<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        look(View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS))
    }

    /// The ids behind one of them, as a scan shows them.
    fn scanned(&self, after: Option<&ItemId>) -> Vec<ItemId> {
        let after = after.map(|id| orrery_store::ItemKey { epk: scope("a"), id: id.clone() });
        let mut found = Vec::new();
        let visit = |key: orrery_store::ItemKey, _| {
            found.push(key.id);
            Scan::Continue
        };
        self.view(|view| view.scan(&EpkRange::full(), after.as_ref(), visit)).expect("items decode");
        found
    }

    /// The ids of the items that the index has a number for, in key order.
    fn indexed(&self) -> Vec<ItemId> {
        self.view(|view| {
            let reader = view.index(9, &EpkRange::full(), None);
            let mut cursor = reader.ordered(path_hash(&["n"]), &[false], &[vec![]..vec![0xFF]], None, false);
            let mut found = Vec::new();
            while let Some(entry) = cursor.next_entry().expect("entries decode") {
                found.push(key_at(entry.place()).expect("a place").id);
            }
            found.sort();
            found
        })
    }
}

#[test]
fn any_bytes_are_an_id() {
    let world = World::new();
    for (n, id) in ids().iter().enumerate() {
        let created = world.run(op(id, Action::Create(doc(n)))).expect("a new item");
        assert_eq!(created.id, *id);
        assert!(matches!(world.run(op(id, Action::Create(doc(99)))), Err(OpError::Conflict)));
        let by_rid = Target::Rid(created.item.header.rid);
        let read = world.run(Op { target: by_rid, ..op(id, Action::Read) }).expect("it is there");
        assert_eq!((read.id, read.item.root().root().get("n").as_i64()), (id.clone(), Some(n as i64)));
    }
    assert_eq!(world.scanned(None), ids());
    for (place, id) in ids().iter().enumerate() {
        assert_eq!(world.scanned(Some(id)), ids()[place + 1..], "behind {id}");
    }
    assert_eq!(world.indexed(), ids());
    let reopened = ground::open(&world.engine);
    assert_eq!(reopened.state(), world.partition.state());
}

#[test]
fn unique_keys_history_and_deletes_name_items_by_their_bytes() {
    let world = World::new();
    let (empty, raw, other) = (id(b""), id(b"\xFF\0"), id(b"\xFF\x01"));
    world.run(op(&empty, Action::Create(doc(1)))).expect("a new item");
    assert!(matches!(world.run(op(&raw, Action::Create(doc(1)))), Err(OpError::UniqueConflict)));
    world.run(op(&raw, Action::Create(doc(2)))).expect("another value");
    world.run(op(&raw, Action::Rename { id: other.clone(), doc: doc(3) })).expect("nobody is there");
    assert!(matches!(world.run(op(&raw, Action::Read)), Err(OpError::NotFound)));
    world.run(op(&empty, Action::Delete)).expect("it is there");
    world.run(op(&raw, Action::Upsert(doc(1)))).expect("the value is free");
    let mut told = Vec::new();
    let seen = world.view(|view| {
        view.history(&EpkRange::full(), FeedCursor::after(Lsn(0)), |_, entry| {
            told.extend(entry.map(|entry| (entry.key.id, entry.replaced.map(|replaced| replaced.id))));
            Scan::Continue
        })
    });
    seen.expect("entries decode");
    let new = |id: &ItemId| (id.clone(), None);
    assert_eq!(told, [new(&empty), new(&raw), (other.clone(), Some(raw.clone())), new(&empty), new(&raw)]);
    for id in [&raw, &other] {
        world.run(op(id, Action::Delete)).expect("it is there");
    }
    assert_eq!((world.scanned(None), world.indexed()), (vec![], vec![]));
}
