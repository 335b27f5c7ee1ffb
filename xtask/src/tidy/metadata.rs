//! What `cargo metadata` knows of the packages and of who depends on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

pub struct Metadata {
    pub packages: BTreeMap<String, Package>,
}

pub struct Package {
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
    /// Whether this package is part of the workspace.
    pub ours: bool,
    /// Ids of the packages that this one is built with, tests left out.
    pub depends_on: BTreeSet<String>,
}

impl Metadata {
    pub fn read(root: &Path) -> anyhow::Result<Metadata> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Self::parse(&serde_json::from_slice(&output.stdout)?)
    }

    pub fn parse(json: &Value) -> anyhow::Result<Metadata> {
        let members: BTreeSet<&str> = list(json, "workspace_members").filter_map(Value::as_str).collect();
        let mut packages = BTreeMap::new();
        for package in list(json, "packages") {
            let id = text(package, "id").context("a package has an id")?;
            let package = Package {
                name: text(package, "name").context("a package has a name")?.to_owned(),
                version: text(package, "version").unwrap_or_default().to_owned(),
                licence: text(package, "license").map(str::to_owned),
                ours: members.contains(id),
                depends_on: BTreeSet::new(),
            };
            packages.insert(id.to_owned(), package);
        }
        for node in list(&json["resolve"], "nodes") {
            let Some(package) = text(node, "id").and_then(|id| packages.get_mut(id)) else {
                continue;
            };
            for dependency in list(node, "deps").filter(|dependency| is_built_in(dependency)) {
                package.depends_on.extend(text(dependency, "pkg").map(str::to_owned));
            }
        }
        Ok(Metadata { packages })
    }

    pub fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter(|package| package.ours)
    }

    /// The packages that this one is built with, by name, however far away.
    pub fn reach(&self, package: &Package) -> BTreeSet<&str> {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = package.depends_on.iter().map(String::as_str).collect();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(self.packages[id].depends_on.iter().map(String::as_str));
            }
        }
        seen.into_iter().map(|id| self.packages[id].name.as_str()).collect()
    }
}

/// A dependency counts unless it is for tests only.
fn is_built_in(dependency: &Value) -> bool {
    list(dependency, "dep_kinds").any(|kind| kind["kind"] != "dev")
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str()
}
