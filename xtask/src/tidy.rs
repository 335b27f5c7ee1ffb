//! The rules of the house that a machine can check, one file for each.

use std::path::{Path, PathBuf};

use anyhow::Context;

pub mod advisories;
mod exceptions;
mod licences;
mod machine_paths;
mod metadata;
pub mod size;
pub mod sources;
mod unused;
mod walls;
mod words;
mod worlds;

use metadata::Metadata;
use sources::Sources;

/// Checks everything; each complaint is one line that says where and what.
pub fn run() -> anyhow::Result<Vec<String>> {
    let root = workspace_root()?;
    let metadata = Metadata::read(&root)?;
    let sources = Sources::read(&root)?;
    let mut complaints = Vec::new();
    complaints.extend(walls::check(&metadata));
    complaints.extend(walls::check_picture(&sources));
    complaints.extend(licences::check(&metadata));
    complaints.extend(advisories::check(&metadata, &sources));
    complaints.extend(unused::check(&sources));
    complaints.extend(size::check(&sources));
    complaints.extend(words::check(&sources));
    complaints.extend(machine_paths::check(&sources));
    complaints.extend(worlds::check(&sources));
    Ok(complaints)
}

pub fn workspace_root() -> anyhow::Result<PathBuf> {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    parent.map(Path::to_owned).context("the package lies in the workspace")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let complaints = super::run().expect("the checks run");
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
