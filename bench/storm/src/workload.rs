//! What one write looks like: a document of 1 KiB, twelve index keys of 60 bytes, one feed entry.

use bytes::{BufMut, Bytes, BytesMut};
use orrery_store::engine::{Batch, Keyspace, Snapshot};

pub const INDEX_KEYS: u64 = 12;
pub const DOCUMENT_BYTES: usize = 1024;
const INDEX_KEY_BYTES: usize = 60;
const HEADER_BYTES: usize = 16;

/// Bytes that one item keeps alive: the item, its index keys and its feed entry with their keys.
pub const LIVE_BYTES_PER_ITEM: u64 =
    (36 + DOCUMENT_BYTES as u64) + INDEX_KEYS * INDEX_KEY_BYTES as u64 + (14 + 36);

/// A small, fast, repeatable generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

fn mix(seed: u64) -> u64 {
    let mut z = seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Container, effective partition key, id: items arrive in random key order, as hashed keys do.
pub fn item_key(item: u64) -> Bytes {
    let mut key = BytesMut::with_capacity(36);
    key.put_u32(1);
    key.put_u64(mix(item));
    key.put_u64(mix(item ^ 0xff));
    key.put_slice(format!("{item:016x}").as_bytes());
    key.freeze()
}

fn index_key(item: u64, version: u64, path: u64) -> Bytes {
    let mut key = BytesMut::with_capacity(INDEX_KEY_BYTES);
    key.put_u32(1);
    key.put_u64(mix(path + 1));
    key.put_u64(mix(item ^ (version << 40) ^ (path << 56)));
    key.put_u64(mix(item ^ (version << 41) ^ (path << 57)));
    key.put_u64(mix(item));
    key.put_u64(mix(item ^ 0xff));
    key.put_slice(format!("{item:016x}").as_bytes());
    debug_assert_eq!(key.len(), INDEX_KEY_BYTES);
    key.freeze()
}

pub fn feed_key(lsn: u64) -> Bytes {
    let mut key = BytesMut::with_capacity(14);
    key.put_u32(1);
    key.put_u64(lsn);
    key.put_u16(0);
    key.freeze()
}

/// The header holds version and LSN, from which an update derives what it must delete. The rest
/// cannot be compressed, so the disk figures owe nothing to the generator.
fn document(random: &mut Random, version: u64, lsn: u64) -> Bytes {
    let mut document = BytesMut::with_capacity(DOCUMENT_BYTES);
    document.put_u64(version);
    document.put_u64(lsn);
    while document.len() < DOCUMENT_BYTES {
        document.put_u64(random.next());
    }
    document.freeze()
}

pub fn insert(random: &mut Random, item: u64, lsn: u64) -> Batch {
    let mut batch = Batch::new();
    put_item(&mut batch, random, item, 0, lsn);
    batch
}

/// Reads the item and replaces it together with all its index keys. `None` when it is not there.
pub fn update(snapshot: &Snapshot, random: &mut Random, item: u64, lsn: u64) -> Option<Batch> {
    let old = snapshot.get(Keyspace::Item, &item_key(item)).expect("a point read succeeds")?;
    let version = u64::from_be_bytes(old[..8].try_into().expect("eight bytes"));
    let old_lsn = u64::from_be_bytes(old[8..HEADER_BYTES].try_into().expect("eight bytes"));
    let mut batch = Batch::new();
    for path in 0..INDEX_KEYS {
        batch.delete(Keyspace::Index, index_key(item, version, path));
    }
    batch.delete(Keyspace::Feed, feed_key(old_lsn));
    put_item(&mut batch, random, item, version + 1, lsn);
    Some(batch)
}

fn put_item(batch: &mut Batch, random: &mut Random, item: u64, version: u64, lsn: u64) {
    let key = item_key(item);
    batch.put(Keyspace::Item, key.clone(), document(random, version, lsn));
    for path in 0..INDEX_KEYS {
        batch.put(Keyspace::Index, index_key(item, version, path), Bytes::new());
    }
    batch.put(Keyspace::Feed, feed_key(lsn), key);
}
