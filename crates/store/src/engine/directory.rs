//! What is in a data directory before anything of it is opened, and whether it belongs together.
//!
//! A tree deletes what its list of tables does not name as soon as it is opened, and goes on from there. So the manifest,
//! the lists of all trees and the ends of all tables are compared first, and nothing is opened where they do not fit.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::error::damage;
use super::journal::{self, Journal};
use super::manifest::{FoundManifest, MANIFEST_FILE, TreeNote};
use super::tables::{CURRENT_FILE, TABLES_FOLDER, TableList};
use super::{Access, EngineError, Keyspace};

pub(super) const JOURNAL_FOLDER: &str = "journal";
/// Tells how far the journal is durable.
pub(super) const MARK_FILE: &str = "mark";
const LOCK_FILE: &str = "lock";
/// Where a tree is ahead of the manifest, so many bytes of its newest tables are read. An id that a killed process had given
/// to a table nobody lists is given again, so that an older table may have the name of a newer.
const AHEAD_CHECKED_BYTES: u64 = 256 << 20;
/// Tables that an error names.
const WRONG_TOLD_MAX: usize = 4;
/// What directories have that were written before the engine got its present form.
const OUTDATED_FOLDER: &str = "keyspaces";

pub(super) struct Survey {
    pub manifest: Option<FoundManifest>,
    trees: [FoundTree; Keyspace::ALL.len()],
}

/// What is there of a tree.
#[derive(Default)]
pub(super) enum FoundTree {
    #[default]
    Nothing,
    /// Its creation was interrupted before it had its first list.
    Begun,
    Listed {
        list: TableList,
        /// Fingerprints of its tables, by id.
        prints: HashMap<u64, u64>,
    },
}

impl Survey {
    /// Looks at a directory. A tree may be ahead of the manifest by so many flushes and merges.
    pub fn of(path: &Path, access: Access, ahead_max: u64) -> Result<Survey, EngineError> {
        if path.join(OUTDATED_FOLDER).exists() {
            return Err(EngineError::Outdated(path.to_owned()));
        }
        let manifest = FoundManifest::read(path)?;
        if manifest.is_none() && journal::was_ever_current(&path.join(JOURNAL_FOLDER), &path.join(MARK_FILE))?
        {
            let what =
                "the manifest is missing, without which nobody can tell whether the rest belongs together";
            return Err(damage(&path.join(MANIFEST_FILE), None, what));
        }
        let mut survey = Survey { manifest, trees: Default::default() };
        for keyspace in Keyspace::ALL {
            let folder = path.join(keyspace.name());
            let noted = survey.manifest.as_ref().and_then(|found| found.note.trees[keyspace as usize]);
            let tree = FoundTree::read(&folder, access)?;
            tree.compare(&folder, noted, ahead_max)?;
            survey.trees[keyspace as usize] = tree;
        }
        if survey.has_trees() && !path.join(JOURNAL_FOLDER).exists() {
            return Err(damage(&path.join(JOURNAL_FOLDER), None, "the folder of the journal is missing"));
        }
        Ok(survey)
    }

    /// Whether there is nothing that a server has left.
    pub fn is_blank(&self) -> bool {
        self.manifest.is_none() && self.trees.iter().all(|tree| matches!(tree, FoundTree::Nothing))
    }

    pub fn tree(&self, keyspace: Keyspace) -> &FoundTree {
        &self.trees[keyspace as usize]
    }

    fn has_trees(&self) -> bool {
        self.trees.iter().any(|tree| matches!(tree, FoundTree::Listed { .. }))
    }

    /// Compares whole tables with their checksums, and says what is wrong with which.
    pub fn check_tables(&self) -> Vec<String> {
        let check = |tree: &FoundTree| match tree {
            FoundTree::Listed { list, .. } => list.check_whole(),
            FoundTree::Nothing | FoundTree::Begun => Vec::new(),
        };
        self.trees.iter().flat_map(check).collect()
    }

