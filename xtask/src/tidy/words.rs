//! Words that must not be committed.

use super::sources::{Source, Sources};

struct Word {
    /// In two halves, so that this file does not contain what it looks for.
    halves: (&'static str, &'static str),
    /// Where the word is banned: paths begin so. Everywhere when there are none.
    below: &'static [&'static str],
    /// Where it is allowed all the same.
    except: &'static [&'static str],
    /// Whether tests may have it.
    in_tests: bool,
    why: &'static str,
}

const fn anywhere(halves: (&'static str, &'static str), why: &'static str) -> Word {
    Word { halves, below: &[], except: &[], in_tests: false, why }
}

const fn below(
    halves: (&'static str, &'static str),
    below: &'static [&'static str],
    why: &'static str,
) -> Word {
    Word { halves, below, except: &[], in_tests: false, why }
}

/// Of what a gateway sends or receives, these rooms know nothing.
const fn wire(halves: (&'static str, &'static str)) -> Word {
    Word { halves, below: &WIRELESS, except: &[], in_tests: true, why: "wire formats belong to the gateways" }
}

/// A table or set whose order is that of a hash.
const fn unordered(halves: (&'static str, &'static str)) -> Word {
    Word { halves, below: REPLICATED, except: &[], in_tests: true, why: ORDER }
}

/// The store has a clock and threads where it meets the disk, and nowhere else.
const fn engine_only(halves: (&'static str, &'static str), why: &'static str) -> Word {
    Word {
        halves,
        below: &["crates/store/src/"],
        except: &["crates/store/src/engine/"],
        in_tests: false,
        why,
    }
}

/// Time and chance are arguments in these rooms, so that a replica can replay and a test can repeat.
const DETERMINISTIC: &[&str] = &["crates/doc/", "crates/query/", "crates/store/"];
const WIRELESS: [&str; 2] = ["crates/store/src/", "crates/cluster/src/"];
/// What replicas work out must be the same on all of them, so nothing in it may depend on the order of a hash.
const REPLICATED: &[&str] = &[
    "crates/cluster/src/replica/",
    "crates/cluster/src/committer/",
    "crates/cluster/src/committer.rs",
    "crates/cluster/src/catalog/apply.rs",
    "crates/store/src/log.rs",
    "crates/store/src/net_effect.rs",
    "crates/store/src/partition_state.rs",
    "crates/store/src/split.rs",
];
/// Tasks and clocks are `worlds`' affair elsewhere.
const REPLICA: &[&str] = &["crates/cluster/src/replica/"];
/// The comment above a line that has a hash all the same, and says why its order is not seen.
const EXCUSE: &str = "// In no order:";

const CLOCK: &str = "the time is an argument here";
const CHANCE: &str = "chance is an argument here";
const THREADS: &str = "the caller decides what runs where";
const ORDER: &str = "the order of a hash differs from replica to replica";

const WORDS: &[Word] = &[
    anywhere(("dbg", "!("), "debugging aids are not committed"),
    anywhere(("todo", "!("), "write the code or the issue"),
    anywhere(("unimplemented", "!("), "write the code or the issue"),
    anywhere(("#[ign", "ore"), "a test runs or is removed"),
    below(("System", "Time::now"), DETERMINISTIC, CLOCK),
    below(("thread", "_rng"), DETERMINISTIC, CHANCE),
    below(("ran", "d::"), DETERMINISTIC, CHANCE),
    engine_only(("Instant", "::now"), CLOCK),
    engine_only(("thread", "::spawn"), THREADS),
    engine_only(("thread", "::Builder"), THREADS),
    engine_only(("thread", "::sleep"), CLOCK),
    below(("Instant", "::now"), REPLICA, CLOCK),
    below(("System", "Time::now"), REPLICA, CLOCK),
    below(("thread", "::spawn"), REPLICA, THREADS),
    below(("tok", "io::"), REPLICA, THREADS),
    unordered(("Hash", "Map")),
    unordered(("Hash", "Set")),
    wire(("x-m", "s-")),
    wire(("\"Err", "ors")),
    wire(("+RI", "D:")),
    wire(("document", "db")),
    wire(("Activity", "Id")),
    wire(("\"/db", "s/")),
    wire(("oda", "ta.")),
    wire(("application", "/json")),
];

pub fn check(sources: &Sources) -> Vec<String> {
    sources.rust().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let starts = |list: &[&str]| list.iter().any(|start| source.path.starts_with(start));
    let is_banned = |word: &&Word| {
        (word.below.is_empty() || starts(word.below))
            && !starts(word.except)
            && !(word.in_tests && source.is_test())
    };
    let words: Vec<(String, &Word)> =
        WORDS.iter().filter(is_banned).map(|word| ([word.halves.0, word.halves.1].concat(), word)).collect();
    let mut complaints = Vec::new();
    let product: Vec<(usize, &str)> = source.product().collect();
    let all: Vec<(usize, &str)> = source.text.lines().enumerate().collect();
    for (text, word) in words {
        let lines = if word.in_tests { &product } else { &all };
        for (index, line) in lines {
            if contains_word(line, &text) && !is_excused(word, *index, &all) {
                complaints.push(format!("{}:{}: `{text}`: {}", source.path, index + 1, word.why));
            }
        }
    }
    complaints
}

