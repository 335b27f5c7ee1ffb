//! Writes that follow from what is stored.

use std::sync::Arc;

use orrery_doc::{PartitionKey, json};
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, DefaultTtl, Edit, EditRefusal, Edited, Effect, Etag, Group, Item, Op, OpError, Outcome,
    Partition, Precondition, Schema, TICKS_PER_SECOND, Target, Txn, Workbench,
};

use super::ground::{self, key_def, op, refused, scope};

/// Adds to the number `n` of an item, which it may make, and notes when. Nothing is added by adding nothing.
#[derive(Clone, Debug)]
pub struct Adding {
    pub amount: i64,
    pub creates: Option<&'static str>,
}

/// The number would become larger than a hundred.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is too much")]
struct TooMuch(i64);

impl Adding {
    pub fn to_items(amount: i64) -> Adding {
        Adding { amount, creates: None }
    }

    fn or_make(amount: i64, id: &'static str) -> Adding {
        Adding { amount, creates: Some(id) }
    }
}

impl Edit for Adding {
    fn edit(&self, stored: Option<&Item>, now: u64) -> Result<Edited, EditRefusal> {
        let id = stored.map_or(self.creates, |item| item.doc.root().get("id").as_str()).expect("an id");
        let n = stored.map_or(0, |item| item.doc.root().get("n").as_i64().unwrap_or(0)) + self.amount;
        if self.amount == 0 {
            return Ok(Edited::Unchanged);
        }
        if n > 100 {
            return Err(EditRefusal::new(TooMuch(n)));
        }
        let at = now / TICKS_PER_SECOND;
        let text = format!(r#"{{"id":"{id}","pk":"a","n":{n},"at":{at}}}"#);
        Ok(Edited::To(json::parse(text.as_bytes(), 8).expect("JSON")))
    }

    fn may_create(&self) -> bool {
        self.creates.is_some()
    }

    fn value_bytes(&self) -> usize {
        8
    }

    fn properties(&self) -> u32 {
        1
    }
}

struct World {
    engine: Engine,
    partition: Partition,
    schema: Arc<Schema>,
}

fn at(second: u64) -> u64 {
    (1_700_000_000 + second) * TICKS_PER_SECOND
}

fn edit(id: &str, adding: Adding) -> Op {
    op(id, Action::Edit(Arc::new(adding)))
}

fn shown(outcome: &Outcome) -> (Effect, Option<i64>) {
    (outcome.effect, outcome.item.doc.root().get("n").as_i64())
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let mut schema = Schema::new(key_def(), 9, IndexingPolicy::default());
        schema.ttl = DefaultTtl::Seconds(10);
        World { engine, partition, schema: Arc::new(schema) }
    }

    fn run(&self, now: u64, ops: Vec<Op>) -> Result<Vec<Outcome>, OpError> {
        self.run_of(None, now, ops)
    }

    fn run_of(&self, key: Option<PartitionKey>, now: u64, ops: Vec<Op>) -> Result<Vec<Outcome>, OpError> {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let txn = Txn { scope: scope("a"), key, ops, now };
        let done = group.run(&txn).map(|done| done.outcomes).map_err(refused);
        ground::commit(&self.engine, &self.partition, group);
        let report = self.partition.verify(&self.engine.snapshot(), &self.schema).expect("items decode");
        assert_eq!(report.findings, Vec::<String>::new());
        done
    }

    fn one(&self, now: u64, op: Op) -> Result<(Effect, Option<i64>), OpError> {
        self.run(now, vec![op]).map(|outcomes| shown(&outcomes[0]))
    }

    fn items(&self) -> u64 {
        self.partition.state().items
    }
}

#[test]
fn an_edit_sees_what_the_operations_before_it_left() {
    let world = World::new();
    let add = |amount| edit("1", Adding::or_make(amount, "1"));
    let done = world.run(at(0), vec![add(1), add(2), op("1", Action::Read), op("1", Action::Delete), add(5)]);
    let shown: Vec<_> = done.expect("they fit together").iter().map(shown).collect();
    let deleted = (Effect::Deleted, Some(3));
    let made = (Effect::Created, Some(5));
    assert_eq!(
        shown,
        [(Effect::Created, Some(1)), (Effect::Replaced, Some(3)), (Effect::Read, Some(3)), deleted, made]
    );
    assert_eq!(world.one(at(1), add(1)).expect("an edit"), (Effect::Replaced, Some(6)));
}

#[test]
fn an_edit_that_may_not_create_needs_an_item() {
    let world = World::new();
    let add = || edit("1", Adding::to_items(1));
    assert!(matches!(world.one(at(0), add()), Err(OpError::NotFound)));
    assert_eq!(world.items(), 0);
    world.one(at(0), edit("1", Adding::or_make(1, "1"))).expect("it is made");
    assert_eq!(world.one(at(0), add()).expect("it is there"), (Effect::Replaced, Some(2)));
    let elsewhere = Op { target: Target::Rid(999), ..add() };
    assert!(matches!(world.one(at(0), elsewhere), Err(OpError::NotFound)));
}

#[test]
fn an_edit_that_has_nothing_to_do_writes_nothing_and_is_charged_as_a_read() {
    let world = World::new();
    let nothing = || edit("1", Adding::or_make(0, "1"));
    let absent = world.run(at(0), vec![nothing()]).expect("nothing is asked").remove(0);
    assert_eq!((shown(&absent), absent.meter.items_read), ((Effect::Absent, None), 1));
    world.one(at(0), edit("1", Adding::or_make(7, "1"))).expect("it is made");
    let lsn = world.partition.lsn();
    let same = world.run(at(1), vec![nothing()]).expect("nothing is asked").remove(0);
    assert_eq!((shown(&same), same.meter.items_read), ((Effect::Unchanged, Some(7)), 1));
    assert_eq!((same.meter.items_written, same.meter.properties_patched), (0, 0));
    assert_eq!(world.partition.lsn(), lsn);
}

