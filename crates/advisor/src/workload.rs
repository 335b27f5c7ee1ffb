//! The workload file: what is stored, how it grows, and which operations run how often.
//!
//! The format is JSON and is documented in `docs/advisor.md`. A recording of the server has the same form.

use std::collections::BTreeMap;

use orrery_doc::Path;
use serde::{Deserialize, Serialize};

use crate::calendar::{Period, parse_date};
use crate::error::AdviceError;
use crate::limits;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workload {
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `YYYY-MM-DD`; the day of the report when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub today: Option<String>,
    /// RU/s that the container has or will have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Physical partitions that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    #[serde(default)]
    pub items: Items,
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Candidate keys; see [`crate::Candidate`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Items {
    /// Items stored today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<f64>,
    /// Days in which they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_days: Option<f64>,
    /// Items that are added each day; by default what the operations create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<f64>,
    /// How far to look ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon_days: Option<f64>,
    /// Days after which items expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_days: Option<f64>,
    /// Bytes of an item, and terms that it has in the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<f64>,
    /// What is at the paths of an item, when no sample says it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Field>,
    /// Paths of a sample that tell when an item was written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub times: BTreeMap<String, Period>,
    /// How many values a path really has, where a sample is too small to tell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub distinct: BTreeMap<String, f64>,
}

/// What is at one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Field {
    /// Another value in each item.
    Unique {
        #[serde(default)]
        prefix: String,
    },
    /// Some of many values.
    Values { groups: Vec<Group> },
    /// One of few values, each with its weight.
    Choice { values: BTreeMap<String, f64> },
    /// Decided by the value at another path: each of its values has one of these for good.
    Per { of: String, values: BTreeMap<String, f64> },
    /// When the item was written.
    Time { period: Period },
}

/// Values that are alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    #[serde(default)]
    pub prefix: String,
    pub count: u64,
    /// How often each value occurs, compared with those of other groups.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operation {
    pub name: String,
    pub kind: Kind,
    pub per_second: f64,
    /// What a read or query knows of the items that it wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// How old the items are at most that it touches; 0 is what is being written now.
    /// By default creates touch what is new, and all others any item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_days: Option<f64>,
    /// Bytes of the items, if not as in `items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Items that a query returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<f64>,
    /// Index terms that an update changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<f64>,
    /// What the items of a transaction have in common, and how many it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<u32>,
    /// Items that some of these requests touched; without any, they touch all items alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<Touched>,
}

/// An item, and how many of the requests that were looked at touched it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touched {
    #[serde(default = "once")]
    pub times: u32,
    pub item: serde_json::Value,
}

fn once() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    Read,
    Query,
    Transaction,
}

/// A path whose value the request knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Filter {
    /// One value.
    Equal(String),
    /// Several values (`IN`), or for a time all values of the last days.
    Wide(WideFilter),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideFilter {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<f64>,
}

impl Filter {
    pub fn path(&self) -> &str {
        match self {
            Filter::Equal(path) => path,
            Filter::Wide(wide) => &wide.path,
        }
    }

    /// How many values it names at once.
    pub fn values(&self) -> usize {
        match self {
            Filter::Equal(_) => 1,
            Filter::Wide(wide) => wide.values.unwrap_or(1) as usize,
        }
    }

    /// The span of time that it names.
    pub fn days(&self) -> Option<f64> {
        match self {
            Filter::Equal(_) => None,
            Filter::Wide(wide) => wide.days,
        }
    }
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Create => "create",
            Kind::Upsert => "upsert",
            Kind::Replace => "replace",
            Kind::Patch => "patch",
            Kind::Delete => "delete",
            Kind::Read => "read",
            Kind::Query => "query",
            Kind::Transaction => "transaction",
        }
    }

    /// Whether the request must find items by what it knows of them.
    pub fn searches(self) -> bool {
        matches!(self, Kind::Read | Kind::Query)
    }
}

impl Operation {
    pub fn within_days(&self) -> Option<f64> {
        let newest = matches!(self.kind, Kind::Create | Kind::Transaction).then_some(0.0);
        self.within_days.or(newest)
    }

    pub fn writes(&self) -> u32 {
        self.writes.unwrap_or(2).max(1)
    }
}

impl Workload {
    pub fn from_json(text: &[u8]) -> Result<Workload, AdviceError> {
        Ok(serde_json::from_slice(text)?)
    }

