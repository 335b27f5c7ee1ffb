//! What the tests of a partition stand on: one partition on an engine in memory, with the key `/pk`.

use std::ops::Bound;

use orrery_doc::{
    Epk, EpkRange, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path, epk,
};
use orrery_store::engine::{Engine, Keyspace};
use orrery_store::{
    Action, Failed, Group, ItemId, Op, OpError, Partition, PartitionSpec, Precondition, Target, TxnError,
};

pub fn spec() -> PartitionSpec {
    PartitionSpec {
        number: 7,
        container: 3,
        rid_generation: 8,
        range: EpkRange::full(),
        rid_prefix: 2,
        sources: vec![],
    }
}

/// The partition as the engine has it.
pub fn open(engine: &Engine) -> Partition {
    Partition::open(spec(), &engine.snapshot()).expect("the state decodes")
}

pub fn key_def() -> PartitionKeyDef {
    let path = Path::parse_property("/pk").expect("a plain path");
    PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths: vec![path] }
}

/// The logical partition of a key.
pub fn scope(key: impl std::fmt::Display) -> Epk {
    let key = PartitionKey::from_header(&format!("[\"{key}\"]")).expect("a plain key");
    epk(&key_def(), &key)
}

pub fn op(id: &str, action: Action) -> Op {
    Op {
        target: Target::Id(ItemId::new(id).expect("a short id")),
        action,
        precondition: Precondition::None,
        indexed: true,
        unlinked: false,
    }
}

/// Commits what a group has gathered and makes it visible.
pub fn commit(engine: &Engine, partition: &Partition, group: Group<'_>) {
    let mut prepared = group.finish();
    let batch = std::mem::take(&mut prepared.batch);
    engine.commit(batch).expect("memory does not fail");
    partition.publish(partition.apply(prepared));
}

/// Every key and value, which is all that a partition is.
pub fn dump(engine: &Engine) -> Vec<(Keyspace, Vec<u8>, Vec<u8>)> {
    let snapshot = engine.snapshot();
    let all = Keyspace::ALL.into_iter().flat_map(|keyspace| {
        let entries = snapshot.range(keyspace, Bound::Unbounded, Bound::Unbounded, false);
        entries.map(move |entry| (keyspace, entry.expect("memory does not fail")))
    });
    all.map(|(keyspace, (key, value))| (keyspace, key.to_vec(), value.to_vec())).collect()
}

/// Why a transaction was refused. Nothing goes wrong here, so a fault is a mistake of the test.
#[expect(clippy::boxed_local, reason = "a group hands it out in a box, and this is what `map_err` is given")]
pub fn refused(failed: Box<TxnError>) -> OpError {
    match failed.error {
        Failed::Refused(error) => error,
        Failed::Fault(fault) => panic!("{fault}"),
    }
}
