//! The heat map: key space downwards, time to the right, warmth as shade and colour.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;

use super::picture::Heat;

/// From cold to hot. Shades alone must do for terminals without colours, and for text.
const SHADES: [(&str, Color); 5] =
    [(" ", Color::Reset), ("░", Color::Blue), ("▒", Color::Cyan), ("▓", Color::Yellow), ("█", Color::Red)];

pub struct HeatMap {
    /// Request units a second, by line and column.
    cells: Vec<Vec<f64>>,
    pub highest: f64,
}

impl HeatMap {
    /// Draws the partitions into so many lines and columns. A line shows an equal share of the key space, whatever
    /// partitions lie in it; a column shows an equal time.
    pub fn new(partitions: &[Heat], columns: usize, lines: usize) -> HeatMap {
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
        let highest = cells.iter().flatten().copied().fold(0.0, f64::max);
        HeatMap { cells, highest }
    }
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
    let each = row.len().div_ceil(columns.max(1)).max(1);
    let mut squeezed = vec![0.0; columns];
    for (back, chunk) in row.rchunks(each).take(columns).enumerate() {
        squeezed[columns - 1 - back] = chunk.iter().sum::<f64>() / (chunk.len() as f64 * slot_seconds);
    }
    squeezed
}

fn shade(units: f64, highest: f64) -> (&'static str, Color) {
    if units <= 0.0 || highest <= 0.0 {
        return SHADES[0];
    }
    // The root keeps what is merely warm visible beside what is hot.
    let step = ((units / highest).sqrt() * (SHADES.len() - 1) as f64).ceil() as usize;
    SHADES[step.clamp(1, SHADES.len() - 1)]
}

impl Widget for HeatMap {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        for (line, row) in self.cells.iter().enumerate().take(usize::from(area.height)) {
            for (column, units) in row.iter().enumerate().take(usize::from(area.width)) {
                let (symbol, color) = shade(*units, self.highest);
                let place = (area.x + column as u16, area.y + line as u16);
                buffer[place].set_symbol(symbol).set_style(Style::new().fg(color));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(share: (f64, f64), rows: &[&[f64]]) -> Heat {
        Heat { share, rows: rows.iter().map(|row| row.to_vec()).collect(), slot_seconds: 1.0 }
    }

    #[test]
    fn all_warmth_is_drawn_wherever_partitions_lie() {
        let partitions =
            [heat((0.0, 0.3), &[&[3.0, 0.0], &[0.0, 3.0]]), heat((0.3, 1.0), &[&[7.0, 0.0], &[0.0, 7.0]])];
        for lines in [1, 2, 7, 10, 40] {
            let map = HeatMap::new(&partitions, 2, lines);
            let column = |place: usize| map.cells.iter().map(|row| row[place]).sum::<f64>();
            assert!((column(0) - 10.0).abs() < 1e-9 && (column(1) - 10.0).abs() < 1e-9, "{lines} lines");
        }
        let map = HeatMap::new(&partitions, 2, 10);
        assert!(map.cells[0][0] > 0.0 && map.cells[0][1] == 0.0, "the first bucket was warm first");
        assert!(map.cells[9][0] == 0.0 && map.cells[9][1] > 0.0, "the last bucket was warm last");
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
}
