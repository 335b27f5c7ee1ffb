//! What a group holds in memory: it counts what operations load and make, and holds no more than it is lent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orrery_doc::json;
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{GROUP_UNCOUNTED_BYTES, PartitionLimits, WRITES_STEP_BYTES};
use orrery_store::{
    Action, DefaultTtl, Failed, Fault, Group, IndexGeneration, ItemId, ItemKey, Lender, Op, Partition,
    Schema, TICKS_PER_SECOND, Txn, TxnError,
};

use super::edits::Adding;
use super::ground::{self, key_def, op, scope};

const NOW: u64 = 1_700_000_000 * TICKS_PER_SECOND;
const MIB: u64 = 1024 * 1024;

/// Lends so much and no more.
struct Purse {
    most: u64,
    left: AtomicU64,
}

impl Purse {
    fn of(bytes: u64) -> Purse {
        Purse { most: bytes, left: AtomicU64::new(bytes) }
    }

    /// One of which others have a part.
    fn with_left(self, bytes: u64) -> Purse {
        Purse { left: AtomicU64::new(bytes), ..self }
    }

    fn lent(&self) -> u64 {
        self.most - self.left.load(Ordering::Relaxed)
    }
}

impl Lender for Purse {
    fn most(&self) -> u64 {
        self.most
    }

    fn lend(&self, bytes: u64) -> bool {
        let less = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
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
        World { engine, partition, schema: Schema::new(key_def(), 9, IndexingPolicy::default()) }
    }

