//! Time to live and unique keys: what is expired is not there, and what is unique stays unique.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_doc::{EpkRange, Path, json};
use orrery_store::engine::Engine;
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, DefaultTtl, Effect, FIRST_LSN, FeedCursor, Group, ItemKey, Lifetimes, Lsn, Op, OpError, Outcome,
    Partition, Scan, Schema, TICKS_PER_SECOND, Target, Txn, UniqueKeys, View,
};
use proptest::prelude::*;

use super::edits::Adding;
use super::ground::{self, key_def, op, refused, scope, spec};

/// The seconds at which the tests begin.
const START: u64 = 1_700_000_000;

/// Why reading succeeds.
const READABLE: &str = "stored items decode";

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
}

fn path(text: &str) -> Path {
    Path::parse_property(text).expect("a plain path")
}

fn doc(text: &str) -> orrery_doc::Doc {
    json::parse(text.as_bytes(), 128).expect("test documents are JSON")
}

fn create(id: &str, body: &str) -> Op {
    op(id, Action::Create(doc(body)))
}

fn replace(id: &str, body: &str) -> Op {
    op(id, Action::Replace(doc(body)))
}

/// Seconds after the start, in ticks.
fn at(seconds: u64) -> u64 {
    (START + seconds) * TICKS_PER_SECOND
}

/// A moment after all writes of that second.
fn late(seconds: u64) -> u64 {
    at(seconds) + TICKS_PER_SECOND / 2
}

impl World {
    fn new(ttl: DefaultTtl, unique: &[&[&str]]) -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        let mut schema = Schema::new(key_def(), 9, IndexingPolicy::default());
        schema.ttl = ttl;
        let paths = |key: &&[&str]| key.iter().map(|text| path(text)).collect();
        schema.unique = UniqueKeys::new(unique.iter().map(paths).collect());
        World { engine, partition, schema }
    }

    /// Runs transactions on keys as one group and commits it.
    fn group(&self, now: u64, txns: Vec<(&str, Vec<Op>)>) -> Vec<Result<Vec<Outcome>, OpError>> {
        self.commit(|group| {
            let run = |(key, ops)| {
                let txn = Txn { scope: scope(key), key: None, ops, now };
                group.run(&txn).map(|done| done.outcomes).map_err(refused)
            };
            txns.into_iter().map(run).collect()
        })
    }

    fn commit<T>(&self, work: impl FnOnce(&mut Group<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        let done = work(&mut group);
        ground::commit(&self.engine, &self.partition, group);
        done
    }

    fn run(&self, now: u64, ops: Vec<Op>) -> Result<Vec<Outcome>, OpError> {
        self.group(now, vec![("a", ops)]).remove(0)
    }

    /// One operation, and what became of it in a word.
    fn word(&self, now: u64, op: Op) -> &'static str {
        match self.run(now, vec![op]) {
            Ok(outcomes) => match outcomes[0].effect {
                Effect::Created => "created",
                Effect::Replaced => "replaced",
                Effect::Deleted => "deleted",
                Effect::Read | Effect::NotModified => "read",
                Effect::Unchanged | Effect::Absent => "unchanged",
            },
            Err(OpError::Conflict) => "conflict",
            Err(OpError::UniqueConflict) => "unique",
            Err(OpError::NotFound) => "gone",
            Err(OpError::InvalidTtl(_)) => "invalid",
            Err(other) => panic!("{other}"),
        }
    }

    fn view<T>(&self, now: u64, look: impl FnOnce(View<'_>) -> T) -> T {
        let snapshot = self.engine.snapshot();
        look(View::new(&self.partition, &snapshot, self.partition.lsn(), self.schema.lifetimes(now)))
    }

    /// The ids that a point read, a scan, the feed of changes and a count show, which must be the same.
    fn ids(&self, now: u64) -> Vec<String> {
        self.view(now, |view| {
            let (mut scanned, mut fed) = (Vec::new(), Vec::new());
            view.scan(&EpkRange::full(), None, |key, _| {
                let item = view.item(&key.epk, &Target::Id(key.id.clone())).expect(READABLE);
                assert!(item.is_some(), "{} is scanned and not read", key.id);
                scanned.push((key.epk, key.id));
                Scan::Continue
            })
            .expect(READABLE);
            view.changes(&EpkRange::full(), FeedCursor::after(Lsn(0)), |_, item| {
                fed.extend(item.map(|item| item.header.rid));
                Scan::Continue
            })
            .expect(READABLE);
            assert_eq!(fed.len(), scanned.len());
            assert_eq!(view.count_items(&EpkRange::full()).expect(READABLE), scanned.len() as u64);
            let mut ids: Vec<String> = scanned.into_iter().map(|(_, id)| id.to_string()).collect();
            ids.sort();
            ids
        })
    }

    /// Looks for expired items as the background does, and deletes them.
    fn purge(&self, now: u64, most: usize) -> usize {
        let overdue = self.view(now, |view| view.overdue(most, 1_000).expect("stored items decode"));
        assert!(overdue.items.len() <= most);
        self.purge_items(now, &overdue.items)
    }

    fn purge_items(&self, now: u64, items: &[ItemKey]) -> usize {
        self.commit(|group| group.purge(items, now, u64::MAX)).expect("stored items decode").len()
    }

    fn stored(&self) -> u64 {
        self.partition.state().items
    }

    fn check(&self) {
        let snapshot = self.engine.snapshot();
        let report = self.partition.verify(&snapshot, &self.schema).expect("stored items decode");
        assert_eq!(report.findings, Vec::<String>::new());
        let reopened = Partition::open(spec(), &snapshot).expect("the state decodes");
        assert_eq!(reopened.state(), self.partition.state());
    }
}

