//! Histories, read from the files: a server erases what is older than its container keeps it, and a fixture grows old.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;

use bytes::Bytes;
use orrery_doc::EpkRange;
use orrery_store::engine::{DiskOptions, Engine, Keyspace, Snapshot};
use orrery_store::{FeedCursor, Lifetimes, Lsn, Partition, PartitionSpec, Scan, View};
use serde_json::{Value, json};

/// The partitions that have a history, also those that others have succeeded.
fn partitions(snapshot: &Snapshot) -> BTreeSet<u32> {
    let keys = snapshot.keys(Keyspace::Feed, Bound::Included(&[0xFF; 4]), Bound::Unbounded, false);
    let number = |key: Bytes| u32::from_be_bytes(key[4..8].try_into().expect("a partition's number"));
    keys.map(|key| number(key.expect("the directory is sound"))).collect()
}

/// Every entry of every history of a directory, by partition: LSN, kind, id, and the previous LSN.
pub fn read(data: &Path) -> Value {
    let engine = Engine::inspect(&DiskOptions::new(data)).engine.expect("the directory opens");
    let snapshot = engine.snapshot();
    let mut found = serde_json::Map::new();
    for number in partitions(&snapshot) {
        let range = EpkRange::full();
        let spec =
            PartitionSpec { number, container: 0, rid_generation: 0, range, rid_prefix: 0, sources: vec![] };
        let partition = Partition::open(spec, &snapshot).expect("a state");
        let view = View::new(&partition, &snapshot, Lsn(u64::MAX), Lifetimes::ENDLESS);
        let mut entries = Vec::new();
        view.history(&EpkRange::full(), FeedCursor::after(Lsn(0)), |at, entry| {
            if let Some(entry) = entry {
                let mut text = Vec::new();
                orrery_doc::json::write(entry.item.doc.root(), &mut text);
                let item: Value = serde_json::from_slice(&text).expect("JSON");
                let previous = entry.previous.map(|lsn| lsn.0);
                let (kind, id) = (format!("{:?}", entry.kind), entry.key.id.as_str());
                entries.push(json!([at.lsn.0, at.place, kind, id, previous, entry.time, item]));
            }
            Scan::Continue
        })
        .expect("the history reads back");
        found.insert(number.to_string(), entries.into());
    }
    found.into()
}

pub fn compare(data: &Path, expected: &Value) {
    let found = read(data);
    assert!(found.as_object().is_some_and(|found| found.len() >= 4), "several partitions kept a history");
    assert_eq!(&found, expected);
}
