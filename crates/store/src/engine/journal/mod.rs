//! The journal: every batch is here before anybody sees it, and stays until it is in tables.
//!
//! It is a few files of fixed size, the segments, that are written over again and again. A batch that
//! goes into a file whose blocks exist already needs no change to the file system's own books, so a
//! sync of it does not wait for those of other files: that is half the time of a sync, and spares
//! commits the worst of what flushes and merges do to the disk. No file is renamed or deleted either,
//! and where another one is needed, it is made and filled with zeros ahead of time.
//!
//! ```text
//!   journal/0   | head, generation 7 | record | record | record | end |  zeros, or records of an earlier life
//!   journal/1   | head, generation 6 | record | record | ...     full                                      |
//!   journal/2   | head, generation 5 | ...   not needed any more: the next to be written over              |
//!   mark        | generation 7, byte 81,920: durable up to here
//! ```
//!
//! A segment's head has a generation, which orders the segments, and tells how far each keyspace was
//! in tables when the segment was begun. After a kill the segments are read in that order, and all
//! that may not be in tables is applied again. A segment is synced before the next is begun, so only
//! the newest can end in the middle of a record. Even there the end is not taken on trust: each record says up to
//! where its segment was durable when it was written, and a note beside the journal says it after each sync.
//! What does not read back and was durable is damage, and the journal is refused; see `open`.

#[cfg(test)]
pub(super) mod golden;
mod head;
mod mark;
mod old;
mod open;
mod record;
#[cfg(test)]
pub(super) mod tests;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use self::head::{Format, Head};
use self::mark::{FoundMark, Mark, Point};
use self::open::Remarks;
pub(super) use self::open::check_unused;
use self::record::{END_BYTES, PIECE_BYTES, RECORD_HEAD, RECORDS_AT, Tags};
pub(super) use self::record::{decode_writes, encode_writes};
use super::batch::Write;
use super::{Access, EngineError, Keyspace, TornTail};

/// Free segments that are kept when another one is begun. A burst may have made many.
const FREE_MAX: usize = 3;
/// Another segment is made ready when the active one has grown to this part of its size and none is free.
const SPARE_AT_PART: u64 = 4;
/// The buffer for one record is given back when it was this much larger than usual.
const BUFFER_BYTES: usize = 4 << 20;

/// For each keyspace, the first sequence number that is not in its tables.
pub(super) type Floors = [u64; Keyspace::ALL.len()];

/// Where a journal is, and how large its segments are.
#[derive(Clone, Debug)]
pub(super) struct JournalPlace {
    folder: PathBuf,
    /// The file that tells how far the journal is durable.
    mark: PathBuf,
    /// A segment is left for the next one when it has grown to this.
    segment_bytes: u64,
}

pub(super) struct Journal {
    place: JournalPlace,
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
    /// Whether the newest segment is of the present format.
    has_current_format: bool,
    remarks: Remarks,
    /// Up to here everything is durable.
    durable: Point,
    /// None where the journal is only looked at.
    mark: Option<Mark>,
}

/// A file of the journal that may be written over.
pub(super) struct Spare {
    path: PathBuf,
    file: File,
}

/// What is not durable yet of the journal, to be synced while commits go on.
///
/// The file is opened anew for it: the system tells of a failed write once for each time that a file was opened, and the
/// committer must be told of its own.
#[must_use = "nothing is durable before it is synced"]
pub(super) struct Unsynced {
    path: PathBuf,
    upto: Point,
}

impl Unsynced {
    pub fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        tests::while_syncing();
        File::open(&self.path)?.sync_data()
    }
}

struct Segment {
    spare: Spare,
    generation: u64,
    seed: u64,
    tags: Tags,
    /// Where the next record goes.
    end: u64,
    /// Up to here it is durable.
    synced: u64,
    /// The last sequence number in it.
    last: u64,
    /// Whether something was written since the last sync.
    is_dirty: bool,
}

impl Segment {
    /// Its end.
    fn point(&self) -> Point {
        Point { generation: self.generation, offset: self.end, sequence: self.last }
    }

