//! Items like those of a sample.
//!
//! An item drawn is one of the sample, moved to another time: properties that told when it was written then tell the
//! new time, and properties that were different in each item are different again.

use std::collections::{BTreeMap, BTreeSet};

use orrery_doc::{KeyComponent, Path, Segment};
use serde_json::Value;

use super::distinct::Meetings;
use super::{Column, Key, KeyPart, Population, Sampled, Source, bucket, normal, period_text, text_of};
use crate::calendar::{self, Period};
use crate::census::Clash;
use crate::chance::{self, Chance};
use crate::limits;
use crate::workload::Items;

/// Properties that the server adds.
const SYSTEM: [&str; 6] = ["_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"];
/// A value that was seen this often tells its share; of rarer ones only their number can be estimated.
pub const SEEN_ENOUGH: usize = 5;
/// Where an item has its id.
const ID: &str = "/id";
/// The share of items that must agree before a rule about them is believed.
const NEARLY_ALL: f64 = 0.95;
/// A sample of fewer items says nothing about what is different in each.
pub const UNIQUE_NEEDS: usize = 10;

pub struct Sample {
    rows: Vec<Vec<KeyComponent>>,
    facts: Vec<Facts>,
    /// The items that the rows stand for.
    stored: f64,
}

/// What is known of the values of a column.
pub struct Facts {
    /// What the workload says of the number of values.
    declared: Option<f64>,
    /// Values that the column really has, or none when every item has its own.
    distinct: Option<f64>,
    /// Values that were met often enough to be taken as they are.
    common: BTreeSet<String>,
    /// For how many values each of the others stands.
    variants: u64,
}

/// What the workload says about paths, by their normal spelling.
struct Said {
    times: BTreeMap<String, Period>,
    distinct: BTreeMap<String, f64>,
}

impl Said {
    fn of(items: &Items) -> Said {
        // Of two spellings of one path the first one counts.
        let times = items.times.iter().rev().map(|(path, period)| (normal(path), *period));
        let distinct = items.distinct.iter().rev().map(|(path, distinct)| (normal(path), *distinct));
        Said { times: times.collect(), distinct: distinct.collect() }
    }
}

impl Sample {
    /// `named` has the paths that the workload asks for; further ones are found in the items.
    pub fn population(items: &Items, sample: &[Value], named: BTreeSet<String>, today: f64) -> Population {
        let said = Said::of(items);
        let stored = items.stored.unwrap_or(sample.len() as f64);
        let mut paths = named;
        paths.extend(said.times.keys().chain(said.distinct.keys()).cloned());
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        let mut leaves = 0;
        for item in sample {
            leaves += visit(item, &mut Vec::new(), &mut found);
        }
        // Two items of one key must not have the same id, so the id is always looked at.
        paths.extend(found.contains_key(ID).then(|| ID.to_owned()));
        let mut found: Vec<(String, usize)> = found.into_iter().collect();
        found.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        paths.extend(found.into_iter().map(|(path, _)| path).take(limits::SAMPLE_PATHS_MAX));

        let history_days = span(sample.iter().map(written), today);
        let mut kept = spread(sample, limits::ROW_VALUES_MAX / paths.len().max(1));
        // The same items give the same answer, in whatever order they come and whichever server has them.
        kept.sort_by_cached_key(|item| own_text(item));
        let written: Vec<Option<f64>> = kept.iter().map(|item| written(item)).collect();
        let mut population = Population {
            columns: Vec::new(),
            source: Source::Sample(Sample { rows: Vec::new(), facts: Vec::new(), stored }),
            bytes: mean(sample, |item| item.to_string().len() as f64),
            terms: leaves as f64 / sample.len().max(1) as f64,
            sampled: Some(Sampled { items: kept.len(), history_days }),
            notes: Vec::new(),
        };
        let mut facts = Vec::new();
        let mut rows: Vec<Vec<KeyComponent>> = vec![Vec::with_capacity(paths.len()); kept.len()];
        for path in paths {
            // It is read once and not for each item: there may be a great many of both.
            let parsed = Path::parse_property(&path).ok();
            let values: Vec<KeyComponent> = kept.iter().map(|item| value_at(item, parsed.as_ref())).collect();
            let mut column = column(&said, path, &values, &written);
            column.longest = longest(&kept, parsed.as_ref());
            facts.push(facts_of(&said, &column, &values, stored));
            population.columns.push(column);
            rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
        }
        population.source = Source::Sample(Sample { rows, facts, stored });
        population
    }

