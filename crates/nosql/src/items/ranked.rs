//! ORDER BY RANK, where one partition holds all that is asked for or the client has us merge.
//!
//! Other clients carry out the plan themselves; here we do as they would: count the texts, ask for each score's best items,
//! and give each item its sum. What is counted is what the request ranges over, such as one logical partition. Each page
//! does all of it anew; the continuation says how many rows are out.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use orrery_cluster::limits::RANKED_ROWS_MAX;
use orrery_cluster::{Container, Cursor, PageOptions, QueryPage, Receipt, Scope};
use orrery_doc::{Doc, Value};
use orrery_query::ast::Direction;
use orrery_query::{
    Carry, Documents, Features, PinnedKeys, QueryError, QueryPlan, Ranking, Sink, TextStatistics, Val,
};

use super::body_rows::{BodyRows, Form};
use super::query::{Place, describe, needs_plan_refusal, of_gone, spans_one};
use super::{continuation, options, scope};
use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::query_spec::QuerySpec;
use crate::respond::Reply;

pub(super) async fn run<F: Form>(
    call: &Call<'_>,
    container: &Arc<Container>,
    spec: &QuerySpec,
) -> Result<Reply, Refusal> {
    if spec.resume.is_some() {
        return Err(Refusal::bad_request(
            "A query with ORDER BY RANK cannot be resumed with a filter.".to_owned(),
        ));
    }
    let plan = describe(container, spec, &Features::all())?;
    let Place { scope, merges } = narrow(call, container, spec, &plan)?;
    let Some(ranking) = &plan.ranking else { return Err(QueryError::Ranked.into()) };
    let out = rows_out(options::cursor(call.headers)?)?;
    let options = options::page(call.headers, call.db.account().consistency, call.page_bytes)?;
    let mut reading = Reading { call, container, scope, merges, spec, options, done: Done::default() };
    let found = match ranking.needs_statistics {
        true => reading.statistics(ranking).await?,
        false => TextStatistics::default(),
    };
    let mut components = Vec::with_capacity(ranking.components.len());
    for query in ranking.component_queries(&found) {
        components.push(reading.rows(&query).await?);
    }
    let ranked = ranked(components, ranking);
    let wanted = ranked.iter().skip(ranking.skip.unwrap_or_default() as usize);
    let wanted = wanted.take(ranking.take.map_or(usize::MAX, |take| take as usize));
    let (rows, goes_on) = page::<F>(wanted.skip(out), &reading.options)?;
    let cursor = Cursor { place: None, state: Some(Carry::Emitted((out + rows.len()) as u64)) };
    Ok(reading.reply(rows, goes_on.then(|| continuation::write(&cursor))))
}

/// Where the query runs, or the plan for a client that merges.
fn narrow(
    call: &Call<'_>,
    container: &Container,
    spec: &QuerySpec,
    plan: &QueryPlan,
) -> Result<Place, Refusal> {
    let (mut scope, is_gone) = of_gone(call, container, scope::of_request(container, call.headers)?);
    let merges = call.headers.merge_here || is_gone;
    if matches!(scope, Scope::Container) {
        match &plan.keys {
            PinnedKeys::Only(keys) if keys.len() == 1 && keys[0].is_full(&container.definition.key) => {
                scope = Scope::Key(keys[0].clone());
            }
            _ if !call.headers.enable_cross_partition => return Err(Own::CrossPartitionDisabled.into()),
            _ => {}
        }
    }
    if merges || spans_one(container, &scope) {
        return Ok(Place { scope, merges });
    }
    Err(needs_plan_refusal(container, spec))
}

/// How many rows earlier pages had.
fn rows_out(cursor: Option<Cursor>) -> Result<usize, Refusal> {
    match cursor {
        None => Ok(0),
        Some(Cursor { place: None, state: Some(Carry::Emitted(rows)) }) => Ok(rows as usize),
        Some(_) => {
            Err(QueryError::InvalidContinuation("The continuation belongs to a query of another kind.")
                .into())
        }
    }
}

/// What the queries that were run so far have done.
#[derive(Default)]
struct Done {
    receipt: Receipt,
    /// Their rows stay in the memory that was lent for them.
    pages: Vec<QueryPage<Documents>>,
}

struct Reading<'c> {
    call: &'c Call<'c>,
    container: &'c Arc<Container>,
    scope: Scope,
    merges: bool,
    spec: &'c QuerySpec,
    options: PageOptions,
    done: Done,
}

