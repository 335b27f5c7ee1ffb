use super::*;

const HOUR: u64 = SECONDS_PER_HOUR;

fn autoscale(max: u32) -> Throughput {
    Throughput::Autoscale { max, increment_percent: None }
}

fn samples(of: &[(u32, f64)], share: f64) -> Vec<Sample> {
    of.iter().map(|&(partition, highest)| Sample { partition, highest, share }).collect()
}

fn lines(account: &Account) -> Vec<(u64, u32, u32)> {
    account.lines().iter().map(|hour| (hour.begin / HOUR, hour.highest, hour.billed)).collect()
}

#[test]
fn partitions_are_billed_for_their_own_highest_second() {
    let mut account = Account::default();
    // The example of the service: 1,000 RU/s on two partitions, one used up and the other at 40 %.
    account.note(autoscale(1_000), &samples(&[(0, 500.0), (1, 80.0)], 500.0), 7 * HOUR);
    account.note(autoscale(1_000), &samples(&[(0, 20.0), (1, 200.0)], 500.0), 7 * HOUR);
    assert_eq!(lines(&account), [(7, 700, 700)]);
}

#[test]
fn an_idle_hour_costs_a_tenth_and_a_burst_no_more_than_all() {
    let mut account = Account::default();
    account.note(autoscale(4_000), &samples(&[(0, 0.0)], 4_000.0), HOUR);
    account.note(autoscale(4_000), &samples(&[(0, 9_000.0)], 4_000.0), 2 * HOUR);
    account.note(Throughput::Manual(600), &samples(&[(0, 12.5)], 600.0), 3 * HOUR);
    assert_eq!(lines(&account), [(1, 0, 400), (2, 9_000, 4_000), (3, 13, 600)]);
}

#[test]
fn an_hour_in_which_a_partition_split_is_never_billed_above_the_ceiling() {
    let mut account = Account::default();
    account.note(autoscale(10_000), &samples(&[(0, 9_000.0)], 10_000.0), HOUR);
    account.note(autoscale(10_000), &samples(&[(1, 4_000.0), (2, 5_000.0)], 5_000.0), HOUR);
    assert_eq!(lines(&account), [(1, 18_000, 10_000)]);
}

#[test]
fn thirty_days_are_kept() {
    let mut account = Account::default();
    for hour in 0..1_000 {
        let ended = account.note(autoscale(1_000), &samples(&[(0, 1.0)], 1_000.0), hour * HOUR);
        assert_eq!(ended, hour > 0);
    }
    assert_eq!(account.past.len(), THROUGHPUT_HOURS_MAX);
    assert_eq!(account.lines().last().map(|hour| hour.begin), Some(999 * HOUR));
}

#[test]
fn a_restart_goes_on_with_what_was_stored_of_the_hour() {
    let rid = Rid::database(1);
    let stored = |begin, highest, billed| Hour { begin, highest, billed };
    let hours = vec![stored(HOUR, 50, 100), stored(2 * HOUR, 700, 700)];
    let hours = Hours::load(vec![HoursRecord { rid, hours }]);
    let mut accounts = hours.accounts.lock();
    let account = accounts.get_mut(&rid).expect("what was stored is there");
    account.note(autoscale(1_000), &samples(&[(0, 300.0)], 1_000.0), 2 * HOUR);
    assert_eq!(lines(account), [(1, 50, 100), (2, 700, 700)]);
    account.note(autoscale(1_000), &samples(&[(0, 900.0)], 1_000.0), 2 * HOUR);
    assert_eq!(lines(account), [(1, 50, 100), (2, 900, 900)]);
}
