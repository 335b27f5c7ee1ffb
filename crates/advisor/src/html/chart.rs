//! Charts as inline SVG. Each says in words what it shows, for those who cannot see it.

use std::fmt::{self, Write};

use super::Escaped;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 170.0;
/// Room for the labels on the left and below, and for that of the limit above.
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 16.0;
const LABEL_HEIGHT: f64 = 12.0;

pub struct Bar {
    pub amount: f64,
    pub words: String,
}

pub struct Bars<'a> {
    pub title: &'a str,
    pub bars: Vec<Bar>,
    pub limit: Option<(f64, String)>,
    pub render: &'a dyn Fn(f64) -> String,
}

pub struct Line<'a> {
    pub title: &'a str,
    /// Across and up.
    pub points: Vec<(f64, f64)>,
    pub limit: (f64, String),
    pub across: &'a dyn Fn(f64) -> String,
    pub render: &'a dyn Fn(f64) -> String,
}

/// Where amounts lie in the picture.
struct Scale {
    most: f64,
}

impl Scale {
    fn new(most: f64) -> Scale {
        Scale { most: if most > 0.0 { most * 1.05 } else { 1.0 } }
    }

    fn up(&self, amount: f64) -> f64 {
        HEIGHT - BOTTOM - (amount / self.most).clamp(0.0, 1.0) * (HEIGHT - BOTTOM - TOP)
    }
}

impl Bars<'_> {
    pub fn write(&self, out: &mut String) -> fmt::Result {
        let most = self.bars.iter().map(|bar| bar.amount).fold(0.0, f64::max);
        // A limit far above all bars would press them flat.
        let limit = self.limit.as_ref().filter(|(limit, _)| *limit < 4.0 * most);
        let scale = Scale::new(limit.map_or(most, |(limit, _)| most.max(*limit)));
        let words = format!("{}: {} bars, the highest {}", self.title, self.bars.len(), (self.render)(most));
        open(out, self.title, &words)?;
        let step = (WIDTH - LEFT) / self.bars.len().max(1) as f64;
        let (width, gap) = (step * 0.8, step * 0.1);
        for (index, bar) in self.bars.iter().enumerate() {
            let top = scale.up(bar.amount);
            let over = limit.is_some_and(|(limit, _)| bar.amount > *limit);
            writeln!(
                out,
                "<rect class=\"bar{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{:.1}\"><title>{}</title></rect>",
                if over { " over" } else { "" },
                LEFT + step * index as f64 + gap,
                (HEIGHT - BOTTOM - top).max(0.0),
                Escaped(&bar.words)
            )?;
        }
        axes(out, &scale, most, self.render)?;
        label(out, LEFT, "start", "0")?;
        label(out, WIDTH, "end", &(self.bars.len().saturating_sub(1)).to_string())?;
        if let Some((limit, words)) = limit {
            line_at(out, &scale, *limit, words)?;
        }
        close(out)
    }
}

impl Line<'_> {
    pub fn write(&self, out: &mut String) -> fmt::Result {
        let most = self.points.iter().map(|point| point.1).fold(0.0, f64::max);
        let scale = Scale::new(most.max(self.limit.0));
        let last = self.points.last().map_or(1.0, |point| point.0).max(1e-9);
        let words = format!("{}: {} after {}", self.title, (self.render)(most), (self.across)(last));
        open(out, self.title, &words)?;
        out.write_str("<polyline class=\"line\" points=\"")?;
        for (across, amount) in &self.points {
            write!(out, "{:.1},{:.1} ", LEFT + across / last * (WIDTH - LEFT), scale.up(*amount))?;
        }
        writeln!(out, "\"><title>{}</title></polyline>", Escaped(&words))?;
        axes(out, &scale, most, self.render)?;
        label(out, LEFT, "start", "today")?;
        label(out, WIDTH, "end", &(self.across)(last))?;
        line_at(out, &scale, self.limit.0, &self.limit.1)?;
        close(out)
    }
}

fn open(out: &mut String, title: &str, words: &str) -> fmt::Result {
    writeln!(
        out,
        "<figure>\n<figcaption>{}</figcaption>\n<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-label=\"{}\">",
        Escaped(title),
        Escaped(words)
    )
}

fn close(out: &mut String) -> fmt::Result {
    out.write_str("</svg>\n</figure>\n")
}

fn axes(out: &mut String, scale: &Scale, most: f64, render: &dyn Fn(f64) -> String) -> fmt::Result {
    let bottom = HEIGHT - BOTTOM;
    writeln!(out, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{WIDTH}\"/>")?;
    // Two labels in the same place would be one that nobody can read.
    let marks = if scale.up(0.0) - scale.up(most) > LABEL_HEIGHT { vec![0.0, most] } else { vec![most] };
    for amount in marks {
        writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 5.0,
            scale.up(amount) + 4.0,
            Escaped(&render(amount))
        )?;
    }
    Ok(())
}

fn label(out: &mut String, across: f64, anchor: &str, words: &str) -> fmt::Result {
    let y = HEIGHT - 7.0;
    writeln!(out, "<text x=\"{across}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>", Escaped(words))
}

fn line_at(out: &mut String, scale: &Scale, amount: f64, words: &str) -> fmt::Result {
    let y = scale.up(amount);
    writeln!(
        out,
        "<path class=\"limit\" d=\"M{LEFT} {y:.1}H{WIDTH}\"/>\n<text class=\"limit\" x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        y - 4.0,
        Escaped(words)
    )
}
