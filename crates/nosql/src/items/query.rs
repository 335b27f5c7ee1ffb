//! Queries over items, and the plans by which clients run them over many partitions.
//!
//! One request is answered by one partition at a time. A query that names its partition key, in a header or by
//! what it filters for, goes there. Others must be allowed to visit all partitions, and then go from one to
//! the next with each page. What cannot be answered that way, such as an order over all partitions, is left to
//! the client: it is told to fetch a plan, sends the rewritten query to each partition and merges the results.
//! A client that cannot do that may ask us to merge, with a header of ours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use orrery_cluster::{Container, Cursor, Error, ErrorKind, PageOptions, QueryPage, Scope};
use orrery_doc::EpkRange;
use orrery_query::ast::{Direction, OrderBy, Query, SelectSpec};
use orrery_query::{
    Features, Program, QueryError, QueryPlan, Sink, describe_with, needs_plan, partition_key_filter,
};

use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::items::body_rows::{Binary, BodyRows, Form, Text};
use crate::items::query_settings::plan_settings;
use crate::items::{continuation, diagnostics, options, ranked, scope};
use crate::query_spec::QuerySpec;
use crate::respond::Reply;

/// A query that has been answered, for those who tell about it.
pub(crate) struct Answered<'a, F> {
    pub container: &'a Container,
    pub scope: Scope,
    pub program: Program,
    pub page: QueryPage<BodyRows<F>>,
    /// Where the next page begins, in the form for clients.
    pub token: Option<String>,
    pub compile_time: Duration,
    pub plan_time: Duration,
    pub total_time: Duration,
}

pub(crate) async fn run(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    match call.headers.wants_binary_rows() {
        true => run_in::<Binary>(call, container, body).await,
        false => run_in::<Text>(call, container, body).await,
    }
}

async fn run_in<F: Form>(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let started = Instant::now();
    let spec = QuerySpec::parse(body)?;
    let compiled = || call.db.compile(container, &spec.text, &spec.parameters);
    let mut program = match at_length(call, container, body, compiled).await? {
        Err(QueryError::Ranked) => return ranked::run::<F>(call, container, &spec).await,
        program => program?,
    };
    if let Some(filter) = &spec.resume {
        program.resume_at(filter.point(container.resource.rid)?)?;
    }
    let compile_time = started.elapsed();
    let options = PageOptions {
        continuation: options::cursor(call.headers)?,
        ..options::page(call.headers, call.db.account().consistency, call.page_bytes)?
    };
    let mut container = container.clone();
    let mut plan_time = Duration::ZERO;
    let (scope, found) = loop {
        let planning = Instant::now();
        let narrowed = || narrow(call, &container, &spec, &program);
        let Place { scope, merges } = at_length(call, &container, body, narrowed).await??;
        plan_time += planning.elapsed();
        let found = match merges && !spans_one(&container, &scope) && needs_plan(program.query()) {
            true => call.db.query_merged_into::<BodyRows<F>>(&container, &scope, &program, &options).await,
            false => call.db.query_into::<BodyRows<F>>(&container, &scope, &program, &options).await,
        };
        match (&found, call.db.catalog().container_by_rid(container.resource.rid)) {
            // The range was succeeded by others while it was asked.
            (Err(error), Some(newer)) if is_gone(error) && knows_as_gone(newer, &container, &scope) => {
                container = newer.clone();
            }
            _ => break (scope, found),
        }
    };
    let container = &container;
    let page = match found {
        Ok(page) => page,
        Err(Error { kind: ErrorKind::NeedsQueryPlan, .. }) => {
            return Err(at_length(call, container, body, || needs_plan_refusal(container, &spec)).await?);
        }
        Err(error) => return Err(error.into()),
    };
    let token = token(call, container, &scope, &page)?;
    let total_time = started.elapsed();
    let mut answered =
        Answered { container, scope, program, page, token, compile_time, plan_time, total_time };
    Ok(reply(call, &mut answered)
        .page(answered.page.rows.len(), answered.token)
        .receipt(answered.page.receipt)
        .shown_range(gone_range(call, container))
        .in_container(container))
}

