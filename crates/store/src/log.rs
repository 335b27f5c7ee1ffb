//! Entries of the replicated log: what one partition hands to its copies, here and in other regions.
//!
//! The entry of a group is a *commit*: the evaluated net effect of a group of transactions, as the bytes that it puts and
//! deletes ([`crate::Prepared::commit`]). The replica that applies it inserts bytes and works nothing out, so copies of different
//! builds cannot come to different states; the same group gives the same bytes whenever it is worked out. Nothing keeps entries yet.
//!
//! ```text
//! format u8 | kind u8 | epoch u32 | region u16 | first lsn u64 | last lsn u64 | time u64 | payload | checksum u64
//! ```

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::Lsn;
use crate::engine::Batch;
use crate::item::{read_u16, read_u32, read_u64};

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 1 + 1 + 4 + 2 + 8 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The net effect of a group of transactions: a batch.
    Group = 1,
    /// A step of building an index, which each copy takes by itself.
    BuildStep = 2,
    /// Other indexes: a record `V`.
    Schema = 3,
    /// Others take the partition's place.
    Split = 4,
    /// No group follows until the partition is thawed.
    Freeze = 5,
    Thaw = 6,
    /// The first entry of a new leader.
    Noop = 7,
}

impl EntryKind {
    pub const ALL: [EntryKind; 7] = [
        EntryKind::Group,
        EntryKind::BuildStep,
        EntryKind::Schema,
        EntryKind::Split,
        EntryKind::Freeze,
        EntryKind::Thaw,
        EntryKind::Noop,
    ];
}

/// What a group of transactions comes to: all that a copy of the partition needs of it.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Of the partition when the group was worked out.
    pub epoch: u32,
    /// Where that was.
    pub region: u16,
    /// The transactions that it holds, as in [`LogEntry`].
    pub first: Lsn,
    pub last: Lsn,
    /// The time of the last of them, in units of 100 ns since 1970.
    pub time: u64,
    pub batch: Batch,
}

impl Commit {
    pub fn entry(&self) -> LogEntry {
        LogEntry {
            kind: EntryKind::Group,
            epoch: self.epoch,
            region: self.region,
            first: self.first,
            last: self.last,
            time: self.time,
            payload: self.batch.encode().into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub kind: EntryKind,
    /// Of the partition when the entry was made.
    pub epoch: u32,
    /// Where it was made.
    pub region: u16,
    /// The transactions that it holds, from the first to the last; for an entry without any, the last before it, twice.
    pub first: Lsn,
    pub last: Lsn,
    /// When it was made, in units of 100 ns since 1970.
    pub time: u64,
    pub payload: Bytes,
}

impl LogEntry {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES + self.payload.len() + CHECKSUM_BYTES);
        out.extend_from_slice(&[FORMAT, self.kind as u8]);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&self.region.to_be_bytes());
        for number in [self.first.0, self.last.0, self.time] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.payload);
        let checksum = xxh3_64(&out);
        out.extend_from_slice(&checksum.to_be_bytes());
        out
    }

    /// `None` when the bytes are damaged, or an entry of a format or kind that this build does not know.
    pub fn decode(bytes: &Bytes) -> Option<LogEntry> {
        let end = bytes.len().checked_sub(CHECKSUM_BYTES).filter(|end| *end >= HEAD_BYTES)?;
        if bytes[0] != FORMAT || xxh3_64(&bytes[..end]) != read_u64(bytes, end) {
            return None;
        }
        Some(LogEntry {
            kind: EntryKind::ALL.into_iter().find(|kind| *kind as u8 == bytes[1])?,
            epoch: read_u32(bytes, 2),
            region: read_u16(bytes, 6),
            first: Lsn(read_u64(bytes, 8)),
            last: Lsn(read_u64(bytes, 16)),
            time: read_u64(bytes, 24),
            payload: bytes.slice(HEAD_BYTES..end),
        })
    }

    /// The commit of a group, if it is one.
    pub fn commit(&self) -> Option<Commit> {
        let LogEntry { kind, epoch, region, first, last, time, .. } = *self;
        let batch = (kind == EntryKind::Group).then(|| Batch::decode(&self.payload)).flatten()?;
        Some(Commit { epoch, region, first, last, time, batch })
    }
}
