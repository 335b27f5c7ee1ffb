//! Whose turn it is, and what the turns add up to.

use crate::latency::{median, quartiles};
use crate::report::{Line, Wanted};

/// A line falls short below this share of the older build.
pub const LEAST: f64 = 0.97;

/// One of the three servers of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Older,
    New,
    /// The older build once more.
    Again,
}

impl Side {
    pub const ALL: [Side; 3] = [Side::Older, Side::New, Side::Again];

    /// The order of a round. Six rounds see all orders, so no side is always measured after the same other one.
    pub fn order(round: usize) -> [Side; 3] {
        let mut order = Side::ALL;
        order.rotate_left(round % 3);
        if round % 6 >= 3 {
            order.swap(1, 2);
        }
        order
    }
}

/// The same for each side.
pub fn for_each<T>(mut make: impl FnMut(Side) -> anyhow::Result<T>) -> anyhow::Result<[T; 3]> {
    Ok([make(Side::Older)?, make(Side::New)?, make(Side::Again)?])
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Requests a second.
    Rate,
    /// Milliseconds that something took.
    Time,
    /// Microseconds of the server's processors for a request.
    Processor,
    /// MiB that the server holds.
    Memory,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Rate | By::Time => "time",
            By::Processor => "processor",
            By::Memory => "memory",
        }
    }

    /// The figures of both builds, named with their unit.
    fn figures(self) -> [&'static str; 2] {
        match self {
            By::Rate => ["/s before,", "/s now"],
            By::Time => ["ms before,", "ms now"],
            By::Processor => ["us of server before,", "now"],
            By::Memory => ["MiB before,", "now"],
        }
    }

    /// How good one figure is beside another: above 1 when it is better.
    fn ratio(self, figure: f64, other: f64) -> f64 {
        match self {
            By::Rate => figure / other,
            By::Time | By::Processor | By::Memory => other / figure,
        }
    }
}

/// The figures of all rounds of a line, by what is compared.
#[derive(Default)]
pub struct Score {
    figures: Vec<(By, [Vec<f64>; 3])>,
}

impl Score {
    pub fn add(&mut self, side: Side, figures: &[(By, f64)]) {
        for (by, figure) in figures {
            let place = self.figures.iter().position(|(known, _)| known == by).unwrap_or_else(|| {
                self.figures.push((*by, Default::default()));
                self.figures.len() - 1
            });
            self.figures[place].1[side as usize].push(*figure);
        }
    }

    /// The line of the report: medians of both builds, and what the new one is of the older one.
    pub fn line(&self, section: &'static str, what: &str) -> Line {
        let mut line = Line::new(section, what);
        for (by, figures) in &self.figures {
            let [before, now] = by.figures();
            line = line
                .figure(before, median(&figures[Side::Older as usize]))
                .figure(now, median(&figures[Side::New as usize]));
        }
        for (by, figures) in &self.figures {
            let [shares, itself] = [Side::New, Side::Again].map(|side| shares(*by, figures, side));
            let [low, high] = quartiles(&shares);
            let to =
                format!("the build before, by {} ({low:.2} to {high:.2} in half of the rounds)", by.name());
            line = line.ratio(to, median(&shares), Wanted::Kept { least: LEAST, itself: median(&itself) });
        }
        line
    }
}

/// What a side is of the older build, round by round.
fn shares(by: By, figures: &[Vec<f64>; 3], side: Side) -> Vec<f64> {
    let pairs = figures[side as usize].iter().zip(&figures[Side::Older as usize]);
    pairs.map(|(figure, older)| by.ratio(*figure, *older)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_rounds_see_every_order_once() {
        let mut orders: Vec<_> = (0..6).map(|round| Side::order(round).map(|side| side as usize)).collect();
        orders.sort_unstable();
        assert_eq!(orders, [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]);
        assert_eq!(Side::order(6), Side::order(0));
    }

    #[test]
    fn every_side_is_as_often_first_and_as_often_after_each_other_one() {
        for place in 0..3 {
            for side in Side::ALL {
                assert_eq!((0..6).filter(|round| Side::order(*round)[place] == side).count(), 2);
            }
        }
        for (before, after) in [(Side::Older, Side::New), (Side::New, Side::Older), (Side::Again, Side::New)]
        {
            let follows = |round: &usize| Side::order(*round).windows(2).any(|pair| pair == [before, after]);
            assert_eq!((0..6).filter(follows).count(), 2, "{after:?} after {before:?}");
        }
    }

    #[test]
    fn more_is_better_whatever_is_compared() {
        assert_eq!(By::Rate.ratio(150.0, 100.0), 1.5);
        assert_eq!(By::Time.ratio(150.0, 300.0), 2.0);
        assert_eq!(By::Processor.ratio(40.0, 20.0), 0.5);
        assert_eq!(By::Memory.ratio(40.0, 50.0), 1.25);
    }

    #[test]
    fn a_line_is_the_median_of_the_ratios_of_each_round() {
        let mut score = Score::default();
        // The machine slows down by half from round to round; the new build is a tenth slower in each but one.
        for (rate, share) in [(1000.0, 0.9), (500.0, 0.9), (250.0, 1.4)] {
            score.add(Side::Older, &[(By::Rate, rate), (By::Processor, 10.0)]);
            score.add(Side::New, &[(By::Rate, rate * share), (By::Processor, 8.0)]);
            score.add(Side::Again, &[(By::Rate, rate * 0.99), (By::Processor, 10.0)]);
        }
        let median_share = |by, figures, side| median(&shares(by, figures, side));
        let [(_, rates), (_, micros)] = &score.figures[..] else { panic!("two things are compared") };
        assert_eq!(median_share(By::Rate, rates, Side::New), 0.9);
        assert_eq!(median_share(By::Rate, rates, Side::Again), 0.99);
        assert_eq!(median_share(By::Processor, micros, Side::New), 1.25);
        assert_eq!(median_share(By::Processor, micros, Side::Again), 1.0);
    }
}
