//! `orrery shell`: SQL and a few commands, line after line, at a terminal or from a pipe.
//!
//! At a terminal lines are edited, kept and completed. What comes from a pipe is done statement by statement, and the first
//! that goes wrong ends it, as scripts expect.

use std::cell::RefCell;
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::Context;
use clap::Args;
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Editor};

use crate::client::{Endpoint, Target};
use crate::query::Manner;
use crate::style::Style;

mod completion;
mod fault;
mod history;
mod properties;
mod session;
mod statement;

use completion::Assistant;
use session::{Next, Session};
use statement::Statement;

pub use fault::pointed_at;

/// Lines that are kept for the next time.
const HISTORY_LINES: usize = 1_000;
/// Bytes that a statement from a pipe may have; the service takes fewer.
const STATEMENT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Args)]
pub struct Shell {
    #[command(flatten)]
    endpoint: Endpoint,
    /// What is asked first; `use` in the shell chooses something else.
    #[arg(value_name = "DATABASE[/CONTAINER]")]
    target: Option<Target>,
    #[command(flatten)]
    manner: Manner,
    /// Where lines are kept for the next time; by default `orrery/shell-history` in `$XDG_STATE_HOME`, which mostly is
    /// `~/.local/state`.
    #[arg(long, env = "ORRERY_HISTORY", value_name = "FILE")]
    history: Option<PathBuf>,
    /// Keep no lines.
    #[arg(long)]
    no_history: bool,
}

pub fn run(shell: Shell) -> anyhow::Result<()> {
    let is_terminal = std::io::stdin().is_terminal();
    let history = (!shell.no_history).then(|| shell.history.or_else(history::by_default)).flatten();
    let mut session = Session::new(shell.endpoint, shell.manner, is_terminal)?;
    if let Some(target) = shell.target {
        session.use_target(target)?;
    }
    if is_terminal { converse(session, history) } else { follow(session) }
}

/// Talks with a person.
fn converse(session: Session, history: Option<PathBuf>) -> anyhow::Result<()> {
    let style = Style::of(&std::io::stdout());
    let errors = Style::of(&std::io::stderr());
    println!("{}", style.faint(&session.greeting()));
    let session = Rc::new(RefCell::new(session));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .bell_style(BellStyle::None)
        .max_history_size(HISTORY_LINES)?
        .auto_add_history(true)
        .build();
    let mut editor = Editor::<Assistant, DefaultHistory>::with_config(config)?;
    editor.set_helper(Some(Assistant::new(Rc::clone(&session))));
    if let Some(file) = &history {
        // Without a file of earlier lines there are none.
        let _ = editor.load_history(file);
    }
    loop {
        let place = session.borrow().prompt();
        let text = match editor.readline(&(place.as_str(), style.link(&place))) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("the terminal cannot be read"),
        };
        if answer(&session, &text, errors) == Next::Leave {
            break;
        }
    }
    history.map_or(Ok(()), |file| history::save(&mut editor, &file))
}

/// Does all that was entered at once; what goes wrong is said, and ends it.
fn answer(session: &RefCell<Session>, text: &str, style: Style) -> Next {
    for sentence in statement::all(text) {
        let done = Statement::read(&sentence).and_then(|said| session.borrow_mut().answer(said));
        match done {
            Ok(Next::Go) => {}
            Ok(Next::Leave) => return Next::Leave,
            Err(error) => {
                eprintln!(
                    "{} {}",
                    style.error("error:"),
                    pointed_at(statement::bare(&sentence), error, style)
                );
                break;
            }
        }
    }
    Next::Go
}

/// Does what a program or a file says.
fn follow(mut session: Session) -> anyhow::Result<()> {
    let style = Style::of(&std::io::stderr());
    let mut lines = std::io::stdin().lock().lines();
    let (mut text, mut number, mut began) = (String::new(), 0, 1);
    loop {
        let line = lines.next().transpose().context("the statements cannot be read")?;
        let is_end = line.is_none();
        number += 1;
        if statement::is_blank(&text) {
            text.clear();
            began = number;
        }
        text.push_str(line.as_deref().unwrap_or_default());
        text.push('\n');
        anyhow::ensure!(text.len() <= STATEMENT_BYTES_MAX, "the statement in line {began} has no end");
        loop {
            let end =
                statement::end_of(&text).or((is_end && !statement::is_blank(&text)).then_some(text.len()));
            let Some(end) = end else { break };
            let rest = text.split_off(end);
            let sentence = std::mem::replace(&mut text, rest);
            let done = Statement::read(&sentence).and_then(|said| session.answer(said));
            let done = done.map_err(|error| pointed_at(statement::bare(&sentence), error, style));
            if done.with_context(|| format!("line {began}"))? == Next::Leave {
                return Ok(());
            }
            began = number;
        }
        if is_end {
            return Ok(());
        }
    }
}
