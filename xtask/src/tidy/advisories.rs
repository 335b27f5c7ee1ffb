//! No package with a known hole: the locked versions against a table of advisories that lies in the project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, bail};
use semver::{Version, VersionReq};

use super::metadata::Metadata;
use super::sources::Sources;

pub const TABLE: &str = "xtask/advisories.txt";

/// One advisory, about one package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advisory {
    pub package: String,
    pub id: String,
    /// As the table writes them; a version is safe that is in one of them.
    pub safe: Vec<String>,
}

pub fn check(metadata: &Metadata, sources: &Sources) -> Vec<String> {
    let Some(table) = sources.files.iter().find(|source| source.path == TABLE) else {
        return vec![format!("{TABLE}: the table of advisories is not there")];
    };
    match parse(&table.text) {
        Ok(advisories) => check_against(metadata, &advisories),
        Err(error) => vec![format!("{TABLE}: {error:#}")],
    }
}

fn check_against(metadata: &Metadata, advisories: &[Advisory]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in metadata.packages.values().filter(|package| !package.ours) {
        for advisory in advisories.iter().filter(|advisory| advisory.package == package.name) {
            match advisory.is_safe(&package.version) {
                Ok(true) => {}
                Ok(false) => complaints.push(format!(
                    "{} {}: {} is about this version; safe are: {}",
                    package.name,
                    package.version,
                    advisory.id,
                    if advisory.safe.is_empty() { "none".to_owned() } else { advisory.safe.join(" | ") }
                )),
                Err(error) => complaints.push(format!("{TABLE}: {}: {error:#}", advisory.id)),
            }
        }
    }
    complaints
}

impl Advisory {
    fn is_safe(&self, version: &str) -> anyhow::Result<bool> {
        let version = Version::parse(version).with_context(|| format!("the version {version}"))?;
        for safe in &self.safe {
            if VersionReq::parse(safe).with_context(|| format!("`{safe}`"))?.matches(&version) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn line(&self) -> String {
        format!("{}; {}; {}", self.package, self.id, self.safe.join(" | ")).trim_end().to_owned()
    }
}

pub fn parse(text: &str) -> anyhow::Result<Vec<Advisory>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> anyhow::Result<Advisory> {
    let fields: Vec<&str> = line.split(';').map(str::trim).collect();
    let [package, id, safe] = fields[..] else { bail!("`{line}` is not `package; id; safe versions`") };
    let safe = safe.split('|').map(str::trim).filter(|safe| !safe.is_empty()).map(str::to_owned).collect();
    Ok(Advisory { package: package.to_owned(), id: id.to_owned(), safe })
}

/// Rewrites the table from a clone of the RustSec database, and says what the locked versions then are guilty of.
pub fn refresh(root: &Path, clone: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = Metadata::read(root)?;
    let path = root.join(TABLE);
    let old = std::fs::read_to_string(&path).with_context(|| TABLE.to_owned())?;
    let names: BTreeSet<&str> = metadata.packages.values().map(|package| package.name.as_str()).collect();
    let mut table: BTreeMap<(String, String), Advisory> = BTreeMap::new();
    let mut add = |advisory: Advisory| {
        table.insert((advisory.package.clone(), advisory.id.clone()), advisory);
    };
    parse(&old)?.into_iter().filter(|advisory| names.contains(advisory.package.as_str())).for_each(&mut add);
    for name in &names {
        let folder = clone.join("crates").join(name);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let file = entry?.path();
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            from_rustsec(name, &text)
                .with_context(|| file.display().to_string())?
                .into_iter()
                .for_each(&mut add);
        }
    }
    let comment: String =
        old.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let lines: String = table.values().map(|advisory| advisory.line() + "\n").collect();
    std::fs::write(&path, comment + &lines)?;
    Ok(check_against(&metadata, &table.into_values().collect::<Vec<_>>()))
}

/// Reads what RustSec says about a package: a TOML block at the head of a Markdown file. Withdrawn ones are none.
fn from_rustsec(package: &str, text: &str) -> anyhow::Result<Option<Advisory>> {
    let block = text.split("```").nth(1).and_then(|block| block.strip_prefix("toml"));
    let facts: toml::Table = block.context("there is no TOML at the head")?.parse()?;
    let advisory = facts.get("advisory").context("there is no `advisory`")?;
    if advisory.get("withdrawn").is_some() {
        return Ok(None);
    }
    let id = advisory.get("id").and_then(toml::Value::as_str).context("there is no `id`")?.to_owned();
    let of = |key: &str| facts.get("versions").and_then(|versions| versions.get(key)?.as_array().cloned());
    let safe = [of("patched"), of("unaffected")].into_iter().flatten().flatten();
    let safe = safe.filter_map(|safe| safe.as_str().map(str::to_owned)).collect();
    Ok(Some(Advisory { package: package.to_owned(), id, safe }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn locked(version: &str) -> Metadata {
        let packages = json!([{"id": "p", "name": "tokens", "version": version}]);
        let json = json!({"packages": packages, "workspace_members": [], "resolve": {"nodes": []}});
        Metadata::parse(&json).expect("the graph is well formed")
    }

    #[test]
    fn a_locked_version_with_a_known_hole_is_complained_about() {
        let table = "# a comment\ntokens; CVE-1; >= 10.3.0 | >= 9.4.1, < 10.0.0\nelse; CVE-2;\n";
        let table = parse(table).expect("a table");
        for (version, complaints) in [("9.3.1", 1), ("9.4.1", 0), ("10.2.9", 1), ("10.3.0", 0), ("11.0.0", 0)]
        {
            let found = check_against(&locked(version), &table);
            assert_eq!(found.len(), complaints, "{version}: {found:?}");
        }
        let none = parse("tokens; CVE-3;").expect("a table");
        assert_eq!(
            check_against(&locked("99.0.0"), &none),
            ["tokens 99.0.0: CVE-3 is about this version; safe are: none"]
        );
        assert!(parse("tokens CVE-3").is_err());
    }

    #[test]
    fn an_entry_of_the_database_becomes_a_line() {
        let text = "```toml\n[advisory]\nid = \"RUSTSEC-1\"\npackage = \"tokens\"\n[versions]\npatched = [\">= 2.0.1\"]\n\
                    unaffected = [\"< 1.0.0\"]\n```\n\n# What it is\n";
        let found = from_rustsec("tokens", text).expect("an entry").expect("not withdrawn");
        assert_eq!(found.line(), "tokens; RUSTSEC-1; >= 2.0.1 | < 1.0.0");
        let withdrawn = text.replace("[versions]", "withdrawn = \"2025-01-01\"\n[versions]");
        assert_eq!(from_rustsec("tokens", &withdrawn).expect("an entry"), None);
    }
}
