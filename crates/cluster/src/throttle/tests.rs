mod crowds;

use std::time::{Duration, Instant};

use orrery_doc::Epk;

use super::*;
use crate::throughput::Lane;

fn after(start: Instant, ms: u64) -> Instant {
    start + Duration::from_millis(ms)
}

/// Asks as a client that is known by its claim.
fn ask(budget: &Budget, claim: Claim, now: Instant) -> Result<(), Throttled> {
    budget.admit(claim, || Who::of(format!("{claim:?}")), now)
}

fn any() -> Claim {
    Claim::default()
}

fn low() -> Claim {
    Claim { lane: Lane { priority: Some(Priority::Low), bucket: None }, ..any() }
}

fn in_bucket(bucket: u8) -> Claim {
    Claim { lane: Lane { priority: None, bucket: Some(bucket) }, ..any() }
}

fn of_key(name: u8) -> Claim {
    Claim { key: KeyMark::of(&Epk::from_bytes(&[name; 16])), ..any() }
}

/// Asks every millisecond for a time, alternating between claims, and tells what each was granted in RU.
fn spend(budget: &Budget, start: Instant, ms: u64, units: f64, claims: &[Claim]) -> Vec<f64> {
    let mut granted = vec![0.0; claims.len()];
    for step in 1..=ms {
        let now = after(start, step);
        for (place, claim) in claims.iter().enumerate() {
            if ask(budget, *claim, now).is_ok() {
                budget.pay(*claim, units, now);
                granted[place] += units;
            }
        }
    }
    granted
}

/// Nothing banked, nothing left.
fn drained(terms: Terms, start: Instant) -> Budget {
    let budget = Budget::new(terms.rate, start);
    budget.set(terms, start);
    budget.pay_aside(terms.rate, start);
    budget
}

#[test]
fn a_spent_budget_says_honestly_when_to_come_back() {
    let start = Instant::now();
    let budget = Budget::new(400.0, start);
    assert_eq!(ask(&budget, any(), start), Ok(()));
    budget.pay(any(), 600.0, start);
    let refused = ask(&budget, any(), start).unwrap_err();
    assert_eq!((refused.wait.as_millis(), refused.cause), (502, ThrottleCause::Rate));
    assert!(ask(&budget, any(), after(start, 400)).is_err());
    assert_eq!(ask(&budget, any(), start + refused.wait), Ok(()));
}

