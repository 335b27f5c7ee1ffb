//! Every stored form, held against the bytes that `docs/format.md` shows: what this build writes is what the page says, and what
//! the page says reads back to the same bytes.

use bytes::Bytes;
use orrery_doc::{Doc, Epk, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path};
use orrery_testkit::golden;

use crate::build::{Build, Reached};
use crate::engine::{self, Batch, Engine, Keyspace};
use crate::history::{self, StoredEntry};
use crate::path_counts::{PathCounts, PathDeltas};
use crate::unique::{decode_holders, encode_holders};
use crate::{
    ChangeKind, Conflict, ConflictKind, EntryKind, Etag, FeedCursor, HistoryBounds, Item, ItemHeader,
    ItemKey, ItemRid, LogEntry, LogicalSize, Lsn, Origin, Owner, PartitionState, RegionLsn, SchemaMark, keys,
};

/// One form: its bytes as this build writes them, and what becomes of bytes that it reads and writes again.
pub(crate) struct Form {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub again: fn(&[u8]) -> Option<Vec<u8>>,
}

/// Holds one block of the page against its forms, both ways.
fn hold(title: &str, forms: Vec<Form>) {
    let written: Vec<_> = forms.iter().map(|form| (form.name.to_owned(), form.bytes.clone())).collect();
    golden::check(title, &written);
    for form in &forms {
        let again = (form.again)(&form.bytes);
        assert_eq!(again.as_ref(), Some(&form.bytes), "{} does not read back", form.name);
    }
}

#[test]
fn the_format_page_is_true() {
    hold("keys", key_forms());
    hold("items", item_forms());
    hold("packed", engine::golden_values());
    hold("sequences", sequence_forms());
    hold("states", meta_forms());
    hold("numbers", number_forms());
    hold("files", engine::golden());
    hold("log", log_forms());
}

fn key() -> ItemKey {
    ItemKey { epk: Epk::from_bytes(&[0x0A, 0x00, 0x0B]), id: "id".into() }
}

fn item(origin: Option<Origin>) -> Item {
    flagged(if origin.is_some() { crate::FLAG_UNINDEXED } else { 0 }, origin)
}

fn flagged(flags: u8, origin: Option<Origin>) -> Item {
    let header = ItemHeader {
        flags,
        lsn: Lsn(0x0102),
        place: 3,
        time: 0x0405,
        etag: Etag(0x0607),
        ttl: 0x08,
        rid: 0x090A,
        json_bytes: 0x0B,
        origin,
    };
    Item { header, doc: Doc::from_trusted(Bytes::from_static(b"doc")) }
}

/// A form of a key that is not taken apart again.
fn made(name: &'static str, bytes: impl Into<Vec<u8>>) -> Form {
    Form { name, bytes: bytes.into(), again: |bytes| Some(bytes.to_vec()) }
}

fn key_forms() -> Vec<Form> {
    let (key, place) = (key(), keys::item(0, &key())[4..].to_vec());
    let rid = 0x10_u64.to_be_bytes();
    vec![
        Form {
            name: "key.item",
            bytes: keys::item(7, &key),
            again: |bytes| keys::parse_item(bytes).map(|(container, key)| keys::item(container, &key)),
        },
        made("key.item.prefix", keys::logical_prefix(7, &key.epk)),
        made("key.index", keys::index(9, 0x0102_0304_0506_0708, &[0x40], &key)),
        made("key.index.rid", keys::index_at(9, keys::RID_PATH, &rid, &place)),
        made("key.index.expiry", keys::index_at(9, keys::EXPIRY_PATH, &rid, &place)),
        made("key.index.unique", keys::unique(9, &key.epk, &[0, 0, 3])),
        Form {
            name: "key.feed",
            bytes: keys::feed(7, 0x0102, 3).to_vec(),
            again: |bytes| keys::parse_feed(bytes).map(|(lsn, place)| keys::feed(7, lsn, place).to_vec()),
        },
        Form {
            name: "key.feed.history",
            bytes: keys::history(7, 0x0102, 3).to_vec(),
            again: |bytes| keys::parse_history(bytes).map(|(lsn, n)| keys::history(7, lsn, n).to_vec()),
        },
        Form {
            name: "key.feed.conflict",
            bytes: keys::conflict(7, 0x0102, 3).to_vec(),
            again: |bytes| keys::parse_conflict(bytes).map(|(lsn, n)| keys::conflict(7, lsn, n).to_vec()),
        },
        made("key.log", keys::log(7, 0x0102, 3)),
        made("key.meta.state", keys::partition_state(7)),
        made("key.meta.size", keys::logical_size(7, &key.epk)),
        made("key.meta.counts", [&keys::path_counts(7, 9)[..], &[0, 1]].concat()),
        made("key.meta.build", keys::build(7)),
        made("key.meta.history", keys::history_bounds(7)),
        made("key.meta.schema", keys::schema_mark(7)),
    ]
}

