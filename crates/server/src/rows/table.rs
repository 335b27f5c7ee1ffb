//! A page of rows in columns.
//!
//! A row that is an object has a cell for each of its members, any other row is one cell. Columns come in the order in which
//! rows first have them. Where the terminal is too narrow the widest columns give way first.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::style::Style;
use crate::transfer::Members;

/// What the server adds to items, which would push everything else off the screen.
const SYSTEM: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];
/// The column of rows that are no objects.
const WHOLE: &str = "value";
const GAP: &str = "  ";
/// Columns of a terminal below which a cell says nothing.
const CELL_MIN: usize = 6;
/// A cell is never wider, whatever there is to be shown.
const CELL_MAX: usize = 200;

struct Column {
    name: String,
    /// The text of each row, if the row has the member.
    cells: Vec<Option<String>>,
    is_numeric: bool,
    width: usize,
}

/// Draws a page, each line with its end.
pub fn draw(rows: &[&RawValue], width: Option<usize>, style: Style) -> String {
    let mut columns = columns(rows);
    for column in &mut columns {
        let cells = column.cells.iter().flatten().map(|cell| width_of(cell));
        column.width = cells.chain([width_of(&column.name)]).max().unwrap_or(0).min(CELL_MAX);
    }
    narrow(&mut columns, width);
    let mut out = String::new();
    let heads = columns.iter().map(|column| (column, Some(column.name.as_str())));
    out.push_str(&style.bold(&line(heads)));
    out.push('\n');
    let rules: Vec<String> = columns.iter().map(|column| "─".repeat(column.width)).collect();
    out.push_str(&style.faint(&rules.join(GAP)));
    out.push('\n');
    for number in 0..rows.len() {
        let cells = columns.iter().map(|column| (column, column.cells[number].as_deref()));
        out.push_str(&line(cells));
        out.push('\n');
    }
    out
}

fn columns(rows: &[&RawValue]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let members = match serde_json::from_str::<Members<'_>>(row.get()) {
            Ok(Members(members)) => members,
            Err(_) => vec![(WHOLE.to_owned(), *row)],
        };
        for (name, value) in members {
            if SYSTEM.contains(&name.as_str()) {
                continue;
            }
            let place = columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
                columns.push(Column { name, cells: Vec::new(), is_numeric: true, width: 0 });
                columns.len() - 1
            });
            let column = &mut columns[place];
            column.cells.resize(number, None);
            column.is_numeric &= value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
            column.cells.push(Some(shown(value.get())));
        }
    }
    for column in &mut columns {
        column.cells.resize(rows.len(), None);
    }
    columns
}

/// A text without its quotes, everything else as JSON; control characters would move the cursor of the terminal.
fn shown(value: &str) -> String {
    let text = serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
    let mut out = String::new();
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Takes from the widest columns until the line fits, as far as they can be narrowed.
fn narrow(columns: &mut [Column], width: Option<usize>) {
    let Some(width) = width else { return };
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let mut over = (columns.iter().map(|column| column.width).sum::<usize>() + gaps).saturating_sub(width);
    while over > 0 {
        let widest = columns.iter_mut().max_by_key(|column| column.width);
        let Some(widest) = widest.filter(|column| column.width > CELL_MIN) else { return };
        widest.width -= 1;
        over -= 1;
    }
}

fn line<'c>(cells: impl Iterator<Item = (&'c Column, Option<&'c str>)>) -> String {
    let mut out = String::new();
    for (number, (column, cell)) in cells.enumerate() {
        out.push_str(if number == 0 { "" } else { GAP });
        let text = cut(cell.unwrap_or_default(), column.width);
        let space = " ".repeat(column.width.saturating_sub(width_of(&text)));
        let (before, behind) = if column.is_numeric { (space.as_str(), "") } else { ("", space.as_str()) };
        out.extend([before, &text, behind]);
    }
    out.truncate(out.trim_end().len());
    out
}

fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if width_of(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let next = width_of(c.encode_utf8(&mut [0; 4]));
        if used + next >= width {
            break;
        }
        used += next;
        out.push(c);
    }
    Cow::Owned(out + "…")
}

/// Columns of the terminal that a text takes.
fn width_of(text: &str) -> usize {
    ratatui::text::Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rows: &str, width: Option<usize>) -> String {
        let rows: Vec<&RawValue> = serde_json::from_str(rows).expect("an array");
        draw(&rows, width, Style::PLAIN)
    }

    #[test]
    fn rows_share_columns_in_the_order_in_which_they_come() {
        let rows =
            r#"[{"z":"ada","_rid":"x","total":7},{"total":1234567890123456789,"more":[1, "é"]},{"z":null}]"#;
        let wanted = "\
z                   total  more
────  ───────────────────  ────────
ada                     7
      1234567890123456789  [1, \"é\"]
null
";
        assert_eq!(drawn(rows, None), wanted);
    }

    #[test]
    fn values_that_are_no_objects_have_a_column() {
        assert_eq!(drawn("[1,20]", None), "value\n─────\n    1\n   20\n");
        let rule = "─".repeat(14);
        assert_eq!(drawn(r#"["a\nb\u001b[31m"]"#, None), format!("value\n{rule}\na\\nb\\u{{1b}}[31m\n"));
    }

    #[test]
    fn the_widest_column_gives_way_to_the_width_of_the_terminal() {
        let rows = format!(r#"[{{"id":"1","text":"{}","wide":"日本語日本語日本語"}}]"#, "x".repeat(300));
        let table = drawn(&rows, Some(40));
        assert!(table.lines().all(|line| width_of(line) <= 40), "{table}");
        assert!(table.contains("\n1   xxx") && table.contains("xxx…") && table.contains("日本語"), "{table}");
    }
}