    pub fn draw(&self, columns: &[Column], chance: &mut Chance, time: f64) -> Vec<KeyComponent> {
        let chosen = chance.below(self.rows.len() as u64) as usize;
        let mut values = self.rows[chosen].clone();
        for ((value, column), facts) in values.iter_mut().zip(columns).zip(&self.facts) {
            facts.vary(value, column, chance, time);
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

    /// How many values of a key there are at one moment, not counting drawn suffixes. Columns that go together are counted
    /// together: a user of one tenant only makes no key for each other tenant.
    pub fn distinct(&self, key: &Key) -> Option<f64> {
        let parts: Vec<KeyPart> = key.levels.iter().flatten().filter_map(KeyPart::at_one_moment).collect();
        if let [KeyPart::Value { column, .. }] = parts[..] {
            return self.distinct_of(column);
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(fixed_text(&parts, row)).or_default() += 1;
        }
        let values = || {
            parts.iter().filter_map(|part| {
                if let KeyPart::Value { column, .. } = part { Some(*column) } else { None }
            })
        };
        if values().any(|column| self.facts[column].distinct.is_none()) {
            return None;
        }
        let declared = values().filter_map(|column| self.facts[column].declared).fold(1.0, f64::max);
        let at_most: f64 = parts
            .iter()
            .map(|part| match part {
                KeyPart::Value { column, .. } => self.facts[*column].distinct.unwrap_or(f64::INFINITY),
                KeyPart::Hash { buckets, .. } => f64::from(*buckets),
                _ => f64::INFINITY,
            })
            .product();
        Some(Meetings::of(counts.into_values()).estimate(self.stored).max(declared).min(at_most).max(1.0))
    }

    /// The items of the sample that have the same id as another one of the same key. Where chance is part of the key, it may
    /// tell them apart or not.
    pub fn collisions(&self, key: &Key, id: usize) -> Option<(Clash, u64)> {
        let parts: Vec<KeyPart> = key.levels.iter().flatten().copied().collect();
        if parts.iter().any(|part| matches!(part, KeyPart::Suffix(_))) {
            return None;
        }
        let mut counts: BTreeMap<(String, String), (u64, usize)> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate().filter(|(_, row)| row[id] != KeyComponent::Undefined) {
            let place = (text_of(&row[id]), fixed_text(&parts, row));
            counts.entry(place).or_insert((0, at)).0 += 1;
        }
        let alike = || counts.iter().filter(|(_, (items, _))| *items > 1);
        let (_, (_, first)) = alike().next()?;
        let row = &self.rows[*first];
        let texts: Vec<String> = parts.iter().map(|part| part.text_in(row)).collect();
        let items = alike().map(|(_, (items, _))| items).sum();
        Some((Clash { items, id: text_of(&row[id]), key: texts.join(" / ") }, self.rows.len() as u64))
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

/// What tells the keys of items apart, chance aside. A number and its text are different values.
fn fixed_text(parts: &[KeyPart], row: &[KeyComponent]) -> String {
    let text = |part: &KeyPart| match part {
        KeyPart::Value { column, .. } => format!("{:?}", row[*column]),
        part => part.text_in(row),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\u{1f}")
}

impl KeyPart {
    /// The part, unless it is the same for all items that are written at one moment, or drawn by chance.
    fn at_one_moment(&self) -> Option<KeyPart> {
        match self {
            KeyPart::Value { period: Some(_), .. }
            | KeyPart::Period { of_writing: true, .. }
            | KeyPart::Suffix(_) => None,
            part => Some(*part),
        }
    }

    /// The part in an item of the sample as it is, not moved to another time.
    fn text_in(&self, row: &[KeyComponent]) -> String {
        match self {
            KeyPart::Value { column, .. } => text_of(&row[*column]),
            KeyPart::Period { period, column, .. } => period_text(*period, &row[*column]),
            KeyPart::Hash { column, buckets } => bucket(&text_of(&row[*column]), *buckets),
            KeyPart::Suffix(_) => String::new(),
        }
    }
}

/// An item without what servers add: its id, and what else it has.
fn own_text(item: &Value) -> (String, String) {
    let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
    let Value::Object(members) = item else { return (String::new(), text(Some(item))) };
    let own = members.iter().filter(|(name, _)| !SYSTEM.contains(&name.as_str()));
    let mut parts: Vec<String> = own.map(|(name, value)| format!("{name:?}:{value}")).collect();
    parts.sort_unstable();
    (text(members.get("id")), parts.concat())
}

/// Items spread evenly over the sample, as many as may be kept.
fn spread(sample: &[Value], most: usize) -> Vec<&Value> {
    let count = sample.len().min(most.max(1));
    (0..count).map(|index| &sample[index * sample.len() / count]).collect()
}

fn column(said: &Said, path: String, values: &[KeyComponent], written: &[Option<f64>]) -> Column {
    let period = said.times.get(&path).copied().or_else(|| period_of(values, written));
    let missing = values.iter().filter(|value| **value == KeyComponent::Undefined).count();
    Column { path, period, missing: missing as f64 / values.len().max(1) as f64, longest: 0 }
}

/// Bytes of the longest text at a path.
fn longest(items: &[&Value], path: Option<&Path>) -> usize {
    let texts = items.iter().filter_map(|item| node_at(item, path?)?.as_str());
    texts.map(str::len).max().unwrap_or(0)
}

fn facts_of(said: &Said, column: &Column, values: &[KeyComponent], stored: f64) -> Facts {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values.iter().filter(|value| **value != KeyComponent::Undefined) {
        *counts.entry(text_of(value)).or_default() += 1;
    }
    let shown = counts.len();
    let declared = said.distinct.get(&column.path).copied();
    let present: usize = counts.values().sum();
    if declared.is_none() && shown == present && present >= UNIQUE_NEEDS {
        return Facts::unique();
    }
    let meetings = Meetings::of(counts.values().copied());
    let distinct = declared.unwrap_or_else(|| meetings.estimate(stored * (1.0 - column.missing)));
    Facts { declared, ..Facts::among(counts, distinct, SEEN_ENOUGH) }
}

impl Facts {
    /// Each item has a value of its own.
    pub fn unique() -> Facts {
        Facts { declared: None, distinct: None, common: BTreeSet::new(), variants: 1 }
    }

    /// Values that were met so many times, of so many different ones.
    pub fn among(counts: BTreeMap<String, usize>, distinct: f64, often: usize) -> Facts {
        let shown = counts.len();
        let distinct = distinct.max(shown as f64).max(1.0).round();
        let common = counts.into_iter().filter(|(_, times)| *times >= often);
        let common: BTreeSet<String> = common.map(|(value, _)| value).collect();
        let rare = (shown - common.len()).max(1) as f64;
        let variants = ((distinct - common.len() as f64) / rare).round() as u64;
        Facts { declared: None, distinct: Some(distinct), common, variants: variants.max(1) }
    }

    /// Turns a value that was met into one that an item of this time may have.
    pub fn vary(&self, value: &mut KeyComponent, column: &Column, chance: &mut Chance, time: f64) {
        if *value == KeyComponent::Undefined {
            return;
        }
        if let Some(period) = column.period {
            *value = KeyComponent::Str(period.render(time));
            return;
        }
        let variant = match self.distinct {
            None => chance.next(),
            // Each rare value that was seen stands for several that were not.
            Some(_) => chance.below(self.variants),
        };
        let text = text_of(value);
        if variant > 0 && !self.common.contains(&text) {
            *value = KeyComponent::Str(format!("{text}~{variant}"));
        }
    }
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
            if is_worth_noting(path) {
                let path = Path::new(path.clone()).to_string();
                // Items may have other names each; the commonest ones are met early.
                if found.len() < limits::SAMPLE_PATHS_COUNTED_MAX || found.contains_key(&path) {
                    *found.entry(path).or_default() += 1;
                }
            }
            1
        }
    }
}

/// Whether a path can be a key. One long name above thousands of values would be copied for each of them.
fn is_worth_noting(path: &[Segment]) -> bool {
    let bytes = |segment: &Segment| match segment {
        Segment::Name(name) => name.len(),
        Segment::Index(_) => 0,
    };
    (1..=limits::SAMPLE_DEPTH_MAX).contains(&path.len())
        && path.iter().map(bytes).sum::<usize>() <= limits::SAMPLE_PATH_BYTES_MAX
}

pub fn value_at(item: &Value, path: Option<&Path>) -> KeyComponent {
    match path.and_then(|path| node_at(item, path)) {
        Some(Value::String(text)) => KeyComponent::Str(cut(text)),
        Some(Value::Number(number)) => KeyComponent::Number(number.as_f64().unwrap_or(0.0)),
        Some(Value::Bool(truth)) => KeyComponent::Bool(*truth),
        Some(Value::Null) => KeyComponent::Null,
        _ => KeyComponent::Undefined,
    }
}

fn node_at<'a>(item: &'a Value, path: &Path) -> Option<&'a Value> {
    path.segments().iter().try_fold(item, |value, segment| match segment {
        Segment::Name(name) => value.get(name),
        Segment::Index(_) => None,
    })
}

/// A text that is short enough to be kept thousands of times, and still different from all others.
fn cut(text: &str) -> String {
    if text.len() <= limits::SAMPLE_VALUE_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=limits::SAMPLE_VALUE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…{:016x}", &text[..end], chance::hash(text))
}

pub fn written(item: &Value) -> Option<f64> {
    item.get("_ts").and_then(Value::as_f64).map(|seconds| seconds / 86_400.0)
}

/// Days from the oldest item until today.
fn span(written: impl Iterator<Item = Option<f64>>, today: f64) -> Option<f64> {
    let oldest = written.flatten().fold(f64::INFINITY, f64::min);
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
    use crate::error::AdviceError;
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
    fn named_paths_have_a_limit_and_many_of_them_leave_fewer_items() {
        let workload = |paths: usize| {
            let filters = |from: usize| (from..paths.min(from + 20)).map(|n| format!("/p{n}"));
            let operations: Vec<Value> = (0..paths)
                .step_by(20)
                .map(|from| {
                    let filters: Vec<String> = filters(from).collect();
                    json!({"name": "q", "kind": "query", "perSecond": 1, "filters": filters})
                })
                .collect();
            let text = json!({ "operations": operations }).to_string();
            Workload::from_json(text.as_bytes()).expect("a workload")
        };
        let sample: Vec<Value> = (0..10_400).map(|n| json!({ "id": n })).collect();
        let of = |paths: usize| Population::of(&workload(paths), &sample, &[], 20_470.0);
        assert!(matches!(of(limits::NAMED_PATHS_MAX + 1), Err(AdviceError::TooMany { .. })));
        let population = of(limits::NAMED_PATHS_MAX).expect("as many as may be named");
        let Source::Sample(Sample { rows, .. }) = &population.source else { panic!("there is a sample") };
        assert_eq!(population.columns.len(), limits::NAMED_PATHS_MAX + 1);
        assert!(rows.len() * population.columns.len() <= limits::ROW_VALUES_MAX, "{} rows", rows.len());
        assert!(rows.len() > 9_000, "no fewer than need be: {}", rows.len());
    }

    #[test]
    fn paths_of_items_are_counted_up_to_a_limit() {
        let long = "n".repeat(limits::SAMPLE_PATH_BYTES_MAX);
        let many: serde_json::Map<String, Value> =
            (0..limits::SAMPLE_PATHS_COUNTED_MAX + 5).map(|n| (format!("m{n}"), json!(n))).collect();
        let mut found = BTreeMap::new();
        assert_eq!(visit(&json!({long: {"a": 1, "b": 2}}), &mut Vec::new(), &mut found), 2);
        assert!(found.is_empty(), "a name too long for a key is counted but not kept");
        visit(&Value::Object(many), &mut Vec::new(), &mut found);
        assert_eq!(found.len(), limits::SAMPLE_PATHS_COUNTED_MAX);
    }

    #[test]
    fn the_order_of_a_sample_does_not_matter_nor_what_servers_add() {
        let mut sample = readings();
        let drawn = |sample: &[Value]| {
            let population = population(&json!({"times": {"/day": "day"}}), sample);
            let mut chance = Chance::new(1);
            (0..50).map(|_| population.draw(&mut chance, 20_470.0).values).collect::<Vec<_>>()
        };
        let first = drawn(&sample);
        sample.reverse();
        sample.iter_mut().enumerate().for_each(|(n, item)| item["_etag"] = n.into());
        assert_eq!(drawn(&sample), first);
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
