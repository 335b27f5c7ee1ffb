//! How many items there are on a day, and how large the largest logical partition is then.

use crate::calendar::Period;
use crate::chance::Chance;
use crate::limits;
use crate::population::{Population, Row};
use crate::workload::{Kind, Workload};

/// Days of a history that nobody gave, and of a horizon.
const HISTORY_DAYS: f64 = 365.0;
const HORIZON_DAYS: f64 = 365.0;

/// The items of a container over time. Those of today were written evenly over the history.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    pub stored: f64,
    pub history_days: f64,
    pub per_day: f64,
    pub horizon_days: f64,
    pub lifetime_days: f64,
    pub bytes: f64,
}

impl Volume {
    pub fn of(workload: &Workload, population: &Population) -> Volume {
        let items = &workload.items;
        let created = |kind: Kind, writes: u32| match kind {
            Kind::Create => 1.0,
            Kind::Transaction => f64::from(writes),
            Kind::Delete => -1.0,
            _ => 0.0,
        };
        let rates = workload.operations.iter();
        let per_second: f64 = rates.map(|op| op.per_second * created(op.kind, op.writes())).sum();
        let per_day = items.per_day.unwrap_or((per_second * 86_400.0).max(0.0));
        let sampled = population.sampled;
        let stored = items.stored.unwrap_or(sampled.map_or(0.0, |sample| sample.items as f64));
        let guess = if per_day > 0.0 { stored / per_day } else { HISTORY_DAYS };
        let history = items.history_days.or(sampled.and_then(|sample| sample.history_days));
        Volume {
            stored,
            history_days: history.unwrap_or(guess).clamp(1.0, limits::HORIZON_DAYS_MAX),
            per_day,
            horizon_days: items.horizon_days.unwrap_or(HORIZON_DAYS),
            lifetime_days: items.lifetime_days.filter(|days| *days > 0.0).unwrap_or(f64::INFINITY),
            bytes: population.bytes,
        }
    }

    /// Items of today, and those added since, that are there after some days.
    fn alive(&self, day: f64) -> (f64, f64) {
        let oldest = (day - self.lifetime_days).max(-self.history_days);
        let of_today = self.stored * (-oldest / self.history_days).clamp(0.0, 1.0);
        (of_today, self.per_day * day.min(self.lifetime_days))
    }

    pub fn bytes_stored(&self, day: f64) -> f64 {
        let (of_today, added) = self.alive(day);
        (of_today + added) * self.bytes
    }

    /// Items that stand for all that are there after some days.
    pub fn rows(&self, population: &Population, today: f64, day: f64, count: usize) -> Vec<Row> {
        let (of_today, added) = self.alive(day);
        if of_today + added <= 0.0 {
            return Vec::new();
        }
        let mut chance = Chance::new(limits::SEED);
        let oldest = day - self.lifetime_days;
        let share = of_today / (of_today + added);
        (0..count)
            .map(|_| {
                let (from, to) = match chance.unit() < share {
                    true => (oldest.max(-self.history_days), 0.0),
                    false => (oldest.max(0.0), day),
                };
                let time = today + from + (to - from) * chance.unit();
                population.draw(&mut chance, time)
            })
            .collect()
    }

    /// The bytes of a logical partition after some days. `share` is its part of the items written at a moment;
    /// a period in its key ends its growth.
    pub fn partition_bytes(&self, share: f64, period: Option<Period>, day: f64) -> f64 {
        let (of_today, added) = self.alive(day);
        let items = match period {
            None => of_today + added,
            Some(period) => {
                let days = period.days();
                let before = if of_today > 0.0 { self.stored / self.history_days * days } else { 0.0 };
                let since = self.per_day * days.min(day).min(self.lifetime_days);
                before.min(self.stored).max(since)
            }
        };
        let one = if of_today + added > 0.0 { self.bytes } else { 0.0 };
        (items * share * self.bytes).max(one)
    }

    /// The day on which a logical partition meets a limit, as far as can be foreseen.
    pub fn meets(&self, share: f64, period: Option<Period>, limit: f64) -> Option<f64> {
        let full = |day: f64| self.partition_bytes(share, period, day) >= limit;
        let foresight = self.horizon_days.max(limits::FORESIGHT_DAYS);
        let step = foresight / 4096.0;
        let first = (0..=4096).map(|index| f64::from(index) * step).find(|day| full(*day))?;
        let (mut low, mut high) = ((first - step).max(0.0), first);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if full(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: f64 = 1024.0 * 1024.0 * 1024.0;

    fn volume() -> Volume {
        Volume {
            stored: 0.0,
            history_days: 1.0,
            per_day: 21_546.082,
            horizon_days: 1095.0,
            lifetime_days: f64::INFINITY,
            bytes: 1024.0,
        }
    }

    #[test]
    fn seven_and_a_half_gigabytes_a_year_meet_twenty_after_two_years_and_eight_months() {
        let day = volume().meets(1.0, None, 20.0 * GB).expect("the limit is met");
        assert!((day / 365.25 - 20.0 / 7.5).abs() < 0.01, "{day}");
        assert!((volume().partition_bytes(1.0, None, 365.25) / GB - 7.5).abs() < 0.01);
    }

    #[test]
    fn periods_and_lifetimes_end_the_growth() {
        let month = volume().partition_bytes(1.0, Some(Period::Month), 1000.0) / GB;
        assert!((month - 7.5 / 12.0).abs() < 0.01, "{month}");
        assert_eq!(volume().meets(1.0, Some(Period::Month), 20.0 * GB), None);
        let mortal = Volume { lifetime_days: 90.0, ..volume() };
        assert_eq!(mortal.meets(1.0, None, 20.0 * GB), None);
        assert!(mortal.partition_bytes(1.0, None, 1000.0) < 2.0 * GB);
    }

    #[test]
    fn items_of_today_expire_as_they_were_written() {
        let volume =
            Volume { stored: 100.0, history_days: 100.0, per_day: 0.0, lifetime_days: 100.0, ..volume() };
        assert_eq!([0.0, 50.0, 200.0].map(|day| volume.alive(day).0), [100.0, 50.0, 0.0]);
    }
}
