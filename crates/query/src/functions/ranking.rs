//! _FULLTEXTSCORE and _FULLTEXTWORDCOUNT: how well a text fits some phrases, and how long it is.
//!
//! Clients never write them: they are in the queries of the plan of an ORDER BY RANK. One query counts the items, their words and
//! how many items have each phrase; its answer becomes part of the others, which score by it (BM25): a phrase counts the more the fewer
//! items have it, and the less the longer the text is.
//!
//! How the service counts words is not published. The order in which it ranks the texts of its SDKs' suites is known, and fits
//! this: the frequent words that only hold a sentence together do not count, and each run of letters and digits between
//! blanks and ASCII punctuation does, so that a dash with blanks around it is a word.

use super::full_text::{phrases_of, read};
use super::{Args, Function, fallible, function};
use crate::error::Result;
use crate::value::Val;

pub(super) static FUNCTIONS: [Function; 2] = [
    Function { is_search: true, ..fallible("_FULLTEXTSCORE", 5, 5, score) },
    Function {
        is_search: true,
        // What is no text has no words; a sum over all items needs a number of each.
        ..function("_FULLTEXTWORDCOUNT", 1, 1, |args| {
            Some(Val::Int(args.str(0).map_or(0, |t| words(args, t))))
        })
    },
];

/// How soon a phrase that comes again counts no more, and how much the length of a text counts.
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

/// `(text, phrases, number of items, number of words in all of them, number of items with each phrase)`
fn score<'a>(args: &Args<'_, 'a>) -> Result<Option<Val<'a>>> {
    let (Some(text), Some(wanted), Some(hits)) = (args.str(0), args.list(1), args.list(4)) else {
        return Ok(None);
    };
    let (Some(items), Some(words_of_all)) = (args.num(2), args.num(3)) else { return Ok(None) };
    let wanted: Vec<Val<'_>> = wanted.iter().collect();
    let Some(phrases) = phrases_of(&wanted)? else { return Ok(None) };
    let mean = words_of_all / items;
    let length = if mean > 0.0 { words(args, text) as f64 / mean } else { 1.0 };
    let text = read(args, text);
    let mut total = 0.0;
    for (phrase, hits) in phrases.into_iter().zip(hits.iter()) {
        let Some(hits) = hits.as_f64() else { return Ok(None) };
        args.charge(text.bytes() as u64 / super::full_text::BYTES_PER_STEP);
        let times = text.count(&read(args, phrase)) as f64;
        let rarity = (1.0 + (items - hits + 0.5).max(0.0) / (hits + 0.5)).ln();
        let norm = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
        total += rarity * times * (SATURATION + 1.0) / (times + norm);
    }
    Ok(Some(Val::number(total)))
}

fn words(args: &Args<'_, '_>, text: &str) -> i64 {
    args.charge(text.len() as u64 / super::full_text::BYTES_PER_STEP);
    count(text) as i64
}

fn count(text: &str) -> usize {
    text.split(stands_between).filter(|word| !word.is_empty() && !is_function_word(word)).count()
}

fn stands_between(c: char) -> bool {
    c.is_whitespace() || c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_'
}

fn is_function_word(word: &str) -> bool {
    if word.len() > LONGEST {
        return false;
    }
    let word = word.to_ascii_lowercase();
    FUNCTION_WORDS.binary_search(&word.as_str()).is_ok()
}

/// No function word has more bytes.
const LONGEST: usize = 10;

/// Words that say how others belong together. In the order of their letters.
static FUNCTION_WORDS: [&str; 190] = [
    "a",
    "about",
    "above",
    "across",
    "after",
    "again",
    "against",
    "all",
    "almost",
    "alone",
    "along",
    "already",
    "also",
    "although",
    "always",
    "am",
    "among",
    "an",
    "and",
    "another",
    "any",
    "anybody",
    "anyone",
    "anything",
    "are",
    "around",
    "as",
    "at",
    "be",
    "became",
    "because",
    "been",
    "before",
    "behind",
    "being",
    "below",
    "beneath",
    "beside",
    "besides",
    "between",
    "beyond",
    "both",
    "but",
    "by",
    "can",
    "cannot",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "done",
    "down",
    "during",
    "each",
    "either",
    "else",
    "ever",
    "every",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "hence",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "however",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "less",
    "many",
    "may",
    "me",
    "might",
    "mine",
    "more",
    "most",
    "much",
    "must",
    "my",
    "myself",
    "neither",
    "never",
    "no",
    "nobody",
    "none",
    "nor",
    "not",
    "nothing",
    "now",
    "of",
    "off",
    "often",
    "on",
    "once",
    "only",
    "or",
    "other",
    "others",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "per",
    "perhaps",
    "quite",
    "rather",
    "same",
    "shall",
    "she",
    "should",
    "since",
    "so",
    "some",
    "still",
    "such",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "therefore",
    "these",
    "they",
    "this",
    "those",
    "though",
    "through",
    "throughout",
    "thus",
    "to",
    "together",
    "too",
    "toward",
    "towards",
    "under",
    "until",
    "up",
    "upon",
    "us",
    "very",
    "was",
    "we",
    "well",
    "were",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
    "yet",
    "you",
    "your",
    "yours",
    "yourself",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_sorted_and_short() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert!(FUNCTION_WORDS.iter().all(|word| word.len() <= LONGEST && is_function_word(word)));
    }

    #[test]
    fn words_that_say_something_are_counted() {
        for (text, words) in [
            ("", 0),
            (" .,-'! ", 0),
            ("The river AND the sea", 2),
            ("sub-zero 1,977", 4),
            ("1833 – 1898", 3),
            ("Ünï_cödé été", 2),
            ("throughout also well", 0),
        ] {
            assert_eq!(count(text), words, "{text}");
        }
    }
}
