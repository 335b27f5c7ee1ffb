//! The ways in: what a user sees who starts the server for the first time and works with it from a terminal.

mod commands;
mod first_screen;
mod proxy;
mod seed;
mod shell;
mod stumbles;
#[path = "../insight/terminal.rs"]
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use orrery_testkit::Server;
use tempfile::TempDir;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

/// A server, and a folder in which its user types commands.
struct Desk {
    server: Server,
    folder: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk::with(&[])
    }

    fn with(args: &[&str]) -> Desk {
        let server = Server::start(binary(), &[&["--in-memory"], args].concat());
        Desk { server, folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/", self.server.port())
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("the file is written");
        path
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = bare(line);
        command.current_dir(self.folder.path()).env("ORRERY_ENDPOINT", self.endpoint());
        command
    }

    /// Runs a command that must succeed, and returns what it printed.
    #[track_caller]
    fn run(&self, line: &[&str]) -> String {
        let output = self.command(line).output().expect("the binary runs");
        assert!(output.status.success(), "{line:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that must fail, and returns what it said.
    #[track_caller]
    fn fails(&self, line: &[&str]) -> String {
        refusal(self.command(line))
    }
}

/// A command in an environment in which only the test says where the server is.
fn bare(line: &[&str]) -> Command {
    let mut command = Command::new(binary());
    for name in ["ORRERY_ENDPOINT", "ORRERY_KEY", "ORRERY_CA_FILE", "AZURE_COSMOS_CONNECTION_STRING"] {
        command.env_remove(name);
    }
    command.args(line);
    command
}

#[track_caller]
fn refusal(mut command: Command) -> String {
    let output = command.output().expect("the binary runs");
    assert!(!output.status.success(), "{command:?} printed {}", String::from_utf8_lossy(&output.stdout));
    said(&output)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
