//! Items like those of a sample.
//!
//! An item drawn is one of the sample, moved to another time: properties that told when it was written then tell the
//! new time, and properties that were different in each item are different again.

use std::collections::{BTreeMap, BTreeSet};

use orrery_doc::{KeyComponent, Path, Segment};
use serde_json::Value;

use super::{Column, Population, Sampled, Source, normal, text_of};
use crate::calendar::{self, Period};
use crate::chance::{self, Chance};
use crate::limits;
use crate::workload::Items;

/// Properties that the server adds.
const SYSTEM: [&str; 6] = ["_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"];
/// A value that was seen this often tells its share; of rarer ones only their number can be estimated.
const SEEN_ENOUGH: usize = 5;
/// The share of items that must agree before a rule about them is believed.
const NEARLY_ALL: f64 = 0.95;
/// A sample of fewer items says nothing about what is different in each.
const UNIQUE_NEEDS: usize = 10;

pub struct Sample {
    rows: Vec<Vec<KeyComponent>>,
    facts: Vec<Facts>,
}

struct Facts {
    /// Values that the column really has, or none when every item has its own.
    distinct: Option<f64>,
    /// Values that were met often enough to be taken as they are.
    common: BTreeSet<String>,
    /// For how many values each of the others stands.
    variants: u64,
}

impl Sample {
    /// `named` has the paths that somebody asked for; further ones are found in the items.
    pub fn population(
        items: &Items,
        sample: &[Value],
        named: impl Iterator<Item = String>,
        today: f64,
    ) -> Population {
        let mut paths: BTreeSet<String> = named.collect();
        paths.extend(items.times.keys().chain(items.distinct.keys()).map(|path| normal(path)));
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        let mut leaves = 0;
        for item in sample {
            leaves += visit(item, &mut Vec::new(), &mut found);
        }
        let mut found: Vec<(String, usize)> = found.into_iter().collect();
        found.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        paths.extend(found.into_iter().map(|(path, _)| path).take(limits::SAMPLE_PATHS_MAX));

        let written: Vec<Option<f64>> = sample.iter().map(written).collect();
        let mut population = Population {
            columns: Vec::new(),
            source: Source::Sample(Sample { rows: Vec::new(), facts: Vec::new() }),
            bytes: mean(sample, |item| item.to_string().len() as f64),
            terms: leaves as f64 / sample.len().max(1) as f64,
            sampled: Some(Sampled { items: sample.len(), history_days: span(&written, today) }),
            notes: Vec::new(),
        };
        let mut facts = Vec::new();
        let mut rows: Vec<Vec<KeyComponent>> = vec![Vec::with_capacity(paths.len()); sample.len()];
        for path in paths {
            let values: Vec<KeyComponent> = sample.iter().map(|item| value_at(item, &path)).collect();
            let column = column(items, path, &values, &written);
            facts.push(facts_of(items, &column, &values));
            population.columns.push(column);
            rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
        }
        population.source = Source::Sample(Sample { rows, facts });
        population
    }

    pub fn draw(&self, columns: &[Column], chance: &mut Chance, time: f64) -> Vec<KeyComponent> {
        let chosen = chance.below(self.rows.len() as u64) as usize;
        let mut values = self.rows[chosen].clone();
        for (column, value) in values.iter_mut().enumerate() {
            let facts = &self.facts[column];
            if *value == KeyComponent::Undefined {
                continue;
            }
            if let Some(period) = columns[column].period {
                *value = KeyComponent::Str(period.render(time));
                continue;
            }
            let variant = match facts.distinct {
                None => chance.next(),
                // Each rare value that was seen stands for several that were not.
                Some(_) => chance.below(facts.variants),
            };
            let text = text_of(value);
            if variant > 0 && !facts.common.contains(&text) {
                *value = KeyComponent::Str(format!("{text}~{variant}"));
            }
        }
        values
    }

