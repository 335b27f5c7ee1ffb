//! Where the lines of the shell are kept for the next time.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustyline::history::DefaultHistory;
use rustyline::{Editor, Helper};

/// The file for this user; none for a user without a home.
pub fn by_default() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state =
        absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("orrery/shell-history"))
}

/// Other shells may have added lines, so these are appended. Lines may hold what nobody else should read.
pub fn save<H: Helper>(editor: &mut Editor<H, DefaultHistory>, file: &Path) -> anyhow::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
    }
    editor
        .append_history(file)
        .with_context(|| format!("cannot keep lines in {}; see --history", file.display()))
}
