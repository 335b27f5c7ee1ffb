//! Crowds of clients that behave as the SDKs do: they come back when they were told to, nine times, thirty seconds in all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use orrery_store::limits::WAITS_PROMISED_MAX;

use super::*;

const RETRIES: u32 = 9;
const PATIENCE_MS: u64 = 30_000;

/// A crowd before one budget. Everything that happens follows from it and its seed.
#[derive(Clone, Copy)]
struct Crowd {
    terms: Terms,
    /// Clients that have one request under way each, and what all of them ask together.
    clients: u64,
    requests: u64,
    /// The least and the most that a request costs.
    cost: (u64, u64),
    /// How late an answer or a timer may be.
    jitter_ms: u64,
    lane: fn(u64) -> Lane,
    /// Whether requests can be told apart.
    alike: bool,
    /// Every so many requests belong to a client that does not come back when it is refused.
    deserters: u64,
    seed: u64,
}

/// What became of it.
#[derive(Debug, Default)]
struct Outcome {
    done: u64,
    lost: u64,
    deserted: u64,
    retries: u32,
    charge: f64,
    seconds: f64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ask { client: u64, request: u64, tries: u32, waited_ms: u64 },
    Pay { client: u64, request: u64, units: u64 },
}

impl Crowd {
    fn at(rate: f64, clients: u64, requests: u64) -> Crowd {
        Crowd {
            terms: Terms { rate, ..Terms::default() },
            clients,
            requests,
            cost: (5, 6),
            jitter_ms: 8,
            lane: |_| Lane::default(),
            alike: false,
            deserters: u64::MAX,
            seed: 7,
        }
    }

    fn run(self) -> Outcome {
        let start = Instant::now();
        self.run_on(&drained(self.terms, start), start)
    }

    /// Microseconds are the clock; chance is a shift register.
    fn run_on(mut self, budget: &Budget, start: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        let mut next = self.clients.min(self.requests);
        let mut events: BinaryHeap<Reverse<(u64, Event)>> = (0..next)
            .map(|n| Reverse((n * 20, Event::Ask { client: n, request: n, tries: 0, waited_ms: 0 })))
            .collect();
        while let Some(Reverse((at, event))) = events.pop() {
            let now = start + Duration::from_micros(at);
            outcome.seconds = at as f64 / 1e6;
            let (client, goes_on) = match event {
                Event::Pay { client, request, units } => {
                    budget.pay(self.claim(request), units as f64, now);
                    outcome.done += 1;
                    outcome.charge += units as f64;
                    (client, true)
                }
                Event::Ask { client, request, tries, waited_ms } => {
                    let who = if self.alike { Who(1) } else { Who(request) };
                    match budget.admit(self.claim(request), || who, now) {
                        Ok(()) => {
                            let units = self.between(self.cost.0, self.cost.1);
                            let paid = at + self.between(500, 1_000 * self.jitter_ms);
                            events.push(Reverse((paid, Event::Pay { client, request, units })));
                            (client, false)
                        }
                        Err(_) if request % self.deserters == self.deserters - 1 => {
                            outcome.deserted += 1;
                            (client, true)
                        }
                        Err(refused) => {
                            outcome.retries = outcome.retries.max(tries + 1);
                            let wait = refused.wait_ms();
                            let gives_up = tries == RETRIES || waited_ms + wait > PATIENCE_MS;
                            if !gives_up {
                                let again = at + wait * 1_000 + self.between(0, 1_000 * self.jitter_ms);
                                let (tries, waited_ms) = (tries + 1, waited_ms + wait);
                                events
                                    .push(Reverse((again, Event::Ask { client, request, tries, waited_ms })));
                            }
                            outcome.lost += u64::from(gives_up);
                            (client, gives_up)
                        }
                    }
                }
            };
            if goes_on && next < self.requests {
                let at = at + self.between(200, 2_000);
                events.push(Reverse((at, Event::Ask { client, request: next, tries: 0, waited_ms: 0 })));
                next += 1;
            }
        }
        outcome
    }

    fn claim(&self, request: u64) -> Claim {
        Claim { lane: (self.lane)(request), ..any() }
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        least + self.seed % (most - least + 1)
    }