/// Whether a line that may have an excuse has one above it. An import says nothing about an order.
fn is_excused(word: &Word, index: usize, lines: &[(usize, &str)]) -> bool {
    let above = index.checked_sub(1).and_then(|above| lines.get(above));
    let is_import = lines[index].1.starts_with("use ");
    word.why == ORDER && (is_import || above.is_some_and(|(_, line)| line.trim_start().starts_with(EXCUSE)))
}

/// Whether the line has the word outside comments, and not as the end of a longer one.
fn contains_word(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') || !word.starts_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_their_rooms_only() {
        let clock = ["let t = System", "Time::now();"].concat();
        assert_eq!(check_file(&Source::new("crates/store/src/x.rs", &clock)).len(), 1);
        assert_eq!(check_file(&Source::new("crates/cluster/src/x.rs", &clock)).len(), 0);
        let debugging = ["    dbg", "!(x);"].concat();
        assert_eq!(check_file(&Source::new("crates/cluster/src/x.rs", &debugging)).len(), 1);
    }

    #[test]
    fn longer_words_and_comments_are_left_alone() {
        let operand = ["ope", "rand::new()"].concat();
        assert_eq!(check_file(&Source::new("crates/store/src/x.rs", &operand)).len(), 0);
        let comment = ["// never use thread", "_rng here"].concat();
        assert_eq!(check_file(&Source::new("crates/store/src/x.rs", &comment)).len(), 0);
    }

    fn complaints(path: &str, code: &str) -> usize {
        check_file(&Source::new(path, code)).len()
    }

    #[test]
    fn the_store_has_clocks_and_threads_in_its_engine_only() {
        for halves in [("Instant", "::now()"), ("std::thread", "::spawn(f)"), ("thread", "::Builder::new()")]
        {
            let code = ["let x = ", halves.0, halves.1, ";"].concat();
            assert_eq!(complaints("crates/store/src/x.rs", &code), 1, "{code}");
            assert_eq!(complaints("crates/store/src/engine/x.rs", &code), 0, "{code}");
            assert_eq!(complaints("crates/server/src/x.rs", &code), 0, "{code}");
        }
    }

    #[test]
    fn replicas_depend_on_no_clock_no_thread_and_no_hash() {
        for halves in
            [("Instant", "::now()"), ("tok", "io::spawn(f)"), ("Hash", "Map::new()"), ("Hash", "Set::new()")]
        {
            let code = ["let x = ", halves.0, halves.1, ";"].concat();
            assert_eq!(complaints("crates/cluster/src/replica/core.rs", &code), 1, "{code}");
            assert_eq!(complaints("crates/cluster/src/range/core.rs", &code), 0, "{code}");
        }
    }

    #[test]
    fn what_replicas_compute_has_no_hash_order_without_an_excuse() {
        let table = ["    changes: &Hash", "Map<u32, u32>,"].concat();
        let set = ["    let seen = Hash", "Set::new();"].concat();
        for code in [&table, &set] {
            for path in ["crates/store/src/split.rs", "crates/cluster/src/committer/group.rs"] {
                assert_eq!(complaints(path, code), 1, "{path} {code}");
                assert_eq!(complaints(path, &format!("    // In no order: it is sorted.\n{code}")), 0);
                assert_eq!(complaints(path, &format!("    // Quick.\n{code}")), 1);
                assert_eq!(complaints(path, &format!("#[cfg(test)]\nmod tests {{\n{code}\n}}")), 0);
            }
            assert_eq!(complaints("crates/cluster/src/turns.rs", code), 0, "{code}");
        }
    }

    #[test]
    fn a_test_hook_in_mid_file_hides_nothing_behind_it() {
        let code =
            format!("#[cfg(test)]\nfn hook() {{\n}}\n\nconst A: &str = {:?};", ["x-m", "s-version"].concat());
        assert_eq!(complaints("crates/store/src/x.rs", &code), 1);
    }

    #[test]
    fn texts_of_the_wire_stay_in_gateways() {
        for text in
            ["\"x-ms-version\"", "r#\"{\\\"Errors\\\":[]}\"#", "\"+RID:~\"", "\"/dbs/x\"", "\"odata.type\""]
        {
            let code = format!("const TEXT: &str = {text};");
            for room in ["store", "cluster"] {
                assert_eq!(complaints(&format!("crates/{room}/src/x.rs"), &code), 1, "{room}: {code}");
                assert_eq!(complaints(&format!("crates/{room}/tests/x.rs"), &code), 0, "{room}: {code}");
            }
            assert_eq!(complaints("crates/nosql/src/x.rs", &code), 0, "{code}");
            let tested = format!("#[cfg(test)]\nmod tests {{\n{code}\n}}");
            assert_eq!(complaints("crates/store/src/x.rs", &tested), 0, "{code}");
        }
    }
}
