//! The report: what programs read, and what the table and the page are made of.

use serde::Serialize;

use crate::World;
use crate::census::Census;
use crate::units;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub workload: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One sentence with the answer.
    pub summary: String,
    /// The candidate with the highest score.
    pub recommended: String,
    pub partitions: u32,
    /// RU/s of the container, and whether they were given or are what the workload needs.
    pub throughput: f64,
    pub throughput_is_given: bool,
    pub bytes_today: f64,
    pub bytes_at_horizon: f64,
    pub horizon_days: f64,
    pub logical_partition_limit: f64,
    pub partition_limit: f64,
    /// Best first.
    pub candidates: Vec<CandidateReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateReport {
    pub key: String,
    pub kind: &'static str,
    /// 0 to 100.
    pub score: f64,
    pub verdict: Verdict,
    /// The verdict in words.
    pub words: String,
    pub findings: Vec<Finding>,
    pub measures: Measures,
    /// Values that the key has at one moment; none when each item has its own.
    pub distinct: Option<f64>,
    pub largest: Largest,
    pub load: Load,
    pub partitions: Vec<PartitionReport>,
    pub operations: Vec<OperationReport>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Good, and better than all others.
    Best,
    Good,
    /// A logical partition meets its limit before the horizon.
    GoodUntil,
    /// At each moment all writes have the same key.
    HotNow,
    /// One partition has much more to do than the others.
    Hot,
    /// One partition holds much more than the others.
    Uneven,
    /// Items that are there now could not lie under this key.
    Collides,
    /// A logical partition is over its limit already.
    TooLarge,
    /// Most queries ask every partition.
    Scattered,
    /// Transactions would reach over logical partitions.
    SplitsTransactions,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub code: &'static str,
    /// Whether the finding speaks against the key.
    pub against: bool,
    pub words: String,
}

/// Shares of the ideal: 1 is perfect.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measures {
    /// Mean over largest bytes of physical partitions at the horizon.
    pub storage: f64,
    /// Mean over largest RU/s of physical partitions.
    pub throughput: f64,
    /// How much of the largest logical partition at the horizon fits into its limit.
    pub room: f64,
    /// One over the partitions that a read or query asks, on the average.
    pub routing: f64,
    /// Share of transactions whose items lie in one logical partition.
    pub transactions: f64,
}

/// The largest logical partition.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Largest {
    /// Its key, where one stands out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its part of what is written at one moment.
    pub share: f64,
    pub bytes_today: f64,
    pub bytes_at_horizon: f64,
    pub bytes_per_year: f64,
    /// When it meets the limit, as far as can be foreseen.
    pub days_until_full: Option<f64>,
    pub growth: Vec<GrowthPoint>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct GrowthPoint {
    pub day: f64,
    pub bytes: f64,
}

/// RU/s.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    pub total: f64,
    /// What each physical partition may use, and what the busiest needs.
    pub budget: f64,
    pub busiest: f64,
    /// RU/s of the container at which the busiest partition would have enough.
    pub needed: f64,
    /// Share of the work that is over the budget of its partition.
    pub throttled: f64,
    pub busiest_key: Option<TopKey>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionReport {
    pub units_per_second: f64,
    pub bytes_at_horizon: f64,
    /// The busiest logical partitions in it.
    pub keys: Vec<TopKey>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopKey {
    pub key: String,
    pub units_per_second: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationReport {
    pub name: String,
    pub kind: &'static str,
    pub per_second: f64,
    /// Mean request units of one request.
    pub units: f64,
    /// Mean physical partitions that one request asks.
    pub partitions: f64,
    /// Mean keys that one request names; none when it asks everywhere.
    pub keys: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<bool>,
}

impl Verdict {
    pub fn title(self) -> &'static str {
        match self {
            Verdict::Best => "best",
            Verdict::Good => "good",
            Verdict::GoodUntil => "good until it is full",
            Verdict::HotNow => "hot now",
            Verdict::Hot => "hot",
            Verdict::Uneven => "uneven",
            Verdict::Collides => "not possible",
            Verdict::TooLarge => "too large",
            Verdict::Scattered => "queries scatter",
            Verdict::SplitsTransactions => "splits transactions",
        }
    }

    pub fn is_good(self) -> bool {
        matches!(self, Verdict::Best | Verdict::Good)
    }
}

/// Puts ranked candidates together.
pub(crate) fn whole(world: &World<'_>, candidates: Vec<CandidateReport>) -> Report {
    let first = &candidates[0];
    let summary = match first.verdict.is_good() {
        true => format!("{} fits best. {}", first.key, first.words),
        false => format!("No candidate is without fault; {} has the fewest. {}", first.key, first.words),
    };
    let volume = &world.volume;
    Report {
        workload: world.workload.name.clone(),
        description: world.workload.description.clone(),
        summary,
        recommended: first.key.clone(),
        partitions: world.partitions,
        throughput: units::rounded(world.throughput),
        throughput_is_given: world.throughput_is_given,
        bytes_today: units::rounded(volume.bytes_stored(0.0)),
        bytes_at_horizon: units::rounded(volume.bytes_stored(volume.horizon_days)),
        horizon_days: volume.horizon_days,
        logical_partition_limit: world.limits.logical_partition_bytes as f64,
        partition_limit: world.limits.partition_bytes as f64,
        candidates,
        notes: notes(world),
    }
}

fn notes(world: &World<'_>) -> Vec<String> {
    let mut notes = world.population.notes.clone();
    let is_counted = world.census.as_ref().is_some_and(Census::is_whole);
    if let Some(sampled) = world.population.sampled.filter(|_| !is_counted)
        && world.volume.stored > sampled.items as f64
    {
        notes.push(format!(
            "Items that could not lie under a key were looked for among {} of {} only.",
            units::count(world.census.as_ref().map_or(0, Census::items).max(sampled.items as u64) as f64),
            units::count(world.volume.stored)
        ));
    }
    if let Some(sampled) = world.population.sampled.filter(|_| !is_counted)
        && world.volume.stored > 2.0 * sampled.items as f64
    {
        notes.push(format!(
            "The sample has {} of {} items. Where it is too small to show how many values a path has, say it in \
             items.distinct.",
            units::count(sampled.items as f64),
            units::count(world.volume.stored)
        ));
    }
    if world.workload.operations.is_empty() {
        notes.push("The workload has no operations: only storage could be judged.".to_owned());
    }
    notes
}
