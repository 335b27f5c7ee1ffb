//! What both engines promise, checked on both with the same code, and what only the disk does.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// An engine with the directory that must outlive it.
struct Fixture {
    engine: Engine,
    dir: Option<tempfile::TempDir>,
}

fn both() -> Vec<Fixture> {
    vec![Fixture { engine: Engine::in_memory(), dir: None }, disk(Tuning::default())]
}

fn disk(tuning: Tuning) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let options = DiskOptions { tuning, ..options(dir.path()) };
    Fixture { engine: Engine::open(options).unwrap(), dir: Some(dir) }
}

/// Flushes and merges come after few commits.
fn small_buffers() -> Tuning {
    Tuning { memtable_bytes: 16 << 10, table_bytes: 64 << 10, ..Tuning::default() }
}

fn options(path: &std::path::Path) -> DiskOptions {
    // The reserve is for servers; a test must run on a disk that is nearly full.
    DiskOptions { reserve_bytes: 0, ..DiskOptions::new(path) }
}

fn put(engine: &Engine, keyspace: Keyspace, key: &str, value: &str) {
    let mut batch = Batch::new();
    batch.put(keyspace, key.to_owned(), value.to_owned());
    engine.commit(batch).unwrap();
}

fn get(snapshot: &Snapshot, keyspace: Keyspace, key: &str) -> Option<String> {
    let value = snapshot.get(keyspace, key.as_bytes()).unwrap()?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn a_batch_is_seen_whole_over_all_keyspaces() {
    for Fixture { engine, dir: _dir } in both() {
        let mut batch = Batch::new();
        for keyspace in Keyspace::ALL {
            batch.put(keyspace, "key", keyspace.name());
        }
        let before = engine.snapshot();
        engine.commit(batch).unwrap();
        let after = engine.snapshot();
        for keyspace in Keyspace::ALL {
            assert_eq!(get(&before, keyspace, "key"), None);
            assert_eq!(get(&after, keyspace, "key").as_deref(), Some(keyspace.name()));
            assert!(after.contains(keyspace, b"key").unwrap());
            assert!(!after.contains(keyspace, b"other").unwrap());
        }
    }
}

#[test]
fn the_last_write_of_a_merged_batch_wins() {
    for Fixture { engine, dir: _dir } in both() {
        let mut first = Batch::new();
        first.put(Keyspace::Index, "deleted", "1");
        first.delete(Keyspace::Index, "revived");
        let mut second = Batch::new();
        second.delete(Keyspace::Index, "deleted");
        second.put(Keyspace::Index, "revived", "2");
        first.merge(second);
        assert_eq!((first.len(), first.bytes()), (4, 7 + 7 + 7 + 7 + 1 + 1));
        engine.commit(first).unwrap();
        let snapshot = engine.snapshot();
        assert_eq!(get(&snapshot, Keyspace::Index, "deleted"), None);
        assert_eq!(get(&snapshot, Keyspace::Index, "revived").as_deref(), Some("2"));
    }
}

#[test]
fn keys_and_values_out_of_bounds_are_refused_and_leave_nothing() {
    for Fixture { engine, dir: _dir } in both() {
        for key in [Vec::new(), vec![7; 65_536]] {
            let mut batch = Batch::new();
            batch.put(Keyspace::Item, "beside", "1");
            batch.put(Keyspace::Item, key, "2");
            assert!(matches!(engine.commit(batch), Err(EngineError::Oversized)));
            assert_eq!(get(&engine.snapshot(), Keyspace::Item, "beside"), None);
        }
        put(&engine, Keyspace::Item, &"k".repeat(65_535), "fits");
    }
}

#[test]
fn crossed_bounds_yield_nothing() {
    for Fixture { engine, dir: _dir } in both() {
        put(&engine, Keyspace::Item, "b", "1");
        let snapshot = engine.snapshot();
        type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);
        let crossed: [Bounds<'_>; 4] = [
            (Bound::Included(b"c"), Bound::Included(b"a")),
            (Bound::Excluded(b"b"), Bound::Excluded(b"b")),
            (Bound::Included(b"b"), Bound::Excluded(b"b")),
            (Bound::Excluded(b"b"), Bound::Included(b"b")),
        ];
        for (lower, upper) in crossed {
            for reverse in [false, true] {
                assert_eq!(snapshot.range(Keyspace::Item, lower, upper, reverse).count(), 0);
            }
        }
    }
}

