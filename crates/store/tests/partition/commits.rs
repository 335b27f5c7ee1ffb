//! What a group comes to as bytes: the same for the same group, and all that a copy of the partition needs.

use orrery_doc::{EpkRange, json};
use orrery_store::engine::{Batch, Engine, Keyspace};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::{LEAP_LSNS, PartitionLimits};
use orrery_store::{
    Action, Conflict, ConflictKind, EntryKind, FIRST_LSN, FeedCursor, Group, IndexGeneration, ItemKey,
    Lifetimes, LogEntry, Lsn, Op, Partition, Prepared, Scan, Schema, SchemaMark, TICKS_PER_SECOND, Txn,
    UniqueKeys, View, keys,
};

use super::ground::{self, dump, key_def, op, scope, spec};

fn doc(id: &str, n: u64) -> orrery_doc::Doc {
    let text = format!(r#"{{"id":"{id}","pk":"p{}","n":{n},"tags":["a",{n}],"ttl":{}}}"#, n % 7, 50 + n);
    json::parse(text.as_bytes(), 128).expect("JSON")
}

fn schema() -> Schema {
    let path = |text: &str| orrery_doc::Path::parse_property(text).expect("a path");
    let unique = UniqueKeys::new(vec![vec![path("/n")]]);
    Schema { unique, keeps_history: true, ..Schema::new(key_def(), 9, IndexingPolicy::default()) }
}

/// Works out a group of many items, which stand in tables of random order meanwhile.
fn work_out(engine: &Engine, partition: &Partition, schema: &Schema, round: u64) -> Prepared {
    let snapshot = engine.snapshot();
    let mut group = Group::new(partition, &snapshot, schema, PartitionLimits::default());
    for n in 0..60 {
        let id = format!("i{}", n + round * 20);
        let ops: Vec<Op> = vec![op(&id, Action::Upsert(doc(&id, n + round * 20)))];
        let txn =
            Txn { scope: scope(format!("p{}", (n + round * 20) % 7)), key: None, ops, now: TICKS_PER_SECOND };
        group.run(&txn).expect("it is written");
    }
    group.finish()
}

fn apply(engine: &Engine, partition: &Partition, mut prepared: Prepared) -> Batch {
    let batch = std::mem::take(&mut prepared.batch);
    engine.commit(batch.clone()).expect("memory does not fail");
    partition.publish(partition.apply(prepared));
    batch
}

#[test]
fn the_same_groups_give_the_same_bytes() {
    let bytes = || {
        let engine = Engine::in_memory();
        let (partition, schema) = (ground::open(&engine), schema());
        let group = |round| apply(&engine, &partition, work_out(&engine, &partition, &schema, round));
        (0..3).map(|round| group(round).encode()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn commits_make_a_copy_of_the_partition() {
    let (engine, copy) = (Engine::in_memory(), Engine::in_memory());
    let (mut partition, schema) = (ground::open(&engine), schema());
    for round in 0..4 {
        let before = partition.lsn();
        let prepared = work_out(&engine, &partition, &schema, round);
        let commit = prepared.commit();
        apply(&engine, &partition, prepared);
        let state = partition.state();
        assert_eq!((commit.first, commit.last), (Lsn(before.0 + 1), state.lsn));
        assert_eq!((commit.epoch, commit.time), (state.epoch, state.time));
        let entry = commit.entry();
        let received = LogEntry::decode(&entry.encode().into()).expect("an entry");
        assert_eq!(received, entry);
        copy.commit(received.commit().expect("a commit").batch).expect("memory does not fail");
        assert_eq!(dump(&copy), dump(&engine), "after round {round}");
        // A restart remembers nothing that is not stored.
        partition = ground::open(&engine);
    }
    let opened = ground::open(&copy);
    assert_eq!(opened.state(), partition.state());
    let report = opened.verify(&copy.snapshot(), &schema).expect("it reads back");
    assert_eq!(report.findings, Vec::<String>::new());
}

#[test]
fn damaged_and_unknown_log_entries_are_refused() {
    let payload = bytes::Bytes::from_static(b"payload");
    for kind in EntryKind::ALL {
        let entry = LogEntry {
            kind,
            epoch: 1,
            region: 2,
            first: Lsn(3),
            last: Lsn(4),
            time: 5,
            payload: payload.clone(),
        };
        let bytes = entry.encode();
        assert_eq!(LogEntry::decode(&bytes.clone().into()), Some(entry.clone()));
        assert!(entry.commit().is_none(), "these are not the bytes of a batch");
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            assert_eq!(LogEntry::decode(&damaged.into()), None, "{kind:?}, byte {place}");
            assert_eq!(LogEntry::decode(&bytes[..place].to_vec().into()), None, "{kind:?}, {place} bytes");
        }
    }
}

#[test]
fn a_partition_begins_at_one() {
    let engine = Engine::in_memory();
    let partition = ground::open(&engine);
    assert_eq!(partition.lsn(), FIRST_LSN);
    let old: Vec<u8> = [0_u64; 5].into_iter().flat_map(u64::to_be_bytes).collect();
    let mut batch = Batch::new();
    batch.put(Keyspace::Meta, keys::partition_state(spec().number).to_vec(), old);
    engine.commit(batch).expect("memory does not fail");
    assert_eq!(ground::open(&engine).lsn(), FIRST_LSN, "an empty partition of an old directory");
}

/// What another leader may have given out in the epoch before is not given in this one.
#[test]
fn a_new_epoch_skips_lsns_and_rids() {
    let engine = Engine::in_memory();
    let (partition, schema) = (ground::open(&engine), schema());
    apply(&engine, &partition, work_out(&engine, &partition, &schema, 0));
    let before = partition.state();
    let mut batch = Batch::new();
    let lsns = partition.enter_epoch(3, &mut batch);
    engine.commit(batch).expect("memory does not fail");
    assert_eq!(lsns, (before.lsn, Lsn(before.lsn.0 + LEAP_LSNS)));
    for state in [partition.state(), ground::open(&engine).state()] {
        assert_eq!((state.epoch, state.lsn), (3, lsns.1));
        assert_eq!(state.rids_given, before.rids_given + LEAP_LSNS);
    }
    assert_eq!(partition.lsn(), lsns.1);
}

#[test]
#[should_panic(expected = "epochs of a partition grow")]
fn an_epoch_is_never_entered_again() {
    let engine = Engine::in_memory();
    ground::open(&engine).enter_epoch(0, &mut Batch::new());
}

/// Record `V` follows the indexes, in the commits of the partition.
#[test]
fn the_partition_says_which_indexes_it_keeps_up() {
    let engine = Engine::in_memory();
    let (partition, mut schema) = (ground::open(&engine), schema());
    assert_eq!(partition.schema_mark(), None);
    let stored = || ground::open(&engine).schema_mark();
    for (building, version) in [(None, 1), (None, 1), (Some(10), 2), (Some(10), 2), (None, 3)] {
        schema.building = building.map(|generation| IndexGeneration {
            generation,
            is_shared: false,
            policy: schema.index.policy.clone(),
        });
        apply(&engine, &partition, work_out(&engine, &partition, &schema, version));
        let wanted = Some(SchemaMark { version, active: 9, building });
        assert_eq!((partition.schema_mark(), stored()), (wanted, wanted));
    }
}

#[test]
fn conflicts_are_a_sequence_of_their_own() {
    let engine = Engine::in_memory();
    let (partition, schema) = (ground::open(&engine), schema());
    apply(&engine, &partition, work_out(&engine, &partition, &schema, 0));
    let snapshot = engine.snapshot();
    let view = View::new(&partition, &snapshot, partition.lsn(), Lifetimes::ENDLESS);
    let mut item = None;
    let everything = EpkRange::full();
    view.scan(&everything, None, |_, found| {
        item = Some(found);
        Scan::Stop
    })
    .expect("items read back");
    let conflict = |lsn: u64, kind, item| Conflict {
        at: FeedCursor { lsn: Lsn(lsn), place: 0 },
        kind,
        time: 5,
        region: 2,
        origin: Lsn(77),
        key: ItemKey { epk: scope("p1"), id: "i1".into() },
        item,
    };
    let lost = [conflict(3, ConflictKind::Replaced, item), conflict(9, ConflictKind::Deleted, None)];
    let mut batch = Batch::new();
    for conflict in &lost {
        let key = keys::conflict(spec().number, conflict.at.lsn.0, conflict.at.place).to_vec();
        batch.put(Keyspace::Feed, key, conflict.encode());
    }
    engine.commit(batch).expect("memory does not fail");
    let snapshot = engine.snapshot();
    let view = View::new(&partition, &snapshot, partition.lsn(), Lifetimes::ENDLESS);
    let read = |after: u64, range: &EpkRange| {
        let mut found = Vec::new();
        view.conflicts(range, FeedCursor::after(Lsn(after)), |_, conflict| {
            found.extend(conflict);
            Scan::Continue
        })
        .expect("entries decode");
        found
    };
    let shown = |conflicts: &[Conflict]| format!("{conflicts:?}");
    assert_eq!(shown(&read(0, &everything)), shown(&lost));
    assert_eq!(shown(&read(3, &everything)), shown(&lost[1..]));
    assert!(read(0, &EpkRange::new(scope("p1").next().expect("not the last"), scope("p1"))).is_empty());
    let report = partition.verify(&snapshot, &schema).expect("it reads back");
    assert_eq!(report.findings, Vec::<String>::new(), "feed and history are not touched");
}

/// A size of another form is not taken for that of an empty logical partition.
#[test]
fn a_size_that_is_not_readable_is_damage() {
    let engine = Engine::in_memory();
    let (partition, schema) = (ground::open(&engine), schema());
    apply(&engine, &partition, work_out(&engine, &partition, &schema, 0));
    let mut batch = Batch::new();
    batch.put(Keyspace::Meta, keys::logical_size(spec().container, &scope("p1")), vec![1; 25]);
    engine.commit(batch).expect("memory does not fail");
    let (partition, snapshot) = (ground::open(&engine), engine.snapshot());
    let view = View::new(&partition, &snapshot, partition.lsn(), Lifetimes::ENDLESS);
    assert!(view.logical_size(&scope("p1")).is_err());
    assert!(view.logical_size(&scope("p2")).is_ok());
    let mut group = Group::new(&partition, &snapshot, &schema, PartitionLimits::default());
    let write = |key: &str| Txn {
        scope: scope(key),
        key: None,
        ops: vec![op("new", Action::Create(doc("new", 1_000)))],
        now: TICKS_PER_SECOND,
    };
    assert!(group.run(&write("p1")).is_err());
    assert!(group.run(&write("p2")).is_ok());
}
