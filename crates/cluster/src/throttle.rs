//! The request-unit budget of one physical partition, or of a database that its containers share.
//!
//! A bucket fills with the provisioned rate and holds one second of it.
//! A request is admitted while anything is left and pays when its cost is known, so the bucket may go into debt;
//! the next request then waits until the debt is paid, and is told exactly how long that takes.
//! A partition below 3,000 RU/s banks what it leaves idle, up to five minutes' worth, and may spend it at that rate.
//!
//! Requests of low priority find a quarter less in the bucket: when the budget is short they are refused first, and
//! when they are alone they still get all of it, because what they leave stays full and everything that flows in is
//! theirs. Throughput buckets are small buckets beside the large one. A request that names one must find
//! something in both.
//!
//! A refusal says whether more throughput would help. It would not if one logical partition alone uses what a
//! physical partition can give at most. Which one that is, is found by a vote in which every unit counts: a key
//! with more than half of all units always wins it, and it takes two words to remember.

use std::time::{Duration, Instant};

use orrery_store::limits::{BURST_RATE_MAX, BURST_SECONDS, THROUGHPUT_BUCKETS};
use parking_lot::Mutex;

use crate::throughput::{Claim, KeyMark, Priority};

const SECOND: Duration = Duration::from_secs(1);
/// The part of a full bucket that low priority leaves to others.
const KEPT_FROM_LOW: f64 = 0.25;
/// A logical partition is hot when it alone uses this part of what a physical partition can give.
const HOT_PART: f64 = 0.9;

pub struct Budget {
    bucket: Mutex<Bucket>,
}

/// What a partition's budget is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// RU/s; zero means unlimited.
    pub rate: f64,
    /// The RU/s that no offer can raise a partition above; zero where that means nothing.
    pub ceiling: f64,
    pub default_priority: Priority,
    /// The throughput bucket of requests that name none.
    pub default_bucket: Option<u8>,
    /// What each throughput bucket may use, as a part of the rate; zero is no limit.
    pub bucket_parts: [f64; THROUGHPUT_BUCKETS],
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleCause {
    /// The budget is spent.
    Rate,
    /// The throughput bucket that the request belongs to is spent.
    Bucket,
    /// One logical partition uses what a physical partition can give, so more throughput would not help.
    HotKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub wait: Duration,
    pub cause: ThrottleCause,
}

/// What was spent since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct BudgetUsage {
    /// The most RU that any second used.
    pub highest: f64,
    pub total: f64,
    /// Requests refused, and those among them that were refused although others were not.
    pub throttled: u64,
    pub throttled_low: u64,
    pub throttled_bucket: u64,
    pub throttled_hot: u64,
}

struct Bucket {
    terms: Terms,
    left: f64,
    banked: f64,
    filled: Instant,
    /// What the running second has used, and the one before it.
    second: Instant,
    used: f64,
    used_before: f64,
    /// The most that any second used since somebody last asked.
    peak: f64,
    usage: BudgetUsage,
    vote: Vote,
    buckets: [SmallBucket; THROUGHPUT_BUCKETS],
}

#[derive(Clone, Copy)]
struct SmallBucket {
    left: f64,
    filled: Instant,
}

/// Which logical partition uses most.
#[derive(Clone, Copy, Default)]
struct Vote {
    key: KeyMark,
    lead: f64,
    /// What the key has used of the running second.
    used: f64,
    /// Who led the second before it, and with how much.
    before: (KeyMark, f64),
}

impl Budget {
    pub fn new(rate: f64, now: Instant) -> Budget {
        let small = SmallBucket { left: 0.0, filled: now };
        Budget {
            bucket: Mutex::new(Bucket {
                terms: Terms { rate, ..Terms::default() },
                left: rate,
                banked: 0.0,
                filled: now,
                second: now,
                used: 0.0,
                used_before: 0.0,
                peak: 0.0,
                usage: BudgetUsage::default(),
                vote: Vote::default(),
                buckets: [small; THROUGHPUT_BUCKETS],
            }),
        }
    }

    /// A changed rate takes effect at once; debts stay.
    pub fn set_rate(&self, rate: f64, now: Instant) {
        let mut bucket = self.bucket.lock();
        let terms = Terms { rate, ..bucket.terms };
        bucket.set(terms, now);
    }

    pub fn set(&self, terms: Terms, now: Instant) {
        self.bucket.lock().set(terms, now);
    }

    /// How long to wait before asking again, if the budget is spent.
    pub fn admit(&self, claim: Claim, now: Instant) -> Result<(), Throttled> {
        let mut bucket = self.bucket.lock();
        if bucket.terms.rate == 0.0 {
            return Ok(());
        }
        bucket.fill(now);
        let low = claim.lane.priority.unwrap_or(bucket.terms.default_priority) == Priority::Low;
        let floor = if low { bucket.terms.rate * KEPT_FROM_LOW } else { 0.0 };
        if bucket.left > floor {
            return bucket.admit_to_small(claim, now);
        }
        bucket.usage.throttled += 1;
        let is_spent = bucket.left <= 0.0;
        bucket.usage.throttled_low += u64::from(!is_spent);
        let cause = match is_spent && bucket.is_hot(claim.key, now) {
            true => ThrottleCause::HotKey,
            false => ThrottleCause::Rate,
        };
        bucket.usage.throttled_hot += u64::from(cause == ThrottleCause::HotKey);
        Err(Throttled { wait: wait_for(floor + 1.0 - bucket.left, bucket.terms.rate), cause })
    }

