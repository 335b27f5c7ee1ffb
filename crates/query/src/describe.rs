//! The query plan: what a client must know to run a query over all partitions.
//!
//! The service answers a plan request with `partitionedQueryExecutionInfo`: which ranges of the key
//! space to ask, which query to send to each (rewritten so that every partition answers something
//! that can be merged), and how to merge. Clients do the merging, so the shape of the rewritten
//! queries is part of the protocol.

mod features;
mod json;
mod ranking;
mod refusals;
mod rewrite;

use orrery_doc::{PartitionKeyDef, epk, prefix_range};

pub use features::Features;
pub use ranking::{Ranking, TextStatistics};

use crate::ast::*;
use crate::compile::{
    Origin, Program, VectorPath, Vocabulary, compile_plan, contains_aggregate, item_names, order_origin,
    selects_aggregate, unmapped,
};
use crate::error::{Code, QueryError, Result};
use crate::functions::Geospatial;
use crate::limits;
use crate::parameters::Parameters;
use crate::parse;
use crate::print::print_expression;
use crate::program::{AggregateKind, Node};
use crate::routing::{PinnedKeys, pinned_keys};

/// A query plan.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPlan {
    pub info: QueryInfo,
    /// What takes the place of `info` where the query ranks (ORDER BY RANK).
    pub ranking: Option<Ranking>,
    pub keys: PinnedKeys,
    pub ranges: Vec<PlanRange>,
}

/// How to merge, and what to send.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueryInfo {
    pub distinct: DistinctType,
    pub top: Option<u64>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub order_by: Vec<(Direction, String)>,
    pub group_by_expressions: Vec<String>,
    /// The names of the result's properties, with the aggregate behind each.
    pub group_by_aliases: Vec<(String, Option<AggregateKind>)>,
    pub aggregates: Vec<AggregateKind>,
    /// Empty when the query can be sent as it is.
    pub rewritten_query: String,
    pub has_select_value: bool,
    /// Set when the client must count the distinct rows itself: the name of the count, or nothing
    /// for SELECT VALUE.
    pub distinct_count: Option<String>,
    /// Whether the partitions' rows come in an order that the client must make itself.
    pub has_non_streaming_order_by: bool,
}

/// What a plan depends on besides the text and the partition key.
#[derive(Debug, Clone, Default)]
pub struct PlanSettings {
    /// How the container understands coordinates; without it, spatial functions of constants are not
    /// evaluated for the plan.
    pub geospatial: Option<Geospatial>,
    /// The container's vector policy.
    pub vectors: Vec<VectorPath>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DistinctType {
    #[default]
    None,
    Ordered,
    Unordered,
}

/// A range of effective partition keys, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRange {
    pub min: String,
    pub max: String,
    pub is_min_inclusive: bool,
    pub is_max_inclusive: bool,
}

/// Whether a query over several partitions needs a plan, because the answers of the partitions
/// cannot simply be put one behind the other.
pub fn needs_plan(query: &Query) -> bool {
    query.select.distinct
        || query.select.top.is_some()
        || query.order_by.is_some()
        || query.offset_limit.is_some()
        || !query.group_by.is_empty()
        || selects_aggregate(&query.select)
}

/// Makes the plan of a query, for a container without policies that matter to it.
pub fn describe(
    text: &str,
    parameters: &Parameters,
    def: &PartitionKeyDef,
    supported: &Features,
) -> Result<QueryPlan> {
    describe_with(text, parameters, def, supported, &PlanSettings::default())
}

/// Makes the plan of a query.
pub fn describe_with(
    text: &str,
    parameters: &Parameters,
    def: &PartitionKeyDef,
    supported: &Features,
    settings: &PlanSettings,
) -> Result<QueryPlan> {
    let query = parse::parse(text)?;
    describe_query(query, parameters, def, supported, settings).map_err(|error| error.located_in(text))
}

