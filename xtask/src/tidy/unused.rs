//! No dependency that nobody uses: each costs a build, and each is a door.
//!
//! A package that a `Cargo.toml` names must be named in a source of that package, as a word: in a path, a macro or an
//! attribute. That is less than a compiler knows and enough to find what was forgotten.

use std::collections::BTreeSet;

use super::sources::Sources;

/// Dependencies that are there for their features alone, each with its reason.
const FOR_FEATURES: &[(&str, &str)] = &[];

pub fn check(sources: &Sources) -> Vec<String> {
    let mut complaints = Vec::new();
    for manifest in sources.files.iter().filter(|source| source.path.ends_with("Cargo.toml")) {
        let folder = manifest.path.strip_suffix("Cargo.toml").unwrap_or_default();
        let Ok(table) = manifest.text.parse::<toml::Table>() else {
            complaints.push(format!("{}: is not TOML", manifest.path));
            continue;
        };
        // A workspace's own list is used by its members; each of them names what it takes of it.
        if !table.contains_key("package") {
            complaints.extend(unused_of_workspace(sources, &manifest.path, &table));
            continue;
        }
        let mut words = BTreeSet::new();
        for source in sources.rust().filter(|source| source.path.starts_with(folder)) {
            words.extend(source.text.split(|c: char| !(c.is_alphanumeric() || c == '_')));
        }
        let unused = dependencies(&table).into_iter().filter(|name| {
            let is_for_features = FOR_FEATURES.contains(&(manifest.path.as_str(), *name));
            !words.contains(name.replace('-', "_").as_str()) && !is_for_features
        });
        complaints.extend(unused.map(|name| format!("{}: no source uses `{name}`", manifest.path)));
    }
    complaints
}

/// What the workspace offers and no member takes.
fn unused_of_workspace(sources: &Sources, path: &str, table: &toml::Table) -> Vec<String> {
    let Some(offered) =
        table.get("workspace").and_then(|workspace| workspace.get("dependencies")?.as_table())
    else {
        return vec![];
    };
    let members = sources.files.iter().filter(|source| source.path.ends_with("/Cargo.toml"));
    let taken: BTreeSet<String> = members
        .filter_map(|member| member.text.parse::<toml::Table>().ok())
        .flat_map(|member| dependencies(&member).into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let unused = offered.keys().filter(|name| !taken.contains(*name));
    unused.map(|name| format!("{path}: no member uses `{name}`")).collect()
}

/// The names under which a package's sources know what it depends on.
fn dependencies(table: &toml::Table) -> Vec<&str> {
    let mut found = Vec::new();
    let mut tables = vec![table];
    let targets = table.get("target").and_then(toml::Value::as_table);
    tables.extend(targets.into_iter().flat_map(|targets| targets.values().filter_map(toml::Value::as_table)));
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let named = table.get(kind).and_then(toml::Value::as_table);
            found.extend(named.into_iter().flat_map(|named| named.keys().map(String::as_str)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::sources::Source;
    use super::*;

    #[test]
    fn a_dependency_that_no_source_names_is_complained_about() {
        let manifest = "[package]\nname = \"p\"\n[dependencies]\nused-one = \"1\"\nforgotten = \"1\"\n\
                        [dev-dependencies]\nin_tests.workspace = true\n[target.'cfg(unix)'.dependencies]\nlost = \"1\"\n";
        let workspace = "[workspace]\n[workspace.dependencies]\nin_tests = \"1\"\nnobody = \"1\"\n";
        let sources = Sources {
            files: vec![
                Source::new("Cargo.toml", workspace),
                Source::new("crates/p/Cargo.toml", manifest),
                Source::new("crates/p/src/lib.rs", "use used_one::Thing; // not_forgotten"),
                Source::new("crates/p/tests/t.rs", "#[in_tests::main] fn t() {}"),
                Source::new("crates/q/src/lib.rs", "use forgotten::Thing;"),
            ],
        };
        assert_eq!(
            check(&sources),
            [
                "Cargo.toml: no member uses `nobody`",
                "crates/p/Cargo.toml: no source uses `forgotten`",
                "crates/p/Cargo.toml: no source uses `lost`",
            ]
        );
    }
}
