//! The manifest: which trees with which versions belong together.
//!
//! Each tree keeps its own list of tables, and cannot know that the list it finds is an older one, or that the folder of
//! another tree is missing. So the versions of all trees are noted here after each flush and each merge, before the journal
//! lets go of what was flushed. A tree may be ahead of the manifest by the flush and the merges that were under way when
//! the process ended; it is never behind.
//!
//! ```text
//!   manifest   | copy of even numbers, one page | copy of odd numbers, one page |
//! ```
//!
//! A note goes to the page whose turn it is, in place, and is one sync; it fits into a sector, so after a loss of power it is
//! there or it is not, and the other page holds the note before. The file itself is made once, under another name, and is
//! durable before the journal gets its first segment: a journal without a manifest has lost it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::error::damage;
use super::{EngineError, Keyspace};

pub(super) const MANIFEST_FILE: &str = "manifest";
/// What the file is called while it is made.
const NEW_FILE: &str = "manifest.new";
const MAGIC: &[u8; 8] = b"ORRERYM1";
/// The format of the whole directory as it is written, and those that are read. A server refuses directories of formats that it does
/// not know.
const FORMAT: u64 = 2;
const FORMATS_READ: [u64; 1] = [2];
const KEYSPACES: usize = Keyspace::ALL.len();
/// Magic, four numbers, three for each tree, checksum.
const NOTE_BYTES: usize = 8 + 4 * 8 + KEYSPACES * 3 * 8 + 8;
const PAGE_BYTES: usize = 4096;
/// Stands for a tree that is not there.
const NO_TREE: u64 = u64::MAX;

/// How a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeNote {
    /// Of the list of tables; each flush and each merge makes a new one.
    pub version: u64,
    pub tables: u64,
    /// Of all tables; see [`super::tables`].
    pub fingerprint: u64,
}

/// How the parts of a directory belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The journal was at least so far.
    pub generation: u64,
    pub sequence: u64,
    pub trees: [Option<TreeNote>; KEYSPACES],
}

pub(super) struct Manifest {
    file: File,
    /// Counts notes.
    number: u64,
    last: Note,
}

/// A manifest that was read.
pub(super) struct FoundManifest {
    number: u64,
    pub note: Note,
    /// What is not as it should be.
    pub remark: Option<String>,
}

impl FoundManifest {
    pub fn read(directory: &Path) -> Result<Option<FoundManifest>, EngineError> {
        let path = directory.join(MANIFEST_FILE);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(file) => drop(file.take(2 * PAGE_BYTES as u64).read_to_end(&mut bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let page = |number: usize| bytes.get(number * PAGE_BYTES..).unwrap_or_default();
        let pages = [page(0), page(1)];
        let found = pages.into_iter().filter_map(decode).max_by_key(|(number, ..)| *number);
        let Some((number, format, note)) = found else {
            return Err(damage(&path, Some(0), "the manifest does not read back"));
        };
        if !FORMATS_READ.contains(&format) {
            return Err(EngineError::UnknownFormat {
                path: directory.to_owned(),
                found: format,
                known: FORMAT,
            });
        }
        let is_spoilt = |page: &&[u8]| decode(page).is_none() && page.iter().any(|byte| *byte != 0);
        let is_whole = bytes.len() == 2 * PAGE_BYTES && !pages.iter().any(is_spoilt);
        let remark =
            (!is_whole).then(|| format!("{}: one of two pages of the manifest is damaged", path.display()));
        Ok(Some(FoundManifest { number, note, remark }))
    }
}

impl Manifest {
    /// Makes the file. Its name is durable when the caller has synced the directory.
    pub fn create(directory: &Path, note: Note) -> io::Result<Manifest> {
        let fresh = directory.join(NEW_FILE);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&fresh)?;
        file.set_len(2 * PAGE_BYTES as u64)?;
        file.write_all_at(&encode(0, &note), 0)?;
        file.sync_all()?;
        std::fs::rename(&fresh, directory.join(MANIFEST_FILE))?;
        Ok(Manifest { file, number: 0, last: note })
    }

    /// Goes on with one that was found. A killed process may have left its last note to the system.
    pub fn go_on(directory: &Path, found: &FoundManifest) -> io::Result<Manifest> {
        let path: PathBuf = directory.join(MANIFEST_FILE);
        let file = OpenOptions::new().write(true).open(path)?;
        let mut manifest = Manifest { file, number: found.number, last: found.note };
        match found.remark {
            // The page that does not read back is the one that is written next.
            Some(_) => {
                manifest.file.set_len(2 * PAGE_BYTES as u64)?;
                manifest.write()?;
            }
            None => manifest.file.sync_data()?,
        }
        Ok(manifest)
    }

    /// Makes a note durable, unless it is the last one.
    pub fn note(&mut self, note: Note) -> io::Result<()> {
        if note.trees == self.last.trees {
            return Ok(());
        }
        self.last = note;
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.number += 1;
        let place = self.number % 2 * PAGE_BYTES as u64;
        self.file.write_all_at(&encode(self.number, &self.last), place)?;
        self.file.sync_data()
    }
}

fn encode(number: u64, note: &Note) -> [u8; NOTE_BYTES] {
    let mut bytes = [0; NOTE_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    let trees = note.trees.iter().flat_map(|tree| match tree {
        Some(tree) => [tree.version, tree.tables, tree.fingerprint],
        None => [NO_TREE, 0, 0],
    });
    let numbers = [FORMAT, number, note.generation, note.sequence].into_iter().chain(trees);
    for (place, number) in bytes[8..NOTE_BYTES - 8].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let checksum = xxh3_64(&bytes[..NOTE_BYTES - 8]);
    bytes[NOTE_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The number, the format and the note on a page.
fn decode(page: &[u8]) -> Option<(u64, u64, Note)> {
    let (content, checksum) = page.get(..NOTE_BYTES)?.split_at(NOTE_BYTES - 8);
    let is_ours = &content[..8] == MAGIC && xxh3_64(content).to_le_bytes() == checksum;
    let mut numbers =
        content[8..].chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    let mut next = || numbers.next().filter(|_| is_ours);
    let (format, number) = (next()?, next()?);
    let (generation, sequence) = (next()?, next()?);
    let mut trees = [None; KEYSPACES];
    for tree in &mut trees {
        let note = TreeNote { version: next()?, tables: next()?, fingerprint: next()? };
        *tree = (note.version != NO_TREE).then_some(note);
    }
    Some((number, format, Note { generation, sequence, trees }))
}

/// For `docs/format.md`.
#[cfg(test)]
pub(super) fn golden() -> crate::golden::Form {
    let tree = |version| Some(TreeNote { version, tables: 2, fingerprint: 3 });
    let note = Note { generation: 2, sequence: 4, trees: [tree(5), tree(6), tree(7), None, tree(8)] };
    let again = |bytes: &[u8]| {
        let (number, _, note) = decode(bytes)?;
        Some(encode(number, &note).to_vec())
    };
    crate::golden::Form { name: "manifest", bytes: encode(1, &note).to_vec(), again }
}