/// Two keys are always written together; a reader that sees them differ saw half a batch. The small
/// write buffer makes flushes and merges end in the middle of commits.
#[test]
fn snapshots_never_change_while_commits_flushes_and_merges_go_on() {
    let small = Tuning { memtable_bytes: 64 << 10, table_bytes: 64 << 10, ..Tuning::default() };
    for Fixture { engine, dir: _dir } in [disk(small), Fixture { engine: Engine::in_memory(), dir: None }] {
        let engine = Arc::new(engine);
        put(&engine, Keyspace::Item, "first", "0");
        put(&engine, Keyspace::Meta, "last", "0");
        let stop = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let snapshot = engine.snapshot();
                        let first = get(&snapshot, Keyspace::Item, "first");
                        let last = get(&snapshot, Keyspace::Meta, "last");
                        assert_eq!(first, last);
                        assert_eq!(get(&snapshot.clone(), Keyspace::Item, "first"), first);
                    }
                })
            })
            .collect();
        for round in 1..400_u32 {
            let mut batch = Batch::new();
            batch.put(Keyspace::Item, "first", round.to_string());
            for filler in 0..20 {
                let value = vec![filler as u8; 100];
                batch.put(Keyspace::Item, format!("filler {}", (round * 20 + filler) % 997), value);
            }
            batch.put(Keyspace::Meta, "last", round.to_string());
            engine.commit(batch).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(get(&engine.snapshot(), Keyspace::Item, "first").as_deref(), Some("399"));
    }
}

#[test]
fn memory_forgets_versions_that_nobody_can_read() {
    let memory = Arc::new(memory::Memory::default());
    let write = |value: Option<&'static str>| {
        let mut batch = Batch::new();
        match value {
            Some(value) => batch.put(Keyspace::Item, "key", value),
            None => batch.delete(Keyspace::Item, "key"),
        }
        memory.commit(batch).unwrap();
    };
    write(Some("1"));
    let old = memory::Memory::snapshot(&memory);
    for _ in 0..10 {
        write(Some("2"));
    }
    assert_eq!(old.get(Keyspace::Item, b"key").as_deref(), Some(&b"1"[..]));
    drop(old);
    write(Some("3"));
    assert_eq!(memory.version_count(), 1);
    write(None);
    assert_eq!(memory.version_count(), 0);
}

#[test]
fn reopening_keeps_what_was_committed() {
    for clean in [true, false] {
        let Fixture { engine, dir } = disk(Tuning::default());
        let dir = dir.unwrap();
        for keyspace in Keyspace::ALL {
            put(&engine, keyspace, "kept", "1");
            put(&engine, keyspace, "deleted", "1");
        }
        let mut batch = Batch::new();
        batch.delete(Keyspace::Item, "deleted");
        engine.commit(batch).unwrap();
        if clean {
            engine.close().unwrap();
        }
        drop(engine);
        // Twice: the first start after a clean stop goes on in a journal of which nothing is needed.
        for round in 0..2 {
            let engine = Engine::open(options(dir.path())).unwrap();
            if clean && round == 0 {
                assert_eq!(engine.stats().memtable_bytes, 0, "nothing is replayed after a clean stop");
            }
            let snapshot = engine.snapshot();
            assert_eq!(get(&snapshot, Keyspace::Item, "deleted"), None);
            for keyspace in Keyspace::ALL {
                assert_eq!(get(&snapshot, keyspace, "kept").as_deref(), Some("1"));
            }
            for earlier in 0..round {
                assert_eq!(get(&snapshot, Keyspace::Item, &format!("round {earlier}")).as_deref(), Some("2"));
            }
            put(&engine, Keyspace::Item, &format!("round {round}"), "2");
        }
    }
}

#[test]
fn a_closed_engine_reads_but_refuses_to_write() {
    for Fixture { engine, dir: _dir } in both() {
        put(&engine, Keyspace::Item, "key", "1");
        engine.close().unwrap();
        engine.close().unwrap();
        let mut batch = Batch::new();
        batch.put(Keyspace::Item, "key", "2");
        assert!(matches!(engine.commit(batch), Err(EngineError::Stopped(_))));
        assert_eq!(get(&engine.snapshot(), Keyspace::Item, "key").as_deref(), Some("1"));
    }
}

