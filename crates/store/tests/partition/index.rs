//! What an index holds: exactly what the items say, whatever was written and in which order, also when the index was
//! built from the items while writes went on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use orrery_doc::{Doc, EpkRange, TermOrder, Value, encode_term, json};
use orrery_store::engine::{Engine, Keyspace};
use orrery_store::indexing::{Composite, IndexingPolicy, PathHash, Step};
use orrery_store::limits::{PATHS_COUNTED_MAX, PartitionLimits};
use orrery_store::{
    Action, FLAG_UNINDEXED, Group, IndexGeneration, Item, ItemId, ItemKey, Lifetimes, Op, Partition,
    PathCounts, Precondition, Scan, Schema, TICKS_PER_SECOND, Target, Txn, View, keys,
};
use proptest::prelude::*;

use super::ground::{self, key_def, scope, spec};

const ACTIVE: u32 = 9;
const BUILDING: u32 = 10;

struct World {
    engine: Engine,
    partition: Partition,
    schema: Schema,
}

/// One write, and how far the build goes in the same group.
#[derive(Clone, Debug)]
struct Planned {
    key: u8,
    id: u8,
    /// None deletes.
    doc: Option<String>,
    indexed: bool,
    build: u8,
    /// The next write is in the same group.
    grouped: bool,
    /// The partition is opened anew before this write.
    restart: bool,
}

