//! A partition is its commits: a copy that inserts them into an empty engine, in their order and with restarts wherever they
//! come, ends with the same bytes in every keyspace, and goes on from there as the partition itself would.

use std::path::Path;

use orrery_doc::{Doc, json};
use orrery_store::engine::{DiskOptions, Engine};
use orrery_store::indexing::IndexingPolicy;
use orrery_store::limits::PartitionLimits;
use orrery_store::{
    Action, DefaultTtl, Group, IndexGeneration, Lifetimes, LogEntry, Op, OpError, Partition, Prepared,
    Schema, TICKS_PER_SECOND, Txn, UniqueKeys, View,
};
use orrery_testkit::Random;

use super::ground::{dump, key_def, op, open, refused, scope};

const STEPS: usize = 250;
const FIRST_GENERATION: u32 = 20;
const TTL_SECONDS: u32 = 40;

/// What one group does. It is kept, so that a copy can work it out as well.
enum Step {
    Write(Vec<Txn>),
    Build,
    EraseHistory { keep_since: Option<u64> },
    Purge { now: u64 },
}

/// The partition that leads, and what it does by chance.
struct Leader {
    engine: Engine,
    partition: Partition,
    schema: Schema,
    random: Random,
    now: u64,
    generations: u32,
}

fn first_schema() -> Schema {
    let path = |text: &str| orrery_doc::Path::parse_property(text).expect("a path");
    let unique = UniqueKeys::new(vec![vec![path("/u")]]);
    let schema = Schema::new(key_def(), FIRST_GENERATION, IndexingPolicy::default());
    Schema { unique, keeps_history: true, ttl: DefaultTtl::Seconds(TTL_SECONDS), ..schema }
}

/// Works a step out without applying it; with what was refused of it.
fn work_out(
    engine: &Engine,
    partition: &Partition,
    schema: &Schema,
    step: &Step,
) -> (Prepared, Vec<(usize, OpError)>) {
    let mut refusals = Vec::new();
    let snapshot = engine.snapshot();
    let mut group = Group::new(partition, &snapshot, schema, PartitionLimits::default());
    match step {
        // Some are refused, which is part of what a group comes to.
        Step::Write(txns) => {
            let failed = txns.iter().filter_map(|txn| group.run(txn).err());
            refusals.extend(failed.map(|failed| (failed.place, refused(failed))));
        }
        Step::Build => group.build(7, 1 << 20).expect("stored items decode"),
        Step::EraseHistory { keep_since } => {
            group.erase_history(*keep_since, 5).expect("stored entries decode");
        }
        Step::Purge { now } => {
            let lifetimes = Lifetimes::at(schema.ttl, *now);
            let view = View::new(partition, &snapshot, partition.lsn(), lifetimes);
            let overdue = view.overdue(6, 100).expect("stored items decode");
            group.purge(&overdue.items, *now, u64::MAX).expect("stored items decode");
        }
    }
    (group.finish(), refusals)
}

impl Leader {
    fn new(random: Random) -> Leader {
        let engine = Engine::in_memory();
        let partition = open(&engine);
        let now = 1_700_000_000 * TICKS_PER_SECOND;
        Leader { engine, partition, schema: first_schema(), random, now, generations: FIRST_GENERATION }
    }

