//! Measures of one candidate, its score, and the verdict in words.
//!
//! The score is a geometric mean, so that one bad measure cannot be bought off by good ones, and each kind of fault
//! has a ceiling: a key that will throttle or refuse writes never ranks above one that only costs more to query.

use std::collections::BTreeMap;

use orrery_doc::partition_key::MAX_KEY_BYTES;

use crate::World;
use crate::census::{Clash, Found};
use crate::chance::Chance;
use crate::error::AdviceError;
use crate::layout::Layout;
use crate::limits;
use crate::population::{Key, KeyPart, label};
use crate::replay::{self, Replay};
use crate::report::{
    CandidateReport, Finding, GrowthPoint, Largest, Load, Measures, OperationReport, PartitionReport, TopKey,
    Verdict,
};
use crate::units::{self, rounded};

/// Measures below these are faults.
const EVEN_ENOUGH: f64 = 0.5;
const ROUTED_ENOUGH: f64 = 0.5;
/// The part of the load that writes must have before it matters where they meet.
const WRITES_MATTER: f64 = 0.05;
/// Measures from which on something is called even without a reservation.
const EVEN: f64 = 0.8;
/// Items that may lack the key before it counts as a fault.
const MISSING_ENOUGH: f64 = 0.01;
/// Candidates whose scores differ by no more than chance may move them are equally good.
const AS_GOOD: f64 = 5.0;
/// Points of a growth curve, and busiest keys that are named for each partition.
const GROWTH_POINTS: u32 = 24;
const KEYS_NAMED: usize = 3;
const KEYS_WORTH_NAMING: f64 = 100.0;
/// A key must be met this often before it is named as the largest.
const MET_ENOUGH: usize = 5;
const KEY_CHARS: usize = 60;
/// A measure of nothing still leaves something of the score, so that two bad keys can be told apart.
const LEAST_MEASURE: f64 = 0.01;

pub fn judge(world: &World<'_>, key: &Key) -> Result<CandidateReport, AdviceError> {
    let layout = world.layout(key);
    let replay = replay::replay(world, key, &layout)?;
    let stored = storage(world, key, &layout);
    let largest = largest(world, key);
    let load = load(world, &replay);
    let measures = measures(world, &replay, &stored, &largest);
    let counted = world.counted(key);
    let distinct = distinct(world, key, counted.as_ref());
    let mut judge =
        Judge { world, key, replay: &replay, largest: &largest, load: &load, measures, findings: Vec::new() };
    judge.look(distinct, layout.len(), counted.as_ref());
    let findings = judge.findings;
    let verdict = verdict(&findings);
    let words = words(verdict, &measures, &largest, &findings);
    let score = measures.score().min(ceiling(verdict));
    Ok(CandidateReport {
        key: key.candidate.to_string(),
        kind: key.candidate.kind(),
        score: (score * 10.0).round() / 10.0,
        verdict,
        words,
        findings,
        measures: measures.rounded(),
        distinct: distinct.map(rounded),
        partitions: partitions(&replay, &stored, distinct),
        operations: operations(world, &replay),
        largest,
        load,
    })
}

/// Values that the key has at one moment, or none when each item has its own. What was counted is better than what the
/// sample lets guess, unless the sample is everything, or the key has a time and other values at another one.
fn distinct(world: &World<'_>, key: &Key, counted: Option<&Found>) -> Option<f64> {
    let guess = world.population.distinct(key)?;
    let is_exact = world.population.sampled.is_some_and(|sample| sample.items as f64 >= world.volume.stored);
    let counted = counted.and_then(|found| found.distinct);
    Some(counted.filter(|_| !is_exact && key.period().is_none()).unwrap_or(guess))
}

