//! How many values there are, judged by a sample of the items.
//!
//! No estimator is good for every population: one that fits many values met equally often misses the long tail of a
//! skewed one. Two things are done about it. Values that the sample met often are set aside, since they are all known
//! and say nothing about rare ones. The rest is estimated by the second-order jackknife (Haas and Stokes, 1998), which
//! corrects the first-order one, exact for values of equal frequency, by how much the frequencies differ. What "often"
//! means decides much, so it is tried with a low and with a high bound, and the larger answer counts: all these
//! estimates err towards too few.

use std::collections::BTreeMap;

/// Values met more often than this are set aside: a low bound suits many rare values beside a few common ones, a high one
/// suits frequencies that fall off slowly.
const OFTEN: [usize; 2] = [5, 50];

/// How often values were met in a sample.
#[derive(Clone, Debug, Default)]
pub struct Meetings {
    /// By the number of meetings, how many values were met so often.
    values: BTreeMap<usize, usize>,
}

impl Meetings {
    pub fn of(counts: impl IntoIterator<Item = usize>) -> Meetings {
        let mut values = BTreeMap::new();
        for count in counts.into_iter().filter(|count| *count > 0) {
            *values.entry(count).or_default() += 1;
        }
        Meetings { values }
    }

    /// Items that were looked at.
    pub fn items(&self) -> usize {
        self.values.iter().map(|(times, values)| times * values).sum()
    }

    /// Different values among them.
    pub fn shown(&self) -> usize {
        self.values.values().sum()
    }

    /// The values that there are in all, if the sample was drawn from this many items: at least those that were met, and at
    /// most one for each item that was not looked at besides.
    pub fn estimate(&self, stored: f64) -> f64 {
        let (items, shown) = (self.items() as f64, self.shown() as f64);
        if stored <= items {
            return shown;
        }
        let guess = OFTEN.map(|often| self.jackknife(stored, often)).into_iter().fold(shown, f64::max);
        guess.min(shown + stored - items).round()
    }

    fn jackknife(&self, stored: f64, often: usize) -> f64 {
        let fraction = self.items() as f64 / stored;
        let rare = || self.values.range(..=often).map(|(times, values)| (*times as f64, *values as f64));
        let known = self.values.range(often + 1..).map(|(_, values)| *values as f64).sum::<f64>();
        let items: f64 = rare().map(|(times, values)| times * values).sum();
        let shown: f64 = rare().map(|(_, values)| values).sum();
        if items == 0.0 {
            return known;
        }
        // Common values have their part of what was not looked at, too.
        let stored = items / fraction;
        let once = self.values.get(&1).copied().unwrap_or(0) as f64;
        let met_before = 1.0 - (1.0 - fraction) * once / items;
        if met_before <= 0.0 {
            return known + stored;
        }
        let first = shown / met_before;
        let pairs: f64 = rare().map(|(times, values)| times * (times - 1.0) * values).sum();
        let variation = (first / (items * items) * pairs + first / stored - 1.0).max(0.0);
        let second =
            (shown - once * (1.0 - fraction) * (1.0 - fraction).ln() * variation / fraction) / met_before;
        known + second.min(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    const STORED: usize = 200_000;

    /// How far off the estimate is from a sample without repeats: 1 is right, 2 is twice too many or too few.
    fn error(population: &[u32], sampled: usize) -> f64 {
        let mut shuffled = population.to_vec();
        let mut chance = Chance::new(11);
        for at in 0..sampled {
            let other = at + chance.below((shuffled.len() - at) as u64) as usize;
            shuffled.swap(at, other);
        }
        let count = |items: &[u32]| {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            items.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
            counts
        };
        let real = count(population).len() as f64;
        let estimate =
            Meetings::of(count(&shuffled[..sampled]).into_values()).estimate(population.len() as f64);
        (estimate / real).max(real / estimate)
    }

    /// Items whose values have weights that fall with their rank.
    fn ranked(values: usize, fall: f64) -> Vec<u32> {
        let mut sum = 0.0;
        let weight = |rank: usize| {
            sum += (rank as f64).powf(-fall);
            sum
        };
        let sums: Vec<f64> = (1..=values).map(weight).collect();
        let mut chance = Chance::new(5);
        let draw = |_| sums.partition_point(|sum| *sum <= chance.unit() * sums[values - 1]) as u32;
        (0..STORED).map(draw).collect()
    }

    fn made(value: impl Fn(u32) -> u32) -> Vec<u32> {
        (0..STORED as u32).map(value).collect()
    }

    #[test]
    fn even_values_are_counted_right() {
        for values in [10, 1_000, 20_000, 66_667, 100_000] {
            let population = made(|n| n % values);
            assert!(error(&population, 4_000) < 1.25, "{values}: {}", error(&population, 4_000));
            assert!(error(&population, 20_000) < 1.05, "{values}: {}", error(&population, 20_000));
        }
    }

    #[test]
    fn one_hot_value_does_not_hide_the_others() {
        for others in [100, 5_000, 20_000, 100_000] {
            let population = made(|n| if n % 2 == 0 { u32::MAX } else { n / 2 % others });
            assert!(error(&population, 4_000) < 1.35, "{others}: {}", error(&population, 4_000));
        }
        let tail = made(|n| if n % 10 == 0 { n } else { u32::MAX });
        assert!(error(&tail, 4_000) < 1.3, "a tail of its own for each: {}", error(&tail, 4_000));
        let guests = made(|n| if n % 2 == 0 { n / 2 % 100 } else { n + 1_000 });
        assert!(error(&guests, 4_000) < 1.3, "half of them met once: {}", error(&guests, 4_000));
    }

    #[test]
    fn long_tails_are_found_within_a_small_factor() {
        for (values, fall) in [(1_000, 0.5), (1_000, 1.0), (20_000, 0.5), (20_000, 1.0), (100_000, 0.5)] {
            let population = ranked(values, fall);
            let (small, large) = (error(&population, 4_000), error(&population, 20_000));
            assert!(small < 2.5 && large < 1.8, "{values} falling by {fall}: {small} and {large}");
        }
        // Most values have one item of a million: only a larger sample shows how many they are.
        for (values, fall) in [(20_000, 1.5), (100_000, 1.0)] {
            let population = ranked(values, fall);
            assert!(
                error(&population, 4_000) < 5.0,
                "{values} falling by {fall}: {}",
                error(&population, 4_000)
            );
        }
    }

    #[test]
    fn a_sample_of_everything_is_exact_and_nothing_is_exceeded() {
        assert_eq!(Meetings::of([3, 1, 1]).estimate(5.0), 3.0);
        assert_eq!(Meetings::of([3, 1, 1]).estimate(0.0), 3.0);
        assert_eq!(Meetings::of([]).estimate(100.0), 0.0);
        assert_eq!(Meetings::of([1; 10]).estimate(1_000.0), 1_000.0, "never the same twice");
        assert_eq!(Meetings::of([10]).estimate(1e18), 1.0);
        let estimate = Meetings::of([1, 1, 1, 2]).estimate(6.0);
        assert!((4.0..=5.0).contains(&estimate), "{estimate}");
    }
}