impl Reading<'_> {
    /// All rows of one of the plan's queries.
    async fn rows(&mut self, text: &str) -> Result<Vec<Doc>, Refusal> {
        let (db, container) = (self.call.db, self.container);
        let program = db.compile(container, text, &self.spec.parameters)?;
        let mut options = PageOptions { items_max: RANKED_ROWS_MAX, ..self.options.clone() };
        let mut rows = Vec::new();
        loop {
            let mut page = match self.merges && !spans_one(container, &self.scope) {
                true => db.query_merged_into::<Documents>(container, &self.scope, &program, &options).await?,
                false => db.query_into::<Documents>(container, &self.scope, &program, &options).await?,
            };
            rows.extend(page.rows.iter().cloned());
            self.done.receipt.charge.lines.append(&mut page.receipt.charge.lines);
            self.done.receipt.served = page.receipt.served.or(self.done.receipt.served);
            options.continuation = page.continuation.take();
            self.done.pages.push(page);
            if rows.len() > RANKED_ROWS_MAX {
                return Err(Refusal::bad_request(format!(
                    "The query ranks more than {RANKED_ROWS_MAX} items at once. Say how many are wanted with TOP or OFFSET \
                     LIMIT, or narrow them with WHERE."
                )));
            }
            if options.continuation.is_none() {
                return Ok(rows);
            }
        }
    }

    async fn statistics(&mut self, ranking: &Ranking) -> Result<TextStatistics, Refusal> {
        let rows = self.rows(&ranking.statistics_query).await?;
        let counts = rows.first().map_or(Value::Undefined, Doc::root);
        let number = |value: Value<'_>| value.as_f64().unwrap_or_default() as u64;
        let text = |text: Value<'_>| {
            let hits = text.get("hitCounts").as_array().into_iter().flat_map(|hits| hits.iter());
            (number(text.get("totalWordCount")), hits.map(number).collect())
        };
        let texts = counts.get("fullTextStatistics").as_array().into_iter().flat_map(|texts| texts.iter());
        Ok(TextStatistics { items: number(counts.get("documentCount")), texts: texts.map(text).collect() })
    }

    fn reply<F: Form>(self, mut rows: BodyRows<F>, token: Option<String>) -> Reply {
        let body = rows.take_body(self.container.resource.rid, None);
        let execution_info =
            HeaderValue::from_static(r#"{"reverseRidEnabled":false,"reverseIndexScan":false}"#);
        Reply::ok(body)
            .header(names::QUERY_EXECUTION_INFO, execution_info)
            .page(rows.len(), token)
            .receipt(self.done.receipt)
            .in_container(self.container)
    }
}

/// The rows, best first. Those of a single score have come in its order; of several, items are fused by their places.
fn ranked(mut components: Vec<Vec<Doc>>, ranking: &Ranking) -> Vec<Doc> {
    if components.len() == 1 {
        return components.remove(0);
    }
    let rid = |row: &Doc| row.root().get("_rid").as_str().unwrap_or_default().to_owned();
    let items: BTreeMap<String, Doc> = components.into_iter().flatten().map(|row| (rid(&row), row)).collect();
    let items: Vec<Doc> = items.into_values().collect();
    let mut sums = vec![0.0; items.len()];
    for (component, info) in ranking.components.iter().enumerate() {
        let score = |item: &Doc| {
            let scores = item.root().get("payload").get("componentScores");
            scores.as_array().and_then(|scores| scores.get(component).as_f64()).unwrap_or(f64::MIN)
        };
        let mut places: Vec<(f64, usize)> = items.iter().map(score).zip(0..).collect();
        let is_descending = info.order_by.first().is_some_and(|(order, _)| *order == Direction::Descending);
        places.sort_by(|a, b| if is_descending { b.0.total_cmp(&a.0) } else { a.0.total_cmp(&b.0) });
        let weight = ranking.weights.get(component).copied().unwrap_or(1.0);
        let (mut place, mut last) = (0.0, None);
        for (score, item) in places {
            // Equal scores share a place.
            if last != Some(score) {
                place += 1.0;
                last = Some(score);
            }
            sums[item] += weight / (PLACES_BEFORE_FIRST + place);
        }
    }
    let mut ranked: Vec<(f64, Doc)> = sums.into_iter().zip(items).collect();
    ranked.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    ranked.into_iter().map(|(_, item)| item).collect()
}

/// The constant of reciprocal rank fusion that all SDKs have.
const PLACES_BEFORE_FIRST: f64 = 60.0;

/// The rows of one page, and whether there are more.
fn page<'r, F: Form>(
    rows: impl Iterator<Item = &'r Doc>,
    options: &PageOptions,
) -> Result<(BodyRows<F>, bool), Refusal> {
    let mut page = BodyRows::<F>::default();
    for row in rows {
        if page.len() >= options.items_max || page.byte_len() >= options.bytes_max {
            return Ok((page, true));
        }
        let shown = Val::from(row.root().get("payload").get("payload"));
        page.push(&shown, options.bytes_max)?;
    }
    Ok((page, false))
}
