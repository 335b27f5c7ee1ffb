//! REGEXMATCH.
//!
//! A pattern runs as an automaton whose states are made as the text needs them, which is linear in the
//! text. A hostile pattern needs ever new states; such an automaton gives up, and a slower engine takes
//! over whose cost is states times text. Where that product is too large the query is refused instead,
//! so no pattern can hold up the server. What no automaton can do (look-around, back-references), and what ours cannot
//! read (comments), is refused by its name.

use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, pikevm::PikeVM};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;

use super::Args;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::value::Val;

/// A compiled pattern. It is shared by threads, each of which needs a cache of its own.
pub(crate) struct Regex {
    automaton: DFA,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync>>,
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Regex({} states)", self.automaton.get_nfa().states().len())
    }
}

/// Compiles a pattern with the service's modifiers; `None` when either is not valid.
pub(crate) fn regex(pattern: &str, modifiers: &str) -> Result<Option<Regex>> {
    match automaton(pattern, modifiers) {
        Some(automaton) => Ok(Some(Regex::new(automaton))),
        None => match beyond_automata(pattern) {
            Some(what) => Err(QueryError::Unsupported(format!("REGEXMATCH does not support {what}."))),
            None => Ok(None),
        },
    }
}

/// The first part of a pattern that is valid where patterns are run by trying out, but not here. It is looked
/// for only in patterns that cannot be compiled.
fn beyond_automata(pattern: &str) -> Option<&'static str> {
    let mut at = 0;
    let bytes = pattern.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        match byte {
            b'\\' if matches!(rest.get(1), Some(b'1'..=b'9' | b'k')) => return Some("back-references"),
            b'\\' if rest.get(1) == Some(&b'G') => return Some("the anchor \\G"),
            b'\\' => at += 1,
            b'(' if rest.starts_with(b"(?=") || rest.starts_with(b"(?!") => return Some("look-ahead"),
            b'(' if rest.starts_with(b"(?<=") || rest.starts_with(b"(?<!") => return Some("look-behind"),
            b'(' if rest.starts_with(b"(?>") => return Some("atomic groups"),
            b'(' if rest.starts_with(b"(?(") => return Some("conditional groups"),
            b'(' if rest.starts_with(b"(?#") => return Some("comments in groups"),
            _ => {}
        }
        at += 1;
    }
    None
}

fn automaton(pattern: &str, modifiers: &str) -> Option<DFA> {
    let mut syntax = syntax::Config::new();
    for modifier in modifiers.chars() {
        syntax = match modifier {
            'm' => syntax.multi_line(true),
            's' => syntax.dot_matches_new_line(true),
            'i' => syntax.case_insensitive(true),
            'x' => syntax.ignore_whitespace(true),
            _ => return None,
        };
    }
    DFA::builder()
        .syntax(syntax)
        .thompson(thompson::Config::new().nfa_size_limit(Some(limits::REGEX_BYTES)))
        .configure(
            DFA::config()
                .unicode_word_boundary(true)
                .cache_capacity(limits::REGEX_BYTES)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(Some(2))
                .minimum_bytes_per_state(Some(16)),
        )
        .build(pattern)
        .ok()
}

impl Regex {
    fn new(automaton: DFA) -> Self {
        let maker = automaton.clone();
        let caches: Box<dyn Fn() -> Cache + Send + Sync> = Box::new(move || maker.create_cache());
        Self { automaton, caches: Pool::new(caches) }
    }

    /// Whether the text matches. `charge` is told of work beyond that of reading the text, before it is done.
    pub fn is_match(&self, text: &str, charge: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        let input = Input::new(text).earliest(true);
        match self.automaton.try_search_fwd(&mut self.caches.get(), &input) {
            Ok(found) => Ok(found.is_some()),
            Err(_) => self.is_match_slowly(text, charge),
        }
    }

    fn is_match_slowly(&self, text: &str, charge: &mut dyn FnMut(u64) -> Result<()>) -> Result<bool> {
        let nfa = self.automaton.get_nfa();
        let steps = (nfa.states().len() as u64).saturating_mul(text.len() as u64);
        let refusal =
            || QueryError::LimitExceeded("The regular expression is too costly for so long a text.");
        if steps > limits::REGEX_STEPS {
            return Err(refusal());
        }
        // The automaton has filled its memory with states before it gave up.
        charge((limits::REGEX_BYTES / limits::WORK_BYTES) as u64 + steps / limits::REGEX_STEPS_PER_WORK)?;
        let engine = PikeVM::new_from_nfa(nfa.clone()).map_err(|_| refusal())?;
        Ok(engine.is_match(&mut engine.create_cache(), text))
    }
}

pub(super) fn regex_match<'a>(args: &Args<'_, 'a>) -> Result<Option<Val<'a>>> {
    let (Some(text), Some(pattern)) = (args.str(0), args.str(1)) else { return Ok(None) };
    let modifiers = if args.len() > 2 { args.str(2) } else { Some("") };
    // Compiling costs far more than reading the pattern.
    args.charge(1_000 + pattern.len() as u64 * 16);
    let Some(modifiers) = modifiers else { return Ok(None) };
    match regex(pattern, modifiers)? {
        Some(regex) => Ok(Some(Val::Bool(regex.is_match(text, &mut |work| {
            args.charge(work);
            Ok(())
        })?))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, modifiers: &str, text: &str, expected: Option<bool>) {
        let found =
            regex(pattern, modifiers).unwrap().map(|regex| regex.is_match(text, &mut |_| Ok(())).unwrap());
        assert_eq!(found, expected, "{text} ~ {pattern} {modifiers}");
    }

    #[test]
    fn patterns_and_modifiers() {
        check("abcd", "", "xabcdx", Some(true));
        check("^abcd$", "", "xabcd", Some(false));
        check("ABCD", "i", "abcd", Some(true));
        check("ab c d", "x", "abcd", Some(true));
        check("^b.c$", "ms", "a\nb\nc", Some(true));
        check("\\bé\\b", "", "a é b", Some(true));
        check("(", "", "a", None);
        check("a", "q", "a", None);
    }

    #[test]
    fn hostile_patterns_are_quick_or_refused() {
        let text = format!("{}c", "ab".repeat(200_000));
        for pattern in ["(a|b)*a(a|b){900}d", "(a*)*(b*)*d", "(x+x+)+y", "[ab]{1,900}[ab]{1,900}c{3}"] {
            if let Some(regex) = regex(pattern, "").unwrap() {
                let _ = regex.is_match(&text, &mut |_| Ok(()));
            }
        }
        assert!(regex(&"(a{900}){900}".repeat(3), "").unwrap().is_none());
    }
}
