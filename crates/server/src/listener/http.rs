//! HTTP as a protocol of a port: HTTP/1.1 and HTTP/2, told apart by the first bytes.
//!
//! What a request means is the business of the [`Handler`] it is given to.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use orrery_gateway::Unsent;
use tokio::time::timeout;

use super::Peer;
use super::protocol::{Connection, Protocol, Serving, Verdict};
use super::pulse::{Beat, Pulse};
use crate::hosts::{Accepted, Hosts};
use crate::limits;
use crate::metrics::{Metrics, Speech};
use crate::otlp::Tracer;
use crate::proxies::Proxies;
use lines::Lines;

mod lines;

/// Answers requests; clones are cheap and share what they work on.
pub trait Handler: Clone + Send + Sync + 'static {
    /// The answer to a request that waits for nothing, if this is one; else it is handled.
    fn answer_now(&self, request: &Request<Incoming>, peer: Peer) -> Option<Response<Full<Bytes>>>;

    fn handle(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;

    /// The protocol in which a request is told, for those who count.
    fn speech<B>(&self, request: &Request<B>) -> Speech;

    /// Whether requests wait for memory that answers hold which are not sent yet.
    fn wants_memory(&self) -> bool;

    /// The answer to a request that took too long.
    fn timed_out(&self) -> Response<Full<Bytes>>;
}

/// What all connections that speak HTTP on a port share.
pub struct Shared<H> {
    pub handler: H,
    pub hosts: Arc<Hosts>,
    pub proxies: Proxies,
    pub metrics: Arc<Metrics>,
    /// Who notes requests for a collector, if there is one.
    pub tracer: Option<Arc<Tracer>>,
    /// How long the handler may work on a request.
    pub request_time_max: Duration,
    /// What a connection may have sent in bodies of HTTP/2 before anybody reads them.
    pub http2_window_bytes: u32,
}

pub struct Http<H> {
    shared: Arc<Shared<H>>,
    builder: auto::Builder<TokioExecutor>,
}

impl<H: Handler> Http<H> {
    pub fn new(shared: Shared<H>) -> Http<H> {
        Http { builder: builder(shared.http2_window_bytes), shared: Arc::new(shared) }
    }
}

impl<H: Handler> Protocol for Http<H> {
    /// A method in capital letters and a blank; that of HTTP/2 is `PRI`. Empty lines in front are left to the parser.
    fn recognises(&self, first: &[u8]) -> Verdict {
        if matches!(first.first(), Some(b'\r' | b'\n')) {
            return Verdict::Yes;
        }
        let letters = first.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        match first.get(letters) {
            None if letters <= limits::HTTP_METHOD_BYTES_MAX => Verdict::NeedMore,
            Some(b' ') if letters > 0 => Verdict::Yes,
            _ => Verdict::No,
        }
    }

    fn serve(&self, connection: Connection) -> Serving<'_> {
        Box::pin(serve(&self.shared, &self.builder, connection))
    }

    fn wants_memory(&self) -> bool {
        self.shared.handler.wants_memory()
    }
}

/// What a request holds of its connection.
struct Held<H> {
    shared: Arc<Shared<H>>,
    pulse: Arc<Pulse>,
}

/// Requests count the references to what they hold here. If they counted where all connections do, processors would
/// wait for each other.
struct Holder<H>(Arc<Held<H>>);

impl<H> AsRef<Pulse> for Holder<H> {
    fn as_ref(&self) -> &Pulse {
        &self.0.pulse
    }
}

async fn serve<H: Handler>(
    shared: &Arc<Shared<H>>,
    builder: &auto::Builder<TokioExecutor>,
    Connection { stream, peer, pulse, mut stopping }: Connection,
) {
    let stream = stream.checked_by(Lines::new());
    let held = Arc::new(Held { shared: Arc::clone(shared), pulse });
    // hyper calls the service from the task of the connection alone, also for HTTP/2.
    let accepted = RefCell::new(Accepted::default());
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let mut peer = peer;
        let beat = Beat::of(Holder(Arc::clone(&held)));
        if request.version() == Version::HTTP_2 {
            held.pulse.expect_other_bytes();
        }
        // hyper copies this future from place to place, so that it must stay small: what may wait is boxed, and
        // so is what is rare.
        let (hosts, mut accepted) = (&held.shared.hosts, accepted.borrow_mut());
        let mut refused = hosts.refuse(&request, &mut accepted).map(Box::new);
        if refused.is_none() && held.shared.proxies.apply(&mut request, &mut peer) {
            refused = hosts.refuse(&request, &mut accepted).map(Box::new);
        }
        async move {
            let Held { shared, pulse } = &*beat.holder().0;
            let speech = shared.handler.speech(&request);
            let span = shared.tracer.as_ref().and_then(|tracer| tracer.begin(&request, speech));
            let answered = match refused {
                Some(refusal) => Some(*refusal),
                None => shared.handler.answer_now(&request, peer),
            };
            let response = match answered {
                Some(response) => response,
                None => {
                    let work = Box::pin(shared.handler.handle(request, peer));
                    let answer = within(shared.request_time_max, work).await;
                    answer.unwrap_or_else(|| shared.handler.timed_out())
                }
            };
            if response.status().is_client_error() && ends_connection(&response) {
                pulse.linger();
            }
            if let Some(unsent) = response.extensions().get::<Weak<Unsent>>() {
                pulse.sending(unsent.clone());
            }
            shared.metrics.answered(speech, response.status());
            shared.metrics.charged(speech, charge(&response));
            if let Some((tracer, span)) = shared.tracer.as_ref().zip(span) {
                tracer.end(*span, &response);
            }
            drop(beat);
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = &mut stopping => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(remote = %peer.remote, %error, "the connection ended badly");
    }
}

/// What the answer says that its request has cost.
fn charge<B>(response: &http::Response<B>) -> f64 {
    let text = response.headers().get("x-ms-request-charge").and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Whether the connection is closed behind the answer, because its request was not read to the end.
fn ends_connection<B>(response: &http::Response<B>) -> bool {
    response.headers().get(CONNECTION).is_some_and(|value| value == "close")
}

/// The outcome of `work`, unless it takes longer than `limit`. Most answers are there at the first
/// look, and only those that wait pay for a timer.
async fn within<F: Future>(limit: Duration, mut work: Pin<Box<F>>) -> Option<F::Output> {
    match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => timeout(limit, work).await.ok(),
    }
}

fn builder(window_bytes: u32) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The pulse of the connection watches the headers: hyper's own timer would cost each request
    // an allocation and a turn of the timer wheel.
    builder.http1().header_read_timeout(None).max_buf_size(limits::MAX_HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::MAX_HTTP2_STREAMS)
        .max_header_list_size(limits::MAX_HEADER_BYTES as u32)
        .initial_stream_window_size(limits::HTTP2_STREAM_WINDOW_BYTES.min(window_bytes))
        .initial_connection_window_size(window_bytes)
        .keep_alive_interval(limits::HTTP2_PING_INTERVAL)
        .keep_alive_timeout(limits::HTTP2_PING_TIMEOUT);
    builder
}
