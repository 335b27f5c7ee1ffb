//! Key layouts of the five keyspaces.
//!
//! ```text
//! item    container u32, EPK, id                          -> item value
//! index   generation u32, path hash u64, term, EPK, id    -> nothing
//!         generation u32, zero u64, rid u64, EPK, id      -> nothing
//!         generation u32, one u64, time u64, EPK, id      -> nothing; the item expires then, by what it says itself
//!         generation u32, two u64, EPK, key u8, values    -> ids of the items that have these values at a unique key
//! feed    partition u32, LSN u64, place u16               -> EPK, id
//!         all ones u32, partition u32, LSN u64, place u16 -> one entry of the history
//!         all ones but the last bit u32, partition u32, LSN u64, place u16 -> a write that lost against another
//! log     partition u32, index u64, term u64              -> an entry of the replicated log
//! meta    'P', partition u32                              -> partition state
//!         'S', container u32, EPK                         -> size of a logical partition
//!         'N', partition u32, generation u32, page u16    -> numbers of items that have a term at a path
//!         'B', partition u32                              -> how far the index that is being built has come
//!         'H', partition u32                              -> which part of the history is there
//!         'V', partition u32                              -> which indexes the partition keeps up
//!         'R', partition u32                              -> kept free: how far the replicated log was applied
//! ```
//! A term is that of one value, or of several behind each other in a composite or tuple index, whose hash
//! then stands for all of their paths. The rids, expiry times and unique keys of a container have a generation of
//! their own, which stays when the others change. The sequences of a partition that is no more go on being read by its
//! successors; see `lineage`.
//!
//! Numbers are big-endian and the EPK is escaped and terminated, so that byte order is key order:
//! a logical partition is one prefix, and a physical partition one range, of its container's items.

use orrery_doc::{Epk, EpkRange};

use crate::ItemId;

/// The `_rid` of an item is an index term like any other, under a path that no document can have.
pub const RID_PATH: u64 = 0;
/// When an item expires that has a time to live of its own; in the generation of the rids.
pub const EXPIRY_PATH: u64 = 1;
/// Who has which values at a unique key; in the generation of the rids.
pub const UNIQUE_PATH: u64 = 2;

/// Where an item lives within its container.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    pub epk: Epk,
    pub id: ItemId,
}

pub fn item(container: u32, key: &ItemKey) -> Vec<u8> {
    item_of(container, &key.epk, &key.id)
}

pub fn item_of(container: u32, epk: &Epk, id: &ItemId) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + 20 + id.len());
    logical_prefix_into(container, epk, &mut out);
    out.extend_from_slice(id.as_bytes());
    out
}

/// The bytes that all items of a logical partition start with.
pub fn logical_prefix(container: u32, epk: &Epk) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    logical_prefix_into(container, epk, &mut out);
    out
}

fn logical_prefix_into(container: u32, epk: &Epk, out: &mut Vec<u8>) {
    out.extend_from_slice(&container.to_be_bytes());
    epk.encode_key(out);
}

/// The half-open byte range of a container's items whose EPK lies in `range`.
pub fn item_range(container: u32, range: &EpkRange) -> (Vec<u8>, Vec<u8>) {
    (boundary(container, &range.min), boundary(container, &range.max))
}

fn boundary(container: u32, epk: &Epk) -> Vec<u8> {
    // The terminator sorts below every continuation, so a boundary without it lies before all keys that start
    // with its bytes: exactly what an inclusive minimum and an exclusive maximum need.
    let mut out = logical_prefix(container, epk);
    out.truncate(out.len() - 2);
    out
}

/// Splits an item key back into its parts.
pub fn parse_item(bytes: &[u8]) -> Option<(u32, ItemKey)> {
    let (container, rest) = bytes.split_first_chunk::<4>()?;
    let (epk, id) = Epk::decode_key(rest)?;
    Some((u32::from_be_bytes(*container), ItemKey { epk, id: ItemId::new(id).ok()? }))
}

pub fn index(generation: u32, path_hash: u64, term: &[u8], key: &ItemKey) -> Vec<u8> {
    let mut out = index_prefix(generation, path_hash, term);
    key.epk.encode_key(&mut out);
    out.extend_from_slice(key.id.as_bytes());
    out
}

/// As [`index`], for an item whose EPK and id are encoded already. It has the very size, so that it becomes shared
/// bytes without another copy.
pub fn index_at(generation: u32, path_hash: u64, term: &[u8], place: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + term.len() + place.len());
    out.extend_from_slice(&generation.to_be_bytes());
    out.extend_from_slice(&path_hash.to_be_bytes());
    out.extend_from_slice(term);
    out.extend_from_slice(place);
    out
}

