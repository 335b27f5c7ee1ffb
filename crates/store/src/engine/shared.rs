//! What commits, snapshots and background threads have in common: the trees, the journal, and how data gets from
//! the one to the others.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use lsm_tree::{AbstractTree, DescriptorTable, SequenceNumberCounter};
use parking_lot::Mutex;

use super::batch::Batch;
use super::blocks::Blocks;
use super::directory::{self, FoundTree, JOURNAL_FOLDER, MARK_FILE, Survey, create_folders, sync_folder};
use super::disk::DiskOptions;
use super::error::read_error;
use super::flusher::Leftovers;
use super::journal::{self, JournalPlace, Spare};
use super::manifest::{FoundManifest, Manifest, Note};
use super::mirror::Mirror;
use super::points::Points;
use super::space::Space;
use super::tree::Tree;
use super::tuning::Tuning;
use super::writer::{Buffer, Writer};
use super::{Access, EngineError, Keyspace, shape};

/// Bounds on the table files that are kept open.
const OPEN_TABLES_MIN: usize = 64;
const OPEN_TABLES_MAX: usize = 8 * 1024;
/// First-level runs from which there are no commits at all. A tree cannot count more than 255.
const RUNS_MAX: usize = 60;
/// At rest a write buffer is flushed that is full to one part in this many. Smaller ones cost readers little, and each
/// flush makes a table that has to be merged.
const REST_SHARE: u64 = 32;
/// How many times its size a write buffer may reach before there are no commits until it is flushed.
const BUFFERS_MAX: u64 = 8;
/// A write buffer is at most one part in this many of the memory for all of them. The five that are filled, and those that
/// are being flushed, are then within what they may have together.
const BUFFER_PARTS: u64 = 12;
/// What a write buffer counts is so many of so many parts of what it takes: links between entries, and what the allocator
/// rounds up, it does not see.
const COUNTED: (u64, u64) = (2, 3);

/// What snapshots and background threads hold on to.
pub(super) struct Shared {
    pub tuning: Tuning,
    /// What all write buffers may count together before there are no commits.
    buffered_max: u64,
    /// Memory that a merge may take.
    pub merge_bytes: u64,
    path: PathBuf,
    pub blocks: Blocks,
    descriptors: Arc<DescriptorTable>,
    /// Numbers batches, and versions of trees in between.
    sequence: SequenceNumberCounter,
    pub points: Points,
    pub space: Space,
    pub leftovers: Leftovers,
    trees: [OnceLock<Tree>; Keyspace::ALL.len()],
    /// Held while a tree is created, which must happen once.
    creating: Mutex<()>,
    /// What a commit needs, held while one is under way.
    pub writer: Mutex<Writer>,
    /// Whether all write buffers are to be flushed, however small.
    wants_flush: AtomicBool,
    /// Whether the last flush, and the last merge, found no room.
    pub flushes_lack_room: AtomicBool,
    pub merges_lack_room: AtomicBool,
    /// Whether the directory has its manifest and its journal; see `found`.
    is_founded: AtomicBool,
    /// None where the directory is only looked at, or new.
    manifest: Mutex<Option<Manifest>>,
    /// What was not as it should be with it.
    remark: Option<String>,
    _mirror: Option<Mirror>,
    /// Held for the life of the engine; the system releases it with the process.
    _lock: Option<File>,
}

/// How far flushes and merges are behind the commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backlog {
    None,
    /// A commit waits a little.
    Large,
    /// A commit waits.
    TooLarge,
}

