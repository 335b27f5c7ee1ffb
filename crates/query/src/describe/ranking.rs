//! The plan of a query that ranks: `ORDER BY RANK FullTextScore(...)`, or RRF over several scores.
//!
//! A score of a text depends on all texts of the container, so a first query counts these, over all partitions. What it finds takes the
//! place of marks in the *component* queries, one for each score, which every partition answers with its best items and all
//! of their scores. The client then ranks: an item's place in each component makes a part of its sum.
//!
//! ```text
//!   ORDER BY RANK RRF(FullTextScore(c.a, 'x'), VectorDistance(c.v, [1]))
//!      statistics   SELECT COUNT(1) ..., SUM(words of c.a), COUNTIF(c.a has 'x')        the whole container, without the filter
//!      component 1  ORDER BY _FullTextScore(c.a, ["x"], counts...) DESC                 with the filter
//!      component 2  ORDER BY _VectorScore(c.v, [1]) DESC                                with the filter
//! ```

use super::{QueryInfo, rewrite};
use crate::ast::*;
use crate::compile::{Program, scores, weights};
use crate::error::{QueryError, Result};
use crate::parameters::Parameters;
use crate::print::{Layout, print, print_expression};
use crate::program::Node;

/// How to rank, and what to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Counts items and words of the whole container.
    pub statistics_query: String,
    /// Whether the components have marks for what it counts.
    pub needs_statistics: bool,
    /// One for each score.
    pub components: Vec<QueryInfo>,
    /// How much each component counts; empty if all count the same.
    pub weights: Vec<f64>,
    pub skip: Option<u64>,
    pub take: Option<u64>,
}

/// The marks that a client fills in.
const ITEM_COUNT: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

fn word_count(text: usize) -> String {
    format!("{{documentdb-formattablehybridsearchquery-totalwordcount-{text}}}")
}

fn hit_counts(text: usize) -> String {
    format!("{{documentdb-formattablehybridsearchquery-hitcountsarray-{text}}}")
}

/// What the statistics query has counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextStatistics {
    pub items: u64,
    /// For each text that is scored, its words and how many items have each phrase.
    pub texts: Vec<(u64, Vec<u64>)>,
}

impl Ranking {
    /// The component queries with what was counted, for who runs them in one place.
    pub fn component_queries(&self, found: &TextStatistics) -> Vec<String> {
        let fill = |query: &String| {
            let mut query =
                query.replace(rewrite::FILTER, "true").replace(ITEM_COUNT, &found.items.to_string());
            for (text, (words, hits)) in found.texts.iter().enumerate() {
                let hits: Vec<String> = hits.iter().map(u64::to_string).collect();
                query = query.replace(&word_count(text), &words.to_string());
                query = query.replace(&hit_counts(text), &format!("[{}]", hits.join(",")));
            }
            query
        };
        self.components.iter().map(|component| fill(&component.rewritten_query)).collect()
    }
}

/// One score as the component queries have it.
struct Score {
    expr: Expr,
    /// Stands for the score of an item that has none: behind all others.
    worst: Expr,
    direction: Direction,
}

pub(super) fn of(program: &Program, items: &[OrderItem], parameters: &Parameters) -> Result<Ranking> {
    let query = program.query();
    refuse_clauses(query)?;
    let wanted: Vec<&Expr> = items.iter().flat_map(|item| scores(&item.expr)).collect();
    let weights = items.iter().find_map(|item| fusion_weights(&item.expr, parameters)).unwrap_or_default();
    let mut texts = Vec::new();
    let mut made = Vec::new();
    for (place, (score, (key, best))) in wanted.iter().zip(program.order()).enumerate() {
        let is_best_last = weights.get(place).is_some_and(|weight| *weight < 0.0);
        let direction = if is_best_last { other(*best) } else { *best };
        made.push(component_score(score, key, direction, &mut texts, parameters));
    }
    let (offset, limit) = program.counts();
    let skip = query.offset_limit.is_some().then_some(offset);
    let components = made.iter().map(|score| component(query, score, &made, skip, limit)).collect();
    Ok(Ranking {
        statistics_query: statistics(query, &texts),
        needs_statistics: !texts.is_empty(),
        components,
        weights: weights.iter().map(|weight| weight.abs()).collect(),
        skip,
        take: limit,
    })
}

fn refuse_clauses(query: &Query) -> Result<()> {
    let grouped = !query.group_by.is_empty() || crate::compile::selects_aggregate(&query.select);
    if grouped || query.select.distinct {
        let text = "DISTINCT, GROUP BY and aggregates are not supported with ORDER BY RANK.";
        return Err(QueryError::Unsupported(text.into()));
    }
    Ok(())
}

fn fusion_weights(item: &Expr, parameters: &Parameters) -> Option<Vec<f64>> {
    let ExprKind::Call { arguments, .. } = &item.kind else { return None };
    arguments.get(scores(item).len()).and_then(|list| weights(list, parameters))
}

fn other(direction: Direction) -> Direction {
    match direction {
        Direction::Ascending => Direction::Descending,
        Direction::Descending => Direction::Ascending,
    }
}

/// A text with the phrases that it is scored by.
struct ScoredText {
    path: Expr,
    phrases: Vec<Expr>,
}