#[test]
fn a_directory_opens_once() {
    let Fixture { engine, dir } = disk(Tuning::default());
    let dir = dir.unwrap();
    let Err(error) = Engine::open(options(dir.path())) else { panic!("the second open succeeded") };
    assert!(matches!(error, EngineError::Locked(_)));
    assert!(error.to_string().contains("in use by another process"));
    drop(engine);
    Engine::open(options(dir.path())).unwrap();
}

#[test]
fn a_full_quota_refuses_cleanly_and_recovers() {
    let Fixture { engine, dir } = disk(Tuning::default());
    let dir = dir.unwrap();
    engine.set_disk_limit(Some(8 << 20));
    let write = |number: u32| {
        let mut batch = Batch::new();
        batch.put(Keyspace::Item, format!("{number:08}"), noise(u64::from(number), 64 << 10));
        engine.commit(batch)
    };
    let mut written = 0;
    let refusal = loop {
        match write(written) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "the quota was never enforced");
    };
    assert!(matches!(refusal, EngineError::DiskFull { .. }));
    assert!(written > 10);
    // The keyspaces' own small files come on top.
    assert!(engine.disk_bytes() <= 9 << 20);
    assert!(matches!(write(written), Err(EngineError::DiskFull { .. })));
    assert_eq!(engine.stats().refused_disk_full, 2);
    assert_eq!(
        engine.snapshot().keys(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false).count() as u32,
        written
    );
    engine.set_disk_limit(None);
    write(written).unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = Engine::open(options(dir.path())).unwrap();
    let keys = engine.snapshot().keys(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false);
    assert_eq!(keys.count() as u32, written + 1);
}

#[test]
fn what_makes_room_is_taken_when_the_rest_is_refused() {
    let Fixture { engine, dir } = disk(Tuning::for_volume(16 << 20));
    engine.set_disk_limit(Some(8 << 20));
    let put = |number: u32| {
        let mut batch = Batch::new();
        batch.put(Keyspace::Item, format!("{number:08}"), noise(u64::from(number), 64 << 10));
        engine.commit(batch)
    };
    assert!(!engine.is_full());
    let written = (0..1000).find(|number| put(*number).is_err()).expect("the quota is enforced");
    // Always other keys: writing over the same ones again would need no more room.
    let mut keys = 0_u64..200_000;
    let mut fill = |value_bytes: usize| {
        let is_refused = |key: u64| {
            let mut batch = Batch::new();
            batch.put(Keyspace::Meta, key.to_be_bytes().to_vec(), vec![7; value_bytes]);
            engine.commit(batch).is_err()
        };
        assert!(keys.by_ref().any(is_refused), "the quota is enforced to the byte");
    };
    let delete = |number: u32, frees: bool| {
        let mut batch = Batch::new();
        batch.delete(Keyspace::Item, format!("{number:08}"));
        batch.set_frees(frees);
        engine.commit(batch)
    };
    // A flush between the two commits may make room for a few bytes, so one look is not enough.
    orrery_testkit::eventually("a delete that does not say so is refused like the rest", || {
        fill(1 << 10);
        fill(0);
        matches!(delete(0, false), Err(EngineError::DiskFull { .. })) && engine.is_full()
    });
    for number in 0..written {
        delete(number, true).expect("what makes room has room");
    }
    // The flushes and merges that give it back happen by themselves.
    orrery_testkit::eventually("there is room again", || put(0).is_ok());
    orrery_testkit::eventually("that is known", || !engine.is_full());
    drop((engine, dir));
}

#[test]
fn a_batch_makes_room_only_as_a_whole() {
    let one = |frees: bool| {
        let mut batch = Batch::new();
        batch.delete(Keyspace::Item, "key");
        batch.set_frees(frees);
        batch
    };
    for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut batch = one(first);
        batch.merge(one(second));
        assert_eq!(batch.frees(), first && second);
    }
    let mut batch = Batch::new();
    batch.merge(one(true));
    assert!(batch.frees(), "nothing is no reason to refuse");
}

