//! The items of a container: what an item written at some time looks like, as far as keys and filters see it.

use std::collections::{BTreeMap, BTreeSet};

use orrery_doc::{
    Epk, KeyComponent, PartitionKey, PartitionKeyDef, PartitionKeyKind, PartitionKeyVersion, Path,
};
use serde_json::Value;

use crate::calendar::{self, Period};
use crate::candidate::{Candidate, Part};
use crate::census::Clash;
use crate::chance::{self, Chance};
use crate::error::AdviceError;
use crate::limits;
use crate::workload::Workload;

mod busy;
mod distinct;
mod fields;
mod sample;

pub use busy::Busy;
use fields::Fields;
use sample::Sample;

/// One item: its values by column, and when it was written.
#[derive(Clone, Debug)]
pub struct Row {
    pub time: f64,
    pub values: Vec<KeyComponent>,
}

#[derive(Clone, Debug)]
pub struct Column {
    /// The path in its normal spelling.
    pub path: String,
    /// Set when the column tells the time of writing.
    pub period: Option<Period>,
    /// Share of items that have nothing there.
    pub missing: f64,
    /// Bytes of the longest text that a sample has there.
    pub longest: usize,
}

pub struct Population {
    pub columns: Vec<Column>,
    source: Source,
    /// Mean bytes of an item and mean terms in the index.
    pub bytes: f64,
    pub terms: f64,
    /// Items and days of the sample, where there is one.
    pub sampled: Option<Sampled>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    pub items: usize,
    pub history_days: Option<f64>,
}

enum Source {
    Fields(Fields),
    Sample(Sample),
}

/// A candidate with its paths found among the columns.
pub struct Key {
    pub candidate: Candidate,
    definition: PartitionKeyDef,
    pub levels: Vec<Vec<KeyPart>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyPart {
    /// The value of a column; with a period if that is a time of writing.
    Value {
        column: usize,
        period: Option<Period>,
    },
    Period {
        period: Period,
        column: usize,
        of_writing: bool,
    },
    Suffix(u32),
    Hash {
        column: usize,
        buckets: u32,
    },
}

impl Population {
    pub fn of(
        workload: &Workload,
        sample: &[Value],
        candidates: &[Candidate],
        today: f64,
    ) -> Result<Population, AdviceError> {
        let items = &workload.items;
        let mut population = if !items.fields.is_empty() {
            Fields::population(items)?
        } else if sample.is_empty() {
            return Err(AdviceError::NoItems);
        } else {
            let named = candidates.iter().flat_map(Candidate::parts).filter_map(Part::path_text);
            let named = named_paths(named.chain(workload.paths()))?;
            Sample::population(items, &sample[..sample.len().min(limits::SAMPLE_ITEMS_MAX)], named, today)
        };
        population.bytes = items.bytes.unwrap_or(population.bytes).max(1.0);
        population.terms = items.terms.unwrap_or(population.terms);
        Ok(population)
    }

    pub fn column(&self, path: &str) -> Option<usize> {
        let path = normal(path);
        self.columns.iter().position(|column| column.path == path)
    }

    /// An item that is written at this time.
    pub fn draw(&self, chance: &mut Chance, time: f64) -> Row {
        let values = match &self.source {
            Source::Fields(fields) => fields.draw(chance, time),
            Source::Sample(sample) => sample.draw(&self.columns, chance, time),
        };
        Row { time, values }
    }

    pub fn resolve(&self, candidate: &Candidate) -> Result<Key, AdviceError> {
        let find = |path: &str| {
            self.column(path).ok_or_else(|| AdviceError::UnknownPath {
                candidate: candidate.to_string(),
                path: path.to_owned(),
            })
        };
        let part = |part: &Part| {
            Ok(match part {
                Part::Path(path) => {
                    let column = find(path)?;
                    KeyPart::Value { column, period: self.columns[column].period }
                }
                Part::Period(period, path) => {
                    let column = find(path)?;
                    let of_writing = self.columns[column].period.is_some();
                    KeyPart::Period { period: *period, column, of_writing }
                }
                Part::Suffix(buckets) => KeyPart::Suffix(*buckets),
                Part::Hash(path, buckets) => KeyPart::Hash { column: find(path)?, buckets: *buckets },
            })
        };
        let levels = candidate.levels.iter();
        let levels: Vec<Vec<KeyPart>> = levels
            .map(|level| level.parts.iter().map(part).collect::<Result<_, AdviceError>>())
            .collect::<Result<_, _>>()?;
        let kind = if levels.len() == 1 { PartitionKeyKind::Hash } else { PartitionKeyKind::MultiHash };
        // Only the number of paths matters for the hash; synthetic levels have none in the items yet.
        let paths = vec![Path::default(); levels.len()];
        let definition = PartitionKeyDef { kind, version: PartitionKeyVersion::V2, paths };
        Ok(Key { candidate: candidate.clone(), definition, levels })
    }

