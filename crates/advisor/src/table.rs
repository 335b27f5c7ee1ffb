//! The report for a terminal.

use std::fmt::Write;

use crate::report::{CandidateReport, Report};
use crate::units;

/// Characters of a line of prose.
const WIDTH: usize = 100;

/// The whole report as text: a table of all candidates, then each of them in words.
pub fn table(report: &Report) -> String {
    let mut out = String::new();
    put(&mut out, format_args!("Partition keys for {}", name(report)));
    put(&mut out, format_args!("{}", setting(report)));
    out.push('\n');
    rows(&mut out, report);
    for candidate in &report.candidates {
        out.push('\n');
        put(&mut out, format_args!("{}: {}", candidate.key, candidate.verdict.title()));
        wrap(&mut out, &candidate.words);
        let said = |words: &String| candidate.words.contains(words.as_str());
        for finding in candidate.findings.iter().filter(|finding| !said(&finding.words)) {
            wrap(&mut out, &finding.words);
        }
        loads(&mut out, candidate);
    }
    for note in &report.notes {
        out.push('\n');
        wrap(&mut out, &format!("Note: {note}"));
    }
    out
}

pub fn name(report: &Report) -> String {
    if report.workload.is_empty() { "this workload".to_owned() } else { format!("\"{}\"", report.workload) }
}

/// What all candidates were measured against, in one line.
pub fn setting(report: &Report) -> String {
    let source = if report.throughput_is_given { "provisioned" } else { "needed at least" };
    let plural = if report.partitions == 1 { "" } else { "s" };
    format!(
        "{} physical partition{plural}, {} RU/s {source}, {} today, {} after {}",
        report.partitions,
        units::count(report.throughput),
        units::bytes(report.bytes_today),
        units::bytes(report.bytes_at_horizon),
        units::days(report.horizon_days)
    )
}

/// Titles and values of the columns of the comparison.
pub const COLUMNS: [&str; 8] =
    ["score", "key", "verdict", "load even", "storage even", "largest at horizon", "routing", "transactions"];

pub fn cells(candidate: &CandidateReport) -> [String; 8] {
    let measures = &candidate.measures;
    let has_transactions = candidate.operations.iter().any(|operation| operation.together.is_some());
    [
        units::count(candidate.score),
        candidate.key.clone(),
        candidate.verdict.title().to_owned(),
        units::percent(measures.throughput),
        units::percent(measures.storage),
        units::bytes(candidate.largest.bytes_at_horizon),
        units::percent(measures.routing),
        if has_transactions { units::percent(measures.transactions) } else { "-".to_owned() },
    ]
}

fn rows(out: &mut String, report: &Report) {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(report.candidates.iter().map(cells));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    for (index, row) in rows.iter().enumerate() {
        let line: Vec<String> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                1 | 2 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        put(out, format_args!("  {}", line.join("  ").trim_end()));
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            put(out, format_args!("  {}", rule.join("  ")));
        }
    }
}

/// The load of the partitions, as bars, if there are not too many of them.
fn loads(out: &mut String, candidate: &CandidateReport) {
    const SHOWN: usize = 16;
    const BAR: f64 = 40.0;
    let busiest = candidate.load.busiest;
    if busiest <= 0.0 || candidate.partitions.len() < 2 {
        return;
    }
    for (index, partition) in candidate.partitions.iter().take(SHOWN).enumerate() {
        let length = (partition.units_per_second / busiest * BAR).round() as usize;
        let keys: Vec<&str> = partition.keys.iter().map(|key| key.key.as_str()).collect();
        let line = format!(
            "    {index:>3} {:<40} {:>8} RU/s  {}",
            "#".repeat(length),
            units::count(partition.units_per_second),
            keys.join(", ")
        );
        put(out, format_args!("{}", line.trim_end()));
    }
    if candidate.partitions.len() > SHOWN {
        put(out, format_args!("    ... and {} more partitions", candidate.partitions.len() - SHOWN));
    }
}

fn wrap(out: &mut String, text: &str) {
    let mut line = String::from(" ");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            put(out, format_args!("{line}"));
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    if !line.trim().is_empty() {
        put(out, format_args!("{line}"));
    }
}

fn put(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{line}");
}
