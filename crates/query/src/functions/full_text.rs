//! FULLTEXTCONTAINS and its like: which phrases a text has.
//!
//! Both are read as words in lower case. A word is a run of letters, digits and `_`; `-` and `'` within it belong to it
//! (`state-of-the-art`), and so do `.` and `,` between two digits (`3.5`, `1,000`). A phrase is in a text if its words stand there one
//! behind the other. Words are not reduced to their stems, and those that most texts have count as any other.
//!
//! No index or policy is needed: each text is read when it is asked about.

use super::{Args, FallibleBody, Function, MANY, fallible};
use crate::error::{QueryError, Result};
use crate::value::Val;

pub(super) static FUNCTIONS: [Function; 3] = [
    search("FULLTEXTCONTAINS", 2, |args| contains(args, Wanted::Any)),
    search("FULLTEXTCONTAINSALL", MANY, |args| contains(args, Wanted::All)),
    search("FULLTEXTCONTAINSANY", MANY, |args| contains(args, Wanted::Any)),
];

const fn search(name: &'static str, most: usize, body: FallibleBody) -> Function {
    Function { is_search: true, ..fallible(name, 2, most, body) }
}

/// Which of the phrases a text must have.
#[derive(PartialEq)]
enum Wanted {
    All,
    Any,
}

fn contains<'a>(args: &Args<'_, 'a>, wanted: Wanted) -> Result<Option<Val<'a>>> {
    let phrases: Vec<Val<'_>> = (1..args.len()).map(|i| args.get(i).clone()).collect();
    let phrases = phrases_of(&phrases)?;
    Ok(args.str(0).zip(phrases).map(|(text, phrases)| {
        let text = read(args, text);
        let mut found = phrases.into_iter().map(|phrase| {
            args.charge(text.0.len() as u64 / BYTES_PER_STEP);
            text.has(&read(args, phrase))
        });
        Val::Bool(match wanted {
            Wanted::All => found.all(|is_there| is_there),
            Wanted::Any => found.any(|is_there| is_there),
        })
    }))
}

/// The phrases, if all of them are strings.
pub(super) fn phrases_of<'v>(values: &'v [Val<'_>]) -> Result<Option<Vec<&'v str>>> {
    if values.iter().any(|value| value.get("term").as_str().is_some()) {
        return Err(QueryError::Unsupported(
            "Fuzzy terms of full-text functions are not yet supported.".into(),
        ));
    }
    Ok(values.iter().map(Val::as_str).collect())
}

/// Bytes of text that are read in one step of work.
pub(super) const BYTES_PER_STEP: u64 = 8;

pub(super) fn read(args: &Args<'_, '_>, text: &str) -> Words {
    args.charge(text.len() as u64 / BYTES_PER_STEP);
    let words = Words::of(text);
    args.makes(words.0.len());
    words
}

/// The words of a text in lower case, with a mark before each and behind the last.
pub(super) struct Words(String);

/// No word has it.
const MARK: char = '\0';

impl Words {
    fn of(text: &str) -> Self {
        let mut words = String::with_capacity(text.len() + 2);
        words.push(MARK);
        let mut last = MARK;
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let belongs = is_of_word(c) || rest.peek().is_some_and(|next| joins(last, c, *next));
            if belongs {
                words.extend(c.to_lowercase());
            } else if is_of_word(last) {
                words.push(MARK);
            }
            last = if belongs { c } else { MARK };
        }
        if is_of_word(last) {
            words.push(MARK);
        }
        Self(words)
    }

    fn has(&self, phrase: &Words) -> bool {
        // Without a word it is the mark alone, which is in every text.
        phrase.0.len() > MARK.len_utf8() && self.0.contains(&phrase.0)
    }

    /// How often the phrase is there. Neighbours share the mark between them.
    pub(super) fn count(&self, phrase: &Words) -> usize {
        if !self.has(phrase) {
            return 0;
        }
        let mut from = 0;
        let next = |from: &mut usize| {
            let found = *from + self.0.get(*from..)?.find(&phrase.0)?;
            *from = found + MARK.len_utf8();
            Some(())
        };
        std::iter::from_fn(|| next(&mut from)).count()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a character holds its two neighbours together.
fn joins(before: char, c: char, behind: char) -> bool {
    match c {
        '-' | '\'' => is_of_word(before) && is_of_word(behind),
        '.' | ',' => before.is_ascii_digit() && behind.is_ascii_digit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_words_in_lower_case() {
        for (text, words) in [
            ("", vec![]),
            (" .,-'! ", vec![]),
            ("One  two,THREE.", vec!["one", "two", "three"]),
            ("state-of-the-art don't -x- y--z", vec!["state-of-the-art", "don't", "x", "y", "z"]),
            ("1,234.5 3. ,5 v1.2 a.b 1,a", vec!["1,234.5", "3", "5", "v1.2", "a", "b", "1", "a"]),
            ("Ünï_cödé ÉTÉ Ж1", vec!["ünï_cödé", "été", "ж1"]),
        ] {
            let found = Words::of(text).0;
            let found: Vec<&str> = found.split(MARK).filter(|word| !word.is_empty()).collect();
            assert_eq!(found, words, "{text}");
        }
    }

    #[test]
    fn a_phrase_is_whole_words_one_behind_the_other() {
        let text = Words::of("I like to swim, and to run in the sub-zero cold");
        for phrase in ["swim", "SWIM", "to swim and", "like to", "sub-zero", "i", "cold", "swim - and"] {
            assert!(text.has(&Words::of(phrase)), "{phrase}");
        }
        for phrase in ["", "...", "swi", "swimming", "to and", "zero", "cold i", "run swim", "\0"] {
            assert!(!text.has(&Words::of(phrase)), "{phrase}");
        }
        assert!(!Words::of("").has(&Words::of("")));
    }

    #[test]
    fn phrases_that_share_a_blank_are_counted_each() {
        let text = Words::of("no no, no! Then yes and no no");
        for (phrase, times) in
            [("no", 5), ("no no", 3), ("yes", 1), ("then yes", 1), ("maybe", 0), ("", 0), ("NO.", 5)]
        {
            assert_eq!(text.count(&Words::of(phrase)), times, "{phrase}");
        }
    }
}
