//! The table that people read and the JSON that programs read, of one run.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::machine;

#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

/// One measurement: its figures, and what it is held against.
pub struct Line {
    section: &'static str,
    what: String,
    figures: Vec<(&'static str, f64)>,
    ratios: Vec<Ratio>,
    note: Option<String>,
}

struct Ratio {
    to: String,
    value: f64,
    wanted: Option<Wanted>,
}

#[derive(Clone, Copy)]
pub enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    fn holds(self, value: f64) -> bool {
        match self {
            Wanted::AtLeast(limit) => value >= limit,
            Wanted::AtMost(limit) => value <= limit,
        }
    }
}

impl Line {
    pub fn new(section: &'static str, what: impl Into<String>) -> Line {
        Line { section, what: what.into(), figures: Vec::new(), ratios: Vec::new(), note: None }
    }

    /// A figure, named with its unit.
    pub fn figure(mut self, name: &'static str, value: f64) -> Line {
        self.figures.push((name, value));
        self
    }

    /// A share of a peer or of a ceiling that was measured in the same run.
    pub fn ratio(mut self, to: impl Into<String>, value: f64, wanted: impl Into<Option<Wanted>>) -> Line {
        self.ratios.push(Ratio { to: to.into(), value, wanted: wanted.into() });
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Line {
        self.note = Some(note.into());
        self
    }

    fn show(&self) -> String {
        let mut out = format!("  {:<44}", self.what);
        for (name, value) in &self.figures {
            out.push_str(&format!("  {} {name}", number(*value)));
        }
        for Ratio { to, value, wanted } in &self.ratios {
            out.push_str(&format!("\n      = {value:.2} of {to}"));
            match wanted {
                None => {}
                Some(limit @ Wanted::AtLeast(least)) => {
                    out.push_str(&format!(" (at least {least}: {})", verdict(limit.holds(*value))));
                }
                Some(limit @ Wanted::AtMost(most)) => {
                    out.push_str(&format!(" (at most {most}: {})", verdict(limit.holds(*value))));
                }
            }
        }
        if let Some(note) = &self.note {
            out.push_str(&format!("\n      {note}"));
        }
        out
    }

    fn json(&self) -> Value {
        let figures: Map<String, Value> =
            self.figures.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let ratios: Vec<Value> = self
            .ratios
            .iter()
            .map(|ratio| {
                let holds = ratio.wanted.map(|wanted| wanted.holds(ratio.value));
                json!({"to": ratio.to, "value": ratio.value, "holds": holds})
            })
            .collect();
        json!({"section": self.section, "what": self.what, "figures": figures, "ratios": ratios, "note": self.note})
    }
}

impl Report {
    /// Shows a line at once: a run is long.
    pub fn add(&mut self, line: Line) {
        if self.lines.last().is_none_or(|last| last.section != line.section) {
            println!("\n{}", line.section);
        }
        println!("{}", line.show());
        self.lines.push(line);
    }

    /// Writes everything as JSON, and says which limits were missed.
    pub fn finish(&self, folder: &Path, others: f64) -> Result<()> {
        let missed: Vec<String> = self
            .lines
            .iter()
            .flat_map(|line| line.ratios.iter().map(move |ratio| (line, ratio)))
            .filter(|(_, ratio)| ratio.wanted.is_some_and(|wanted| !wanted.holds(ratio.value)))
            .map(|(line, ratio)| {
                format!("{}, {}: {:.2} of {}", line.section, line.what, ratio.value, ratio.to)
            })
            .collect();
        println!("\nother programs used {:.0} % of the processors during the run", others * 100.0);
        match missed.is_empty() {
            true => println!("all limits held"),
            false => println!("missed:\n  {}", missed.join("\n  ")),
        }
        fs::create_dir_all(folder)?;
        let path = folder.join("bench.json");
        let lines: Vec<Value> = self.lines.iter().map(Line::json).collect();
        let whole = json!({
            "cores": machine::cores(),
            "others": others,
            "lines": lines,
            "missed": missed,
        });
        fs::write(&path, serde_json::to_string_pretty(&whole)? + "\n")?;
        println!("figures as JSON: {}", path.display());
        Ok(())
    }
}

fn verdict(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}

/// Three or four digits are all that a figure is worth.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
