//! The heat map: key space downwards, time to the right, warmth as shade and colour.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Widget;

use super::picture::Heat;

/// From cold to hot. Shades alone must do for terminals without colours, and for text.
const SHADES: [(&str, Color); 5] =
    [(" ", Color::Reset), ("░", Color::Blue), ("▒", Color::Cyan), ("▓", Color::Yellow), ("█", Color::Red)];

/// The map with its axes: on the left the partition that begins at a line, below the time.
pub struct HeatMap<'a> {
    /// Request units a second, by line and column.
    cells: Vec<Vec<f64>>,
    pub highest: f64,
    /// The lines at which partitions begin; of those that begin at the same line the first.
    begins: Vec<(usize, &'a str)>,
    /// Columns that the names of partitions take.
    gutter: usize,
    /// The column of the oldest slot, and how long ago it began.
    oldest: Option<(usize, f64)>,
}

impl<'a> HeatMap<'a> {
    /// Draws the partitions, axes included, into so many columns and lines.
    pub fn new(partitions: &'a [Heat], width: usize, height: usize) -> HeatMap<'a> {
        let longest = partitions.iter().map(|one| one.id.chars().count()).max().unwrap_or(0);
        let gutter = if width >= longest + 1 + AXIS_COLUMNS_MIN { longest + 1 } else { 0 };
        let (columns, lines) = (width - gutter, height.saturating_sub(1));
        let cells = warmth(partitions, columns, lines);
        let highest = cells.iter().flatten().copied().fold(0.0, f64::max);
        let line_of =
            |one: &Heat| ((one.share.0 * lines as f64).round() as usize).min(lines.saturating_sub(1));
        let mut begins: Vec<(usize, &str)> =
            partitions.iter().map(|one| (line_of(one), one.id.as_str())).collect();
        begins.dedup_by_key(|(line, _)| *line);
        let row = partitions.iter().find_map(|one| Some((one.rows.first()?.len(), one.slot_seconds)));
        let oldest = row.filter(|(slots, _)| *slots > 0 && columns > 0).map(|(slots, seconds)| {
            let each = slots_each(slots, columns);
            let shown = slots.div_ceil(each).min(columns);
            (columns - shown, (shown * each).min(slots) as f64 * seconds)
        });
        HeatMap { cells, highest, begins, gutter, oldest }
    }

    fn draw_axes(&self, area: Rect, buffer: &mut Buffer) {
        let dim = Style::new().add_modifier(Modifier::DIM);
        if self.gutter > 0 {
            for (line, id) in self.begins.iter().filter(|(line, _)| *line < self.cells.len()) {
                buffer.set_stringn(area.x, area.y + *line as u16, id, self.gutter - 1, dim);
            }
        }
        let below = area.y + self.cells.len() as u16;
        if below >= area.bottom() {
            return;
        }
        if let Some((column, seconds)) = self.oldest {
            let text = ago(seconds);
            buffer.set_stringn(area.x + (self.gutter + column) as u16, below, &text, text.len(), dim);
        }
        buffer.set_stringn(area.right().saturating_sub(3).max(area.x), below, "now", 3, dim);
    }
}

/// Below so many columns a map has no names of partitions.
const AXIS_COLUMNS_MIN: usize = 12;

fn ago(seconds: f64) -> String {
    if seconds > 90.0 { format!("-{:.0} min", seconds / 60.0) } else { format!("-{seconds:.0} s") }
}

/// A line shows an equal share of the key space, whatever partitions lie in it; a column shows an equal time.
fn warmth(partitions: &[Heat], columns: usize, lines: usize) -> Vec<Vec<f64>> {
    let mut cells = vec![vec![0.0; columns]; lines];
    for partition in partitions {
        let (from, to) = partition.share;
        let height = (to - from) / partition.rows.len().max(1) as f64;
        for (place, row) in partition.rows.iter().enumerate() {
            let top = from + height * place as f64;
            let squeezed = squeeze(row, columns, partition.slot_seconds);
            for (line, part) in parts(top, top + height, lines) {
                for (cell, units) in cells[line].iter_mut().zip(&squeezed) {
                    *cell += units * part;
                }
            }
        }
    }
    cells
}

/// The lines that a part of the key space falls on, and which part of it falls on each.
fn parts(from: f64, to: f64, lines: usize) -> Vec<(usize, f64)> {
    let (first, last) = (from * lines as f64, to * lines as f64);
    let length = (last - first).max(f64::MIN_POSITIVE);
    let lines_touched = first as usize..(last.ceil() as usize).min(lines);
    lines_touched
        .map(|line| {
            let overlap = last.min(line as f64 + 1.0) - first.max(line as f64);
            (line, (overlap / length).clamp(0.0, 1.0))
        })
        .collect()
}

/// The newest slots, in as many columns as there are; each column is the mean of its slots.
fn squeeze(row: &[f64], columns: usize, slot_seconds: f64) -> Vec<f64> {
    let each = slots_each(row.len(), columns);
    let mut squeezed = vec![0.0; columns];
    for (back, chunk) in row.rchunks(each).take(columns).enumerate() {
        squeezed[columns - 1 - back] = chunk.iter().sum::<f64>() / (chunk.len() as f64 * slot_seconds);
    }
    squeezed
}

fn slots_each(slots: usize, columns: usize) -> usize {
    slots.div_ceil(columns.max(1)).max(1)
}

fn shade(units: f64, highest: f64) -> (&'static str, Color) {
    if units <= 0.0 || highest <= 0.0 {
        return SHADES[0];
    }
    // The root keeps what is merely warm visible beside what is hot.
    let step = ((units / highest).sqrt() * (SHADES.len() - 1) as f64).ceil() as usize;
    SHADES[step.clamp(1, SHADES.len() - 1)]
}

impl Widget for HeatMap<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let left = area.x + self.gutter as u16;
        for (line, row) in self.cells.iter().enumerate().take(usize::from(area.height)) {
            for (column, units) in row.iter().enumerate().take(usize::from(area.width) - self.gutter) {
                let (symbol, color) = shade(*units, self.highest);
                let place = (left + column as u16, area.y + line as u16);
                buffer[place].set_symbol(symbol).set_style(Style::new().fg(color));
            }
        }
        self.draw_axes(area, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(share: (f64, f64), rows: &[&[f64]]) -> Heat {
        Heat {
            id: format!("p{:.0}", share.0 * 10.0),
            share,
            rows: rows.iter().map(|row| row.to_vec()).collect(),
            slot_seconds: 1.0,
        }
    }

    #[test]
    fn all_warmth_is_drawn_wherever_partitions_lie() {
        let partitions =
            [heat((0.0, 0.3), &[&[3.0, 0.0], &[0.0, 3.0]]), heat((0.3, 1.0), &[&[7.0, 0.0], &[0.0, 7.0]])];
        for lines in [1, 2, 7, 10, 40] {
            let cells = warmth(&partitions, 2, lines);
            let column = |place: usize| cells.iter().map(|row| row[place]).sum::<f64>();
            assert!((column(0) - 10.0).abs() < 1e-9 && (column(1) - 10.0).abs() < 1e-9, "{lines} lines");
        }
        let cells = warmth(&partitions, 2, 10);
        assert!(cells[0][0] > 0.0 && cells[0][1] == 0.0, "the first bucket was warm first");
        assert!(cells[9][0] == 0.0 && cells[9][1] > 0.0, "the last bucket was warm last");
    }

    #[test]
    fn few_columns_show_means_and_many_show_the_newest_to_the_right() {
        assert_eq!(squeeze(&[1.0, 3.0, 5.0, 7.0], 2, 1.0), [2.0, 6.0]);
        assert_eq!(squeeze(&[60.0, 120.0], 4, 60.0), [0.0, 0.0, 1.0, 2.0]);
        assert_eq!(squeeze(&[1.0], 0, 1.0), [0.0; 0]);
    }

    #[test]
    fn what_is_not_cold_is_visible() {
        assert_eq!(shade(0.0, 10.0).0, " ");
        assert_eq!(shade(0.001, 10.0).0, "░");
        assert_eq!(shade(10.0, 10.0).0, "█");
    }

    fn drawn(partitions: &[Heat], width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        HeatMap::new(partitions, usize::from(width), usize::from(height)).render(area, &mut buffer);
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect()
    }

    #[test]
    fn axes_say_which_partition_begins_where_and_when_a_column_was() {
        let partitions = [heat((0.0, 0.3), &[&[1.0; 10]]), heat((0.3, 1.0), &[&[0.0; 10]])];
        assert_eq!(
            drawn(&partitions, 18, 4),
            ["p0      ██████████", "p3                ", "                  ", "        -10 s  now"]
        );
        let hour = [Heat { slot_seconds: 60.0, ..heat((0.0, 1.0), &[&[1.0; 60]]) }];
        assert_eq!(drawn(&hour, 34, 2)[1].trim(), "-60 min                    now");
        for (width, height) in [(0, 0), (1, 1), (5, 3), (13, 2), (200, 60)] {
            drawn(&partitions, width, height);
            drawn(&[], width, height);
        }
    }
}
