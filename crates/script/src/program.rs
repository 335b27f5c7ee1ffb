//! One script, checked.
//!
//! Scripts are stored as the text of one function: a declaration, an expression or an arrow. Some have semicolons and
//! comments behind it, which are left out. Some have helpers beside it; then the first function declared at the top is
//! the script.

use crate::engine::{Engine, evaluate, own_frames};
use crate::{Limits, ScriptError};

#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the file in stacks.
    file: String,
    /// The text whose value is the function.
    text: String,
    source_bytes: usize,
}

impl Program {
    /// Checks that the text is a program. It does not run.
    pub fn compile(id: &str, source: &str, limits: &Limits) -> Result<Program, ScriptError> {
        if source.len() > limits.source_bytes {
            return Err(ScriptError::TooLarge { what: "text", limit: limits.source_bytes });
        }
        let file = file_name(id);
        let engine = Engine::new(limits)?;
        let text = function_text(&engine, &file, source)?;
        Ok(Program { file, text, source_bytes: source.len() })
    }

    pub fn source_bytes(&self) -> usize {
        self.source_bytes
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The text whose value is the function that the source has.
fn function_text(engine: &Engine, file: &str, source: &str) -> Result<String, ScriptError> {
    let expression = |end: usize| format!("({}\n)", &source[..end]);
    let whole = expression(source.len());
    let Err(first) = check(engine, file, &whole) else { return Ok(whole) };
    let mut shorter = ends(source).map(expression);
    if let Some(text) = shorter.find(|text| check(engine, file, text).is_ok()) {
        return Ok(text);
    }
    check(engine, file, &format!("(function(){{{source}\n}})")).map_err(|_| first)?;
    let name = first_declared(source).ok_or(ScriptError::NotAFunction)?;
    Ok(format!("(function(){{{source}\n;return {name};}})()"))
}

fn file_name(id: &str) -> String {
    let plain: String = id.chars().filter(|c| !c.is_control()).take(255).collect();
    format!("{plain}.js")
}

/// Compiles a text and does not run it, whatever it is: the engine reads all of it before the first statement throws,
/// and no bracket of the text can close that. The text stays on its lines.
fn check(engine: &Engine, file: &str, text: &str) -> Result<(), ScriptError> {
    engine.context.with(|ctx| {
        let Err(error) = evaluate::<()>(&ctx, file, &format!("throw true;{text}")) else {
            return Ok(());
        };
        let thrown = ctx.catch();
        if thrown.as_bool() == Some(true) {
            return Ok(());
        }
        let mut message = match thrown.as_exception() {
            Some(exception) => format!("SyntaxError: {}", exception.message().unwrap_or_default()),
            None => error.to_string(),
        };
        let stack = thrown.as_exception().and_then(|exception| exception.stack());
        if let Some(at) = stack.as_deref().map(own_frames).filter(|at| !at.is_empty()) {
            message.push('\n');
            message.push_str(&at);
        }
        Err(ScriptError::Syntax(message))
    })
}

/// Where the function may end, if nothing but semicolons and comments stands behind it. Only the engine can tell a
/// bracket in a comment from one of the function, so it is asked about the last few.
fn ends(source: &str) -> impl Iterator<Item = usize> {
    let is_trivia =
        |end: &usize| *end < source.len() && trivia_length(&source[*end..]) == source.len() - *end;
    let brackets = source.rmatch_indices(['}', ')']).map(|(at, _)| at + 1);
    // An arrow may end in anything.
    let semicolons = source.rmatch_indices(';').map(|(at, _)| at);
    brackets.take(ENDS_TRIED).chain(semicolons.take(ENDS_TRIED)).filter(is_trivia)
}

/// How many ends of a function are tried, of each kind.
const ENDS_TRIED: usize = 16;

/// The length of the spaces, comments and semicolons that the text begins with.
fn trivia_length(text: &str) -> usize {
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match next {
            _ if rest.starts_with("//") => until(rest, "\n"),
            _ if rest.starts_with("/*") => 2 + until(&rest[2..], "*/"),
            ';' => 1,
            space if space.is_whitespace() => space.len_utf8(),
            _ => break,
        };
    }
    at
}

/// The name of the first function declared outside of all brackets, strings and comments.
fn first_declared(source: &str) -> Option<&str> {
    let bytes = source.as_bytes();
    let mut at = 0;
    let mut depth = 0usize;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => at += until(&source[at..], "\n"),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += 2 + until(&source[at + 2..], "*/"),
            quote @ (b'"' | b'\'' | b'`') => at += string_length(&bytes[at..], quote),
            b'{' | b'(' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            byte if is_word(byte) => {
                let length = bytes[at..].iter().position(|byte| !is_word(*byte)).unwrap_or(bytes.len() - at);
                if depth == 0
                    && &source[at..at + length] == "function"
                    && let Some(name) = declared_name(&source[at + length..])
                {
                    return Some(name);
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    None
}

fn declared_name(after: &str) -> Option<&str> {
    let after = after.trim_start().trim_start_matches('*').trim_start();
    let length = after.bytes().position(|byte| !is_word(byte)).unwrap_or(after.len());
    Some(&after[..length]).filter(|name| !name.is_empty())
}

/// Letters outside ASCII are taken as parts of names, which is right for all names.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// The length up to the end of the mark, or to the end of the text.
fn until(text: &str, mark: &str) -> usize {
    text.find(mark).map_or(text.len(), |found| found + mark.len())
}

fn string_length(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(source: &str) -> Result<Program, ScriptError> {
        Program::compile("p", source, &Limits::default())
    }

    #[test]
    fn the_first_function_at_the_top_is_found() {
        for (source, expected) in [
            ("function a(){} function b(){}", Some("a")),
            ("// function no(){}\n/* function no(){} */ async function yes(){};", Some("yes")),
            ("var x = 'function no(){}', y = (function no(){}); function* yes(){}", Some("yes")),
            ("var f = function(){};", None),
            ("'unclosed", None),
            ("function", None),
            ("/* unclosed", None),
        ] {
            assert_eq!(first_declared(source), expected, "{source}");
        }
    }

    #[test]
    fn every_common_form_of_a_function_is_a_program() {
        for source in [
            "function f(a) { return a }",
            "function () { }",
            "() => 1",
            "async (x) => { await x }",
            "(function () { })",
            "// said before\nfunction f() { } // said after",
            "function f() { };",
            "function () { };",
            "function () { } ; ; // said after",
            "/* before; */ function () { return '};' } /* between */ ;\n\n// } after\n/* the end; */\n",
            "function () { return /[\"';]/.test('a') };  ",
            "() => 1; // one",
            "async x => { await x };",
            "(function () { });",
            "function f() { return g() } function g() { }",
            "'use strict'; const two = 2; function f() { return two }",
        ] {
            compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        }
    }

    #[test]
    fn texts_that_are_no_programs_are_refused_and_say_where() {
        let error = compile("function f() {\n  var = 1;\n}").expect_err("this is no JavaScript");
        let ScriptError::Syntax(message) = &error else { panic!("{error:?}") };
        assert!(message.starts_with("SyntaxError: ") && message.contains("p.js:2"), "{message}");
        assert_eq!(compile("var f = 1; f + f"), Err(ScriptError::NotAFunction));
        assert!(matches!(compile("function f() { \0"), Err(ScriptError::Syntax(_))));
        assert!(matches!(compile("import x from 'y'"), Err(ScriptError::Syntax(_))));
        let deep = "(".repeat(500_000);
        assert!(matches!(compile(&deep), Err(ScriptError::Syntax(_))));
        let long = " ".repeat((1 << 20) + 1);
        assert_eq!(compile(&long), Err(ScriptError::TooLarge { what: "text", limit: 1 << 20 }));
    }

    #[test]
    fn checking_does_not_run_the_text() {
        compile("(function () { for (;;) { } })()").expect("it is a program, though not a useful one");
        // Those below close what may stand around them. Whether they are programs does not matter; were any of them
        // run, it would say so.
        let ran = "(() => { throw Error('it ran') })()";
        for source in [
            format!("1)}}(), {ran}, function(){{return(1"),
            format!("1); {ran}; (1"),
            format!("1)}}); {ran}; (function(){{return(1"),
            format!("}}(), {ran}, function f(){{"),
            format!("}})(); {ran}; (function f(){{"),
            format!("1); function f(){{ {ran} }} f(); (1"),
            ran.to_owned(),
        ] {
            let checked = format!("{:?}", compile(&source).map_err(|error| error.to_string()));
            assert!(!checked.contains("Error: it ran"), "{source}: {checked}");
        }
    }
}
