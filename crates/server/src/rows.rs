//! Rows of a query, as people and programs read them.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::style::Style;

mod table;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A row on each line, as the server wrote it.
    Lines,
    /// One JSON array.
    Array,
    /// JSON with indentation, for reading.
    Pretty,
    /// Columns. System properties are left out, and long values cut to the width of the terminal.
    Table,
}

/// Writes rows page by page.
pub struct Rows<'w, W> {
    out: &'w mut W,
    format: Format,
    style: Style,
    /// Columns of the terminal; elsewhere a table is as wide as its rows are.
    width: Option<usize>,
    written: usize,
}

impl<'w, W: Write> Rows<'w, W> {
    pub fn new(out: &'w mut W, format: Format, stream: &impl IsTerminal) -> Rows<'w, W> {
        let size = stream.is_terminal().then(|| ratatui::crossterm::terminal::size().ok()).flatten();
        let width = size.map(|(columns, _)| usize::from(columns));
        Rows { out, format, style: Style::of(stream), width, written: 0 }
    }

    pub fn page(&mut self, rows: &[&RawValue]) -> std::io::Result<()> {
        if self.format == Format::Table {
            if !rows.is_empty() {
                let between = if self.written == 0 { "" } else { "\n" };
                let table = table::draw(rows, self.width, self.style);
                write!(self.out, "{between}{table}")?;
            }
            self.written += rows.len();
            return Ok(());
        }
        for row in rows {
            self.row(row)?;
            self.written += 1;
        }
        Ok(())
    }

    fn row(&mut self, row: &RawValue) -> std::io::Result<()> {
        match self.format {
            Format::Array => {
                write!(self.out, "{}{}", if self.written == 0 { "[\n" } else { ",\n" }, row.get())
            }
            Format::Pretty => {
                let value: Value = serde_json::from_str(row.get())?;
                writeln!(self.out, "{value:#}")
            }
            Format::Lines | Format::Table => writeln!(self.out, "{}", row.get()),
        }
    }

    /// Ends what is one whole over all pages.
    pub fn finish(self) -> std::io::Result<()> {
        if self.format == Format::Array {
            self.out.write_all(if self.written == 0 { b"[]\n" } else { b"\n]\n" })?;
        }
        self.out.flush()
    }
}