fn reply<F: Form>(call: &Call<'_>, answered: &mut Answered<'_, F>) -> Reply {
    let (page, owner) = (&mut answered.page, answered.container.resource.rid);
    let writing = Instant::now();
    let explanation = call.headers.explain.then(|| diagnostics::explanation(page));
    let body = page.rows.take_body(owner, explanation.as_deref());
    let written = writing.elapsed();
    let execution_info = execution_info(answered.program.query());
    let mut reply = Reply::ok(body)
        .header(names::QUERY_EXECUTION_INFO, HeaderValue::from_static(execution_info))
        // A logical partition is deleted before its request is answered, so none is ever half gone.
        .header(names::KEY_DELETE_PENDING, HeaderValue::from_static("false"));
    for (name, value) in diagnostics::headers(call.headers, answered, written) {
        reply = reply.header(name, value);
    }
    reply
}

/// The plan of a query: how to rewrite it, where to send it, and how to merge what comes back.
pub(crate) async fn plan(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let spec = QuerySpec::parse(body)?;
    if let Some(filter) = &spec.resume {
        // A plan does not depend on it, but nothing that is malformed is passed over.
        filter.point(container.resource.rid)?;
    }
    let features = call.headers.supported_query_features.map_or_else(Features::all, Features::from_header);
    let plan = at_length(call, container, body, || describe(container, &spec, &features)).await??;
    Ok(Reply::ok(plan.to_json()).charge("query plan", PLAN_CHARGE).in_container(container))
}

/// Works on the text of a query. If the body is long, that is done by turns with other long work; to hand it over costs more
/// than a short text does.
async fn at_length<T>(
    call: &Call<'_>,
    container: &Container,
    body: &[u8],
    work: impl FnOnce() -> T,
) -> Result<T, Refusal> {
    if body.len() <= LONG_BODY_BYTES {
        return Ok(work());
    }
    Ok(call.db.by_turns(Some(container), body.len(), work).await?)
}

pub(super) fn describe(
    container: &Container,
    spec: &QuerySpec,
    features: &Features,
) -> orrery_query::Result<QueryPlan> {
    let settings = plan_settings(container);
    describe_with(&spec.text, &spec.parameters, &container.definition.key, features, &settings)
}

/// Where a query runs.
pub(super) struct Place {
    pub scope: Scope,
    /// Whether the answers of several partitions are merged here.
    pub merges: bool,
}

fn is_gone(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::RangeGone)
}

/// Whether a range has gone since the container was looked at.
fn knows_as_gone(newer: &Container, container: &Container, scope: &Scope) -> bool {
    let Some(range_id) = scope.range_id() else { return false };
    newer.gone_range(range_id).is_some() && container.gone_range(range_id).is_none()
}

/// A client may name a range that was split or merged since it looked. It is told so, as by the service, upon which
/// it looks again. What the range held is known, though, so a query that knows is answered as it was meant.
pub(super) fn of_gone(call: &Call<'_>, container: &Container, scope: Scope) -> (Scope, bool) {
    match scope.range_id().and_then(|id| container.gone_range(id)) {
        Some(gone) => {
            let part = scope.covered(&container.definition.key).intersection(&gone.range);
            if !is_answered(call, container, gone.id, &part) {
                return (scope, false);
            }
            let scope = match scope {
                Scope::Below { key, .. } => Scope::Below { key, range_id: None, epk: Some(part) },
                _ => Scope::Epk(part),
            };
            (scope, true)
        }
        None => (scope, false),
    }
}