impl Shared {
    pub fn open(options: &DiskOptions, access: Access) -> Result<Shared, EngineError> {
        let path = options.path.clone();
        if access == Access::Own {
            create_folders(&path)?;
        }
        let lock = directory::lock(&path, access)?;
        // Before any tree is opened, which would delete what a live server is writing.
        journal::check_unused(&path.join(JOURNAL_FOLDER), access)?;
        let mut tuning = options.tuning.clone();
        tuning.memtable_bytes = tuning.memtable_bytes.min(options.buffer_bytes / BUFFER_PARTS);
        tuning.table_bytes = shape::table_bytes(&tuning, options.merge_bytes);
        let survey = Survey::of(&path, access, ahead_max(&tuning))?;
        let mirror = match access {
            Access::Own => None,
            Access::Look => Some(Mirror::of(&path, &survey)?),
        };
        let sequence = SequenceNumberCounter::new(1);
        let blocks = Blocks::new(options.cache_bytes);
        let descriptors = Arc::new(DescriptorTable::new(open_tables()));
        let trees: [OnceLock<Tree>; Keyspace::ALL.len()] = Default::default();
        for keyspace in Keyspace::ALL {
            let prints = match survey.tree(keyspace) {
                FoundTree::Listed { prints, .. } => prints.clone(),
                FoundTree::Begun if access == Access::Own => HashMap::new(),
                FoundTree::Begun | FoundTree::Nothing => continue,
            };
            let folder =
                mirror.as_ref().map_or_else(|| path.join(keyspace.name()), |mirror| mirror.tree(keyspace));
            let config = tuning.config(keyspace, &folder, &sequence);
            let tree = open_tree(config, prints, &blocks, &descriptors)?;
            let _ = trees[keyspace as usize].set(tree);
        }
        let place = JournalPlace::new(path.join(JOURNAL_FOLDER), path.join(MARK_FILE), tuning.segment_bytes);
        let writer = Writer::open(&place, access, &trees)?;
        sequence.fetch_max(writer.journal.last() + 1);
        check_journal(&writer, &trees)?;
        survey.check_journal(&path, &writer.journal)?;
        let shared = Shared {
            tuning,
            buffered_max: options.buffer_bytes / COUNTED.1 * COUNTED.0,
            merge_bytes: options.merge_bytes,
            path,
            blocks,
            descriptors,
            points: Points::new(sequence.get()),
            space: Space::new(&options.path, options.reserve_bytes, options.disk_limit_bytes),
            sequence,
            leftovers: Leftovers::default(),
            trees,
            creating: Mutex::new(()),
            wants_flush: AtomicBool::new(false),
            flushes_lack_room: AtomicBool::new(false),
            merges_lack_room: AtomicBool::new(false),
            writer: Mutex::new(writer),
            is_founded: AtomicBool::new(false),
            manifest: Mutex::new(None),
            remark: survey.manifest.as_ref().and_then(|found| found.remark.clone()),
            _mirror: mirror,
            _lock: lock,
        };
        match access {
            Access::Own if survey.is_blank() && shared.last_commit() == 0 => {}
            Access::Own => shared.take_over(survey.manifest.as_ref())?,
            Access::Look => drop(shared.writer.lock().close()),
        }
        Ok(shared)
    }

    /// Gives a new directory its manifest and its journal. That takes several syncs, so a server answers before: it is
    /// done in the background, or by the first commit.
    pub fn found(&self) -> Result<(), EngineError> {
        if self.is_founded.load(Ordering::Acquire) {
            return Ok(());
        }
        let _creating = self.creating.lock();
        if self.is_founded.load(Ordering::Acquire) {
            return Ok(());
        }
        self.take_over(None)
    }

    /// Makes durable what was found, so that something can be built on it.
    fn take_over(&self, found: Option<&FoundManifest>) -> Result<(), EngineError> {
        let mut writer = self.writer.lock();
        let note = self.note(writer.journal.durable())?;
        let manifest = match found {
            Some(found) => {
                let mut manifest = Manifest::go_on(&self.path, found)?;
                manifest.note(note)?;
                manifest
            }
            None => Manifest::create(&self.path, note)?,
        };
        *self.manifest.lock() = Some(manifest);
        // Only now: a journal of the present format, or a mark, without a manifest has lost it.
        writer.journal.keep_mark()?;
        // What a killed process has created must not be forgotten once something is built on it.
        self.path.ancestors().take(2).try_for_each(sync_folder)?;
        if !writer.journal.has_current_format() {
            let floors = writer.floors(self.sequence.get());
            writer.journal.begin_segment(&floors)?;
        }
        self.is_founded.store(true, Ordering::Release);
        Ok(())
    }

