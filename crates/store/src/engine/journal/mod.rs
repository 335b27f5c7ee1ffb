//! The journal: every batch is here before anybody sees it, and stays until it is in tables.
//!
//! It is a few files of fixed size, the segments, that are written over again and again. A batch that
//! goes into a file whose blocks exist already needs no change to the file system's own books, so a
//! sync of it does not wait for those of other files: that is half the time of a sync, and spares
//! commits the worst of what flushes and merges do to the disk. No file is renamed or deleted either,
//! and where another one is needed, it is made and filled with zeros ahead of time.
//!
//! A segment's head has a generation, which orders the segments, and tells how far each keyspace was
//! in tables when the segment was begun. After a kill the segments are read in that order, and all
//! that may not be in tables is applied again. A segment is synced before the next is begun, so only
//! the newest can end in the middle of a record; anything else that does not read back is damage.

mod record;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use self::record::{Head, NoHead, RECORD_HEAD, RECORDS_AT, Record};
use super::batch::Write;
use super::{EngineError, Keyspace};

/// A segment is left for the next one when it has grown to this.
pub(super) const SEGMENT_BYTES: u64 = 16 << 20;
/// Free segments that are kept when another one is begun. A burst may have made many.
const FREE_MAX: usize = 3;
/// Another segment is made ready when the active one has grown to this and none is free.
const SPARE_AT: u64 = SEGMENT_BYTES / 4;
/// The buffer for one record is given back when it was this much larger than usual.
const BUFFER_BYTES: usize = 4 << 20;

/// For each keyspace, the first sequence number that is not in its tables.
pub(super) type Floors = [u64; Keyspace::ALL.len()];

pub(super) struct Journal {
    folder: PathBuf,
    /// The segment that batches go to; none until the first batch after the start.
    active: Option<Segment>,
    /// Segments that still hold something that is not in tables, oldest first.
    pinned: VecDeque<Segment>,
    /// Segments that may be written over, those that were begun first in front.
    free: VecDeque<Spare>,
    /// Segments that a burst has left and nobody needs.
    surplus: Vec<Spare>,
    /// The number of the next file.
    files: u64,
    generation: u64,
    /// The last sequence number that was written.
    last: u64,
    buffer: Vec<u8>,
    /// The generation in which a spare segment was asked for last.
    spare_for: u64,
    has_failed: bool,
}

/// A file of the journal that may be written over.
pub(super) struct Spare {
    path: PathBuf,
    file: File,
}

struct Segment {
    spare: Spare,
    seed: u64,
    /// Where the next record goes.
    end: u64,
    /// The last sequence number in it.
    last: u64,
    /// Whether something was written since the last sync.
    is_dirty: bool,
}

impl Segment {
    fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.spare.file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }
}

impl Journal {
    /// Opens the journal in a folder and hands every batch that may not be in tables to `apply`, with
    /// its sequence number and the writes that its keyspaces' tables lack.
    pub fn open(
        folder: &Path,
        apply: impl FnMut(u64, Vec<Write>) -> Result<(), EngineError>,
    ) -> Result<Journal, EngineError> {
        std::fs::create_dir_all(folder)?;
        let Found { mut segments, free, files } = read_heads(folder)?;
        // A killed process may have made files whose names are not on disk yet.
        File::open(folder)?.sync_all()?;
        segments.sort_by_key(|(head, _)| head.generation);
        let newest = segments.last().map(|(head, _)| *head);
        let mut journal = Journal {
            folder: folder.to_owned(),
            active: None,
            pinned: VecDeque::new(),
            free,
            surplus: Vec::new(),
            files,
            generation: newest.map_or(0, |head| head.generation),
            last: newest.map_or(0, |head| head.previous),
            buffer: Vec::new(),
            spare_for: 0,
            has_failed: false,
        };
        if let Some(newest) = newest {
            journal.replay(segments, newest.floors, apply)?;
        }
        Ok(journal)
    }

