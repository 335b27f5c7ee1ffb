//! Queries over items, and the plans by which clients run them over many partitions.
//!
//! One request is answered by one partition at a time. A query that names its partition key, in a header or by
//! what it filters for, goes there. Others must be allowed to visit all partitions, and then go from one to
//! the next with each page. What cannot be answered that way, such as an order over all partitions, is left to
//! the client: it is told to fetch a plan, sends the rewritten query to each partition and merges the results.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use orrery_cluster::limits::JSON_DEPTH_MAX;
use orrery_cluster::{Container, Error, ErrorKind, Scope};
use orrery_doc::{EpkRange, Value, json, prefix_range};
use orrery_query::{Features, Parameters, Program, compile, describe, needs_plan, partition_key_filter};

use crate::call::Call;
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::items::render::Renderer;
use crate::items::{options, scope};
use crate::respond::Reply;

/// A query as clients send it: `{"query":"SELECT ...","parameters":[{"name":"@a","value":1}]}`.
struct Spec {
    text: String,
    parameters: Parameters,
}

pub(crate) async fn run(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let spec = Spec::parse(body)?;
    let compiling = Instant::now();
    let program = compile(&spec.text, &spec.parameters)?;
    let compiled = compiling.elapsed();
    let scope = narrow(call, container, &spec, &program)?;
    let options = options::page(call.headers, call.db.account().consistency)?;
    let page = match call.db.query(container, &scope, &program, &options).await {
        Ok(page) => page,
        Err(Error { kind: ErrorKind::NeedsQueryPlan, .. }) => {
            return Err(needs_plan_refusal(container, &spec));
        }
        Err(error) => return Err(error.into()),
    };
    let reply = Reply::ok(Renderer::new(container).rows(&page.rows))
        .header(names::QUERY_EXECUTION_INFO, HeaderValue::from_static(EXECUTION_INFO))
        // A logical partition is deleted before its request is answered, so none is ever half gone.
        .header(names::KEY_DELETE_PENDING, HeaderValue::from_static("false"));
    let reply = match call.headers.populate_query_metrics {
        true => {
            let metrics = Metrics {
                total_ms: compiling.elapsed().as_secs_f64() * 1e3,
                compile_ms: compiled.as_secs_f64() * 1e3,
                scanned: (page.meter.items_scanned, page.meter.bytes_scanned),
                rows: page.rows.len(),
                bytes: page.rows.byte_len(),
            };
            reply.header(names::QUERY_METRICS, metrics.render())
        }
        false => reply,
    };
    Ok(reply.page(page.rows.len(), page.continuation).receipt(page.receipt).in_container(container))
}

