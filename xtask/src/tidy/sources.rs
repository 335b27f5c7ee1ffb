//! The files of the project: those that git tracks, and new ones that it does not ignore.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

pub struct Sources {
    pub files: Vec<Source>,
}

pub struct Source {
    /// The path from the root of the project.
    pub path: String,
    pub text: String,
}

impl Sources {
    pub fn read(root: &Path) -> anyhow::Result<Sources> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git ls-files")?;
        ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
        let listed = String::from_utf8(output.stdout).context("paths are UTF-8")?;
        let mut files = Vec::new();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            // A file may be deleted but still listed, and a binary file has no rules to follow.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push(Source::new(path, &text));
            }
        }
        Ok(Sources { files })
    }

    pub fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|source| source.path.ends_with(".rs"))
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// The room that the file belongs to: the folder under `crates`.
    pub fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the whole file is a test or a benchmark.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "fuzz"))
    }
}
