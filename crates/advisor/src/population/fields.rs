//! Items made from the description of their fields.

use std::collections::BTreeMap;

use orrery_doc::KeyComponent;

use super::{Column, Population, Source, normal, text_of};
use crate::calendar::Period;
use crate::chance::{self, Chance};
use crate::error::AdviceError;
use crate::workload::{Field, Group, Items};

/// Bytes of an item whose size nobody gave.
const BYTES_DEFAULT: f64 = 1024.0;

pub struct Fields {
    columns: Vec<Maker>,
    /// Columns in an order in which none comes before the one that decides it.
    order: Vec<usize>,
}

enum Maker {
    Unique { prefix: String },
    Values { groups: Vec<Group>, total: f64 },
    Choice(Choice),
    Per { of: usize, choice: Choice },
    Time(Period),
}

struct Choice {
    values: Vec<String>,
    /// The sum of the weights up to and with each value.
    sums: Vec<f64>,
    peak: f64,
}

impl Fields {
    pub fn population(items: &Items) -> Result<Population, AdviceError> {
        let paths: Vec<String> = items.fields.keys().map(|path| normal(path)).collect();
        let makers = items.fields.iter().map(|(path, field)| Maker::new(path, field, &paths));
        let makers = makers.collect::<Result<Vec<_>, _>>()?;
        let order = order(&makers, &paths)?;
        let column = |(path, maker): (&String, &Maker)| {
            let period = if let Maker::Time(period) = maker { Some(*period) } else { None };
            Column { path: path.clone(), period, missing: 0.0, longest: 0 }
        };
        let columns = paths.iter().zip(&makers).map(column).collect();
        let terms = makers.len() as f64;
        let source = Source::Fields(Fields { columns: makers, order });
        Ok(Population { columns, source, bytes: BYTES_DEFAULT, terms, sampled: None, notes: Vec::new() })
    }

    pub fn draw(&self, chance: &mut Chance, time: f64) -> Vec<KeyComponent> {
        let mut values = vec![KeyComponent::Undefined; self.columns.len()];
        for &column in &self.order {
            let text = match &self.columns[column] {
                Maker::Unique { prefix } => format!("{prefix}{:016x}", chance.next()),
                Maker::Values { groups, total } => draw_of(groups, *total, chance),
                Maker::Choice(choice) => choice.at(chance.unit()).to_owned(),
                Maker::Per { of, choice } => {
                    let decided_by = text_of(&values[*of]);
                    let unit = (chance::hash(&decided_by) >> 11) as f64 / (1u64 << 53) as f64;
                    choice.at(unit).to_owned()
                }
                Maker::Time(period) => period.render(time),
            };
            values[column] = KeyComponent::Str(text);
        }
        values
    }

    /// The share of the most frequent combination as far as it can be computed, and the columns whose share must
    /// be counted.
    pub fn peak_of(&self, columns: &[usize]) -> (f64, Vec<usize>) {
        let mut share = 1.0;
        let mut counted = Vec::new();
        for &column in columns {
            let others: Vec<usize> = columns.iter().copied().filter(|other| *other != column).collect();
            match &self.columns[column] {
                Maker::Unique { .. } => share = 0.0,
                Maker::Values { groups, total } => {
                    share *= groups.iter().map(|group| group.weight).fold(0.0, f64::max) / total;
                }
                Maker::Choice(choice) => share *= choice.peak,
                Maker::Per { .. } if self.decides(&others, column) => {}
                Maker::Per { .. } => counted.push(column),
                Maker::Time(_) => {}
            }
        }
        (share, counted)
    }

    pub fn distinct_of(&self, column: usize) -> Option<f64> {
        match &self.columns[column] {
            Maker::Unique { .. } => None,
            Maker::Values { groups, .. } => Some(groups.iter().map(|group| group.count as f64).sum()),
            Maker::Choice(choice) | Maker::Per { choice, .. } => Some(choice.values.len() as f64),
            Maker::Time(_) => Some(1.0),
        }
    }

    pub fn decides(&self, common: &[usize], column: usize) -> bool {
        // The order has no cycles, so this ends.
        match &self.columns[column] {
            Maker::Per { of, .. } => common.contains(of) || self.decides(common, *of),
            _ => common.contains(&column),
        }
    }
}

