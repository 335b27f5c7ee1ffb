//! The files of the project: everything in its folder but what builds, tests and servers make there.

use std::path::Path;

use anyhow::Context;

/// What `.gitignore` names, and git's own folder. Git is not asked: a copy of the project without its
/// history must be as tidy as a clone.
const MADE_HERE: &[&str] = &[
    ".git",
    ".cache",
    "target",
    "orrery-data",
    "out",
    "__pycache__",
    "node_modules",
    "dist",
    ".venv",
    ".idea",
    ".vscode",
];

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
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path = entry?.path();
                if path.is_symlink() || is_made_here(&path) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    // Files that are not text have no rules to follow.
                    let name = path.strip_prefix(root)?.to_str().context("paths are UTF-8")?;
                    files.push(Source::new(name, &text));
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
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

    /// The lines that are not for tests only, with their places: those of items below `#[cfg(test)]` are left out.
    pub fn product(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut test = None;
        self.text.lines().enumerate().filter(move |(_, line)| {
            let code = line.trim_start();
            let depth = line.len() - code.len();
            match test {
                None if code == "#[cfg(test)]" => test = Some(depth),
                None => return true,
                // An item ends at its own depth.
                Some(at)
                    if depth == at && !code.starts_with(['#', '/']) && code.ends_with(['}', ';', ',']) =>
                {
                    test = None;
                }
                Some(_) => {}
            }
            false
        })
    }

    /// Whether the whole file is a test or a benchmark.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "fuzz"))
    }
}

fn is_made_here(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| MADE_HERE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_tests_only_is_no_part_of_the_product() {
        let text = "struct A;\n\n#[cfg(test)]\n/// For tests; and more.\nfn b() {\n    one();\n}\n\nimpl A {\n    \
            #[cfg(test)]\n    fn c(&self) {\n        two();\n    }\n\n    fn d() {\n        three();\n    }\n}\n\n\
            #[cfg(test)]\nmod more;\nfn e() {}\n\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
        let source = Source::new("crates/store/src/x.rs", text);
        let lines: Vec<&str> =
            source.product().map(|(_, line)| line).filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            ["struct A;", "impl A {", "    fn d() {", "        three();", "    }", "}", "fn e() {}"]
        );
        assert!(source.product().all(|(place, line)| text.lines().nth(place) == Some(line)));
    }
}
