//! What a partition reads of those that were before it: its own part, and no more than it can stop at.

use std::sync::Arc;

use orrery_doc::{Doc, EpkRange, json};
use orrery_store::engine::{Engine, Snapshot};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{HISTORY_PASSED_PER_STEP, PartitionLimits, SIBLINGS_PASSED_AT_ONCE};
use orrery_store::{
    Action, DefaultTtl, FeedCursor, Group, Lsn, Partition, PartitionSpec, Scan, Schema, SplitPlan,
    TICKS_PER_SECOND, Txn, View,
};

use super::ground::{self, key_def, op, scope};

const GENERATION: u32 = 9;
const READABLE: &str = "what is stored decodes";

struct World {
    engine: Engine,
    schema: Schema,
}

/// An item that lives by the default, or for ever.
fn doc(id: &str, lives_on: bool) -> Doc {
    let ttl = if lives_on { r#","ttl":-1"# } else { "" };
    json::parse(format!(r#"{{"id":"{id}"{ttl}}}"#).as_bytes(), 8).expect("JSON")
}

fn at(seconds: u64) -> u64 {
    seconds * TICKS_PER_SECOND
}

impl World {
    fn new() -> (World, Partition) {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let mut schema = Schema::new(key_def(), GENERATION, IndexingPolicy::default());
        schema.ttl = DefaultTtl::Seconds(10);
        (World { engine, schema }, partition)
    }

    fn commit<T>(&self, partition: &Partition, work: impl FnOnce(&mut Group<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(partition, &snapshot, &self.schema, PartitionLimits::default());
        let done = work(&mut group);
        ground::commit(&self.engine, partition, group);
        done
    }

    /// Writes one item after the other, each in a transaction of its own, and in the logical partition of its name.
    fn write<'a>(&self, partition: &Partition, now: u64, ids: impl Iterator<Item = &'a str>, lives_on: bool) {
        self.commit(partition, |group| {
            for id in ids {
                let ops = vec![op(id, Action::Upsert(doc(id, lives_on)))];
                group.run(&Txn { scope: scope(id), key: None, ops, now }).expect("an upsert succeeds");
            }
        });
    }

    /// Divides a partition in two.
    fn split(&self, parent: &Partition) -> [Partition; 2] {
        let snapshot = || Arc::new(self.engine.snapshot());
        self.carry_out(parent, SplitPlan::make(parent, snapshot, &key_def(), 2).expect(READABLE))
    }

    /// Does what was planned from a snapshot.
    fn carry_out(&self, parent: &Partition, (plan, before): (SplitPlan, Arc<Snapshot>)) -> [Partition; 2] {
        let ranges = plan.ranges(&parent.spec.range);
        let child = |number: u32, range: &EpkRange| PartitionSpec {
            number: parent.spec.number + number,
            range: range.clone(),
            rid_prefix: parent.spec.rid_prefix + number,
            sources: parent.spec.bequeath(range, parent.lsn()),
            ..parent.spec.clone()
        };
        let specs = [child(1, &ranges[0]), child(2, &ranges[1])];
        let after = self.engine.snapshot();
        let states = orrery_store::split(parent, &plan, (&before, &after), GENERATION, &specs);
        let states = states.expect(READABLE).expect("nobody wrote meanwhile");
        self.engine.commit(states).expect("memory does not fail");
        specs.map(|spec| Partition::open(spec, &self.engine.snapshot()).expect(READABLE))
    }

    fn view<T>(&self, partition: &Partition, now: u64, look: impl FnOnce(View<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        look(View::new(partition, &snapshot, partition.lsn(), self.schema.lifetimes(now)))
    }

    /// Times of what the feed shows after an LSN.
    fn times_after(&self, partition: &Partition, lsn: Lsn) -> Vec<u64> {
        let mut times = Vec::new();
        self.view(partition, at(0), |view| {
            let note = |_, item: Option<orrery_store::Item>| {
                times.extend(item.map(|item| item.header.time));
                Scan::Continue
            };
            view.changes(&EpkRange::full(), FeedCursor::after(lsn), note).expect(READABLE);
        });
        times
    }
}

/// Names of logical partitions: so many in order, and as many behind them. With equal bytes in both, a split comes between.
fn names(count: usize) -> (Vec<String>, Vec<String>) {
    let mut low: Vec<String> = (0..2 * count).map(|number| format!("k{number:05}")).collect();
    low.sort_by_key(|name| scope(name));
    let high = low.split_off(count);
    (low, high)
}

fn all(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}

#[test]
fn a_time_is_found_in_the_sequence_that_has_it_after_a_split() {
    let (world, parent) = World::new();
    let (low, high) = names(20);
    world.write(&parent, at(100), all(&low), true);
    world.write(&parent, at(200), all(&high), true);
    let last = parent.lsn();
    let children = world.split(&parent);
    for (child, own) in children.iter().zip([&low, &high]) {
        assert_eq!(world.view(child, at(0), |view| view.lsn_before(at(300))).expect(READABLE), last);
        world.write(child, at(400), all(&own[..3]), true);
        let everything = world.times_after(child, Lsn(0));
        for time in [0, at(100), at(150), at(200), at(250), at(300), at(400), at(500)] {
            let before = world.view(child, at(0), |view| view.lsn_before(time)).expect(READABLE);
            let expected: Vec<u64> = everything.iter().copied().filter(|written| *written >= time).collect();
            assert_eq!(world.times_after(child, before), expected, "from {time}");
        }
    }
}

#[test]
fn a_write_that_becomes_durable_while_a_split_is_planned_is_in_the_children() {
    let (world, parent) = World::new();
    let (low, high) = names(20);
    world.write(&parent, at(100), all(&low), true);
    world.write(&parent, at(200), all(&high), true);
    // The engine has it and readers do not see it yet, while the plan is made from what readers see.
    let published = Arc::new(world.engine.snapshot());
    let mut group = Group::new(&parent, &published, &world.schema, PartitionLimits::default());
    for name in [&low[0], &high[0]] {
        let ops = vec![op("late", Action::Upsert(doc("late", true)))];
        group.run(&Txn { scope: scope(name), key: None, ops, now: at(300) }).expect("an upsert succeeds");
    }
    let mut prepared = group.finish();
    world.engine.commit(std::mem::take(&mut prepared.batch)).expect("memory does not fail");
    let applied = parent.apply(prepared);
    let planned = SplitPlan::make(&parent, || published.clone(), &key_def(), 2).expect(READABLE);
    parent.publish(applied);
    for (child, own) in world.carry_out(&parent, planned).iter().zip([&low, &high]) {
        let state = child.state();
        assert_eq!(state.items, own.len() as u64 + 1, "{state:?}");
    }
}

#[test]
fn a_child_finds_what_is_expired_behind_what_lives_on() {
    let (world, parent) = World::new();
    let (low, high) = names(20);
    world.write(&parent, at(100), all(&low[1..]).chain(all(&high[1..])), true);
    world.write(&parent, at(101), all(&low[..1]).chain(all(&high[..1])), false);
    for child in &world.split(&parent) {
        let search = || world.view(child, at(200), |view| view.overdue(10, 4).expect(READABLE));
        let found = (0..20).map(|_| search()).find(|found| !found.items.is_empty() || !found.more);
        let found = found.expect("the search comes to an end").items;
        assert_eq!(found.len(), 1);
        world.commit(child, |group| group.purge(&found, at(200), u64::MAX)).expect(READABLE);
        assert!(!search().more, "what lives on is known to");
        assert!(!world.view(child, at(200), |view| view.may_hold_expired().expect(READABLE)));
    }
}

#[test]
fn whoever_passes_siblings_entries_can_stop_among_them() {
    let (world, parent) = World::new();
    let (low, high) = names(2 * SIBLINGS_PASSED_AT_ONCE);
    world.write(&parent, at(100), all(&high).chain(all(&low)), false);
    let [child, _] = world.split(&parent);
    let mut shown = Vec::new();
    let (mut after, mut pages) = (FeedCursor::after(Lsn(0)), 0);
    loop {
        let (begun, mut took) = (after, 0);
        world.view(&child, at(100), |view| {
            let page = |at, item: Option<orrery_store::Item>| {
                (after, took) = (at, took + 1);
                shown.extend(item.map(|item| item.header.lsn));
                Scan::Stop
            };
            view.changes(&child.spec.range, begun, page).expect(READABLE);
        });
        if took == 0 {
            break;
        }
        assert!(after > begun, "each page comes further");
        pages += 1;
    }
    assert!(shown.is_sorted());
    assert_eq!(shown.len() as u64, child.state().items);
    assert!(pages > shown.len(), "a page may end before the first own entry");
    let late = at(200);
    assert!(world.view(&child, late, |view| view.may_hold_expired().expect(READABLE)));
    let first = world.view(&child, late, |view| view.overdue(10, 1).expect(READABLE));
    assert_eq!((first.items.len(), first.more), (0, true), "siblings' entries count too");
    let mut searches = (0..20).map(|_| world.view(&child, late, |view| view.overdue(10, 1).expect(READABLE)));
    assert!(searches.any(|found| !found.items.is_empty()), "but the search goes on behind them");
}

#[test]
fn a_history_is_erased_past_siblings_in_steps() {
    let (mut world, parent) = World::new();
    world.schema.keeps_history = true;
    let (low, high) = names(32);
    let rounds = 2 * HISTORY_PASSED_PER_STEP / high.len() + 1;
    for _ in 0..rounds {
        world.write(&parent, at(100), all(&high), true);
    }
    world.write(&parent, at(101), all(&low), true);
    let [child, sibling] = world.split(&parent);
    assert!(child.spec.range.contains(&scope(&low[0])) && sibling.spec.range.contains(&scope(&high[0])));
    let step = |keep_since: Option<u64>| {
        world.commit(&child, |group| group.erase_history(keep_since, 1_000)).expect(READABLE);
        child.history()
    };
    let is_due = |since: u64| {
        let bounds = child.history().expect("it is kept");
        bounds.is_outlived(&world.engine.snapshot(), &child.spec, since).expect(READABLE)
    };
    let first = step(Some(at(101))).expect("it is kept");
    assert!(first.erased < Lsn(2 * HISTORY_PASSED_PER_STEP as u64), "a step has an end");
    let steps = (0..10).take_while(|_| is_due(at(101)) && step(Some(at(101))).is_some()).count();
    assert!((1..10).contains(&steps), "{steps} steps");
    assert_eq!(child.history().map(|bounds| bounds.floor), Some(first.floor), "nothing was missed");
    assert!((0..10).any(|_| step(None).is_none()), "in the end there is nothing left");
    assert!(sibling.history().is_some(), "the others go on");
}

#[test]
fn what_is_passed_of_siblings_is_no_finding() {
    let (mut world, parent) = World::new();
    world.schema.keeps_history = true;
    let (low, high) = names(2 * SIBLINGS_PASSED_AT_ONCE);
    world.write(&parent, at(100), all(&high).chain(all(&low)), true);
    let children = world.split(&parent);
    // They use their parent's index together.
    Arc::make_mut(&mut world.schema.index).is_borrowed = true;
    for child in &children {
        let report = child.verify(&world.engine.snapshot(), &world.schema).expect(READABLE);
        assert_eq!(report.findings, Vec::<String>::new());
    }
}