    pub fn pay(&self, claim: Claim, units: f64, now: Instant) {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        bucket.left -= units;
        bucket.turn_second(now);
        bucket.used += units;
        bucket.usage.total += units;
        bucket.usage.highest = bucket.usage.highest.max(bucket.used);
        bucket.peak = bucket.peak.max(bucket.used);
        if claim.key.is_one() {
            bucket.vote.count(claim.key, units);
        }
        if let Some(place) = bucket.terms.small_bucket(claim) {
            bucket.buckets[place].left -= units;
        }
    }

    /// What can be spent so that others still find half of a second's worth.
    pub fn spare(&self, now: Instant) -> f64 {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        let rate = bucket.terms.rate;
        if rate == 0.0 { f64::INFINITY } else { (bucket.left - rate / 2.0).max(0.0) }
    }

    /// What may be spent before the budget is in debt, what is banked included; no bound when there is no rate.
    pub fn available(&self, now: Instant) -> f64 {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        if bucket.terms.rate == 0.0 { f64::INFINITY } else { bucket.left.max(0.0) + bucket.banked }
    }

    /// RU/s; zero means unlimited.
    pub fn rate(&self) -> f64 {
        self.bucket.lock().terms.rate
    }

    pub fn usage(&self) -> BudgetUsage {
        self.bucket.lock().usage
    }

    /// RU that were used in the last second.
    pub fn current(&self, now: Instant) -> f64 {
        let bucket = self.bucket.lock();
        match now.saturating_duration_since(bucket.second) {
            age if age < SECOND => bucket.used.max(bucket.used_before),
            age if age < 2 * SECOND => bucket.used,
            _ => 0.0,
        }
    }

    /// The most RU that any second used since this was last asked.
    pub fn take_peak(&self) -> f64 {
        std::mem::take(&mut self.bucket.lock().peak)
    }
}

impl Terms {
    /// The place of the small bucket that a request has to pass, if that is limited.
    fn small_bucket(&self, claim: Claim) -> Option<usize> {
        let place = usize::from(claim.lane.bucket.or(self.default_bucket)?).checked_sub(1)?;
        (self.bucket_parts.get(place).copied()? > 0.0).then_some(place)
    }
}

impl Bucket {
    fn set(&mut self, terms: Terms, now: Instant) {
        self.fill(now);
        let was_unlimited = self.terms.rate == 0.0;
        self.left = if was_unlimited { terms.rate } else { self.left.min(terms.rate) };
        for (place, small) in self.buckets.iter_mut().enumerate() {
            let holds = terms.rate * terms.bucket_parts[place];
            let was_limited = self.terms.bucket_parts[place] > 0.0;
            small.left = if was_limited { small.left.min(holds) } else { holds };
            small.filled = now;
        }
        self.terms = terms;
    }

    fn fill(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        let (rate, burst_rate) = (self.terms.rate, f64::from(BURST_RATE_MAX));
        self.left += rate * seconds;
        if self.left > rate {
            if rate < burst_rate {
                let most = rate * f64::from(BURST_SECONDS);
                self.banked = (self.banked + self.left - rate).min(most);
            }
            self.left = rate;
        } else if rate < burst_rate && self.banked > 0.0 && self.left < rate {
            let lent = ((burst_rate - rate) * seconds).min(self.banked).min(rate - self.left);
            self.banked -= lent;
            self.left += lent;
        }
    }

    fn admit_to_small(&mut self, claim: Claim, now: Instant) -> Result<(), Throttled> {
        let Some(place) = self.terms.small_bucket(claim) else { return Ok(()) };
        let rate = self.terms.rate * self.terms.bucket_parts[place];
        let small = &mut self.buckets[place];
        let seconds = now.saturating_duration_since(small.filled).as_secs_f64();
        small.filled = now;
        small.left = (small.left + rate * seconds).min(rate);
        if small.left > 0.0 {
            return Ok(());
        }
        let wait = wait_for(1.0 - small.left, rate);
        self.usage.throttled += 1;
        self.usage.throttled_bucket += 1;
        Err(Throttled { wait, cause: ThrottleCause::Bucket })
    }

    fn turn_second(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.second);
        if age < SECOND {
            return;
        }
        let is_next = age < 2 * SECOND;
        self.used_before = if is_next { self.used } else { 0.0 };
        self.vote.turn(is_next);
        self.second = now;
        self.used = 0.0;
    }

    fn is_hot(&mut self, key: KeyMark, now: Instant) -> bool {
        if !key.is_one() || self.terms.ceiling == 0.0 {
            return false;
        }
        self.turn_second(now);
        self.vote.used_by(key) >= self.terms.ceiling * HOT_PART
    }
}

impl Vote {
    fn count(&mut self, key: KeyMark, units: f64) {
        if self.key == key {
            self.lead += units;
            self.used += units;
            return;
        }
        self.lead -= units;
        if self.lead < 0.0 {
            *self = Vote { key, lead: -self.lead, used: units, before: self.before };
        }
    }

    /// Half of the lead lasts, so that whoever comes first in a second does not unseat the key that uses most.
    fn turn(&mut self, is_next: bool) {
        self.before = if is_next { (self.key, self.used) } else { Default::default() };
        self.lead /= 2.0;
        self.used = 0.0;
    }

    fn used_by(&self, key: KeyMark) -> f64 {
        let now = if self.key == key { self.used } else { 0.0 };
        let before = if self.before.0 == key { self.before.1 } else { 0.0 };
        now.max(before)
    }
}

fn wait_for(units: f64, rate: f64) -> Duration {
    Duration::from_secs_f64((units / rate).clamp(0.001, 60.0))
}

#[cfg(test)]
mod tests;
