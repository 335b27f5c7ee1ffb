//! How a batch looks in a journal. All numbers are little-endian.
//!
//! ```text
//!   tag      8   the same in all records of a segment, drawn by it
//!   length   4   of the content
//!   check    4   of length, sequence, durable, and of the place in the file
//!   sequence 8
//!   durable  8   up to here the segment was synced when the record was written
//!   checksum 8   of the content
//!   content      the writes one after another
//!   end      8   another tag of the segment; the next record is written over it
//! ```
//!
//! Checksums are seeded with a number that the segment has drawn: a file that is written over from its start still
//! holds records of its last life behind the new ones, and what clients stored then. None of that must read as
//! ours, not even if a client meant it to.
//!
//! The tags tell the end of the journal from a record that does not read back. Behind the last record stands the end
//! tag, written with it. Where there is neither a record nor the tag, something was written that is not there any more;
//! records behind it are found by their tag, and their heads, which have a check of their own, say whether what is gone
//! had ever been durable.

use std::io;

use bytes::Bytes;
use memchr::memmem;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use super::super::Keyspace;
use super::super::batch::Write;

pub const RECORD_HEAD: usize = 8 + 4 + 4 + 8 + 8 + 8;
/// Records begin here, on a page of their own, so that the head's page is written once.
pub const RECORDS_AT: u64 = 4096;
/// Bytes of the mark behind the last record.
pub const END_BYTES: usize = 8;
/// A record that is longer than this is written in pieces of about this size.
pub const PIECE_BYTES: usize = 1 << 20;
/// Set in the byte that names the keyspace where the write deletes.
const DELETES: u8 = 0x80;

/// What stands in front of each record of a segment, and behind the last.
#[derive(Clone, Copy)]
pub struct Tags {
    pub record: [u8; 8],
    pub end: [u8; 8],
}

impl Tags {
    pub fn of(seed: u64) -> Tags {
        let tag = |name: &[u8]| xxh3_64_with_seed(name, seed).to_le_bytes();
        Tags { record: tag(b"record"), end: tag(b"end") }
    }
}

/// What a record says of itself.
#[derive(Clone, Copy)]
pub struct RecordHead {
    length: usize,
    pub sequence: u64,
    /// Up to here the segment was synced when the record was written.
    pub durable: u64,
    checksum: u64,
}

/// Writes the record of a batch, and the end mark, to an empty buffer. `None` when it is too long for its length to
/// be told.
pub fn encode(
    buffer: &mut Vec<u8>,
    (seed, tags): (u64, &Tags),
    place: (u64, u64),
    sequence: u64,
    writes: &[Write],
) -> Option<()> {
    buffer.resize(RECORD_HEAD, 0);
    encode_writes(writes, buffer)?;
    let content = &buffer[RECORD_HEAD..];
    let sums = (u32::try_from(content.len()).ok()?, content_checksum(seed, sequence, content));
    let head = head(seed, tags, place, sequence, sums);
    buffer[..RECORD_HEAD].copy_from_slice(&head);
    buffer.extend_from_slice(&tags.end);
    Some(())
}

/// Hands out the same, each piece with its place in the record, so that a long one is never held whole. The head comes last:
/// until then the end mark of the record before stands in its place. Returns the length without the new end mark.
pub fn encode_in_pieces(
    buffer: &mut Vec<u8>,
    (seed, tags): (u64, &Tags),
    place: (u64, u64),
    sequence: u64,
    writes: &[Write],
    put: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let too_long = || io::Error::from(io::ErrorKind::FileTooLarge);
    let mut hasher = Xxh3::with_seed(content_seed(seed, sequence));
    let mut at = RECORD_HEAD as u64;
    buffer.clear();
    for write in writes {
        encode_write(write, buffer).ok_or_else(too_long)?;
        if buffer.len() >= PIECE_BYTES {
            hasher.update(buffer);
            put(at, buffer)?;
            at += buffer.len() as u64;
            buffer.clear();
        }
    }
    hasher.update(buffer);
    let end = at + buffer.len() as u64;
    buffer.extend_from_slice(&tags.end);
    put(at, buffer)?;
    let length = u32::try_from(end - RECORD_HEAD as u64).map_err(|_| too_long())?;
    put(0, &head(seed, tags, place, sequence, (length, hasher.digest())))?;
    Ok(end)
}

fn head(
    seed: u64,
    tags: &Tags,
    (at, durable): (u64, u64),
    sequence: u64,
    (length, checksum): (u32, u64),
) -> [u8; RECORD_HEAD] {
    let mut head = [0; RECORD_HEAD];
    head[..8].copy_from_slice(&tags.record);
    head[8..12].copy_from_slice(&length.to_le_bytes());
    head[16..24].copy_from_slice(&sequence.to_le_bytes());
    head[24..32].copy_from_slice(&durable.to_le_bytes());
    head[32..40].copy_from_slice(&checksum.to_le_bytes());
    let check = head_check(seed, at, &head);
    head[12..16].copy_from_slice(&check.to_le_bytes());
    head
}

