//! How text for people looks on a terminal.

use std::io::IsTerminal;

/// Whether a stream shows colours: it is a terminal, and the user does not forbid them (no-color.org).
pub fn is_coloured(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// The ways in which text can stand out.
#[derive(Clone, Copy)]
pub struct Style {
    is_coloured: bool,
}

impl Style {
    pub fn of(stream: &impl IsTerminal) -> Style {
        Style { is_coloured: is_coloured(stream) }
    }

    #[cfg(test)]
    pub const PLAIN: Style = Style { is_coloured: false };

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn link(self, text: &str) -> String {
        self.paint("36", text)
    }

    pub fn error(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
