//! What can stand where the cursor is.

use std::cell::RefCell;
use std::rc::Rc;

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};

use super::session::Session;
use super::statement::{COMMANDS, goes_on};

/// Helps the editor: completes, and knows when a statement is at its end.
pub struct Assistant {
    session: Rc<RefCell<Session>>,
}

impl Assistant {
    pub fn new(session: Rc<RefCell<Session>>) -> Assistant {
        Assistant { session }
    }
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<String>)> {
        let before = &line[..at];
        Ok(complete(before, &mut self.session.borrow_mut()))
    }
}

impl Validator for Assistant {
    fn validate(&self, text: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        Ok(if goes_on(text.input()) { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}
impl Helper for Assistant {}

/// Where the word in front of the cursor begins, and what it may become.
fn complete(before: &str, session: &mut Session) -> (usize, Vec<String>) {
    // The statement in front of the cursor, as far as that matters for commands.
    let start = before.rfind([';', '\n']).map_or(0, |end| end + 1);
    let line = before[start..].trim_start();
    let is_first = before[..before.len() - line.len()].trim_end_matches(['\n', ' ']).is_empty()
        || before[..before.len() - line.len()].trim_end().ends_with(';');
    if let Some((command, rest)) = line.split_once(' ').filter(|_| is_first) {
        let rest = rest.trim_start();
        if let Some(words) = argument(&command.to_ascii_lowercase(), rest, session) {
            return (before.len() - rest.len(), starting_with(rest, words));
        }
    }
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '$');
    let word = &before[before.trim_end_matches(is_of_word).len()..];
    let at = before.len() - word.len();
    if let Some(owner) = before[..at].strip_suffix('.') {
        return (at, starting_with(word, properties(owner, session)));
    }
    let words = if is_first && line.len() == word.len() {
        COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).chain(["SELECT".to_owned()]).collect()
    } else {
        language(word, session)
    };
    (at, starting_with(word, words))
}

/// What a command takes.
fn argument(command: &str, rest: &str, session: &mut Session) -> Option<Vec<String>> {
    Some(match command {
        "use" => match rest.split_once('/') {
            Some((database, _)) => {
                let containers = session.containers(Some(database));
                containers.into_iter().map(|name| format!("{database}/{name}")).collect()
            }
            None => {
                let mut names = session.containers(None);
                names.extend(session.databases().unwrap_or_default().into_iter().map(|name| name + "/"));
                names
            }
        },
        "containers" => session.databases().unwrap_or_default(),
        "format" => ["table", "pretty", "lines", "array"].map(str::to_owned).to_vec(),
        "unset" => session.parameters().map(str::to_owned).collect(),
        _ => return None,
    })
}

/// The properties below `c.address`, whatever name the query gives to the item.
fn properties(owner: &str, session: &mut Session) -> Vec<String> {
    let path =
        &owner[owner.trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.')).len()..];
    let mut names = path.split('.');
    if names.next().is_none_or(str::is_empty) {
        return Vec::new();
    }
    let path: Vec<&str> = names.collect();
    let Some(known) = session.properties() else { return Vec::new() };
    known.below(&path).into_iter().map(str::to_owned).collect()
}

/// Words of the language; keywords in the case in which the word was begun.
fn language(word: &str, session: &Session) -> Vec<String> {
    if word.starts_with('@') {
        return session.parameters().map(str::to_owned).collect();
    }
    let is_lower = word.starts_with(|c: char| c.is_lowercase());
    let keywords = orrery_query::keywords().iter().map(|name| {
        // The constants have one spelling.
        let is_constant =
            matches!(*name, "true" | "false" | "null" | "undefined" | "NaN" | "Infinity" | "udf");
        if is_lower || is_constant { (*name).to_owned() } else { name.to_ascii_uppercase() }
    });
    keywords.chain(orrery_query::function_names().map(|name| format!("{name}("))).collect()
}

fn starting_with(word: &str, candidates: Vec<String>) -> Vec<String> {
    let begins = |candidate: &String| {
        candidate.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    candidates.into_iter().filter(begins).collect()
}
