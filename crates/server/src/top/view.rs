//! Draws a picture. Everything fits into 80 columns and 24 lines; what is larger shows more.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Text};
use ratatui::widgets::{Block, Cell, Clear, List, ListState, Paragraph, Row, Table, TableState};

use super::Session;
use super::heat::HeatMap;
use super::picture::{Key, Partition, Picture};

/// Lines of the table of partitions, with its frame and head; the heat map gets what is left.
const PARTITION_LINES: (u16, u16) = (5, 10);
/// Columns of the list of keys that are not the key, frame and gaps included.
const KEY_FIGURES_COLUMNS: u16 = 24;
/// Columns that the list of keys has at least, and those that it leaves to the heat map.
const KEY_COLUMNS_MIN: u16 = 38;
const HEAT_COLUMNS_MIN: u16 = 28;
/// Steps of a bar that shows use against budget.
const BAR: usize = 10;

pub fn draw(session: &Session, frame: &mut Frame<'_>) {
    let picture = &session.picture;
    let rows = (picture.partitions.len() as u16 + 3).clamp(PARTITION_LINES.0, PARTITION_LINES.1);
    let alarm = alarm(picture);
    let [head, table, lower, warning, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(rows),
        Constraint::Min(4),
        Constraint::Length(u16::from(alarm.is_some())),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [keys, heat] =
        Layout::horizontal([Constraint::Length(key_columns(picture, lower.width)), Constraint::Min(10)])
            .areas(lower);
    draw_head(session, frame, head);
    draw_partitions(session, frame, table);
    draw_keys(session, frame, keys);
    draw_heat(session, frame, heat);
    if let Some(text) = alarm {
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        frame.render_widget(Paragraph::new(Line::styled(text, red)), warning);
    }
    draw_help(frame, foot);
    if session.chooser.is_some() {
        draw_chooser(session, frame);
    }
}

fn draw_head(session: &Session, frame: &mut Frame<'_>, area: Rect) {
    let picture = &session.picture;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = Line::from(vec![
        Text::styled("orrery top  ", bold),
        Text::raw(format!("{}  ", session.place)),
        Text::styled(format!("{}/{}", picture.database, picture.container), bold),
    ]);
    let items: u64 = picture.partitions.iter().map(|one| one.items).sum();
    let bytes: u64 = picture.partitions.iter().map(|one| one.bytes).sum();
    let budget: f64 = picture.partitions.iter().map(|one| one.throughput).sum();
    let whole = &picture.whole;
    let sums = format!(
        "{:.0} RU/s of {}  {:.0} req/s  {:.1} 429/s  {} items  {}  {} partitions",
        whole.units,
        rate(budget),
        whole.requests,
        whole.throttled,
        count(items as f64),
        size(bytes),
        picture.partitions.len(),
    );
    frame.render_widget(Paragraph::new(vec![title, Line::raw(sums)]), area);
}

fn draw_partitions(session: &Session, frame: &mut Frame<'_>, area: Rect) {
    let count = session.picture.partitions.len();
    let title = format!(" partition {} of {count} ", (session.marked + 1).min(count));
    let titles = ["id", "keys, %", "items", "size", "req/s", "RU/s", "of", "use", "429/s"];
    let widths = [4, 10, 6, 8, 7, 7, 5, BAR as u16 + 5, 5].map(Constraint::Length);
    let rows = session.picture.partitions.iter().map(partition_row);
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(Style::new().add_modifier(Modifier::DIM)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(title).title_bottom(by_protocol(&session.picture).right_aligned()));
    let mut state = TableState::new().with_selected(Some(session.marked));
    frame.render_stateful_widget(table, area, &mut state);
}

/// What the whole server was asked, in which protocol.
fn by_protocol(picture: &Picture) -> Line<'static> {
    let asked = picture.protocols.iter().filter(|(_, requests)| *requests > 0.0);
    let asked: String = asked.map(|(name, requests)| format!("  {name} {}", count(*requests))).collect();
    Line::raw(format!(" requests since the start{asked} "))
}

fn partition_row(partition: &Partition) -> Row<'_> {
    let used = if partition.throughput > 0.0 { partition.rates.units / partition.throughput } else { 0.0 };
    let color = match used {
        used if used >= 0.8 => Color::Red,
        used if used >= 0.5 => Color::Yellow,
        _ => Color::Green,
    };
    let share = format!("{:.1}-{:.1}", partition.share.0 * 100.0, partition.share.1 * 100.0);
    let throttled = Style::new().fg(if partition.rates.throttled > 0.0 { Color::Red } else { Color::Reset });
    Row::new(vec![
        Cell::from(partition.id.as_str()),
        Cell::from(share),
        Cell::from(count(partition.items as f64)),
        Cell::from(size(partition.bytes)),
        Cell::from(format!("{:.1}", partition.rates.requests)),
        Cell::from(format!("{:.1}", partition.rates.units)),
        Cell::from(rate(partition.throughput)),
        Cell::from(bar(used, partition.rates.throttled == 0.0)).style(Style::new().fg(color)),
        Cell::from(format!("{:.1}", partition.rates.throttled)).style(throttled),
    ])
}

/// A bar and a number: how much of a budget is used. What was saved before may be used on top of it without a 429: a burst.
fn bar(used: f64, nothing_refused: bool) -> String {
    let percent = (used * 100.0).min(999.0);
    if used > 1.0 && nothing_refused {
        return format!("{:█^BAR$} {percent:>3.0}%", "burst");
    }
    let full = ((used * BAR as f64).round() as usize).min(BAR);
    format!("{}{} {percent:>3.0}%", "█".repeat(full), "·".repeat(BAR - full))
}

