//! What is typed into the shell: where it ends, and what it says.
//!
//! A command is one line. SQL goes on over lines until a semicolon or an empty line.

use anyhow::{bail, ensure};
use clap::ValueEnum;
use serde_json::Value;

use crate::query::parameter;
use crate::rows::Format;

#[derive(Debug, PartialEq)]
pub enum Statement {
    Nothing,
    Sql(String),
    /// A database, a container of the one in use, or both.
    Use(String),
    Databases,
    /// Of a database, or of the one in use.
    Containers(Option<String>),
    Format(Format),
    /// Rows at most; none for all.
    Limit(Option<usize>),
    Set(String, Value),
    Unset(String),
    /// One logical partition, or none for all.
    Key(Option<String>),
    Help,
    Leave,
}

/// What can be typed, and what it does; completion and help know commands from here.
pub const COMMANDS: [(&str, &str, &str); 10] = [
    (
        "use",
        "DATABASE[/CONTAINER]",
        "choose what is asked; a container of the database in use by its name alone",
    ),
    ("databases", "", "list databases"),
    ("containers", "[DATABASE]", "list containers with their partition keys"),
    ("format", "table|pretty|lines|array", "say how rows are shown"),
    ("limit", "ROWS|all", "say how many rows are shown at most"),
    ("set", "@NAME=VALUE", "give a parameter as JSON or as a plain text"),
    ("unset", "@NAME", "forget a parameter"),
    ("key", "[KEY]", "ask one logical partition; without a key, all"),
    ("help", "", "show this"),
    ("exit", "", "leave; Ctrl-D does it too"),
];

/// Further words for commands.
const ALIASES: [(&str, &str); 3] = [("quit", "exit"), ("\\q", "exit"), ("?", "help")];

fn command_of(word: &str) -> Option<&'static str> {
    let same = |name: &str| name.eq_ignore_ascii_case(word);
    let alias = ALIASES.iter().find(|(alias, _)| same(alias)).map(|(_, name)| *name);
    alias.or_else(|| COMMANDS.iter().map(|(name, ..)| *name).find(|name| same(name)))
}

/// A statement without what is around it. This is what is sent, so that places in it are those that the server names.
pub fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == ';')
}

/// Whether there is nothing to be done.
pub fn is_blank(text: &str) -> bool {
    bare(text).is_empty()
}

/// The bytes up to the end of the first statement of some lines, each with its end; none if it goes on.
pub fn end_of(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start_matches(|c: char| c.is_whitespace() || c == ';').len();
    let rest = &text[start..];
    let word = rest.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or_default();
    let length = match command_of(word) {
        Some(_) => rest.find('\n').map(|end| end + 1),
        None => end_of_sql(rest),
    };
    length.map(|length| start + length)
}

/// A semicolon in a text or in a comment ends nothing.
fn end_of_sql(text: &str) -> Option<usize> {
    let (mut quote, mut is_escaped, mut is_comment, mut is_line_empty) = (None, false, false, false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\n' {
            if is_line_empty {
                return Some(at + 1);
            }
            // No text goes over the end of a line.
            (quote, is_escaped, is_comment, is_line_empty) = (None, false, false, true);
            continue;
        }
        is_line_empty &= c.is_whitespace();
        match quote {
            _ if is_comment => {}
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == ';' => return Some(at + 1),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => is_comment = c == '-' && chars.peek().is_some_and(|(_, next)| *next == '-'),
        }
    }
    None
}

/// All statements of a text; the last one need not be at its end.
pub fn all(text: &str) -> Vec<String> {
    let mut rest = format!("{text}\n");
    let mut found = Vec::new();
    while !is_blank(&rest) {
        let behind = rest.split_off(end_of(&rest).unwrap_or(rest.len()));
        found.push(std::mem::replace(&mut rest, behind));
    }
    found
}

/// Whether something is still to come.
pub fn goes_on(text: &str) -> bool {
    let text = format!("{text}\n");
    let mut rest = text.as_str();
    while !is_blank(rest) {
        match end_of(rest) {
            Some(end) => rest = &rest[end..],
            None => return true,
        }
    }
    false
}