    /// What a group does that is lent as much as a purse has; then it is committed.
    fn group<T>(&self, purse: &Purse, work: impl FnOnce(&mut Group<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        let group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let mut group = group.lent_by(purse);
        let done = work(&mut group);
        ground::commit(&self.engine, &self.partition, group);
        done
    }

    fn fill(&self, items: impl IntoIterator<Item = (String, String)>) {
        for (id, text) in items {
            let done =
                self.group(&Purse::of(u64::MAX / 2), |group| group.run(&txn(vec![create(&id, &text)])));
            done.expect("there is enough");
        }
    }
}

fn txn(ops: Vec<Op>) -> Txn {
    Txn { scope: scope("a"), key: None, ops, now: NOW }
}

fn create(id: &str, text: &str) -> Op {
    op(id, Action::Create(json::parse(text.as_bytes(), 128).expect("JSON")))
}

fn delete(id: &str) -> Op {
    op(id, Action::Delete)
}

/// A long text, which has one term.
fn long(id: &str, bytes: usize) -> (String, String) {
    (id.to_owned(), format!(r#"{{"id":"{id}","pk":"a","n":1,"text":"{}"}}"#, "x".repeat(bytes)))
}

/// Many numbers, each with a term of its own.
fn numbers(id: &str, first: usize, count: usize) -> (String, String) {
    let numbers: Vec<String> = (first..first + count).map(|number| number.to_string()).collect();
    (id.to_owned(), format!(r#"{{"id":"{id}","pk":"a","all":[{}]}}"#, numbers.join(",")))
}

fn id(number: usize) -> ItemId {
    ItemId::new(number.to_string()).expect("a short id")
}

fn refusal(result: Result<orrery_store::Done, Box<TxnError>>) -> Fault {
    match result.expect_err("there is not enough").error {
        Failed::Fault(fault) => fault,
        Failed::Refused(error) => panic!("{error:?}"),
    }
}

#[test]
fn a_group_counts_all_that_its_batch_has() {
    let long_id = "i".repeat(1_000);
    let (number, id) = (numbers("1", 0, 5_000), numbers(&long_id, 0, 2_000));
    let paths: Vec<String> = (0..3_000).map(|place| format!(r#""p{place}":{place}"#)).collect();
    let paths = ("2".to_owned(), format!(r#"{{"id":"2","pk":"a",{}}}"#, paths.join(",")));
    for (what, item) in
        [("numbers", number), ("a long id", id), ("paths", paths), ("a text", long("3", 300_000))]
    {
        let world = World::new();
        for ops in [vec![create(&item.0, &item.1)], vec![delete(&item.0)]] {
            let snapshot = world.engine.snapshot();
            let group = Group::new(&world.partition, &snapshot, &world.schema, PartitionLimits::default());
            let purse = Purse::of(u64::MAX / 2);
            let mut group = group.lent_by(&purse);
            group.run(&txn(ops)).expect("there is enough");
            let (held, lent) = (group.held_bytes(), purse.lent());
            let mut prepared = group.finish();
            let batch = std::mem::take(&mut prepared.batch);
            let in_batch = batch.held_bytes() as u64;
            assert!(held >= in_batch && held < 4 * in_batch + MIB, "{what}: {held} for {in_batch}");
            // Beyond what comes with the document and what every group may hold, all of it is lent.
            let free = 3 * item.1.len() as u64 + GROUP_UNCOUNTED_BYTES;
            assert!(lent + free >= held && lent <= held + WRITES_STEP_BYTES, "{what}: {lent} for {held}");
            world.engine.commit(batch).expect("memory does not fail");
            world.partition.publish(world.partition.apply(prepared));
        }
    }
}

#[test]
fn a_small_batch_that_loads_much_is_refused_before_it_has() {
    let world = World::new();
    world.fill((0..40).map(|number| long(&number.to_string(), 500_000)));
    let deletes: Vec<Op> = (0..40).map(|number| delete(&number.to_string())).collect();
    let edits: Vec<Op> =
        (0..40).map(|number| op(&number.to_string(), Action::Edit(Arc::new(Adding::to_items(1))))).collect();
    for ops in [deletes.clone(), edits] {
        let purse = Purse::of(8 * MIB);
        let refused = world.group(&purse, |group| refusal(group.run(&txn(ops))));
        let Fault::TooMuchMemory { bytes, most } = refused else { panic!("{refused:?}") };
        assert!(most == 8 * MIB && bytes > most && bytes < most + 2 * MIB, "{bytes} of {most}");
    }
    // Others have it, so it may come again.
    let short = Purse::of(64 * MIB).with_left(4 * MIB);
    let refused = world.group(&short, |group| refusal(group.run(&txn(deletes.clone()))));
    assert!(
        matches!(refused, Fault::NoMemory { bytes } if bytes > 4 * MIB && bytes < 6 * MIB),
        "{refused:?}"
    );
    let done = world.group(&Purse::of(64 * MIB), |group| group.run(&txn(deletes)));
    assert_eq!(done.expect("there is enough").outcomes.len(), 40);
}

#[test]
fn an_item_of_many_terms_needs_memory_for_them() {
    let world = World::new();
    let (id, text) = numbers("1", 100_000, 20_000);
    let refused =
        world.group(&Purse::of(2 * MIB), |group| refusal(group.run(&txn(vec![create(&id, &text)]))));
    assert!(matches!(refused, Fault::TooMuchMemory { .. }), "{refused:?}");
    let group = |purse: &Purse, op: Op| world.group(purse, |group| group.run(&txn(vec![op])));
    group(&Purse::of(16 * MIB), create(&id, &text)).expect("there is enough");
    let purse = Purse::of(2 * MIB);
    group(&purse, delete(&id)).expect("what takes one item away is never too large");
    assert_eq!(purse.lent(), 2 * MIB, "it has all that one may have");
    group(&Purse::of(0), delete(&id)).expect_err("it is gone");
}

#[test]
fn small_writes_need_nobody() {
    let world = World::new();
    world.group(&Purse::of(0), |group| {
        group.run(&txn(vec![create("1", r#"{"id":"1","pk":"a","n":1}"#)])).expect("it is small");
        let (id, text) = numbers("2", 0, 5_000);
        let refused = refusal(group.run(&txn(vec![create(&id, &text)])));
        assert!(matches!(refused, Fault::TooMuchMemory { .. }), "{refused:?}");
        let edit = Action::Edit(Arc::new(Adding::to_items(1)));
        group.run(&txn(vec![op("1", edit)])).expect("a refused transaction leaves nothing behind");
    });
    assert_eq!(world.partition.state().items, 1);
}

#[test]
fn expired_items_go_in_steps_that_are_small_in_memory() {
    let mut world = World::new();
    world.schema.ttl = DefaultTtl::Seconds(1);
    world.fill((0..20).map(|number| long(&number.to_string(), 300_000)));
    let keys: Vec<ItemKey> = (0..20).map(|number| ItemKey { epk: scope("a"), id: id(number) }).collect();
    let late = NOW + 10 * TICKS_PER_SECOND;
    let purge = |purse: &Purse| world.group(purse, |group| group.purge(&keys, late, MIB));
    let none = purge(&Purse::of(64 * MIB).with_left(0)).expect_err("others have all of it");
    assert!(matches!(none, Failed::Fault(Fault::NoMemory { .. })), "{none:?}");
    let few = purge(&Purse::of(64 * MIB).with_left(MIB / 2)).expect("there is enough for one");
    assert_eq!(few.len(), 1);
    assert_eq!(purge(&Purse::of(64 * MIB)).expect("there is enough").len(), 4, "each holds 300,000 bytes");
    assert_eq!(purge(&Purse::of(1000)).expect("one goes, however little there is").len(), 1);
}

#[test]
fn an_index_is_built_in_steps_that_are_small_in_memory() {
    let mut world = World::new();
    world.schema = Schema::new(key_def(), 9, IndexingPolicy::none());
    world.fill((0..10).map(|number| numbers(&number.to_string(), 0, 5_000)));
    world.schema.building =
        Some(IndexGeneration { generation: 10, is_shared: false, policy: IndexingPolicy::default().into() });
    let purse = Purse::of(2 * MIB);
    world.group(&purse, |group| group.build(256, MIB as usize)).expect("there is enough for one");
    let built = world.partition.build_of(10);
    assert!(!built.is_complete() && (1..4).contains(&built.items), "{built:?}");
    let refused = world.group(&Purse::of(2 * MIB).with_left(0), |group| group.build(256, MIB as usize));
    assert!(matches!(refused, Err(Fault::NoMemory { .. })), "{refused:?}");
    while !world.partition.build_of(10).is_complete() {
        world.group(&Purse::of(2 * MIB), |group| group.build(256, MIB as usize)).expect("there is enough");
    }
    let report = world.partition.verify(&world.engine.snapshot(), &world.schema).expect("items decode");
    assert_eq!(report.findings, Vec::<String>::new());
}
