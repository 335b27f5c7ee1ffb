//! The report as one page that needs nothing else: no script, no font, no image, no network.

use std::fmt::{self, Display, Write};

use crate::report::{CandidateReport, Finding, Report};
use crate::table::{COLUMNS, cells, name, setting};
use crate::units;

mod chart;

const STYLE: &str = include_str!("html/style.css");

/// The whole page.
pub fn html(report: &Report) -> String {
    let mut out = String::with_capacity(64 * 1024);
    // Writing to a string cannot fail.
    let _ = page(&mut out, report);
    out
}

/// A text in which nothing is markup.
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other if other.is_control() => f.write_char('\u{fffd}')?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

fn page(out: &mut String, report: &Report) -> fmt::Result {
    let title = format!("Partition keys for {}", name(report));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        title = Escaped(&title)
    )?;
    writeln!(out, "<header>\n<h1>{}</h1>\n<p class=\"setting\">{}</p>", Escaped(&title), setting(report))?;
    if let Some(description) = &report.description {
        writeln!(out, "<p>{}</p>", Escaped(description))?;
    }
    writeln!(out, "</header>\n<p class=\"answer\">{}</p>", Escaped(&report.summary))?;
    comparison(out, report)?;
    for (index, candidate) in report.candidates.iter().enumerate() {
        section(out, report, candidate, index)?;
    }
    for note in &report.notes {
        writeln!(out, "<p class=\"setting\">{}</p>", Escaped(note))?;
    }
    out.write_str("</main>\n</body>\n</html>\n")
}

fn comparison(out: &mut String, report: &Report) -> fmt::Result {
    out.write_str("<div class=\"scroll\"><table class=\"comparison\">\n<thead><tr>")?;
    for (index, column) in COLUMNS.into_iter().enumerate() {
        let class = if (1..=2).contains(&index) { "" } else { " class=\"figure\"" };
        write!(out, "<th scope=\"col\"{class}>{column}</th>")?;
    }
    out.write_str("</tr></thead>\n<tbody>\n")?;
    for (index, candidate) in report.candidates.iter().enumerate() {
        out.write_str("<tr>")?;
        for (column, cell) in cells(candidate).iter().enumerate() {
            match column {
                1 => write!(out, "<th scope=\"row\"><a href=\"#key-{index}\">{}</a></th>", Escaped(cell))?,
                2 => write!(out, "<td>{}</td>", badge(candidate))?,
                _ => write!(out, "<td class=\"figure\">{}</td>", Escaped(cell))?,
            }
        }
        out.write_str("</tr>\n")?;
    }
    out.write_str("</tbody>\n</table></div>\n")
}

fn badge(candidate: &CandidateReport) -> String {
    let verdict = candidate.verdict;
    let class = match candidate.score {
        _ if verdict.is_good() => "good",
        score if score > 50.0 => "fair",
        _ => "poor",
    };
    format!("<span class=\"badge {class}\">{}</span>", verdict.title())
}

fn section(out: &mut String, report: &Report, candidate: &CandidateReport, index: usize) -> fmt::Result {
    writeln!(
        out,
        "<article id=\"key-{index}\">\n<h2><code>{}</code> {}</h2>\n<p>{}</p>",
        Escaped(&candidate.key),
        badge(candidate),
        Escaped(&candidate.words)
    )?;
    let said = |finding: &&Finding| !candidate.words.contains(finding.words.as_str());
    let further: Vec<&Finding> = candidate.findings.iter().filter(said).collect();
    if !further.is_empty() {
        out.write_str("<ul>\n")?;
        for finding in further {
            writeln!(out, "<li>{}</li>", Escaped(&finding.words))?;
        }
        out.write_str("</ul>\n")?;
    }
    out.write_str("<div class=\"charts\">\n")?;
    loads(out, candidate)?;
    storage(out, candidate)?;
    growth(out, report, candidate)?;
    out.write_str("</div>\n")?;
    operations(out, candidate)?;
    out.write_str("</article>\n")
}

fn loads(out: &mut String, candidate: &CandidateReport) -> fmt::Result {
    let bar = |(index, partition): (usize, &crate::PartitionReport)| {
        let keys: Vec<&str> = partition.keys.iter().map(|key| key.key.as_str()).collect();
        let keys = if !keys.is_empty() { format!(": {}", keys.join(", ")) } else { String::new() };
        chart::Bar {
            amount: partition.units_per_second,
            words: format!("partition {index}, {} RU/s{keys}", units::count(partition.units_per_second)),
        }
    };
    let chart = chart::Bars {
        title: "RU/s of each physical partition",
        bars: candidate.partitions.iter().enumerate().map(bar).collect(),
        limit: Some((candidate.load.budget, format!("budget {}", units::count(candidate.load.budget)))),
        render: &units::count,
    };
    chart.write(out)
}

fn storage(out: &mut String, candidate: &CandidateReport) -> fmt::Result {
    let bar = |(index, partition): (usize, &crate::PartitionReport)| chart::Bar {
        amount: partition.bytes_at_horizon,
        words: format!("partition {index}, {}", units::bytes(partition.bytes_at_horizon)),
    };
    let chart = chart::Bars {
        title: "Bytes at the horizon, by the partitions of today",
        bars: candidate.partitions.iter().enumerate().map(bar).collect(),
        // There are more partitions by then, so no limit is drawn: what counts is how even it is.
        limit: None,
        render: &units::bytes,
    };
    chart.write(out)
}

fn growth(out: &mut String, report: &Report, candidate: &CandidateReport) -> fmt::Result {
    let points = candidate.largest.growth.iter().map(|point| (point.day, point.bytes)).collect();
    let limit = report.logical_partition_limit;
    let chart = chart::Line {
        title: "Largest logical partition over time",
        points,
        limit: (limit, format!("limit {}", units::bytes(limit))),
        across: &units::days,
        render: &units::bytes,
    };
    chart.write(out)
}

fn operations(out: &mut String, candidate: &CandidateReport) -> fmt::Result {
    if candidate.operations.is_empty() {
        return Ok(());
    }
    out.write_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">operation</th><th scope=\"col\">kind</th>\
         <th scope=\"col\" class=\"figure\">per second</th><th scope=\"col\" class=\"figure\">RU each</th>\
         <th scope=\"col\" class=\"figure\">partitions asked</th>\
         <th scope=\"col\" class=\"figure\">keys named</th></tr></thead>\n<tbody>\n",
    )?;
    for operation in &candidate.operations {
        let keys = operation.keys.map_or_else(|| "none".to_owned(), units::short);
        let kind = match operation.together {
            Some(true) => "transaction, kept",
            Some(false) => "transaction, split",
            None => operation.kind,
        };
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{kind}</td><td class=\"figure\">{}</td><td class=\"figure\">{}</td>\
             <td class=\"figure\">{}</td><td class=\"figure\">{keys}</td></tr>",
            Escaped(&operation.name),
            units::short(operation.per_second),
            units::short(operation.units),
            units::short(operation.partitions),
        )?;
    }
    out.write_str("</tbody>\n</table></div>\n")
}