    fn note(&self, (generation, sequence): (u64, u64)) -> io::Result<Note> {
        let mut trees = [None; Keyspace::ALL.len()];
        for (keyspace, tree) in self.existing_trees() {
            trees[keyspace as usize] = Some(tree.note()?);
        }
        Ok(Note { generation, sequence, trees })
    }

    /// Notes in the manifest how the trees are. No commit waits for it.
    pub fn note_trees(&self) -> Result<(), EngineError> {
        let mut manifest = self.manifest.lock();
        let durable = self.writer.lock().journal.durable();
        let note = self.note(durable)?;
        manifest.as_mut().map_or(Ok(()), |manifest| Ok(manifest.note(note)?))
    }

    /// Compares whole tables with their checksums. What cannot be read at all is an error of opening.
    pub fn check_tables(options: &DiskOptions) -> Vec<String> {
        let survey = Survey::of(&options.path, Access::Look, ahead_max(&options.tuning));
        survey.map_or_else(|_| Vec::new(), |survey| survey.check_tables())
    }

    /// What was not as it should be when the directory was opened, and does no harm.
    pub fn remarks(&self) -> Vec<String> {
        let of_journal = self.writer.lock().journal.remarks().to_vec();
        self.remark.iter().cloned().chain(of_journal).collect()
    }

    /// The tree of a keyspace, unless nothing was ever written to it.
    pub fn existing(&self, keyspace: Keyspace) -> Option<&Tree> {
        self.trees[keyspace as usize].get()
    }

    pub fn existing_trees(&self) -> impl Iterator<Item = (Keyspace, &Tree)> {
        Keyspace::ALL.into_iter().filter_map(|keyspace| Some((keyspace, self.existing(keyspace)?)))
    }

    pub fn create(&self, keyspace: Keyspace) -> Result<(), EngineError> {
        let slot = &self.trees[keyspace as usize];
        if slot.get().is_some() {
            return Ok(());
        }
        let _creating = self.creating.lock();
        if slot.get().is_none() {
            let config = self.tuning.config(keyspace, &self.path.join(keyspace.name()), &self.sequence);
            let tree = open_tree(config, HashMap::new(), &self.blocks, &self.descriptors)?;
            sync_folder(&self.path)?;
            let _ = slot.set(tree);
        }
        Ok(())
    }

    /// Bytes that the journal must keep, and those in write buffers.
    pub fn held_bytes(&self) -> (u64, u64) {
        let writer = self.writer.lock();
        (writer.journal.bytes(), writer.buffered_bytes() + self.sealed_bytes())
    }

    /// Journals a batch and lets readers see it. Returns the size of the largest write buffer. The
    /// trees that it writes to exist.
    pub fn write(&self, batch: Batch) -> Result<u64, EngineError> {
        let mut writer = self.writer.lock();
        writer.check()?;
        let sequence = self.sequence.next();
        let floors = writer.floors(sequence);
        let written = writer.journal.append(sequence, &batch.writes, &floors);
        written.map_err(|error| writer.refuse(error))?;
        for write in batch.writes {
            let keyspace = write.keyspace;
            let tree =
                self.existing(keyspace).expect("a tree is created before a batch for it is journalled");
            writer.buffers[keyspace as usize].get_or_insert_with(|| Buffer::of(tree)).insert(sequence, write);
        }
        self.points.advance(sequence + 1);
        Ok(writer.largest_buffer())
    }

