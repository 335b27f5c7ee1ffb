//! Latencies in buckets that grow by about 3 %, so that a long storm costs no memory.

use std::time::Duration;

const BUCKETS: usize = 800;
const GROWTH: f64 = 1.03;

#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0, longest: Duration::ZERO }
    }
}

impl Histogram {
    pub fn record(&mut self, latency: Duration) {
        let micros = (latency.as_nanos() as f64 / 1000.0).max(1.0);
        let bucket = (micros.ln() / GROWTH.ln()) as usize;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.total += 1;
        self.longest = self.longest.max(latency);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn longest_ms(&self) -> f64 {
        self.longest.as_secs_f64() * 1000.0
    }

    /// The latency in milliseconds that the given share of records stays under.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (self.total as f64 * share) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen > wanted {
                return GROWTH.powi(bucket as i32 + 1) / 1000.0;
            }
        }
        self.longest_ms()
    }
}
