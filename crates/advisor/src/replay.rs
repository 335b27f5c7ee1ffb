//! Sends the workload to the simulated partitions, with the real hash and the real prices.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use orrery_doc::{KeyComponent, PartitionKey, epk, prefix_range};
use orrery_prices::limits::{THROUGHPUT_MIN, THROUGHPUT_STEP};
use orrery_prices::{Consistency, Meter, ru};

use crate::World;
use crate::chance::Chance;
use crate::error::AdviceError;
use crate::layout::Layout;
use crate::limits;
use crate::population::{Busy, Key, KeyPart, Population, Row, bucket, label, period_text, text_of};
use crate::workload::{Filter, Kind, Operation, Workload};

/// Requests of all operations together that one replay sends.
const DRAWS_MAX: usize = 1_000_000;
/// Requests of one operation at least.
const DRAWS_LEAST: usize = 200;
/// Draws that may bring nothing new when several values are wanted.
const VAIN_TRIES_MAX: usize = 16;
/// Keys whose load is kept.
const KEYS_KEPT: usize = 200_000;
/// Index terms that an update changes when nobody says how many.
const TERMS_CHANGED: f64 = 2.0;
/// The share of its throughput that a container should need, so that it has something left.
const USED: f64 = 0.7;

/// What came of the replay.
pub struct Replay {
    /// RU/s of each physical partition, and those of writes in all of them.
    pub loads: Vec<f64>,
    pub writes: f64,
    pub operations: Vec<Outcome>,
    /// RU/s of logical partitions, with the physical one that each lies in.
    pub keys: BTreeMap<String, (usize, f64)>,
}

/// How one operation fared.
pub struct Outcome {
    /// Mean request units of one request.
    pub units: f64,
    /// Mean physical partitions and mean keys that one request asks; no keys when it asks everywhere.
    pub partitions: f64,
    pub keys: Option<f64>,
    /// For transactions: whether their items lie in one logical partition.
    pub together: Option<bool>,
}

/// Where the items that a request wants can be.
enum Place {
    Everywhere,
    /// Keys, or prefixes of keys.
    Keys(Vec<PartitionKey>),
}

struct Sender<'a> {
    world: &'a World<'a>,
    key: &'a Key,
    layout: &'a Layout,
    chance: Chance,
    /// What the operation at hand touches, if that is known.
    busy: Option<&'a Busy>,
    replay: Replay,
}

pub fn replay(world: &World<'_>, key: &Key, layout: &Layout) -> Result<Replay, AdviceError> {
    let replay =
        Replay { loads: vec![0.0; layout.len()], writes: 0.0, operations: Vec::new(), keys: BTreeMap::new() };
    let mut sender = Sender { world, key, layout, chance: Chance::new(limits::SEED), busy: None, replay };
    let operations = &world.workload.operations;
    let draws = limits::DRAWS_MIN.max(limits::DRAWS_PER_PARTITION * layout.len());
    let draws = draws.min(DRAWS_MAX / operations.len().max(1)).max(1);
    for (operation, busy) in operations.iter().zip(&world.busy) {
        sender.busy = busy.as_ref();
        let outcome = sender.operation(operation, draws)?;
        sender.replay.operations.push(outcome);
    }
    Ok(sender.replay)
}

/// The RU/s that a container needs if its key is perfect.
pub fn least_throughput(workload: &Workload, population: &Population) -> f64 {
    let prices = workload.operations.iter().map(|operation| {
        let price = match operation.kind {
            Kind::Read => read_price(operation, population),
            Kind::Query => query_price(operation, population, 1),
            Kind::Transaction => write_price(operation, population) * f64::from(operation.writes()),
            _ => write_price(operation, population),
        };
        price * operation.per_second
    });
    let step = f64::from(THROUGHPUT_STEP);
    let needed = prices.sum::<f64>() / USED;
    ((needed / step).ceil() * step).max(f64::from(THROUGHPUT_MIN))
}

