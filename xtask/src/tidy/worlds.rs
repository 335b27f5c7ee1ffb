//! Clocks, waiting, tasks, threads and chance come from `World` in `cluster`, so that a test or a simulation decides them.
//!
//! A line that asks the system all the same says why in a comment right above it, which begins with "Beside the world:".

use super::sources::{Source, Sources};

const ROOM: &str = "cluster";
/// The one place that may, below the sources of the room.
const HOME: &[&str] = &["crates/cluster/src/world.rs", "crates/cluster/src/world/"];
const EXCUSE: &str = "// Beside the world:";

/// What asks the system, and what is asked instead.
const CALLS: &[(&str, &str)] = &[
    ("Instant::now", "World::monotonic"),
    (".elapsed()", "World::since"),
    ("SystemTime", "World::now or World::unix_time"),
    ("UNIX_EPOCH", "World::unix_time"),
    ("tokio::time", "World::sleep, timeout or by"),
    ("tokio::spawn", "World::spawn"),
    ("task::spawn", "World::spawn or World::aside"),
    ("spawn_blocking", "World::aside"),
    ("block_in_place", "World::blocking"),
    ("thread::spawn", "World::thread"),
    ("thread::sleep", "World::sleep"),
    ("thread::Builder", "World::thread"),
    ("thread::scope", "World::scope"),
    ("thread::park", "World::sleep"),
    ("recv_timeout", "World::timeout"),
    ("RandomState", "World::random"),
    ("rand::", "World::random"),
    ("getrandom", "World::random"),
];

pub fn check(sources: &Sources) -> Vec<String> {
    sources.rust().filter(|source| is_subject(source)).flat_map(check_file).collect()
}

fn is_subject(source: &Source) -> bool {
    source.room() == Some(ROOM) && !source.is_test() && !HOME.iter().any(|home| source.path.starts_with(home))
}

fn check_file(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut above = "";
    for (index, line) in source.product() {
        let code = line.split("//").next().unwrap_or_default();
        let asked = CALLS.iter().find(|(call, _)| code.contains(call));
        if let Some((call, instead)) = asked.filter(|_| !above.trim_start().starts_with(EXCUSE)) {
            complaints.push(format!("{}:{}: `{call}`: ask {instead}", source.path, index + 1));
        }
        above = line;
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&Sources { files: vec![Source::new(path, text)] })
    }

    #[test]
    fn the_system_is_asked_in_one_place_only() {
        let text = "fn f() {\n    let now = Instant::now();\n}\n";
        let found = complaints("crates/cluster/src/ttl.rs", text);
        assert_eq!(found, ["crates/cluster/src/ttl.rs:2: `Instant::now`: ask World::monotonic"]);
        for path in ["crates/cluster/src/world.rs", "crates/cluster/src/world/by_hand.rs"] {
            assert!(complaints(path, text).is_empty());
        }
        for path in ["crates/cluster/src/ttl/tests.rs", "crates/cluster/tests/elastic/main.rs"] {
            assert!(complaints(path, text).is_empty());
        }
        assert!(complaints("crates/nosql/src/call.rs", text).is_empty());
        assert!(
            complaints("crates/cluster/src/ttl.rs", &format!("#[cfg(test)]\nmod tests {{\n{text}}}"))
                .is_empty()
        );
    }

    #[test]
    fn every_call_is_known() {
        for (call, _) in CALLS {
            assert_eq!(complaints("crates/cluster/src/a.rs", call).len(), 1, "{call}");
        }
    }

    #[test]
    fn a_call_that_is_made_all_the_same_says_why() {
        let path = "crates/cluster/src/a.rs";
        let excused = "    // Beside the world: a test of the machine.\n    let now = Instant::now();\n";
        assert!(complaints(path, excused).is_empty());
        let other = "    // Quick.\n    let now = Instant::now();\n";
        assert_eq!(complaints(path, other).len(), 1);
        assert!(complaints(path, "/// Not like Instant::now().\n").is_empty());
    }
}
