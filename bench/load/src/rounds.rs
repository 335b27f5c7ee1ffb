//! Rounds of one kind of load, put together.

use crate::latency::{Latency, median};
use crate::report::Line;
use crate::site::Measured;

/// What several rounds of the same load showed.
#[derive(Default)]
pub struct Rounds {
    pub rates: Vec<f64>,
    micros: Vec<f64>,
    latency: Latency,
}

impl Rounds {
    pub fn add(&mut self, measured: &Measured) {
        self.rates.push(measured.outcome.rate());
        self.micros.push(measured.server_micros);
        self.latency.merge(&measured.outcome.latency);
    }

    pub fn rate(&self) -> f64 {
        median(&self.rates)
    }

    pub fn server_micros(&self) -> f64 {
        median(&self.micros)
    }

    pub fn p99_ms(&mut self) -> f64 {
        self.latency.quantile_ms(0.99)
    }

    /// The median of the ratios round by round: what disturbs one round disturbs its neighbour alike.
    pub fn ratio_to(&self, other: &Rounds) -> f64 {
        median_ratio(&self.rates, &other.rates)
    }

    /// The same by the processor time that the server took for a request: above 1 when ours took less.
    pub fn processor_ratio_to(&self, other: &Rounds) -> f64 {
        median_ratio(&other.micros, &self.micros)
    }

    pub fn line(&mut self, section: &'static str, what: impl Into<String>) -> Line {
        let line = Line::new(section, what)
            .figure("/s", self.rate())
            .figure("ms p50", self.latency.quantile_ms(0.5))
            .figure("ms p99", self.latency.quantile_ms(0.99));
        match self.server_micros() {
            0.0 => line,
            micros => line.figure("us of server", micros),
        }
    }
}

fn median_ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    median(&ratios)
}