/// The range that is gone and was named all the same, in the middle of its pages or where a part of it was merged with a neighbour.
/// It is shown in the answer: clients that are shown another than they asked look which ranges there are, in the middle of a query
/// whose other ranges they go on asking as they knew them. Who begins a range anew after a mere split is shown what is there now:
/// azure-cosmos for Python learns of the split by this.
fn gone_range(call: &Call<'_>, container: &Container) -> Option<u32> {
    let named = scope::range_id(call.headers.range_id?).ok()?;
    let gone = container.gone_range(named)?;
    let is_shown = call.headers.continuation.is_some() || reaches_beyond(container, &gone.range);
    is_shown.then_some(gone.id)
}

/// Whether a range that is there now holds some of a part of the key space and more than that.
fn reaches_beyond(container: &Container, part: &EpkRange) -> bool {
    container.ranges().iter().any(|range| range.range.overlaps(part) && !part.contains_range(&range.range))
}

/// Whether a query over a part of a range that is gone is answered: it was told before, its client asks for ever when it is
/// told, this is not its first page, or what is there now reaches beyond the part. Told in its middle, the Python SDK begins
/// the range anew. The Java SDK asks the ranges that overlap the part for all that they hold, so where one was merged with
/// a neighbour, which it asks as well, it returns the rows of that twice.
fn is_answered(call: &Call<'_>, container: &Container, range: u32, part: &EpkRange) -> bool {
    let was_told = |query: &str| call.told.before(query, container.resource.rid, range);
    call.headers.continuation.is_some()
        || call.headers.asks_gone_ranges_for_ever()
        || reaches_beyond(container, part)
        || call.headers.correlated_activity_id.is_some_and(was_told)
}

/// Decides where a query runs, or refuses to run it.
///
/// A filter for one partition key is as good as the header. Other queries over the whole container need leave to
/// visit many partitions, whether or not there are many today: what works must not stop with a split.
fn narrow(
    call: &Call<'_>,
    container: &Container,
    spec: &QuerySpec,
    program: &Program,
) -> Result<Place, Refusal> {
    let def = &container.definition.key;
    let (mut scope, is_gone) = of_gone(call, container, scope::of_request(container, call.headers)?);
    let (crosses, merges) = (call.headers.enable_cross_partition, call.headers.merge_here || is_gone);
    if matches!(scope, Scope::Container) && program.needs_items() {
        // Clients are to merge what they said may cross partitions, and they refuse aggregates that they
        // could not merge: they are given the chance even where a filter happens to name one partition.
        if crosses && !merges && aggregates_into_objects(container, spec, program) {
            return Err(needs_plan_refusal(container, spec));
        }
        match partition_key_filter(program, def).as_deref() {
            Some([key]) if key.is_full(def) => scope = Scope::Key(key.clone()),
            _ if !crosses => return Err(Own::CrossPartitionDisabled.into()),
            _ => {}
        }
    }
    let is_served = merges || !needs_plan(program.query()) || !program.needs_items();
    if is_served || spans_one(container, &scope) {
        return Ok(Place { scope, merges });
    }
    Err(needs_plan_refusal(container, spec))
}

/// `SELECT COUNT(1) FROM c`: aggregates without VALUE and without groups.
fn aggregates_into_objects(container: &Container, spec: &QuerySpec, program: &Program) -> bool {
    let query = program.query();
    if !matches!(query.select.spec, SelectSpec::List(_)) || !query.group_by.is_empty() {
        return false;
    }
    let plan = describe(container, spec, &Features::all());
    plan.is_ok_and(|plan| plan.info.group_by_aliases.iter().any(|(_, kind)| kind.is_some()))
}

/// Whether one partition has all that the scope covers. The whole container never counts as one partition, as in the
/// service: a query that works while there is one must not stop with a split.
pub(super) fn spans_one(container: &Container, scope: &Scope) -> bool {
    if matches!(scope, Scope::Container) || scope.range_id().is_some() {
        return scope.range_id().is_some();
    }
    let covered = scope.covered(&container.definition.key);
    container.ranges().iter().filter(|range| range.range.overlaps(&covered)).count() <= 1
}

