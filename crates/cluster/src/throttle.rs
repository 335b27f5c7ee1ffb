//! The request-unit budget of one physical partition, or of a database that its containers share.
//!
//! A bucket fills with the provisioned rate and holds one second of it.
//! A request is admitted while anything is left and pays when its cost is known, so the bucket may go into debt;
//! the next request then waits until the debt is paid, and is told exactly how long that takes. Who is told to wait
//! counts for those who are told later, see [`line`].
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

mod line;

use std::time::{Duration, Instant};

use orrery_store::limits::{BURST_RATE_MAX, BURST_SECONDS, THROUGHPUT_BUCKETS};
use parking_lot::Mutex;

use crate::throughput::{Claim, KeyMark, Priority};
use line::{Asking, Line, Shut};

pub(crate) use line::Who;

const SECOND: Duration = Duration::from_secs(1);
/// The part of a full bucket that low priority leaves to others.
const KEPT_FROM_LOW: f64 = 0.25;
/// A logical partition is hot when it alone uses this part of what a physical partition can give.
const HOT_PART: f64 = 0.9;
/// Seconds of debt at which even those have to wait who come at the time that they were told.
const DEBT_SECONDS: f64 = 1.0;
/// How many requests the usual cost of one is learned from.
const COSTS_LEARNED: f64 = 32.0;
/// A request that costs more than so many usual ones counts as so many.
const COST_BELIEVED: f64 = 8.0;
/// The longest wait that is told.
const WAIT_TOLD_MAX: f64 = 60.0;

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

impl Throttled {
    /// As clients are told: what is left of a millisecond counts.
    pub fn wait_ms(&self) -> u64 {
        self.wait.as_micros().div_ceil(1_000).max(1) as u64
    }
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
    /// The most that any second used since the last look.
    peak: f64,
    usage: BudgetUsage,
    vote: Vote,
    /// What a request usually costs, and from how many that is known.
    usual: f64,
    learned: f64,
    line: Line,
    buckets: [SmallBucket; THROUGHPUT_BUCKETS],
}

struct SmallBucket {
    left: f64,
    filled: Instant,
    line: Line,
}

/// How a request stands before the buckets.
#[derive(Clone, Copy)]
struct Turn {
    who: Who,
    is_low: bool,
    floor: f64,
    /// The place of its throughput bucket, if that is limited.
    small: Option<usize>,
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
        let small = || SmallBucket { left: 0.0, filled: now, line: Line::default() };
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
                usual: 0.0,
                learned: 0.0,
                line: Line::default(),
                buckets: std::array::from_fn(|_| small()),
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

    /// How long to wait before asking again, if the budget is spent. Only then it matters who asks.
    pub fn admit(&self, claim: Claim, who: impl FnOnce() -> Who, now: Instant) -> Result<(), Throttled> {
        let mut bucket = self.bucket.lock();
        if bucket.terms.rate == 0.0 {
            return Ok(());
        }
        bucket.fill(now);
        let is_low = claim.lane.priority.unwrap_or(bucket.terms.default_priority) == Priority::Low;
        let floor = if is_low { bucket.terms.rate * KEPT_FROM_LOW } else { 0.0 };
        let small = bucket.terms.small_bucket(claim);
        if bucket.left > floor && bucket.line.is_empty() && small.is_none() {
            return Ok(());
        }
        bucket.admit_in_turn(claim, Turn { who: who(), is_low, floor, small }, now)
    }

    /// Keeps the place of a request that has to wait for another budget.
    pub fn keep_place(&self, who: Who, until: Instant) {
        let mut bucket = self.bucket.lock();
        if !bucket.line.is_empty() {
            bucket.line.keep_until(who, until);
        }
        for small in bucket.buckets.iter_mut().filter(|small| !small.line.is_empty()) {
            small.line.keep_until(who, until);
        }
    }

    /// What a request has cost.
    pub fn pay(&self, claim: Claim, units: f64, now: Instant) {
        let mut bucket = self.bucket.lock();
        bucket.learn(units);
        bucket.spend(claim, units, now);
    }

    /// What work beside the requests has cost.
    pub fn pay_aside(&self, units: f64, now: Instant) {
        self.bucket.lock().spend(Claim::default(), units, now);
    }