    fn doc(&mut self, id: &str, pk: usize) -> Doc {
        let (n, u) = (self.random.below(9), self.random.below(40));
        let ttl = if self.random.one_in(3) {
            format!(r#","ttl":{}"#, 1 + self.random.below(60))
        } else {
            String::new()
        };
        let text =
            format!(r#"{{"id":"{id}","pk":"p{pk}","n":{n},"u":{u},"tags":["a",{n},{{"b":{u}}}]{ttl}}}"#);
        json::parse(text.as_bytes(), 64).expect("JSON")
    }

    fn write(&mut self, pk: usize) -> Op {
        let id = format!("i{}", self.random.below(12));
        match self.random.below(7) {
            0 | 1 => op(&id, Action::Create(self.doc(&id, pk))),
            2 | 3 => op(&id, Action::Upsert(self.doc(&id, pk))),
            4 => op(&id, Action::Replace(self.doc(&id, pk))),
            5 => op(&id, Action::Read),
            _ => op(&id, Action::Delete),
        }
    }

    fn txn(&mut self) -> Txn {
        let pk = self.random.below(5);
        let ops = (0..1 + self.random.below(4)).map(|_| self.write(pk)).collect();
        Txn { scope: scope(format!("p{pk}")), key: None, ops, now: self.now }
    }

    /// What is to be done next; a changed schema is part of it.
    fn step(&mut self) -> Step {
        self.now += self.random.below(3 * TICKS_PER_SECOND as usize) as u64;
        let building = self.schema.building.as_ref().map(|index| index.generation);
        match self.random.below(10) {
            0 if building.is_none() => {
                self.generations += 1;
                let policy = self.schema.index.policy.clone();
                let generation = self.generations;
                self.schema.building = Some(IndexGeneration { generation, is_shared: false, policy });
                Step::Build
            }
            0 | 1 => match building.filter(|one| self.partition.build_of(*one).is_complete()) {
                Some(built) => {
                    let Schema { ttl, unique, keeps_history, .. } = self.schema.clone();
                    let schema = Schema::new(key_def(), built, IndexingPolicy::default());
                    self.schema = Schema { ttl, unique, keeps_history, ..schema };
                    Step::Write(vec![self.txn()])
                }
                None => Step::Build,
            },
            2 => Step::Purge { now: self.now },
            3 => {
                self.schema.keeps_history = self.random.one_in(2);
                let keep_since = self.random.one_in(2).then(|| self.now - 10 * TICKS_PER_SECOND);
                Step::EraseHistory { keep_since }
            }
            _ => Step::Write((0..1 + self.random.below(6)).map(|_| self.txn()).collect()),
        }
    }

    /// Does a step; answers its entry.
    fn take(&mut self, step: &Step) -> Vec<u8> {
        let (mut prepared, _) = work_out(&self.engine, &self.partition, &self.schema, step);
        let commit = prepared.commit();
        self.engine.commit(std::mem::take(&mut prepared.batch)).expect("memory does not fail");
        self.partition.publish(self.partition.apply(prepared));
        commit.entry().encode()
    }
}

/// Inserts what an entry says, and nothing else.
fn insert(copy: &Engine, entry: &[u8]) {
    let entry = LogEntry::decode(&entry.to_vec().into()).expect("an entry that was written reads back");
    copy.commit(entry.commit().expect("the commit of a group").batch).expect("there is room");
}

fn open_disk(path: &Path) -> Engine {
    let mut options = DiskOptions::new(path);
    // Small, so that much of what is compared has been through tables.
    options.tuning.memtable_bytes = 16 << 10;
    options.tuning.table_bytes = 16 << 10;
    options.tuning.segment_bytes = 64 << 10;
    Engine::open(options).expect("the directory opens")
}

/// A group that is worked out from the copy is the one that the leader works out after a restart, and what one refuses the other refuses
/// alike; answers how much that was. Without a restart the leader may leave out rids, which were given to transactions that came to nothing.
fn check_next(leader: &mut Leader, copy: &Engine) -> usize {
    let step = Step::Write((0..4).map(|_| leader.txn()).collect());
    let ((mine, refusals), (theirs, their_refusals)) = (
        work_out(&leader.engine, &open(&leader.engine), &leader.schema, &step),
        work_out(copy, &open(copy), &leader.schema, &step),
    );
    assert!(mine.batch.encode() == theirs.batch.encode(), "the copy would go on otherwise");
    assert_eq!(refusals, their_refusals, "the copy would refuse otherwise");
    refusals.len()
}

#[test]
fn commits_of_a_random_run_make_byte_equal_keyspaces_also_after_restarts() {
    let random = Random::from_environment();
    let seed = random.seed();
    let mut leader = Leader::new(random);
    let folder = tempfile::tempdir().expect("a folder");
    let (memory, mut disk) = (Engine::in_memory(), open_disk(folder.path()));
    let (mut log, mut refused_alike) = (Vec::new(), 0);
    for number in 0..STEPS {
        let step = leader.step();
        let entry = leader.take(&step);
        insert(&memory, &entry);
        insert(&disk, &entry);
        log.push(entry);
        // Neither remembers anything that is not stored.
        if leader.random.one_in(10) {
            leader.partition = open(&leader.engine);
        }
        if leader.random.one_in(25) {
            disk.close().expect("the directory closes");
            drop(disk);
            disk = open_disk(folder.path());
        }
        if leader.random.one_in(15) {
            refused_alike += check_next(&mut leader, &memory) + check_next(&mut leader, &disk);
            let wanted = dump(&leader.engine);
            assert!(dump(&memory) == wanted, "in memory, after step {number} of seed {seed}");
            assert!(dump(&disk) == wanted, "on disk, after step {number} of seed {seed}");
        }
    }
    let late = Engine::in_memory();
    log.iter().for_each(|entry| insert(&late, entry));
    let wanted = dump(&leader.engine);
    for (copy, name) in [(&memory, "in memory"), (&disk, "on disk"), (&late, "made in the end")] {
        assert!(dump(copy) == wanted, "{name}, seed {seed}");
        let partition = open(copy);
        assert_eq!(partition.state(), leader.partition.state(), "{name}, seed {seed}");
        let report = partition.verify(&copy.snapshot(), &leader.schema).expect("it reads back");
        assert_eq!(report.findings, Vec::<String>::new(), "{name}, seed {seed}");
    }
    assert!(refused_alike > 0, "nothing was refused, seed {seed}");
    assert!(leader.partition.lsn().0 > STEPS as u64 / 2, "the run has written little, seed {seed}");
}