impl Sender<'_> {
    fn operation(&mut self, operation: &Operation, draws: usize) -> Result<Outcome, AdviceError> {
        let together = (operation.kind == Kind::Transaction).then(|| {
            let population = self.world.population;
            let common: Vec<usize> =
                operation.together.iter().filter_map(|path| population.column(path)).collect();
            population.keeps_together(&common, self.key)
        });
        let draws = self.draws_of(operation, draws);
        let mut sum = Outcome { units: 0.0, partitions: 0.0, keys: Some(0.0), together };
        let rate = operation.per_second / draws as f64;
        for _ in 0..draws {
            // One draw may itself draw thousands of items, so the number of draws alone bounds no time.
            self.world.check_time()?;
            let row = self.draw(operation);
            let (units, partitions, keys) = match operation.kind {
                Kind::Read | Kind::Query => self.search(operation, &row, rate),
                Kind::Transaction => self.transaction(operation, &row, rate, together == Some(true)),
                _ => self.write(operation, &row, rate),
            };
            sum.units += units;
            sum.partitions += partitions as f64;
            sum.keys = sum.keys.zip(keys).map(|(sum, keys)| sum + keys as f64);
        }
        if !operation.kind.searches() {
            self.replay.writes += sum.units * rate;
        }
        let mean = 1.0 / draws as f64;
        Ok(Outcome {
            units: sum.units * mean,
            partitions: sum.partitions * mean,
            keys: sum.keys.map(|keys| keys * mean),
            together,
        })
    }

    /// A request that asks for many keys stands for many, so fewer of them are enough.
    fn draws_of(&mut self, operation: &Operation, draws: usize) -> usize {
        if !operation.kind.searches() {
            return draws;
        }
        let row = self.draw(operation);
        let keys = match self.place(operation, &row) {
            Place::Keys(keys) => keys.len(),
            Place::Everywhere => return DRAWS_LEAST.min(draws),
        };
        let affordable = DRAWS_MAX / self.world.workload.operations.len() / keys;
        (draws / keys).max(DRAWS_LEAST).min(draws).min(affordable.max(1))
    }

    /// An item that the operation touches.
    fn draw(&mut self, operation: &Operation) -> Row {
        let world = self.world;
        let time = operation.within_days().map(|days| world.today - days * self.chance.unit());
        if let Some(busy) = self.busy {
            return busy.draw(world.population, &mut self.chance, time);
        }
        if let Some(time) = time {
            return world.population.draw(&mut self.chance, time);
        }
        if world.stored.is_empty() {
            return world.population.draw(&mut self.chance, world.today);
        }
        let at = self.chance.below(world.stored.len() as u64) as usize;
        world.stored[at].clone()
    }

    fn write(&mut self, operation: &Operation, row: &Row, rate: f64) -> (f64, usize, Option<usize>) {
        let units = write_price(operation, self.world.population);
        let key = self.key.of(row, &mut self.chance);
        self.load_key(&key, units * rate);
        (units, 1, Some(1))
    }

    fn transaction(
        &mut self,
        operation: &Operation,
        row: &Row,
        rate: f64,
        together: bool,
    ) -> (f64, usize, Option<usize>) {
        let units = write_price(operation, self.world.population);
        let key = self.key.of(row, &mut self.chance);
        let mut partitions = BTreeSet::from([self.load_key(&key, units * rate)]);
        for _ in 1..operation.writes() {
            let other = match together {
                true => key.clone(),
                false => {
                    let other = self.draw(operation);
                    self.key.of(&other, &mut self.chance)
                }
            };
            partitions.insert(self.load_key(&other, units * rate));
        }
        let keys = if together { 1 } else { operation.writes() as usize };
        (units * f64::from(operation.writes()), partitions.len(), Some(keys))
    }

    fn search(&mut self, operation: &Operation, row: &Row, rate: f64) -> (f64, usize, Option<usize>) {
        let population = self.world.population;
        match self.place(operation, row) {
            Place::Keys(keys) if is_one_item(operation, &keys, self.key) => {
                let units = read_price(operation, population);
                self.load_key(&keys[0], units * rate);
                (units, 1, Some(1))
            }
            Place::Keys(keys) => {
                let definition = self.key.definition();
                let ranges = keys.iter().map(|key| self.layout.touched(&prefix_range(definition, key)));
                let partitions: BTreeSet<usize> = ranges.flatten().collect();
                let units = query_price(operation, population, partitions.len());
                if let ([key], true) = (keys.as_slice(), keys[0].is_full(definition)) {
                    self.load_key(key, units * rate);
                } else {
                    self.load_partitions(partitions.iter().copied(), units * rate);
                }
                (units, partitions.len(), Some(keys.len()))
            }
            Place::Everywhere => {
                let all = self.layout.len();
                let units = query_price(operation, population, all);
                self.load_partitions(0..all, units * rate);
                (units, all, None)
            }
        }
    }

    fn load_key(&mut self, key: &PartitionKey, units: f64) -> usize {
        let partition = self.layout.locate(&epk(self.key.definition(), key));
        self.replay.loads[partition] += units;
        let keys = &mut self.replay.keys;
        let label = label(key);
        if keys.len() < KEYS_KEPT || keys.contains_key(&label) {
            keys.entry(label).or_insert((partition, 0.0)).1 += units;
        }
        partition
    }

    fn load_partitions(&mut self, partitions: impl ExactSizeIterator<Item = usize>, units: f64) {
        let each = units / partitions.len().max(1) as f64;
        for partition in partitions {
            self.replay.loads[partition] += each;
        }
    }

    /// Which keys the items can have, by what the request knows.
    fn place(&mut self, operation: &Operation, row: &Row) -> Place {
        let mut keys = vec![PartitionKey::default()];
        for level in &self.key.levels {
            let Some(values) = self.level_values(level, operation, row) else { break };
            if keys.len() * values.len() > limits::KEYS_ASKED_MAX {
                break;
            }
            let longer = |key: &PartitionKey| {
                let append = |value: &KeyComponent| {
                    let mut components = key.components().to_vec();
                    components.push(value.clone());
                    PartitionKey(components)
                };
                values.iter().map(append).collect::<Vec<_>>()
            };
            keys = keys.iter().flat_map(longer).collect();
        }
        if keys[0].is_empty() { Place::Everywhere } else { Place::Keys(keys) }
    }

    /// The values that a level can have, or none when the request cannot know.
    fn level_values(
        &mut self,
        level: &[KeyPart],
        operation: &Operation,
        row: &Row,
    ) -> Option<Vec<KeyComponent>> {
        if let [KeyPart::Value { column, period: None }] = level {
            return self.column_values(*column, operation, row);
        }
        let mut texts = vec![String::new()];
        for (index, part) in level.iter().enumerate() {
            let values = self.part_values(part, operation, row)?;
            if texts.len() * values.len() > limits::KEYS_ASKED_MAX {
                return None;
            }
            let mark = if index == 0 { "" } else { "-" };
            let longer =
                |text: &String| values.iter().map(|value| format!("{text}{mark}{value}")).collect::<Vec<_>>();
            texts = texts.iter().flat_map(longer).collect();
        }
        Some(texts.into_iter().map(KeyComponent::Str).collect())
    }

    fn part_values(&mut self, part: &KeyPart, operation: &Operation, row: &Row) -> Option<Vec<String>> {
        let all = |buckets: u32| (0..buckets).map(|bucket| bucket.to_string()).collect::<Vec<_>>();
        match part {
            KeyPart::Suffix(buckets) => Some(all(*buckets)),
            KeyPart::Hash { column, buckets } => {
                let known = self.column_values(*column, operation, row);
                Some(known.map_or_else(
                    || all(*buckets),
                    |values| {
                        let computed = values.iter().map(|value| bucket(&text_of(value), *buckets));
                        computed.collect::<BTreeSet<_>>().into_iter().collect()
                    },
                ))
            }
            KeyPart::Value { period: Some(period), .. }
            | KeyPart::Period { period, of_writing: true, .. } => {
                let days = self.time_known(operation, *period)?;
                period.touched(row.time, days, limits::KEYS_ASKED_MAX)
            }
            // Several dates of one month are one key, and the one that writes have.
            KeyPart::Period { period, column, .. } => {
                let values = self.column_values(*column, operation, row)?;
                let periods = values.iter().map(|value| period_text(*period, value));
                Some(periods.collect::<BTreeSet<_>>().into_iter().collect())
            }
            KeyPart::Value { column, .. } => {
                let values = self.column_values(*column, operation, row)?;
                Some(values.iter().map(text_of).collect())
            }
        }
    }

    fn column_values(
        &mut self,
        column: usize,
        operation: &Operation,
        row: &Row,
    ) -> Option<Vec<KeyComponent>> {
        let population = self.world.population;
        let filter =
            operation.filters.iter().find(|filter| population.column(filter.path()) == Some(column))?;
        let mut values = vec![row.values[column].clone()];
        // A set tells at once what is known already; a number and its text are different values.
        let name = |value: &KeyComponent| (std::mem::discriminant(value), text_of(value));
        let mut known = HashSet::from([name(&values[0])]);
        // Further values are those of other items; where there are few, some tries in vain are enough.
        let mut vain = 0;
        while values.len() < filter.values() && vain < VAIN_TRIES_MAX {
            let other = self.draw(operation).values[column].clone();
            if known.insert(name(&other)) {
                values.push(other);
            } else {
                vain += 1;
            }
        }
        Some(values)
    }

    /// The span of time that the request names, if it names one exactly enough for a period.
    fn time_known(&self, operation: &Operation, period: crate::Period) -> Option<f64> {
        let population = self.world.population;
        let known = |filter: &Filter| {
            let column = population.column(filter.path())?;
            let own = population.columns[column].period?;
            match filter.days() {
                Some(days) => Some(days),
                // Who knows the day knows the month, but not the other way round.
                None => (own <= period).then_some(0.0),
            }
        };
        operation.filters.iter().filter_map(known).min_by(f64::total_cmp)
    }
}

