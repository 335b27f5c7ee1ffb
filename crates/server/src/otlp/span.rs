//! A request as the collector sees it.

use std::time::Duration;

use serde::Serialize;

use super::message::{Any, Attribute, Resource, SCOPE, Scope, as_text, number, text};
use super::operation::place;
use crate::metrics::Speech;

/// What is kept of a request until it is sent.
pub struct Span {
    pub trace_id: u128,
    pub span_id: u64,
    pub parent: Option<u64>,
    /// Since the epoch.
    pub began: Duration,
    pub lasted: Duration,
    pub operation: &'static str,
    pub speech: Speech,
    pub path: Box<str>,
    pub agent: Option<Box<str>>,
    pub status: u16,
    pub substatus: u32,
    pub charge: f64,
    pub rows: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Traces<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: &'a Resource<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Vec<Told<'a>>,
}

/// A span in the form of the protocol.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    #[serde(serialize_with = "as_text")]
    start_time_unix_nano: u128,
    #[serde(serialize_with = "as_text")]
    end_time_unix_nano: u128,
    attributes: Vec<Attribute<'a>>,
    status: Status,
}

#[derive(Serialize)]
struct Status {
    code: u8,
}

/// It was made for somebody who is elsewhere.
const SERVER: u8 = 2;
/// Whether it went well is left open where the client is to blame.
const UNSET: u8 = 0;
const FAILED: u8 = 2;

/// The body of a request to the collector.
pub fn traces(spans: &[Span], resource: &Resource<'_>, port: u16) -> Vec<u8> {
    // What the attributes point to.
    let words: Vec<Words<'_>> = spans.iter().map(Words::of).collect();
    let told = spans.iter().zip(&words).map(|(span, words)| span.told(words, port)).collect();
    let scopes = [ScopeSpans { scope: SCOPE, spans: told }];
    let traces = Traces { resource_spans: [ResourceSpans { resource, scope_spans: scopes }] };
    serde_json::to_vec(&traces).expect("texts and numbers are JSON")
}

struct Words<'s> {
    database: Option<std::borrow::Cow<'s, str>>,
    container: Option<std::borrow::Cow<'s, str>>,
    status: String,
}

impl Words<'_> {
    fn of(span: &Span) -> Words<'_> {
        let (database, container) = place(&span.path, span.speech);
        Words { database, container, status: span.status.to_string() }
    }
}

impl Span {
    fn told<'a>(&'a self, words: &'a Words<'a>, port: u16) -> Told<'a> {
        let Words { database, container, status } = words;
        let target = container.as_deref().or(database.as_deref());
        let mut attributes = vec![
            text("db.system.name", "azure.cosmosdb"),
            text("db.operation.name", self.operation),
            text("db.response.status_code", status),
            number("server.port", u64::from(port)),
            Attribute { key: "azure.cosmosdb.operation.request_charge", value: Any::Double(self.charge) },
            text("azure.cosmosdb.connection.mode", "gateway"),
        ];
        attributes.extend(database.as_deref().map(|name| text("db.namespace", name)));
        attributes.extend(container.as_deref().map(|name| text("db.collection.name", name)));
        if self.substatus != 0 {
            attributes.push(number("azure.cosmosdb.response.sub_status_code", u64::from(self.substatus)));
        }
        attributes.extend(self.rows.map(|rows| number("db.response.returned_rows", rows)));
        attributes.extend(self.agent.as_deref().map(|agent| text("user_agent.original", agent)));
        if self.status >= 400 {
            attributes.push(text("error.type", status));
        }
        Told {
            trace_id: format!("{:032x}", self.trace_id),
            span_id: format!("{:016x}", self.span_id),
            parent_span_id: self.parent.map(|parent| format!("{parent:016x}")),
            name: target
                .map_or_else(|| self.operation.to_owned(), |target| format!("{} {target}", self.operation)),
            kind: SERVER,
            start_time_unix_nano: self.began.as_nanos(),
            end_time_unix_nano: (self.began + self.lasted).as_nanos(),
            attributes,
            status: Status { code: if self.status >= 500 { FAILED } else { UNSET } },
        }
    }
}