fn doc(text: &str) -> Doc {
    json::parse(text.as_bytes(), 128).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn policy(text: &str) -> Arc<IndexingPolicy> {
    Arc::new(IndexingPolicy::from_value(doc(text).root()).expect("a test policy is good"))
}

fn index(generation: u32, policy: &Arc<IndexingPolicy>) -> IndexGeneration {
    IndexGeneration { generation, is_shared: false, policy: policy.clone() }
}

impl World {
    fn new(policy: &IndexingPolicy) -> World {
        let engine = Engine::in_memory();
        let partition = ground::open(&engine);
        World { engine, partition, schema: Schema::new(key_def(), ACTIVE, policy.clone()) }
    }

    fn restart(&mut self) {
        self.partition = ground::open(&self.engine);
    }

    /// Runs writes, and after each as many steps of the build as it says, as one group.
    fn group(&self, writes: &[Planned]) {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        for write in writes {
            let action = match &write.doc {
                Some(text) => Action::Upsert(doc(text)),
                None => Action::Delete,
            };
            let target = Target::Id(ItemId::new(format!("i{}", write.id)).expect("a short id"));
            let op = Op {
                target,
                action,
                precondition: Precondition::None,
                indexed: write.indexed,
                unlinked: false,
            };
            let txn = Txn {
                scope: scope(write.key),
                key: None,
                ops: vec![op],
                now: 1_700_000_000 * TICKS_PER_SECOND,
            };
            // Deleting what is not there is refused, which is as good as any other outcome.
            let _ = group.run(&txn);
            if write.build > 0 {
                group.build(usize::from(write.build), 1 << 20).expect("stored items decode");
            }
        }
        ground::commit(&self.engine, &self.partition, group);
    }

    fn run(&mut self, writes: &[Planned]) {
        let mut start = 0;
        for end in 1..=writes.len() {
            if end == writes.len() || !writes[end - 1].grouped {
                if writes[start].restart {
                    self.restart();
                }
                self.group(&writes[start..end]);
                self.verify();
                start = end;
            }
        }
    }

    fn build(&self, items: usize) {
        let snapshot = self.engine.snapshot();
        let mut group = Group::new(&self.partition, &snapshot, &self.schema, PartitionLimits::default());
        group.build(items, 1 << 20).expect("stored items decode");
        ground::commit(&self.engine, &self.partition, group);
    }

    fn verify(&self) {
        let report =
            self.partition.verify(&self.engine.snapshot(), &self.schema).expect("stored items decode");
        assert_eq!(report.findings, Vec::<String>::new());
    }

    fn items(&self) -> Vec<(ItemKey, Item)> {
        let (snapshot, mut items) = (self.engine.snapshot(), Vec::new());
        let view = View::new(&self.partition, &snapshot, self.partition.lsn(), Lifetimes::ENDLESS);
        view.scan(&EpkRange::full(), None, |key, item| {
            items.push((key, item));
            Scan::Continue
        })
        .expect("stored items decode");
        items
    }

    /// The keys of an index, as they are stored.
    fn entries(&self, generation: u32) -> BTreeSet<Vec<u8>> {
        let (lower, upper) = (generation.to_be_bytes(), (generation + 1).to_be_bytes());
        let (lower, upper) = (Bound::Included(&lower[..]), Bound::Excluded(&upper[..]));
        let keys = self.engine.snapshot().keys(Keyspace::Index, lower, upper, false);
        keys.map(|key| key.expect("memory does not fail").to_vec()).collect()
    }

    /// Compares an index and its counts with what the items say.
    fn check(&self, generation: u32, policy: &IndexingPolicy) {
        let (mut entries, mut counts) = (BTreeSet::new(), BTreeMap::<u64, u64>::new());
        for (key, item) in self.items() {
            for (hash, counted, term) in expected_terms(&item, policy) {
                *counts.entry(hash).or_default() += u64::from(counted);
                entries.insert(keys::index(generation, hash, &term, &key));
            }
        }
        assert_eq!(self.entries(generation), entries);
        let snapshot = self.engine.snapshot();
        let stored = PathCounts::read(&snapshot, spec().number, generation).expect("counts decode");
        let remembered = self.partition.path_counts_at(&snapshot, generation).expect("counts decode");
        assert_eq!(*remembered, stored);
        assert!(counts.iter().all(|(hash, count)| stored.get(*hash).unwrap_or(0) == *count));
        assert!(stored.iter().all(|(hash, count)| counts.get(&hash).copied().unwrap_or(0) == count));
    }
}

/// The terms of an item, worked out by asking the policy for every place of the document.
fn expected_terms(item: &Item, policy: &IndexingPolicy) -> BTreeSet<(u64, bool, Vec<u8>)> {
    let mut out = BTreeSet::new();
    let indexes_nothing = !policy.covers(&[Step::Name("id")]);
    if item.header.flags & FLAG_UNINDEXED != 0 || indexes_nothing {
        return out;
    }
    visit_places(item.root().root(), &mut Vec::new(), &mut |path, value| {
        if policy.covers(path) {
            let hash = path.iter().fold(PathHash::ROOT, |hash, step| hash.step(*step));
            out.insert((hash.value(), !path.contains(&Step::Elements), term(value)));
        }
    });
    let ts = Value::Int(item.header.ts() as i64);
    out.insert((PathHash::ROOT.name("_ts").value(), true, term(ts)));
    for composite in policy.composites() {
        out.insert((composite.hash, false, composite_entry(composite, item)));
    }
    for tuple in policy.tuples() {
        for element in item.root().root().get("b").as_array().into_iter().flat_map(|array| array.iter()) {
            let (first, second) = (element.get("a"), element.get("c").get("b"));
            let (mut entry, mut end) = (Vec::new(), Vec::new());
            if encode_term(first, TermOrder::Sql, &mut entry) {
                encode_term(second, TermOrder::Sql, &mut end);
            }
            if !first.is_undefined() || !second.is_undefined() {
                out.insert((tuple.hash, false, [entry, end].concat()));
            }
        }
    }
    out
}

fn visit_places<'a>(
    value: Value<'a>,
    path: &mut Vec<Step<'a>>,
    visit: &mut impl FnMut(&[Step<'a>], Value<'a>),
) {
    if !path.is_empty() {
        visit(path, value);
    }
    let children: Vec<(Step<'a>, Value<'a>)> = match value {
        Value::Object(object) => object.iter().map(|(name, value)| (Step::Name(name), value)).collect(),
        Value::Array(array) => array.iter().map(|value| (Step::Elements, value)).collect(),
        _ => Vec::new(),
    };
    for (step, value) in children {
        path.push(step);
        visit_places(value, path, visit);
        path.pop();
    }
}

fn term(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode_term(value, TermOrder::Sql, &mut out);
    out
}

fn composite_entry(composite: &Composite, item: &Item) -> Vec<u8> {
    let mut out = Vec::new();
    for (names, descending) in &composite.parts {
        let found = names.iter().fold(item.root().root(), |value, name| value.get(name));
        let value = match names[0].as_str() {
            "_ts" => Value::Int(item.header.ts() as i64),
            _ => found,
        };
        let mut part = Vec::new();
        let complete = encode_term(value, TermOrder::Sql, &mut part);
        out.extend(part.iter().map(|byte| if *descending { !byte } else { *byte }));
        if !complete {
            break;
        }
    }
    out
}

const POLICIES: [&str; 8] = [
    "{}",
    r#"{"indexingMode":"none"}"#,
    r#"{"includedPaths":[{"path":"/a/?"},{"path":"/b/[]/?"}],"excludedPaths":[{"path":"/*"}]}"#,
    r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"},{"path":"/b/[]/c/?"}]}"#,
    r#"{"includedPaths":[{"path":"/b/*"},{"path":"/\"x y\"/?"}],"excludedPaths":[{"path":"/*"}]}"#,
    r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/c","order":"descending"}],
        [{"path":"/_ts","order":"descending"},{"path":"/id"}]]}"#,
    r#"{"excludedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a/b","order":"descending"},
        {"path":"/\"x y\"","order":"ascending"},{"path":"/c"}]]}"#,
    r#"{"excludedPaths":[{"path":"/*"}],"includedPaths":[{"path":"/b/[]/{a,c/b}/?"},{"path":"/c/?"}]}"#,
];