    /// Moves the latest point on in times without commits, so that replaced tables can go.
    pub fn refresh_point(&self) {
        if let Some(_between_commits) = self.writer.try_lock() {
            self.points.advance(self.sequence.get());
        }
    }

    fn sealed_bytes(&self) -> u64 {
        self.existing_trees().map(|(_, tree)| tree.sealed_bytes()).sum()
    }

    /// Has all write buffers flushed, however small.
    pub fn want_flush(&self) {
        self.wants_flush.store(true, Ordering::Relaxed);
    }

    /// How far flushes and merges are behind, when so many bytes are to come into write buffers. Refused where there is no
    /// hope of their catching up.
    pub fn backlog(&self, coming: u64) -> Result<Backlog, EngineError> {
        let writer = self.writer.lock();
        writer.check()?;
        let buffered = self.existing_trees().map(|(keyspace, tree)| {
            let buffer = writer.buffers[keyspace as usize].as_ref();
            let is_behind = tree.runs() >= RUNS_MAX || tree.is_behind(&self.tuning, self.merge_bytes);
            (buffer.map_or(0, |buffer| buffer.table.size()), tree.sealed_bytes(), is_behind)
        });
        let unit = self.tuning.memtable_bytes;
        let (mut backlog, mut total) = (Backlog::None, 0);
        for (active, sealed, is_behind) in buffered {
            total += active + sealed;
            // One of the buffers is full if all of them have no room, so there is a flush to wait for.
            if total >= self.buffered_max || active + sealed >= BUFFERS_MAX * unit || is_behind {
                backlog = Backlog::TooLarge;
            } else if active >= 2 * unit && backlog == Backlog::None {
                backlog = Backlog::Large;
            }
        }
        if total > 0 && total + coming > self.buffered_max {
            // None of the buffers may be full. What is larger than all of them finds them empty.
            self.want_flush();
            backlog = Backlog::TooLarge;
        }
        let lack_room = [&self.flushes_lack_room, &self.merges_lack_room];
        if backlog == Backlog::TooLarge && lack_room.iter().any(|lack| lack.load(Ordering::Relaxed)) {
            return Err(self.space.refuse());
        }
        Ok(backlog)
    }

    /// The sequence number of the last commit.
    pub fn last_commit(&self) -> u64 {
        self.writer.lock().journal.last()
    }

    /// The trees whose write buffers are to be flushed: those that are full, those that keep the
    /// journal from being written over, and at rest those that are worth it.
    pub fn due_for_flush(&self, segments_max: usize, at_rest: bool) -> Vec<Keyspace> {
        let writer = self.writer.lock();
        let overdue = writer.journal.overdue(segments_max).unwrap_or(0);
        let all = self.wants_flush.swap(false, Ordering::Relaxed);
        let is_due = |keyspace: &Keyspace| {
            let buffer = writer.buffers[*keyspace as usize].as_ref();
            buffer.is_some_and(|buffer| {
                let share = if at_rest { REST_SHARE } else { 1 };
                let is_full = buffer.table.size() >= self.tuning.memtable_bytes / share;
                is_full
                    || (all && buffer.floor().is_some())
                    || buffer.is_half_flushed()
                    || buffer.floor().is_some_and(|floor| floor < overdue)
            })
        };
        Keyspace::ALL.into_iter().filter(is_due).collect()
    }

    /// Puts what a write buffer holds into tables. Commits go on meanwhile.
    pub fn flush(&self, keyspace: Keyspace) -> Result<(), EngineError> {
        self.put_in_tables(keyspace)?;
        self.note_trees()?;
        self.release(&[keyspace]);
        Ok(())
    }