/// Whether a read can name its item: it knows the whole key, and reads by id.
fn is_one_item(operation: &Operation, keys: &[PartitionKey], key: &Key) -> bool {
    operation.kind == Kind::Read && keys.len() == 1 && keys[0].is_full(key.definition())
}

fn bytes(operation: &Operation, population: &Population) -> u64 {
    operation.bytes.unwrap_or(population.bytes).round() as u64
}

fn read_price(operation: &Operation, population: &Population) -> f64 {
    ru::read(bytes(operation, population), Consistency::Session).total()
}

fn write_price(operation: &Operation, population: &Population) -> f64 {
    let bytes = bytes(operation, population);
    let all = population.terms.round() as u32;
    let changed = operation.terms.unwrap_or(TERMS_CHANGED).round() as u32;
    let written = Meter { items_written: 1, bytes_written: bytes, terms_added: all, ..Meter::default() };
    let updated = Meter {
        items_removed: 1,
        bytes_removed: bytes,
        terms_added: changed,
        terms_removed: changed,
        ..written
    };
    let meter = match operation.kind {
        Kind::Create | Kind::Transaction => written,
        Kind::Patch => Meter { properties_patched: 1, ..updated },
        Kind::Delete => {
            Meter { items_removed: 1, bytes_removed: bytes, terms_removed: all, ..Meter::default() }
        }
        _ => updated,
    };
    ru::write(&meter).total()
}

