//! What the rows of an answer must be, as far as the query decides it.
//!
//! An order leaves open how equal keys are arranged, TOP without an order leaves open which rows come, and equal
//! values have several forms (`1` and `1.0`, members of an object in any order). Everything else is exact.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::{Number, Value};

use super::query::Query;

/// Properties that the server adds; they differ between containers.
const SYSTEM: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// The rows of a query before TOP and OFFSET, and how much of their order counts.
#[derive(Debug)]
pub struct Expected {
    rows: Vec<String>,
    /// Equal for rows whose order among each other is free; strictly different between groups.
    groups: Vec<String>,
    offset: usize,
    limit: usize,
}

impl Expected {
    /// Asks an oracle that runs the text of a query over all documents.
    pub fn of(
        query: &Query,
        oracle: &mut dyn FnMut(&str) -> Result<Vec<Value>, String>,
    ) -> Result<Expected, String> {
        let (offset, limit) = query.window();
        let (rows, groups) = match query.keyed() {
            Some(keyed) => {
                let found = oracle(&keyed)?;
                let pairs = found.iter().filter_map(|pair| Some((pair["row"].get(0)?, &pair["keys"])));
                pairs.map(|(row, keys)| (canonical(row), canonical(keys))).unzip()
            }
            None => {
                let rows: Vec<String> = oracle(&query.unlimited().text())?.iter().map(canonical).collect();
                let groups = match query.is_ordered_by_row() {
                    true => rows.clone(),
                    false => vec![String::new(); rows.len()],
                };
                (rows, groups)
            }
        };
        Ok(Expected { rows, groups, offset, limit })
    }

    /// The rows of an ordered query that come behind one of its own, with the condition that says so. Only for
    /// queries that answer all their rows.
    pub fn behind(
        query: &Query,
        choose: usize,
        oracle: &mut dyn FnMut(&str) -> Result<Vec<Value>, String>,
    ) -> Result<Option<(String, Expected)>, String> {
        let (Some(keyed), (0, usize::MAX)) = (query.keyed(), query.window()) else { return Ok(None) };
        let found = oracle(&keyed)?;
        let Some(chosen) = found.get(choose % found.len().max(1)) else { return Ok(None) };
        let Some(filter) = query.resume_filter(&chosen["keys"]) else { return Ok(None) };
        let pairs = found.iter().filter(|pair| query.is_behind(&pair["keys"], &chosen["keys"]));
        let pairs = pairs.filter_map(|pair| Some((pair["row"].get(0)?, &pair["keys"])));
        let (rows, groups) = pairs.map(|(row, keys)| (canonical(row), canonical(keys))).unzip();
        Ok(Some((filter, Expected { rows, groups, offset: 0, limit: usize::MAX })))
    }

