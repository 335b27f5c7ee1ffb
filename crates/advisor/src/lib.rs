//! The partition-key advisor: which key fits the items and the workload of a container.
//!
//! Pure: a [`Workload`] and perhaps sample items go in, a [`Report`] comes out. Chance is a seed, the day is an
//! argument, so the same question always has the same answer.
//!
//! How an answer is found:
//!
//! 1. [`population`] makes items: from the description of their fields, or from a sample of real ones. It can say
//!    what an item written on some day looks like, which is what tells a key that is even over a year
//!    from one that is even at every moment.
//! 2. [`candidate`] reads the keys to compare; [`propose`] thinks of some where none are given.
//! 3. [`layout`] cuts the key space into physical partitions as the server does: evenly at first, then by size,
//!    never through a logical partition.
//! 4. [`replay`] sends the workload there with the server's own hash and the server's own prices.
//! 5. [`growth`] follows the largest logical partition until the horizon. That one is computed and not
//!    sampled: a sample of some thousands cannot tell a key with a million values from one with a billion.
//! 6. [`census`] is for who has all items at hand: it finds the few that could not lie under a key.
//! 7. [`verdict`] turns measures into a score and into words.
//!
//! [`Report`] is the JSON; [`table()`] and [`html()`] are for people.

mod calendar;
mod candidate;
mod census;
mod chance;
mod error;
mod growth;
mod html;
mod layout;
pub mod limits;
mod population;
mod propose;
mod replay;
mod report;
mod table;
mod units;
mod verdict;
mod workload;

pub use calendar::{Period, parse_date};
pub use candidate::{Candidate, CandidateError, Level, Part};
pub use census::Census;
pub use chance::Chance;
pub use error::AdviceError;
pub use html::html;
pub use report::{
    CandidateReport, Finding, GrowthPoint, Largest, Load, Measures, OperationReport, PartitionReport, Report,
    TopKey, Verdict,
};
pub use table::table;
pub use workload::{Field, Filter, Group, Items, Kind, Operation, Touched, Workload};

use std::time::Instant;

use layout::Layout;
use orrery_prices::limits::PartitionLimits;
use population::Population;

/// What is not part of the workload.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Days since 1970-01-01; used when the workload names no day.
    pub today: f64,
    /// Physical partitions to start with; otherwise those of the workload, or as many as it needs.
    pub partitions: Option<u32>,
    /// Candidates in their text form; those of the workload, or proposals, when there are none.
    pub candidates: Vec<String>,
    pub limits: PartitionLimits,
    /// When to give up, for those who cannot wait for any question to be worked out.
    pub deadline: Option<Instant>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            today: 20_454.0,
            partitions: None,
            candidates: Vec::new(),
            limits: PartitionLimits::default(),
            deadline: None,
        }
    }
}

/// Compares candidate keys. `sample` has items as clients see them; a workload that describes its fields needs none.
pub fn advise(
    workload: &Workload,
    sample: &[serde_json::Value],
    settings: &Settings,
) -> Result<Report, AdviceError> {
    Inquiry::new(workload, sample, settings)?.answer(None)
}

/// What a workload does not say of the container that it is about.
#[derive(Clone, Copy, Debug)]
pub struct Existing {
    pub items: u64,
    pub partitions: u32,
    pub throughput: Option<f64>,
}

impl Existing {
    /// Partitions stay, and there are as many more as a throughput needs that the container does not have yet.
    pub fn complete(&self, workload: &mut Workload, limits: &PartitionLimits) {
        workload.items.stored.get_or_insert(self.items as f64);
        let needed = workload.throughput.unwrap_or(0.0) / f64::from(limits.partition_throughput);
        workload.partitions.get_or_insert(self.partitions.max(needed.ceil() as u32));
        workload.throughput = workload.throughput.or(self.throughput);
    }
}

/// A question whose candidates are known. Who holds all items may show them to a [`Census`] before it is answered.
pub struct Inquiry<'a> {
    workload: &'a Workload,
    settings: &'a Settings,
    today: f64,
    population: Population,
    candidates: Vec<Candidate>,
}