    fn put_in_tables(&self, keyspace: Keyspace) -> Result<(), EngineError> {
        let Some(tree) = self.existing(keyspace) else { return Ok(()) };
        self.seal(keyspace, tree)?;
        let turn = tree.tree.get_flush_lock();
        tree.tree.flush(&turn, self.points.oldest()).map_err(read_error)?;
        drop(turn);
        tree.count_runs();
        tree.set_sealed_bytes(0);
        self.flushes_lack_room.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Lets the journal go of what is in tables. Not before the manifest names them: until then the journal is what
    /// tells that the tree is needed.
    fn release(&self, keyspaces: &[Keyspace]) {
        let mut writer = self.writer.lock();
        for keyspace in keyspaces {
            if let Some(buffer) = &mut writer.buffers[*keyspace as usize] {
                buffer.flushed();
            }
        }
        let oldest = writer.oldest_needed();
        writer.journal.free_before(oldest);
    }

    /// Has the committer go on in another write buffer.
    ///
    /// The tree seals its buffer behind its lock, which may take a while; until then commits go to the
    /// old one. What a commit that is under way still adds to it is flushed as well, because the
    /// committer has to be between two batches to be given the new one. The journal is synced without its lock.
    fn seal(&self, keyspace: Keyspace, tree: &Tree) -> Result<(), EngineError> {
        let sealed = tree.tree.rotate_memtable().map(|sealed| (sealed, tree.tree.active_memtable()));
        let mut writer = self.writer.lock();
        if let Some((sealed, fresh)) = sealed {
            if let Some(buffer) = &mut writer.buffers[keyspace as usize] {
                buffer.replace(fresh);
            }
            tree.set_sealed_bytes(tree.sealed_bytes() + sealed.size());
            self.leftovers.hold_buffer(sealed);
        }
        let unsynced = writer.journal.unsynced().map_err(|error| writer.stop(&error))?;
        drop(writer);
        // Tables must not be ahead of the journal: a batch that is lost there would be half in tables. What is sealed was
        // journalled before; commits that come meanwhile go to the fresh buffer.
        let Some(unsynced) = unsynced else { return Ok(()) };
        let result = unsynced.sync();
        let mut writer = self.writer.lock();
        writer.journal.synced(&unsynced, result).map_err(|error| writer.stop(&error))
    }

    /// Makes another journal segment ready before a commit needs it, and deletes those that nobody needs. Where
    /// it cannot be made, the commit makes one itself, or is told why it cannot.
    pub fn tend_journal(&self, at_rest: bool) {
        let (place, surplus, mark) = {
            let journal = &mut self.writer.lock().journal;
            let mark = if at_rest { journal.mark_to_sync() } else { None };
            (journal.place_for_spare(), journal.take_surplus(), mark)
        };
        // Where that fails an older mark is kept, which asks for less.
        mark.map(|mark| mark.sync_data());
        surplus.into_iter().for_each(Spare::delete);
        if let Some(Ok(spare)) = place.map(Spare::make) {
            self.writer.lock().journal.add_spare(spare);
        }
    }

    /// Takes no more commits.
    pub fn stop(&self, reason: &str) {
        self.writer.lock().stop(&io::Error::other(reason.to_owned()));
    }

    /// Puts everything into tables, and notes in the journal that nothing of it is needed.
    pub fn flush_all(&self) -> Result<(), EngineError> {
        for keyspace in Keyspace::ALL {
            self.put_in_tables(keyspace)?;
        }
        self.note_trees()?;
        self.release(&Keyspace::ALL);
        let mut writer = self.writer.lock();
        if writer.journal.bytes() > 0 {
            let floors = writer.floors(self.sequence.get());
            writer.journal.begin_segment(&floors)?;
            writer.journal.sync()?;
        }
        Ok(())
    }
}

/// Held by a background thread. Without it commits would pile up, so they end when it panics.
pub(super) struct Fuse<'a>(pub &'a Shared);

impl Drop for Fuse<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop("a thread of the storage engine panicked");
        }
    }
}

