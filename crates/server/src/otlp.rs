//! Traces and metrics for a collector of OpenTelemetry.
//!
//! ```text
//!   a request --- begin, end ---> queue (bounded; what does not fit is dropped and counted) ---> exporter ---> collector
//!   /metrics  ------------------------------------------- every half minute -------------------^
//! ```
//!
//! A request never waits for any of it: it copies a few texts and tries the queue once. Without a collector there is no
//! tracer, and a request looks at an `Option`. The encoding is OTLP/JSON, written by hand: the libraries for it
//! would bring some forty crates for two kinds of messages (docs/decisions/0025).

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::{Request, Response};
use tokio::sync::mpsc;

use crate::config::OtlpOptions;
use crate::metrics::{Metrics, Speech};

mod context;
mod exporter;
mod message;
mod operation;
mod points;
mod span;

pub use exporter::Exporter;

use context::Context;
use span::Span;

/// Spans that wait for the exporter. Each is a few hundred bytes.
const QUEUE_SPANS: usize = 2_048;
/// Bytes of a path and of a client's name that are kept.
const PATH_BYTES_MAX: usize = 1_024;
const AGENT_BYTES_MAX: usize = 256;

/// Notes requests for the collector.
pub struct Tracer {
    queue: mpsc::Sender<Span>,
    metrics: Arc<Metrics>,
    ids: Ids,
    /// Of all numbers of 64 bits, those below it are traced.
    sampled_below: u64,
    is_all_sampled: bool,
}

/// A request in progress that is traced.
pub struct OpenSpan {
    span: Span,
    began: Instant,
}

/// The tracer and the one who empties its queue, where the operator names a collector.
pub fn set_up(options: &OtlpOptions, metrics: &Arc<Metrics>, port: u16) -> Option<(Arc<Tracer>, Exporter)> {
    let to = options.collector()?;
    let (queue, spans) = mpsc::channel(QUEUE_SPANS);
    let tracer = Tracer {
        queue,
        metrics: Arc::clone(metrics),
        ids: Ids::default(),
        sampled_below: (options.otlp_sample * u64::MAX as f64) as u64,
        is_all_sampled: options.otlp_sample >= 1.0,
    };
    Some((Arc::new(tracer), Exporter::new(to, options, spans, Arc::clone(metrics), port)))
}

/// Sends what is left when the server stops.
pub async fn end(telling: Option<exporter::Ending>) {
    if let Some(telling) = telling {
        telling.come().await;
    }
}

impl Tracer {
    /// Begins the span of a request, if it is one of a client's and is traced.
    pub fn begin<B>(&self, request: &Request<B>, speech: Speech) -> Option<Box<OpenSpan>> {
        let operation = operation::of(request, speech)?;
        let context = Context::of(request.headers());
        let span_id = self.ids.next();
        let is_sampled =
            context.as_ref().map_or(self.is_all_sampled || span_id < self.sampled_below, |c| c.is_sampled);
        if !is_sampled {
            return None;
        }
        let (trace_id, parent) = match context {
            Some(context) => (context.trace_id, Some(context.span_id)),
            None => ((u128::from(self.ids.next()) << 64) | u128::from(span_id), None),
        };
        let span = Span {
            trace_id,
            span_id,
            parent,
            began: since_epoch(),
            lasted: Duration::ZERO,
            operation,
            speech,
            path: cut(request.uri().path(), PATH_BYTES_MAX),
            agent: text(request.headers(), "user-agent").map(|agent| cut(agent, AGENT_BYTES_MAX)),
            status: 0,
            substatus: 0,
            charge: 0.0,
            rows: None,
        };
        Some(Box::new(OpenSpan { span, began: Instant::now() }))
    }

    /// Ends it and hands it on, if there is room.
    pub fn end<B>(&self, open: OpenSpan, response: &Response<B>) {
        let OpenSpan { mut span, began } = open;
        let number = |name: &str| text(response.headers(), name).and_then(|text| text.parse::<f64>().ok());
        span.lasted = began.elapsed();
        span.status = response.status().as_u16();
        span.substatus = number("x-ms-substatus").unwrap_or(0.0) as u32;
        span.charge = number("x-ms-request-charge").unwrap_or(0.0);
        span.rows = number("x-ms-item-count").map(|count| count as u64);
        if self.queue.try_send(span).is_err() {
            self.metrics.spans_dropped(1);
        }
    }
}

fn text<'h>(headers: &'h http::HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn cut(text: &str, bytes_max: usize) -> Box<str> {
    let most = text.len().min(bytes_max);
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text[..end].into()
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Ids that nobody guesses and that do not come twice: a keyed hash of a counter.
#[derive(Default)]
struct Ids {
    key: RandomState,
    next: AtomicU64,
}

impl Ids {
    /// Zero is no id.
    fn next(&self) -> u64 {
        self.key.hash_one(self.next.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}
