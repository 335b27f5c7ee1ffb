//! What a partition writes, as golden scripts: `scripts/*.txt`.
//!
//! The lines of a step are one group: `put ID KEY JSON`, `create`, `delete ID KEY`. What is said is every row of the five
//! keyspaces that came (`+`), went (`-`) or changed (`~`), with its key and how long its value is; short values are shown.
//! `policy`, `unique`, `ttl` and `history` change the definition. `split` divides the first partition in two, and later groups
//! go to the partition that owns their key. An id that begins with `x:` is bytes in hexadecimal digits.

#[path = "partition/ground.rs"]
#[expect(dead_code, reason = "other tests stand on it too")]
mod ground;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path as File;
use std::sync::Arc;

use ground::{commit, key_def, scope, spec};
use orrery_doc::{Path, json};
use orrery_store::engine::{Engine, Keyspace};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, DefaultTtl, Group, ItemId, Op, Partition, PartitionSpec, Precondition, Schema, SplitPlan,
    TICKS_PER_SECOND, Target, Txn, UniqueKeys,
};
use orrery_testkit::script::{self, Runner};

const GENERATION: u32 = 9;
/// Longer values are not shown.
const SHOWN_BYTES: usize = 16;

type Rows = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

struct World {
    engine: Engine,
    partitions: Vec<Partition>,
    schema: Schema,
    /// Seconds since 1970: one for each step.
    now: u64,
}

impl World {
    fn new() -> World {
        let engine = Engine::in_memory();
        let partition = Partition::open(spec(), &engine.snapshot()).expect("it is empty");
        let schema = Schema::new(key_def(), GENERATION, IndexingPolicy::default());
        World { engine, partitions: vec![partition], schema, now: 1_000 }
    }

    fn step(&mut self, step: &str) -> String {
        self.now += 1;
        let before = self.rows();
        let mut writes: Vec<Vec<&str>> = Vec::new();
        let mut said = String::new();
        for line in step.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["policy", ..] => self.set_policy(line.trim_start_matches("policy ")),
                ["unique", path] => {
                    let path = Path::parse_property(path).expect("a path");
                    self.schema.unique = UniqueKeys::new(vec![vec![path]]);
                }
                ["ttl", seconds] => self.schema.ttl = DefaultTtl::Seconds(seconds.parse().expect("seconds")),
                ["history"] => self.schema.keeps_history = true,
                ["split"] => said.push_str(&self.split()),
                _ => writes.push(words),
            }
        }
        said.push_str(&self.write(&writes));
        said.push_str(&changes(&before, &self.rows()));
        said
    }

    fn set_policy(&mut self, text: &str) {
        let policy = match text {
            "none" => IndexingPolicy::none(),
            text => {
                let doc = json::parse(text.as_bytes(), 16).expect("a policy");
                IndexingPolicy::from_value(doc.root()).expect("a policy")
            }
        };
        let old = self.schema.clone();
        self.schema =
            Schema { unique: old.unique, ttl: old.ttl, ..Schema::new(key_def(), GENERATION, policy) };
    }

    /// Runs the lines as groups, one for each partition that they concern.
    fn write(&self, writes: &[Vec<&str>]) -> String {
        let mut said = String::new();
        for partition in &self.partitions {
            let owned = writes.iter().filter(|words| partition.spec.range.contains(&scope(words[2])));
            let snapshot = self.engine.snapshot();
            let mut group = Group::new(partition, &snapshot, &self.schema, PartitionLimits::default());
            let mut any = false;
            for words in owned {
                let (target, action) = operation(words);
                let op =
                    Op { target, action, precondition: Precondition::None, indexed: true, unlinked: false };
                let txn = Txn {
                    scope: scope(words[2]),
                    key: None,
                    ops: vec![op],
                    now: self.now * TICKS_PER_SECOND,
                };
                match group.run(&txn) {
                    Ok(_) => any = true,
                    Err(refusal) => said.push_str(&format!("refused: {}\n", refusal.error)),
                }
            }
            if any {
                commit(&self.engine, partition, group);
            }
        }
        said
    }

    fn split(&mut self) -> String {
        let parent = self.partitions.remove(0);
        let snapshot = || Arc::new(self.engine.snapshot());
        let (plan, before) = SplitPlan::make(&parent, snapshot, &key_def(), 2).expect("a plan");
        let last = self.partitions.iter().map(|other| other.spec.number).max();
        let first = last.unwrap_or(parent.spec.number).max(parent.spec.number) + 1;
        let child = |(number, range): (u32, &orrery_doc::EpkRange)| PartitionSpec {
            number,
            range: range.clone(),
            rid_prefix: number,
            sources: parent.spec.bequeath(range, parent.lsn()),
            ..parent.spec.clone()
        };
        let specs: Vec<PartitionSpec> = (first..).zip(&plan.ranges(&parent.spec.range)).map(child).collect();
        let after = self.engine.snapshot();
        let states = orrery_store::split(&parent, &plan, (&before, &after), GENERATION, &specs);
        self.engine
            .commit(states.expect("it reads back").expect("no other write"))
            .expect("memory does not fail");
        let mut said = String::new();
        for (place, spec) in specs.into_iter().enumerate() {
            let (min, max) = (spec.range.min.to_hex(), spec.range.max.to_hex());
            said.push_str(&format!("partition {} from '{min}' to '{max}'\n", spec.number));
            let child = Partition::open(spec, &self.engine.snapshot()).expect("a state");
            self.partitions.insert(place, child);
        }
        said
    }

    fn rows(&self) -> Rows {
        let snapshot = self.engine.snapshot();
        let mut rows = Rows::new();
        for keyspace in Keyspace::ALL {
            for entry in snapshot.range(keyspace, Bound::Unbounded, Bound::Unbounded, false) {
                let (key, value) = entry.expect("memory does not fail");
                rows.insert((keyspace.name(), key.to_vec()), value.to_vec());
            }
        }
        rows
    }
}

