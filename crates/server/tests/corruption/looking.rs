//! `orrery verify` looks and changes nothing, and a directory in use is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use orrery_testkit::{Server, left_out};

use crate::world::{self, files};
use crate::{OPTIONS, binary};

fn verify(directory: &Path) -> Output {
    Command::new(binary()).args(["verify", "--data-dir"]).arg(directory).output().expect("the binary runs")
}

/// Content, length and times of all files, and the times of all folders.
fn state(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, (i64, i64))> {
    let folders = files(directory).into_iter().filter_map(|file| file.parent().map(Path::to_owned));
    let all = files(directory).into_iter().chain(folders);
    let look = |path: PathBuf| {
        let full = directory.join(&path);
        let metadata = fs::metadata(&full).expect("it is there");
        let content = if metadata.is_file() { fs::read(&full).expect("it is there") } else { Vec::new() };
        (path, (content, (metadata.mtime(), metadata.mtime_nsec())))
    };
    all.map(look).collect()
}

/// A folder that nobody can write to, not even the system's administrator; none where mounting is not allowed.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn mount(folder: &Path) -> Option<ReadOnly> {
        let mount = |options: &[&str]| {
            let output = Command::new("mount").args(options).arg(folder).output();
            output.is_ok_and(|output| output.status.success())
        };
        let path = folder.to_str()?;
        let is_mounted = mount(&["--bind", path]);
        let mounted = is_mounted.then(|| ReadOnly(folder.to_owned()))?;
        mount(&["-o", "remount,bind,ro"]).then_some(mounted)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn verify_changes_nothing_even_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for base in &world::build(folder.path(), 1) {
        let before = state(&base.directory);
        let output = verify(&base.directory);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {text}{}", base.name, String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("(catalog) range 0") && text.contains("corruption/items range 0"), "{text}");
        assert!(before == state(&base.directory), "{}: verify has changed something", base.name);
        match ReadOnly::mount(&base.directory) {
            Some(_mounted) => {
                assert!(fs::write(base.directory.join("new"), b"").is_err(), "it can be written to");
                let output = verify(&base.directory);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            None => left_out("mount a directory read-only"),
        }
        assert!(before == state(&base.directory), "{}: verify has changed something", base.name);
    }
}

#[test]
fn verify_finds_a_damaged_block_of_every_tree_and_names_the_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let bases = world::build(folder.path(), 2);
    let base = &bases[0];
    for tree in ["item", "index", "feed", "meta"] {
        let table =
            files(&base.directory).into_iter().rfind(|path| path.starts_with(format!("{tree}/tables")));
        let path = base.directory.join(table.expect("the tree has tables"));
        let content = fs::read(&path).expect("it is there");
        let mut damaged = content.clone();
        damaged[60] ^= 1;
        fs::write(&path, damaged).expect("it can be written");
        let output = verify(&base.directory);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("it prints text");
        assert_eq!(output.status.code(), Some(1), "{text}");
        let name = path.strip_prefix(&base.directory).expect("it is below").display().to_string();
        assert!(text.contains(&name), "{name}: {text}");
        fs::write(&path, content).expect("it can be written");
    }
    assert!(verify(&base.directory).status.success());
}

/// Neither a second server nor `verify` may use the directory of a live server, also when `lock` was deleted.
#[test]
fn a_directory_in_use_is_refused_even_without_its_lock() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let server = Server::start_on(binary(), &data, &OPTIONS);
    for is_removed in [false, true] {
        if is_removed {
            fs::remove_file(data.join("lock")).expect("it is there");
        }
        let said = Server::try_start_on(binary(), &data, &OPTIONS).err().expect("the directory is in use");
        assert!(said.contains("in use by another process"), "{said}");
        let output = verify(&data);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("in use by another process"));
    }
    server.stop();
    Server::start_on(binary(), &data, &OPTIONS).stop();
}