    /// What can be spent so that others still find half of a second's worth. A budget that never has as much as `step`
    /// to spare gives of what it has banked: nobody has used that either, and the bank makes up for it within milliseconds.
    pub fn spare(&self, step: f64, now: Instant) -> f64 {
        let mut bucket = self.bucket.lock();
        bucket.fill(now);
        let rate = bucket.terms.rate;
        bucket.line.expire(now);
        let free = bucket.left - bucket.line.waited_for() as f64 * bucket.usual - rate / 2.0;
        let banked = if rate / 2.0 < step { bucket.banked } else { 0.0 };
        if rate == 0.0 { f64::INFINITY } else { (free + banked).max(0.0) }
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
            if terms.rate == 0.0 || holds == 0.0 {
                small.line.clear();
            }
        }
        if terms.rate == 0.0 {
            self.line.clear();
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

    /// Asks the bucket and, if the request belongs to one, the throughput bucket: it must pass both.
    fn admit_in_turn(&mut self, claim: Claim, turn: Turn, now: Instant) -> Result<(), Throttled> {
        let asking = self.asking(turn);
        let main = self.line.ask(asking, now);
        let small = turn.small.map(|place| (place, self.ask_small(place, turn, now)));
        let shut_small = small.and_then(|(place, answer)| answer.err().map(|shut| (place, shut)));
        if main.is_ok() && shut_small.is_none() {
            self.line.take(turn.who, now);
            if let Some(place) = turn.small {
                self.buckets[place].line.take(turn.who, now);
            }
            return Ok(());
        }
        let wait = main.err().map_or(Duration::ZERO, |shut| self.wait(shut, now));
        let wait_small = shut_small.map_or(Duration::ZERO, |(place, shut)| self.wait_small(place, shut, now));
        let wait = wait.max(wait_small);
        let due = now + wait;
        // Who passes the large bucket and not the small one asks the large one anew: others need not wait for it.
        match main {
            Err(shut) => self.line.seat(asking, shut, due, now),
            Ok(()) => self.line.take(turn.who, now),
        }
        if let Some((place, answer)) = small {
            let asking = self.asking_small(place, turn);
            let line = &mut self.buckets[place].line;
            match answer {
                Err(shut) => line.seat(asking, shut, due, now),
                Ok(()) => line.keep_until(turn.who, due),
            }
        }
        self.usage.throttled += 1;
        let cause = match main {
            Err(_) => self.cause(claim, turn, now),
            Ok(()) => {
                self.usage.throttled_bucket += 1;
                ThrottleCause::Bucket
            }
        };
        Err(Throttled { wait, cause })
    }

    fn cause(&mut self, claim: Claim, turn: Turn, now: Instant) -> ThrottleCause {
        let is_spent = self.left <= self.line.before(false) as f64 * self.usual || !turn.is_low;
        self.usage.throttled_low += u64::from(!is_spent);
        let is_hot = is_spent && self.is_hot(claim.key, now);
        self.usage.throttled_hot += u64::from(is_hot);
        if is_hot { ThrottleCause::HotKey } else { ThrottleCause::Rate }
    }

    fn asking(&self, turn: Turn) -> Asking {
        let debt = self.terms.rate * DEBT_SECONDS;
        // What high priority has left of its reserve is no promise to low priority.
        let least = if turn.is_low { turn.floor / 2.0 } else { -debt };
        Asking {
            who: turn.who,
            is_low: turn.is_low,
            left: self.left,
            floor: turn.floor,
            least,
            usual: self.usual,
        }
    }

    fn asking_small(&self, place: usize, turn: Turn) -> Asking {
        let debt = self.rate_of(place) * DEBT_SECONDS;
        let left = self.buckets[place].left;
        Asking { who: turn.who, is_low: false, left, floor: 0.0, least: -debt, usual: self.usual }
    }

    fn ask_small(&mut self, place: usize, turn: Turn, now: Instant) -> Result<(), Shut> {
        let rate = self.rate_of(place);
        let small = &mut self.buckets[place];
        let seconds = now.saturating_duration_since(small.filled).as_secs_f64();
        small.filled = now;
        small.left = (small.left + rate * seconds).min(rate);
        let asking = self.asking_small(place, turn);
        self.buckets[place].line.ask(asking, now)
    }

    fn rate_of(&self, place: usize) -> f64 {
        self.terms.rate * self.terms.bucket_parts[place]
    }

    fn wait(&self, shut: Shut, now: Instant) -> Duration {
        shut.wait(now, |units| self.seconds_for(units))
    }

    fn wait_small(&self, place: usize, shut: Shut, now: Instant) -> Duration {
        shut.wait(now, |units| units / self.rate_of(place))
    }

    /// How long it takes until so much has flowed in, with what the bank lends.
    fn seconds_for(&self, units: f64) -> f64 {
        let (rate, burst_rate) = (self.terms.rate, f64::from(BURST_RATE_MAX));
        if rate >= burst_rate || self.banked <= 0.0 {
            return units / rate;
        }
        let while_it_lasts = self.banked / (burst_rate - rate) * burst_rate;
        if units <= while_it_lasts { units / burst_rate } else { (units - self.banked) / rate }
    }

    fn learn(&mut self, units: f64) {
        if units > 0.0 {
            self.learned = (self.learned + 1.0).min(COSTS_LEARNED);
            // One that costs very much says little about the next.
            let most = if self.learned > 1.0 { self.usual * COST_BELIEVED } else { units };
            self.usual += (units.min(most) - self.usual) / self.learned;
        }
    }

    fn spend(&mut self, claim: Claim, units: f64, now: Instant) {
        self.fill(now);
        self.left -= units;
        self.turn_second(now);
        self.used += units;
        self.usage.total += units;
        self.usage.highest = self.usage.highest.max(self.used);
        self.peak = self.peak.max(self.used);
        if claim.key.is_one() {
            self.vote.count(claim.key, units);
        }
        if let Some(place) = self.terms.small_bucket(claim) {
            self.buckets[place].left -= units;
        }
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

    /// Half of the lead lasts, so that the key that comes first in a second does not unseat the key that uses most.
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

impl Shut {
    fn wait(self, now: Instant, seconds_for: impl Fn(f64) -> f64) -> Duration {
        match self {
            Shut::Early(due) => due.saturating_duration_since(now).max(Duration::from_millis(1)),
            Shut::New(units) | Shut::PutOff(units) => {
                Duration::from_secs_f64(seconds_for(units).clamp(0.001, WAIT_TOLD_MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests;