impl Statement {
    pub fn read(text: &str) -> anyhow::Result<Statement> {
        let text = bare(text);
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let some = (!rest.is_empty()).then(|| rest.to_owned());
        let Some(command) = command_of(word) else {
            return Ok(if text.is_empty() { Statement::Nothing } else { Statement::Sql(text.to_owned()) });
        };
        Ok(match (command, some) {
            ("use", Some(name)) => Statement::Use(name),
            ("containers", database) => Statement::Containers(database),
            ("format", Some(name)) => match Format::from_str(&name, true) {
                Ok(format) => Statement::Format(format),
                Err(_) => bail!("there is no format {name}; say table, pretty, lines or array"),
            },
            ("limit", Some(rows)) if rows.eq_ignore_ascii_case("all") => Statement::Limit(None),
            ("limit", Some(rows)) => match rows.parse() {
                Ok(rows) if rows > 0 => Statement::Limit(Some(rows)),
                _ => bail!("a limit is a number of rows, or all"),
            },
            ("set", Some(pair)) => {
                let (name, value) = parameter(&pair).map_err(anyhow::Error::msg)?;
                Statement::Set(name.trim_end().to_owned(), trimmed(value))
            }
            ("unset", Some(name)) => Statement::Unset(name),
            ("key", key) => Statement::Key(key),
            (command, further) => {
                let (_, takes, _) = COMMANDS.iter().find(|(name, ..)| *name == command).expect("it is one");
                let usage = format!("{command} {takes}");
                ensure!(takes.is_empty() && further.is_none(), "say it as: {}", usage.trim_end());
                match command {
                    "databases" => Statement::Databases,
                    "help" => Statement::Help,
                    _ => Statement::Leave,
                }
            }
        })
    }
}

/// `set @a = ada` means the name, not a blank and the name.
fn trimmed(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with(char::is_whitespace) => Value::from(text.trim_start()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sql_ends_at_a_semicolon_or_an_empty_line() {
        let end = |text: &str| end_of(text).map(|end| text[..end].to_owned());
        assert_eq!(end("SELECT 1;SELECT 2;\n"), Some("SELECT 1;".into()));
        assert_eq!(end("SELECT 1\n"), None);
        assert_eq!(end("SELECT 1\n \nnext"), Some("SELECT 1\n \n".into()));
        assert_eq!(
            end("SELECT ';', \"\\\";\" -- ; \n FROM c;\n"),
            Some("SELECT ';', \"\\\";\" -- ; \n FROM c;".into())
        );
        assert_eq!(end("SELECT 3 - 2;\n"), Some("SELECT 3 - 2;".into()));
        // A text that was left open ends with its line, so that the semicolon of the next one counts.
        assert_eq!(end("SELECT 'a\nFROM c;\n"), Some("SELECT 'a\nFROM c;".into()));
    }

    #[test]
    fn commands_end_with_their_line() {
        assert_eq!(end_of("USE shop/a;b\nSELECT"), Some(13));
        assert_eq!(end_of("user"), None);
        assert_eq!(all("use a\nSELECT 1; databases;"), ["use a\n", "SELECT 1;", " databases;\n"]);
        assert_eq!(all("SELECT *\nFROM c"), ["SELECT *\nFROM c\n"]);
        assert_eq!(all(" ;\n ; "), Vec::<String>::new());
        for (text, wanted) in [
            ("", false),
            ("use a", false),
            ("SELECT 1", true),
            ("SELECT 1;", false),
            ("SELECT 1\n", false),
            ("SELECT 1; S", true),
        ] {
            assert_eq!(goes_on(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn statements_are_read() {
        let read = |text: &str| Statement::read(text).map_err(|error| error.to_string());
        assert_eq!(read("use shop/c d ä;\n"), Ok(Statement::Use("shop/c d ä".into())));
        assert_eq!(read("; SELECT 1\nFROM c ;\n"), Ok(Statement::Sql("SELECT 1\nFROM c".into())));
        assert_eq!(read("set @a = ada"), Ok(Statement::Set("@a".into(), json!("ada"))));
        assert_eq!(read("set @a={\"x\": [1]}"), Ok(Statement::Set("@a".into(), json!({"x": [1]}))));
        assert_eq!(read("FORMAT Table"), Ok(Statement::Format(Format::Table)));
        assert_eq!(read("limit ALL"), Ok(Statement::Limit(None)));
        assert_eq!(read("\\q"), Ok(Statement::Leave));
        assert_eq!(read("key"), Ok(Statement::Key(None)));
        for wrong in
            ["use", "format xml", "format", "limit 0", "limit x", "set a=1", "set @a", "databases x", "unset"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read("use"), Err("say it as: use DATABASE[/CONTAINER]".into()));
    }
}