pub fn index_prefix(generation: u32, path_hash: u64, term: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + term.len() + 48);
    out.extend_from_slice(&generation.to_be_bytes());
    out.extend_from_slice(&path_hash.to_be_bytes());
    out.extend_from_slice(term);
    out
}

/// The entry of a unique key in one logical partition; `tail` says which key and which values.
pub fn unique(generation: u32, epk: &Epk, tail: &[u8]) -> Vec<u8> {
    let mut out = index_prefix(generation, UNIQUE_PATH, &[]);
    epk.encode_key(&mut out);
    out.extend_from_slice(tail);
    out
}

pub fn feed(partition: u32, lsn: u64, place: u16) -> [u8; 14] {
    let mut out = [0; 14];
    out[..4].copy_from_slice(&partition.to_be_bytes());
    out[4..12].copy_from_slice(&lsn.to_be_bytes());
    out[12..].copy_from_slice(&place.to_be_bytes());
    out
}

/// The LSN and place of a feed key.
pub fn parse_feed(key: &[u8]) -> Option<(u64, u16)> {
    let key: &[u8; 14] = key.try_into().ok()?;
    let (_, rest) = key.split_first_chunk::<4>()?;
    let (lsn, place) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*lsn), u16::from_be_bytes(place.try_into().ok()?)))
}

/// What the history of a partition starts with. No partition has the number that stands in front.
pub fn history_of(partition: u32) -> [u8; 8] {
    let mut out = [0xFF; 8];
    out[4..].copy_from_slice(&partition.to_be_bytes());
    out
}

pub fn history(partition: u32, lsn: u64, place: u16) -> [u8; 18] {
    let mut out = [0xFF; 18];
    out[4..].copy_from_slice(&feed(partition, lsn, place));
    out
}

/// The LSN and place of a key of the history.
pub fn parse_history(key: &[u8]) -> Option<(u64, u16)> {
    parse_feed(key.strip_prefix(&[0xFF; 4])?)
}

/// What the conflicts of a partition start with. No partition has this number either.
pub fn conflicts_of(partition: u32) -> [u8; 8] {
    let mut out = history_of(partition);
    out[3] = 0xFE;
    out
}

pub fn conflict(partition: u32, lsn: u64, place: u16) -> [u8; 18] {
    let mut out = history(partition, lsn, place);
    out[3] = 0xFE;
    out
}

/// The LSN and place of a key of the conflicts.
pub fn parse_conflict(key: &[u8]) -> Option<(u64, u16)> {
    parse_feed(key.strip_prefix(&[0xFF, 0xFF, 0xFF, 0xFE])?)
}

/// An entry of the replicated log. The term is part of the key, so that no key is ever written twice.
pub fn log(partition: u32, index: u64, term: u64) -> [u8; 20] {
    let mut out = [0; 20];
    out[..4].copy_from_slice(&partition.to_be_bytes());
    out[4..12].copy_from_slice(&index.to_be_bytes());
    out[12..].copy_from_slice(&term.to_be_bytes());
    out
}

pub fn schema_mark(partition: u32) -> [u8; 5] {
    let mut out = partition_state(partition);
    out[0] = b'V';
    out
}

pub fn history_bounds(partition: u32) -> [u8; 5] {
    let mut out = partition_state(partition);
    out[0] = b'H';
    out
}

pub fn partition_state(partition: u32) -> [u8; 5] {
    let mut out = [b'P', 0, 0, 0, 0];
    out[1..].copy_from_slice(&partition.to_be_bytes());
    out
}

pub fn logical_size(container: u32, epk: &Epk) -> Vec<u8> {
    let mut out = vec![b'S'];
    logical_prefix_into(container, epk, &mut out);
    out
}

/// The half-open range of the sizes of logical partitions whose EPK lies in `range`.
pub fn logical_size_range(container: u32, range: &EpkRange) -> (Vec<u8>, Vec<u8>) {
    let (lower, upper) = item_range(container, range);
    ([b"S", lower.as_slice()].concat(), [b"S", upper.as_slice()].concat())
}

/// What the pages of a generation's path counts start with.
pub fn path_counts(partition: u32, generation: u32) -> Vec<u8> {
    let mut out = path_counts_of_all(partition);
    out.extend_from_slice(&generation.to_be_bytes());
    out
}

/// What the path counts of all generations start with.
pub fn path_counts_of_all(partition: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(11);
    out.push(b'N');
    out.extend_from_slice(&partition.to_be_bytes());
    out
}

pub fn build(partition: u32) -> [u8; 5] {
    let mut out = partition_state(partition);
    out[0] = b'B';
    out
}

/// The smallest key above all that start with `prefix`; `None` when there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xFF)?;
    let mut out = prefix[..=last].to_vec();
    out[last] += 1;
    Some(out)
}
