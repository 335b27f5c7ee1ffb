//! Reading a journal back: what is the end, and what is damage.
//!
//! A segment is synced before the next is begun, whose head names its last sequence number. So all but the newest must
//! read back whole as far as they are needed. The newest ends where no record reads back, and there are three reasons for it:
//!
//! - *The end.* The end mark stands there.
//! - *A torn end.* The process or the machine stopped in the middle of a write. Nothing from there on was ever
//!   known to be durable, so nobody was told of it, or only under `relaxed` durability. It is left out and reported.
//! - *Damage.* The place was durable once: a later record says so, or the mark beside the journal. Leaving it out would undo
//!   what clients were told, so the journal is refused.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::super::batch::Write;
use super::super::error::damage;
use super::super::{Access, EngineError, TornTail};
use super::head::{Format, FoundHead, Head, NoHead};
use super::mark::{FoundMark, Mark, Point};
use super::record::{RECORDS_AT, Record, Tags, durable_by_later};
use super::{Floors, Journal, JournalPlace, Segment, Spare, old};

/// What is told to the operator of a journal that was opened all the same.
#[derive(Default)]
pub struct Remarks {
    pub torn: Option<TornTail>,
    pub others: Vec<String>,
}

/// Gets each batch that may not be in tables, with its sequence number.
pub type Apply<'a> = &'a mut dyn FnMut(u64, Vec<Write>) -> Result<(), EngineError>;

impl Journal {
    /// Opens the journal in a folder and hands every batch that may not be in tables to `apply`, with
    /// its sequence number and the writes that its keyspaces' tables lack.
    pub fn open(place: &JournalPlace, access: Access, apply: Apply<'_>) -> Result<Journal, EngineError> {
        if access == Access::Own {
            std::fs::create_dir_all(&place.folder)?;
        }
        let mut found = match place.folder.exists() {
            true => read_heads(&place.folder, access)?,
            false => Found::default(),
        };
        if access == Access::Own {
            // A killed process may have made files whose names are not on disk yet.
            File::open(&place.folder)?.sync_all()?;
        }
        found.segments.sort_by_key(|segment| segment.head.generation);
        let newest = found.segments.last().map(|segment| segment.head);
        let mark = FoundMark::read(&place.mark)?;
        let mut journal = Journal {
            place: place.clone(),
            active: None,
            pinned: VecDeque::new(),
            free: std::mem::take(&mut found.free),
            surplus: Vec::new(),
            files: found.files,
            generation: newest.map_or(0, |head| head.generation),
            last: newest.map_or(0, |head| head.previous),
            buffer: Vec::new(),
            spare_for: 0,
            has_failed: false,
            has_current_format: newest.is_some_and(|head| head.format == Format::Current),
            remarks: Remarks::default(),
            durable: Point { generation: 0, offset: 0, sequence: 0 },
            mark: None,
        };
        journal.judge_mark(mark, newest)?;
        journal.judge_unreadable(found.unreadable, mark)?;
        if let Some(newest) = newest {
            journal.replay(found.segments, newest.floors, mark.point(), access, apply)?;
        }
        journal.durable = journal.end();
        Ok(journal)
    }

    /// From now on the file beside the journal is told how far it is durable.
    pub fn keep_mark(&mut self) -> io::Result<()> {
        let is_new = !self.place.mark.exists();
        self.mark = Some(Mark::open(&self.place.mark)?);
        self.set_mark(self.durable)?;
        match self.mark_to_sync().filter(|_| is_new) {
            Some(file) => file.sync_all(),
            None => Ok(()),
        }
    }

    /// What a start has read and made durable.
    fn end(&self) -> Point {
        let offset = self.pinned.back().map_or(0, |segment| segment.end);
        Point { generation: self.generation, offset, sequence: self.last }
    }

    fn judge_mark(&mut self, mark: FoundMark, newest: Option<Head>) -> Result<(), EngineError> {
        let path = &self.place.mark;
        match mark {
            FoundMark::Durable(point) if point.generation > self.generation => {
                let what = format!(
                    "the journal's segment of generation {}, durable up to byte {} and sequence number {}, is missing, or \
                     its head is",
                    point.generation, point.offset, point.sequence
                );
                Err(damage(&self.place.folder, None, &what))
            }
            FoundMark::Durable(_) => Ok(()),
            // A directory that is new, or of the build before, has none.
            FoundMark::Missing if newest.is_none_or(|head| head.format == Format::Old) => Ok(()),
            FoundMark::Missing | FoundMark::Damaged => {
                let text = format!(
                    "{}: the note of how far the journal is durable is missing or does not read back; a cut-off \
                     end of the journal would not be noticed at this start",
                    path.display()
                );
                self.remarks.others.push(text);
                Ok(())
            }
        }
    }

