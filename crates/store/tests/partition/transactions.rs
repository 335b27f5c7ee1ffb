//! Behaviour of one partition: what transactions do, and that keys, sizes and LSN always agree with the items.

use std::collections::HashMap;
use std::ops::Bound;

use orrery_doc::{Epk, EpkRange, PartitionKey, json, prefix_range};
use orrery_store::engine::{Engine, Keyspace};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{PartitionLimits, TXN_READ_BYTES_MAX};
use orrery_store::{
    Action, Effect, Etag, FIRST_LSN, FeedCursor, Group, Item, ItemId, Lifetimes, Lsn, Op, OpError, Outcome,
    Partition, Precondition, Scan, Schema, TICKS_PER_SECOND, Target, Txn, View,
};
use proptest::prelude::*;

use super::ground::{self, key_def, op, refused, scope, spec};

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
    limits: PartitionLimits,
}

fn doc(text: &str) -> orrery_doc::Doc {
    json::parse(text.as_bytes(), 128).expect("test documents are JSON")
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let schema = Schema::new(key_def(), 9, IndexingPolicy::default());
        World { engine, partition, schema, limits: PartitionLimits::default() }
    }

    /// Runs transactions as one group and commits it.
    fn group(&self, txns: Vec<(&str, Vec<Op>)>) -> Vec<Result<Vec<Outcome>, OpError>> {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, self.limits);
        let mut answers = Vec::new();
        for (key, ops) in txns {
            let txn = Txn { scope: scope(key), key: None, ops, now: 1_700_000_000 * TICKS_PER_SECOND };
            answers.push(group.run(&txn).map(|done| done.outcomes).map_err(refused));
        }
        ground::commit(&self.engine, &self.partition, group);
        answers
    }

    fn run(&self, key: &str, ops: Vec<Op>) -> Result<Vec<Outcome>, OpError> {
        self.group(vec![(key, ops)]).remove(0)
    }

    fn read(&self, key: &str, target: Target) -> Option<String> {
        let snapshot = self.engine.snapshot();
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        view.item(&scope(key), &target).expect("stored items decode").map(|item| text(&item))
    }

    fn count(&self, keyspace: Keyspace) -> usize {
        self.engine.snapshot().keys(keyspace, Bound::Unbounded, Bound::Unbounded, false).count()
    }

    /// Recomputes everything that is derived from the items and compares it with what is stored.
    fn check(&self) {
        let snapshot = self.engine.snapshot();
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        let (mut items, mut bytes, mut sizes) = (0, 0, HashMap::<Epk, (u64, u64)>::new());
        view.scan(&EpkRange::full(), None, |key, item| {
            items += 1;
            bytes += u64::from(item.header.json_bytes);
            assert_eq!(item.header.json_bytes as usize, text(&item).len(), "{}", key.id);
            assert!(item.header.lsn <= self.partition.lsn());
            let size = sizes.entry(key.epk).or_default();
            *size = (size.0 + u64::from(item.header.json_bytes), size.1 + 1);
            Scan::Continue
        })
        .expect("stored items decode");
        let state = self.partition.state();
        assert_eq!((state.items, state.bytes), (items, bytes));
        assert_eq!(self.count(Keyspace::Feed), items as usize, "one feed entry for each live item");
        let meta = snapshot.keys(Keyspace::Meta, Bound::Unbounded, Bound::Unbounded, false);
        // The number of pages of path counts depends on what was there before.
        let meta = meta.filter(|key| key.as_ref().is_ok_and(|key| key[0] != b'N')).count();
        // The state, and which indexes are kept up.
        let of_partition = if state.lsn > FIRST_LSN { 2 } else { 0 };
        assert_eq!(meta, sizes.len() + of_partition);
        let report = self.partition.verify(&snapshot, &self.schema).expect("stored items decode");
        assert_eq!(report.findings, Vec::<String>::new());
        for (epk, (bytes, items)) in sizes {
            let reopened = Partition::open(spec(), &snapshot).expect("the state decodes");
            assert_eq!(reopened.state(), state);
            let size = reopened.logical_size(&epk, &snapshot).expect("the size decodes");
            assert_eq!((size.bytes, size.items), (bytes, items));
        }
    }
}