    /// Of the items written at one moment, the share that has the most frequent value of a key. Periods do not count:
    /// at one moment they are the same for all. Zero means that each item has its own.
    pub fn peak_share(&self, key: &Key) -> f64 {
        let parts = || key.levels.iter().flatten();
        let mut columns: Vec<usize> = parts()
            .filter_map(|part| match part {
                KeyPart::Value { column, period: None } => Some(*column),
                KeyPart::Period { column, of_writing: false, .. } => Some(*column),
                _ => None,
            })
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let mut share = self.peak_of(&columns);
        for part in parts() {
            share *= match part {
                KeyPart::Suffix(buckets) => 1.0 / f64::from(*buckets),
                KeyPart::Hash { column, buckets } if !columns.contains(column) => {
                    self.peak_of(&[*column]).max(1.0 / f64::from(*buckets))
                }
                _ => 1.0,
            };
        }
        share
    }

    fn peak_of(&self, columns: &[usize]) -> f64 {
        match &self.source {
            _ if columns.is_empty() => 1.0,
            Source::Fields(fields) => {
                let (computed, counted) = fields.peak_of(columns);
                computed * self.counted_peak(&counted)
            }
            Source::Sample(sample) => sample.peak_of(columns),
        }
    }

    /// The share of the most frequent values of columns, by counting.
    fn counted_peak(&self, columns: &[usize]) -> f64 {
        if columns.is_empty() {
            return 1.0;
        }
        let mut chance = Chance::new(limits::SEED);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..limits::ROWS_MIN {
            let row = self.draw(&mut chance, 0.0);
            let texts: Vec<String> = columns.iter().map(|column| text_of(&row.values[*column])).collect();
            *counts.entry(texts.join("\u{1f}")).or_default() += 1;
        }
        let most = counts.values().max().copied().unwrap_or(0);
        most as f64 / limits::ROWS_MIN as f64
    }

    /// How many values a key has at one moment, or none when each item has its own.
    pub fn distinct(&self, key: &Key) -> Option<f64> {
        let values = match &self.source {
            Source::Fields(fields) => self.product(key, fields),
            Source::Sample(sample) => sample.distinct(key),
        };
        let suffixes = key.levels.iter().flatten().map(|part| match part {
            KeyPart::Suffix(buckets) => f64::from(*buckets),
            _ => 1.0,
        });
        Some(values? * suffixes.product::<f64>())
    }

    /// How many values described columns have together.
    fn product(&self, key: &Key, fields: &Fields) -> Option<f64> {
        let mut values = 1.0;
        let mut seen = Vec::new();
        for part in key.levels.iter().flatten() {
            match part {
                KeyPart::Value { column, period: None }
                | KeyPart::Period { column, of_writing: false, .. }
                    if !seen.contains(column) =>
                {
                    let others: Vec<usize> = key.columns().filter(|other| other != column).collect();
                    let follows = fields.decides(&others, *column);
                    seen.push(*column);
                    if !follows {
                        values *= self.distinct_of(*column)?;
                    }
                }
                KeyPart::Hash { column, buckets } => {
                    let of_column = self.distinct_of(*column).unwrap_or(f64::INFINITY);
                    values *= of_column.min(f64::from(*buckets));
                }
                _ => {}
            }
        }
        Some(values)
    }

    pub fn distinct_of(&self, column: usize) -> Option<f64> {
        match &self.source {
            Source::Fields(fields) => fields.distinct_of(column),
            Source::Sample(sample) => sample.distinct_of(column),
        }
    }

    /// Items of the sample that this key would bring together under one id, of how many that were looked at.
    pub fn collisions(&self, key: &Key) -> Option<(Clash, u64)> {
        match &self.source {
            Source::Fields(_) => None,
            Source::Sample(sample) => sample.collisions(key, self.column("/id")?),
        }
    }

    /// Whether items that agree in some columns, and are written at one moment, always have the same key.
    pub fn keeps_together(&self, common: &[usize], key: &Key) -> bool {
        let decided = |column: usize| {
            common.contains(&column)
                || match &self.source {
                    Source::Fields(fields) => fields.decides(common, column),
                    Source::Sample(sample) => sample.decides(common, column),
                }
        };
        key.levels.iter().flatten().all(|part| match part {
            KeyPart::Value { period: Some(_), .. } | KeyPart::Period { of_writing: true, .. } => true,
            KeyPart::Value { column, .. } | KeyPart::Period { column, .. } | KeyPart::Hash { column, .. } => {
                decided(*column)
            }
            KeyPart::Suffix(_) => false,
        })
    }
}

impl Key {
    pub fn definition(&self) -> &PartitionKeyDef {
        &self.definition
    }

