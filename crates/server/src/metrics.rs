//! Counters of the server itself, and the text in which Prometheus reads them.
//!
//! They are plain atomics: a request costs one increment, and a scrape reads a handful of numbers.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use http::StatusCode;

mod database;

pub use database::write_database;

pub struct Metrics {
    started: Instant,
    connections_open: AtomicU64,
    connections_total: AtomicU64,
    connections_refused: AtomicU64,
    connections_timed_out: AtomicU64,
    tls_failures: AtomicU64,
    /// By protocol and status class, 1xx to 5xx.
    answers: [[AtomicU64; 5]; Speech::ALL.len()],
    /// Hundredths of request units: no charge is finer.
    charged: [AtomicU64; Speech::ALL.len()],
    throttled: AtomicU64,
    spans_sent: AtomicU64,
    spans_dropped: AtomicU64,
    otlp_failures: AtomicU64,
}

/// In which protocol a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    Http,
    Direct,
    Table,
}

impl Speech {
    pub const ALL: [Speech; 3] = [Speech::Http, Speech::Direct, Speech::Table];

    fn name(self) -> &'static str {
        match self {
            Speech::Http => "http",
            Speech::Direct => "direct",
            Speech::Table => "table",
        }
    }
}

/// What was served in one protocol since the server started.
pub struct Served {
    pub protocol: &'static str,
    pub requests: u64,
    pub units: f64,
}

/// An open connection, until it is dropped.
pub struct OpenConnection(Arc<Metrics>);

impl Metrics {
    pub fn new(started: Instant) -> Metrics {
        Metrics {
            started,
            connections_open: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            connections_timed_out: AtomicU64::new(0),
            tls_failures: AtomicU64::new(0),
            answers: Default::default(),
            charged: Default::default(),
            throttled: AtomicU64::new(0),
            spans_sent: AtomicU64::new(0),
            spans_dropped: AtomicU64::new(0),
            otlp_failures: AtomicU64::new(0),
        }
    }

    pub fn connection_opened(self: &Arc<Self>) -> OpenConnection {
        self.connections_total.fetch_add(1, Relaxed);
        self.connections_open.fetch_add(1, Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Counts a connection over the limit, and says how many there were.
    pub fn connection_refused(&self) -> u64 {
        self.connections_refused.fetch_add(1, Relaxed) + 1
    }

    pub fn connection_timed_out(&self) {
        self.connections_timed_out.fetch_add(1, Relaxed);
    }

    pub fn tls_failed(&self) {
        self.tls_failures.fetch_add(1, Relaxed);
    }

    pub fn answered(&self, speech: Speech, status: StatusCode) {
        let answers = &self.answers[speech as usize];
        let class = usize::from(status.as_u16() / 100).saturating_sub(1).min(answers.len() - 1);
        answers[class].fetch_add(1, Relaxed);
        if status == StatusCode::TOO_MANY_REQUESTS {
            self.throttled.fetch_add(1, Relaxed);
        }
    }

    pub fn charged(&self, speech: Speech, units: f64) {
        self.charged[speech as usize].fetch_add((units * 100.0).round() as u64, Relaxed);
    }

    pub fn spans_sent(&self, count: u64) {
        self.spans_sent.fetch_add(count, Relaxed);
    }

    /// Spans for which there was no room, or which the collector has not taken.
    pub fn spans_dropped(&self, count: u64) {
        self.spans_dropped.fetch_add(count, Relaxed);
    }

    pub fn otlp_failed(&self) {
        self.otlp_failures.fetch_add(1, Relaxed);
    }

    pub fn served(&self) -> impl Iterator<Item = Served> {
        let counters = Speech::ALL.iter().zip(&self.answers).zip(&self.charged);
        counters.map(|((speech, answers), charged)| Served {
            protocol: speech.name(),
            requests: answers.iter().map(|count| count.load(Relaxed)).sum(),
            units: in_units(charged),
        })
    }

    /// Writes all counters in Prometheus's text format.
    pub fn write_to(&self, out: &mut String) {
        gauge(
            out,
            "orrery_uptime_seconds",
            "Time since the server started.",
            self.started.elapsed().as_secs(),
        );
        gauge(
            out,
            "orrery_connections_open",
            "Connections being served.",
            self.connections_open.load(Relaxed),
        );
        for (name, help, value) in [
            ("orrery_connections_total", "Connections accepted.", &self.connections_total),
            ("orrery_connections_refused_total", "Connections over the limit.", &self.connections_refused),
            ("orrery_connections_timed_out_total", "Connections cut off.", &self.connections_timed_out),
            ("orrery_tls_failures_total", "TLS handshakes that failed.", &self.tls_failures),
            ("orrery_throttled_total", "Requests answered with 429.", &self.throttled),
            ("orrery_otlp_spans_total", "Spans that the collector has taken.", &self.spans_sent),
            ("orrery_otlp_spans_dropped_total", "Spans that were not sent.", &self.spans_dropped),
            ("orrery_otlp_failures_total", "Sendings that the collector has not taken.", &self.otlp_failures),
        ] {
            counter(out, name, help, value.load(Relaxed));
        }
        header(
            out,
            "orrery_requests_total",
            "Requests answered, by protocol and class of status.",
            "counter",
        );
        for (speech, answers) in Speech::ALL.iter().zip(&self.answers) {
            for (index, count) in answers.iter().enumerate() {
                let (class, count) = (index + 1, count.load(Relaxed));
                line(
                    out,
                    format_args!(
                        "orrery_requests_total{{protocol=\"{}\",class=\"{class}xx\"}} {count}",
                        speech.name()
                    ),
                );
            }
        }
        header(out, "orrery_request_units_total", "Request units charged, by protocol.", "counter");
        for Served { protocol, units, .. } in self.served() {
            line(out, format_args!("orrery_request_units_total{{protocol=\"{protocol}\"}} {units}"));
        }
        if let Some(bytes) = resident_bytes() {
            gauge(out, "process_resident_memory_bytes", "Memory in use.", bytes);
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Relaxed);
    }
}

fn in_units(hundredths: &AtomicU64) -> f64 {
    hundredths.load(Relaxed) as f64 / 100.0
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    header(out, name, help, "gauge");
    line(out, format_args!("{name} {value}"));
}

fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    header(out, name, help, "counter");
    line(out, format_args!("{name} {value}"));
}

fn header(out: &mut String, name: &str, help: &str, kind: &str) {
    line(out, format_args!("# HELP {name} {help}"));
    line(out, format_args!("# TYPE {name} {kind}"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a String cannot fail");
}

/// The process's resident memory, where the system tells it the Linux way.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