/// Writes one after another, each a byte for what it does and where, the lengths of key and value, key and value. `None`
/// when one is too long for its length to be told.
pub fn encode_writes(writes: &[Write], buffer: &mut Vec<u8>) -> Option<()> {
    writes.iter().try_for_each(|write| encode_write(write, buffer))
}

fn encode_write(write: &Write, buffer: &mut Vec<u8>) -> Option<()> {
    let deletes = if write.value.is_none() { DELETES } else { 0 };
    let value = write.value.as_deref().unwrap_or_default();
    buffer.push(write.keyspace as u8 | deletes);
    buffer.extend_from_slice(&u16::try_from(write.key.len()).ok()?.to_le_bytes());
    buffer.extend_from_slice(&u32::try_from(value.len()).ok()?.to_le_bytes());
    buffer.extend_from_slice(&write.key);
    buffer.extend_from_slice(value);
    Some(())
}

/// Reads them back, all or none.
pub fn decode_writes(content: &Bytes) -> Option<Vec<Write>> {
    let mut rest = content.clone();
    let mut writes = Vec::new();
    while !rest.is_empty() {
        let head = rest.get(..7)?;
        let keyspace = *Keyspace::ALL.get((head[0] & !DELETES) as usize)?;
        let deletes = head[0] & DELETES != 0;
        let key_end = 7 + u16::from_le_bytes([head[1], head[2]]) as usize;
        let end = key_end + u32::from_le_bytes(head[3..7].try_into().ok()?) as usize;
        rest.get(..end)?;
        // Copies: write buffers keep keys and values long after the segment's bytes are gone.
        let key = Bytes::copy_from_slice(&rest[7..key_end]);
        let value = (!deletes).then(|| Bytes::copy_from_slice(&rest[key_end..end]));
        writes.push(Write { keyspace, key, value });
        rest = rest.slice(end..);
    }
    Some(writes)
}

/// The head of a record at a place of its segment; none where there is none that reads back.
pub fn head_at(bytes: &[u8], at: u64, seed: u64, tags: &Tags) -> Option<RecordHead> {
    let head = bytes.get(..RECORD_HEAD)?;
    let check = u32::from_le_bytes(head[12..16].try_into().ok()?);
    if head[..8] != tags.record || head_check(seed, at, head) != check {
        return None;
    }
    let length = u32::from_le_bytes(head[8..12].try_into().ok()?) as usize;
    let (sequence, durable) = (number(&head[16..24]), number(&head[24..32]));
    Some(RecordHead { length, sequence, durable, checksum: number(&head[32..40]) })
}

/// Up to where the segment was durable, by the heads of all records that read back from a place on; none where there
/// is none. `bytes` are those from the place `at` of the segment.
pub fn durable_by_later(bytes: &[u8], at: u64, seed: u64, tags: &Tags) -> Option<u64> {
    let heads = memmem::find_iter(bytes, &tags.record)
        .filter_map(|place| head_at(&bytes[place..], at + place as u64, seed, tags));
    heads.map(|head| head.durable).max()
}

/// One record that was read back.
pub struct Record {
    pub sequence: u64,
    pub content: Bytes,
}

impl Record {
    /// Takes the record at the start of the bytes, which are those from the place `at` of the segment, or `None` where
    /// there is no valid one.
    pub fn take(bytes: &mut Bytes, at: u64, seed: u64, tags: &Tags) -> Option<Record> {
        let head = head_at(bytes, at, seed, tags)?;
        let end = RECORD_HEAD.checked_add(head.length)?;
        let content = bytes.get(RECORD_HEAD..end)?;
        if content_checksum(seed, head.sequence, content) != head.checksum {
            return None;
        }
        let content = bytes.slice(RECORD_HEAD..end);
        *bytes = bytes.slice(end..);
        Some(Record { sequence: head.sequence, content })
    }

    /// The writes of the batch, in their order. The checksum was right, so what does not parse was
    /// never written by us; such a record is refused whole.
    pub fn writes(&self) -> Option<Vec<Write>> {
        decode_writes(&self.content)
    }
}

pub fn content_checksum(seed: u64, sequence: u64, content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, content_seed(seed, sequence))
}

fn content_seed(seed: u64, sequence: u64) -> u64 {
    seed ^ sequence.rotate_left(32)
}

/// Of a record's head without its tag and the check itself.
fn head_check(seed: u64, at: u64, head: &[u8]) -> u32 {
    let mut fields = [0; 40];
    fields[..8].copy_from_slice(&seed.to_le_bytes());
    fields[8..16].copy_from_slice(&at.to_le_bytes());
    fields[16..20].copy_from_slice(&head[8..12]);
    fields[20..36].copy_from_slice(&head[16..32]);
    xxh3_64(&fields) as u32
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
