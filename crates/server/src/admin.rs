//! The server's own pages, beside the API: probes, metrics, the certificate authority.
//!
//! None of them asks for a key. They say how the server is and never show an item. Off loopback, where others can ask,
//! `/metrics` shows RIDs instead of the names of databases and containers, unless the operator wants it otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use orrery_cluster::Db;

use crate::metrics::{self, Metrics};
use crate::tls::Tls;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Ready,
    Health,
    Metrics,
    AuthorityPem,
}

impl Page {
    /// The page at a path, if the path is not the API's.
    pub fn at(path: &str) -> Option<Page> {
        match path {
            "/ready" => Some(Page::Ready),
            // Kubernetes and the vendor's emulator have different habits.
            "/healthz" | "/health" | "/alive" => Some(Page::Health),
            "/metrics" => Some(Page::Metrics),
            "/_explorer/emulator.pem" => Some(Page::AuthorityPem),
            _ => None,
        }
    }
}

pub struct Admin {
    db: Db,
    metrics: Arc<Metrics>,
    tls: Arc<Tls>,
    /// Whether `/metrics` may show names.
    shows_names: bool,
    stopping: AtomicBool,
    /// What is given at the start is still being written.
    seeding: AtomicBool,
}

impl Admin {
    pub fn new(db: Db, metrics: Arc<Metrics>, tls: Arc<Tls>, shows_names: bool) -> Admin {
        Admin {
            db,
            metrics,
            tls,
            shows_names,
            stopping: AtomicBool::new(false),
            seeding: AtomicBool::new(false),
        }
    }

    /// From now on the server is not ready for new work, though it finishes what it has.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the server still writes what it was given at the start; until then it is not ready.
    pub fn seed(&self, is_under_way: bool) {
        self.seeding.store(is_under_way, Ordering::Relaxed);
    }

    pub async fn answer(&self, page: Page, method: &Method) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed here\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match page {
            Page::Ready if self.stopping.load(Ordering::Relaxed) => {
                text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
            }
            Page::Ready if self.seeding.load(Ordering::Relaxed) => {
                text(StatusCode::SERVICE_UNAVAILABLE, "what --seed names is being written\n")
            }
            // It goes on with reads and deletes, so that a client which sends requests here must not stop.
            Page::Ready if self.db.is_disk_full() => text(
                StatusCode::OK,
                "ready, but writes are refused: the disk is full, or the limit on disk use is reached; reads and deletes are served\n",
            ),
            Page::Ready => text(StatusCode::OK, "ready\n"),
            Page::Health => text(StatusCode::OK, "ok\n"),
            Page::Metrics => self.metrics_page(),
            Page::AuthorityPem => self.authority_page().await,
        }
    }

    fn metrics_page(&self) -> Response<Full<Bytes>> {
        let text = self.metrics_text(self.shows_names);
        page_of(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
    }

    /// All metrics in Prometheus's text format, with the names of databases and containers or without.
    pub fn metrics_text(&self, shows_names: bool) -> String {
        let mut out = String::with_capacity(4096);
        self.metrics.write_to(&mut out);
        metrics::write_database(&self.db.stats(), shows_names, &mut out);
        out
    }

    async fn authority_page(&self) -> Response<Full<Bytes>> {
        match self.tls.authority_pem().await {
            Ok(pem) => page_of(StatusCode::OK, "application/x-pem-file", pem),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "HTTPS is not available");
                text(StatusCode::SERVICE_UNAVAILABLE, "the certificate is not available; see the log\n")
            }
        }
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    page_of(status, "text/plain; charset=utf-8", body)
}

fn page_of(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
