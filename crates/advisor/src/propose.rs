//! Candidates where nobody named any: what operations ask for, alone, one under the other, and with the time.

use crate::calendar::Period;
use crate::candidate::{Candidate, Level, Part};
use crate::limits;
use crate::population::Population;
use crate::workload::{Filter, Workload};

/// A column with fewer values is no key of its own.
const VALUES_MIN: f64 = 10.0;
/// Columns that are tried as they are.
const SINGLES: usize = 5;

pub fn candidates(workload: &Workload, population: &Population) -> Vec<Candidate> {
    let asked = asked(workload, population);
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |candidate: Candidate| {
        if found.len() < limits::PROPOSALS_MAX && !found.contains(&candidate) {
            found.push(candidate);
        }
    };
    let path = |column: usize| population.columns[column].path.as_str();
    let is_time = |column: usize| population.columns[column].period.is_some();
    let plain: Vec<usize> = asked.iter().copied().filter(|column| !is_time(*column)).collect();
    plain.iter().take(SINGLES).for_each(|column| add(Candidate::path(path(*column))));
    if population.column("/id").is_some() {
        add(Candidate::path("/id"));
    }
    // Fewer values come first: a prefix must be worth asking for.
    let mut levels: Vec<usize> = plain.iter().copied().take(2).collect();
    levels.sort_by(|one, other| values(population, *one).total_cmp(&values(population, *other)));
    if let [first, second] = levels[..] {
        add(Candidate::levels(&[path(first), path(second)]));
    }
    if let Some(first) = plain.first().filter(|_| population.column("/id").is_some())
        && path(*first) != "/id"
    {
        add(Candidate::levels(&[path(*first), "/id"]));
    }
    let time = (0..population.columns.len()).find(|column| is_time(*column));
    if let (Some(first), Some(time)) = (plain.first(), time) {
        add(with_month(path(*first), path(time), population.columns[time].period));
    }
    if let Some(first) = plain.first() {
        add(with_suffix(path(*first)));
    }
    for column in 0..population.columns.len() {
        if !is_time(column) && values(population, column) >= VALUES_MIN {
            add(Candidate::path(path(column)));
        }
    }
    found
}

/// The columns that operations name, those of the most requests first.
fn asked(workload: &Workload, population: &Population) -> Vec<usize> {
    let mut rates = vec![0.0; population.columns.len()];
    for operation in &workload.operations {
        let filters = operation.filters.iter().map(Filter::path);
        for path in filters.chain(operation.together.iter().map(String::as_str)) {
            if let Some(column) = population.column(path) {
                rates[column] += operation.per_second;
            }
        }
    }
    let mut columns: Vec<usize> = (0..rates.len()).filter(|column| rates[*column] > 0.0).collect();
    columns.sort_by(|one, other| rates[*other].total_cmp(&rates[*one]));
    columns
}

fn values(population: &Population, column: usize) -> f64 {
    population.distinct_of(column).unwrap_or(f64::INFINITY)
}

fn with_month(path: &str, time: &str, period: Option<Period>) -> Candidate {
    let month = match period {
        Some(Period::Month) => Part::Path(time.to_owned()),
        _ => Part::Period(Period::Month, time.to_owned()),
    };
    Candidate { levels: vec![Level { parts: vec![Part::Path(path.to_owned()), month] }] }
}

fn with_suffix(path: &str) -> Candidate {
    Candidate { levels: vec![Level { parts: vec![Part::Path(path.to_owned()), Part::Suffix(10)] }] }
}