/// The plan of a query: how to rewrite it, where to send it, and how to merge what comes back.
pub(crate) fn plan(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply, Refusal> {
    let spec = Spec::parse(body)?;
    let features = call.headers.supported_query_features.map_or_else(Features::all, Features::from_header);
    let plan = describe(&spec.text, &spec.parameters, &container.definition.key, &features)?;
    Ok(Reply::ok(plan.to_json()).charge("query plan", PLAN_CHARGE).in_container(container))
}

impl Spec {
    fn parse(body: &[u8]) -> Result<Spec, Refusal> {
        let doc = json::parse(body, JSON_DEPTH_MAX).map_err(|error| {
            Refusal::bad_request(format!("The query request is not valid JSON: {error}."))
        })?;
        let text = match doc.root() {
            Value::Str(text) => text,
            root => root.get("query").as_str().unwrap_or_default(),
        };
        if text.trim().is_empty() {
            return Err(Refusal::bad_request("The query request has no query text."));
        }
        let parameters = Parameters::from_value(doc.root().get("parameters"))?;
        Ok(Spec { text: text.to_owned(), parameters })
    }
}

/// Decides where a query runs, or refuses to run it.
///
/// A filter for one partition key is as good as the header. Other queries over the whole container need leave to
/// visit many partitions, whether or not there are many today: what works must not stop with a split.
fn narrow(call: &Call<'_>, container: &Container, spec: &Spec, program: &Program) -> Result<Scope, Refusal> {
    let def = &container.definition.key;
    let mut scope = scope::of_request(def, call.headers)?;
    if matches!(scope, Scope::Container) && program.needs_items() {
        match partition_key_filter(program, def).as_deref() {
            Some([key]) if key.is_full(def) => scope = Scope::Key(key.clone()),
            _ if !call.headers.enable_cross_partition => return Err(Own::CrossPartitionDisabled.into()),
            _ => {}
        }
    }
    let is_mergeable = !needs_plan(program.query());
    if is_mergeable || !program.needs_items() || spans_one(container, &scope) {
        return Ok(scope);
    }
    Err(needs_plan_refusal(container, spec))
}

/// Whether one partition has all that the scope covers.
fn spans_one(container: &Container, scope: &Scope) -> bool {
    let covered = match scope {
        Scope::Range { .. } => return true,
        Scope::Container => EpkRange::full(),
        Scope::Epk(range) => range.clone(),
        Scope::Key(key) => prefix_range(&container.definition.key, key),
    };
    container.ranges().iter().filter(|range| range.range.overlaps(&covered)).count() <= 1
}

/// The refusal carries the plan, which saves clients that look for it a request.
fn needs_plan_refusal(container: &Container, spec: &Spec) -> Refusal {
    let plan = describe(&spec.text, &spec.parameters, &container.definition.key, &Features::all());
    match plan {
        Ok(plan) => Own::NeedsQueryPlan { plan: Some(plan.to_json()) }.into(),
        // What no client can merge is wrong as a query over many partitions.
        Err(error) => error.into(),
    }
}

/// Clients of ORDER BY ask which way the index was read: always forward.
const EXECUTION_INFO: &str = r#"{"reverseRidEnabled":false,"reverseIndexScan":false}"#;

/// What a plan costs; it reads no items.
const PLAN_CHARGE: f64 = 1.0;

/// What clients may ask to know about the work of a page.
struct Metrics {
    total_ms: f64,
    compile_ms: f64,
    /// Items looked at, and their bytes.
    scanned: (u32, u64),
    rows: usize,
    bytes: usize,
}

impl Metrics {
    /// The service's form: names and values with `;` between them. Times that are not taken apart here are zero.
    fn render(&self) -> HeaderValue {
        let (total, compile) = (self.total_ms, self.compile_ms);
        let mut text = format!("totalExecutionTimeInMs={total:.2};queryCompileTimeInMs={compile:.2}");
        for name in ["queryLogicalPlanBuild", "queryPhysicalPlanBuild", "queryOptimization"] {
            write!(text, ";{name}TimeInMs=0.00").expect("writing to a string cannot fail");
        }
        write!(text, ";VMExecutionTimeInMs={:.2}", (total - compile).max(0.0))
            .expect("writing to a string cannot fail");
        for name in ["indexLookup", "documentLoad", "systemFunctionExecute", "userFunctionExecute"] {
            write!(text, ";{name}TimeInMs=0.00").expect("writing to a string cannot fail");
        }
        let ((items, scanned), rows, bytes) = (self.scanned, self.rows, self.bytes);
        // The share of what was looked at that was also wanted.
        let used = if items == 0 { 1.0 } else { (rows as f64 / f64::from(items)).min(1.0) };
        write!(
            text,
            ";retrievedDocumentCount={items};retrievedDocumentSize={scanned};outputDocumentCount={rows};\
             outputDocumentSize={bytes};writeOutputTimeInMs=0.00;indexUtilizationRatio={used:.2}"
        )
        .expect("writing to a string cannot fail");
        HeaderValue::from_str(&text).expect("numbers and names are ASCII")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcome(body: &str) -> Result<String, u16> {
        Spec::parse(body.as_bytes()).map(|spec| spec.text).map_err(|refusal| refusal.wire().status.as_u16())
    }

    #[test]
    fn bodies_hold_text_and_parameters() {
        for (body, wanted) in [
            (r#"{"query":"SELECT 1"}"#, Ok("SELECT 1")),
            (r#""SELECT 1""#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":null}"#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":[{"name":"@a","value":[1]}]}"#, Ok("SELECT 1")),
            (r#"{"query":"SELECT 1","parameters":[{"name":"a"}]}"#, Err(400)),
            (r#"{"query":"SELECT 1","parameters":{}}"#, Err(400)),
            (r#"{"query":" "}"#, Err(400)),
            (r#"{"query":1}"#, Err(400)),
            ("{}", Err(400)),
            ("", Err(400)),
            ("SELECT 1", Err(400)),
        ] {
            assert_eq!(outcome(body).as_deref(), wanted.as_ref().map(|text| *text), "{body}");
        }
    }

    #[test]
    fn metrics_have_the_form_that_clients_cut() {
        let metrics =
            Metrics { total_ms: 1.5, compile_ms: 0.25, scanned: (6, 600), rows: 3, bytes: 90 }.render();
        let text = metrics.to_str().expect("ASCII");
        assert_eq!(text.split(';').count(), 16);
        for pair in text.split(';') {
            let (name, value) = pair.split_once('=').expect("a pair");
            assert!(value.parse::<f64>().is_ok(), "{name}");
        }
        assert!(text.starts_with("totalExecutionTimeInMs=1.50;queryCompileTimeInMs=0.25;"), "{text}");
        assert!(text.contains(";VMExecutionTimeInMs=1.25;"), "{text}");
        assert!(
            text.contains(";retrievedDocumentCount=6;retrievedDocumentSize=600;outputDocumentCount=3;"),
            "{text}"
        );
        assert!(text.ends_with(";indexUtilizationRatio=0.50"), "{text}");
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Spec::parse(&body);
        }
    }
}
