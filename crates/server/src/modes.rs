//! Who else on the machine may read or change what the server keeps.
//!
//! Items, certificates and account keys are the business of the user that runs the server. Folders and files that others
//! may use are tightened, and the log says so, because an operator may have meant it. Where that is not possible,
//! on a read-only volume with secrets for instance, others who can read are only told about; a secret that others can
//! change is refused.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, bail};

/// All rights of the group and of everybody else, and those to write.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
const FOLDER: u32 = 0o700;
/// Where files of many users lie side by side.
const STICKY: u32 = 0o1000;

/// Makes a folder for the owner alone, or takes from one that is there what others may do with it.
pub fn keep_folder(path: &Path) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(FOLDER).create(path).with_context(|| cannot_make(path))
        }
        Ok(found) if !found.is_dir() => {
            bail!("{} is a file; --data-dir names a folder, which is made if it is missing", path.display())
        }
        Ok(found) if found.permissions().mode() & STICKY != 0 || path.parent().is_none() => {
            tracing::warn!(path = %path.display(), "others use this folder too; data should have one of its own");
            Ok(())
        }
        _ => {
            // Volumes of containers may belong to another user and be open to all; refusing them would not help the operator.
            let _ = tighten(path, OTHERS);
            Ok(())
        }
    }
}

/// Sees to it that nobody else can read or change a secret.
pub fn keep_secret(path: &Path) -> anyhow::Result<()> {
    refuse_writers(path, tighten(path, OTHERS))
}

/// Sees to it that nobody else can change a file; everybody may read it.
pub fn keep_unchanged(path: &Path) -> anyhow::Result<()> {
    refuse_writers(path, tighten(path, OTHERS_WRITE))
}

fn refuse_writers(path: &Path, mode: io::Result<u32>) -> anyhow::Result<()> {
    match mode {
        Ok(mode) if mode & OTHERS_WRITE != 0 => bail!(
            "{} can be changed by others (mode {mode:03o}) and its mode cannot be set; run `chmod go-w {}`",
            path.display(),
            path.display()
        ),
        // A file that is not there is for its reader to complain about.
        _ => Ok(()),
    }
}

/// Takes rights away that others have, as far as the system lets us, and returns what mode there is now.
fn tighten(path: &Path, forbidden: u32) -> io::Result<u32> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & forbidden == 0 {
        return Ok(mode);
    }
    let (shown, from) = (path.display(), format!("{mode:03o}"));
    let to = mode & !forbidden;
    match fs::set_permissions(path, Permissions::from_mode(to)) {
        Ok(()) => {
            tracing::warn!(path = %shown, from, to = format!("{to:03o}"), "others could use this; its mode is tightened");
            Ok(to)
        }
        Err(error) => {
            tracing::warn!(path = %shown, mode = from, %error, "others can use this, and its mode cannot be tightened");
            Ok(mode)
        }
    }
}

fn cannot_make(path: &Path) -> String {
    format!("cannot make the folder {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn what_others_could_use_is_tightened() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "text").expect("written");
        let set = |mode: u32| fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
        for (before, secret, unchanged) in
            [(0o644, 0o600, 0o644), (0o666, 0o600, 0o644), (0o400, 0o400, 0o400)]
        {
            set(before);
            keep_unchanged(&file).expect("ours");
            assert_eq!(mode(&file), unchanged, "{before:o}");
            set(before);
            keep_secret(&file).expect("ours");
            assert_eq!(mode(&file), secret, "{before:o}");
        }
        assert!(keep_secret(&folder.path().join("missing")).is_ok());
        assert!(refuse_writers(&file, Ok(0o646)).is_err());
        assert!(refuse_writers(&file, Ok(0o644)).is_ok());
    }

    #[test]
    fn new_folders_are_for_the_owner_alone_and_old_ones_become_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let new = folder.path().join("a/b");
        keep_folder(&new).expect("made");
        assert_eq!(mode(&new), 0o700);
        fs::set_permissions(&new, Permissions::from_mode(0o777)).expect("set");
        keep_folder(&new).expect("tightened");
        assert_eq!(mode(&new), 0o700);
        // One like /tmp is not ours to close.
        fs::set_permissions(&new, Permissions::from_mode(0o1777)).expect("set");
        keep_folder(&new).expect("left alone");
        assert_eq!(mode(&new), 0o777);
    }
}
