//! Empties the queue of spans and reads the metrics page, and sends both to the collector.
//!
//! One request at a time. While a collector is away or slow the queue fills, and further spans are dropped: requests of
//! clients are more important than what is told about them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};

use super::message::{Resource, text};
use super::points::metrics;
use super::since_epoch;
use super::span::{Span, traces};
use crate::admin::Admin;
use crate::client::{Poster, Unwilling};
use crate::config::OtlpOptions;
use crate::metrics::Metrics;

/// Spans that are sent together, and how long the first of them waits for others.
const BATCH_SPANS: usize = 512;
const BATCH_TIME: Duration = Duration::from_secs(1);
/// How long the collector may take for one of them.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How long a stopping server waits for the rest to be sent.
const LAST_TIME_MAX: Duration = Duration::from_secs(5);

pub struct Exporter {
    spans: mpsc::Receiver<Span>,
    poster: Poster,
    service: String,
    instance: String,
    port: u16,
    metrics_every: Duration,
    metrics: Arc<Metrics>,
    started: Duration,
    is_failing: bool,
    /// The server stops, so that nothing is tried twice.
    is_ending: bool,
}

/// Ends the exporter when the server stops.
pub struct Ending {
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Ending {
    /// Sends what is left, if the collector takes it soon.
    pub async fn come(self) {
        let _ = self.stop.send(true);
        let _ = timeout(LAST_TIME_MAX, self.task).await;
    }
}

impl Exporter {
    pub fn new(
        to: Uri,
        options: &OtlpOptions,
        spans: mpsc::Receiver<Span>,
        metrics: Arc<Metrics>,
        port: u16,
    ) -> Exporter {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Exporter {
            spans,
            poster: Poster::new(to, options.ca_file()).with_headers(&options.headers()),
            service: options.service_name(),
            instance: format!("{host}:{port}"),
            port,
            metrics_every: options.otlp_metrics_seconds,
            metrics,
            started: since_epoch(),
            is_failing: false,
            is_ending: false,
        }
    }

    pub fn start(self, admin: Arc<Admin>) -> Ending {
        let (stop, stopped) = watch::channel(false);
        Ending { stop, task: tokio::spawn(self.run(admin, stopped)) }
    }

    async fn run(mut self, admin: Arc<Admin>, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(self.metrics_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH_SPANS);
        loop {
            tokio::select! {
                () = told_to_stop(&mut stopped) => break,
                _ = ticks.tick() => self.send_metrics(&admin).await,
                count = self.spans.recv_many(&mut batch, BATCH_SPANS) => {
                    if count == 0 {
                        break;
                    }
                    tokio::select! {
                        () = told_to_stop(&mut stopped) => {}
                        () = self.fill(&mut batch) => {}
                    }
                    self.send_spans(&mut batch).await;
                }
            }
        }
        self.is_ending = true;
        self.spans.close();
        while self.spans.recv_many(&mut batch, BATCH_SPANS).await > 0 {
            self.send_spans(&mut batch).await;
        }
        self.send_metrics(&admin).await;
    }

    /// Waits for spans that may go along.
    async fn fill(&mut self, batch: &mut Vec<Span>) {
        let until = Instant::now() + BATCH_TIME;
        while batch.len() < BATCH_SPANS {
            let free = BATCH_SPANS - batch.len();
            match timeout_at(until, self.spans.recv_many(batch, free)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    async fn send_spans(&mut self, batch: &mut Vec<Span>) {
        let body = traces(batch, &resource(&self.service, &self.instance), self.port);
        let spans = batch.len() as u64;
        batch.clear();
        match self.send("/v1/traces", body.into()).await {
            true => self.metrics.spans_sent(spans),
            false => self.metrics.spans_dropped(spans),
        }
    }

    async fn send_metrics(&mut self, admin: &Admin) {
        // Only the operator's own collector reads it, so that names are shown.
        let page = admin.metrics_text(true);
        let body = metrics(&page, &resource(&self.service, &self.instance), self.started, since_epoch());
        self.send("/v1/metrics", body.into()).await;
    }

    /// Whether the collector has taken it, in a few attempts.
    async fn send(&mut self, path: &str, body: Bytes) -> bool {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let sent = timeout(SEND_TIME_MAX, self.poster.post(path, body.clone())).await;
            let error = match sent.unwrap_or_else(|_| Err(anyhow::anyhow!("it took too long"))) {
                Ok(()) => {
                    if std::mem::take(&mut self.is_failing) {
                        tracing::info!(collector = %self.poster.to(), "the collector takes traces and metrics again");
                    }
                    return true;
                }
                Err(error) => error,
            };
            if attempt == ATTEMPTS || self.is_ending || !may_be_repeated(&error) {
                self.metrics.otlp_failed();
                // Once, and not again until it has gone well in between.
                if !std::mem::replace(&mut self.is_failing, true) {
                    let error = format!("{error:#}");
                    tracing::warn!(collector = %self.poster.to(), error, "the collector does not take traces or metrics");
                }
                return false;
            }
            sleep(pause).await;
            pause *= 2;
        }
        false
    }
}

async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|is_over| *is_over).await;
}

/// What OTLP says about answers: some mean that the same would be refused again.
fn may_be_repeated(error: &anyhow::Error) -> bool {
    let status = error.downcast_ref::<Unwilling>().map(|Unwilling(status)| status.as_u16());
    status.is_none_or(|status| matches!(status, 429 | 502 | 503 | 504))
}

fn resource<'a>(service: &'a str, instance: &'a str) -> Resource<'a> {
    Resource {
        attributes: vec![
            text("service.name", service),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", instance),
        ],
    }
}