/// Table files that may stay open: half of what the process may have, the rest being its connections'.
/// A table that is not open costs a call to the system for every block that is read from it.
fn open_tables() -> usize {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let half = allowed.map_or(OPEN_TABLES_MAX, |files| files as usize / 2);
    half.clamp(OPEN_TABLES_MIN, OPEN_TABLES_MAX)
}

/// Opens a tree that shares blocks in memory and open files with the others.
fn open_tree(
    config: lsm_tree::Config,
    prints: HashMap<u64, u64>,
    blocks: &Blocks,
    descriptors: &Arc<DescriptorTable>,
) -> Result<Tree, EngineError> {
    let config = config.use_cache(blocks.cache()).use_descriptor_table(Some(Arc::clone(descriptors)));
    Tree::open(config, prints)
}

/// The journal is synced before anything of it goes to tables, so it is never behind them.
fn check_journal(writer: &Writer, trees: &[OnceLock<Tree>; Keyspace::ALL.len()]) -> Result<(), EngineError> {
    let stored = trees.iter().filter_map(|tree| tree.get()?.tree.get_highest_persisted_seqno()).max();
    match stored.is_some_and(|stored| stored > writer.journal.last()) {
        true => Err(EngineError::Corrupt("the end of the journal is missing".into())),
        false => Ok(()),
    }
}

