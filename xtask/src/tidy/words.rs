//! Words that must not be committed.

use super::sources::{Source, Sources};

struct Word {
    /// In two halves, so that this file does not contain what it looks for.
    halves: (&'static str, &'static str),
    /// The rooms in which the word is banned; everywhere when there are none.
    rooms: &'static [&'static str],
    why: &'static str,
}

/// Time and chance are arguments in these rooms, so that a replica can replay and a test can repeat.
const DETERMINISTIC: &[&str] = &["doc", "query", "store"];

const WORDS: &[Word] = &[
    Word { halves: ("dbg", "!("), rooms: &[], why: "debugging aids are not committed" },
    Word { halves: ("todo", "!("), rooms: &[], why: "write the code or the issue" },
    Word { halves: ("unimplemented", "!("), rooms: &[], why: "write the code or the issue" },
    Word { halves: ("#[ign", "ore"), rooms: &[], why: "a test runs or is removed" },
    Word { halves: ("System", "Time::now"), rooms: DETERMINISTIC, why: "the time is an argument here" },
    Word { halves: ("thread", "_rng"), rooms: DETERMINISTIC, why: "chance is an argument here" },
    Word { halves: ("ran", "d::"), rooms: DETERMINISTIC, why: "chance is an argument here" },
];

pub fn check(sources: &Sources) -> Vec<String> {
    sources.rust().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for word in WORDS {
        if !word.rooms.is_empty() && !source.room().is_some_and(|room| word.rooms.contains(&room)) {
            continue;
        }
        let text = [word.halves.0, word.halves.1].concat();
        for (index, line) in source.text.lines().enumerate() {
            if contains_word(line, &text) {
                complaints.push(format!("{}:{}: `{text}`: {}", source.path, index + 1, word.why));
            }
        }
    }
    complaints
}

/// Whether the line has the word outside comments, and not as the end of a longer one.
fn contains_word(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
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
}
