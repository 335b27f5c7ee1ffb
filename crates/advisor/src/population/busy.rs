//! Items as often as the requests of an operation touch them, which need not be as often as they are stored.
//!
//! What was touched is a sample of the requests. As with a sample of the items, a value that was met often tells its share,
//! and one that was met rarely stands for others like it.

use std::collections::BTreeMap;

use orrery_doc::{KeyComponent, Path};

use super::distinct::Meetings;
use super::sample::{Facts, SEEN_ENOUGH, UNIQUE_NEEDS, value_at, written};
use super::{Population, Row, text_of};
use crate::chance::Chance;
use crate::limits;
use crate::workload::{Operation, Touched};

/// Requests that a sample of them is taken to be one of.
const REQUESTS: f64 = 1e9;

pub struct Busy {
    rows: Vec<Row>,
    /// How many requests touched the rows up to and with each.
    sums: Vec<u64>,
    facts: Vec<Facts>,
}

impl Busy {
    /// What each operation touches, or none where nothing is known of it.
    pub fn of_all(operations: &[Operation], population: &Population, today: f64) -> Vec<Option<Busy>> {
        let values = operations.len() * population.columns.len();
        let rows_max = limits::ROW_VALUES_MAX / values.max(1);
        let of = |operation: &Operation| Busy::of(&operation.touched, rows_max, population, today);
        operations.iter().map(of).collect()
    }

    fn of(touched: &[Touched], rows_max: usize, population: &Population, today: f64) -> Option<Busy> {
        let met = touched.iter().filter(|touched| touched.times > 0);
        let met: Vec<&Touched> = met.take(rows_max.max(1)).collect();
        let mut sum = 0;
        let sums: Vec<u64> = met
            .iter()
            .map(|touched| {
                sum += u64::from(touched.times);
                sum
            })
            .collect();
        let row = |touched: &&Touched| Row {
            time: written(&touched.item).unwrap_or(today),
            values: Vec::with_capacity(population.columns.len()),
        };
        let mut rows: Vec<Row> = met.iter().map(row).collect();
        let mut facts = Vec::new();
        for (at, column) in population.columns.iter().enumerate() {
            let path = Path::parse_property(&column.path).ok();
            let mut counts = BTreeMap::new();
            for (row, touched) in rows.iter_mut().zip(&met) {
                let value = value_at(&touched.item, path.as_ref());
                if value != KeyComponent::Undefined {
                    *counts.entry(text_of(&value)).or_default() += touched.times as usize;
                }
                row.values.push(value);
            }
            facts.push(facts_of(counts, population.distinct_of(at)));
        }
        (!rows.is_empty()).then_some(Busy { rows, sums, facts })
    }

    /// An item that a request touches. One that the request writes is of this time; others are as old as they are.
    pub fn draw(&self, population: &Population, chance: &mut Chance, time: Option<f64>) -> Row {
        let drawn = chance.below(self.sums.last().copied().unwrap_or(1));
        let mut row = self.rows[self.sums.partition_point(|sum| *sum <= drawn)].clone();
        row.time = time.unwrap_or(row.time);
        for ((value, column), facts) in row.values.iter_mut().zip(&population.columns).zip(&self.facts) {
            facts.vary(value, column, chance, row.time);
        }
        row
    }
}

/// `stored` is how many values all items have, or none when each has its own.
fn facts_of(counts: BTreeMap<String, usize>, stored: Option<f64>) -> Facts {
    let all_differ = counts.len() >= UNIQUE_NEEDS && counts.values().all(|times| *times == 1);
    if stored.is_none() && all_differ {
        return Facts::unique();
    }
    let guess = Meetings::of(counts.values().copied()).estimate(REQUESTS);
    Facts::among(counts, guess.min(stored.unwrap_or(f64::INFINITY)), SEEN_ENOUGH)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::workload::Workload;

    fn drawn(touched: Vec<Touched>) -> (f64, usize) {
        let item = |n: u32| json!({"id": format!("i{n}"), "tenant": format!("t{}", n % 100)});
        let sample: Vec<Value> = (0..2_000).map(item).collect();
        let workload = Workload::default();
        let population = Population::of(&workload, &sample, &[], 20_470.0).expect("there are items");
        let tenant = population.column("/tenant").expect("it is there");
        let busy = Busy::of(&touched, 1_000, &population, 20_470.0).expect("something was touched");
        let mut chance = Chance::new(1);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..10_000 {
            let row = busy.draw(&population, &mut chance, None);
            *counts.entry(text_of(&row.values[tenant])).or_default() += 1;
        }
        (counts.get("t7").copied().unwrap_or(0) as f64 / 10_000.0, counts.len())
    }

    fn touched(tenant: u32, times: u32) -> Touched {
        Touched { times, item: json!({"id": format!("i{tenant}"), "tenant": format!("t{tenant}")}) }
    }

    #[test]
    fn items_are_drawn_as_often_as_they_were_touched() {
        let one = (0..20).map(|n| touched(n, if n == 7 { 76 } else { 1 })).collect();
        let (share, _) = drawn(one);
        assert!((share - 0.8).abs() < 0.02, "the busy tenant has {share}");
    }

    #[test]
    fn a_tenant_that_was_met_once_stands_for_others() {
        let (share, tenants) = drawn((0..50).map(|n| touched(n, 1)).collect());
        assert!(share < 0.03 && tenants >= 90, "{share} of {tenants}");
    }
}