fn describe_query(
    query: Query,
    parameters: &Parameters,
    def: &PartitionKeyDef,
    supported: &Features,
    settings: &PlanSettings,
) -> Result<QueryPlan> {
    let vocabulary = Vocabulary::default().with_vectors(settings.vectors.clone());
    let program = sound(query, parameters, &vocabulary)?;
    let query = program.query();
    refuse_compositions(&query.select)?;
    let keys = pinned_keys(query, parameters, def, settings.geospatial);
    let ranges = plan_ranges(&keys, def);
    let (offset, limit) = program.counts();
    let mut info = QueryInfo {
        has_select_value: matches!(query.select.spec, SelectSpec::Value(_)),
        ..QueryInfo::default()
    };
    if let Some(OrderBy::Rank(items)) = &query.order_by {
        let ranking = ranking::of(&program, items, parameters)?;
        supported.check_ranking(&ranking)?;
        return Ok(QueryPlan { info, ranking: Some(ranking), keys, ranges });
    }
    if query.from.is_some() {
        let one_key = matches!(&keys, PinnedKeys::Only(keys) if keys.len() == 1);
        let order = program.order();
        Merger { query, info: &mut info, one_key, offset, limit, order }.fill()?;
    }
    supported.check(&info)?;
    Ok(QueryPlan { info, ranking: None, keys, ranges })
}

/// The compiled query, or all that is wrong with it.
fn sound(query: Query, parameters: &Parameters, vocabulary: &Vocabulary) -> Result<Program> {
    let mut found = refusals::check(&query, parameters);
    match compile_plan(query, parameters, vocabulary) {
        Ok(program) if found.is_empty() => return Ok(program),
        Err(QueryError::Invalid(list)) if found.is_empty() || list.iter().all(|d| d.code != Code::None) => {
            found.extend(list);
        }
        Err(other) if found.is_empty() => return Err(other),
        Ok(_) | Err(_) => {}
    }
    found.truncate(limits::FINDINGS);
    Err(QueryError::Invalid(found))
}

/// Clients merge plain aggregates only.
fn refuse_compositions(select: &Select) -> Result<()> {
    let composed = |expr: &Expr| contains_aggregate(expr) && aggregate_of(expr).is_none();
    let found = match &select.spec {
        SelectSpec::Star(_) => false,
        SelectSpec::Value(expr) => composed(expr),
        SelectSpec::List(items) => items.iter().any(|item| composed(&item.expr)),
    };
    if found {
        return Err(QueryError::bare("Compositions of aggregates and other expressions are not allowed."));
    }
    Ok(())
}

fn aggregate_of(expr: &Expr) -> Option<AggregateKind> {
    match &expr.kind {
        ExprKind::Call { udf: false, name, .. } => AggregateKind::from_name(name),
        _ => None,
    }
}

/// The ranges to ask, in key order.
fn plan_ranges(keys: &PinnedKeys, def: &PartitionKeyDef) -> Vec<PlanRange> {
    let PinnedKeys::Only(keys) = keys else { return vec![PlanRange::open("", "FF")] };
    if keys.is_empty() {
        // Nothing can match; one partition must still answer so.
        return vec![PlanRange::point("")];
    }
    let mut ranges: Vec<PlanRange> = keys
        .iter()
        .map(|key| {
            if key.is_full(def) {
                PlanRange::point(&epk(def, key).to_hex())
            } else {
                let range = prefix_range(def, key);
                PlanRange::open(&range.min.to_hex(), &range.max.to_hex())
            }
        })
        .collect();
    ranges.sort_by(|a, b| a.min.cmp(&b.min));
    // Clients refuse ranges that overlap. A longer key lies in the range of the prefix that sorts before it.
    ranges.dedup_by(|next, kept| next == kept || next.min < kept.max);
    ranges
}

impl PlanRange {
    fn open(min: &str, max: &str) -> Self {
        Self { min: min.into(), max: max.into(), is_min_inclusive: true, is_max_inclusive: false }
    }

