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
    /// At least this share, or what the older build is of itself: the noise of the run excuses nothing more.
    Kept {
        least: f64,
        itself: f64,
    },
}

impl Wanted {
    fn holds(self, value: f64) -> bool {
        match self {
            Wanted::AtLeast(limit) => value >= limit,
            Wanted::AtMost(limit) => value <= limit,
            Wanted::Kept { least, itself } => value >= least || value >= itself,
        }
    }

    /// What was wanted, with whether it came.
    fn show(self, value: f64) -> String {
        let verdict = if self.holds(value) { "yes" } else { "NO" };
        match self {
            Wanted::AtLeast(least) => format!("(at least {least}: {verdict})"),
            Wanted::AtMost(most) => format!("(at most {most}: {verdict})"),
            Wanted::Kept { least, itself } => {
                format!("(itself {itself:.3}; at least {least} or that: {verdict})")
            }
        }
    }
}

impl Ratio {
    /// Builds are compared to the third digit.
    fn value(&self) -> String {
        match self.wanted {
            Some(Wanted::Kept { .. }) => format!("{:.3}", self.value),
            _ => format!("{:.2}", self.value),
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
        for ratio in &self.ratios {
            out.push_str(&format!("\n      = {} of {}", ratio.value(), ratio.to));
            if let Some(wanted) = ratio.wanted {
                out.push_str(&format!(" {}", wanted.show(ratio.value)));
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

    /// Writes everything as JSON, and says which limits were missed; whether all of them held.
    pub fn finish(&self, path: &Path, others: f64) -> Result<bool> {
        let missed = self.missed();
        println!("\nother programs used {:.0} % of the processors during the run", others * 100.0);
        match missed.is_empty() {
            true => println!("all limits held"),
            false => println!("missed:\n  {}", missed.join("\n  ")),
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let lines: Vec<Value> = self.lines.iter().map(Line::json).collect();
        let whole = json!({
            "cores": machine::cores(),
            "others": others,
            "lines": lines,
            "missed": missed,
        });
        fs::write(path, serde_json::to_string_pretty(&whole)? + "\n")?;
        println!("figures as JSON: {}", path.display());
        Ok(missed.is_empty())
    }

    /// The lines that fell short of what is wanted, by name.
    fn missed(&self) -> Vec<String> {
        let ratios = self.lines.iter().flat_map(|line| line.ratios.iter().map(move |ratio| (line, ratio)));
        ratios
            .filter_map(|(line, ratio)| {
                let wanted = ratio.wanted.filter(|wanted| !wanted.holds(ratio.value))?;
                let (section, what, shown) = (line.section, &line.what, wanted.show(ratio.value));
                Some(format!("{section}, {what}: {} of {} {shown}", ratio.value(), ratio.to))
            })
            .collect()
    }
}

/// Three or four digits are all that a figure is worth.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_falls_short_when_it_is_worse_than_the_limit_and_than_the_noise() {
        for (value, itself, holds) in [
            (1.0, 1.0, true),
            (0.97, 1.0, true),
            (0.969, 1.0, false),
            // A run in which the older build is that much worse than itself shows nothing.
            (0.95, 0.94, true),
            (0.95, 0.95, true),
            (0.95, 0.96, false),
            (0.5, 0.969, false),
            (1.2, 1.3, true),
            // What could not be measured is not good enough.
            (f64::NAN, 1.0, false),
            (0.0, f64::NAN, false),
        ] {
            let wanted = Wanted::Kept { least: 0.97, itself };
            assert_eq!(wanted.holds(value), holds, "{value} beside {itself}");
        }
    }

    #[test]
    fn lines_that_fall_short_are_named() {
        let mut report = Report::default();
        for (what, value) in [("good", 0.99), ("bad", 0.91)] {
            let wanted = Wanted::Kept { least: 0.97, itself: 1.004 };
            report.add(Line::new("section", what).ratio("the older build, by time", value, wanted));
        }
        report.add(Line::new("section", "not wanted").ratio("a peer", 0.1, None));
        let bad = "section, bad: 0.910 of the older build, by time (itself 1.004; at least 0.97 or that: NO)";
        assert_eq!(report.missed(), [bad]);
    }
}