    /// A file without a readable head is not needed if the mark says that all that is needed has been found.
    fn judge_unreadable(&mut self, files: Vec<Spare>, mark: FoundMark) -> Result<(), EngineError> {
        for spare in files {
            if mark.point().is_none() {
                return Err(damage(
                    &spare.path,
                    Some(0),
                    "the head of the journal segment does not read back",
                ));
            }
            let text = format!("{}: the head of an unused journal segment is damaged", spare.path.display());
            self.remarks.others.push(text);
            self.free.push_back(spare);
        }
        Ok(())
    }

    fn replay(
        &mut self,
        found: Vec<FoundSegment>,
        floors: Floors,
        mark: Option<Point>,
        access: Access,
        apply: Apply<'_>,
    ) -> Result<(), EngineError> {
        let oldest = floors.into_iter().min().unwrap_or(0);
        let heads: Vec<Head> = found.iter().map(|segment| segment.head).collect();
        for (index, FoundSegment { head, is_whole, spare }) in found.into_iter().enumerate() {
            if !is_whole {
                let path = spare.path.display();
                self.remarks
                    .others
                    .push(format!("{path}: one of two copies of the segment's head is damaged"));
            }
            let next = heads.get(index + 1);
            if next.is_some_and(|next| next.previous < oldest) {
                self.free.push_back(spare);
                continue;
            }
            if self.pinned.is_empty() && head.previous >= oldest {
                return Err(damage(&spare.path, None, "journal segments before this one are missing"));
            }
            let mut content = Content::read(head, spare)?;
            content.apply(&floors, apply)?;
            match next {
                Some(next) => content.check_followed_by(next)?,
                None => self.remarks.torn = content.judge_end(mark)?,
            }
            if next.is_none() && access == Access::Own {
                content.write_again()?;
            }
            self.last = content.last;
            self.pinned.push_back(content.into_segment());
        }
        Ok(())
    }
}

/// The files of a journal.
#[derive(Default)]
struct Found {
    segments: Vec<FoundSegment>,
    /// Those that were never used.
    free: VecDeque<Spare>,
    /// Those whose heads do not read back.
    unreadable: Vec<Spare>,
    /// The number of the next file.
    files: u64,
}

struct FoundSegment {
    head: Head,
    is_whole: bool,
    spare: Spare,
}

fn read_heads(folder: &Path, access: Access) -> Result<Found, EngineError> {
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
        let file = OpenOptions::new().read(true).write(access == Access::Own).open(&path)?;
        access.lock(&file, folder.parent().unwrap_or(folder))?;
        let mut page = Vec::new();
        (&file).take(RECORDS_AT).read_to_end(&mut page)?;
        let spare = Spare { path, file };
        match Head::find(&page) {
            Ok(FoundHead { head, is_whole }) => found.segments.push(FoundSegment { head, is_whole, spare }),
            Err(NoHead::Blank) => found.free.push_back(spare),
            Err(NoHead::Damaged) => found.unreadable.push(spare),
        }
    }
    Ok(found)
}

/// Whether no other process uses the journal in a folder.
pub fn check_unused(folder: &Path, access: Access) -> Result<(), EngineError> {
    if folder.exists() {
        for entry in std::fs::read_dir(folder)? {
            access.lock(&File::open(entry?.path())?, folder.parent().unwrap_or(folder))?;
        }
    }
    Ok(())
}

/// Whether a folder has segments of the present format.
pub fn has_current_heads(folder: &Path) -> Result<bool, EngineError> {
    let found = if folder.exists() { read_heads(folder, Access::Look)? } else { Found::default() };
    Ok(found.segments.iter().any(|segment| segment.head.format == Format::Current))
}

/// A segment that is read back.
struct Content {
    head: Head,
    tags: Tags,
    spare: Spare,
    /// All bytes from the first record on.
    all: Bytes,
    /// How many of them are records that were read.
    read: usize,
    last: u64,
}