fn text(item: &Item) -> String {
    let mut out = Vec::new();
    json::write(item.doc.root(), &mut out);
    String::from_utf8(out).expect("JSON is text")
}

#[test]
fn create_read_replace_delete_leave_nothing_behind() {
    let world = World::new();
    let created = world.run("a", vec![op("1", Action::Create(doc(r#"{"id":"1","pk":"a","n":1}"#)))]).unwrap();
    assert_eq!(created[0].effect, Effect::Created);
    let rid = created[0].item.header.rid;
    assert_eq!(world.read("a", Target::Id("1".into())).as_deref(), Some(r#"{"id":"1","pk":"a","n":1}"#));
    assert_eq!(world.read("a", Target::Rid(rid)).as_deref(), Some(r#"{"id":"1","pk":"a","n":1}"#));
    assert_eq!(world.read("b", Target::Rid(rid)), None, "another key must not find it");
    let replaced =
        world.run("a", vec![op("1", Action::Replace(doc(r#"{"id":"1","pk":"a","n":2}"#)))]).unwrap();
    assert_eq!(replaced[0].item.header.rid, rid, "a new version keeps the rid");
    assert_ne!(replaced[0].item.header.etag, created[0].item.header.etag);
    world.check();
    world.run("a", vec![op("1", Action::Delete)]).unwrap();
    assert_eq!(world.read("a", Target::Id("1".into())), None);
    assert_eq!([Keyspace::Item, Keyspace::Index, Keyspace::Feed].map(|k| world.count(k)), [0, 0, 0]);
    world.check();
}

#[test]
fn a_failing_operation_undoes_its_transaction_and_no_other() {
    let world = World::new();
    let body = || doc(r#"{"id":"x","pk":"a"}"#);
    let answers = world.group(vec![
        ("a", vec![op("1", Action::Create(body()))]),
        ("a", vec![op("2", Action::Create(body())), op("1", Action::Create(body()))]),
        ("a", vec![op("3", Action::Create(body())), op("3", Action::Replace(body())), op("3", Action::Read)]),
    ]);
    assert!(answers[0].is_ok());
    assert!(matches!(answers[1], Err(OpError::Conflict)));
    assert_eq!(answers[2].as_ref().unwrap().len(), 3);
    let found =
        ["1", "2", "3"].map(|id| world.read("a", Target::Id(ItemId::new(id).expect("a short id"))).is_some());
    assert_eq!(found, [true, false, true]);
    assert_eq!(world.partition.lsn(), Lsn(FIRST_LSN.0 + 2), "a refused transaction takes no LSN");
    world.check();
}

#[test]
fn a_transaction_that_reads_more_than_one_answer_holds_is_undone() {
    let world = World::new();
    let large = doc(&format!(r#"{{"id":"x","pk":"a","text":"{}"}}"#, "x".repeat(TXN_READ_BYTES_MAX / 3)));
    world.run("a", vec![op("1", Action::Create(large))]).expect("it fits");
    let small = || op("2", Action::Create(doc(r#"{"id":"y","pk":"a"}"#)));
    let read = || op("1", Action::Read);
    let refused = world.run("a", vec![small(), read(), read(), read()]);
    assert!(matches!(refused, Err(OpError::AnswerTooLarge)));
    assert_eq!(world.read("a", Target::Id("2".into())), None);
    // A version that the client has is not shown, so it needs no room.
    let etag = world.run("a", vec![read()]).expect("it fits")[0].item.header.etag;
    let known = || Op { precondition: Precondition::IfNoneMatch(Some(etag)), ..read() };
    let done = world.run("a", vec![small(), read(), read(), known(), known()]).expect("it fits");
    assert_eq!(done.last().map(|outcome| outcome.effect), Some(Effect::NotModified));
    world.check();
}

#[test]
fn an_item_written_twice_in_a_group_ends_as_its_last_version() {
    let world = World::new();
    let body = |n: u32| doc(&format!(r#"{{"id":"1","pk":"a","n":{n}}}"#));
    world.group(vec![
        ("a", vec![op("1", Action::Create(body(1)))]),
        ("a", vec![op("1", Action::Upsert(body(2)))]),
        ("a", vec![op("1", Action::Delete)]),
        ("a", vec![op("1", Action::Create(body(3)))]),
    ]);
    assert_eq!(world.read("a", Target::Id("1".into())).as_deref(), Some(r#"{"id":"1","pk":"a","n":3}"#));
    world.check();
}

#[test]
fn a_replace_with_another_id_moves_the_item() {
    let world = World::new();
    let body = |id: &str| doc(&format!(r#"{{"id":"{id}","pk":"a"}}"#));
    let rid = world.run("a", vec![op("1", Action::Create(body("1")))]).unwrap()[0].item.header.rid;
    world.run("a", vec![op("2", Action::Create(body("2")))]).unwrap();
    let rename = |id: &str| Action::Rename { id: ItemId::new(id).expect("a short id"), doc: body(id) };
    assert!(matches!(world.run("a", vec![op("1", rename("2"))]), Err(OpError::Conflict)));
    let moved = world.run("a", vec![op("1", rename("3"))]).unwrap();
    assert_eq!((moved[0].effect, moved[0].item.header.rid), (Effect::Replaced, rid));
    assert_eq!(world.read("a", Target::Id("1".into())), None);
    assert_eq!(world.read("a", Target::Rid(rid)).as_deref(), Some(r#"{"id":"3","pk":"a"}"#));
    world.check();
}

#[test]
fn a_transaction_may_rename_an_item_again_and_again_by_its_rid() {
    let world = World::new();
    let body = |id: &str| doc(&format!(r#"{{"id":"{id}","pk":"a"}}"#));
    let rid = world.run("a", vec![op("1", Action::Create(body("1")))]).unwrap()[0].item.header.rid;
    let rename = |id: &str| {
        let action = Action::Rename { id: ItemId::new(id).expect("a short id"), doc: body(id) };
        Op { target: Target::Rid(rid), ..op("", action) }
    };
    world.run("a", vec![rename("2"), rename("3"), rename("4")]).unwrap();
    assert_eq!(world.read("a", Target::Rid(rid)).as_deref(), Some(r#"{"id":"4","pk":"a"}"#));
    assert_eq!(world.read("a", Target::Id("2".into())), None);
    world.check();
}

#[test]
fn versions_guard_writes() {
    let world = World::new();
    let body = || doc(r#"{"id":"1","pk":"a"}"#);
    let etag = world.run("a", vec![op("1", Action::Create(body()))]).unwrap()[0].item.header.etag;
    let guarded = |precondition, action| Op { precondition, ..op("1", action) };
    let stale = Precondition::IfMatch(Some(Etag(1)));
    for action in [Action::Replace(body()), Action::Upsert(body()), Action::Delete] {
        let refused = world.run("a", vec![guarded(stale, action)]);
        assert!(matches!(refused, Err(OpError::PreconditionFailed)));
    }
    assert!(
        world.run("a", vec![guarded(Precondition::IfMatch(Some(etag)), Action::Replace(body()))]).is_ok()
    );
    let missing = Op { precondition: stale, ..op("2", Action::Upsert(doc(r#"{"id":"2","pk":"a"}"#))) };
    assert!(world.run("a", vec![missing]).is_ok(), "an upsert of a missing item ignores If-Match");
    assert!(matches!(world.run("a", vec![op("9", Action::Delete)]), Err(OpError::NotFound)));
}

#[test]
fn a_full_logical_partition_refuses_growth_and_takes_the_rest() {
    let mut world = World::new();
    world.limits.logical_partition_bytes = 1_000;
    let body =
        |id: &str, fill: usize| doc(&format!(r#"{{"id":"{id}","pk":"a","fill":"{}"}}"#, "x".repeat(fill)));
    world.run("a", vec![op("1", Action::Create(body("1", 700)))]).unwrap();
    let refused = world.run("a", vec![op("2", Action::Create(body("2", 300)))]);
    assert!(matches!(refused, Err(OpError::LogicalPartitionFull)));
    assert!(
        world.run("b", vec![op("2", Action::Create(body("2", 300)))]).is_ok(),
        "others are not concerned"
    );
    let both = vec![op("3", Action::Create(body("3", 150))), op("4", Action::Create(body("4", 150)))];
    assert!(matches!(world.run("a", both), Err(OpError::LogicalPartitionFull)), "a batch counts as a whole");
    assert!(world.run("a", vec![op("1", Action::Replace(body("1", 600)))]).is_ok(), "shrinking is allowed");
    assert!(world.run("a", vec![op("2", Action::Create(body("2", 200)))]).is_ok());
    world.check();
}

#[test]
fn scans_follow_the_key_space_and_resume_after_any_key() {
    let world = World::new();
    for n in 0..50 {
        let body = doc(&format!(r#"{{"id":"{n}","pk":"{}"}}"#, n % 7));
        world.run(&(n % 7).to_string(), vec![op(&n.to_string(), Action::Create(body))]).unwrap();
    }
    let snapshot = world.engine.snapshot();
    let view = View::new(&world.partition, &snapshot, world.partition.lsn(), Lifetimes::ENDLESS);
    let collect = |from: Option<&orrery_store::ItemKey>| {
        let mut keys = Vec::new();
        view.scan(&EpkRange::full(), from, |key, _| {
            keys.push(key);
            Scan::Continue
        })
        .unwrap();
        keys
    };
    let all = collect(None);
    assert_eq!(all.len(), 50);
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    for (place, key) in all.iter().enumerate() {
        assert_eq!(collect(Some(key)), all[place + 1..], "resuming after {}", key.id);
    }
}

#[test]
fn changes_of_a_small_logical_partition_are_found_among_many_writes() {
    let world = World::new();
    let body = |id: usize, key: &str| doc(&format!(r#"{{"id":"{id}","pk":"{key}"}}"#));
    for n in 0..200 {
        world.run("other", vec![op("x", Action::Upsert(body(0, "other")))]).unwrap();
        if n % 20 == 0 {
            let pair = [n % 3, 7].map(|id| op(&id.to_string(), Action::Upsert(body(id, "a"))));
            world.run("a", pair.to_vec()).unwrap();
        }
    }
    world.run("a", vec![op("1", Action::Delete)]).unwrap();
    let snapshot = world.engine.snapshot();
    let view = View::new(&world.partition, &snapshot, world.partition.lsn(), Lifetimes::ENDLESS);
    let key = PartitionKey::from_header("[\"a\"]").expect("a plain key");
    let range = prefix_range(&key_def(), &key);
    for lsn in 0..=world.partition.lsn().0 {
        for after in [FeedCursor::after(Lsn(lsn)), FeedCursor { lsn: Lsn(lsn), place: 0 }] {
            let (mut by_feed, mut by_key) = (Vec::new(), Vec::new());
            let note = |found: &mut Vec<_>, at, item: Option<Item>| {
                found.extend(item.map(|item| (at, text(&item))));
                Scan::Continue
            };
            view.changes(&range, after, |at, item| note(&mut by_feed, at, item)).unwrap();
            view.changes_of_key(&range, after, |at, item| note(&mut by_key, at, item)).unwrap();
            assert_eq!(by_feed, by_key, "after {after:?}");
            assert!(lsn > 0 || by_feed.len() == 3);
        }
    }
}

#[test]
fn changes_come_once_each_in_the_order_of_their_last_write() {
    let world = World::new();
    let body = |id: &str, n: u32| doc(&format!(r#"{{"id":"{id}","pk":"a","n":{n}}}"#));
    for id in ["1", "2", "3"] {
        world.run("a", vec![op(id, Action::Create(body(id, 0)))]).unwrap();
    }
    world.run("a", vec![op("1", Action::Replace(body("1", 1)))]).unwrap();
    world.run("a", vec![op("2", Action::Delete)]).unwrap();
    let snapshot = world.engine.snapshot();
    let view = View::new(&world.partition, &snapshot, world.partition.lsn(), Lifetimes::ENDLESS);
    let changes = |range: &EpkRange, after: u64| {
        let mut found = Vec::new();
        view.changes(range, FeedCursor::after(Lsn(after)), |at, item| {
            assert_eq!(item.is_some(), range.contains(&scope("a")), "{at:?}");
            found.extend(item.map(|item| (item.header.lsn, item.header.time, text(&item))));
            Scan::Continue
        })
        .unwrap();
        found
    };
    let all = changes(&EpkRange::full(), 0);
    let shown: Vec<(u64, &str)> = all.iter().map(|(lsn, _, text)| (lsn.0, text.as_str())).collect();
    assert_eq!(shown, [(4, r#"{"id":"3","pk":"a","n":0}"#), (5, r#"{"id":"1","pk":"a","n":1}"#)]);
    assert_eq!(changes(&EpkRange::full(), 4), all[1..]);
    assert_eq!(changes(&EpkRange::full(), 5), []);
    let elsewhere = EpkRange::new(Epk::MIN, scope("a"));
    assert_eq!(changes(&elsewhere, 0), [], "another part of the key space has none of them");
    assert!(view.lsn_before(0).unwrap() <= FIRST_LSN);
    for (lsn, time, _) in all {
        assert!(view.lsn_before(time + 1).unwrap() >= lsn, "{lsn:?} was written before");
        assert!(view.lsn_before(time).unwrap() < lsn, "{lsn:?} was not written yet");
    }
}

/// A partition key, and operations as kind, id and document.
type PlannedTxn = (String, Vec<(u8, String, String)>);

fn any_op() -> impl Strategy<Value = (u8, u8, u8, u8)> {
    (0..5u8, 0..4u8, 0..6u8, any::<u8>())
}

#[test]
fn a_write_may_insist_on_the_time_of_the_version_before() {
    let world = World::new();
    let put = |precondition, text: &str| Op { precondition, ..op("a", Action::Upsert(doc(text))) };
    let written = |outcomes: Vec<Outcome>| outcomes[0].item.header.time;
    let first = written(world.run("k", vec![put(Precondition::None, r#"{"id":"a"}"#)]).expect("created"));
    let second =
        written(world.run("k", vec![put(Precondition::IfWrittenAt(first), r#"{"id":"a"}"#)]).expect("it is"));
    // The clock stands still; times of a partition do not.
    assert!(second > first);
    let late = world.run("k", vec![put(Precondition::IfWrittenAt(first), r#"{"id":"a"}"#)]);
    assert!(matches!(late, Err(OpError::PreconditionFailed)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any mix of transactions leaves items equal to a plain map, and everything derived in agreement with them.
    #[test]
    fn a_partition_agrees_with_a_map(groups in prop::collection::vec(prop::collection::vec(
        prop::collection::vec(any_op(), 1..4), 1..4), 1..8))
    {
        let world = World::new();
        let mut model: HashMap<(String, String), String> = HashMap::new();
        for group in groups {
            let txns: Vec<PlannedTxn> = group.iter().map(|ops| {
                let key = ops[0].1.to_string();
                let ops = ops.iter().map(|(kind, _, id, n)| {
                    (*kind, id.to_string(), format!(r#"{{"id":"{id}","pk":"{key}","n":{n},"t":["{n}",{kind}]}}"#))
                }).collect();
                (key, ops)
            }).collect();
            let answers = world.group(txns.iter().map(|(key, ops)| {
                (key.as_str(), ops.iter().map(|(kind, id, body)| op(id, action(*kind, body))).collect())
            }).collect());
            for ((key, ops), answer) in txns.iter().zip(&answers) {
                let mut after = model.clone();
                let ok = ops.iter().all(|(kind, id, body)| apply(&mut after, (key, id), *kind, body));
                prop_assert_eq!(ok, answer.is_ok());
                if ok {
                    model = after;
                }
            }
            world.check();
            for ((key, id), body) in &model {
                let stored = world.read(key, Target::Id(ItemId::new(id).expect("a short id")));
                prop_assert_eq!(stored.as_ref(), Some(body));
            }
        }
        let state = world.partition.state();
        prop_assert_eq!(state.items as usize, model.len());
    }
}

fn action(kind: u8, body: &str) -> Action {
    match kind {
        0 => Action::Create(doc(body)),
        1 => Action::Upsert(doc(body)),
        2 => Action::Replace(doc(body)),
        3 => Action::Delete,
        _ => Action::Read,
    }
}

fn apply(
    model: &mut HashMap<(String, String), String>,
    (key, id): (&str, &str),
    kind: u8,
    body: &str,
) -> bool {
    let place = (key.to_owned(), id.to_owned());
    let exists = model.contains_key(&place);
    match kind {
        0 if exists => return false,
        0 | 1 => drop(model.insert(place, body.to_owned())),
        _ if !exists => return false,
        2 => drop(model.insert(place, body.to_owned())),
        3 => drop(model.remove(&place)),
        _ => {}
    }
    true
}