fn component_score(
    score: &Expr,
    key: &Node,
    direction: Direction,
    texts: &mut Vec<ScoredText>,
    parameters: &Parameters,
) -> Score {
    let ExprKind::Call { arguments, .. } = &score.kind else {
        return Score { expr: score.clone(), worst: int(-1), direction };
    };
    if matches!(key, Node::VectorDistance { .. }) {
        let worst = match direction {
            Direction::Descending => -VECTOR_WORST,
            Direction::Ascending => VECTOR_WORST,
        };
        let worst = Expr::made(ExprKind::Literal(Literal::Double(worst)));
        return Score { expr: Expr::call("_VectorScore", arguments.clone()), worst, direction };
    }
    let path = arguments[0].clone();
    let phrases = phrases(&arguments[1..], parameters);
    let text = texts.len();
    let mark = |text: String| Expr::made(ExprKind::Placeholder(text.into()));
    let expr = Expr::call(
        "_FullTextScore",
        vec![
            path.clone(),
            Expr::made(ExprKind::Array(phrases.clone())),
            mark(ITEM_COUNT.to_owned()),
            mark(word_count(text)),
            mark(hit_counts(text)),
        ],
    );
    texts.push(ScoredText { path, phrases });
    Score { expr, worst: int(-1), direction }
}

/// Beyond every distance between vectors.
const VECTOR_WORST: f64 = 1e308;

/// The phrases one by one: they may stand in one list, or be the value of one parameter.
fn phrases(arguments: &[Expr], parameters: &Parameters) -> Vec<Expr> {
    match arguments {
        [Expr { kind: ExprKind::Array(list), .. }] => list.clone(),
        [list @ Expr { kind: ExprKind::Parameter(name), .. }] => match parameters.get(name).as_list() {
            Some(values) => (0..values.len()).map(|place| element(list, place)).collect(),
            None => vec![list.clone()],
        },
        list => list.to_vec(),
    }
}

fn element(list: &Expr, place: usize) -> Expr {
    Expr::made(ExprKind::Index(Box::new(list.clone()), Box::new(int(place as i64))))
}

fn int(value: i64) -> Expr {
    Expr::made(ExprKind::Literal(Literal::Int(value)))
}

/// `SELECT COUNT(1) AS documentCount, [...] AS fullTextStatistics FROM c`
fn statistics(query: &Query, texts: &[ScoredText]) -> String {
    let of_text = |text: &ScoredText| {
        let has = |phrase: &Expr| Expr::call("FullTextContains", vec![text.path.clone(), phrase.clone()]);
        let hits = text.phrases.iter().map(|phrase| Expr::call("COUNTIF", vec![has(phrase)])).collect();
        let words = Expr::call("_FullTextWordCount", vec![text.path.clone()]);
        Expr::object(vec![
            ("totalWordCount", Expr::call("SUM", vec![words])),
            ("hitCounts", Expr::made(ExprKind::Array(hits))),
        ])
    };
    let items = Expr::call("COUNT", vec![int(1)]);
    let texts = Expr::made(ExprKind::Array(texts.iter().map(of_text).collect()));
    let counts = Query {
        select: Select::list(vec![
            SelectItem { expr: items, alias: Some("documentCount".into()) },
            SelectItem { expr: texts, alias: Some("fullTextStatistics".into()) },
        ]),
        from: query.from.clone(),
        ..Query::over_items("c")
    };
    print(&counts, Layout::Clauses)
}

fn component(
    query: &Query,
    score: &Score,
    all: &[Score],
    skip: Option<u64>,
    limit: Option<u64>,
) -> QueryInfo {
    let mut rewritten = query.clone();
    let items = [OrderItem { expr: score.expr.clone(), direction: Some(score.direction) }];
    rewrite::order(&mut rewritten, &items);
    let coalesced = |score: &Score| {
        let (score, worst) = (Box::new(score.expr.clone()), Box::new(score.worst.clone()));
        Expr::made(ExprKind::Binary(BinaryOp::Coalesce, score, worst))
    };
    if let SelectSpec::List(items) = &mut rewritten.select.spec
        && let Some(payload) = items.last_mut()
    {
        let shown = std::mem::replace(&mut payload.expr, int(0));
        let scores = Expr::made(ExprKind::Array(all.iter().map(coalesced).collect()));
        payload.expr = Expr::object(vec![("payload", shown), ("componentScores", scores)]);
    }
    rewritten.order_by = Some(OrderBy::Items(items.to_vec()));
    let rows = limit.map(|limit| rows_of_component(skip.unwrap_or_default() + limit));
    let mut info = QueryInfo {
        order_by: vec![(score.direction, print_expression(&score.expr))],
        has_non_streaming_order_by: true,
        ..QueryInfo::default()
    };
    match (skip, rows) {
        (Some(_), Some(rows)) => {
            (info.offset, info.limit) = (Some(0), Some(rows));
            rewritten.select.top = None;
            rewritten.offset_limit = Some(rewrite::offset_limit(0, rows));
        }
        (_, rows) => {
            info.top = rows;
            rewritten.select.top = rows.map(Count::literal);
        }
    }
    info.rewritten_query = print(&rewritten, Layout::Clauses);
    info
}

/// An item that is far behind in one component may be in front in another, so each delivers more than is wanted. The
/// service counts in 32 bits, as the plans that were recorded of it show.
fn rows_of_component(wanted: u64) -> u64 {
    u64::from((wanted.max(LEAST_WANTED) as u32).wrapping_mul(2))
}

const LEAST_WANTED: u64 = 60;