/// Best first; the first one, if it is good, is the best. Of keys that are equally good, those come first that take
/// properties as they are: nothing has to be computed and kept in step by each writer.
pub fn rank(reports: &mut [CandidateReport]) {
    reports.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut start = 0;
    while start < reports.len() {
        let best = reports[start].score;
        let behind = reports[start..].iter().position(|report| best - report.score > AS_GOOD);
        let end = behind.map_or(reports.len(), |behind| start + behind);
        reports[start..end]
            .sort_by_key(|report| (!report.verdict.is_good(), report.kind.contains("synthetic")));
        start = end;
    }
    if let Some(first) = reports.first_mut().filter(|first| first.verdict == Verdict::Good) {
        first.verdict = Verdict::Best;
    }
}

/// Bytes of each physical partition at the horizon.
fn storage(world: &World<'_>, key: &Key, layout: &Layout) -> Vec<f64> {
    let volume = &world.volume;
    let each = volume.bytes_stored(volume.horizon_days) / world.grown.len().max(1) as f64;
    let mut chance = Chance::new(limits::SEED);
    let mut bytes = vec![0.0; layout.len()];
    for row in &world.grown {
        bytes[layout.locate(&key.epk(row, &mut chance))] += each;
    }
    bytes
}

fn largest(world: &World<'_>, key: &Key) -> Largest {
    let volume = &world.volume;
    let (share, period) = (world.population.peak_share(key), key.period());
    let bytes = |day: f64| volume.partition_bytes(share, period, day);
    let limit = world.limits.logical_partition_bytes as f64;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut chance = Chance::new(limits::SEED);
    for row in &world.grown {
        *counts.entry(label(&key.of(row, &mut chance))).or_default() += 1;
    }
    // Of equals the first by name, so that the answer is always the same.
    let met = counts.into_iter().filter(|(_, met)| *met >= MET_ENOUGH);
    let most = met.max_by(|one, other| one.1.cmp(&other.1).then_with(|| other.0.cmp(&one.0)));
    let step = volume.horizon_days / f64::from(GROWTH_POINTS);
    let point = |index: u32| {
        let day = f64::from(index) * step;
        GrowthPoint { day: rounded(day), bytes: rounded(bytes(day)) }
    };
    Largest {
        key: most.map(|(key, _)| cut(&key)),
        share: rounded(share),
        bytes_today: rounded(bytes(0.0)),
        bytes_at_horizon: rounded(bytes(volume.horizon_days)),
        bytes_per_year: rounded(bytes(365.25) - bytes(0.0)),
        days_until_full: volume.meets(share, period, limit).map(rounded),
        growth: (0..=GROWTH_POINTS).map(point).collect(),
    }
}

fn load(world: &World<'_>, replay: &Replay) -> Load {
    let partitions = replay.loads.len() as f64;
    let total: f64 = replay.loads.iter().sum();
    let budget = world.throughput / partitions;
    let busiest = replay.loads.iter().copied().fold(0.0, f64::max);
    let over: f64 = replay.loads.iter().map(|load| (load - budget).max(0.0)).sum();
    let key = replay.keys.iter().max_by(|one, other| one.1.1.total_cmp(&other.1.1));
    Load {
        total: rounded(total),
        budget: rounded(budget),
        busiest: rounded(busiest),
        needed: rounded(busiest * partitions),
        throttled: if total > 0.0 { rounded(over / total) } else { 0.0 },
        busiest_key: key.map(|(key, (_, units))| top(key, *units)),
    }
}

fn top(key: &str, units: f64) -> TopKey {
    TopKey { key: cut(key), units_per_second: rounded(units) }
}

/// A key that may have thousands of characters, as much of it as a report needs.
fn cut(key: &str) -> String {
    if key.chars().count() <= KEY_CHARS {
        key.to_owned()
    } else {
        key.chars().take(KEY_CHARS).collect::<String>() + "…"
    }
}