    fn point(key: &str) -> Self {
        Self { min: key.into(), max: key.into(), is_min_inclusive: true, is_max_inclusive: true }
    }
}

/// Decides how the answers of the partitions come together.
struct Merger<'q> {
    query: &'q Query,
    info: &'q mut QueryInfo,
    one_key: bool,
    offset: u64,
    limit: Option<u64>,
    /// The keys of the order, and from which end each begins.
    order: &'q [(Node, Direction)],
}

impl Merger<'_> {
    fn fill(mut self) -> Result<()> {
        let query = self.query;
        if let Some((alias, inner)) = rewrite::distinct_count(query) {
            self.info.distinct = DistinctType::Unordered;
            self.info.distinct_count = Some(alias);
            self.info.rewritten_query = crate::print::print(inner, crate::print::Layout::Clauses);
            return Ok(());
        }
        let grouped = !query.group_by.is_empty();
        let aggregated = selects_aggregate(&query.select);
        // Partitions may cut off rows early only if the client does not combine rows afterwards.
        let combined = grouped || aggregated || query.select.distinct;
        self.counts(combined);
        self.group_info();
        let mut rewritten = query.clone();
        let mut changed = false;
        if combined && (query.select.top.is_some() || query.offset_limit.is_some()) {
            rewritten.select.top = None;
            rewritten.offset_limit = None;
            changed = true;
        } else if let (Some(offset), Some(limit)) = (self.info.offset, self.info.limit) {
            rewritten.offset_limit = Some(rewrite::offset_limit(offset, limit));
            changed = true;
        }
        if grouped || aggregated {
            if query.select.distinct {
                self.info.distinct = DistinctType::Unordered;
            }
            rewrite::group(&mut rewritten);
            changed = true;
        } else if let Some(OrderBy::Items(items)) = &query.order_by {
            self.order_info(items)?;
            rewrite::order(&mut rewritten, items);
            changed = true;
        } else if query.select.distinct {
            self.info.distinct = DistinctType::Unordered;
        }
        if changed {
            self.info.rewritten_query = crate::print::print(&rewritten, crate::print::Layout::Clauses);
        }
        Ok(())
    }

    fn counts(&mut self, combined: bool) {
        if self.query.select.top.is_some() {
            self.info.top = self.limit;
        }
        let plain = !combined && self.query.order_by.is_none();
        if self.query.offset_limit.is_some() && !(plain && self.one_key) {
            self.info.offset = Some(self.offset);
            self.info.limit = self.limit;
        }
    }

    fn group_info(&mut self) {
        let query = self.query;
        self.info.group_by_expressions = query.group_by.iter().map(print_expression).collect();
        match &query.select.spec {
            SelectSpec::Value(expr) => self.info.aggregates.extend(aggregate_of(expr)),
            SelectSpec::List(items) if !query.group_by.is_empty() || selects_aggregate(&query.select) => {
                let kinds = items.iter().map(|item| aggregate_of(&item.expr));
                self.info.group_by_aliases = item_names(items).into_iter().zip(kinds).collect();
            }
            _ => {}
        }
    }

    fn order_info(&mut self, items: &[OrderItem]) -> Result<()> {
        for (item, (key, direction)) in items.iter().zip(self.order) {
            if matches!(order_origin(self.query, &item.expr), Origin::Computed | Origin::Made(_)) {
                return Err(unmapped());
            }
            self.info.has_non_streaming_order_by |= matches!(key, Node::VectorDistance { .. });
            self.info.order_by.push((*direction, print_expression(&item.expr)));
        }
        if self.query.select.distinct {
            let ordered = match &self.query.select.spec {
                SelectSpec::Value(expr) => items.len() == 1 && items[0].expr == **expr,
                SelectSpec::List(_) | SelectSpec::Star(_) => false,
            };
            self.info.distinct = if ordered { DistinctType::Ordered } else { DistinctType::Unordered };
        }
        Ok(())
    }
}