    /// All come through, and as fast as the budget allows.
    fn must_come_through(self, name: &str) -> Outcome {
        let outcome = self.run();
        let ideal = outcome.charge / self.terms.rate;
        assert_eq!(
            (outcome.lost, outcome.done),
            (0, self.requests),
            "{name}: {outcome:?}, ideally {ideal:.1} s"
        );
        // Few clients are slow by themselves: one request takes half of the jitter to be served, and a pause.
        let each = self.jitter_ms as f64 / 2_000.0 + 0.001;
        let alone = self.requests as f64 / self.clients as f64 * each;
        let slack = 0.3 + self.jitter_ms as f64 / 100.0;
        assert!(
            outcome.seconds < ideal.max(alone) * 1.15 + slack,
            "{name}: {outcome:?}, ideally {ideal:.1} s"
        );
        outcome
    }
}

#[test]
fn six_hundred_writes_with_fifty_under_way_all_come_through_at_400() {
    for clients in [1, 5, 50, 200, 600] {
        for jitter_ms in [1, 8, 40] {
            let crowd = Crowd { jitter_ms, ..Crowd::at(400.0, clients, 600) };
            let outcome = crowd.must_come_through(&format!("{clients} clients, {jitter_ms} ms"));
            assert!(outcome.retries <= 3, "{clients} clients, {jitter_ms} ms: {outcome:?}");
        }
    }
}

/// Any burst that takes less than the thirty seconds which clients are ready to wait.
#[test]
fn every_burst_that_can_be_served_in_time_is_served() {
    for rate in [100.0, 400.0, 1_000.0, 5_000.0, 10_000.0] {
        for cost in [(1, 1), (1, 20), (10, 11), (60, 400)] {
            for share in [0.2, 0.9] {
                let mean = (cost.0 + cost.1) as f64 / 2.0;
                let requests = ((rate * 30.0 * share / mean) as u64).clamp(3, 8_000);
                for clients in [20, 300, requests] {
                    let crowd = Crowd { cost, ..Crowd::at(rate, clients, requests) };
                    crowd.must_come_through(&format!("{rate} RU/s, {cost:?} RU, {requests} by {clients}"));
                }
            }
        }
    }
}

/// Requests that look alike are taken for one client that comes too early, once.
#[test]
fn clients_that_ask_for_the_same_come_through_too() {
    for clients in [2, 50, 300] {
        let crowd = Crowd { alike: true, ..Crowd::at(400.0, clients, 900) };
        crowd.must_come_through(&format!("{clients} alike"));
    }
}

#[test]
fn what_is_banked_serves_a_burst_at_its_rate() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 400.0, ..Terms::default() }, start);
    let later = start + Duration::from_secs(20);
    let outcome = Crowd::at(400.0, 50, 1_500).run_on(&budget, later);
    // 8,000 RU were banked, which are lent at 2,600 RU/s.
    assert_eq!((outcome.lost, outcome.done), (0, 1_500), "{outcome:?}");
    assert!(outcome.seconds < 4.5, "{outcome:?}");
}

#[test]
fn who_does_not_come_back_delays_others_by_one_request() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 400.0, ..Terms::default() }, start);
    budget.pay(any(), 10.0, start);
    let wait = |who: u64, now| budget.admit(any(), || Who(who), now).map_err(|refused| refused.wait_ms());
    let usual = budget.bucket.lock().usual;
    let first = wait(1, start).unwrap_err();
    for deserter in 0..20 {
        assert!(wait(100 + deserter, start).is_err());
    }
    let behind = wait(2, start).unwrap_err();
    let delay = f64::from(u32::try_from(behind - first).expect("a time"));
    assert!((delay - 21.0 * usual / 0.4).abs() < 10.0, "{first} ms, {behind} ms, {usual} RU each");
    // When the time has passed, nobody waits for them any more.
    let later = after(start, behind + 300);
    assert_eq!(wait(3, later), Ok(()));
    assert_eq!(wait(2, later), Ok(()), "who is late is let in");
}

#[test]
fn a_crowd_with_deserters_comes_through_in_time() {
    for deserters in [2, 3, 10] {
        let crowd = Crowd { deserters, ..Crowd::at(400.0, 60, 1_000) };
        let outcome = crowd.run();
        assert_eq!((outcome.lost, outcome.done + outcome.deserted), (0, 1_000), "{outcome:?}");
        // Each of them has delayed the others by one request.
        let ideal = (outcome.charge + 6.0 * outcome.deserted as f64) / 400.0;
        assert!(outcome.seconds < 1.1 * ideal + 0.4, "{outcome:?}, ideally {ideal:.1} s");
    }
}

