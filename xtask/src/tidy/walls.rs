//! The walls between the rooms: who may import whom.
//!
//! This table is the architecture's own. A new arrow is a decision, so it is made here, in a review,
//! and not by the way in some `Cargo.toml`.

use super::metadata::{Metadata, Package};
use super::sources::Sources;

struct Room {
    package: &'static str,
    may_import: &'static [&'static str],
    /// Packages that must not be reached, directly or through others.
    never: &'static [&'static str],
}

/// The core rooms are synchronous and have no sockets.
const NO_ASYNC: &[&str] = &["tokio", "hyper", "async-std", "smol", "mio"];

const ROOMS: &[Room] = &[
    Room { package: "orrery-doc", may_import: &[], never: NO_ASYNC },
    Room { package: "orrery-prices", may_import: &[], never: NO_ASYNC },
    Room { package: "orrery-query", may_import: &["orrery-doc"], never: NO_ASYNC },
    Room { package: "orrery-store", may_import: &["orrery-doc", "orrery-prices"], never: NO_ASYNC },
    Room { package: "orrery-script", may_import: &["orrery-doc"], never: NO_ASYNC },
    Room {
        package: "orrery-cluster",
        may_import: &["orrery-doc", "orrery-prices", "orrery-query", "orrery-store", "orrery-script"],
        never: &["hyper"],
    },
    // What gateways share knows no protocol, and gateways do not know each other.
    Room { package: "orrery-gateway", may_import: &["orrery-doc", "orrery-cluster"], never: &["clap"] },
    Room {
        package: "orrery-nosql",
        may_import: &["orrery-doc", "orrery-query", "orrery-cluster", "orrery-gateway"],
        never: &["clap"],
    },
    Room {
        package: "orrery-table",
        may_import: &["orrery-doc", "orrery-query", "orrery-cluster", "orrery-gateway"],
        never: &["clap"],
    },
    // The advisor plans with prices and limits; of what serves requests it knows nothing.
    Room {
        package: "orrery-advisor",
        may_import: &["orrery-doc", "orrery-prices"],
        never: &["tokio", "hyper", "clap"],
    },
    Room {
        package: "orrery",
        may_import: &[
            "orrery-doc",
            "orrery-query",
            "orrery-store",
            "orrery-script",
            "orrery-cluster",
            "orrery-gateway",
            "orrery-nosql",
            "orrery-table",
            "orrery-advisor",
        ],
        never: &[],
    },
    // Benchmarks measure the engine beside the server, and reach the server only as a client does.
    Room {
        package: "orrery-bench",
        may_import: &["orrery-doc", "orrery-store", "orrery-testkit"],
        never: &[],
    },
    Room { package: "orrery-storm", may_import: &["orrery-store"], never: &[] },
    // What tests share may reach a server only as a client does.
    Room { package: "orrery-testkit", may_import: &[], never: &[] },
    // It shows that these three are enough for a gateway.
    Room {
        package: "orrery-line-gateway",
        may_import: &["orrery-doc", "orrery-query", "orrery-cluster"],
        never: &["hyper", "clap"],
    },
    Room { package: "xtask", may_import: &[], never: &[] },
];

pub fn check(metadata: &Metadata) -> Vec<String> {
    metadata.ours().flat_map(|package| check_package(metadata, package)).collect()
}

fn check_package(metadata: &Metadata, package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some(room) = ROOMS.iter().find(|room| room.package == name) else {
        return vec![format!("{name}: this package is not in the table of rooms (xtask/src/tidy/walls.rs)")];
    };
    let imports = package.depends_on.iter().map(|id| &metadata.packages[id]).filter(|other| other.ours);
    let arrows = imports
        .filter(|other| !room.may_import.contains(&other.name.as_str()))
        .map(|other| format!("{name}: must not import {}", other.name));
    let reach = metadata.reach(package);
    let reached = room.never.iter().filter(|never| reach.contains(**never));
    arrows.chain(reached.map(|never| format!("{name}: must not be built with {never}"))).collect()
}

const PICTURE: &str = "ARCHITECTURE.md";

/// The picture in the document of the architecture names the rooms of the table, and no others.
pub fn check_picture(sources: &Sources) -> Vec<String> {
    let Some(document) = sources.files.iter().find(|source| source.path == PICTURE) else {
        return vec![format!("{PICTURE}: is not there")];
    };
    let picture = document.text.split("```").nth(1).unwrap_or_default();
    let is_named =
        |room: &str| picture.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == room);
    let rooms = ROOMS.iter().map(|room| match room.package {
        "orrery" => "server",
        "orrery-bench" | "orrery-storm" => "bench",
        // It stands beside the tests that it is for.
        "orrery-line-gateway" => "testkit",
        package => package.strip_prefix("orrery-").unwrap_or(package),
    });
    let missing = rooms.filter(|room| !is_named(room));
    missing.map(|room| format!("{PICTURE}: the picture of the rooms does not show {room}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sources::Source;
    use super::*;

    fn graph(arrows: &[(&str, &str)]) -> Metadata {
        let mut names: Vec<&str> = arrows.iter().flat_map(|(from, to)| [*from, *to]).collect();
        names.sort_unstable();
        names.dedup();
        let ours: Vec<&&str> = names.iter().filter(|name| name.starts_with("orrery")).collect();
        let packages: Vec<_> = names.iter().map(|name| json!({"id": name, "name": name})).collect();
        let nodes: Vec<_> = names
            .iter()
            .map(|name| {
                let deps: Vec<_> = arrows
                    .iter()
                    .filter(|(from, _)| from == name)
                    .map(|(_, to)| json!({"pkg": to, "dep_kinds": [{"kind": null}]}))
                    .collect();
                json!({"id": name, "deps": deps})
            })
            .collect();
        let json = json!({"packages": packages, "workspace_members": ours, "resolve": {"nodes": nodes}});
        Metadata::parse(&json).expect("the graph is well formed")
    }

    #[test]
    fn arrows_of_the_table_pass_and_others_do_not() {
        assert!(check(&graph(&[("orrery-query", "orrery-doc"), ("orrery-doc", "bytes")])).is_empty());
        assert_eq!(
            check(&graph(&[("orrery-doc", "orrery-query")])),
            ["orrery-doc: must not import orrery-query"]
        );
        assert_eq!(check(&graph(&[("orrery-store", "orrery-nosql")])).len(), 1);
        assert_eq!(check(&graph(&[("orrery-surprise", "bytes")])).len(), 1);
    }

    #[test]
    fn a_room_that_is_not_in_the_picture_is_found() {
        let complaints = |picture: &str| {
            let text = format!("# Rooms\n\n```\n{picture}\n```\nscript and doc are rooms.\n");
            check_picture(&Sources { files: vec![Source::new(PICTURE, &text)] })
        };
        let all =
            "server xtask testkit bench nosql table advisor gateway cluster store query script doc prices";
        assert_eq!(complaints(all), [""; 0]);
        let found = complaints(&all.replace(" script", ""));
        assert_eq!(found, ["ARCHITECTURE.md: the picture of the rooms does not show script"]);
        assert_eq!(check_picture(&Sources { files: Vec::new() }).len(), 1);
    }

    #[test]
    fn async_runtimes_are_found_behind_others() {
        let found = check(&graph(&[("orrery-store", "innocent"), ("innocent", "tokio")]));
        assert_eq!(found, ["orrery-store: must not be built with tokio"]);
    }
}