/// Ten segments of the journal, two write buffers of each keyspace and a table of each fit into half of the volume.
#[test]
fn everything_is_small_on_a_small_volume() {
    for megabytes in [48_u64, 64, 100, 256, 511, 1024, 1 << 20] {
        let tuning = Tuning::for_volume(megabytes << 20);
        let needed = 10 * tuning.segment_bytes + 15 * tuning.memtable_bytes;
        assert!(needed <= megabytes << 19, "{megabytes} MiB: {tuning:?}");
    }
    let usual = Tuning::default();
    assert_eq!(Tuning::for_volume(u64::MAX).segment_bytes, usual.segment_bytes);
    assert_eq!(Tuning::for_volume(1 << 30).memtable_bytes, usual.memtable_bytes);
}

#[test]
fn free_space_below_the_reserve_refuses_writes() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(DiskOptions { reserve_bytes: u64::MAX, ..options(dir.path()) }).unwrap();
    let mut batch = Batch::new();
    batch.put(Keyspace::Item, "key", "1");
    assert!(matches!(engine.commit(batch), Err(EngineError::DiskFull { .. })));
    assert!(engine.free_disk_bytes().unwrap() > 0);
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(usize, Vec<u8>, Option<Vec<u8>>)>),
    /// Compares the latest snapshot and one from the past with the model.
    Range(usize, Bound<Vec<u8>>, Bound<Vec<u8>>),
    Remember,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 127, 255]), 1..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded),]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..4));
    let writes = prop::collection::vec((0..Keyspace::ALL.len(), key(), value), 1..8);
    prop_oneof![
        3 => writes.prop_map(Step::Commit),
        2 => (0..Keyspace::ALL.len(), bound(), bound()).prop_map(|(k, l, u)| Step::Range(k, l, u)),
        1 => Just(Step::Remember),
    ]
}

type Model = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

