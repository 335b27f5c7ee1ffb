//! The request-unit budget of one physical partition, or of a database that its containers share.
//!
//! A bucket fills with the provisioned rate and holds one second of it.
//! A request is admitted while anything is left and pays when its cost is known, so the bucket may go into debt;
//! the next request then waits until the debt is paid, and is told exactly how long that takes.
//! A partition below 3,000 RU/s banks what it leaves idle, up to five minutes' worth, and may spend it at that rate.

use std::time::{Duration, Instant};

use orrery_store::limits::{BURST_RATE_MAX, BURST_SECONDS};
use parking_lot::Mutex;

pub struct Budget {
    bucket: Mutex<Bucket>,
}

/// What was spent since the start.
#[derive(Clone, Copy, Debug)]
pub struct BudgetUsage {
    /// The most RU that any second used.
    pub highest: f64,
    pub total: f64,
    /// Requests refused.
    pub throttled: u64,
}

struct Bucket {
    /// RU/s; zero means unlimited.
    rate: f64,
    left: f64,
    banked: f64,
    filled: Instant,
    /// What the running second has used, and the most that any second used.
    second: Instant,
    used: f64,
    highest: f64,
    total: f64,
    throttled: u64,
}

impl Budget {
    pub fn new(rate: f64, now: Instant) -> Budget {
        Budget {
            bucket: Mutex::new(Bucket {
                rate,
                left: rate,
                banked: 0.0,
                filled: now,
                second: now,
                used: 0.0,
                highest: 0.0,
                total: 0.0,
                throttled: 0,
            }),
        }
    }

    /// A changed rate takes effect at once; debts stay.
    pub fn set_rate(&self, rate: f64, now: Instant) {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        bucket.left = bucket.left.min(rate);
        bucket.rate = rate;
    }

    /// How long to wait before asking again, if the budget is spent.
    pub fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        if bucket.rate == 0.0 || bucket.left > 0.0 {
            return Ok(());
        }
        bucket.throttled += 1;
        let seconds = (1.0 - bucket.left) / bucket.rate;
        Err(Duration::from_secs_f64(seconds.clamp(0.001, 60.0)))
    }

    pub fn pay(&self, units: f64, now: Instant) {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        bucket.left -= units;
        if now.duration_since(bucket.second) >= Duration::from_secs(1) {
            bucket.second = now;
            bucket.used = 0.0;
        }
        bucket.used += units;
        bucket.total += units;
        bucket.highest = bucket.highest.max(bucket.used);
    }

    /// What can be spent so that others still find half of a second's worth.
    pub fn spare(&self, now: Instant) -> f64 {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        if bucket.rate == 0.0 { f64::INFINITY } else { (bucket.left - bucket.rate / 2.0).max(0.0) }
    }

    /// What may be spent before the budget is in debt, what is banked included; no bound when there is no rate.
    pub fn available(&self, now: Instant) -> f64 {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        if bucket.rate == 0.0 { f64::INFINITY } else { bucket.left.max(0.0) + bucket.banked }
    }

    /// RU/s; zero means unlimited.
    pub fn rate(&self) -> f64 {
        self.bucket.lock().rate
    }

    pub fn usage(&self) -> BudgetUsage {
        let bucket = self.bucket.lock();
        BudgetUsage { highest: bucket.highest, total: bucket.total, throttled: bucket.throttled }
    }
}

impl Bucket {
    fn fill(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        let burst_rate = f64::from(BURST_RATE_MAX);
        self.left += self.rate * seconds;
        if self.left > self.rate {
            if self.rate < burst_rate {
                let most = self.rate * f64::from(BURST_SECONDS);
                self.banked = (self.banked + self.left - self.rate).min(most);
            }
            self.left = self.rate;
        } else if self.banked > 0.0 && self.left < self.rate {
            let lent = ((burst_rate - self.rate) * seconds).min(self.banked).min(self.rate - self.left);
            self.banked -= lent;
            self.left += lent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_spent_budget_says_honestly_when_to_come_back() {
        let start = Instant::now();
        let budget = Budget::new(400.0, start);
        assert_eq!(budget.admit(start), Ok(()));
        budget.pay(600.0, start);
        let wait = budget.admit(start).unwrap_err();
        assert_eq!(wait.as_millis(), 502);
        assert!(budget.admit(after(start, 400)).is_err());
        assert_eq!(budget.admit(start + wait), Ok(()));
    }

    #[test]
    fn a_steady_rate_within_the_budget_is_never_refused_and_twice_as_much_is_refused_half_the_time() {
        for (units, admitted_share) in [(4.0, 1.0), (8.0, 0.5)] {
            let start = Instant::now();
            let budget = Budget::new(400.0, start);
            budget.pay(400.0, start);
            let mut admitted = 0;
            for step in 1..=2000 {
                let now = after(start, step * 10);
                if budget.admit(now).is_ok() {
                    admitted += 1;
                    budget.pay(units, now);
                }
            }
            assert!((f64::from(admitted) / 2000.0 - admitted_share).abs() < 0.02, "{units}: {admitted}");
        }
    }

    #[test]
    fn idle_time_is_banked_and_spent_at_the_burst_rate_only() {
        let start = Instant::now();
        let budget = Budget::new(400.0, start);
        let later = start + Duration::from_secs(100);
        let mut spent = 0.0;
        for step in 0..100 {
            let now = later + Duration::from_millis(step * 10);
            if budget.admit(now).is_ok() {
                budget.pay(50.0, now);
                spent += 50.0;
            }
        }
        assert!((3000.0..3600.0).contains(&spent), "{spent}");
    }

    #[test]
    fn what_is_spare_leaves_half_for_others() {
        let start = Instant::now();
        let budget = Budget::new(400.0, start);
        assert_eq!(budget.spare(start), 200.0);
        budget.pay(150.0, start);
        assert_eq!(budget.spare(start), 50.0);
        budget.pay(600.0, start);
        assert_eq!(budget.spare(start), 0.0);
        assert_eq!(budget.spare(after(start, 10_000)), 200.0);
    }

    #[test]
    fn no_rate_is_no_limit() {
        let start = Instant::now();
        let budget = Budget::new(0.0, start);
        budget.pay(1e9, start);
        assert_eq!(budget.admit(start), Ok(()));
        assert_eq!(budget.spare(start), f64::INFINITY);
    }
}
