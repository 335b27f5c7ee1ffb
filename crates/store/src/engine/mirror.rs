//! A copy of the trees that may be opened where theirs must not be changed.
//!
//! A tree that is opened deletes lists and tables of its own that it has no need of. Where a directory is only looked at,
//! the trees are opened in a folder elsewhere that has copies of their lists, which are small, and links to their tables.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::directory::{FoundTree, Survey};
use super::tables::{CURRENT_FILE, TABLES_FOLDER, list_file, table_path};
use super::{EngineError, Keyspace};

/// Memory that every system has that we know of; used where there is no place for temporary files.
const MEMORY_FOLDER: &str = "/dev/shm";

pub(super) struct Mirror {
    folder: tempfile::TempDir,
}

impl Mirror {
    pub fn of(directory: &Path, survey: &Survey) -> Result<Mirror, EngineError> {
        let prefix = "orrery-verify-";
        let make = || tempfile::Builder::new().prefix(prefix).tempdir();
        let folder = make().or_else(|_| tempfile::Builder::new().prefix(prefix).tempdir_in(MEMORY_FOLDER));
        let folder = folder.map_err(|error| {
            let text = format!("no place for a few small temporary files; TMPDIR may name one: {error}");
            io::Error::new(error.kind(), text)
        })?;
        // A link must lead to the same place from wherever it is followed.
        let directory = fs::canonicalize(directory)?;
        let mirror = Mirror { folder };
        for keyspace in Keyspace::ALL {
            if let FoundTree::Listed { list, .. } = survey.tree(keyspace) {
                let (from, to) = (directory.join(keyspace.name()), mirror.tree(keyspace));
                fs::create_dir_all(to.join(TABLES_FOLDER))?;
                for file in [CURRENT_FILE.to_owned(), list_file(list.version)] {
                    fs::write(to.join(&file), fs::read(from.join(&file))?)?;
                }
                for table in &list.tables {
                    symlink(table_path(&from, table.id), table_path(&to, table.id))?;
                }
            }
        }
        Ok(mirror)
    }

    /// The folder of a tree.
    pub fn tree(&self, keyspace: Keyspace) -> PathBuf {
        self.folder.path().join(keyspace.name())
    }
}