fn measures(world: &World<'_>, replay: &Replay, stored: &[f64], largest: &Largest) -> Measures {
    let even = |amounts: &[f64]| {
        let most = amounts.iter().copied().fold(0.0, f64::max);
        if most > 0.0 { amounts.iter().sum::<f64>() / amounts.len() as f64 / most } else { 1.0 }
    };
    let limit = world.limits.logical_partition_bytes as f64;
    let room = |bytes: f64| if bytes > limit { limit / bytes } else { 1.0 };
    let weighed = |wanted: &dyn Fn(usize) -> Option<f64>| {
        let (mut sum, mut rates) = (0.0, 0.0);
        for (index, operation) in world.workload.operations.iter().enumerate() {
            if let Some(measure) = wanted(index) {
                sum += measure * operation.per_second;
                rates += operation.per_second;
            }
        }
        if rates > 0.0 { sum / rates } else { 1.0 }
    };
    let operations = &world.workload.operations;
    Measures {
        storage: even(stored),
        throughput: even(&replay.loads),
        room: room(largest.bytes_at_horizon).min(room(largest.bytes_today)),
        routing: weighed(&|index| {
            operations[index].kind.searches().then(|| 1.0 / replay.operations[index].partitions)
        }),
        transactions: weighed(&|index| {
            replay.operations[index].together.map(|kept| f64::from(u8::from(kept)))
        }),
    }
}

impl Measures {
    fn score(&self) -> f64 {
        let weighed = [
            (0.15, self.storage),
            (0.30, self.throughput),
            (0.25, self.room),
            (0.20, self.routing),
            (0.10, self.transactions),
        ];
        let logarithms = weighed.map(|(weight, measure)| weight * measure.clamp(LEAST_MEASURE, 1.0).ln());
        100.0 * logarithms.iter().sum::<f64>().exp()
    }

    fn rounded(&self) -> Measures {
        Measures {
            storage: rounded(self.storage),
            throughput: rounded(self.throughput),
            room: rounded(self.room),
            routing: rounded(self.routing),
            transactions: rounded(self.transactions),
        }
    }
}

fn partitions(replay: &Replay, stored: &[f64], distinct: Option<f64>) -> Vec<PartitionReport> {
    let mut keys: Vec<Vec<TopKey>> = vec![Vec::new(); replay.loads.len()];
    // Of thousands of keys the busiest three are chance.
    let named = distinct.is_some_and(|values| values <= KEYS_WORTH_NAMING);
    for (key, (partition, units)) in replay.keys.iter().filter(|_| named) {
        let keys = &mut keys[*partition];
        keys.push(top(key, *units));
        keys.sort_by(|one, other| other.units_per_second.total_cmp(&one.units_per_second));
        keys.truncate(KEYS_NAMED);
    }
    let of = |((load, bytes), keys): ((&f64, &f64), Vec<TopKey>)| PartitionReport {
        units_per_second: rounded(*load),
        bytes_at_horizon: rounded(*bytes),
        keys,
    };
    replay.loads.iter().zip(stored).zip(keys).map(of).collect()
}

fn operations(world: &World<'_>, replay: &Replay) -> Vec<OperationReport> {
    let pairs = world.workload.operations.iter().zip(&replay.operations);
    pairs
        .map(|(operation, outcome)| OperationReport {
            name: operation.name.clone(),
            kind: operation.kind.name(),
            per_second: operation.per_second,
            units: rounded(outcome.units),
            partitions: rounded(outcome.partitions),
            keys: outcome.keys.map(rounded),
            together: outcome.together,
        })
        .collect()
}

