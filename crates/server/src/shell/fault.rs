//! Shows in the text of a query what is wrong with it.

use crate::client::{Fault, Refusal};
use crate::style::Style;

/// The error, with the lines of the query that it is about where the server says that. The text is the one that was sent.
pub fn pointed_at(sql: &str, error: anyhow::Error, style: Style) -> anyhow::Error {
    let Some(refusal) = error.downcast_ref::<Refusal>() else { return error };
    let shown: Option<Vec<String>> = refusal.faults.iter().map(|fault| show(sql, fault, style)).collect();
    match shown.filter(|shown| !shown.is_empty()) {
        Some(shown) => {
            anyhow::anyhow!("the server answered {}\n{}", refusal.status.as_u16(), shown.join("\n"))
        }
        None => error,
    }
}

/// The line in which it begins, a line that marks it, and what is wrong.
fn show(sql: &str, fault: &Fault, style: Style) -> Option<String> {
    let (start, end) = fault.place?;
    let (start, end) = (byte_of(sql, start)?, byte_of(sql, end)?);
    let from = sql[..start].rfind('\n').map_or(0, |end| end + 1);
    let to = sql[start..].find('\n').map_or(sql.len(), |length| start + length);
    let end = end.clamp(start, to);
    let before = width_of(&sql[from..start]);
    let marked = width_of(&sql[start..end]).max(1);
    let mark = style.error(&"^".repeat(marked));
    let line = sql[from..to].replace('\t', " ");
    let number = sql[..from].matches('\n').count() + 1;
    let place = if sql.contains('\n') { format!("line {number}: ") } else { String::new() };
    Some(format!("  {line}\n  {}{mark}\n{place}{}", " ".repeat(before), fault.message))
}

/// The protocol counts as UTF-16 does.
fn byte_of(text: &str, unit: usize) -> Option<usize> {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units >= unit {
            return Some(at);
        }
        units += c.len_utf16();
    }
    (units >= unit).then_some(text.len())
}

fn width_of(text: &str) -> usize {
    // A tab is shown as one blank.
    ratatui::text::Span::raw(text.replace('\t', " ")).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, start: usize, end: usize) -> Option<String> {
        show(sql, &Fault { message: "Wrong.".into(), place: Some((start, end)) }, Style::PLAIN)
    }

    #[test]
    fn the_place_is_marked_in_its_line() {
        assert_eq!(shown("SELEKT 1", 0, 6).as_deref(), Some("  SELEKT 1\n  ^^^^^^\nWrong."));
        assert_eq!(shown("SELECT", 6, 6).as_deref(), Some("  SELECT\n        ^\nWrong."));
        assert_eq!(
            shown("SELECT *\n\tFORM c\nWHERE", 10, 99).as_deref(),
            None,
            "a place behind the text is none"
        );
        assert_eq!(
            shown("SELECT *\n\tFORM c\nWHERE", 10, 20).as_deref(),
            Some("   FORM c\n   ^^^^^^\nline 2: Wrong.")
        );
        // Two units of UTF-16 and two columns, four bytes.
        assert_eq!(shown("'😀' x", 5, 6).as_deref(), Some("  '😀' x\n       ^\nWrong."));
    }
}