    /// The journal goes at least as far as it did when the manifest was written.
    pub fn check_journal(&self, path: &Path, journal: &Journal) -> Result<(), EngineError> {
        let Some(FoundManifest { note, .. }) = &self.manifest else { return Ok(()) };
        if journal.generation() >= note.generation && journal.last() >= note.sequence {
            return Ok(());
        }
        let what = format!(
            "the end of the journal is missing: it goes to generation {} and sequence number {}, and was durable up to {} \
             and {}",
            journal.generation(),
            journal.last(),
            note.generation,
            note.sequence
        );
        Err(damage(&path.join(JOURNAL_FOLDER), None, &what))
    }
}

impl FoundTree {
    fn read(folder: &Path, access: Access) -> Result<FoundTree, EngineError> {
        if !folder.exists() {
            return Ok(FoundTree::Nothing);
        }
        if access == Access::Own {
            // The tree deletes what its list of tables does not name, so that must be the list that a kill leaves.
            sync_folder(folder)?;
        }
        if folder.join(CURRENT_FILE).exists() {
            let list = TableList::read(folder)?;
            let prints = list.fingerprints()?;
            return Ok(FoundTree::Listed { list, prints });
        }
        // Without its list it would be taken for a new one, and its tables would be deleted.
        let tables =
            std::fs::read_dir(folder.join(TABLES_FOLDER)).map(|mut entries| entries.next().is_some());
        match tables.unwrap_or(false) {
            true => Err(damage(&folder.join(CURRENT_FILE), None, "the tree's list of tables is missing")),
            false => Ok(FoundTree::Begun),
        }
    }

    /// Compares a tree with what the manifest says of it.
    fn compare(&self, folder: &Path, noted: Option<TreeNote>, ahead_max: u64) -> Result<(), EngineError> {
        let Some(noted) = noted else { return Ok(()) };
        let FoundTree::Listed { list, prints } = self else {
            let what = format!("the tree is missing; the manifest names {} tables of it", noted.tables);
            return Err(damage(folder, None, &what));
        };
        let ahead = list.version.checked_sub(noted.version);
        let what = match ahead {
            None => format!(
                "it names version {} of the tree, which was at version {}",
                list.version, noted.version
            ),
            Some(0) if list.note(prints) != noted => {
                // There is time for it now: which of them it is.
                let wrong =
                    list.check_whole().into_iter().take(WRONG_TOLD_MAX).collect::<Vec<_>>().join("; ");
                format!("the tables are not those that the manifest names. {wrong}")
            }
            Some(ahead) if ahead > ahead_max => format!(
                "it names version {} of the tree, and the manifest is at version {}: one of them is of another time",
                list.version, noted.version
            ),
            Some(0) => return Ok(()),
            // The fingerprint is of other tables, so that the newest are compared with what the tree's own list says.
            Some(_) => match list.check_newest(AHEAD_CHECKED_BYTES).as_slice() {
                [] => return Ok(()),
                wrong => {
                    format!("tables are not those that the tree's own list names. {}", wrong.join("; "))
                }
            },
        };
        let is_list_wrong = ahead.is_none_or(|ahead| ahead > ahead_max);
        let file = if !is_list_wrong { folder.join(TABLES_FOLDER) } else { folder.join(CURRENT_FILE) };
        Err(damage(&file, None, &what))
    }
}

/// Makes a folder, and those above it that are missing.
pub(super) fn create_folders(path: &Path) -> io::Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    std::fs::create_dir_all(path)?;
    missing.into_iter().filter_map(Path::parent).try_for_each(sync_folder)
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// Takes the directory for this process. The files of the journal are locked too, so that this one may be missing.
pub(super) fn lock(path: &Path, access: Access) -> Result<Option<File>, EngineError> {
    let file: PathBuf = path.join(LOCK_FILE);
    let file = match access {
        Access::Own => File::options().write(true).create(true).truncate(false).open(file)?,
        Access::Look => match File::open(file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    access.lock(&file, path)?;
    Ok(Some(file))
}