impl Maker {
    fn new(path: &str, field: &Field, paths: &[String]) -> Result<Maker, AdviceError> {
        Ok(match field {
            Field::Unique { prefix } => Maker::Unique { prefix: prefix.clone() },
            Field::Values { groups } => {
                let total = groups.iter().map(|group| group.count as f64 * group.weight).sum();
                Maker::Values { groups: groups.clone(), total }
            }
            Field::Choice { values } => Maker::Choice(Choice::new(values)),
            Field::Per { of, values } => {
                let wanted = normal(of);
                let of =
                    paths.iter().position(|path| *path == wanted).ok_or_else(|| AdviceError::Workload {
                        place: format!("items.fields of {path}"),
                        why: format!("there is no field {of}"),
                    })?;
                Maker::Per { of, choice: Choice::new(values) }
            }
            Field::Time { period } => Maker::Time(*period),
        })
    }
}

impl Choice {
    fn new(values: &BTreeMap<String, f64>) -> Choice {
        let mut total = 0.0;
        let sum = |weight: &f64| {
            total += weight;
            total
        };
        let sums: Vec<f64> = values.values().map(sum).collect();
        let most = values.values().copied().fold(0.0, f64::max);
        Choice { values: values.keys().cloned().collect(), sums, peak: most / total }
    }

    fn at(&self, unit: f64) -> &str {
        let wanted = unit * self.sums.last().copied().unwrap_or(0.0);
        let at = self.sums.partition_point(|sum| *sum <= wanted);
        self.values.get(at).or(self.values.last()).map_or("", String::as_str)
    }
}

fn draw_of(groups: &[Group], total: f64, chance: &mut Chance) -> String {
    let mut left = chance.unit() * total;
    let mut chosen = groups.last();
    for group in groups {
        left -= group.weight * group.count as f64;
        if left < 0.0 {
            chosen = Some(group);
            break;
        }
    }
    chosen.map_or_else(String::new, |group| format!("{}{}", group.prefix, chance.below(group.count)))
}

/// Puts deciding columns before those that they decide.
fn order(makers: &[Maker], paths: &[String]) -> Result<Vec<usize>, AdviceError> {
    let mut order = Vec::new();
    while order.len() < makers.len() {
        let ready = |column: &usize| match &makers[*column] {
            Maker::Per { of, .. } => order.contains(of),
            _ => true,
        };
        let next: Vec<usize> =
            (0..makers.len()).filter(|column| !order.contains(column)).filter(ready).collect();
        if next.is_empty() {
            let stuck = (0..makers.len()).find(|column| !order.contains(column)).unwrap_or(0);
            return Err(AdviceError::Workload {
                place: format!("items.fields of {}", paths[stuck]),
                why: "fields decide each other in a circle".to_owned(),
            });
        }
        order.extend(next);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use crate::workload::Workload;

    fn population(fields: &str) -> Result<Population, AdviceError> {
        let workload = Workload::from_json(format!(r#"{{"items":{{"fields":{fields}}}}}"#).as_bytes())?;
        Population::of(&workload, &[], &[], 0.0)
    }

    #[test]
    fn the_largest_share_is_computed_exactly() {
        let cars = population(
            r#"{"/id":{"kind":"unique"},"/month":{"kind":"time","period":"month"},
                "/device":{"kind":"values","groups":[{"prefix":"c","count":980},{"prefix":"h","count":20,"weight":6}]},
                "/model":{"kind":"per","of":"/device","values":{"A":3,"B":1}}}"#,
        )
        .expect("the fields make sense");
        let peak = |text: &str| {
            let key = cars.resolve(&Candidate::parse(text).expect(text)).expect(text);
            cars.peak_share(&key)
        };
        let device = 6.0 / (980.0 + 120.0);
        assert_eq!(peak("/device"), device);
        assert_eq!(peak("/device+/month"), device);
        assert_eq!(peak("/device,/model"), device);
        assert_eq!(peak("/month"), 1.0);
        assert_eq!(peak("/id"), 0.0);
        assert_eq!(peak("/month+suffix(10)"), 0.1);
        assert_eq!(peak("/month+hash(/id,10)"), 0.1);
        assert!((peak("/model") - 0.75).abs() < 0.06, "{}", peak("/model"));
    }

    #[test]
    fn a_field_in_a_circle_is_refused() {
        let circle = r#"{"/a":{"kind":"per","of":"/b","values":{"x":1}},"/b":{"kind":"per","of":"/a","values":{"x":1}}}"#;
        assert!(population(circle).is_err());
        assert!(population(r#"{"/a":{"kind":"per","of":"/nowhere","values":{"x":1}}}"#).is_err());
    }
}