/// By how many versions a tree may be ahead of the manifest: a flush and the merges under way, and one more where the
/// last page of the manifest does not read back.
fn ahead_max(tuning: &Tuning) -> u64 {
    2 + tuning.compactors as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn commit(shared: &Shared, key: &'static str) {
        let mut batch = Batch::new();
        batch.put(Keyspace::Item, key, "value");
        shared.write(batch).unwrap();
    }

    fn open_again(folder: &Path) -> EngineError {
        match Shared::open(&DiskOptions::new(folder), Access::Own) {
            Ok(_) => panic!("what is missing was not missed"),
            Err(error) => error,
        }
    }

    fn open_new(folder: &Path) -> Shared {
        let shared = Shared::open(&DiskOptions::new(folder), Access::Own).unwrap();
        shared.found().unwrap();
        shared.create(Keyspace::Item).unwrap();
        shared
    }

    /// A directory with a batch in tables.
    fn flushed() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let shared = open_new(folder.path());
        commit(&shared, "key");
        shared.flush_all().unwrap();
        folder
    }

    #[test]
    fn a_journal_that_is_missing_is_seen() {
        let folder = flushed();
        std::fs::remove_dir_all(folder.path().join(JOURNAL_FOLDER)).unwrap();
        assert!(open_again(folder.path()).to_string().contains("journal is missing"));
    }

    #[test]
    fn a_journal_that_ends_before_the_tables_is_seen() {
        let folder = flushed();
        for entry in std::fs::read_dir(folder.path().join(JOURNAL_FOLDER)).unwrap() {
            std::fs::write(entry.unwrap().path(), [0; 100]).unwrap();
        }
        assert!(open_again(folder.path()).to_string().contains("is missing"));
        std::fs::remove_file(folder.path().join(MARK_FILE)).unwrap();
        assert!(open_again(folder.path()).to_string().contains("the end of the journal is missing"));
    }

    #[test]
    fn tables_without_their_list_are_seen_and_kept() {
        let folder = flushed();
        let tree = folder.path().join(Keyspace::Item.name());
        std::fs::remove_file(tree.join("current")).unwrap();
        assert!(open_again(folder.path()).to_string().contains("list of tables"));
        assert!(std::fs::read_dir(tree.join("tables")).unwrap().next().is_some());
    }

    /// A directory with several versions of a tree, and a copy of it in between.
    fn with_older_copy() -> (tempfile::TempDir, tempfile::TempDir) {
        let (folder, copy) = (flushed(), tempfile::tempdir().unwrap());
        copy_all(folder.path(), copy.path());
        let shared = Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
        for key in ["second", "third", "fourth", "fifth", "sixth"] {
            commit(&shared, key);
            shared.flush_all().unwrap();
        }
        (folder, copy)
    }

    fn copy_all(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            match entry.path().is_dir() {
                true => copy_all(&entry.path(), &to.join(entry.file_name())),
                false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
            }
        }
    }

    #[test]
    fn a_tree_whose_folder_is_missing_is_seen() {
        let folder = flushed();
        std::fs::remove_dir_all(folder.path().join(Keyspace::Item.name())).unwrap();
        let text = open_again(folder.path()).to_string();
        assert!(text.contains("/item: the tree is missing") && text.contains("restore"), "{text}");
    }

    /// One bit in `current` chooses another list.
    #[test]
    fn an_older_list_of_tables_is_seen() {
        let (folder, copy) = with_older_copy();
        let (tree, older) = (folder.path().join("item"), copy.path().join("item"));
        let current = std::fs::read(tree.join("current")).unwrap();
        for bit in 0..8 * current.len() {
            let mut flipped = current.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(tree.join("current"), &flipped).unwrap();
            assert!(matches!(open_again(folder.path()), EngineError::Corrupt(_)), "bit {bit}");
        }
        // The whole folder of the tree as it was before, which agrees with itself.
        std::fs::remove_dir_all(&tree).unwrap();
        copy_all(&older, &tree);
        let text = open_again(folder.path()).to_string();
        assert!(text.contains("current") && text.contains("was at version"), "{text}");
    }

    #[test]
    fn a_table_that_is_another_or_missing_is_seen() {
        for is_removed in [true, false] {
            let (folder, copy) = with_older_copy();
            let table = |folder: &Path| {
                let mut tables: Vec<_> = std::fs::read_dir(folder.join("item/tables")).unwrap().collect();
                tables.pop().unwrap().unwrap().path()
            };
            let damaged = table(folder.path());
            match is_removed {
                true => std::fs::remove_file(&damaged).unwrap(),
                false => drop(std::fs::copy(table(copy.path()), &damaged).unwrap()),
            }
            let text = open_again(folder.path()).to_string();
            assert!(text.contains("item/tables"), "{text}");
        }
    }

    /// The process was killed between a flush and the note of it, and the table has the name of an older one.
    #[test]
    fn a_table_that_is_another_is_seen_where_the_tree_is_ahead_of_the_manifest() {
        let (folder, copy) = with_older_copy();
        let shared = Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
        commit(&shared, "seventh");
        shared.put_in_tables(Keyspace::Item).unwrap();
        drop(shared);
        let newest = |folder: &Path| {
            let tables = std::fs::read_dir(folder.join("item/tables")).unwrap();
            let id = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().parse::<u64>().unwrap();
            tables.map(|table| table.unwrap().path()).max_by_key(id).unwrap()
        };
        let table = newest(folder.path());
        let content = std::fs::read(&table).unwrap();
        std::fs::copy(newest(copy.path()), &table).unwrap();
        let text = open_again(folder.path()).to_string();
        assert!(text.contains("item/tables") && text.contains("own list"), "{text}");
        std::fs::write(&table, content).unwrap();
        Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
    }

    #[test]
    fn a_directory_that_had_a_manifest_is_refused_without_it() {
        let folder = flushed();
        let manifest = folder.path().join("manifest");
        let bytes = std::fs::read(&manifest).unwrap();
        for content in [None, Some(&bytes[..0]), Some(&bytes[..100])] {
            match content {
                Some(content) => std::fs::write(&manifest, content).unwrap(),
                None => std::fs::remove_file(&manifest).unwrap(),
            }
            let text = open_again(folder.path()).to_string();
            assert!(text.contains("manifest"), "{text}");
        }
    }

    #[test]
    fn a_manifest_with_one_damaged_page_is_read_and_mended() {
        let (folder, _) = with_older_copy();
        let manifest = folder.path().join("manifest");
        for at in [20, 4096 + 20] {
            let mut bytes = std::fs::read(&manifest).unwrap();
            bytes[at] ^= 4;
            std::fs::write(&manifest, &bytes).unwrap();
            let shared = Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
            assert_eq!(shared.remarks().len(), 1);
            drop(shared);
            let shared = Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
            assert_eq!(shared.remarks().len(), 0);
        }
    }

    #[test]
    fn a_manifest_of_an_unknown_format_is_refused() {
        let folder = flushed();
        let manifest = folder.path().join("manifest");
        let mut bytes = std::fs::read(&manifest).unwrap();
        bytes[8] = 99;
        let end = bytes[..4096].iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..end - 8]);
        bytes[end - 8..end].copy_from_slice(&checksum.to_le_bytes());
        bytes[4096..].fill(0);
        std::fs::write(&manifest, &bytes).unwrap();
        assert!(open_again(folder.path()).to_string().contains("format 99"));
    }

    #[test]
    fn a_directory_in_use_is_refused_even_if_its_lock_is_gone() {
        let folder = flushed();
        let shared = Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
        std::fs::remove_file(folder.path().join("lock")).unwrap();
        // A table that a flush is writing, and that no list names yet.
        let unlisted = folder.path().join("item/tables/999");
        std::fs::write(&unlisted, b"").unwrap();
        assert!(matches!(open_again(folder.path()), EngineError::Locked(_)));
        assert!(unlisted.exists());
        let looked = Shared::open(&DiskOptions::new(folder.path()), Access::Look);
        assert!(matches!(looked, Err(EngineError::Locked(_))));
        drop(shared);
        Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
    }

    /// The first start was interrupted at any of its steps.
    #[test]
    fn a_first_start_that_was_interrupted_is_done_again() {
        for leftover in ["manifest.new", "mark", "item/tables/", "journal/", "journal/0"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(leftover);
            std::fs::create_dir_all(if leftover.ends_with('/') { &path } else { path.parent().unwrap() })
                .unwrap();
            if !leftover.ends_with('/') {
                std::fs::write(&path, b"").unwrap();
            }
            let shared = open_new(folder.path());
            commit(&shared, "key");
            drop(shared);
            Shared::open(&DiskOptions::new(folder.path()), Access::Own).unwrap();
        }
    }

    #[test]
    fn commits_go_on_while_a_flush_syncs_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Arc::new(open_new(folder.path()));
        commit(&shared, "before");
        let committer = Arc::clone(&shared);
        journal::tests::do_while_syncing(move || {
            assert!(!committer.writer.is_locked(), "a commit would wait for the disk");
            commit(&committer, "meanwhile");
        });
        shared.seal(Keyspace::Item, shared.existing(Keyspace::Item).unwrap()).unwrap();
        let durable = || shared.writer.lock().journal.durable().1;
        assert_eq!(durable(), shared.last_commit() - 1, "only what was there before is known to be durable");
        shared.writer.lock().journal.sync().unwrap();
        assert_eq!(durable(), shared.last_commit());
    }

    /// The journal goes on to a new segment between the two halves of a flush, and then the process is killed.
    #[test]
    fn a_write_buffer_that_is_not_in_tables_yet_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let options = DiskOptions::new(folder.path());
        let shared = open_new(folder.path());
        commit(&shared, "before");
        shared.seal(Keyspace::Item, shared.existing(Keyspace::Item).unwrap()).unwrap();
        commit(&shared, "after");
        {
            let mut writer = shared.writer.lock();
            let floors = writer.floors(shared.sequence.get());
            writer.journal.begin_segment(&floors).unwrap();
        }
        commit(&shared, "later");
        drop(shared);
        let shared = Shared::open(&options, Access::Own).unwrap();
        let tree = &shared.existing(Keyspace::Item).unwrap().tree;
        for key in ["before", "after", "later"] {
            assert!(tree.get(key, u64::MAX).unwrap().is_some(), "{key}");
        }
    }
}