/// The list of keys is as wide as the longest key needs, if the heat map keeps its columns.
fn key_columns(picture: &Picture, width: u16) -> u16 {
    let longest = picture.keys.iter().map(|key| Text::raw(&key.key).width()).max().unwrap_or(0);
    let wanted = KEY_FIGURES_COLUMNS.saturating_add(u16::try_from(longest).unwrap_or(u16::MAX));
    let most = width.saturating_sub(HEAT_COLUMNS_MIN).max(KEY_COLUMNS_MIN);
    wanted.clamp(KEY_COLUMNS_MIN, most)
}

fn draw_keys(session: &Session, frame: &mut Frame<'_>, area: Rect) {
    let row = |key: &Key| {
        Row::new(vec![
            Cell::from(key.key.clone()),
            Cell::from(key.partition.clone()),
            Cell::from(count(key.units)),
            Cell::from(count(key.requests)),
            Cell::from(count(key.throttled)),
        ])
    };
    let widths = [
        Constraint::Min(8),
        Constraint::Length(4),
        Constraint::Length(5),
        Constraint::Length(5),
        Constraint::Length(4),
    ];
    let title = format!(" hottest keys, last {} ", session.span.name());
    let table = Table::new(session.picture.keys.iter().map(row), widths)
        .header(Row::new(["key", "part", "RU", "req", "429"]).style(Style::new().add_modifier(Modifier::DIM)))
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn draw_heat(session: &Session, frame: &mut Frame<'_>, area: Rect) {
    let inside = Block::bordered().inner(area);
    let map = HeatMap::new(&session.picture.heat, usize::from(inside.width), usize::from(inside.height));
    let block = Block::bordered()
        .title(format!(" key space, last {} ", session.span.name()))
        .title_bottom(Line::raw(format!(" █ {:.0} RU/s ", map.highest)).alignment(Alignment::Right));
    frame.render_widget(block, area);
    frame.render_widget(map, inside);
}

/// What is wrong has a line of its own, so that the keys of the help line stay in sight.
fn alarm(picture: &Picture) -> Option<String> {
    match (&picture.error, picture.alerts.as_slice()) {
        (Some(error), _) => Some(error.clone()),
        (None, [first, ..]) => Some(format!("{} alerts: {first}", picture.alerts.len())),
        (None, []) => None,
    }
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let keys = "q quit  ↑↓ PgUp PgDn partition  ←→ minute or hour  c container";
    frame.render_widget(Paragraph::new(Line::styled(keys, Style::new().add_modifier(Modifier::DIM))), area);
}

fn draw_chooser(session: &Session, frame: &mut Frame<'_>) {
    let Some(chooser) = &session.chooser else { return };
    let area = frame.area();
    let [_, middle, _] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Percentage(60), Constraint::Fill(1)])
            .areas(area);
    let lines = (chooser.containers.len() as u16 + 2).min(area.height.saturating_sub(4)).max(3);
    let [_, middle, _] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(lines), Constraint::Fill(1)]).areas(middle);
    let names = chooser.containers.iter().map(|(database, container)| format!("{database}/{container}"));
    let list = List::new(names)
        .highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(" choose a container "));
    let mut state = ListState::default().with_selected(Some(chooser.marked));
    frame.render_widget(Clear, middle);
    frame.render_stateful_widget(list, middle, &mut state);
}

/// RU/s, or that there is no limit.
fn rate(units: f64) -> String {
    if units > 0.0 { count(units) } else { "any".to_owned() }
}

/// A number in at most five characters.
fn count(number: f64) -> String {
    match number {
        n if n < 9_999.5 => format!("{n:.0}"),
        n if n < 999_500.0 => format!("{:.0}k", n / 1e3),
        n if n < 999_500_000.0 => format!("{:.0}M", n / 1e6),
        n => format!("{:.0}G", n / 1e9),
    }
}

fn size(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut number = bytes as f64 / 1024.0;
    let mut units = ["KiB", "MiB", "GiB", "TiB"].into_iter().peekable();
    while let Some(unit) = units.next() {
        if number >= 1_000.0 && units.peek().is_some() {
            number /= 1024.0;
            continue;
        }
        let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
        return format!("{number:.digits$} {unit}");
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in
            [(0.0, "0"), (9_999.0, "9999"), (10_000.0, "10k"), (1_234_567.0, "1M"), (2e9, "2G")]
        {
            assert_eq!(count(number), text);
        }
        for (bytes, text) in [(0, "0 B"), (999, "999 B"), (1_536, "1.50 KiB"), (20 << 30, "20.0 GiB")] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn bars_keep_their_length() {
        for used in [0.0, 0.04, 0.5, 1.0, 7.0, 1e9] {
            for nothing_refused in [false, true] {
                assert_eq!(bar(used, nothing_refused).chars().count(), BAR + 5, "{used}");
            }
        }
    }

    #[test]
    fn a_burst_is_named_where_nothing_was_refused() {
        assert_eq!(bar(1.37, true), "██burst███ 137%");
        assert_eq!(bar(1.37, false), "██████████ 137%");
        assert_eq!(bar(1.0, true), "██████████ 100%");
    }

    #[test]
    fn the_list_of_keys_grows_with_keys_and_terminal() {
        let key = |length: usize| Key {
            partition: "0".to_owned(),
            key: "k".repeat(length),
            units: 1.0,
            requests: 1.0,
            throttled: 0.0,
        };
        for (length, width, wanted) in
            [(5, 80, 38), (40, 80, 52), (40, 120, 64), (400, 200, 172), (40, 40, 38), (0, 20, 38)]
        {
            let picture = Picture { keys: vec![key(1), key(length)], ..Picture::default() };
            assert_eq!(key_columns(&picture, width), wanted, "{length} in {width}");
        }
    }
}