#[test]
fn a_steady_rate_within_the_budget_is_never_refused_and_twice_as_much_is_refused_half_the_time() {
    for (units, admitted_share) in [(4.0, 1.0), (8.0, 0.5)] {
        let start = Instant::now();
        let budget = drained(Terms { rate: 400.0, ..Terms::default() }, start);
        let mut admitted = 0;
        for step in 1..=2000 {
            let now = after(start, step * 10);
            if ask(&budget, any(), now).is_ok() {
                admitted += 1;
                budget.pay(any(), units, now);
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
        if ask(&budget, any(), now).is_ok() {
            budget.pay(any(), 50.0, now);
            spent += 50.0;
        }
    }
    assert!((3000.0..3600.0).contains(&spent), "{spent}");
}

/// A rate above that of bursts lends nothing: it must not take back either, nor fill the bank.
#[test]
fn a_rate_raised_above_bursts_is_given_whole_and_banks_nothing() {
    let start = Instant::now();
    let budget = Budget::new(400.0, start);
    // A hundred seconds put 40,000 into the bank.
    let raised = start + Duration::from_secs(100);
    assert!(ask(&budget, any(), raised).is_ok());
    budget.set_rate(10_000.0, raised);
    budget.pay(any(), 20_000.0, raised + Duration::from_secs(1));
    let given = raised + Duration::from_millis(2_500);
    assert!(ask(&budget, any(), given).is_ok(), "a second and a half give back 15,000");
    budget.set_rate(400.0, given);
    budget.pay(any(), 70_000.0, given);
    let later = given + Duration::from_secs(60);
    assert!(ask(&budget, any(), later).is_err(), "24,000 come in a minute, and 40,000 from the bank");
}

#[test]
fn what_is_spare_leaves_half_for_others() {
    let start = Instant::now();
    let budget = Budget::new(400.0, start);
    assert_eq!(budget.spare(10.0, start), 200.0);
    budget.pay(any(), 150.0, start);
    assert_eq!(budget.spare(10.0, start), 50.0);
    budget.pay(any(), 600.0, start);
    assert_eq!(budget.spare(10.0, start), 0.0);
    assert_eq!(budget.spare(10.0, after(start, 10_000)), 200.0);
}

#[test]
fn a_small_budget_has_what_it_banked_to_spare() {
    let start = Instant::now();
    let budget = Budget::new(10.0, start);
    assert_eq!(budget.spare(10.0, start), 5.0);
    let later = after(start, 1_000);
    assert_eq!(budget.spare(10.0, later), 15.0, "a second's worth was left idle");
    budget.pay_aside(10.0, later);
    assert_eq!(budget.spare(10.0, later), 5.0);
    let soon = after(start, 1_010);
    assert!(ask(&budget, any(), soon).is_ok(), "the bank has made up for it");
    assert!(budget.spare(10.0, soon) < 10.0);
}

#[test]
fn no_rate_is_no_limit() {
    let start = Instant::now();
    let budget = Budget::new(0.0, start);
    budget.set(Terms { bucket_parts: [0.1; THROUGHPUT_BUCKETS], ..Terms::default() }, start);
    budget.pay(in_bucket(1), 1e9, start);
    for claim in [any(), low(), in_bucket(1), of_key(1)] {
        assert_eq!(ask(&budget, claim, start), Ok(()));
    }
    assert_eq!(budget.spare(10.0, start), f64::INFINITY);
}

#[test]
fn low_priority_starves_first_and_alone_gets_everything() {
    let start = Instant::now();
    let terms = Terms { rate: 4000.0, ..Terms::default() };
    let both = spend(&drained(terms, start), start, 10_000, 5.0, &[low(), any()]);
    assert!(
        both[0] < 0.01 * both[1],
        "{both:?}: twice the budget is asked for, so low priority gets nothing"
    );
    assert!((both[1] / 40_000.0 - 1.0).abs() < 0.03, "{both:?}");
    let alone = spend(&drained(terms, start), start, 10_000, 5.0, &[low()]);
    // A quarter of a second's worth stays in the bucket.
    assert!((alone[0] / 39_000.0 - 1.0).abs() < 0.01, "{alone:?}");
    let enough = spend(&drained(terms, start), start, 10_000, 1.9, &[low(), any()]);
    assert!(enough[0] / enough[1] > 0.8, "{enough:?}: within the budget both are served");
}

#[test]
fn a_container_may_make_low_the_default_and_requests_say_otherwise() {
    let start = Instant::now();
    let terms = Terms { rate: 400.0, default_priority: Priority::Low, ..Terms::default() };
    let budget = Budget::new(400.0, start);
    budget.set(terms, start);
    budget.pay(any(), 350.0, start);
    let high = Claim { lane: Lane { priority: Some(Priority::High), bucket: None }, ..any() };
    assert_eq!(ask(&budget, high, start), Ok(()));
    let refused = ask(&budget, any(), start).unwrap_err();
    assert_eq!(refused, Throttled { wait: Duration::from_micros(127_500), cause: ThrottleCause::Rate });
    assert_eq!(budget.usage().throttled_low, 1);
    assert_eq!(ask(&budget, any(), start + refused.wait), Ok(()));
}

#[test]
fn a_throughput_bucket_keeps_to_its_part_and_others_do_not_notice() {
    let start = Instant::now();
    let mut terms = Terms { rate: 4000.0, ..Terms::default() };
    terms.bucket_parts[1] = 0.3;
    let spent = spend(&drained(terms, start), start, 10_000, 3.0, &[in_bucket(2), in_bucket(3)]);
    assert!((spent[0] / 13_200.0 - 1.0).abs() < 0.02, "{spent:?}: one second's worth and 30 % of ten");
    assert!(spent[1] > 25_000.0, "{spent:?}: a bucket without a limit is the container's");
}

#[test]
fn a_spent_throughput_bucket_names_itself_and_its_wait() {
    let start = Instant::now();
    let mut terms = Terms { rate: 1000.0, default_bucket: Some(1), ..Terms::default() };
    terms.bucket_parts[0] = 0.1;
    let budget = Budget::new(1000.0, start);
    budget.set(terms, start);
    budget.pay(any(), 149.0, start);
    let refused = ask(&budget, any(), start).unwrap_err();
    assert_eq!(refused, Throttled { wait: Duration::from_millis(500), cause: ThrottleCause::Bucket });
    assert_eq!(ask(&budget, in_bucket(2), start), Ok(()), "the default is for requests that name none");
    assert_eq!(ask(&budget, any(), start + refused.wait), Ok(()));
    assert_eq!((budget.usage().throttled, budget.usage().throttled_bucket), (1, 1));
}

#[test]
fn only_the_key_that_fills_a_whole_partition_is_called_hot() {
    let start = Instant::now();
    let full = Terms { rate: 10_000.0, ceiling: 10_000.0, ..Terms::default() };
    let cases = [
        // The rate, what the hot key pays each millisecond, what another pays, and whether it is hot.
        (full, 20.0, 0.1, true),
        (full, 8.0, 8.0, false),
        // More throughput would help here.
        (Terms { rate: 5_000.0, ..full }, 20.0, 0.1, false),
        // A database's budget has no partition behind it.
        (Terms { ceiling: 0.0, ..full }, 20.0, 0.1, false),
    ];
    for (place, (terms, hot, other, is_hot)) in cases.into_iter().enumerate() {
        let budget = drained(terms, start);
        for step in 1..=5_000 {
            let now = after(start, step);
            for (key, units) in [(7, hot), (8, other)] {
                if ask(&budget, of_key(key), now).is_ok() {
                    budget.pay(of_key(key), units, now);
                }
            }
        }
        let now = after(start, 5_000);
        budget.pay(any(), 2.0 * terms.rate, now);
        let cause = |key| ask(&budget, of_key(key), now).unwrap_err().cause;
        let wanted = if is_hot { ThrottleCause::HotKey } else { ThrottleCause::Rate };
        assert_eq!((cause(7), cause(8)), (wanted, ThrottleCause::Rate), "case {place}");
        assert_eq!(ask(&budget, any(), now).unwrap_err().cause, ThrottleCause::Rate, "no key, no verdict");
    }
}

#[test]
fn who_waits_because_of_a_low_priority_is_not_called_hot() {
    let start = Instant::now();
    let budget = drained(Terms { rate: 10_000.0, ceiling: 10_000.0, ..Terms::default() }, start);
    let later = after(start, 1_000);
    budget.pay(of_key(7), 9_500.0, later);
    let claim = Claim { lane: low().lane, ..of_key(7) };
    assert_eq!(ask(&budget, claim, later).unwrap_err().cause, ThrottleCause::Rate);
    budget.pay(of_key(7), 600.0, later);
    assert_eq!(ask(&budget, claim, later).unwrap_err().cause, ThrottleCause::HotKey);
}

#[test]
fn a_key_is_no_longer_hot_when_it_has_been_quiet() {
    let start = Instant::now();
    let terms = Terms { rate: 10_000.0, ceiling: 10_000.0, ..Terms::default() };
    let budget = drained(terms, start);
    budget.pay(of_key(7), 12_000.0, start);
    assert_eq!(ask(&budget, of_key(7), start).unwrap_err().cause, ThrottleCause::HotKey);
    let later = after(start, 3_000);
    budget.pay(any(), 30_000.0, later);
    assert_eq!(ask(&budget, of_key(7), later).unwrap_err().cause, ThrottleCause::Rate);
}

#[test]
fn use_is_told_by_the_second_and_peaks_once() {
    let start = Instant::now();
    let budget = Budget::new(10_000.0, start);
    for (ms, units) in [(0, 100.0), (500, 50.0), (1_000, 30.0)] {
        budget.pay(any(), units, after(start, ms));
    }
    assert_eq!(budget.current(after(start, 1_500)), 150.0);
    assert_eq!(budget.current(after(start, 2_500)), 30.0);
    assert_eq!(budget.current(after(start, 9_000)), 0.0);
    assert_eq!((budget.take_peak(), budget.take_peak()), (150.0, 0.0));
    assert_eq!(budget.usage().highest, 150.0);
}

#[test]
fn a_lowered_rate_holds_at_once_and_debts_stay() {
    let start = Instant::now();
    let budget = Budget::new(10_000.0, start);
    budget.set_rate(400.0, start);
    assert_eq!(budget.available(start), 400.0);
    budget.pay(any(), 800.0, start);
    budget.set_rate(1_000.0, start);
    assert_eq!(ask(&budget, any(), start).unwrap_err().wait.as_millis(), 401);
}