    /// Refuses what would make the figures meaningless.
    pub fn check(&self) -> Result<(), AdviceError> {
        if self.operations.len() > limits::OPERATIONS_MAX {
            return Err(AdviceError::TooMany { what: "operations", limit: limits::OPERATIONS_MAX });
        }
        let items = &self.items;
        for (what, count) in [
            ("fields", items.fields.len()),
            ("paths in items.times", items.times.len()),
            ("paths in items.distinct", items.distinct.len()),
        ] {
            if count > limits::FIELDS_MAX {
                return Err(AdviceError::TooMany { what, limit: limits::FIELDS_MAX });
            }
        }
        check_amount("throughput", self.throughput, 1e12)?;
        self.items.check()?;
        for operation in &self.operations {
            operation.check().map_err(|(what, why)| AdviceError::Workload {
                place: format!("operation {:?}, {what}", operation.name),
                why,
            })?;
        }
        Ok(())
    }

    pub fn today(&self, otherwise: f64) -> Result<f64, AdviceError> {
        let Some(text) = &self.today else { return Ok(otherwise) };
        parse_date(text).ok_or_else(|| AdviceError::Workload {
            place: "today".to_owned(),
            why: format!("{text:?} is not a date such as 2026-01-15"),
        })
    }

    /// Every path that operations speak of.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(|operation| {
            operation.filters.iter().map(Filter::path).chain(operation.together.iter().map(String::as_str))
        })
    }
}

impl Items {
    fn check(&self) -> Result<(), AdviceError> {
        check_amount("items.stored", self.stored, 1e18)?;
        check_amount("items.historyDays", self.history_days, limits::HORIZON_DAYS_MAX)?;
        check_amount("items.perDay", self.per_day, 1e15)?;
        check_amount("items.horizonDays", self.horizon_days, limits::HORIZON_DAYS_MAX)?;
        check_amount("items.lifetimeDays", self.lifetime_days, limits::HORIZON_DAYS_MAX)?;
        check_amount("items.bytes", self.bytes, orrery_prices::limits::ITEM_BYTES_MAX as f64)?;
        check_amount("items.terms", self.terms, 1e6)?;
        for (path, count) in &self.distinct {
            check_path("items.distinct", path)?;
            check_amount(&format!("items.distinct of {path}"), Some(*count), 1e18)?;
        }
        for path in self.times.keys() {
            check_path("items.times", path)?;
        }
        for (path, field) in &self.fields {
            check_path("items.fields", path)?;
            field.check(&format!("items.fields of {path}"))?;
        }
        Ok(())
    }
}

impl Field {
    fn check(&self, place: &str) -> Result<(), AdviceError> {
        let weights: Vec<f64> = match self {
            Field::Time { .. } => return Ok(()),
            Field::Unique { prefix } => return check_name(place, prefix),
            Field::Values { groups } if groups.len() > limits::GROUPS_MAX => {
                return Err(AdviceError::TooMany { what: "groups of a field", limit: limits::GROUPS_MAX });
            }
            Field::Values { groups } => {
                groups.iter().try_for_each(|group| check_name(place, &group.prefix))?;
                groups.iter().map(|group| group.weight * group.count as f64).collect()
            }
            Field::Choice { values } | Field::Per { values, .. } => {
                values.keys().try_for_each(|value| check_name(place, value))?;
                values.values().copied().collect()
            }
        };
        if weights.len() > limits::CHOICES_MAX {
            return Err(AdviceError::TooMany { what: "values of a field", limit: limits::CHOICES_MAX });
        }
        for weight in &weights {
            check_amount(place, Some(*weight), 1e24)?;
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            let why = "at least one value must have a weight above 0".to_owned();
            return Err(AdviceError::Workload { place: place.to_owned(), why });
        }
        Ok(())
    }
}