    pub fn epk(&self, row: &Row, chance: &mut Chance) -> Epk {
        orrery_doc::epk(&self.definition, &self.of(row, chance))
    }

    /// The key of an item. Chance decides about drawn suffixes.
    pub fn of(&self, row: &Row, chance: &mut Chance) -> PartitionKey {
        let level = |parts: &Vec<KeyPart>| match parts.as_slice() {
            [KeyPart::Value { column, .. }] => row.values[*column].clone(),
            parts => {
                let texts: Vec<String> = parts.iter().map(|part| part.text(row, chance)).collect();
                KeyComponent::Str(texts.join("-"))
            }
        };
        PartitionKey(self.levels.iter().map(level).collect())
    }

    /// The finest period in the key, if it has a time of writing.
    pub fn period(&self) -> Option<Period> {
        let periods = self.levels.iter().flatten().filter_map(|part| match part {
            KeyPart::Value { period, .. } => *period,
            KeyPart::Period { period, of_writing: true, .. } => Some(*period),
            _ => None,
        });
        periods.min()
    }

    /// The column of the key that is missing most, if one is missing in any item.
    pub fn missing<'a>(&self, population: &'a Population) -> Option<&'a Column> {
        let columns = self.columns().map(|column| &population.columns[column]);
        columns
            .filter(|column| column.missing > 0.0)
            .max_by(|one, other| one.missing.total_cmp(&other.missing))
    }

    /// Bytes that the longest values of its columns have together.
    pub fn longest(&self, population: &Population) -> usize {
        self.columns().map(|column| population.columns[column].longest).sum()
    }

    fn columns(&self) -> impl Iterator<Item = usize> {
        self.levels.iter().flatten().filter_map(|part| match part {
            KeyPart::Value { column, .. } | KeyPart::Period { column, .. } | KeyPart::Hash { column, .. } => {
                Some(*column)
            }
            KeyPart::Suffix(_) => None,
        })
    }
}

impl KeyPart {
    fn text(&self, row: &Row, chance: &mut Chance) -> String {
        match self {
            KeyPart::Value { column, .. } => text_of(&row.values[*column]),
            KeyPart::Period { period, of_writing: true, .. } => period.render(row.time),
            KeyPart::Period { period, column, .. } => period_text(*period, &row.values[*column]),
            KeyPart::Suffix(buckets) => chance.below(u64::from(*buckets)).to_string(),
            KeyPart::Hash { column, buckets } => bucket(&text_of(&row.values[*column]), *buckets),
        }
    }
}

/// The paths that the workload names, each once. Every one is a value of each sampled item, so they have a limit.
fn named_paths<'a>(paths: impl Iterator<Item = &'a str>) -> Result<BTreeSet<String>, AdviceError> {
    let mut named = BTreeSet::new();
    for path in paths {
        named.insert(normal(path));
        if named.len() > limits::NAMED_PATHS_MAX {
            let what = "paths named by operations and candidates";
            return Err(AdviceError::TooMany { what, limit: limits::NAMED_PATHS_MAX });
        }
    }
    Ok(named)
}

/// The period that a time in an item lies in, as synthetic keys contain it; what is no time stays as it is.
pub fn period_text(period: Period, value: &KeyComponent) -> String {
    let text = text_of(value);
    calendar::parse(&text).map_or(text, |(time, _)| period.render(time))
}

/// The bucket of a computed suffix.
pub fn bucket(text: &str, buckets: u32) -> String {
    (chance::hash(text) % u64::from(buckets.max(1))).to_string()
}

/// A value as a person reads it, and as synthetic keys contain it.
pub fn text_of(value: &KeyComponent) -> String {
    match value {
        KeyComponent::Str(text) => text.clone(),
        KeyComponent::Number(number) => number.to_string(),
        KeyComponent::Bool(truth) => truth.to_string(),
        KeyComponent::Null => "null".to_owned(),
        KeyComponent::Undefined => "(none)".to_owned(),
        KeyComponent::Exact(key) => format!("{key:?}"),
        KeyComponent::Infinity => "(infinity)".to_owned(),
    }
}

/// A key for people; what would steer a terminal is left out.
pub fn label(key: &PartitionKey) -> String {
    let texts: Vec<String> = key.components().iter().map(text_of).collect();
    texts.join(" / ").replace(|character: char| character.is_control(), "?")
}

/// One spelling for each path, so that `/a` and `/"a"` are the same.
fn normal(path: &str) -> String {
    Path::parse_property(path).map_or_else(|_| path.to_owned(), |path| path.to_string())
}