    fn replay(
        &mut self,
        found: Vec<(Head, Spare)>,
        floors: Floors,
        mut apply: impl FnMut(u64, Vec<Write>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let oldest = floors.into_iter().min().unwrap_or(0);
        let heads: Vec<Head> = found.iter().map(|(head, _)| *head).collect();
        for (index, (head, spare)) in found.into_iter().enumerate() {
            let next = heads.get(index + 1);
            if next.is_some_and(|next| next.previous < oldest) {
                self.free.push_back(spare);
                continue;
            }
            if self.pinned.is_empty() && head.previous >= oldest {
                return Err(damaged(&head, "the segments before it are missing"));
            }
            let segment = read_segment(head, spare, next.is_none(), |record| {
                let writes = record.writes().ok_or_else(|| damaged(&head, "a record that does not parse"))?;
                let lacks = |write: &Write| record.sequence >= floors[write.keyspace as usize];
                let writes: Vec<Write> = writes.into_iter().filter(lacks).collect();
                apply(record.sequence, writes)
            })?;
            if let Some(next) = next
                && (next.generation != head.generation + 1 || next.previous != segment.last)
            {
                return Err(damaged(&head, "it does not go on to the segment that follows"));
            }
            self.last = segment.last;
            self.pinned.push_back(segment);
        }
        Ok(())
    }

    /// The last sequence number that was written.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Writes a batch down. It is durable after the next `sync`. After an error the batch is not part
    /// of the journal, and the next one takes its place.
    pub fn append(&mut self, sequence: u64, writes: &[Write], floors: &Floors) -> io::Result<()> {
        debug_assert!(sequence > self.last, "sequence numbers grow");
        let bytes: usize = writes.iter().map(Write::journal_bytes).sum();
        let fits = |segment: &Segment| segment.end + (RECORD_HEAD + bytes) as u64 <= SEGMENT_BYTES;
        let is_unused = |segment: &Segment| segment.end == RECORDS_AT;
        if !self.active.as_ref().is_some_and(|segment| fits(segment) || is_unused(segment)) {
            self.begin_segment(floors)?;
        }
        let Some(segment) = &mut self.active else { return Err(io::ErrorKind::NotFound.into()) };
        self.buffer.clear();
        let encoded = record::encode(&mut self.buffer, segment.seed, sequence, writes);
        encoded.ok_or(io::ErrorKind::FileTooLarge)?;
        segment.is_dirty = true;
        segment.spare.file.write_all_at(&self.buffer, segment.end)?;
        segment.end += self.buffer.len() as u64;
        segment.last = sequence;
        self.last = sequence;
        self.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }

    pub fn sync(&mut self) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier sync of the journal failed"));
        }
        let synced = self.active.as_mut().map_or(Ok(()), Segment::sync);
        self.has_failed |= synced.is_err();
        synced
    }

    /// Whether a sync failed. Nobody knows then what is on disk, and another sync would not tell.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Goes on in another segment, whose head tells how far the tables are.
    pub fn begin_segment(&mut self, floors: &Floors) -> io::Result<()> {
        self.sync()?;
        let spare = match self.free.pop_front() {
            Some(spare) => spare,
            None => self.create_file()?,
        };
        let (generation, seed) = (self.generation + 1, RandomState::new().hash_one(self.generation));
        let head = Head { generation, seed, previous: self.last, floors: *floors };
        if let Err(error) = spare.file.write_all_at(&head.encode(), 0) {
            self.free.push_front(spare);
            return Err(error);
        }
        // Before the first record: a record must never stand behind the head of the file's last life.
        self.sync_file(&spare.file)?;
        // A batch that was larger than a segment leaves a file that is too long.
        if spare.file.metadata().is_ok_and(|metadata| metadata.len() > SEGMENT_BYTES) {
            let _ = spare.file.set_len(SEGMENT_BYTES);
        }
        self.generation = generation;
        // The head before this one may still have asked for what they hold; this one does not.
        let kept = self.free.len().min(FREE_MAX);
        self.surplus.extend(self.free.drain(kept..));
        let segment = Segment { spare, seed, end: RECORDS_AT, last: self.last, is_dirty: false };
        self.pinned.extend(self.active.replace(segment));
        Ok(())
    }

    /// Files to be deleted; see [`Spare::delete`].
    pub fn take_surplus(&mut self) -> Vec<Spare> {
        std::mem::take(&mut self.surplus)
    }

    fn sync_file(&mut self, file: &File) -> io::Result<()> {
        let synced = file.sync_data();
        self.has_failed |= synced.is_err();
        synced
    }

    fn create_file(&mut self) -> io::Result<Spare> {
        let path = self.next_path();
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(Spare { path, file })
    }

    /// Where to make another segment, if there will soon be need of one: the place is taken for it. It
    /// is made by [`Spare::make`] while commits go on, and then given to [`Journal::add_spare`].
    pub fn place_for_spare(&mut self) -> Option<PathBuf> {
        let active = self.active.as_ref()?;
        let is_due = self.free.is_empty() && active.end >= SPARE_AT && self.spare_for != self.generation;
        // Once in the life of a segment: where there is no room, asking again and again would not help.
        self.spare_for = if is_due { self.generation } else { self.spare_for };
        is_due.then(|| self.next_path())
    }

    pub fn add_spare(&mut self, spare: Spare) {
        self.free.push_back(spare);
    }

    /// The place of another file; none is given twice.
    fn next_path(&mut self) -> PathBuf {
        let path = self.folder.join(self.files.to_string());
        self.files += 1;
        path
    }

    /// Frees the segments that hold nothing of this sequence number and those after it.
    pub fn free_before(&mut self, oldest: u64) {
        while self.pinned.front().is_some_and(|segment| segment.last < oldest) {
            self.free.extend(self.pinned.pop_front().map(|segment| segment.spare));
        }
    }

    /// The first sequence number behind the oldest segment, if so many segments are held that their
    /// content should go to tables.
    pub fn overdue(&self, segments_max: usize) -> Option<u64> {
        let oldest = self.pinned.front().filter(|_| self.pinned.len() > segments_max)?;
        Some(oldest.last + 1)
    }

    /// Bytes that a start would read.
    pub fn bytes(&self) -> u64 {
        self.pinned.iter().chain(&self.active).map(|segment| segment.end).sum()
    }
}