    /// Writes a record of about so many bytes behind the last one; returns its length.
    fn write(&self, buffer: &mut Vec<u8>, bytes: u64, sequence: u64, writes: &[Write]) -> io::Result<u64> {
        let (keys, place) = ((self.seed, &self.tags), (self.end, self.synced));
        let file = &self.spare.file;
        if bytes > PIECE_BYTES as u64 {
            let mut put = |at: u64, piece: &[u8]| file.write_all_at(piece, self.end + at);
            return record::encode_in_pieces(buffer, keys, place, sequence, writes, &mut put);
        }
        record::encode(buffer, keys, place, sequence, writes).ok_or(io::ErrorKind::FileTooLarge)?;
        file.write_all_at(buffer, self.end)?;
        Ok((buffer.len() - END_BYTES) as u64)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.spare.file.sync_data()?;
            self.is_dirty = false;
            self.synced = self.end;
        }
        Ok(())
    }
}

impl Journal {
    /// What was left out when the journal was opened, because it had never been durable.
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.remarks.torn.as_ref()
    }

    /// What else was not as it should be.
    pub fn remarks(&self) -> &[String] {
        &self.remarks.others
    }

    /// Whether the newest segment is of the present format.
    pub fn has_current_format(&self) -> bool {
        self.has_current_format
    }

    /// The generation and the sequence number up to which it is durable.
    pub fn durable(&self) -> (u64, u64) {
        (self.durable.generation, self.durable.sequence)
    }

    /// That of the newest segment.
    pub fn generation(&self) -> u64 {
        self.generation
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
        let bytes = (RECORD_HEAD + bytes + END_BYTES) as u64;
        let fits = |segment: &Segment| segment.end + bytes <= self.place.segment_bytes;
        let is_unused = |segment: &Segment| segment.end == RECORDS_AT;
        if !self.active.as_ref().is_some_and(|segment| fits(segment) || is_unused(segment)) {
            self.begin_segment(floors)?;
        }
        let Some(segment) = &mut self.active else { return Err(io::ErrorKind::NotFound.into()) };
        self.buffer.clear();
        segment.is_dirty = true;
        segment.end += segment.write(&mut self.buffer, bytes, sequence, writes)?;
        segment.last = sequence;
        self.last = sequence;
        self.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }

    pub fn sync(&mut self) -> io::Result<()> {
        self.check_syncs()?;
        let Some(segment) = self.active.as_mut().filter(|segment| segment.is_dirty) else { return Ok(()) };
        let durable = segment.point();
        let synced = segment.sync().and_then(|()| self.set_mark(durable));
        self.has_failed |= synced.is_err();
        synced
    }

    /// What another thread than the committer has to sync; none if everything is durable.
    pub fn unsynced(&self) -> io::Result<Option<Unsynced>> {
        self.check_syncs()?;
        let dirty = self.active.as_ref().filter(|segment| segment.is_dirty);
        Ok(dirty.map(|segment| Unsynced { path: segment.spare.path.clone(), upto: segment.point() }))
    }

    /// Notes how that went. The committer may have come further meanwhile, or have failed.
    pub fn synced(&mut self, unsynced: &Unsynced, result: io::Result<()>) -> io::Result<()> {
        self.has_failed |= result.is_err();
        result?;
        self.check_syncs()?;
        let Unsynced { upto, .. } = unsynced;
        if upto.sequence <= self.durable.sequence {
            return Ok(());
        }
        if let Some(segment) = self.active.as_mut().filter(|segment| segment.generation == upto.generation) {
            segment.synced = segment.synced.max(upto.offset);
            segment.is_dirty = segment.end > segment.synced;
        }
        let marked = self.set_mark(*upto);
        self.has_failed |= marked.is_err();
        marked
    }

    fn check_syncs(&self) -> io::Result<()> {
        match self.has_failed {
            true => Err(io::Error::other("an earlier sync of the journal failed")),
            false => Ok(()),
        }
    }

    fn set_mark(&mut self, durable: Point) -> io::Result<()> {
        self.durable = durable;
        self.mark.as_mut().map_or(Ok(()), |mark| mark.set(durable))
    }

    /// The file that tells how far the journal is durable, if it should be synced, which need not be soon.
    pub fn mark_to_sync(&mut self) -> Option<Arc<File>> {
        self.mark.as_mut().and_then(Mark::take_dirty)
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
        let length = self.place.segment_bytes;
        let head =
            Head { format: Format::Current, generation, seed, previous: self.last, length, floors: *floors };
        let prepared = fit(&spare.file, length).and_then(|()| spare.file.write_all_at(&head.page(), 0));
        if let Err(error) = prepared {
            self.free.push_front(spare);
            return Err(error);
        }
        // Before the first record: a record must never stand behind the head of the file's last life.
        self.sync_file(&spare.file)?;
        self.generation = generation;
        self.has_current_format = true;
        let marked = self.set_mark(Point { generation, offset: RECORDS_AT, sequence: self.last });
        self.has_failed |= marked.is_err();
        marked?;
        // The head before this one may still have asked for what they hold; this one does not.
        let kept = self.free.len().min(FREE_MAX);
        self.surplus.extend(self.free.drain(kept..));
        let segment = Segment {
            spare,
            generation,
            seed,
            tags: Tags::of(seed),
            end: RECORDS_AT,
            synced: RECORDS_AT,
            last: self.last,
            is_dirty: false,
        };
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
        let file = create(&path)?;
        fit(&file, self.place.segment_bytes)?;
        File::open(&self.place.folder)?.sync_all()?;
        Ok(Spare { path, file })
    }

    /// Where to make another segment, if there will soon be need of one: the place is taken for it. It
    /// is made by [`Spare::make`] while commits go on, and then given to [`Journal::add_spare`].
    pub fn place_for_spare(&mut self) -> Option<(PathBuf, u64)> {
        let active = self.active.as_ref()?;
        let is_full = active.end >= self.place.segment_bytes / SPARE_AT_PART;
        let is_due = self.free.is_empty() && is_full && self.spare_for != self.generation;
        // Once in the life of a segment: where there is no room, asking again and again would not help.
        self.spare_for = if is_due { self.generation } else { self.spare_for };
        is_due.then(|| (self.next_path(), self.place.segment_bytes))
    }

    pub fn add_spare(&mut self, spare: Spare) {
        self.free.push_back(spare);
    }

    /// The place of another file; none is given twice.
    fn next_path(&mut self) -> PathBuf {
        let path = self.place.folder.join(self.files.to_string());
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

/// Whether the journal in a folder was ever written in the present format.
pub(super) fn was_ever_current(folder: &Path, mark: &Path) -> Result<bool, EngineError> {
    Ok(FoundMark::read(mark)?.point().is_some() || open::has_current_heads(folder)?)
}

impl Write {
    fn journal_bytes(&self) -> usize {
        7 + self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

impl Spare {
    /// Makes a segment whose blocks exist, so that no commit has to wait for them. Nothing is left where
    /// that fails.
    pub fn make((path, bytes): (PathBuf, u64)) -> io::Result<Spare> {
        match fill_with_zeros(&path, bytes) {
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

/// Makes a file of the journal. It is locked as long as it is open: where another process finds it locked, it knows that
/// the directory is in use, even if the file `lock` is gone.
fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    Access::Own.lock(&file, path).map_err(io::Error::other)?;
    Ok(file)
}

fn fill_with_zeros(path: &Path, bytes: u64) -> io::Result<File> {
    let file = create(path)?;
    let zeros = vec![0; 256 << 10];
    for at in (0..bytes).step_by(zeros.len()) {
        let count = zeros.len().min((bytes - at) as usize);
        file.write_all_at(&zeros[..count], at)?;
    }
    file.sync_all()?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// Gives a file the length of a segment. A head promises at least that, so it must be durable before.
fn fit(file: &File, bytes: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length != bytes {
        file.set_len(bytes)?;
    }
    if length < bytes {
        file.sync_all()?;
    }
    Ok(())
}