fn item_forms() -> Vec<Form> {
    let again = |bytes: &[u8]| Item::decode(&Bytes::copy_from_slice(bytes)).ok().map(|item| item.encode());
    let origin = Origin { region: 2, lsn: Lsn(0x0C), resolution_time: 0x0D };
    vec![
        Form { name: "item", bytes: item(None).encode(), again },
        Form { name: "item.unlinked", bytes: flagged(crate::FLAG_UNLINKED, None).encode(), again },
        Form { name: "item.origin", bytes: item(Some(origin)).encode(), again },
    ]
}

fn sequence_forms() -> Vec<Form> {
    let entry = |kind, replaced| {
        let (previous, replaced) = (Some(Lsn(0x11)), replaced);
        history::encode(kind, 0x10, previous, &key(), &item(None), replaced)
    };
    let again_entry = |bytes: &[u8]| {
        let stored = StoredEntry::parse(&keys::history(7, 1, 0), Bytes::copy_from_slice(bytes)).ok()?;
        let entry = stored.decode().ok()?;
        let replaced = entry.replaced.as_ref().map(|replaced| (&replaced.id, &replaced.item));
        Some(history::encode(entry.kind, entry.time, entry.previous, &entry.key, &entry.item, replaced))
    };
    let conflict = |kind, item| Conflict {
        at: FeedCursor { lsn: Lsn(1), place: 0 },
        kind,
        time: 0x10,
        region: 2,
        origin: Lsn(0x11),
        key: key(),
        item,
    };
    let again_conflict = |bytes: &[u8]| {
        let conflict = Conflict::decode(&keys::conflict(7, 1, 0), &Bytes::copy_from_slice(bytes)).ok()?;
        Some(conflict.encode())
    };
    vec![
        made("feed", &keys::item(0, &key())[4..]),
        Form { name: "history.created", bytes: entry(ChangeKind::Created, None), again: again_entry },
        Form {
            name: "history.replaced",
            bytes: entry(ChangeKind::Replaced, Some((&"old".into(), &item(None)))),
            again: again_entry,
        },
        old_replacement(entry(ChangeKind::Replaced, None)),
        Form { name: "history.deleted", bytes: entry(ChangeKind::Deleted, None), again: again_entry },
        Form { name: "history.expired", bytes: entry(ChangeKind::Expired, None), again: again_entry },
        Form {
            name: "conflict.created",
            bytes: conflict(ConflictKind::Created, Some(item(None))).encode(),
            again: again_conflict,
        },
        Form {
            name: "conflict.replaced",
            bytes: conflict(ConflictKind::Replaced, Some(item(None))).encode(),
            again: again_conflict,
        },
        Form {
            name: "conflict.deleted",
            bytes: conflict(ConflictKind::Deleted, None).encode(),
            again: again_conflict,
        },
        Form {
            name: "unique",
            bytes: encode_holders(&vec!["id".into(), "é".into()]),
            again: |bytes| decode_holders(bytes).map(|holders| encode_holders(&holders)),
        },
    ]
}

