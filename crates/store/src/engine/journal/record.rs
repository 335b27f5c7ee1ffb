//! How a batch and the head of a segment look in a journal. All numbers are little-endian.
//!
//! A record is its length, its sequence number, a checksum, and the writes one after another. The
//! checksum is seeded with a number that the segment has drawn: a file that is written over from its start still
//! holds records of its last life behind the new ones, and what clients stored then. None of that must read as
//! ours, not even if a client meant it to.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::super::Keyspace;
use super::super::batch::Write;

/// Length, sequence number, checksum.
pub const RECORD_HEAD: usize = 4 + 8 + 8;
/// Records begin here, on a page of their own, so that the head's page is written once.
pub const RECORDS_AT: u64 = 4096;

const KEYSPACES: usize = Keyspace::ALL.len();
const MAGIC: &[u8; 8] = b"ORRERYJ1";
const HEAD_BYTES: usize = 8 + 8 + 8 + 8 + 8 * KEYSPACES + 8;
/// Set in the byte that names the keyspace where the write deletes.
const DELETES: u8 = 0x80;

/// What stands at the start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// One more than that of the segment before.
    pub generation: u64,
    /// Seeds the checksums of the segment's records.
    pub seed: u64,
    /// The last sequence number of the segments before.
    pub previous: u64,
    /// For each keyspace, the first sequence number that was not in its tables when this was written.
    pub floors: [u64; KEYSPACES],
}

/// Why bytes do not read as a head.
#[derive(Debug, PartialEq, Eq)]
pub enum NoHead {
    /// The file was created, and nothing was written to it.
    Blank,
    Damaged,
}

impl Head {
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let numbers = [self.generation, self.seed, self.previous].into_iter().chain(self.floors);
        for (place, number) in bytes[8..HEAD_BYTES - 8].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64_with_seed(&bytes[..HEAD_BYTES - 8], 0);
        bytes[HEAD_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Head, NoHead> {
        if bytes.iter().take(HEAD_BYTES).all(|byte| *byte == 0) {
            return Err(NoHead::Blank);
        }
        let bytes = bytes.get(..HEAD_BYTES).ok_or(NoHead::Damaged)?;
        let (content, checksum) = bytes.split_at(HEAD_BYTES - 8);
        if &content[..8] != MAGIC || xxh3_64_with_seed(content, 0) != number(checksum) {
            return Err(NoHead::Damaged);
        }
        let mut numbers = content[8..].chunks_exact(8).map(number);
        let mut next = || numbers.next().ok_or(NoHead::Damaged);
        let (generation, seed, previous) = (next()?, next()?, next()?);
        let mut floors = [0; KEYSPACES];
        for floor in &mut floors {
            *floor = next()?;
        }
        Ok(Head { generation, seed, previous, floors })
    }
}

/// Appends the record of a batch to a buffer. `None` when it is too long for its length to be told.
pub fn encode(buffer: &mut Vec<u8>, seed: u64, sequence: u64, writes: &[Write]) -> Option<()> {
    let start = buffer.len();
    buffer.resize(start + RECORD_HEAD, 0);
    for write in writes {
        let deletes = if write.value.is_none() { DELETES } else { 0 };
        let value = write.value.as_deref().unwrap_or_default();
        buffer.push(write.keyspace as u8 | deletes);
        buffer.extend_from_slice(&u16::try_from(write.key.len()).ok()?.to_le_bytes());
        buffer.extend_from_slice(&u32::try_from(value.len()).ok()?.to_le_bytes());
        buffer.extend_from_slice(&write.key);
        buffer.extend_from_slice(value);
    }
    let length = u32::try_from(buffer.len() - start - RECORD_HEAD).ok()?;
    buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
    buffer[start + 4..start + 12].copy_from_slice(&sequence.to_le_bytes());
    let checksum = checksum(seed, sequence, &buffer[start + RECORD_HEAD..]);
    buffer[start + 12..start + RECORD_HEAD].copy_from_slice(&checksum.to_le_bytes());
    Some(())
}

/// One record that was read back.
pub struct Record {
    pub sequence: u64,
    content: Bytes,
}

impl Record {
    /// Takes the record at the start of the bytes, or `None` where there is no valid one.
    pub fn take(bytes: &mut Bytes, seed: u64) -> Option<Record> {
        let head = bytes.get(..RECORD_HEAD)?;
        let length = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
        let (sequence, stored) = (number(&head[4..12]), number(&head[12..]));
        let content = bytes.get(RECORD_HEAD..RECORD_HEAD.checked_add(length)?)?;
        if content.is_empty() || checksum(seed, sequence, content) != stored {
            return None;
        }
        let content = bytes.slice(RECORD_HEAD..RECORD_HEAD + length);
        *bytes = bytes.slice(RECORD_HEAD + length..);
        Some(Record { sequence, content })
    }

    /// The writes of the batch, in their order. The checksum was right, so what does not parse was
    /// never written by us; such a record is refused whole.
    pub fn writes(&self) -> Option<Vec<Write>> {
        let mut rest = self.content.clone();
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
}

fn checksum(seed: u64, sequence: u64, content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, seed ^ sequence.rotate_left(32))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