#[test]
fn who_comes_too_early_is_told_the_rest_and_sits_down_once() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 400.0, ..Terms::default() }, start);
    budget.pay(any(), 200.0, start);
    let wait = |who: u64, now| budget.admit(any(), || Who(who), now).map_err(|refused| refused.wait_ms());
    let told = wait(1, start).unwrap_err();
    let promised = budget.bucket.lock().line.waited_for();
    for ms in [10, 50, 100, 300] {
        assert_eq!(wait(1, after(start, ms)), Err(told - ms));
    }
    assert_eq!(budget.bucket.lock().line.waited_for(), promised);
    let behind = wait(2, after(start, 300)).unwrap_err();
    assert_eq!(wait(1, after(start, told)), Ok(()));
    assert!(behind > told - 300);
}

/// The wait is honest whatever is asked for next: a seat is not waited for when its time has come.
#[test]
fn after_the_wait_there_is_budget_for_another_request_too() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 400.0, ..Terms::default() }, start);
    budget.pay(any(), 1_200.0, start);
    let told = budget.admit(any(), || Who(1), start).unwrap_err().wait_ms();
    assert_eq!(budget.admit(any(), || Who(3), after(start, told + 1)), Ok(()));
    budget.pay(any(), 100.0, after(start, told + 2));
    assert_eq!(budget.admit(any(), || Who(1), after(start, told + 3)), Ok(()), "and for who was told");
}

/// A client that asks every millisecond, whatever it is told, takes a few seats and not one each time.
#[test]
fn hammering_does_not_lengthen_the_line() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 400.0, ..Terms::default() }, start);
    budget.pay(any(), 40.0, start);
    for ms in 0..2_000 {
        if budget.admit(any(), || Who(9), after(start, ms)).is_ok() {
            budget.pay(any(), 8.0, after(start, ms));
        }
    }
    let refused = budget.admit(any(), || Who(1), after(start, 2_000)).map_err(|refused| refused.wait_ms());
    assert!(refused.is_ok() || refused.is_err_and(|ms| ms < 400), "{refused:?}");
}

#[test]
fn low_priority_waits_behind_high_and_alone_comes_through() {
    let low = |_| Lane { priority: Some(Priority::Low), bucket: None };
    Crowd { lane: low, ..Crowd::at(400.0, 50, 600) }.must_come_through("low alone");
    // Many of low priority were told to wait; high priority does not notice.
    let start = Instant::now();
    let terms = Terms { rate: 400.0, ..Terms::default() };
    let budget = drained(terms, start);
    budget.pay(any(), 10.0, start);
    for who in 0..500 {
        assert!(budget.admit(super::low(), || Who(1_000 + who), start).is_err());
    }
    let refused = budget.admit(any(), || Who(1), start).unwrap_err();
    assert_eq!(refused.wait_ms(), 28);
}

#[test]
fn a_throughput_bucket_has_a_line_of_its_own() {
    let mut terms = Terms { rate: 1_000.0, ..Terms::default() };
    terms.bucket_parts[0] = 0.4;
    let crowd = Crowd {
        terms,
        lane: |request| Lane { priority: None, bucket: (request % 2 == 0).then_some(1) },
        ..Crowd::at(1_000.0, 80, 2_000)
    };
    let outcome = crowd.run();
    assert_eq!((outcome.lost, outcome.done), (0, 2_000), "{outcome:?}");
    // Half of the charge has to pass at 400 RU/s, the rest passes beside it.
    let ideal = outcome.charge / 2.0 / 400.0;
    assert!(outcome.seconds < 1.15 * ideal, "{outcome:?}, ideally {ideal:.1} s");
}

#[test]
fn a_burst_that_no_patience_is_enough_for_serves_what_it_can() {
    let outcome = Crowd::at(100.0, 2_000, 2_000).run();
    assert!(outcome.lost > 0, "{outcome:?}");
    // Those who came first have their thirty seconds; those who came too late were told so at once.
    assert!(outcome.charge > 100.0 * 27.0, "{outcome:?}");
    assert!(outcome.seconds < 40.0, "{outcome:?}");
}

#[test]
fn memory_for_those_who_wait_is_bounded() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 10_000.0, ..Terms::default() }, start);
    budget.pay(any(), 1.0, start);
    for who in 0..2 * WAITS_PROMISED_MAX as u64 {
        let _ = budget.admit(any(), || Who(who), start);
    }
    let much_later = start + Duration::from_secs(120);
    assert!(budget.admit(any(), || Who(1), much_later).is_ok());
    assert_eq!(budget.bucket.lock().line.waited_for(), 0);
}
