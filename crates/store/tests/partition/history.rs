//! The history of a partition: every write leaves one entry, and a reader never misses one without being told.

use orrery_doc::{Doc, Epk, EpkRange, json};
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, ChangeKind, DefaultTtl, FIRST_LSN, FeedCursor, Group, HistoryEntry, ItemId, Lifetimes, Lsn, Op,
    Partition, Scan, Schema, TICKS_PER_SECOND, Txn, View,
};
use proptest::prelude::*;

use super::ground::{self, key_def, op, scope, spec};

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
}

fn doc(id: &str, n: u32) -> Doc {
    json::parse(format!(r#"{{"id":"{id}","n":{n}}}"#).as_bytes(), 8).expect("JSON")
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let mut schema = Schema::new(key_def(), 9, IndexingPolicy::default());
        schema.keeps_history = true;
        World { engine, partition, schema }
    }

    fn in_group<T>(&self, work: impl FnOnce(&mut Group<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let answer = work(&mut group);
        ground::commit(&self.engine, &self.partition, group);
        let reopened = ground::open(&self.engine);
        assert_eq!(reopened.history(), self.partition.history(), "what is remembered is what is stored");
        let report =
            self.partition.verify(&self.engine.snapshot(), &self.schema).expect("stored items decode");
        assert_eq!(report.findings, Vec::<String>::new());
        answer
    }

    /// Runs transactions on one logical partition as one group, at a time in seconds.
    fn write(&self, now: u64, txns: Vec<Vec<Op>>) {
        self.in_group(|group| {
            for ops in txns {
                let txn = Txn { scope: scope("a"), key: None, ops, now: now * TICKS_PER_SECOND };
                let _ = group.run(&txn);
            }
        });
    }

    fn erase(&self, keep_since: Option<u64>, entries_max: usize) {
        let keep_since = keep_since.map(|seconds| seconds * TICKS_PER_SECOND);
        self.in_group(|group| group.erase_history(keep_since, entries_max)).expect("entries decode");
    }

    fn read(&self, range: &EpkRange, after: FeedCursor) -> Vec<HistoryEntry> {
        let snapshot = self.engine.snapshot();
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        let mut found = Vec::new();
        view.history(range, after, |at, entry| {
            assert!(entry.as_ref().is_none_or(|entry| entry.at == at));
            found.extend(entry);
            Scan::Continue
        })
        .expect("entries decode");
        found
    }

    /// The how-many-eth write, what happened, to whom, the number it carried, and the write before.
    fn shown(&self) -> Vec<(u64, ChangeKind, String, i64, u64)> {
        let show = |entry: HistoryEntry| {
            let number = entry.item.doc.root().get("n").as_i64().expect("each test item has a number");
            (
                write(entry.at.lsn),
                entry.kind,
                entry.key.id.to_string(),
                number,
                entry.previous.map_or(0, write),
            )
        };
        self.read(&EpkRange::full(), FeedCursor::after(Lsn(0))).into_iter().map(show).collect()
    }

    fn floor(&self) -> Option<u64> {
        self.partition.history().map(|bounds| write(bounds.floor))
    }
}

/// A write by its number: the first follows the first LSN.
fn write(lsn: Lsn) -> u64 {
    lsn.0.saturating_sub(FIRST_LSN.0)
}

#[test]
fn every_write_of_a_group_leaves_an_entry() {
    use ChangeKind::{Created, Deleted, Replaced};
    let world = World::new();
    world.write(
        10,
        vec![
            vec![op("1", Action::Create(doc("1", 1)))],
            vec![op("1", Action::Upsert(doc("1", 2)))],
            vec![op("1", Action::Create(doc("1", 9)))],
            vec![op("1", Action::Delete)],
            vec![
                op("1", Action::Create(doc("1", 3))),
                op("1", Action::Read),
                op("1", Action::Replace(doc("1", 4))),
                op("2", Action::Create(doc("2", 5))),
            ],
        ],
    );
    world.write(20, vec![vec![op("2", Action::Rename { id: "3".into(), doc: doc("3", 6) })]]);
    let expected = [
        (1, Created, "1", 1, 0),
        (2, Replaced, "1", 2, 1),
        (3, Deleted, "1", 2, 2),
        (4, Created, "1", 3, 0),
        (4, Replaced, "1", 4, 4),
        (4, Created, "2", 5, 0),
        (5, Replaced, "3", 6, 4),
    ];
    assert_eq!(world.shown(), expected.map(|(lsn, kind, id, n, before)| (lsn, kind, id.into(), n, before)));
    let all = world.read(&EpkRange::full(), FeedCursor::after(Lsn(0)));
    for (seen, entry) in all.iter().enumerate() {
        let rest = world.read(&EpkRange::full(), entry.at);
        assert_eq!(rest.len(), all.len() - seen - 1, "a reader goes on behind any entry");
    }
    assert_eq!(all[6].time, 20 * TICKS_PER_SECOND);
    let elsewhere = EpkRange::new(Epk::MIN, scope("a"));
    assert!(world.read(&elsewhere, FeedCursor::after(Lsn(0))).is_empty());
}

/// One write while the clock was years ahead does not keep all that follows.
#[test]
fn what_was_written_ahead_of_the_clock_is_erased_with_what_follows_it() {
    const AHEAD: u64 = 12 * 365 * 86_400;
    let world = World::new();
    for (n, now) in [(1, 1_000), (2, AHEAD), (3, AHEAD + 1), (4, 1_010), (5, 1_020)] {
        let id = n.to_string();
        world.write(now, vec![vec![op(&id, Action::Create(doc(&id, n)))]]);
    }
    world.erase(Some(1_005), 100);
    assert_eq!(world.floor(), Some(1), "what follows is kept still");
    world.erase(Some(1_015), 100);
    assert_eq!(world.floor(), Some(4));
    let bounds = world.partition.history().expect("some of it is left");
    let is_due = |since: u64| {
        bounds.is_outlived(&world.engine.snapshot(), &world.partition.spec, since * TICKS_PER_SECOND)
    };
    assert!(!is_due(1_015).expect("entries decode"));
    assert!(is_due(1_025).expect("entries decode"));
}

#[test]
fn an_item_that_is_written_over_after_its_time_went_by_expiry() {
    use ChangeKind::{Created, Expired};
    let mut world = World::new();
    world.schema.ttl = DefaultTtl::Seconds(10);
    world.write(100, vec![vec![op("1", Action::Create(doc("1", 1)))]]);
    world.write(200, vec![vec![op("1", Action::Create(doc("1", 2)))]]);
    let expected =
        [(1, Created, "1".into(), 1, 0), (2, Expired, "1".into(), 1, 1), (2, Created, "1".into(), 2, 0)];
    assert_eq!(world.shown(), expected);
}

#[test]
fn who_copies_the_items_learns_what_was_replaced() {
    let mut world = World::new();
    let upsert = |n| vec![op("1", Action::Upsert(doc("1", n)))];
    world.write(10, vec![upsert(1), upsert(2)]);
    world.schema.keeps_replaced = true;
    let rename = Action::Rename { id: "2".into(), doc: doc("2", 4) };
    world.write(20, vec![upsert(3), vec![op("1", rename)], vec![op("2", Action::Delete)], upsert(5)]);
    let show = |entry: HistoryEntry| {
        let replaced = entry.replaced.map(|replaced| {
            let root = replaced.item.doc.root();
            assert_eq!(root.get("id").as_str(), replaced.id.as_str());
            (replaced.id.as_str().map(str::to_owned), root.get("n").as_i64())
        });
        (entry.key.id.to_string(), entry.item.doc.root().get("n").as_i64(), replaced)
    };
    let entries = world.read(&EpkRange::full(), FeedCursor::after(Lsn(0)));
    let shown: Vec<_> = entries.into_iter().map(show).collect();
    let one = || Some(String::from("1"));
    let expected = [
        ("1".into(), Some(1), None),
        ("1".into(), Some(2), None),
        ("1".into(), Some(3), Some((one(), Some(2)))),
        ("2".into(), Some(4), Some((one(), Some(3)))),
        ("2".into(), Some(4), None),
        ("1".into(), Some(5), None),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn the_floor_tells_where_something_may_be_missing() {
    let mut world = World::new();
    world.schema.keeps_history = false;
    let write = |world: &World, n| world.write(10, vec![vec![op("1", Action::Upsert(doc("1", n)))]]);
    write(&world, 1);
    assert_eq!(world.floor(), None);
    world.schema.keeps_history = true;
    write(&world, 2);
    write(&world, 3);
    assert_eq!(world.floor(), Some(1), "what was written before is not there");
    world.schema.keeps_history = false;
    write(&world, 4);
    world.schema.keeps_history = true;
    write(&world, 5);
    assert_eq!(world.floor(), Some(4), "a gap is a floor too");
    world.erase(Some(0), 100);
    assert_eq!(world.shown().len(), 1, "what lies below the floor goes, however young it is");
    world.schema.keeps_history = false;
    world.erase(None, 100);
    assert_eq!((world.shown(), world.floor()), (vec![], None));
}

#[test]
fn old_entries_are_erased_in_steps() {
    let mut world = World::new();
    for n in 1..=9 {
        world.write(u64::from(n) * 10, vec![vec![op("1", Action::Upsert(doc("1", n)))]]);
    }
    let is_outlived = |world: &World, since: u64| {
        let bounds = world.partition.history().expect("something was recorded");
        bounds
            .is_outlived(&world.engine.snapshot(), &spec(), since * TICKS_PER_SECOND)
            .expect("entries decode")
    };
    assert!(!is_outlived(&world, 10) && is_outlived(&world, 11));
    world.erase(Some(65), 4);
    assert_eq!((world.floor(), world.shown()[0].0), (Some(4), 5));
    assert!(is_outlived(&world, 65));
    world.erase(Some(65), 4);
    assert_eq!((world.floor(), world.shown()[0].0), (Some(6), 7));
    assert!(!is_outlived(&world, 65));
    world.erase(Some(65), 4);
    assert_eq!((world.floor(), world.shown().len()), (Some(6), 3));
    world.schema.keeps_history = false;
    for left in [2, 1, 0] {
        world.erase(None, 1);
        assert_eq!((world.shown().len(), world.floor().is_some()), (left, left > 0));
    }
}

proptest! {
    /// Whatever is written and erased in whatever groups: replaying the history gives the items.
    #[test]
    fn replaying_the_history_gives_the_items(
        groups in prop::collection::vec(prop::collection::vec((0..4u8, 0..4u8, any::<u8>()), 1..6), 1..12),
    ) {
        let world = World::new();
        for (now, group) in groups.iter().enumerate() {
            let txn = |(id, action, n): &(u8, u8, u8)| {
                let (id, n) = (id.to_string(), u32::from(*n));
                let other = (n % 4).to_string();
                vec![op(&id, match action {
                    0 => Action::Delete,
                    1 => Action::Create(doc(&id, n)),
                    2 if other != id => Action::Rename { doc: doc(&other, n), id: ItemId::new(other).expect("a short id") },
                    _ => Action::Upsert(doc(&id, n)),
                })]
            };
            world.write(now as u64, group.iter().map(txn).collect());
        }
        let mut items = std::collections::HashMap::new();
        let mut last = FeedCursor { lsn: Lsn(0), place: 0 };
        for entry in world.read(&EpkRange::full(), FeedCursor::after(Lsn(0))) {
            prop_assert!(entry.at > last);
            last = entry.at;
            let rid = entry.item.header.rid;
            let before: Option<(Lsn, ItemId, i64)> = items.remove(&rid);
            prop_assert_eq!(before.as_ref().map(|(lsn, ..)| *lsn), entry.previous);
            if entry.kind != ChangeKind::Deleted {
                let n = entry.item.doc.root().get("n").as_i64().expect("each item has a number");
                items.insert(rid, (entry.at.lsn, entry.key.id, n));
            }
        }
        let snapshot = world.engine.snapshot();
        let view = View::new(&world.partition, &snapshot, world.partition.lsn(), Lifetimes::ENDLESS);
        let mut stored = 0;
        view.scan(&EpkRange::full(), None, |key, item| {
            stored += 1;
            let n = item.doc.root().get("n").as_i64().expect("each item has a number");
            assert_eq!(items.get(&item.header.rid), Some(&(item.header.lsn, key.id, n)));
            Scan::Continue
        }).expect("items decode");
        prop_assert_eq!(stored, items.len());
    }
}