fn check(
    snapshot: &Snapshot,
    model: &Model,
    keyspace: usize,
    lower: &Bound<Vec<u8>>,
    upper: &Bound<Vec<u8>>,
) {
    let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
    let in_range = |key: &[u8]| std::ops::RangeBounds::<[u8]>::contains(&bounds, key);
    let mut expected: Vec<_> = model
        .iter()
        .filter(|((owner, key), _)| *owner == keyspace && in_range(key))
        .map(|((_, key), value)| (Bytes::from(key.clone()), Bytes::from(value.clone())))
        .collect();
    for reverse in [false, true] {
        let named = Keyspace::ALL[keyspace];
        let found: Vec<_> = snapshot.range(named, bounds.0, bounds.1, reverse).map(Result::unwrap).collect();
        assert_eq!(found, expected);
        let keys: Vec<_> = snapshot.keys(named, bounds.0, bounds.1, reverse).map(Result::unwrap).collect();
        assert_eq!(keys, expected.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        expected.reverse();
    }
}

fn run_steps(engine: &Engine, steps: &[Step]) {
    run_steps_on(engine, steps, &mut Model::new());
}

fn run_steps_on(engine: &Engine, steps: &[Step], model: &mut Model) {
    let mut remembered = (engine.snapshot(), model.clone());
    for step in steps {
        match step {
            Step::Commit(writes) => {
                let mut batch = Batch::new();
                for (keyspace, key, value) in writes {
                    let named = Keyspace::ALL[*keyspace];
                    match value {
                        Some(value) => {
                            batch.put(named, key.clone(), value.clone());
                            model.insert((*keyspace, key.clone()), value.clone());
                        }
                        None => {
                            batch.delete(named, key.clone());
                            model.remove(&(*keyspace, key.clone()));
                        }
                    }
                }
                engine.commit(batch).unwrap();
            }
            Step::Range(keyspace, lower, upper) => {
                check(&engine.snapshot(), model, *keyspace, lower, upper);
                check(&remembered.0, &remembered.1, *keyspace, lower, upper);
            }
            Step::Remember => remembered = (engine.snapshot(), model.clone()),
        }
    }
    for keyspace in 0..Keyspace::ALL.len() {
        check(&engine.snapshot(), model, keyspace, &Bound::Unbounded, &Bound::Unbounded);
        check(&remembered.0, &remembered.1, keyspace, &Bound::Unbounded, &Bound::Unbounded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_agree_with_a_model(steps in prop::collection::vec(step(), 1..60)) {
        for Fixture { engine, dir: _dir } in both() {
            run_steps(&engine, &steps);
        }
    }
}

/// Small buffers and many starts, some after a clean stop and some as after a kill: what was committed
/// is there, whether it comes from the journal, from tables, or from both.
fn run_lives(lives: &[(bool, Vec<Step>)]) {
    let dir = tempfile::tempdir().unwrap();
    let tuning = Tuning { memtable_bytes: 4 << 10, table_bytes: 16 << 10, ..Tuning::default() };
    let mut model = Model::new();
    for (clean, steps) in lives {
        let engine = Engine::open(DiskOptions { tuning: tuning.clone(), ..options(dir.path()) }).unwrap();
        for keyspace in 0..Keyspace::ALL.len() {
            check(&engine.snapshot(), &model, keyspace, &Bound::Unbounded, &Bound::Unbounded);
        }
        run_steps_on(&engine, steps, &mut model);
        if *clean {
            engine.close().unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn starts_agree_with_a_model(
        lives in prop::collection::vec((any::<bool>(), prop::collection::vec(step(), 1..60)), 2..6)
    ) {
        run_lives(&lives);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_memory_engine_agrees_with_a_model(steps in prop::collection::vec(step(), 1..120)) {
        run_steps(&Engine::in_memory(), &steps);
    }
}

/// More entries than one hold of the lock copies, among versions that the snapshot does not see.
#[test]
fn long_scans_cross_chunks() {
    for Fixture { engine, dir: _dir } in both() {
        let mut batch = Batch::new();
        for number in 0..3000_u32 {
            batch.put(Keyspace::Index, number.to_be_bytes().to_vec(), Bytes::new());
        }
        engine.commit(batch).unwrap();
        let all = engine.snapshot();
        let mut batch = Batch::new();
        for number in (0..3000_u32).filter(|number| number % 1500 != 0) {
            batch.delete(Keyspace::Index, number.to_be_bytes().to_vec());
        }
        engine.commit(batch).unwrap();
        for reverse in [false, true] {
            let count = |snapshot: &Snapshot| {
                snapshot.keys(Keyspace::Index, Bound::Unbounded, Bound::Unbounded, reverse).count()
            };
            assert_eq!((count(&all), count(&engine.snapshot())), (3000, 2));
        }
    }
}

/// Flushes take buffers away while commits fill them; nothing may fall between the two.
#[test]
fn everything_is_there_after_a_kill_amid_flushes() {
    let Fixture { engine, dir } = disk(small_buffers());
    let dir = dir.unwrap();
    let key = |number: u32| number.to_be_bytes().to_vec();
    for number in 0..21_000_u32 {
        let mut batch = Batch::new();
        for keyspace in [Keyspace::Item, Keyspace::Index, Keyspace::Meta] {
            batch.put(keyspace, key(number), vec![number as u8; 100]);
            if number % 3 == 2 {
                batch.delete(keyspace, key(number - 1));
            }
        }
        engine.commit(batch).unwrap();
    }
    drop(engine);
    let engine = Engine::open(options(dir.path())).unwrap();
    let snapshot = engine.snapshot();
    for keyspace in [Keyspace::Item, Keyspace::Index, Keyspace::Meta] {
        for number in 0..21_000_u32 {
            let expected = (number % 3 != 1).then(|| Bytes::from(vec![number as u8; 100]));
            assert_eq!(snapshot.get(keyspace, &key(number)).unwrap(), expected, "{keyspace:?} {number}");
        }
    }
}

#[test]
fn an_empty_batch_leaves_no_gap_in_the_journal() {
    let Fixture { engine, dir } = disk(Tuning::default());
    let dir = dir.unwrap();
    put(&engine, Keyspace::Item, "before", "1");
    engine.commit(Batch::new()).unwrap();
    engine.persist().unwrap();
    put(&engine, Keyspace::Item, "after", "1");
    drop(engine);
    let engine = Engine::open(options(dir.path())).unwrap();
    let snapshot = engine.snapshot();
    for key in ["before", "after"] {
        assert_eq!(get(&snapshot, Keyspace::Item, key).as_deref(), Some("1"));
    }
}

/// Nobody but us may take a folder away, and then the journal's writes for it must not vanish in silence.
#[test]
fn a_missing_folder_is_seen_when_the_journal_needs_it() {
    let Fixture { engine, dir } = disk(Tuning::default());
    let dir = dir.unwrap();
    put(&engine, Keyspace::Feed, "key", "1");
    drop(engine);
    std::fs::remove_dir_all(dir.path().join("feed")).unwrap();
    let Err(error) = Engine::open(options(dir.path())) else { panic!("it was opened") };
    assert!(matches!(&error, EngineError::Corrupt(what) if what.contains("feed")), "{error}");
}

/// One batch is larger than all that a write buffer may hold before commits wait.
#[test]
fn a_huge_batch_is_taken_and_those_after_it_go_on() {
    let Fixture { engine, dir: _dir } = disk(small_buffers());
    for round in 0..3_u8 {
        let mut batch = Batch::new();
        for number in 0..40_u8 {
            batch.put(Keyspace::Item, vec![round, number], vec![number; 1 << 20]);
        }
        engine.commit(batch).unwrap();
    }
    let keys = engine.snapshot().keys(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false);
    assert_eq!(keys.count(), 120);
}

#[test]
fn a_directory_of_the_engine_before_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("keyspaces")).unwrap();
    let Err(error) = Engine::open(options(dir.path())) else { panic!("it was opened") };
    assert!(error.to_string().contains("earlier version"), "{error}");
}

#[test]
fn a_batch_that_was_encoded_is_read_back_as_it_was() {
    for Fixture { engine, dir: _dir } in both() {
        let large = "packed ".repeat(10_000);
        let mut batch = Batch::new();
        batch.put(Keyspace::Item, "large", large.clone());
        batch.put(Keyspace::Item, "marked", "L begins like a packed value");
        batch.delete(Keyspace::Index, "gone");
        let encoded = batch.encode();
        let decoded = Batch::decode(&encoded.clone().into()).expect("it was encoded just now");
        assert_eq!((decoded.len(), decoded.bytes()), (batch.len(), batch.bytes()));
        assert_eq!(decoded.encode(), encoded);
        engine.commit(decoded).unwrap();
        let snapshot = engine.snapshot();
        assert_eq!(get(&snapshot, Keyspace::Item, "large"), Some(large));
        assert_eq!(get(&snapshot, Keyspace::Item, "marked").as_deref(), Some("L begins like a packed value"));
    }
}

/// Commits far faster than flushes.
#[test]
fn thousands_of_small_commits_over_a_full_write_buffer_do_not_stop_the_engine() {
    let Fixture { engine, dir: _dir } = disk(small_buffers());
    for number in 0..20_000_u32 {
        let mut batch = Batch::new();
        batch.put(Keyspace::Item, number.to_be_bytes().to_vec(), vec![7; 100]);
        engine.commit(batch).unwrap();
    }
    engine.close().unwrap();
    let keys = engine.snapshot().keys(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false);
    assert_eq!(keys.count(), 20_000);
}

#[test]
fn a_write_buffer_that_is_worth_it_is_flushed_at_rest() {
    let fixture = disk(Tuning::default());
    let engine = &fixture.engine;
    put(engine, Keyspace::Meta, "small", "stays where it is");
    put(engine, Keyspace::Index, "large", &"x".repeat(512 << 10));
    let before = engine.stats().memtable_bytes;
    assert!(before > 512 << 10, "{before} bytes are in write buffers");
    orrery_testkit::eventually("the large write buffer is flushed", || {
        (1..64 << 10).contains(&engine.stats().memtable_bytes)
    });
    assert!(engine.stats().tables > 0);
    let snapshot = engine.snapshot();
    assert!(get(&snapshot, Keyspace::Index, "large").is_some_and(|value| value.len() == 512 << 10));
    assert_eq!(get(&snapshot, Keyspace::Meta, "small").as_deref(), Some("stays where it is"));
}

/// Bytes that cannot be compressed, so that tables are as large as what is read of them.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// A thousand items are written over and over and read in between.
fn rewrite(engine: &Engine, rounds: u64) {
    for round in 0..rounds {
        for number in 0..1_000_u64 {
            let mut batch = Batch::new();
            batch.put(Keyspace::Item, number.to_be_bytes().to_vec(), noise(round << 32 | number, 1_000));
            engine.commit(batch).unwrap();
        }
        let entries = engine.snapshot().range(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false);
        assert_eq!(entries.map(Result::unwrap).count(), 1_000);
    }
}

#[test]
fn blocks_leave_the_cache_with_their_tables() {
    let Fixture { engine, dir: _dir } = disk(small_buffers());
    rewrite(&engine, 20);
    // What little can be compressed, such as keys in an index, is larger in memory.
    let within =
        |stats: EngineStats| stats.cache_bytes <= stats.table_bytes * 11 / 10 && stats.table_bytes < 3 << 20;
    orrery_testkit::eventually("the cache holds what tables hold, at most", || within(engine.stats()));
    let keys = engine.snapshot().keys(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false);
    assert_eq!(keys.count(), 1_000);
    assert!(within(engine.stats()) && engine.stats().cache_bytes > 0, "{:?}", engine.stats());
}

#[test]
fn blocks_of_a_table_that_is_still_read_stay_until_it_is_not() {
    let Fixture { engine, dir: _dir } = disk(small_buffers());
    rewrite(&engine, 2);
    let old = engine.snapshot();
    let mut scan = old.range(Keyspace::Item, Bound::Unbounded, Bound::Unbounded, false);
    let first = scan.next().unwrap().unwrap().1;
    drop(old);
    rewrite(&engine, 10);
    assert_eq!(first, noise(1 << 32, 1_000));
    for number in 1..1_000_u64 {
        assert_eq!(scan.next().unwrap().unwrap().1, noise(1 << 32 | number, 1_000), "item {number}");
    }
    drop(scan);
    // The last commit lets go of versions that were kept for the scan.
    put(&engine, Keyspace::Meta, "another", "commit");
    orrery_testkit::eventually("the cache holds what tables hold, at most", || {
        engine.stats().cache_bytes <= engine.stats().table_bytes * 11 / 10
    });
}

#[test]
fn write_buffers_keep_to_their_memory() {
    let dir = tempfile::tempdir().unwrap();
    let buffer_bytes = 6 << 20;
    let engine = Engine::open(DiskOptions { buffer_bytes, ..options(dir.path()) }).unwrap();
    let mut highest = 0;
    for number in 0..400_u32 {
        let mut batch = Batch::new();
        for entry in 0..1_000_u32 {
            let key = [number.to_be_bytes(), entry.to_be_bytes()].concat();
            let keyspace = [Keyspace::Index, Keyspace::Feed, Keyspace::Item][entry as usize % 3];
            batch.put(keyspace, key, vec![7; 20]);
        }
        engine.commit(batch).unwrap();
        highest = highest.max(engine.stats().memtable_bytes);
    }
    // Every entry counts for more than a hundred bytes: forty megabytes in all.
    assert!((1 << 20..=buffer_bytes).contains(&highest), "{highest} bytes were in write buffers");
    engine.close().unwrap();
    let keys = engine.snapshot().keys(Keyspace::Index, Bound::Unbounded, Bound::Unbounded, false);
    assert_eq!(keys.count(), 400 * 334);
}

#[test]
fn a_commit_of_many_writes_finds_room_in_write_buffers() {
    let dir = tempfile::tempdir().unwrap();
    let buffer_bytes = 6 << 20;
    let engine = Engine::open(DiskOptions { buffer_bytes, ..options(dir.path()) }).unwrap();
    for number in 0..6_u32 {
        let mut batch = Batch::new();
        for entry in 0..30_000_u32 {
            batch.put(Keyspace::Index, [number.to_be_bytes(), entry.to_be_bytes()].concat(), vec![7; 20]);
        }
        engine.commit(batch).unwrap();
        // Each counts for more than three megabytes, and beside what is left of another there is no room for one.
        let counted = engine.stats().memtable_bytes;
        assert!(counted <= buffer_bytes / 3 * 2, "{counted} bytes were in write buffers");
    }
}