impl Write {
    fn journal_bytes(&self) -> usize {
        7 + self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

impl Spare {
    /// Makes a segment whose blocks exist, so that no commit has to wait for them. Nothing is left where
    /// that fails.
    pub fn make(path: PathBuf) -> io::Result<Spare> {
        match fill_with_zeros(&path) {
            Ok(file) => Ok(Spare { path, file }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// A file that cannot be deleted is used again after the next start.
    pub fn delete(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn fill_with_zeros(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    let zeros = vec![0; 256 << 10];
    for at in (0..SEGMENT_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// The files of a journal.
#[derive(Default)]
struct Found {
    segments: Vec<(Head, Spare)>,
    /// Those that were never used.
    free: VecDeque<Spare>,
    /// The number of the next file.
    files: u64,
}

fn read_heads(folder: &Path) -> Result<Found, EngineError> {
    let mut found = Found::default();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok()) else {
            continue;
        };
        let Some(next) = number.checked_add(1) else {
            return Err(EngineError::Corrupt(format!("{} is no file of the journal", path.display())));
        };
        found.files = found.files.max(next);
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let mut bytes = Vec::new();
        (&file).take(RECORDS_AT).read_to_end(&mut bytes)?;
        match Head::decode(&bytes) {
            Ok(head) => found.segments.push((head, Spare { path, file })),
            Err(NoHead::Blank) => found.free.push_back(Spare { path, file }),
            Err(NoHead::Damaged) => {
                let what = format!("the head of the journal segment {}", path.display());
                return Err(EngineError::Corrupt(what));
            }
        }
    }
    Ok(found)
}

/// Reads a segment to its end and gives it back as one that is full. The newest one, its head too, was perhaps
/// never synced: what a killed process left to the system is written again, so that what is built on it from now
/// on cannot outlive it.
fn read_segment(
    head: Head,
    mut spare: Spare,
    is_newest: bool,
    mut take: impl FnMut(&Record) -> Result<(), EngineError>,
) -> Result<Segment, EngineError> {
    let mut bytes = Vec::new();
    spare.file.seek(SeekFrom::Start(RECORDS_AT))?;
    spare.file.read_to_end(&mut bytes)?;
    let all = Bytes::from(bytes);
    let mut bytes = all.clone();
    let mut last = head.previous;
    while let Some(record) = Record::take(&mut bytes, head.seed) {
        if record.sequence <= last {
            return Err(damaged(&head, "records are not in their order"));
        }
        take(&record)?;
        last = record.sequence;
    }
    let read = all.len() - bytes.len();
    if is_newest {
        spare.file.write_all_at(&head.encode(), 0)?;
        spare.file.write_all_at(&all[..read], RECORDS_AT)?;
        spare.file.sync_data()?;
    }
    let end = RECORDS_AT + read as u64;
    Ok(Segment { spare, seed: head.seed, end, last, is_dirty: false })
}

fn damaged(head: &Head, what: &str) -> EngineError {
    EngineError::Corrupt(format!("journal segment of generation {}: {what}", head.generation))
}