/// Looks for what speaks for and against a key.
struct Judge<'a> {
    world: &'a World<'a>,
    key: &'a Key,
    replay: &'a Replay,
    largest: &'a Largest,
    load: &'a Load,
    measures: Measures,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn look(&mut self, distinct: Option<f64>, partitions: usize, counted: Option<&Found>) {
        self.size();
        self.heat(partitions);
        self.budget(partitions);
        self.values(distinct, partitions);
        self.copying(counted);
        self.storage(partitions);
        self.searches(partitions);
        self.transactions();
        self.writing();
    }

    fn against(&mut self, code: &'static str, words: String) {
        self.findings.push(Finding { code, against: true, words });
    }

    fn note(&mut self, code: &'static str, words: String) {
        self.findings.push(Finding { code, against: false, words });
    }

    fn size(&mut self) {
        let limit = self.world.limits.logical_partition_bytes as f64;
        let (limit_text, largest) = (units::bytes(limit), self.largest);
        let named = largest.key.as_ref().map_or(String::new(), |key| format!(" ({key})"));
        if largest.bytes_today > limit {
            let size = units::bytes(largest.bytes_today);
            return self.against(
                "too-large",
                format!("The largest logical partition{named} would have {size} today. The limit is {limit_text}; writes beyond it are refused with 403."),
            );
        }
        let Some(days) = largest.days_until_full else {
            let size = units::bytes(largest.bytes_at_horizon);
            return self.note(
                "fits",
                format!(
                    "The largest logical partition has {size} at the horizon; the limit is {limit_text}."
                ),
            );
        };
        let until = units::days(days);
        let words = match self.key.period() {
            None => {
                let rate = units::bytes(largest.bytes_per_year);
                format!(
                    "The largest logical partition{named} grows by {rate} a year and meets the limit of {limit_text} in about {until}; then writes to it are refused with 403."
                )
            }
            Some(period) => {
                let period = period.name();
                format!(
                    "One {period} is too long: the largest logical partition{named} meets the limit of {limit_text} in about {until}, before its {period} ends."
                )
            }
        };
        if days <= self.world.volume.horizon_days {
            self.against("full-later", words);
        } else {
            self.note("full-beyond-the-horizon", words);
        }
    }

    fn heat(&mut self, partitions: usize) {
        let load = self.load;
        let most = f64::from(self.world.limits.partition_throughput);
        let named = |key: &TopKey| format!("{} with {} RU/s", key.key, units::count(key.units_per_second));
        if let Some(key) = load.busiest_key.as_ref().filter(|key| key.units_per_second > most) {
            let words = format!(
                "The busiest logical partition is {}. No logical partition can have more than {} RU/s, however much is provisioned.",
                named(key),
                units::count(most)
            );
            self.against("key-too-busy", words);
        }
        if partitions < 2 || load.total <= 0.0 {
            return;
        }
        let share = units::percent(load.busiest / load.total);
        let even = units::percent(1.0 / partitions as f64);
        // Queries that ask everywhere hide it, but the writes still meet in one place.
        if self.follows_time_alone() && self.replay.writes > WRITES_MATTER * load.total {
            let key = self.busiest_written().map_or(String::new(), |key| format!(" ({key})"));
            let words = format!(
                "Everything that is written at one moment has the same key{key}, so one physical partition takes all new items; it has {share} of the load, where an even share is {even}."
            );
            return self.against("hot-now", words);
        }
        if self.measures.throughput >= EVEN_ENOUGH {
            return;
        }
        let key = load.busiest_key.as_ref();
        let because = key.map_or(String::new(), |key| format!(" The busiest key is {}.", named(key)));
        let words = format!(
            "One physical partition takes {share} of the load, where an even share is {even}.{because}"
        );
        self.against("hot", words);
    }

    fn busiest_written(&self) -> Option<&str> {
        self.load.busiest_key.as_ref().map(|key| key.key.as_str())
    }

    /// Whether nothing in the key tells items apart that are written at the same moment.
    fn follows_time_alone(&self) -> bool {
        self.key.levels.iter().flatten().all(|part| {
            matches!(part, KeyPart::Value { period: Some(_), .. } | KeyPart::Period { of_writing: true, .. })
        })
    }

    fn budget(&mut self, partitions: usize) {
        let load = self.load;
        if !self.world.throughput_is_given || load.total <= 0.0 {
            return;
        }
        let each = format!(
            "{} RU/s on {partitions} partitions are {} RU/s for each",
            units::count(self.world.throughput),
            units::count(load.budget)
        );
        if load.throttled > 0.0 {
            let words = format!(
                "{each}; the busiest needs {}. {} of the work would be throttled; {} RU/s would be needed.",
                units::count(load.busiest),
                units::percent(load.throttled),
                units::count(load.needed)
            );
            self.against("throttled", words);
        } else {
            self.note("budget", format!("{each}, and the busiest needs {}.", units::count(load.busiest)));
        }
    }

    fn values(&mut self, distinct: Option<f64>, partitions: usize) {
        if let Some(values) = distinct.filter(|values| *values < partitions as f64)
            && self.key.period().is_none()
        {
            let words = format!(
                "It has only {} values, so at most that many of {partitions} partitions can have anything.",
                units::count(values)
            );
            self.against("few-values", words);
        }
        if let Some(column) = self.key.missing(self.world.population) {
            let share = units::percent(column.missing);
            let words = format!(
                "{share} of the items have nothing at {}; those of one key without it share one logical partition.",
                column.path
            );
            if column.missing > MISSING_ENOUGH {
                self.against("missing", words)
            } else {
                self.note("missing", words)
            }
        }
    }

    /// What would keep the items from being copied under this key.
    fn copying(&mut self, counted: Option<&Found>) {
        let refused = "a container cannot hold both, so a rekey to it is refused.";
        let sampled = || self.world.population.collisions(self.key);
        let same_id = counted.and_then(|found| Some((found.same_id.clone()?, found.of)));
        if let Some((clash, of)) = same_id.or_else(sampled) {
            let words = format!(
                "{} of {} items looked at have the same id as another one under this key ({}); {refused}",
                units::count(clash.items as f64),
                units::count(of as f64),
                example(&clash),
            );
            self.against("collides", words);
        }
        if let Some(clash) = counted.and_then(|found| found.unique_key.as_ref()) {
            let words = format!(
                "{} items have the same values at a unique key as another one under this key ({}); {refused}",
                units::count(clash.items as f64),
                example(clash),
            );
            self.against("collides", words);
        }
        let longest = counted.map_or(0, |found| found.longest).max(self.key.longest(self.world.population));
        if longest > MAX_KEY_BYTES {
            let words = format!(
                "There are values of up to {} bytes; a key has at most {}, so a rekey to it is refused.",
                units::count(longest as f64),
                units::count(MAX_KEY_BYTES as f64)
            );
            self.against("too-long", words);
        }
    }

    fn storage(&mut self, partitions: usize) {
        if partitions > 1 && self.measures.storage < EVEN_ENOUGH {
            let times = units::short(1.0 / self.measures.storage);
            let words = format!("At the horizon the fullest physical partition has {times} times the mean.");
            self.against("uneven-storage", words);
        }
    }

    fn searches(&mut self, partitions: usize) {
        let pairs = self.world.workload.operations.iter().zip(&self.replay.operations);
        let mut found = Vec::new();
        for (operation, outcome) in pairs.filter(|(operation, _)| operation.kind.searches()) {
            let name = &operation.name;
            let asked = units::short(outcome.partitions);
            match outcome.keys {
                None if partitions > 1 => found.push(format!(
                    "\"{name}\" does not know the key and asks all {partitions} partitions, for {} RU.",
                    units::short(outcome.units)
                )),
                Some(keys) if keys > 1.5 && outcome.partitions > 1.5 => found.push(format!(
                    "\"{name}\" asks {} keys in {asked} partitions, for {} RU.",
                    units::short(keys),
                    units::short(outcome.units)
                )),
                Some(_) if outcome.partitions > 1.5 => {
                    found.push(format!("\"{name}\" knows a prefix of the key and asks {asked} partitions."));
                }
                _ => {}
            }
        }
        let routed = self.measures.routing >= ROUTED_ENOUGH;
        for words in found {
            if routed { self.note("fan-out", words) } else { self.against("scattered", words) }
        }
    }

    fn transactions(&mut self) {
        let pairs = self.world.workload.operations.iter().zip(&self.replay.operations);
        let split = pairs.filter(|(_, outcome)| outcome.together == Some(false));
        let names: Vec<&str> = split.map(|(operation, _)| operation.name.as_str()).collect();
        for name in names {
            let words = format!(
                "The items of \"{name}\" lie in several logical partitions, so it cannot be one transaction."
            );
            self.against("splits-transactions", words);
        }
    }

    fn writing(&mut self) {
        if !self.key.candidate.levels.iter().all(|level| level.is_plain()) {
            let words = "The application computes the key and writes it into a property of its own.";
            self.note("synthetic", words.to_owned());
        }
    }
}