#[test]
fn a_refusal_keeps_its_type_and_undoes_the_transaction() {
    let world = World::new();
    let ops = vec![edit("1", Adding::or_make(60, "1")), edit("1", Adding::to_items(41))];
    let Err(OpError::Edit(refusal)) = world.run(at(0), ops) else { panic!("it is too much") };
    assert_eq!(refusal.downcast_ref::<TooMuch>(), Some(&TooMuch(101)));
    assert_eq!(refusal.to_string(), "101 is too much");
    assert_eq!(world.items(), 0);
}

#[test]
fn an_edit_is_told_the_time_of_its_transaction() {
    let world = World::new();
    for second in [3, 8] {
        let done = world.run(at(second), vec![edit("1", Adding::or_make(1, "1"))]).expect("an edit");
        assert_eq!(done[0].item.doc.root().get("at").as_i64(), Some(1_700_000_000 + second as i64));
    }
}

#[test]
fn an_expired_item_is_none() {
    let world = World::new();
    world.one(at(0), edit("1", Adding::or_make(9, "1"))).expect("it is made");
    assert!(matches!(world.one(at(10), edit("1", Adding::to_items(1))), Err(OpError::NotFound)));
    let made = world.one(at(10), edit("1", Adding::or_make(1, "1"))).expect("it is made again");
    assert_eq!(made, (Effect::Created, Some(1)));
    assert_eq!(world.items(), 1);
}

#[test]
fn conditions_of_the_version_are_asked_first() {
    let world = World::new();
    let with = |precondition| Op { precondition, ..edit("1", Adding::or_make(1, "1")) };
    world.one(at(0), with(Precondition::IfNoneMatchAny)).expect("there is none");
    for precondition in [Precondition::IfNoneMatchAny, Precondition::IfMatch(Some(Etag(1)))] {
        assert!(matches!(world.one(at(0), with(precondition)), Err(OpError::PreconditionFailed)));
    }
    world.one(at(0), with(Precondition::IfMatchAny)).expect("there is one");
}

/// An edit that gives an item another partition key would leave it where nobody looks for it.
#[test]
fn an_edit_moves_no_item_and_makes_none_elsewhere() {
    #[derive(Debug)]
    struct Moving;
    impl Edit for Moving {
        fn edit(&self, _: Option<&Item>, _: u64) -> Result<Edited, EditRefusal> {
            Ok(Edited::To(json::parse(br#"{"id":"1","pk":"elsewhere"}"#, 8).expect("JSON")))
        }

        fn may_create(&self) -> bool {
            true
        }

        fn value_bytes(&self) -> usize {
            0
        }

        fn properties(&self) -> u32 {
            1
        }
    }
    let world = World::new();
    let moving = || op("1", Action::Edit(Arc::new(Moving)));
    let key = PartitionKey::from_header(r#"["a"]"#).expect("a key");
    let made = world.run_of(Some(key.clone()), at(0), vec![moving()]);
    assert!(matches!(made, Err(OpError::OutOfPlace)), "{made:?}");
    let item = json::parse(br#"{"id":"1","pk":"a","n":1}"#, 8).expect("JSON");
    world.run_of(Some(key.clone()), at(0), vec![op("1", Action::Create(item))]).expect("its own key");
    for key in [Some(key), None] {
        let moved = world.run_of(key, at(0), vec![moving()]);
        assert!(matches!(moved, Err(OpError::OutOfPlace)), "{moved:?}");
    }
    assert_eq!(world.items(), 1);
}

/// What lies at the same place under another key is neither shown to an edit nor written over by one.
#[test]
fn an_item_of_another_key_is_not_edited() {
    let world = World::new();
    world.one(at(0), edit("1", Adding::or_make(1, "1"))).expect("it is made");
    let other = PartitionKey::from_header(r#"["b"]"#).expect("a key");
    let run = |adding| world.run_of(Some(other.clone()), at(0), vec![edit("1", adding)]);
    assert!(matches!(run(Adding::to_items(1)), Err(OpError::NotFound)));
    assert!(matches!(run(Adding::or_make(1, "1")), Err(OpError::KeyCollision)));
}

#[test]
fn an_edit_beside_the_write_path_commits_what_was_shown() {
    let world = World::new();
    let snapshot = Arc::new(world.engine.snapshot());
    let limits = PartitionLimits::default();
    let bench = Workbench::new(&world.partition, snapshot, world.schema.clone(), limits, scope("a"), at(0));
    let mut bench = bench.expect("a bench");
    let mut shown = Vec::new();
    for amount in [1, 0, 2] {
        let op = edit("1", Adding::or_make(amount, "1"));
        shown.push(bench.run(&world.partition, op).expect("an edit").item);
    }
    let snapshot = world.engine.snapshot();
    let mut group = Group::new(&world.partition, &snapshot, &world.schema, limits);
    group.run_ahead(&bench.finish(), 0).expect("nobody wrote meanwhile");
    ground::commit(&world.engine, &world.partition, group);
    let read = world.run(at(1), vec![op("1", Action::Read)]).expect("it is there").remove(0).item;
    assert_eq!(read.doc.root().get("n").as_i64(), Some(3));
    assert_eq!((read.header.rid, read.header.etag), (shown[2].header.rid, shown[2].header.etag));
}