/// What builds wrote that took the replaced version to have the same id. It is read, and written no more.
fn old_replacement(mut bytes: Vec<u8>) -> Form {
    let item = item(None).encode();
    bytes[1] |= 0x80;
    bytes.truncate(bytes.len() - item.len());
    bytes.extend_from_slice(&(item.len() as u32).to_be_bytes());
    Form {
        name: "history.replaced.old",
        bytes: [bytes, item.clone(), item].concat(),
        again: |bytes| {
            let stored = StoredEntry::parse(&keys::history(7, 1, 0), Bytes::copy_from_slice(bytes)).ok()?;
            stored.decode().ok()?.replaced.filter(|replaced| replaced.id == key().id)?;
            Some(bytes.to_vec())
        },
    }
}

fn state(regions: Vec<RegionLsn>) -> PartitionState {
    let epoch = regions.len() as u32;
    PartitionState { epoch, lsn: Lsn(0x02), rids_given: 0x03, items: 0x04, bytes: 0x05, time: 0x06, regions }
}

fn meta_forms() -> Vec<Form> {
    let again =
        |bytes: &[u8]| PartitionState::decode(&Bytes::copy_from_slice(bytes)).map(|state| state.encode());
    let old: Vec<u8> = [2_u64, 3, 4, 5, 6].into_iter().flat_map(u64::to_be_bytes).collect();
    let build = |reached| Build { generation: 9, items: 0x0102, reached };
    let again_build =
        |bytes: &[u8]| Build::decode(&Bytes::copy_from_slice(bytes)).map(|build| build.encode());
    let size = |owner| LogicalSize { bytes: 1, items: 2, lsn: Lsn(3), owner }.encode();
    let again_size =
        |bytes: &[u8]| LogicalSize::decode(&Bytes::copy_from_slice(bytes)).map(|size| size.encode());
    let owner = PartitionKey::from_header(r#"["a"]"#).expect("a key");
    let path = Path::parse_property("/pk").expect("a path");
    let def =
        PartitionKeyDef { kind: PartitionKeyKind::Hash, version: PartitionKeyVersion::V2, paths: vec![path] };
    let mark = |building| SchemaMark { version: 1, active: 9, building }.encode();
    let again_mark = |bytes: &[u8]| SchemaMark::decode(bytes).map(|mark| mark.encode());
    let regions = vec![RegionLsn { region: 2, lsn: Lsn(0x07) }];
    vec![
        Form { name: "state", bytes: state(vec![]).encode(), again },
        Form { name: "state.regions", bytes: state(regions).encode(), again },
        Form {
            name: "state.unversioned",
            bytes: old,
            again: |bytes| {
                let read = PartitionState::decode(&Bytes::copy_from_slice(bytes))?;
                // It is never written so again: the first byte and the epoch come in front, the regions behind.
                let written = read.encode();
                (read == state(vec![])).then(|| written[5..45].to_vec())
            },
        },
        Form { name: "size", bytes: size(Owner::Unknown), again: again_size },
        Form { name: "size.owned", bytes: size(Owner::of(&def, &owner)), again: again_size },
        Form { name: "counts", bytes: counts(), again: |bytes| (bytes == counts()).then(counts) },
        Form { name: "build.nothing", bytes: build(Reached::Nothing).encode(), again: again_build },
        Form {
            name: "build.place",
            bytes: build(Reached::Place(keys::item(0, &key())[4..].to_vec())).encode(),
            again: again_build,
        },
        Form { name: "build.everything", bytes: build(Reached::Everything).encode(), again: again_build },
        Form {
            name: "history.bounds",
            bytes: HistoryBounds { floor: Lsn(1), erased: Lsn(2) }.encode(),
            again: |bytes| {
                let mut batch = Batch::new();
                batch.put(Keyspace::Meta, keys::history_bounds(7).to_vec(), bytes.to_vec());
                let bounds = HistoryBounds::read(&engine_with(batch).snapshot(), 7).ok()??;
                Some(bounds.encode())
            },
        },
        Form { name: "schema", bytes: mark(None), again: again_mark },
        Form { name: "schema.building", bytes: mark(Some(10)), again: again_mark },
    ]
}

fn engine_with(batch: Batch) -> Engine {
    let engine = Engine::in_memory();
    engine.commit(batch).expect("memory does not fail");
    engine
}

/// A page with two counts, as a group writes it; it is read back on the way.
fn counts() -> Vec<u8> {
    let mut deltas = PathDeltas::default();
    deltas.add(0x0102, 3);
    deltas.add(0x0304, 5);
    let mut batch = Batch::new();
    PathCounts::default().change(&deltas, true, 7, 9, &mut batch);
    let snapshot = engine_with(batch).snapshot();
    let read = PathCounts::read(&snapshot, 7, 9).expect("counts read back");
    assert_eq!(read.iter().collect::<Vec<_>>(), [(0x0102, 3), (0x0304, 5)]);
    let key = [&keys::path_counts(7, 9)[..], &[0, 0]].concat();
    snapshot.get(Keyspace::Meta, &key).expect("memory does not fail").expect("a page").to_vec()
}

fn number_forms() -> Vec<Form> {
    let rid = |region| ItemRid { partition: 2, region, count: 0x0304 }.encode().to_be_bytes();
    let again_rid = |bytes: &[u8]| {
        Some(ItemRid::decode(u64::from_be_bytes(bytes.try_into().ok()?)).encode().to_be_bytes().into())
    };
    vec![
        Form { name: "rid.item", bytes: rid(0).into(), again: again_rid },
        Form { name: "rid.item.region", bytes: rid(5).into(), again: again_rid },
        Form {
            name: "etag",
            bytes: Etag::of(0x0102, 3, 0x66B3_F4D1).0.to_be_bytes().into(),
            again: |bytes| {
                let etag = Etag(u64::from_be_bytes(bytes.try_into().ok()?));
                Etag::parse(&etag.to_header()).map(|etag| etag.0.to_be_bytes().into())
            },
        },
    ]
}

fn log_forms() -> Vec<Form> {
    let mut batch = Batch::new();
    batch.put(Keyspace::Item, b"key".to_vec(), b"value".to_vec());
    batch.put(Keyspace::Index, b"term".to_vec(), Bytes::new());
    batch.delete(Keyspace::Meta, b"gone".to_vec());
    let entry = |kind, payload: Vec<u8>| LogEntry {
        kind,
        epoch: 1,
        region: 2,
        first: Lsn(3),
        last: Lsn(4),
        time: 5,
        payload: payload.into(),
    };
    let again = |bytes: &[u8]| LogEntry::decode(&Bytes::copy_from_slice(bytes)).map(|entry| entry.encode());
    vec![
        Form {
            name: "batch",
            bytes: batch.encode(),
            again: |bytes| Batch::decode(&Bytes::copy_from_slice(bytes)).map(|batch| batch.encode()),
        },
        Form { name: "log.group", bytes: entry(EntryKind::Group, batch.encode()).encode(), again },
        Form { name: "log.buildStep", bytes: entry(EntryKind::BuildStep, vec![]).encode(), again },
        Form {
            name: "log.schema",
            bytes: entry(EntryKind::Schema, SchemaMark { version: 1, active: 9, building: None }.encode())
                .encode(),
            again,
        },
        Form { name: "log.split", bytes: entry(EntryKind::Split, vec![]).encode(), again },
        Form { name: "log.freeze", bytes: entry(EntryKind::Freeze, vec![]).encode(), again },
        Form { name: "log.thaw", bytes: entry(EntryKind::Thaw, vec![]).encode(), again },
        Form { name: "log.noop", bytes: entry(EntryKind::Noop, vec![]).encode(), again },
    ]
}
