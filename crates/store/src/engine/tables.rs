//! The list of a tree's tables, read and checked before the tree is opened.
//!
//! A tree finds its list by the file `current`, which names a version and holds the checksum of its list, `v` and a number;
//! the list has a checksum of each table. The tree itself looks at none of these when it is opened: it would take an
//! older list, parse a damaged one, and delete all tables that the list does not name. So all of that is compared here first.
//!
//! To read whole tables takes too long at a start. A table's last page holds its table of contents, the range of its keys and
//! the time at which it was made; that page and the length tell tables apart, and together they are the fingerprint that the
//! manifest keeps of a tree. Blocks have checksums of their own and are checked when they are read. Looking at whole tables
//! is what `orrery verify` does.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::EngineError;
use super::error::damage;
use super::manifest::TreeNote;

pub(super) const CURRENT_FILE: &str = "current";
pub(super) const TABLES_FOLDER: &str = "tables";
/// Version, checksum of its list, kind of the checksum.
const CURRENT_BYTES: usize = 8 + 16 + 1;
/// How much of a table's end goes into its fingerprint.
const TAIL_BYTES: u64 = 4096;
const READ_BYTES: usize = 1 << 20;

/// A table as the list of its tree names it.
pub(super) struct Listed {
    pub id: u64,
    /// Of the whole file.
    pub checksum: u128,
}

/// The list of a tree's tables.
pub(super) struct TableList {
    folder: PathBuf,
    pub version: u64,
    pub tables: Vec<Listed>,
}

impl TableList {
    /// Reads the list that `current` names.
    pub fn read(folder: &Path) -> Result<TableList, EngineError> {
        let path = folder.join(CURRENT_FILE);
        let current = std::fs::read(&path)?;
        let current: [u8; CURRENT_BYTES] = current.try_into().map_err(|_| {
            damage(&path, Some(0), "the file that names the tree's list of tables has a wrong length")
        })?;
        let version = u64::from_le_bytes(current[..8].try_into().unwrap_or_default());
        let checksum = u128::from_le_bytes(current[8..24].try_into().unwrap_or_default());
        let list = folder.join(list_file(version));
        let bytes = match std::fs::read(&list) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let what = format!("it names the list of tables {}, which is not there", list.display());
                return Err(damage(&path, Some(0), &what));
            }
            Err(error) => return Err(error.into()),
        };
        if current[24] != 0 || xxhash_rust::xxh3::xxh3_128(&bytes) != checksum {
            let what = format!("the list of tables does not have the checksum that {} holds", path.display());
            return Err(damage(&list, None, &what));
        }
        let tables = parse(&list).ok_or_else(|| damage(&list, None, "the list of tables does not parse"))?;
        Ok(TableList { folder: folder.to_owned(), version, tables })
    }

    pub fn path(&self, table: &Listed) -> PathBuf {
        table_path(&self.folder, table.id)
    }

    /// The fingerprints of all tables, by id.
    pub fn fingerprints(&self) -> Result<HashMap<u64, u64>, EngineError> {
        let print = |table: &Listed| match fingerprint(&self.path(table)) {
            Ok(print) => Ok((table.id, print)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(damage(&self.path(table), None, "the table is missing"))
            }
            Err(error) => Err(error.into()),
        };
        self.tables.iter().map(print).collect()
    }

    /// Compares whole files with the checksums in the list, and says what is wrong with which.
    pub fn check_whole(&self) -> Vec<String> {
        self.tables.iter().filter_map(|table| self.check(table)).collect()
    }

    /// The same for the newest tables, up to so many bytes of them.
    pub fn check_newest(&self, bytes_max: u64) -> Vec<String> {
        let mut tables: Vec<&Listed> = self.tables.iter().collect();
        tables.sort_unstable_by_key(|table| Reverse(table.id));
        let mut bytes = 0;
        let newest = tables.into_iter().take_while(|table| {
            bytes += std::fs::metadata(self.path(table)).map_or(0, |file| file.len());
            bytes <= bytes_max
        });
        newest.filter_map(|table| self.check(table)).collect()
    }

    fn check(&self, table: &Listed) -> Option<String> {
        let path = self.path(table);
        match whole_checksum(&path) {
            Ok(checksum) if checksum == table.checksum => None,
            Ok(_) => Some(format!("{}: the table is not as it was written", path.display())),
            Err(error) => Some(format!("{}: {error}", path.display())),
        }
    }

    /// Tells a tree from another, or from itself at another time.
    pub fn note(&self, prints: &HashMap<u64, u64>) -> TreeNote {
        note(self.version, prints)
    }
}

pub(super) fn list_file(version: u64) -> String {
    format!("v{version}")
}

pub(super) fn table_path(folder: &Path, id: u64) -> PathBuf {
    folder.join(TABLES_FOLDER).join(id.to_string())
}

/// The note of a tree whose tables have these fingerprints.
pub(super) fn note(version: u64, prints: &HashMap<u64, u64>) -> TreeNote {
    let mut ordered: Vec<(u64, u64)> = prints.iter().map(|(id, print)| (*id, *print)).collect();
    ordered.sort_unstable();
    let bytes: Vec<u8> =
        ordered.iter().flat_map(|(id, print)| [id.to_le_bytes(), print.to_le_bytes()]).flatten().collect();
    TreeNote { version, tables: ordered.len() as u64, fingerprint: xxh3_64(&bytes) }
}

/// Tells a table from all others, by its length and its last page.
pub(super) fn fingerprint(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let tail = length.min(TAIL_BYTES);
    let mut bytes = vec![0; tail as usize + 8];
    let (first, rest) = bytes.split_at_mut(8);
    first.copy_from_slice(&length.to_le_bytes());
    file.read_exact_at(rest, length - tail)?;
    Ok(xxh3_64(&bytes))
}

fn whole_checksum(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let (mut hasher, mut buffer) = (Xxh3::new(), vec![0; READ_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.digest128()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// The tables that a list names: for each level its runs, for each run its tables.
fn parse(path: &Path) -> Option<Vec<Listed>> {
    let reader = sfa::Reader::new(path).ok()?;
    let mut bytes = Vec::new();
    reader.toc().section(b"tables")?.buf_reader(path).ok()?.read_to_end(&mut bytes).ok()?;
    let mut rest = &bytes[..];
    let mut tables = Vec::new();
    for _ in 0..take::<1>(&mut rest)?[0] {
        for _ in 0..take::<1>(&mut rest)?[0] {
            for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
                let id = u64::from_le_bytes(take(&mut rest)?);
                let _kind = take::<1>(&mut rest)?;
                let checksum = u128::from_le_bytes(take(&mut rest)?);
                let _global_sequence = take::<8>(&mut rest)?;
                tables.push(Listed { id, checksum });
            }
        }
    }
    Some(tables)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*first)
}