    pub fn len(&self) -> usize {
        self.rows.len().saturating_sub(self.offset).min(self.limit)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says what is wrong with an answer.
    pub fn check(&self, answer: &[String]) -> Result<(), String> {
        if answer.len() != self.len() {
            return Err(format!(
                "{} rows instead of {}: {}",
                answer.len(),
                self.len(),
                self.difference(answer)
            ));
        }
        let mut place = 0;
        while place < answer.len() {
            let group = &self.groups[self.offset + place];
            let first = self.groups.iter().position(|other| other == group).unwrap_or(0);
            let end = self.groups.iter().rposition(|other| other == group).map_or(first, |last| last + 1);
            let until = (end - self.offset).min(answer.len());
            if let Some(row) = surplus(&answer[place..until], &self.rows[first..end]) {
                let right = surplus(&self.rows[first..end], &answer[place..until]).unwrap_or_default();
                return Err(format!(
                    "rows {place} to {until} hold {row} and not {right}; their keys are {group}"
                ));
            }
            place = until;
        }
        Ok(())
    }

    fn difference(&self, answer: &[String]) -> String {
        match (surplus(answer, &self.rows), surplus(&self.rows, answer)) {
            (Some(row), _) => format!("{row} should not be there, or not so often"),
            (_, Some(row)) => format!("{row} is missing"),
            _ => "the window is wrong".to_owned(),
        }
    }
}

/// A row that is more often on one side than on the other.
fn surplus(side: &[String], other: &[String]) -> Option<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    other.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    let extra = side.iter().find(|row| match counts.get_mut(row.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    extra.cloned()
}

/// Text that is the same exactly for equal values, without what the server adds to items.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&plain(number)),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> =
                fields.keys().filter(|name| !SYSTEM.contains(&name.as_str())).collect();
            names.sort();
            out.push('{');
            for name in names {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(&fields[name], out);
                out.push(',');
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// A number that both forms of it share.
fn plain(number: &Number) -> String {
    let double = number.as_f64().unwrap_or(f64::NAN);
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None if double.fract() == 0.0 && double.abs() < 9.2e18 => (double as i64).to_string(),
        // Readers of JSON may miss the last bit of a fraction, and averages are made in several ways.
        None => format!("{double:.13e}"),
    }
}

/// The order of the query language over all types; nothing comes before everything.
pub fn order(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else { return a.is_some().cmp(&b.is_some()) };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => {
            let ((a, lost_a), (b, lost_b)) = (double(a), double(b));
            a.partial_cmp(&b).unwrap_or(Ordering::Equal).then(lost_a.cmp(&lost_b))
        }
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| order(Some(a), Some(b)));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let sorted = |object: &serde_json::Map<String, Value>| {
                let mut fields: Vec<_> =
                    object.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                fields
            };
            let (a, b) = (sorted(a), sorted(b));
            let pairs =
                a.iter().zip(&b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| order(Some(&a.1), Some(&b.1))));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// The nearest double, and what an integer loses by becoming one.
fn double(number: &Number) -> (f64, i128) {
    let double = number.as_f64().unwrap_or(f64::NAN);
    (double, number.as_i64().map_or(0, |integer| i128::from(integer) - double as i128))
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expected(rows: &[&str], groups: &[&str], offset: usize, limit: usize) -> Expected {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Expected { rows: owned(rows), groups: owned(groups), offset, limit }
    }

    #[test]
    fn only_what_the_order_decides_is_compared() {
        let ties = expected(&["a", "b", "c", "d"], &["1", "2", "2", "3"], 0, usize::MAX);
        let window = expected(&["a", "b", "c", "d"], &["1", "2", "2", "3"], 1, 1);
        let bag = expected(&["a", "a", "b"], &["", "", ""], 0, usize::MAX);
        for (expected, answer, right) in [
            (&ties, "abcd", true),
            (&ties, "acbd", true),
            (&ties, "bacd", false),
            (&ties, "abc", false),
            (&ties, "abbd", false),
            (&window, "b", true),
            (&window, "c", true),
            (&window, "a", false),
            (&window, "", false),
            (&bag, "aba", true),
            (&bag, "abb", false),
        ] {
            let answer: Vec<String> = answer.chars().map(String::from).collect();
            assert_eq!(expected.check(&answer).is_ok(), right, "{answer:?} for {expected:?}");
        }
    }

    #[test]
    fn equal_values_have_one_form() {
        for (a, b) in [
            (json!(1), json!(1.0)),
            (json!(0), json!(-0.0)),
            (json!({"a": 1, "b": [2.0]}), json!({"b": [2], "a": 1})),
            (json!({"id": "x", "_ts": 1}), json!({"id": "x", "_ts": 2, "_rid": "r"})),
        ] {
            assert_eq!(canonical(&a), canonical(&b));
        }
        assert_ne!(
            canonical(&json!(9_007_199_254_740_993_i64)),
            canonical(&json!(9_007_199_254_740_992_i64))
        );
        assert_ne!(canonical(&json!("1")), canonical(&json!(1)));
    }

    #[test]
    fn values_are_ordered_by_type_and_then_by_value() {
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(-1.5),
            json!(9_007_199_254_740_992_i64),
            json!(9_007_199_254_740_993_i64),
            json!(""),
            json!("a"),
            json!([]),
            json!([1]),
            json!({}),
            json!({"a": 1}),
        ];
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(order(Some(a), Some(b)), i.cmp(&j), "{a} and {b}");
            }
            assert!(order(None, Some(a)).is_lt());
        }
    }
}
