//! The head of a segment: which generation it is, how its records are checked, and how far the tables were.
//!
//! A head stands on the first page twice, half a page apart, and is written in one go. A bit that flips later spoils one
//! of the two at most, and so does a loss of power while a file is begun anew: sectors are written whole. Of two
//! heads that read back the one with the higher generation counts, because the other is of the file's last life.
//!
//! The head also says how long the file is. It has that length before it gets its head, so a file that is shorter
//! was cut off by something else.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::super::Keyspace;
use super::record::{END_BYTES, RECORDS_AT, Tags, number};

const KEYSPACES: usize = Keyspace::ALL.len();
const MAGIC: &[u8; 8] = b"ORRERYJ2";
/// Of the format before: one copy, without a length; see `old`.
const OLD_MAGIC: &[u8; 8] = b"ORRERYJ1";
/// Where the two copies stand.
const PLACES: [usize; 2] = [0, 2048];
/// Magic, four numbers, a floor for each keyspace, checksum.
const HEAD_BYTES: usize = 8 + 4 * 8 + 8 * KEYSPACES + 8;
const OLD_HEAD_BYTES: usize = HEAD_BYTES - 8;

/// How the records of a segment look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// That of the first release of the journal, which is only read.
    Old,
    Current,
}

/// What stands at the start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub format: Format,
    /// One more than that of the segment before.
    pub generation: u64,
    /// Seeds the checksums of the segment's records.
    pub seed: u64,
    /// The last sequence number of the segments before.
    pub previous: u64,
    /// The file was at least so long when the head was written.
    pub length: u64,
    /// For each keyspace, the first sequence number that was not in its tables when this was written.
    pub floors: [u64; KEYSPACES],
}

/// A head that was found, and whether both copies of it read back.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundHead {
    pub head: Head,
    pub is_whole: bool,
}

/// Why bytes do not read as a head.
#[derive(Debug, PartialEq, Eq)]
pub enum NoHead {
    /// The file was created, and nothing was written to it.
    Blank,
    Damaged,
}

impl Head {
    /// The first page of a segment, and the mark behind it that says that no record has come yet.
    pub fn page(&self) -> Vec<u8> {
        let mut page = vec![0; RECORDS_AT as usize + END_BYTES];
        let copy = self.encode();
        for place in PLACES {
            page[place..place + HEAD_BYTES].copy_from_slice(&copy);
        }
        page[RECORDS_AT as usize..].copy_from_slice(&Tags::of(self.seed).end);
        page
    }

    fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let numbers = [self.generation, self.seed, self.previous, self.length].into_iter().chain(self.floors);
        for (place, number) in bytes[8..HEAD_BYTES - 8].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64_with_seed(&bytes[..HEAD_BYTES - 8], 0);
        bytes[HEAD_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the head from the first page of a file.
    pub fn find(page: &[u8]) -> Result<FoundHead, NoHead> {
        let copies = PLACES.map(|place| page.get(place..place + HEAD_BYTES).and_then(Head::decode));
        if let Some(head) = copies.into_iter().flatten().max_by_key(|head| head.generation) {
            return Ok(FoundHead { head, is_whole: copies.iter().all(Option::is_some) });
        }
        if let Some(head) = page.get(..OLD_HEAD_BYTES).and_then(Head::decode_old) {
            return Ok(FoundHead { head, is_whole: true });
        }
        match page.iter().take(RECORDS_AT as usize).all(|byte| *byte == 0) {
            true => Err(NoHead::Blank),
            false => Err(NoHead::Damaged),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Head> {
        let mut numbers = checked(bytes, MAGIC)?;
        let (generation, seed) = (numbers.next()?, numbers.next()?);
        let (previous, length) = (numbers.next()?, numbers.next()?);
        let mut floors = [0; KEYSPACES];
        for floor in &mut floors {
            *floor = numbers.next()?;
        }
        Some(Head { format: Format::Current, generation, seed, previous, length, floors })
    }

    fn decode_old(bytes: &[u8]) -> Option<Head> {
        let mut numbers = checked(bytes, OLD_MAGIC)?;
        let (generation, seed, previous) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let mut floors = [0; KEYSPACES];
        for floor in &mut floors {
            *floor = numbers.next()?;
        }
        Some(Head { format: Format::Old, generation, seed, previous, length: 0, floors })
    }

    #[cfg(test)]
    pub fn copy(&self) -> [u8; HEAD_BYTES] {
        self.encode()
    }

    /// As the format before wrote it.
    #[cfg(test)]
    pub fn encode_old(&self) -> Vec<u8> {
        let mut bytes = OLD_MAGIC.to_vec();
        let numbers = [self.generation, self.seed, self.previous].into_iter().chain(self.floors);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        let checksum = xxh3_64_with_seed(&bytes, 0);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}

/// The numbers of a head, if it has the magic and its checksum is right.
fn checked<'a>(bytes: &'a [u8], magic: &[u8; 8]) -> Option<impl Iterator<Item = u64> + use<'a>> {
    let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    let is_ours = content.get(..8)? == magic && xxh3_64_with_seed(content, 0) == number(checksum);
    is_ours.then(|| content[8..].chunks_exact(8).map(number))
}
