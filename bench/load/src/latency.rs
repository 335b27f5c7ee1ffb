//! Latencies, every one of them: a run has some hundred thousand, so none needs to be thrown away.

use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Latency {
    micros: Vec<u32>,
    sorted: bool,
}

impl Latency {
    pub fn record(&mut self, time: Duration) {
        self.micros.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
        self.sorted = false;
    }

    pub fn count(&self) -> u64 {
        self.micros.len() as u64
    }

    pub fn merge(&mut self, other: &Latency) {
        self.micros.extend_from_slice(&other.micros);
        self.sorted = false;
    }

    /// The latency in milliseconds that this share of all stays below.
    pub fn quantile_ms(&mut self, share: f64) -> f64 {
        if !self.sorted {
            self.micros.sort_unstable();
            self.sorted = true;
        }
        let place = (self.micros.len() as f64 * share) as usize;
        let micros = self.micros.get(place.min(self.micros.len().saturating_sub(1)));
        f64::from(micros.copied().unwrap_or(0)) / 1000.0
    }
}

/// The middle of some figures.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// The figures that a quarter and three quarters of all stay below.
pub fn quartiles(figures: &[f64]) -> [f64; 2] {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 3].map(|quarter| sorted.get(sorted.len() * quarter / 4).copied().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_medians() {
        let mut latency = Latency::default();
        (1..=1000).rev().for_each(|millis| latency.record(Duration::from_millis(millis)));
        assert_eq!(latency.quantile_ms(0.5), 501.0);
        assert_eq!(latency.quantile_ms(0.99), 991.0);
        assert_eq!(latency.quantile_ms(1.0), 1000.0);
        assert_eq!(Latency::default().quantile_ms(0.5), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(quartiles(&[5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 8.0, 7.0]), [3.0, 7.0]);
    }
}