fn any_policy() -> impl Strategy<Value = Arc<IndexingPolicy>> {
    (0..POLICIES.len()).prop_map(|place| policy(POLICIES[place]))
}

fn any_value() -> impl Strategy<Value = String> {
    let long = |letter: char| format!("\"{}\"", letter.to_string().repeat(200));
    let leaf = prop_oneof![
        (0..4u8).prop_map(|number| number.to_string()),
        prop::sample::select(vec!["null", "true", "-0.5", "\"\"", "\"v\"", "\"\\u0000\"", "{}", "[]"])
            .prop_map(str::to_owned),
        prop::sample::select(vec!['x', 'y']).prop_map(long),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let field = (prop::sample::select(vec!["a", "b", "c", "x y"]), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(|values| format!("[{}]", values.join(","))),
            prop::collection::btree_map(field.0, field.1, 0..3).prop_map(object),
        ]
    })
}

fn object(fields: BTreeMap<&str, String>) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn any_write() -> impl Strategy<Value = Planned> {
    let fields = prop::collection::btree_map(
        prop::sample::select(vec!["a", "b", "c", "x y", "_etag"]),
        any_value(),
        0..4,
    );
    (0..3u8, 0..6u8, prop::option::weighted(0.8, fields), 0..10u8, 0..4u8, any::<bool>(), 0..8u8).prop_map(
        |(key, id, fields, indexed, build, grouped, restart)| {
            let whole = |fields: BTreeMap<&str, String>| {
                let mut fields = fields;
                fields.insert("id", format!("\"i{id}\""));
                fields.insert("pk", format!("\"{key}\""));
                object(fields)
            };
            let doc = fields.map(whole);
            Planned { key, id, doc, indexed: indexed > 0, build, grouped, restart: restart == 0 }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_index_holds_what_the_items_say(
        policy in any_policy(),
        writes in prop::collection::vec(any_write(), 1..40),
    ) {
        let mut world = World::new(&policy);
        world.run(&writes);
        world.check(ACTIVE, &policy);
        prop_assert!(world.entries(BUILDING).is_empty(), "nobody asked for a second index");
    }

    #[test]
    fn an_index_that_was_built_during_writes_equals_one_that_was_always_there(
        old in any_policy(),
        new in any_policy(),
        before in prop::collection::vec(any_write(), 0..25),
        during in prop::collection::vec(any_write(), 0..25),
        after in prop::collection::vec(any_write(), 0..10),
    ) {
        let mut world = World::new(&old);
        world.run(&before);
        world.schema.building = Some(index(BUILDING, &new));
        world.run(&during);
        while !world.partition.build_of(BUILDING).is_complete() {
            world.restart();
            world.build(2);
            world.verify();
        }
        world.check(BUILDING, &new);
        world.check(ACTIVE, &old);
        world.run(&after);
        world.check(BUILDING, &new);
        world.schema = Schema::new(key_def(), BUILDING, IndexingPolicy::clone(&new));
        world.run(&after);
        world.check(BUILDING, &new);
    }
}

fn put(id: u8, fields: &str) -> Planned {
    let doc = Some(format!(r#"{{"id":"i{id}","pk":"0"{fields}}}"#));
    Planned { key: 0, id, doc, indexed: true, build: 0, grouped: false, restart: false }
}

#[test]
fn counts_tell_which_paths_every_item_has() {
    let mut world = World::new(&IndexingPolicy::default());
    world.run(&[put(1, r#","a":1,"l":[1,2]"#), put(2, r#","a":{}"#), put(3, r#","a":null,"b":1"#)]);
    let count = |world: &World, path: &[&str]| {
        let counts = world.partition.path_counts_at(&world.engine.snapshot(), ACTIVE).expect("counts decode");
        counts.get(orrery_store::indexing::path_hash(path))
    };
    let items = |world: &World| world.partition.state_at(&world.engine.snapshot()).expect("it decodes").items;
    assert_eq!(items(&world), 3);
    assert_eq!(["id", "_ts", "pk", "a"].map(|path| count(&world, &[path])), [Some(3); 4]);
    assert_eq!(
        [count(&world, &["b"]), count(&world, &["l"]), count(&world, &["z"])],
        [Some(1), Some(1), None]
    );
    let in_list = PathHash::ROOT.name("l").elements().value();
    let counts = world.partition.path_counts_at(&world.engine.snapshot(), ACTIVE).expect("counts decode");
    assert_eq!(counts.get(in_list), None, "what is in arrays is not counted");
    world.run(&[put(3, "")]);
    assert_eq!([count(&world, &["a"]), count(&world, &["b"])], [Some(2), Some(0)]);
    world.run(&[Planned { indexed: false, ..put(4, r#","a":1"#) }]);
    assert_eq!((items(&world), count(&world, &["id"])), (4, Some(3)), "an item outside of the index shows");
}

/// A path that came too late is never counted, not even when others have gone: nobody knows how many it missed.
#[test]
fn only_so_many_paths_are_counted() {
    let mut world = World::new(&IndexingPolicy::default());
    let many = |from: usize, to: usize| (from..to).map(|n| format!(",\"p{n}\":1")).collect::<String>();
    // Three paths of every item take the first places.
    world.run(&[put(1, &many(0, PATHS_COUNTED_MAX - 5))]);
    world.run(&[put(2, &many(PATHS_COUNTED_MAX - 5, PATHS_COUNTED_MAX + 5))]);
    let counts = |world: &World| {
        world.partition.path_counts_at(&world.engine.snapshot(), ACTIVE).expect("counts decode")
    };
    assert_eq!(counts(&world).len(), PATHS_COUNTED_MAX);
    let id = PathHash::ROOT.name("id").value();
    let mut crowded = World::new(&IndexingPolicy::default());
    crowded.run(&[put(1, &many(0, 2 * PATHS_COUNTED_MAX)), put(2, "")]);
    assert_eq!(counts(&crowded).get(id), Some(2), "this one is always counted");
    let known: Vec<u64> = counts(&world).iter().map(|(hash, _)| hash).collect();
    world.run(&[
        put(1, ""),
        put(3, &many(0, 3_000)),
        put(3, &many(PATHS_COUNTED_MAX, PATHS_COUNTED_MAX + 9)),
    ]);
    world.restart();
    world.run(&[put(4, ",\"new\":1")]);
    assert_eq!(counts(&world).iter().map(|(hash, _)| hash).collect::<Vec<_>>(), known);
}

#[test]
fn composite_entries_sort_as_their_values() {
    let policy = policy(r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]}"#);
    let composite = &policy.composites()[0];
    let long = |tail: char| format!("\"{}{tail}\"", "x".repeat(128));
    let entry = |a: &str, b: &str| {
        let doc = doc(&format!(r#"{{"a":{a},"b":{b}}}"#));
        let mut out = Vec::new();
        composite.encode(doc.root(), 0, &mut out);
        let key = [out.as_slice(), b"\x05the key goes on"].concat();
        assert_eq!(composite.entry_len(&key), Some(out.len()), "{a} {b}");
        out
    };
    let sorted = [
        entry("null", "1"),
        entry("1", "{}"),
        entry("1", "\"v\""),
        entry("1", "\"\\u0000\""),
        entry("1", "9007199254740993"),
        entry("1", "2"),
        entry("1", "null"),
        entry("2", "9"),
        entry("\"\"", "1"),
        entry("\"v\"", &long('a')),
        entry("\"v\"", "\"x\""),
    ];
    assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(entry(&long('a'), "1"), entry(&long('b'), "2"), "a cut part ends the entry");
    let mut missing = Vec::new();
    composite.encode(doc("{}").root(), 0, &mut missing);
    assert_eq!((missing.as_slice(), composite.entry_len(&missing)), (&[0x10, !0x10][..], Some(2)));
    assert_eq!(composite.entry_len(&[0x50, 1]), None);
}

#[test]
fn policies_that_say_the_same_compare_equal() {
    let same = |a: &str, b: &str| policy(a).gives_same_terms(&policy(b));
    assert!(same(
        r#"{"includedPaths":[{"path":"/a/?"},{"path":"/b/*"}],"excludedPaths":[{"path":"/*"},{"path":"/c/?"}]}"#,
        r#"{"excludedPaths":[{"path":"/c/?"},{"path":"/"}],"includedPaths":[{"path":"/b/*"},{"path":"/\"a\"/?"}]}"#,
    ));
    assert!(same(r#"{"indexingMode":"none"}"#, r#"{"indexingMode":"none","excludedPaths":[{"path":"/*"}]}"#));
    for other in &POLICIES[1..] {
        assert!(!same("{}", other), "{other}");
    }
}
