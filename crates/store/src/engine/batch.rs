//! A set of writes that happens at once.

use bytes::Bytes;
use lsm_tree::InternalValue;

use super::journal::{decode_writes, encode_writes};
use super::{Keyspace, packing};

const KEY_BYTES_MAX: usize = u16::MAX as usize;
const VALUE_BYTES_MAX: usize = u32::MAX as usize;

/// Writes that become visible together. Within a batch the last write to a key wins.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(super) writes: Vec<Write>,
    bytes: usize,
    oversized: bool,
    frees: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    pub keyspace: Keyspace,
    pub key: Bytes,
    /// `None` deletes.
    pub value: Option<Bytes>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn put(&mut self, keyspace: Keyspace, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.push(keyspace, key.into(), Some(value.into()));
    }

    pub fn delete(&mut self, keyspace: Keyspace, key: impl Into<Bytes>) {
        self.push(keyspace, key.into(), None);
    }

    /// Makes room for so many writes more, and no others.
    pub fn reserve(&mut self, writes: usize) {
        self.writes.reserve_exact(writes);
    }

    /// Says whether the batch is there to make room, now or soon: it may then use what is kept free for that.
    pub fn set_frees(&mut self, frees: bool) {
        self.frees = frees;
    }

    pub fn frees(&self) -> bool {
        self.frees
    }

    /// Appends another batch's writes, which then win over this one's. Both must make room for the whole to.
    pub fn merge(&mut self, mut other: Batch) {
        self.frees = other.frees && (self.frees || self.writes.is_empty());
        self.bytes += other.bytes;
        self.oversized |= other.oversized;
        self.writes.append(&mut other.writes);
    }

    /// The writes in the journal's encoding, in their order. What makes room for what is this node's own affair and not
    /// told. Panics where a key or value is too long to be stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes + 7 * self.writes.len());
        encode_writes(&self.writes, &mut out).expect("what is encoded can be committed");
        out
    }

    /// Reads back what [`Batch::encode`] wrote; `None` for other bytes. Large values are packed already.
    pub fn decode(bytes: &Bytes) -> Option<Batch> {
        let mut batch = Batch::new();
        for write in decode_writes(bytes)? {
            batch.push_stored(write);
        }
        (!batch.oversized).then_some(batch)
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of all keys and values, as they are stored.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// About what it takes in memory.
    pub fn held_bytes(&self) -> usize {
        self.bytes + self.writes.len() * size_of::<Write>()
    }

    /// What write buffers will count for it.
    pub(super) fn buffered_bytes(&self) -> u64 {
        (self.bytes + self.writes.len() * size_of::<InternalValue>()) as u64
    }

    /// Whether some write cannot be stored. It is remembered here and refused by `commit`, so that
    /// building a batch has no error to handle at every line.
    pub(super) fn is_oversized(&self) -> bool {
        self.oversized
    }

    fn push(&mut self, keyspace: Keyspace, key: Bytes, value: Option<Bytes>) {
        self.oversized |= value.as_ref().is_some_and(|value| value.len() > VALUE_BYTES_MAX);
        let value = value.map(|value| packing::pack(keyspace, &key, value));
        self.push_stored(Write { keyspace, key, value });
    }

    /// Adds a write whose value is in its stored form.
    fn push_stored(&mut self, write: Write) {
        let value_bytes = write.value.as_ref().map_or(0, Bytes::len);
        self.oversized |=
            write.key.is_empty() || write.key.len() > KEY_BYTES_MAX || value_bytes > VALUE_BYTES_MAX;
        self.bytes += write.key.len() + value_bytes;
        self.writes.push(write);
    }
}