#[test]
fn an_expired_item_is_gone_for_everybody_at_once() {
    let world = World::new(DefaultTtl::Seconds(10), &[]);
    world.run(at(0), vec![create("1", r#"{"id":"1","pk":"a"}"#)]).unwrap();
    world.run(at(0), vec![create("2", r#"{"id":"2","pk":"a","ttl":5}"#)]).unwrap();
    world.run(at(0), vec![create("3", r#"{"id":"3","pk":"a","ttl":-1}"#)]).unwrap();
    assert_eq!(world.ids(late(4)), ["1", "2", "3"]);
    assert_eq!(world.ids(late(5)), ["1", "3"]);
    assert_eq!(world.ids(late(10)), ["3"]);
    assert_eq!(world.stored(), 3, "nobody has deleted them yet");
    for action in [Action::Delete, Action::Read, Action::Replace(doc(r#"{"id":"1","pk":"a"}"#))] {
        assert_eq!(world.word(late(10), op("1", action)), "gone");
    }
    assert_eq!(world.word(late(10), op("1", Action::Edit(Arc::new(Adding::to_items(1))))), "gone");
    world.check();
}

/// A clock that is twelve years ahead, in seconds.
const AHEAD: u64 = 12 * 365 * 86_400;

/// One write while the clock was ahead; then time goes on, also after a restart, and back again.
#[test]
fn a_clock_that_was_ahead_once_stops_neither_times_nor_expiry() {
    let mut world = World::new(DefaultTtl::Seconds(10), &[]);
    let mut headers = Vec::new();
    for (id, now) in [
        ("before", at(0)),
        ("ahead-1", at(AHEAD)),
        ("ahead-2", at(AHEAD + 1)),
        ("behind", at(1)),
        ("behind-2", at(2)),
    ] {
        if id == "behind-2" {
            world.partition = ground::open(&world.engine);
        }
        let body = format!(r#"{{"id":"{id}","pk":"a"}}"#);
        let header = world.run(now, vec![create(id, &body)]).unwrap()[0].item.header;
        assert_eq!(header.time, now, "{id} has the time of the clock");
        headers.push(header);
    }
    let own =
        world.run(at(3), vec![create("own", r#"{"id":"own","pk":"a","ttl":4}"#)]).unwrap()[0].item.header;
    headers.push(own);
    let lsns: Vec<u64> = headers.iter().map(|header| header.lsn.0).collect();
    assert_eq!(lsns, [2, 3, 4, 5, 6, 7]);
    let etags: std::collections::HashSet<u64> = headers.iter().map(|header| header.etag.0).collect();
    assert_eq!(etags.len(), headers.len());
    assert_eq!(world.ids(late(3)).len(), 6);
    // Neither what was written before nor what was written since waits for those that are ahead.
    assert_eq!(world.purge(late(6), 100), 0);
    assert!(world.view(late(7), |view| view.may_hold_expired()).expect(READABLE));
    assert_eq!(world.purge(late(7), 100), 1, "own");
    assert_eq!(world.purge(late(10), 100), 1, "before");
    assert_eq!(world.purge(late(11), 100), 1, "behind");
    assert_eq!(world.purge(late(20), 100), 1, "behind-2");
    assert_eq!(world.ids(late(20)), ["ahead-1", "ahead-2"], "they live as long as their times say");
    assert_eq!(world.purge(late(AHEAD), 100), 0);
    assert_eq!(world.purge(late(AHEAD + 11), 100), 2, "the clock has come there");
    world.check();
}

/// As many as one search looks at, and more: each search goes on behind the last.
#[test]
fn many_writes_ahead_of_the_clock_are_passed() {
    let world = World::new(DefaultTtl::Seconds(10), &[]);
    let write = |id: &str, now: u64| {
        let body = format!(r#"{{"id":"{id}","pk":"a"}}"#);
        world.run(now, vec![create(id, &body)]).unwrap();
    };
    (0..100).for_each(|n| write(&format!("ahead-{n}"), at(AHEAD + n)));
    write("behind", at(1));
    let search = || {
        let overdue = world.view(late(20), |view| view.overdue(10, 30).expect(READABLE));
        world.purge_items(late(20), &overdue.items)
    };
    assert_eq!((0..5).map(|_| search()).sum::<usize>(), 1);
}

/// A clock that is set right by a few seconds is waited for; times stay in their order then.
#[test]
fn a_clock_that_is_set_back_a_little_is_waited_for() {
    let world = World::new(DefaultTtl::Off, &[]);
    let write = |id: &str, now: u64| {
        let body = format!(r#"{{"id":"{id}","pk":"a"}}"#);
        world.run(now, vec![create(id, &body)]).unwrap()[0].item.header.time
    };
    let times =
        [("1", at(100)), ("2", at(90)), ("3", at(45)), ("4", at(101))].map(|(id, now)| write(id, now));
    assert_eq!(times, [at(100), at(100) + 1, at(100) + 2, at(101)]);
    assert_eq!(write("5", at(30)), at(30), "more than a minute is no correction");
}

/// Who asks for changes since a moment gets all that were written since, whatever the clock showed in between.
#[test]
fn changes_since_a_moment_miss_nothing_after_a_clock_that_was_ahead() {
    let world = World::new(DefaultTtl::Off, &[]);
    let write = |id: String, now: u64| {
        let body = format!(r#"{{"id":"{id}","pk":"a"}}"#);
        world.run(now, vec![create(&id, &body)]).unwrap();
    };
    (0..20).for_each(|n| write(format!("a{n}"), at(n)));
    (0..7).for_each(|n| write(format!("b{n}"), at(AHEAD + n)));
    (20..60).for_each(|n| write(format!("c{n}"), at(n)));
    for since in 20..60 {
        let lsn = world.view(at(100), |view| view.lsn_before(at(since))).expect(READABLE);
        // The first change of that second has this LSN.
        let first = 27 + since - 20 + 1 + FIRST_LSN.0;
        assert!(lsn.0 < first, "changes since {since} begin behind {}", lsn.0);
        assert!(lsn.0 >= 20, "changes since {since} begin behind {}", lsn.0);
    }
}

#[test]
fn a_write_over_an_expired_item_makes_a_new_one() {
    let world = World::new(DefaultTtl::Seconds(10), &[]);
    let body = r#"{"id":"1","pk":"a"}"#;
    let first = world.run(at(0), vec![create("1", body)]).unwrap()[0].item.header;
    assert_eq!(world.word(late(5), create("1", body)), "conflict");
    let second = world.run(late(10), vec![create("1", body)]).unwrap()[0].item.header;
    assert_ne!(first.rid, second.rid);
    assert_eq!(world.word(late(25), op("1", Action::Upsert(doc(body)))), "created");
    assert_eq!(world.word(late(30), op("1", Action::Upsert(doc(body)))), "replaced");
    let moved = Action::Rename { id: "2".into(), doc: doc(r#"{"id":"2","pk":"a"}"#) };
    world.run(at(31), vec![create("2", r#"{"id":"2","pk":"a","ttl":1}"#)]).unwrap();
    assert_eq!(world.word(late(31), op("1", moved.clone())), "conflict");
    assert_eq!(world.word(late(32), op("1", moved)), "replaced", "an expired item is in nobody's way");
    assert_eq!(world.ids(late(32)), ["2"]);
    assert_eq!(world.stored(), 1);
    world.check();
}

#[test]
fn a_changed_default_takes_effect_at_once() {
    let mut world = World::new(DefaultTtl::Off, &[]);
    world.run(at(0), vec![create("1", r#"{"id":"1","pk":"a"}"#)]).unwrap();
    world.run(at(0), vec![create("2", r#"{"id":"2","pk":"a","ttl":5}"#)]).unwrap();
    assert_eq!(world.ids(late(100)), ["1", "2"]);
    assert_eq!(world.purge(late(100), 10), 0);
    for (ttl, left) in [
        (DefaultTtl::Never, vec!["1"]),
        (DefaultTtl::Seconds(50), vec![]),
        (DefaultTtl::Seconds(200), vec!["1"]),
        (DefaultTtl::Off, vec!["1", "2"]),
    ] {
        world.schema.ttl = ttl;
        assert_eq!(world.ids(late(100)), left, "{ttl:?}");
    }
    world.schema.ttl = DefaultTtl::Never;
    assert_eq!(world.purge(late(100), 10), 1, "what was written before knows its own end");
    world.check();
}

#[test]
fn a_purge_deletes_what_is_expired_in_steps_and_nothing_else() {
    let world = World::new(DefaultTtl::Seconds(10), &[&["/u"]]);
    for n in 0..20 {
        let ttl = ["", r#","ttl":3"#, r#","ttl":-1"#, r#","ttl":100"#][n % 4];
        let body = format!(r#"{{"id":"{n}","pk":"a","u":{n}{ttl}}}"#);
        world.run(at(0), vec![create(&n.to_string(), &body)]).unwrap();
    }
    assert_eq!(world.purge(late(1), 100), 0);
    assert_eq!(world.purge(late(3), 100), 5);
    assert_eq!([world.purge(late(10), 2), world.purge(late(10), 2), world.purge(late(10), 2)], [2, 2, 1]);
    assert_eq!(world.purge(late(10), 2), 0);
    assert_eq!(world.stored(), 10);
    assert_eq!(world.ids(late(10)).len(), 10);
    world.check();
    assert_eq!(world.purge(late(100), 100), 5);
    assert_eq!(world.purge(late(1_000_000), 100), 0, "some never expire");
    world.check();
}

#[test]
fn an_item_that_was_written_again_survives_the_purge_that_found_it() {
    let world = World::new(DefaultTtl::Seconds(10), &[]);
    world.run(at(0), vec![create("1", r#"{"id":"1","pk":"a"}"#)]).unwrap();
    world.run(at(0), vec![create("2", r#"{"id":"2","pk":"a"}"#)]).unwrap();
    let overdue = world.view(late(10), |view| view.overdue(10, 10).unwrap());
    assert_eq!(overdue.items.len(), 2);
    // In the same group as the purge, and before it.
    let purged = world.commit(|group| {
        let ops = vec![op("1", Action::Upsert(doc(r#"{"id":"1","pk":"a"}"#)))];
        group.run(&Txn { scope: scope("a"), key: None, ops, now: late(10) }).expect("an upsert succeeds");
        group.purge(&overdue.items, late(10), u64::MAX).expect("stored items decode").len()
    });
    assert_eq!(purged, 1);
    assert_eq!(world.ids(late(11)), ["1"]);
    assert_eq!(world.purge_items(late(11), &overdue.items), 0);
    world.check();
}

#[test]
fn the_search_passes_what_has_a_life_of_its_own() {
    let world = World::new(DefaultTtl::Seconds(10), &[]);
    let body = |n: u64, ttl: &str| format!(r#"{{"id":"{n}","pk":"a"{ttl}}}"#);
    for n in 0..10 {
        world.run(at(0), vec![create(&n.to_string(), &body(n, r#","ttl":-1"#))]).unwrap();
    }
    world.run(at(1), vec![create("10", &body(10, ""))]).unwrap();
    let search = || world.view(late(20), |view| view.overdue(10, 4).unwrap());
    let before = world.engine.snapshot();
    let lsn = world.partition.lsn();
    let first = search();
    assert_eq!((first.items.len(), first.more), (0, true));
    let found = (0..10).map(|_| search().items.len()).find(|found| *found > 0);
    assert_eq!(found, Some(1));
    assert_eq!(search().items.len(), 1, "what was found and not yet deleted is found again");
    let may = |world: &World| world.view(late(20), |view| view.may_hold_expired().unwrap());
    assert!(may(&world));
    // One that was passed gets a new life and lives by the default from now on.
    world.run(at(12), vec![replace("0", &body(0, ""))]).unwrap();
    assert_eq!(world.purge(late(20), 10), 1);
    assert!(!may(&world), "those that never expire are known not to");
    let old = View::new(&world.partition, &before, lsn, world.schema.lifetimes(late(20)));
    assert!(old.may_hold_expired().unwrap(), "an older snapshot still holds it");
    assert_eq!(world.purge(late(22), 10), 1);
}

#[test]
fn whether_anything_is_expired_is_known_without_looking_at_items() {
    let world = World::new(DefaultTtl::Seconds(10), &[]);
    let may = |now| world.view(now, |view| view.may_hold_expired().unwrap());
    assert!(!may(late(0)));
    world.run(at(0), vec![create("1", r#"{"id":"1","pk":"a"}"#)]).unwrap();
    world.run(at(0), vec![create("2", r#"{"id":"2","pk":"a","ttl":5}"#)]).unwrap();
    assert_eq!([0, 4, 5, 9, 10].map(|second| may(late(second))), [false, false, true, true, true]);
    assert_eq!(world.purge(late(10), 10), 2);
    assert!(!may(late(10)));
}

#[test]
fn illegal_times_to_live_are_refused() {
    let world = World::new(DefaultTtl::Off, &[]);
    for ttl in ["0", "null", "-10", "\"5\"", "2147483648", "1.5", "{}"] {
        let body = format!(r#"{{"id":"1","pk":"a","ttl":{ttl}}}"#);
        assert_eq!(world.word(at(0), create("1", &body)), "invalid", "{ttl}");
    }
    assert_eq!(world.word(at(0), create("1", r#"{"id":"1","pk":"a","ttl":5}"#)), "created");
    for op in [
        create("1", r#"{"id":"1","ttl":0}"#),
        replace("1", r#"{"id":"1","ttl":0}"#),
        replace("2", r#"{"ttl":0}"#),
    ] {
        assert_eq!(world.word(at(0), op), "invalid");
    }
}

#[test]
fn two_items_of_a_logical_partition_do_not_share_a_unique_value() {
    let world = World::new(DefaultTtl::Off, &[&["/u"], &["/a", "/b/c"]]);
    assert_eq!(world.word(at(0), create("1", r#"{"id":"1","pk":"a","u":1,"a":1,"b":{"c":1}}"#)), "created");
    for (body, word) in [
        (r#"{"id":"2","pk":"a","u":1.0,"a":2}"#, "unique"),
        (r#"{"id":"2","pk":"a","u":2,"a":1,"b":{"c":1}}"#, "unique"),
        (r#"{"id":"2","pk":"a","u":"1","a":1,"b":{"c":2}}"#, "created"),
        (r#"{"id":"3","pk":"a"}"#, "created"),
        (r#"{"id":"4","pk":"a","u":null,"a":9}"#, "unique"),
    ] {
        let id = &doc(body).root().get("id").as_str().unwrap().to_owned();
        assert_eq!(world.word(at(0), create(id, body)), word, "{body}");
    }
    let elsewhere =
        world.group(at(0), vec![("b", vec![create("1", r#"{"id":"1","pk":"b","u":1,"a":1,"b":{"c":1}}"#)])]);
    assert!(elsewhere[0].is_ok(), "another logical partition may have the same values");
    world.check();
}

#[test]
fn values_are_freed_and_taken_with_the_items() {
    let world = World::new(DefaultTtl::Off, &[&["/u"]]);
    let body = |id: &str, u: &str| format!(r#"{{"id":"{id}","pk":"a","u":"{u}"}}"#);
    for (id, u) in [("1", "x"), ("2", "y")] {
        assert_eq!(world.word(at(0), create(id, &body(id, u))), "created");
    }
    assert_eq!(world.word(at(0), replace("1", &body("1", "x"))), "replaced", "its own value is its own");
    assert_eq!(world.word(at(0), replace("1", &body("1", "y"))), "unique");
    assert_eq!(world.word(at(0), op("3", Action::Upsert(doc(&body("3", "y"))))), "unique");
    assert_eq!(world.word(at(0), replace("1", &body("1", "z"))), "replaced");
    assert_eq!(world.word(at(0), replace("2", &body("2", "x"))), "replaced", "the old value is free");
    assert_eq!(world.word(at(0), op("2", Action::Delete)), "deleted");
    assert_eq!(world.word(at(0), create("4", &body("4", "x"))), "created");
    let moved = Action::Rename { id: "5".into(), doc: doc(&body("5", "x")) };
    assert_eq!(world.word(at(0), op("4", moved)), "replaced", "a moved item keeps its value");
    assert_eq!(world.word(at(0), create("6", &body("6", "x"))), "unique");
    world.check();
}

#[test]
fn a_batch_sees_what_its_own_operations_did_and_leaves_nothing_when_it_fails() {
    let world = World::new(DefaultTtl::Off, &[&["/u"]]);
    let body = |id: &str, u: &str| format!(r#"{{"id":"{id}","pk":"a","u":"{u}"}}"#);
    world.run(at(0), vec![create("1", &body("1", "x"))]).unwrap();
    let swap = || vec![op("1", Action::Delete), create("2", &body("2", "x"))];
    let mut failing = swap();
    failing.push(create("3", &body("3", "x")));
    assert!(matches!(world.run(at(0), failing), Err(OpError::UniqueConflict)));
    assert_eq!(world.word(at(0), create("2", &body("2", "x"))), "unique", "the failed batch freed nothing");
    assert!(world.run(at(0), swap()).is_ok());
    let wrong_way = vec![create("3", &body("3", "x")), op("2", Action::Delete)];
    assert!(matches!(world.run(at(0), wrong_way), Err(OpError::UniqueConflict)), "order counts");
    world.check();
}

#[test]
fn transactions_of_one_group_see_each_others_values() {
    let world = World::new(DefaultTtl::Off, &[&["/u"]]);
    let body = |id: &str, u: &str| format!(r#"{{"id":"{id}","pk":"a","u":"{u}"}}"#);
    let answers = world.group(
        at(0),
        vec![
            ("a", vec![create("1", &body("1", "x"))]),
            ("a", vec![create("2", &body("2", "x"))]),
            ("b", vec![create("2", r#"{"id":"2","pk":"b","u":"x"}"#)]),
            ("a", vec![op("1", Action::Delete)]),
            ("a", vec![create("3", &body("3", "x"))]),
        ],
    );
    let fine: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(fine, [true, false, true, true, true]);
    world.check();
}

#[test]
fn long_values_are_compared_to_their_end() {
    let world = World::new(DefaultTtl::Off, &[&["/u"]]);
    let body =
        |id: &str, last: &str| format!(r#"{{"id":"{id}","pk":"a","u":"{}{last}"}}"#, "x".repeat(70_000));
    assert_eq!(world.word(at(0), create("1", &body("1", "a"))), "created");
    assert_eq!(world.word(at(0), create("2", &body("2", "b"))), "created");
    assert_eq!(world.word(at(0), create("3", &body("3", "a"))), "unique");
    world.check();
}

#[test]
fn an_expired_item_holds_no_value() {
    let world = World::new(DefaultTtl::Seconds(10), &[&["/u"], &["/v"]]);
    let body = |id: &str, u: &str, v: &str| format!(r#"{{"id":"{id}","pk":"a","u":"{u}","v":"{v}"}}"#);
    world.run(at(0), vec![create("1", &body("1", "x", "1"))]).unwrap();
    world.run(at(0), vec![create("2", &body("2", "y", "2"))]).unwrap();
    assert_eq!(world.word(late(9), create("3", &body("3", "x", "3"))), "unique");
    assert_eq!(world.word(late(10), create("3", &body("3", "x", "2"))), "created");
    assert_eq!(world.stored(), 1, "both that held its values went with the same commit");
    world.check();
    assert_eq!(world.word(late(11), create("1", &body("1", "z", "1"))), "created");
    world.check();
}

/// What the model knows of an item.
#[derive(Clone, Debug)]
struct Known {
    value: u8,
    written: u64,
    ttl: Option<u64>,
}

/// The model: items by key and id.
type Model = HashMap<(u8, u8), Known>;

const DEFAULT: u64 = 6;

fn lives(known: &Known, now: u64) -> bool {
    let ttl = known.ttl.unwrap_or(DEFAULT);
    ttl == 0 || now - known.written < ttl * TICKS_PER_SECOND
}

/// Applies one operation; false when it must be refused.
fn apply(model: &mut Model, key: u8, (kind, id, value, ttl): (u8, u8, u8, u8), now: u64) -> bool {
    let there = model.get(&(key, id)).is_some_and(|known| lives(known, now));
    let wanted = match kind {
        0 => !there,
        1 => true,
        _ => there,
    };
    if !wanted {
        return false;
    }
    if kind == 3 {
        model.remove(&(key, id));
    }
    if kind > 2 {
        return true;
    }
    let is_taken = |((other_key, other), known): (&(u8, u8), &Known)| {
        *other_key == key && *other != id && known.value == value && lives(known, now)
    };
    if model.iter().any(is_taken) {
        return false;
    }
    // Zero stands for an item that never expires.
    let ttl = [None, Some(3), Some(0)][usize::from(ttl % 3)];
    model.insert((key, id), Known { value, written: now, ttl });
    true
}

fn planned(key: u8, (kind, id, value, ttl): (u8, u8, u8, u8)) -> Op {
    let ttl = ["", r#","ttl":3"#, r#","ttl":-1"#][usize::from(ttl % 3)];
    let body = format!(r#"{{"id":"{id}","pk":"{key}","u":{value}{ttl}}}"#);
    let action = match kind {
        0 => Action::Create(doc(&body)),
        1 => Action::Upsert(doc(&body)),
        2 => Action::Replace(doc(&body)),
        3 => Action::Delete,
        _ => Action::Read,
    };
    op(&id.to_string(), action)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any mix of transactions, purges and passing time agrees with a plain map in which the expired is not there.
    #[test]
    fn a_partition_agrees_with_a_map(rounds in prop::collection::vec(
        (0..5u64, any::<bool>(), prop::collection::vec(
            (0..2u8, prop::collection::vec((0..5u8, 0..4u8, 0..4u8, 0..3u8), 1..4)), 1..4)), 1..12))
    {
        let world = World::new(DefaultTtl::Seconds(DEFAULT as u32), &[&["/u"]]);
        let (mut model, mut now) = (Model::new(), at(0));
        for (seconds, purges, txns) in rounds {
            // The writes of a group are some ticks apart, so groups are a little more than seconds apart.
            now += seconds * TICKS_PER_SECOND + 1_000;
            if purges {
                world.purge(now, 3);
            }
            let keys: Vec<String> = txns.iter().map(|(key, _)| key.to_string()).collect();
            let plan = |((key, ops), text): (&(u8, Vec<_>), &'_ String)| {
                (text.clone(), ops.iter().map(|op| planned(*key, *op)).collect::<Vec<Op>>())
            };
            let plans: Vec<(String, Vec<Op>)> = txns.iter().zip(&keys).map(plan).collect();
            let answers = world.group(now, plans.iter().map(|(key, ops)| (key.as_str(), ops.clone())).collect());
            for ((key, ops), answer) in txns.iter().zip(&answers) {
                let mut after = model.clone();
                let fine = ops.iter().all(|op| apply(&mut after, *key, *op, now));
                prop_assert_eq!(fine, answer.is_ok(), "{:?} {:?}", ops, answer);
                if fine {
                    model = after;
                }
            }
            let mut ids: Vec<String> =
                model.iter().filter(|(_, known)| lives(known, now)).map(|((_, id), _)| id.to_string()).collect();
            ids.sort();
            prop_assert_eq!(world.ids(now), ids);
            world.check();
        }
        while world.purge(now, 2) > 0 {}
        let alive = model.values().filter(|known| lives(known, now)).count();
        prop_assert_eq!(world.stored(), alive as u64);
        world.check();
    }
}

#[test]
fn what_looks_after_the_items_sees_all_of_them() {
    let world = World::new(DefaultTtl::Seconds(1), &[]);
    world.run(at(0), vec![create("1", r#"{"id":"1","pk":"a"}"#)]).unwrap();
    let snapshot = world.engine.snapshot();
    let view = View::new(&world.partition, &snapshot, world.partition.lsn(), Lifetimes::ENDLESS);
    assert_eq!(view.count_items(&EpkRange::full()).unwrap(), 1);
    assert_eq!(world.ids(late(5)), Vec::<String>::new());
}