impl<'a> Inquiry<'a> {
    pub fn new(
        workload: &'a Workload,
        sample: &[serde_json::Value],
        settings: &'a Settings,
    ) -> Result<Inquiry<'a>, AdviceError> {
        workload.check()?;
        let today = workload.today(settings.today)?;
        let given = given_candidates(workload, settings)?;
        let population = Population::of(workload, sample, &given, today)?;
        let candidates = if given.is_empty() { propose::candidates(workload, &population) } else { given };
        if candidates.is_empty() {
            return Err(AdviceError::NoCandidates);
        }
        Ok(Inquiry { workload, settings, today, population, candidates })
    }

    /// A census of the items for the candidates, in a container with these unique keys.
    pub fn census(&self, unique_keys: Vec<Vec<orrery_doc::Path>>) -> Census {
        Census::new(&self.candidates, unique_keys)
    }

    pub fn answer(&self, census: Option<Census>) -> Result<Report, AdviceError> {
        let world = World::new(self.workload, &self.population, self.settings, self.today);
        let world = World { census, ..world };
        let judge = |candidate: &Candidate| {
            let key = self.population.resolve(candidate)?;
            verdict::judge(&world, &key)
        };
        let mut reports = self.candidates.iter().map(judge).collect::<Result<Vec<_>, AdviceError>>()?;
        verdict::rank(&mut reports);
        Ok(report::whole(&world, reports))
    }
}

fn given_candidates(workload: &Workload, settings: &Settings) -> Result<Vec<Candidate>, AdviceError> {
    let texts = if settings.candidates.is_empty() { &workload.candidates } else { &settings.candidates };
    if texts.len() > limits::CANDIDATES_MAX {
        return Err(AdviceError::TooMany { what: "candidates", limit: limits::CANDIDATES_MAX });
    }
    let mut candidates = Vec::new();
    for text in texts {
        let candidate =
            Candidate::parse(text).map_err(|why| AdviceError::Candidate { text: text.clone(), why })?;
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// Everything that all candidates are measured against.
struct World<'a> {
    workload: &'a Workload,
    population: &'a Population,
    limits: PartitionLimits,
    deadline: Option<Instant>,
    today: f64,
    volume: growth::Volume,
    /// Physical partitions before any splits by size, and the RU/s of the whole container.
    partitions: u32,
    throughput: f64,
    /// Whether the workload says the throughput, or it is what the workload needs.
    throughput_is_given: bool,
    /// Items that stand for all those stored today and at the horizon.
    stored: Vec<population::Row>,
    grown: Vec<population::Row>,
    /// What each operation touches, where that is known.
    busy: Vec<Option<population::Busy>>,
    census: Option<Census>,
}

impl<'a> World<'a> {
    fn new(workload: &'a Workload, population: &'a Population, settings: &Settings, today: f64) -> World<'a> {
        let volume = growth::Volume::of(workload, population);
        let needed = replay::least_throughput(workload, population);
        let throughput = workload.throughput.unwrap_or(needed);
        let limits = settings.limits;
        let partitions = settings.partitions.or(workload.partitions).unwrap_or_else(|| {
            let by_load = (throughput / f64::from(limits.partition_throughput)).ceil();
            let by_size = (volume.bytes_stored(0.0) / limits.partition_bytes as f64).ceil();
            by_load.max(by_size) as u32
        });
        let partitions = partitions.clamp(1, limits::PARTITIONS_MAX);
        let rows = limits::ROWS_MIN.max(limits::DRAWS_PER_PARTITION * partitions as usize);
        let rows = rows.min(limits::ROW_VALUES_MAX / population.columns.len().max(1));
        World {
            workload,
            population,
            limits,
            deadline: settings.deadline,
            today,
            partitions,
            throughput,
            throughput_is_given: workload.throughput.is_some(),
            stored: volume.rows(population, today, 0.0, rows),
            grown: volume.rows(population, today, volume.horizon_days, rows),
            busy: population::Busy::of_all(&workload.operations, population, today),
            volume,
            census: None,
        }
    }

    /// What a look at all items found of a candidate, if there was one.
    fn counted(&self, key: &population::Key) -> Option<census::Found> {
        self.census.as_ref()?.found(&key.candidate)
    }

    /// Whether there is time left.
    fn check_time(&self) -> Result<(), AdviceError> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(AdviceError::TooLong),
            _ => Ok(()),
        }
    }

    /// The physical partitions that a container with this key would have today.
    fn layout(&self, key: &population::Key) -> Layout {
        let each = self.volume.bytes_stored(0.0) / self.stored.len().max(1) as f64;
        let mut chance = chance::Chance::new(limits::SEED);
        let epks = self.stored.iter().map(|row| key.epk(row, &mut chance)).collect();
        Layout::new(key.definition(), self.partitions, epks, each, self.limits.partition_bytes as f64)
    }
}
