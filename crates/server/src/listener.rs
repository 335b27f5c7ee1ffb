//! Accepts connections on one port and sees to it that none of them outstays its welcome.
//!
//! A port speaks HTTP and HTTPS at once, told apart by the first byte, and HTTP/1.1 and HTTP/2 in
//! either. What a request means is the business of the [`Handler`] it is given to.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::hosts::Hosts;
use crate::limits;
use crate::metrics::Metrics;
use crate::tls::Tls;
use stop::Stop;

mod connection;
mod lines;
mod pulse;
mod stop;
mod stream;

/// Answers requests; clones are cheap and share what they work on.
pub trait Handler: Clone + Send + Sync + 'static {
    /// The answer to a request that waits for nothing, if this is one; else it is handled.
    fn answer_now(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Full<Bytes>>>;

    fn handle(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;

    /// Whether requests wait for memory that answers hold which are not sent yet.
    fn wants_memory(&self) -> bool;

    /// The answer to a request that took too long.
    fn timed_out(&self) -> Response<Full<Bytes>>;
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub scheme: Scheme,
    pub remote: SocketAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// How long a peer may take over each step of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub tls: Duration,
    pub header: Duration,
    pub request: Duration,
    pub write: Duration,
    pub idle: Duration,
}

impl Timeouts {
    pub fn of(config: &Config) -> Timeouts {
        Timeouts {
            tls: config.tls_timeout_seconds,
            header: config.header_timeout_seconds,
            request: config.request_timeout_seconds,
            write: config.write_timeout_seconds,
            idle: config.idle_timeout_seconds,
        }
    }
}

/// What all connections of a listener share.
pub struct Shared<H> {
    pub handler: H,
    pub hosts: Arc<Hosts>,
    pub tls: Arc<Tls>,
    pub metrics: Arc<Metrics>,
    pub timeouts: Timeouts,
    pub max_connections: usize,
    /// What a connection may have sent in bodies of HTTP/2 before anybody reads them.
    pub http2_window_bytes: u32,
}

/// Accepts until `stop` resolves, then lets requests in progress end until `patience` does.
pub async fn run<H: Handler>(
    socket: TcpListener,
    shared: Shared<H>,
    stop: impl Future<Output = ()>,
    patience: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(shared.max_connections));
    let shared = Arc::new(shared);
    let protocol = Arc::new(http_protocol(shared.http2_window_bytes));
    let connections = Stop::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = &mut stop => break,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(limits::ACCEPT_ERROR_PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            refuse(stream, remote, &shared.metrics);
            continue;
        };
        let serving = connection::serve(
            stream,
            remote,
            Arc::clone(&shared),
            Arc::clone(&protocol),
            connections.stopping(),
        );
        tokio::spawn(async move {
            serving.await;
            drop(slot);
        });
    }
    // The port is free again from here on; a new server may already take it over.
    drop(socket);
    tokio::select! {
        () = connections.stop() => {}
        () = patience => tracing::warn!("some requests did not end in time and are cut off"),
    }
}

/// Over the limit, the cheapest honest answer is a closed connection: the peer may speak TLS, and
/// finding out would take the slot that there is not.
fn refuse(stream: TcpStream, remote: SocketAddr, metrics: &Metrics) {
    drop(stream);
    let refused = metrics.connection_refused();
    if refused.is_power_of_two() {
        tracing::warn!(%remote, refused, "too many connections; raise --max-connections");
    }
}

fn http_protocol(window_bytes: u32) -> auto::Builder<TokioExecutor> {
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    // The pulse of the connection watches the headers: hyper's own timer would cost each request
    // an allocation and a turn of the timer wheel.
    protocol.http1().header_read_timeout(None).max_buf_size(limits::MAX_HEADER_BYTES);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::MAX_HTTP2_STREAMS)
        .max_header_list_size(limits::MAX_HEADER_BYTES as u32)
        .initial_stream_window_size(limits::HTTP2_STREAM_WINDOW_BYTES.min(window_bytes))
        .initial_connection_window_size(window_bytes)
        .keep_alive_interval(limits::HTTP2_PING_INTERVAL)
        .keep_alive_timeout(limits::HTTP2_PING_TIMEOUT);
    protocol
}