impl Content {
    fn read(head: Head, mut spare: Spare) -> Result<Content, EngineError> {
        let mut bytes = Vec::new();
        spare.file.seek(SeekFrom::Start(RECORDS_AT))?;
        spare.file.read_to_end(&mut bytes)?;
        let length = RECORDS_AT + bytes.len() as u64;
        if length < head.length {
            let what = format!("the journal segment is cut off: it was {} bytes long", head.length);
            return Err(damage(&spare.path, Some(length), &what));
        }
        let (tags, last) = (Tags::of(head.seed), head.previous);
        Ok(Content { head, tags, spare, all: Bytes::from(bytes), read: 0, last })
    }

    /// The place in the file behind the last record that was read.
    fn end(&self) -> u64 {
        RECORDS_AT + self.read as u64
    }

    fn damaged(&self, what: &str) -> EngineError {
        damage(&self.spare.path, Some(self.end()), what)
    }

    /// Reads all records and hands on what tables lack of them.
    fn apply(&mut self, floors: &Floors, apply: Apply<'_>) -> Result<(), EngineError> {
        let mut rest = self.all.clone();
        loop {
            let record = match self.head.format {
                Format::Current => Record::take(&mut rest, self.end(), self.head.seed, &self.tags),
                Format::Old => old::take(&mut rest, self.head.seed),
            };
            let Some(record) = record else { return Ok(()) };
            if record.sequence <= self.last {
                return Err(self.damaged("records of the journal are not in their order"));
            }
            let writes = record.writes().ok_or_else(|| self.damaged("a record that does not parse"))?;
            let lacks = |write: &Write| record.sequence >= floors[write.keyspace as usize];
            apply(record.sequence, writes.into_iter().filter(lacks).collect())?;
            self.last = record.sequence;
            self.read = self.all.len() - rest.len();
        }
    }

    /// A segment that is not the newest was synced whole before the next was begun.
    fn check_followed_by(&self, next: &Head) -> Result<(), EngineError> {
        if next.previous != self.last {
            return Err(self.damaged(&format!(
                "a record of the journal does not read back; records up to sequence number {} were durable, and \
                 those after {} are lost",
                next.previous, self.last
            )));
        }
        match next.generation == self.head.generation + 1 {
            true => Ok(()),
            false => Err(self.damaged("the journal segment that follows this one is missing")),
        }
    }

    /// Why the newest segment ends where it ends.
    fn judge_end(&self, mark: Option<Point>) -> Result<Option<TornTail>, EngineError> {
        let (end, rest) = (self.end(), &self.all[self.read..]);
        let here = |point: &Point| point.generation == self.head.generation;
        let marked = mark.filter(here).map_or(0, |point| point.offset);
        let (later, is_end) = match self.head.format {
            Format::Current => {
                (durable_by_later(rest, end, self.head.seed, &self.tags), rest.starts_with(&self.tags.end))
            }
            // It does not say what was durable. That records were written one by one is all there is to go by.
            Format::Old => {
                let has_later = old::has_later(rest, self.head.seed, self.last);
                (has_later.then_some(u64::MAX), true)
            }
        };
        if later.unwrap_or(0).max(marked) > end {
            return Err(self.damaged(&format!(
                "a record of the journal does not read back that was durable; the last that does has the sequence \
                 number {}",
                self.last
            )));
        }
        let is_torn = !is_end || later.is_some();
        Ok(is_torn.then(|| TornTail { file: self.spare.path.clone(), offset: end, sequence: self.last }))
    }

    /// The newest segment, its head too, was perhaps never synced: what a killed process left to the system is
    /// written again, so that what is built on it from now on cannot outlive it.
    fn write_again(&self) -> Result<(), EngineError> {
        let mut page = self.head.page();
        if self.head.format == Format::Old {
            self.spare.file.read_exact_at(&mut page[..RECORDS_AT as usize], 0)?;
        }
        self.spare.file.write_all_at(&page[..RECORDS_AT as usize], 0)?;
        self.spare.file.write_all_at(&self.all[..self.read], RECORDS_AT)?;
        Ok(self.spare.file.sync_data()?)
    }

    fn into_segment(self) -> Segment {
        let end = self.end();
        Segment {
            generation: self.head.generation,
            spare: self.spare,
            seed: self.head.seed,
            tags: self.tags,
            end,
            synced: end,
            last: self.last,
            is_dirty: false,
        }
    }
}

impl JournalPlace {
    pub fn new(folder: PathBuf, mark: PathBuf, segment_bytes: u64) -> JournalPlace {
        JournalPlace { folder, mark, segment_bytes }
    }
}
