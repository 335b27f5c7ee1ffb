//! Records of the journal's first format, which directories of the build before hold until their content is in tables.
//!
//! A record is its length, its sequence number, a checksum, and the writes. It does not say how far the journal was
//! durable, so a record that does not read back in the newest segment is the torn end only if no other follows it.
//! Such a follower is looked for at every byte; fields that no record of ours can have rule out nearly all of
//! them without a checksum.

use bytes::Bytes;

use super::record::{Record, content_checksum, number};

/// Length, sequence number, checksum.
const RECORD_HEAD: usize = 4 + 8 + 8;
/// The sequence numbers of two records of one segment are closer together than this.
const SEQUENCES_MAX: u64 = 1 << 32;
/// The shortest content: a write with a key of one byte.
const CONTENT_MIN: usize = 8;

/// Takes the record at the start of the bytes, or `None` where there is no valid one.
pub fn take(bytes: &mut Bytes, seed: u64) -> Option<Record> {
    let (sequence, end) = valid(bytes, seed)?;
    let content = bytes.slice(RECORD_HEAD..end);
    *bytes = bytes.slice(end..);
    Some(Record { sequence, content })
}

/// Whether there is another valid record behind the end of those that were read.
pub fn has_later(bytes: &[u8], seed: u64, last: u64) -> bool {
    let mut places = 1..bytes.len().saturating_sub(RECORD_HEAD);
    places.any(|place| {
        let bytes = &bytes[place..];
        let sequence = number(&bytes[4..12]);
        let is_plausible = sequence > last && sequence - last < SEQUENCES_MAX;
        is_plausible && valid(bytes, seed).is_some()
    })
}

/// The sequence number of a valid record at the start of the bytes, and where it ends.
fn valid(bytes: &[u8], seed: u64) -> Option<(u64, usize)> {
    let head = bytes.get(..RECORD_HEAD)?;
    let length = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
    let (sequence, stored) = (number(&head[4..12]), number(&head[12..]));
    let end = RECORD_HEAD.checked_add(length)?;
    let content = bytes.get(RECORD_HEAD..end).filter(|content| content.len() >= CONTENT_MIN)?;
    (content_checksum(seed, sequence, content) == stored).then_some((sequence, end))
}

/// A record as the format before wrote it.
#[cfg(test)]
pub fn encode(seed: u64, sequence: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = (content.len() as u32).to_le_bytes().to_vec();
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(content_checksum(seed, sequence, content).to_le_bytes());
    bytes.extend(content);
    bytes
}