fn example(clash: &Clash) -> String {
    format!("id {:?} at {:?}, for one", cut(&clash.id), cut(&clash.key))
}

fn verdict(findings: &[Finding]) -> Verdict {
    let faults = [
        ("collides", Verdict::Collides),
        ("too-long", Verdict::Collides),
        ("too-large", Verdict::TooLarge),
        ("hot-now", Verdict::HotNow),
        ("hot", Verdict::Hot),
        ("key-too-busy", Verdict::Hot),
        ("few-values", Verdict::Hot),
        ("missing", Verdict::Hot),
        ("uneven-storage", Verdict::Uneven),
        ("scattered", Verdict::Scattered),
        ("splits-transactions", Verdict::SplitsTransactions),
        // It says that the key is good until then, so nothing else may speak against it.
        ("full-later", Verdict::GoodUntil),
    ];
    let found = |code: &str| findings.iter().any(|finding| finding.against && finding.code == code);
    faults.iter().find(|(code, _)| found(code)).map_or(Verdict::Good, |(_, verdict)| *verdict)
}

/// The highest score that a fault leaves.
fn ceiling(verdict: Verdict) -> f64 {
    match verdict {
        Verdict::Best | Verdict::Good => 100.0,
        Verdict::GoodUntil => 75.0,
        Verdict::SplitsTransactions => 65.0,
        Verdict::Scattered => 60.0,
        Verdict::Uneven => 50.0,
        Verdict::Hot => 45.0,
        Verdict::HotNow => 40.0,
        Verdict::TooLarge => 30.0,
        Verdict::Collides => 20.0,
    }
}