    pub fn peak_of(&self, columns: &[usize]) -> f64 {
        if columns.iter().any(|column| self.facts[*column].distinct.is_none()) {
            return 0.0;
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(joined(row, columns)).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        if most >= SEEN_ENOUGH {
            return most as f64 / self.rows.len() as f64;
        }
        let distinct = columns.iter().filter_map(|column| self.facts[*column].distinct);
        1.0 / distinct.fold(counts.len() as f64, f64::max)
    }

    pub fn distinct_of(&self, column: usize) -> Option<f64> {
        self.facts[column].distinct
    }

    /// Whether the sample shows that a column follows from others: pairs of items agree wherever there are pairs.
    pub fn decides(&self, common: &[usize], column: usize) -> bool {
        let mut values: BTreeMap<String, (&KeyComponent, usize)> = BTreeMap::new();
        for row in &self.rows {
            let entry = values.entry(joined(row, common)).or_insert((&row[column], 0));
            if *entry.0 != row[column] {
                return false;
            }
            entry.1 += 1;
        }
        values.values().any(|(_, seen)| *seen > 1)
    }
}

fn column(items: &Items, path: String, values: &[KeyComponent], written: &[Option<f64>]) -> Column {
    let declared = items.times.iter().find(|(declared, _)| normal(declared) == path);
    let period = declared.map(|(_, period)| *period).or_else(|| period_of(values, written));
    let missing = values.iter().filter(|value| **value == KeyComponent::Undefined).count();
    Column { path, period, missing: missing as f64 / values.len().max(1) as f64 }
}

fn facts_of(items: &Items, column: &Column, values: &[KeyComponent]) -> Facts {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values.iter().filter(|value| **value != KeyComponent::Undefined) {
        *counts.entry(text_of(value)).or_default() += 1;
    }
    let shown = counts.len();
    let declared = items.distinct.iter().find(|(path, _)| normal(path) == column.path);
    let present: usize = counts.values().sum();
    if declared.is_none() && shown == present && present >= UNIQUE_NEEDS {
        return Facts { distinct: None, common: BTreeSet::new(), variants: 1 };
    }
    // The more values were met only once, the more were not met at all (Chao's lower bound).
    let met = |times: usize| counts.values().filter(|count| **count == times).count() as f64;
    let unseen = met(1) * met(1) / (2.0 * met(2)).max(1.0);
    let distinct = declared.map_or(shown as f64 + unseen, |(_, distinct)| *distinct);
    let distinct = distinct.max(shown as f64).max(1.0).round();
    let often = counts.into_iter().filter(|(_, times)| *times >= SEEN_ENOUGH);
    let common: BTreeSet<String> = often.map(|(value, _)| value).collect();
    let rare = (shown - common.len()).max(1) as f64;
    let variants = ((distinct - common.len() as f64) / rare).round() as u64;
    Facts { distinct: Some(distinct), common, variants: variants.max(1) }
}

/// The period of a column that tells when its item was written: it lies close to the time that the server noted.
fn period_of(values: &[KeyComponent], written: &[Option<f64>]) -> Option<Period> {
    let mut finest = None;
    let (mut present, mut close) = (0, 0);
    for (value, written) in values.iter().zip(written) {
        let Some(written) = written else { continue };
        let read = match value {
            KeyComponent::Undefined => continue,
            KeyComponent::Str(text) => calendar::parse(text),
            // Seconds and milliseconds since 1970.
            KeyComponent::Number(number) if *number > 1e11 => Some((number / 86_400_000.0, Period::Second)),
            KeyComponent::Number(number) => Some((number / 86_400.0, Period::Second)),
            _ => None,
        };
        present += 1;
        if let Some((time, period)) = read {
            let late = written - time;
            close += usize::from((-2.0..period.days() + 2.0).contains(&late));
            finest = Some(finest.map_or(period, |finest: Period| finest.min(period)));
        }
    }
    finest.filter(|_| close as f64 >= NEARLY_ALL * present as f64)
}

/// Counts the scalar values of an item and notes their paths.
fn visit(value: &Value, path: &mut Vec<Segment>, found: &mut BTreeMap<String, usize>) -> usize {
    match value {
        Value::Object(members) => {
            let mut leaves = 0;
            for (name, member) in members {
                if path.is_empty() && SYSTEM.contains(&name.as_str()) {
                    continue;
                }
                path.push(Segment::Name(name.clone()));
                leaves += visit(member, path, found);
                path.pop();
            }
            leaves
        }
        // Elements of arrays are indexed, but cannot be partition keys.
        Value::Array(elements) => {
            elements.iter().map(|element| visit(element, path, &mut BTreeMap::new())).sum()
        }
        _ => {
            if (1..=limits::SAMPLE_DEPTH_MAX).contains(&path.len()) {
                *found.entry(Path::new(path.clone()).to_string()).or_default() += 1;
            }
            1
        }
    }
}

fn value_at(item: &Value, path: &str) -> KeyComponent {
    let Ok(path) = Path::parse_property(path) else { return KeyComponent::Undefined };
    let mut at = Some(item);
    for segment in path.segments() {
        at = match segment {
            Segment::Name(name) => at.and_then(|value| value.get(name)),
            Segment::Index(_) => None,
        };
    }
    match at {
        Some(Value::String(text)) => KeyComponent::Str(cut(text)),
        Some(Value::Number(number)) => KeyComponent::Number(number.as_f64().unwrap_or(0.0)),
        Some(Value::Bool(truth)) => KeyComponent::Bool(*truth),
        Some(Value::Null) => KeyComponent::Null,
        _ => KeyComponent::Undefined,
    }
}

/// A text that is short enough to be kept thousands of times, and still different from all others.
fn cut(text: &str) -> String {
    if text.len() <= limits::SAMPLE_VALUE_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=limits::SAMPLE_VALUE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…{:016x}", &text[..end], chance::hash(text))
}

fn written(item: &Value) -> Option<f64> {
    item.get("_ts").and_then(Value::as_f64).map(|seconds| seconds / 86_400.0)
}

/// Days from the oldest item until today.
fn span(written: &[Option<f64>], today: f64) -> Option<f64> {
    let oldest = written.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    (oldest < today).then(|| (today + 1.0 - oldest).min(limits::HORIZON_DAYS_MAX))
}

fn joined(row: &[KeyComponent], columns: &[usize]) -> String {
    let texts: Vec<String> = columns.iter().map(|column| text_of(&row[*column])).collect();
    texts.join("\u{1f}")
}

fn mean(sample: &[Value], measure: impl Fn(&Value) -> f64) -> f64 {
    sample.iter().map(measure).sum::<f64>() / sample.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::candidate::Candidate;
    use crate::workload::Workload;

    fn population(items: &Value, sample: &[Value]) -> Population {
        let workload = json!({ "items": items }).to_string();
        let workload = Workload::from_json(workload.as_bytes()).expect("a workload");
        Population::of(&workload, sample, &[], 20_470.0).expect("there are items")
    }

    fn readings() -> Vec<Value> {
        let reading = |n: u64| {
            json!({
                "id": format!("r{n}"), "device": format!("d{}", n % 20), "site": {"name": format!("s{}", n % 20 / 10)},
                "day": "2026-01-15", "born": "1980-05-01", "_ts": 20_468 * 86_400 + n, "tags": ["a", "b"],
            })
        };
        (0..200).map(reading).collect()
    }

    #[test]
    fn a_sample_tells_times_unique_values_and_what_follows_from_what() {
        let population = population(&json!({}), &readings());
        let paths: Vec<&str> = population.columns.iter().map(|column| column.path.as_str()).collect();
        assert_eq!(paths, ["/born", "/day", "/device", "/id", "/site/name"]);
        let column = |path: &str| population.column(path).expect(path);
        assert_eq!(population.columns[column("/day")].period, Some(Period::Day));
        assert_eq!(
            population.columns[column("/born")].period,
            None,
            "a date that is not the time of writing"
        );
        assert_eq!(population.distinct_of(column("/id")), None);
        assert_eq!(population.distinct_of(column("/device")), Some(20.0));
        let key = |text: &str| population.resolve(&Candidate::parse(text).expect(text)).expect(text);
        assert_eq!(population.peak_share(&key("/device")), 0.05);
        assert_eq!(population.peak_share(&key("/id")), 0.0);
        assert!(population.keeps_together(&[column("/device")], &key("/site/name")));
        assert!(!population.keeps_together(&[column("/site/name")], &key("/device")));
        assert_eq!(population.terms, 7.0);
    }

    #[test]
    fn what_is_said_about_a_sample_beats_what_it_shows() {
        let items = json!({"distinct": {"/id": 1_000_000}, "times": {"/born": "year"}});
        let population = population(&items, &readings());
        let column = |path: &str| population.column(path).expect(path);
        assert_eq!(population.distinct_of(column("/id")), Some(1e6));
        assert_eq!(population.columns[column("/born")].period, Some(Period::Year));
        let mut chance = Chance::new(1);
        let mut drawn = |path: &str| -> BTreeSet<String> {
            let draw = |_| text_of(&population.draw(&mut chance, 20_470.0).values[column(path)]);
            (0..1000).map(draw).collect()
        };
        let ids = drawn("/id").len();
        assert!(ids > 950, "only {ids} of 1000 draws were different");
        assert_eq!(drawn("/device").len(), 20, "what is met often stands for itself");
    }

    #[test]
    fn odd_items_are_taken_as_they_are() {
        let sample =
            [json!(null), json!([1, 2]), json!({"a/b": 1, "": {"x": true}}), json!({"id": {"a": 1}})];
        let population = population(&json!({}), &sample);
        let mut chance = Chance::new(1);
        for _ in 0..20 {
            population.draw(&mut chance, 1.0);
        }
    }
}