impl Operation {
    fn check(&self) -> Result<(), (&'static str, String)> {
        amount(Some(self.per_second), 1e9).map_err(|why| ("perSecond", why))?;
        amount(self.within_days, limits::HORIZON_DAYS_MAX).map_err(|why| ("withinDays", why))?;
        amount(self.bytes, orrery_prices::limits::ITEM_BYTES_MAX as f64).map_err(|why| ("bytes", why))?;
        amount(self.returns, 1e6).map_err(|why| ("returns", why))?;
        amount(self.terms, 1e6).map_err(|why| ("terms", why))?;
        if self.writes.is_some_and(|writes| writes > limits::WRITES_MAX) {
            return Err(("writes", format!("must be at most {}", limits::WRITES_MAX)));
        }
        if self.filters.len() > limits::FILTERS_MAX || self.together.len() > limits::FILTERS_MAX {
            return Err(("filters", format!("at most {} paths may be named", limits::FILTERS_MAX)));
        }
        if self.touched.len() > limits::TOUCHED_MAX {
            return Err(("touched", format!("at most {} items may be named", limits::TOUCHED_MAX)));
        }
        for filter in &self.filters {
            path(filter.path()).map_err(|why| ("filters", why))?;
            amount(filter.days(), limits::HORIZON_DAYS_MAX).map_err(|why| ("days", why))?;
            if filter.values() == 0 || filter.values() > limits::KEYS_ASKED_MAX {
                return Err(("values", format!("must be from 1 to {}", limits::KEYS_ASKED_MAX)));
            }
        }
        self.together.iter().try_for_each(|text| path(text).map_err(|why| ("together", why)))
    }
}

fn check_amount(place: &str, amount: Option<f64>, most: f64) -> Result<(), AdviceError> {
    self::amount(amount, most).map_err(|why| AdviceError::Workload { place: place.to_owned(), why })
}

fn check_name(place: &str, text: &str) -> Result<(), AdviceError> {
    if text.len() <= limits::NAME_BYTES_MAX {
        return Ok(());
    }
    let why = format!("values and prefixes have at most {} bytes", limits::NAME_BYTES_MAX);
    Err(AdviceError::Workload { place: place.to_owned(), why })
}

fn check_path(place: &str, text: &str) -> Result<(), AdviceError> {
    path(text).map_err(|why| AdviceError::Workload { place: place.to_owned(), why })
}

fn amount(amount: Option<f64>, most: f64) -> Result<(), String> {
    match amount {
        Some(amount) if !(0.0..=most).contains(&amount) => Err(format!("must be from 0 to {most}")),
        _ => Ok(()),
    }
}

fn path(text: &str) -> Result<(), String> {
    Path::parse_property(text).map(drop).map_err(|why| format!("{text:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_read_and_written_alike() {
        let text = r#"{"name":"n","items":{"stored":10.0,"fields":{"/a":{"kind":"values","groups":[{"prefix":"x","count":5,"weight":2.0}]}}},
            "operations":[{"name":"q","kind":"query","perSecond":1.5,"filters":["/a",{"path":"/t","days":30.0}]}]}"#;
        let workload = Workload::from_json(text.as_bytes()).expect("the text is a workload");
        workload.check().expect("its figures make sense");
        let again = serde_json::to_string(&workload).expect("a workload can be written");
        let again = Workload::from_json(again.as_bytes()).expect("what was written can be read");
        assert_eq!(format!("{workload:?}"), format!("{again:?}"));
    }

    #[test]
    fn more_paths_about_a_sample_than_it_may_have_are_refused() {
        for (what, value) in [("times", "\"day\""), ("distinct", "5")] {
            let with = |count: usize| {
                let paths: Vec<String> = (0..count).map(|n| format!("\"/p{n}\":{value}")).collect();
                let text = format!("{{\"items\":{{\"{what}\":{{{}}}}}}}", paths.join(","));
                Workload::from_json(text.as_bytes()).expect("the text is a workload").check()
            };
            with(limits::FIELDS_MAX).expect("as many as there may be");
            assert!(matches!(with(limits::FIELDS_MAX + 1), Err(AdviceError::TooMany { .. })), "{what}");
        }
    }

    #[test]
    fn figures_without_a_meaning_are_refused() {
        for text in [
            r#"{"operations":[{"name":"x","kind":"read","perSecond":-1}]}"#,
            r#"{"operations":[{"name":"x","kind":"read","perSecond":1,"filters":["a"]}]}"#,
            r#"{"operations":[{"name":"x","kind":"transaction","perSecond":1,"writes":101}]}"#,
            r#"{"items":{"fields":{"/a":{"kind":"choice","values":{}}}}}"#,
            r#"{"items":{"fields":{"/a":{"kind":"choice","values":{"x":-1,"y":2}}}}}"#,
            r#"{"items":{"bytes":1e12}}"#,
        ] {
            let workload = Workload::from_json(text.as_bytes()).expect(text);
            assert!(workload.check().is_err(), "{text}");
        }
        for text in [r#"{"operation":[]}"#, r#"{"operations":[{"name":"x","kind":"dance","perSecond":1}]}"#] {
            assert!(Workload::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
