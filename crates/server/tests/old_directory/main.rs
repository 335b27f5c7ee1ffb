//! A data directory of the build before the formats of `docs/format.md`, opened by this build.
//!
//! `format4.tar.xz` holds a directory (`data`) that was written and killed by that build, and what it answered about a
//! copy of it (`expected.json`). The directory has splits and a merge, histories, times to live, unique keys, a finished and a
//! paused job, scripts, users and permissions, a half-built index, keys of version 1 (also long ones that share a place),
//! hierarchical keys, partitions that are or have become empty, and writes that were only in the journal when the server was killed.
//!
//! `make.rs` writes such a directory with any binary, and the tests here make one with this build, too. To pack a new one:
//!
//! ```text
//! ORRERY_OLD_BINARY=path/to/orrery ORRERY_OLD_ARCHIVE=path/to/new.tar.xz \
//!     cargo test --package orrery --test old_directory -- a_directory_of_this_build
//! ```

mod answers;
mod history;
mod make;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use orrery_testkit::{Server, verify};
use serde_json::Value;

use answers::Answers;

const ARCHIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old_directory/format4.tar.xz");
/// Small files; nothing is slowed down, and nothing merges by itself while a test looks.
const OPTIONS: [&str; 5] =
    ["--no-throttle", "--write-buffer-bytes", "256KiB", "--merge-after-seconds", "80000"];

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

/// Unpacks the archive, and returns the directory and what is expected of it.
fn unpack(folder: &Path) -> (PathBuf, Value) {
    run(Command::new("tar").arg("-xJf").arg(ARCHIVE).arg("-C").arg(folder));
    let text = fs::read(folder.join("expected.json")).expect("the archive has it");
    (folder.join("data"), serde_json::from_slice(&text).expect("JSON"))
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// Whatever is asked, a server on this directory must answer it so, before and after it was stopped or killed.
fn check(data: &Path, expected: &Value) {
    verify(binary(), data).expect("the directory is sound before it is opened");
    history::compare(data, &expected["history"]);
    for is_killed in [true, false, false] {
        let server = Server::start_on(binary(), data, &OPTIONS);
        Answers::compare(server.port(), &expected["answers"]);
        if is_killed {
            server.kill()
        } else {
            server.stop()
        }
        verify(binary(), data).expect("the directory is sound");
    }
}

#[test]
fn a_directory_of_the_build_before_gives_the_same_answers() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, expected) = unpack(folder.path());
    make::assert_half_built(&data);
    check(&data, &expected);
}

/// An opened directory of the build before takes writes, and what it then holds is whole.
#[test]
fn a_directory_of_the_build_before_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, _) = unpack(folder.path());
    let server = Server::start_on(binary(), &data, &OPTIONS);
    make::go_on(server.port());
    server.kill();
    verify(binary(), &data).expect("the directory is sound");
    let server = Server::start_on(binary(), &data, &OPTIONS);
    make::went_on(server.port());
    server.stop();
    verify(binary(), &data).expect("the directory is sound");
}

#[test]
fn a_directory_of_this_build_gives_the_same_answers_after_a_kill() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let maker = std::env::var_os("ORRERY_OLD_BINARY").map_or_else(|| binary().to_owned(), PathBuf::from);
    let data = folder.path().join("data");
    make::directory(&maker, &data);
    let expected = make::expect(&maker, &data, &folder.path().join("copy"));
    if let Some(archive) = std::env::var_os("ORRERY_OLD_ARCHIVE") {
        let text = serde_json::to_vec(&expected).expect("plain data");
        fs::write(folder.path().join("expected.json"), text).expect("our own folder");
        let mut pack = Command::new("tar");
        pack.arg("-cJf").arg(archive).arg("--sort=name").arg("--owner=0").arg("--group=0");
        run(pack.arg("-C").arg(folder.path()).arg("data").arg("expected.json"));
    }
    check(&data, &expected);
}
