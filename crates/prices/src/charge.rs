//! What a request cost, line by line.

/// Request units, with the lines that add up to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charge {
    pub lines: Vec<ChargeLine>,
}

/// One reason for a charge: `count` times `each`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChargeLine {
    pub what: &'static str,
    pub count: f64,
    pub each: f64,
}

impl Charge {
    /// Hundredths of a request unit are the service's resolution.
    pub fn total(&self) -> f64 {
        // A sum of nothing is a negative zero, which would show its sign.
        let sum = self.lines.iter().fold(0.0, |sum, line| sum + line.count * line.each);
        (sum * 100.0).round() / 100.0
    }

    pub fn line(mut self, what: &'static str, count: f64, each: f64) -> Charge {
        if count * each > 0.0 {
            self.lines.push(ChargeLine { what, count, each });
        }
        self
    }

    /// Adds another charge. Equal lines become one, so that a script of many operations has few.
    pub fn merge(&mut self, other: Charge) {
        for line in other.lines {
            match self.lines.iter_mut().find(|mine| mine.what == line.what && mine.each == line.each) {
                Some(mine) => mine.count += line.count,
                None => self.lines.push(line),
            }
        }
    }

    /// What several operations cost together, line by line.
    pub fn sum(charges: &[Charge]) -> Charge {
        Charge { lines: charges.iter().flat_map(|charge| charge.lines.iter().cloned()).collect() }
    }

    pub fn flat(what: &'static str, units: f64) -> Charge {
        Charge::default().line(what, 1.0, units)
    }
}