fn operation(words: &[&str]) -> (Target, Action) {
    let id = match words[1].strip_prefix("x:") {
        Some(hex) => {
            let byte = |place: usize| u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).expect("digits");
            (0..hex.len() / 2).map(byte).collect()
        }
        None => words[1].as_bytes().to_vec(),
    };
    let target = Target::Id(ItemId::new(id).expect("a short id"));
    let doc = || json::parse(words[3].as_bytes(), 16).expect("a script has JSON");
    let action = match words[0] {
        "put" => Action::Upsert(doc()),
        "create" => Action::Create(doc()),
        "delete" => Action::Delete,
        other => panic!("no command {other}"),
    };
    (target, action)
}

fn changes(before: &Rows, after: &Rows) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = |value: &[u8]| match value.len() {
        0 => String::new(),
        1..=SHOWN_BYTES => format!(" = {}", hex(value)),
        length => format!(" = {length} bytes"),
    };
    let mut said = String::new();
    for ((keyspace, key), value) in before {
        if !after.contains_key(&(*keyspace, key.clone())) {
            said.push_str(&format!("- {keyspace} {}{}\n", hex(key), shown(value)));
        }
    }
    for ((keyspace, key), value) in after {
        let sign = match before.get(&(*keyspace, key.clone())) {
            None => "+",
            Some(old) if old != value => "~",
            Some(_) => continue,
        };
        said.push_str(&format!("{sign} {keyspace} {}{}\n", hex(key), shown(value)));
    }
    if said.is_empty() { "nothing changed\n".to_owned() } else { said }
}

#[test]
fn rows_of_a_partition_are_those_of_the_scripts() {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let begin = || -> Runner {
        let mut world = World::new();
        Box::new(move |step| world.step(step))
    };
    assert!(script::run(&folder, begin) >= 17);
}
