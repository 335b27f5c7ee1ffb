//! What clients may ask to learn about a query besides its rows: metrics, indexes, advice, and the chosen plan.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use orrery_cluster::{AccessChoice, OfferedIndexes, QueryPage, Scope};
use orrery_doc::{Path, Segment};
use orrery_query::{Chosen, IndexPath, IndexStep, Sink, advice, advice_json, explain, index_metrics};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::errors::push_json_string;
use crate::headers::{IndexMetrics, RequestHeaders, names};
use crate::items::body_rows::{BodyRows, Form};
use crate::items::query::Answered;
use crate::items::query_metrics::QueryMetrics;

/// Clients stop reading answers whose headers are too large, some at 16 KiB for all of them together. A value
/// that would be larger than this is left out: the rows matter more.
const HEADER_BYTES_MAX: usize = 6 * 1024;
/// The same for the token of the next page and these headers together.
const HEADERS_BYTES_MAX: usize = 14 * 1024;

/// What the decoders of clients would take for something else.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The headers that the request asks for, when the rows took so long to write.
pub(crate) fn headers<F: Form>(
    asked: &RequestHeaders<'_>,
    answered: &Answered<'_, F>,
    written: Duration,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut found = Vec::new();
    if asked.populate_query_metrics {
        found.push((names::QUERY_METRICS, query_metrics(answered, written).render()));
    }
    if asked.index_metrics != IndexMetrics::None {
        let value = index_metrics_value(asked.index_metrics, answered);
        found.extend(value.map(|value| (names::INDEX_METRICS, value)));
    }
    // Advice is about the text of the query, so the first page has it all.
    if asked.populate_query_advice && asked.continuation.is_none() {
        let given = advice(&answered.program);
        let value = (!given.is_empty()).then(|| percent_value(&advice_json(&given))).flatten();
        found.extend(value.map(|value| (names::QUERY_ADVICE, value)));
    }
    if asked.explain || asked.query_access != AccessChoice::Auto {
        found.push((names::QUERY_ACCESS, HeaderValue::from_static(answered.page.plan.method.name())));
    }
    let mut bytes = answered.token.as_ref().map_or(0, String::len);
    found.retain(|(_, value)| {
        let fits = bytes + value.len() <= HEADERS_BYTES_MAX;
        bytes += if fits { value.len() } else { 0 };
        fits
    });
    found
}

fn query_metrics<F: Form>(answered: &Answered<'_, F>, written: Duration) -> QueryMetrics {
    let (page, plan) = (&answered.page, &answered.page.plan);
    QueryMetrics {
        total: answered.total_time + written,
        compile: answered.compile_time,
        plan: answered.plan_time,
        index_lookup: plan.times.index_lookup,
        load: plan.times.document_load,
        loaded: (plan.documents_loaded, plan.document_bytes),
        rows: page.rows.len(),
        bytes: page.rows.byte_len(),
        write: written,
    }
}

/// A partition key that the request names counts as an index that is used.
fn index_metrics_value<F>(form: IndexMetrics, answered: &Answered<'_, F>) -> Option<HeaderValue> {
    let definition = &answered.container.definition;
    let named = match &answered.scope {
        Scope::Key(key) => key.components().len(),
        _ => 0,
    };
    let scope: Vec<IndexPath> = definition.key.paths.iter().take(named).filter_map(index_path).collect();
    let metrics = index_metrics(&answered.program, &OfferedIndexes::Defined(&definition.indexing), &scope);
    match form {
        IndexMetrics::V2 => percent_value(&metrics.to_v2_json()),
        _ => base64_value(&metrics.to_v1_json()),
    }
}

fn index_path(path: &Path) -> Option<IndexPath> {
    let step = |segment: &Segment| match segment {
        Segment::Name(name) => Some(IndexStep::Name(name.as_str().into())),
        Segment::Index(_) => None,
    };
    path.segments().iter().map(step).collect::<Option<Vec<_>>>().map(IndexPath)
}

/// How a page was found, as text for people and as JSON for programs: `{"text":"...","plan":{...}}`.
pub(crate) fn explanation<F: Form>(page: &QueryPage<BodyRows<F>>) -> String {
    let plan = &page.plan;
    let chosen = Chosen {
        method: plan.method.name(),
        used: plan.leaves.iter().filter(|leaf| leaf.used).map(|leaf| &leaf.path).collect(),
        figures: vec![
            ("scopeItems", plan.scope_items),
            ("indexEntries", plan.index_entries),
            ("documents", plan.documents_loaded),
            ("documentBytes", plan.document_bytes),
            ("rows", page.rows.len() as u64),
            ("indexLookupMicros", plan.times.index_lookup.as_micros() as u64),
            ("documentLoadMicros", plan.times.document_load.as_micros() as u64),
            ("evaluationMicros", plan.times.evaluation.as_micros() as u64),
        ],
    };
    let told = explain(plan.access.as_ref(), &chosen);
    let mut out = String::from("{\"text\":");
    push_json_string(&mut out, &told.text);
    out.push_str(",\"plan\":");
    out.push_str(&told.json);
    out.push('}');
    out
}

/// JSON in base64, which old clients expect of index metrics.
fn base64_value(json: &str) -> Option<HeaderValue> {
    value(STANDARD.encode(json))
}

/// JSON whose characters outside of ASCII are percent-encoded: newer clients decode it as part of an address.
fn percent_value(json: &str) -> Option<HeaderValue> {
    value(utf8_percent_encode(json, ESCAPED).to_string())
}

fn value(text: String) -> Option<HeaderValue> {
    if text.len() > HEADER_BYTES_MAX {
        return None;
    }
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_ascii_and_bounded() {
        let json = "{\"IndexSpec\":\"/naïve 100%/?\"}";
        let encoded = percent_value(json).expect("short");
        assert_eq!(encoded.to_str().ok(), Some("{\"IndexSpec\":\"/na%C3%AFve 100%25/?\"}"));
        let encoded = base64_value(json).expect("short");
        assert_eq!(STANDARD.decode(encoded.as_bytes()).ok().as_deref(), Some(json.as_bytes()));
        assert!(percent_value(&"x".repeat(HEADER_BYTES_MAX + 1)).is_none());
        assert!(base64_value(&"x".repeat(HEADER_BYTES_MAX)).is_none());
    }
}