/// Whether the pages of a scope lead from partition to partition, so that clients look into their continuations.
pub(super) fn crosses(container: &Container, scope: &Scope) -> bool {
    matches!(scope, Scope::Container | Scope::Key(_)) && !spans_one(container, scope)
}

/// The refusal carries the plan, which saves clients that look for it a request.
pub(super) fn needs_plan_refusal(container: &Container, spec: &QuerySpec) -> Refusal {
    match describe(container, spec, &Features::all()) {
        Ok(plan) => Own::NeedsQueryPlan { plan: Some(plan.to_json()) }.into(),
        // What no client can merge is wrong as a query over many partitions.
        Err(error) => error.into(),
    }
}

/// Where the next page begins, in the form that clients expect. A client that names one range, or has us merge,
/// is given the token as it is.
fn token<S>(
    call: &Call<'_>,
    container: &Container,
    scope: &Scope,
    page: &QueryPage<S>,
) -> Result<Option<String>, Refusal> {
    let limit_kb = call.headers.continuation_limit_kb;
    if !crosses(container, scope) || call.headers.merge_here {
        return bound_token(page.continuation.as_ref(), limit_kb, 0);
    }
    let answered = page.receipt.served.map(|served| served.range_id);
    let token = bound_token(page.continuation.as_ref(), limit_kb, continuation::WRAP_BYTES_MAX)?;
    let place = page.continuation.as_ref().and_then(|cursor| cursor.place.as_ref());
    Ok(token.map(|token| continuation::wrap(token, place, container, answered)))
}

/// Keeps the token within what the client accepts. It holds the values that a query orders by; where these are long
/// strings, it can do with their beginnings. A client whose headers overflow only sees the connection break, so if
/// nothing helps it is told instead.
fn bound_token(
    cursor: Option<&Cursor>,
    limit_kb: Option<u32>,
    reserved: usize,
) -> Result<Option<String>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    let wanted = limit_kb.map_or(CONTINUATION_BYTES_MAX, |kb| (kb as usize).saturating_mul(1024));
    let bytes_max = wanted.clamp(CONTINUATION_BYTES_MIN, CONTINUATION_BYTES_MAX) - reserved;
    let token = continuation::write(cursor);
    if token.len() <= bytes_max {
        return Ok(Some(token));
    }
    match continuation::shorten(cursor, bytes_max) {
        Some(shorter) => Ok(Some(continuation::write(&shorter))),
        None if token.len() <= CONTINUATION_BYTES_MAX - reserved => Ok(Some(token)),
        None => Err(Refusal::bad_request(format!(
            "The continuation token of this page would have {} bytes, more than the {CONTINUATION_BYTES_MAX} that \
             clients accept, because of what the query orders by. Ask for larger pages or order by something \
             shorter.",
            token.len()
        ))),
    }
}

/// Clients that go on in the middle of equal ORDER BY keys ask which way such rows follow each other: ours
/// do so in the direction of the first key.
fn execution_info(query: &Query) -> &'static str {
    let first = match &query.order_by {
        Some(OrderBy::Items(items)) => items.first().and_then(|item| item.direction),
        _ => None,
    };
    match first {
        Some(Direction::Descending) => r#"{"reverseRidEnabled":false,"reverseIndexScan":true}"#,
        _ => r#"{"reverseRidEnabled":false,"reverseIndexScan":false}"#,
    }
}

/// Node accepts 16 KiB for all headers together, and aiohttp 8,190 bytes for one.
const CONTINUATION_BYTES_MAX: usize = 8_000;
/// The service's own least limit.
const CONTINUATION_BYTES_MIN: usize = 1024;

/// Queries longer than this may take a while to compile.
const LONG_BODY_BYTES: usize = 16 * 1024;

/// What a plan costs; it reads no items.
const PLAN_CHARGE: f64 = 1.0;