/// A query that finds its items in some of the partitions it visits.
fn query_price(operation: &Operation, population: &Population, partitions: usize) -> f64 {
    let items = operation.returns.unwrap_or(1.0).round();
    let bytes = items as u64 * bytes(operation, population);
    let meter = Meter {
        index_entries_read: items as u64,
        items_scanned: items as u32,
        bytes_scanned: bytes,
        bytes_returned: bytes,
        ..Meter::default()
    };
    let empty = ru::query(&Meter::default(), Consistency::Session).total();
    ru::query(&meter, Consistency::Session).total() + empty * (partitions.max(1) - 1) as f64
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{Candidate, Settings};

    const BILLS: &str = r#"{"items": {"stored": 1000, "fields": {"/due": {"kind": "choice",
        "values": {"2026-01-05": 1, "2026-01-20": 1}}}}, "operations": [
        {"name": "bill", "kind": "create", "perSecond": 1},
        {"name": "due", "kind": "query", "perSecond": 1, "filters": [{"path": "/due", "values": 2}]}]}"#;

    fn replayed(settings: &Settings) -> Result<Replay, AdviceError> {
        let workload = Workload::from_json(BILLS.as_bytes()).expect("the text is a workload");
        let population = Population::of(&workload, &[], &[], 20_470.0).expect("the items are described");
        let candidate = Candidate::parse("month(/due)").expect("a candidate");
        let key = population.resolve(&candidate).expect("its path is a field");
        let world = World::new(&workload, &population, settings, 20_470.0);
        replay(&world, &key, &world.layout(&key))
    }

    #[test]
    fn a_query_for_dates_of_one_month_asks_for_the_key_that_writes_have() {
        let replay = replayed(&Settings::default()).expect("there is time");
        assert_eq!(replay.keys.keys().collect::<Vec<_>>(), ["2026-01"]);
        assert_eq!(replay.operations[1].keys, Some(1.0));
    }

    #[test]
    fn a_replay_ends_when_its_time_is_over() {
        let settings = Settings { deadline: Some(Instant::now()), ..Settings::default() };
        assert!(matches!(replayed(&settings), Err(AdviceError::TooLong)));
    }
}
