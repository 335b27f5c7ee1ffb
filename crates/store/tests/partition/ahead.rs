//! Transactions that are worked out beside the write path: what commits is what was shown, or nothing is.

use std::sync::Arc;

use orrery_doc::{Epk, json};
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, Ahead, Done, Group, Op, OpError, Partition, Schema, TICKS_PER_SECOND, Target, Txn, Workbench,
};

use super::ground::{self, key_def, op, refused};

const NOW: u64 = 1_700_000_000 * TICKS_PER_SECOND;

struct World {
    engine: Engine,
    partition: Partition,
    schema: Arc<Schema>,
}

fn scope(number: u8) -> Epk {
    Epk::from_hex(&format!("{number:02X}")).expect("an EPK")
}

fn doc(id: &str, n: usize) -> orrery_doc::Doc {
    json::parse(format!("{{\"id\":\"{id}\",\"n\":{n}}}").as_bytes(), 8).expect("JSON")
}

fn create(id: &str, n: usize) -> Op {
    op(id, Action::Create(doc(id, n)))
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let schema = Arc::new(Schema::new(key_def(), 9, IndexingPolicy::default()));
        World { engine, partition, schema }
    }

    fn bench(&self, number: u8) -> Workbench {
        let (snapshot, schema) = (Arc::new(self.engine.snapshot()), self.schema.clone());
        let limits = PartitionLimits::default();
        Workbench::new(&self.partition, snapshot, schema, limits, scope(number), NOW).expect("a bench")
    }

    fn commit(&self, run: impl FnOnce(&mut Group<'_>) -> Result<Done, OpError>) -> Result<Done, OpError> {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let answer = run(&mut group);
        ground::commit(&self.engine, &self.partition, group);
        answer
    }

    fn ahead(&self, ahead: &Ahead) -> Result<Done, OpError> {
        self.commit(|group| group.run_ahead(ahead, 0).map_err(refused))
    }

    fn write(&self, number: u8, ops: Vec<Op>) -> Result<Done, OpError> {
        let txn = Txn { scope: scope(number), key: None, ops, now: NOW };
        self.commit(|group| group.run(&txn).map_err(refused))
    }
}

fn run(world: &World, bench: &mut Workbench, op: Op) -> orrery_store::Outcome {
    bench.run(&world.partition, op).unwrap_or_else(|refusal| panic!("{}", refusal.error))
}

#[test]
fn what_was_shown_is_what_is_committed() {
    let world = World::new();
    world.write(1, vec![create("old", 1)]).expect("a create");
    let mut bench = world.bench(1);
    let mut shown = Vec::new();
    for n in 0..200 {
        shown.push(run(&world, &mut bench, create(&format!("i{n}"), n)).item.header);
    }
    let by_rid = Op { target: Target::Rid(shown[7].rid), ..op("", Action::Replace(doc("i7", 700))) };
    shown[7] = run(&world, &mut bench, by_rid).item.header;
    run(&world, &mut bench, op("old", Action::Delete));
    let renamed = Action::Rename { id: "new".into(), doc: doc("new", 8) };
    let moved = run(&world, &mut bench, op("i8", renamed)).item.header;
    assert_eq!(moved.rid, shown[8].rid);
    assert!(bench.run(&world.partition, create("i9", 0)).is_err(), "own writes are seen");
    // Others write elsewhere meanwhile, and take rids.
    for n in 0..20 {
        world.write(2, vec![create(&format!("o{n}"), n)]).expect("a create");
    }
    world.ahead(&bench.finish()).expect("nobody wrote here");
    let mut bench = world.bench(1);
    for (n, header) in shown.iter().enumerate().filter(|(n, _)| *n != 8) {
        let stored = run(&world, &mut bench, op(&format!("i{n}"), Action::Read)).item.header;
        assert_eq!((stored.rid, stored.etag), (header.rid, header.etag), "i{n}");
    }
    assert_eq!(run(&world, &mut bench, op("new", Action::Read)).item.header.etag, moved.etag);
    let verified = world.partition.verify(&world.engine.snapshot(), &world.schema).expect("it reads");
    assert_eq!(verified.findings, Vec::<String>::new());
}

#[test]
fn a_logical_partition_that_changed_refuses_what_was_worked_out_before() {
    let world = World::new();
    world.write(1, vec![create("a", 1)]).expect("a create");
    for change in [create("b", 1), op("a", Action::Replace(doc("a", 2))), op("b", Action::Delete)] {
        let mut bench = world.bench(1);
        run(&world, &mut bench, create("mine", 1));
        world.write(1, vec![change]).expect("a write");
        let ahead = bench.finish();
        assert!(matches!(world.ahead(&ahead), Err(OpError::Overtaken)));
        world.ahead(&Ahead { base: None, ..ahead }).expect("without a base, anything goes");
        world.write(1, vec![op("mine", Action::Delete)]).expect("a delete");
    }
}

#[test]
fn an_empty_logical_partition_is_the_same_however_it_became_empty() {
    let world = World::new();
    let mut bench = world.bench(1);
    run(&world, &mut bench, create("mine", 1));
    world.write(1, vec![create("other", 1)]).expect("a create");
    let ahead = bench.finish();
    assert!(matches!(world.ahead(&ahead), Err(OpError::Overtaken)));
    world.write(1, vec![op("other", Action::Delete)]).expect("a delete");
    world.ahead(&ahead).expect("it is as empty as it was");
}
