//! How far the journal is durable, noted outside of it.
//!
//! A segment alone cannot tell that its end was cut off, that it was put back to an older copy, or that there was
//! another one after it. So after each sync a small file beside the journal is told up to where the journal is durable. It is
//! written in place and synced at rest only: after a kill the system still has the last mark, and after a loss of power an
//! older one, which asks for less. It never asks for more than there must be.
//!
//! Where it is damaged or missing itself, the journal is read without it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::record::number;

const MAGIC: &[u8; 8] = b"ORRERYK1";
const BYTES: usize = 8 + 3 * 8 + 8;

/// A place of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Of the segment.
    pub generation: u64,
    /// In the segment.
    pub offset: u64,
    /// The last sequence number before it.
    pub sequence: u64,
}

/// What a file of marks holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundMark {
    Missing,
    Damaged,
    Durable(Point),
}

impl FoundMark {
    pub fn read(path: &Path) -> io::Result<FoundMark> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => drop(file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundMark::Missing),
            Err(error) => return Err(error),
        }
        Ok(decode(&bytes).map_or(FoundMark::Damaged, FoundMark::Durable))
    }

    pub fn point(self) -> Option<Point> {
        match self {
            FoundMark::Durable(point) => Some(point),
            FoundMark::Missing | FoundMark::Damaged => None,
        }
    }
}

pub struct Mark {
    file: Arc<File>,
    /// Whether it was written since it was asked for a sync last.
    is_dirty: bool,
}

impl Mark {
    pub fn open(path: &Path) -> io::Result<Mark> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        Ok(Mark { file: Arc::new(file), is_dirty: false })
    }

    pub fn set(&mut self, point: Point) -> io::Result<()> {
        self.is_dirty = true;
        self.file.write_all_at(&encode(point), 0)
    }

    /// The file, if there is something in it to be synced.
    pub fn take_dirty(&mut self) -> Option<Arc<File>> {
        std::mem::take(&mut self.is_dirty).then(|| Arc::clone(&self.file))
    }
}

fn encode(point: Point) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    let numbers = [point.generation, point.offset, point.sequence];
    for (place, number) in bytes[8..BYTES - 8].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let checksum = xxh3_64(&bytes[..BYTES - 8]);
    bytes[BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Point> {
    let (content, checksum) = bytes.get(..BYTES)?.split_at(BYTES - 8);
    let is_ours = bytes.len() == BYTES && &content[..8] == MAGIC && xxh3_64(content) == number(checksum);
    is_ours.then(|| Point {
        generation: number(&content[8..16]),
        offset: number(&content[16..24]),
        sequence: number(&content[24..32]),
    })
}

/// For `docs/format.md`.
#[cfg(test)]
pub fn golden() -> [u8; BYTES] {
    encode(Point { generation: 2, offset: 3, sequence: 4 })
}

#[cfg(test)]
pub fn again(bytes: &[u8]) -> Option<Vec<u8>> {
    decode(bytes).map(|point| encode(point).to_vec())
}