fn words(verdict: Verdict, measures: &Measures, largest: &Largest, findings: &[Finding]) -> String {
    let opening = match verdict {
        Verdict::Best | Verdict::Good => {
            let even = if measures.throughput.min(measures.storage) < EVEN { "fairly even" } else { "even" };
            format!("Load and storage are {even}, and no logical partition grows too large.")
        }
        Verdict::GoodUntil => {
            let days = largest.days_until_full.map_or(String::new(), units::days);
            format!("Good for about {days}.")
        }
        Verdict::HotNow => "Hot at every moment, however even over a long time.".to_owned(),
        Verdict::Hot => "Hot: some partitions work while others wait.".to_owned(),
        Verdict::Uneven => "Uneven: one partition holds much more than the others.".to_owned(),
        Verdict::TooLarge | Verdict::Collides => "Not possible as it is.".to_owned(),
        Verdict::Scattered => "Spread well, but most queries cannot use it.".to_owned(),
        Verdict::SplitsTransactions => "Spread well, but transactions are lost.".to_owned(),
    };
    let mut words = vec![opening];
    words.extend(findings.iter().filter(|finding| finding.against).map(|finding| finding.words.clone()));
    if verdict.is_good() {
        let noted = findings.iter().filter(|finding| ["fits", "fan-out", "missing"].contains(&finding.code));
        words.extend(noted.map(|finding| finding.words.clone()));
    }
    words.join(" ")
}
