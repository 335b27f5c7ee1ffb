//! What a client says it can merge (`x-ms-cosmos-supported-query-features`).

use super::{DistinctType, QueryInfo, Ranking};
use crate::error::{QueryError, Result};
use crate::program::AggregateKind;

/// The features a client supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(Option<Vec<String>>);

impl Features {
    /// A client that supports everything.
    pub fn all() -> Self {
        Self(None)
    }

    /// Reads the header: names, separated by commas.
    pub fn from_header(text: &str) -> Self {
        Self(Some(text.split(',').map(|name| name.trim().to_ascii_lowercase()).collect()))
    }

    fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(&name.to_ascii_lowercase()))
    }

    /// Refuses a plan that the client could not carry out.
    pub(super) fn check(&self, info: &QueryInfo) -> Result<()> {
        self.check_all(needed(info))
    }

    /// The same of a plan that ranks.
    pub(super) fn check_ranking(&self, ranking: &Ranking) -> Result<()> {
        let weighs = (!ranking.weights.is_empty()).then_some("WeightedRankFusion");
        self.check_all(["HybridSearch"].into_iter().chain(weighs))
    }

    fn check_all(&self, needed: impl IntoIterator<Item = &'static str>) -> Result<()> {
        let missing: Vec<&str> = needed.into_iter().filter(|name| !self.has(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(QueryError::bare(format!(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support \
             the requested features: Query contained {}, which the calling client does not support.",
            missing.join(", ")
        )))
    }
}

fn needed(info: &QueryInfo) -> Vec<&'static str> {
    let kinds =
        || info.aggregates.iter().copied().chain(info.group_by_aliases.iter().filter_map(|(_, kind)| *kind));
    // Lists and sets are not asked about: .NET carries them out and does not say so.
    [
        ("Aggregate", !info.aggregates.is_empty()),
        ("NonValueAggregate", info.group_by_expressions.is_empty() && !info.group_by_aliases.is_empty()),
        ("CountIf", kinds().any(|kind| kind == AggregateKind::CountIf)),
        ("DCount", info.distinct_count.is_some()),
        ("Distinct", info.distinct != DistinctType::None),
        ("GroupBy", !info.group_by_expressions.is_empty()),
        ("OrderBy", !info.order_by.is_empty()),
        ("MultipleOrderBy", info.order_by.len() > 1),
        ("OffsetAndLimit", info.offset.is_some()),
        ("Top", info.top.is_some()),
        ("NonStreamingOrderBy", info.has_non_streaming_order_by),
    ]
    .into_iter()
    .filter_map(|(name, used)| used.then_some(name))
    .collect()
}
