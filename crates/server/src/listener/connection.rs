//! One connection from its first byte to its end.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use http::Version;
use http::header::CONNECTION;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use orrery_nosql::Unsent;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::lines::Lines;
use super::pulse::{Beat, Pulse};
use super::stop::Stopping;
use super::stream::{Socket, Stream};
use super::{Handler, Peer, Scheme, Shared};
use crate::hosts::Accepted;

/// A TLS connection opens with a handshake record; no HTTP method starts with this byte.
const TLS_HANDSHAKE: u8 = 0x16;

pub async fn serve<H: Handler>(
    stream: TcpStream,
    remote: SocketAddr,
    shared: Arc<Shared<H>>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    stopping: Stopping,
) {
    let _open = shared.metrics.connection_opened();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%remote, %error, "cannot set TCP_NODELAY");
    }
    let mut first = [0u8; 1];
    match timeout(shared.timeouts.header, stream.peek(&mut first)).await {
        Ok(Ok(1)) => {}
        Ok(Ok(_)) | Ok(Err(_)) => return,
        Err(_) => {
            shared.metrics.connection_timed_out();
            return;
        }
    }
    if first[0] != TLS_HANDSHAKE {
        let peer = Peer { scheme: Scheme::Http, remote };
        return serve_http(Socket::Plain(stream), peer, shared, protocol, stopping).await;
    }
    let acceptor = match shared.tls.acceptor().await {
        Ok(acceptor) => acceptor,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "HTTPS is not available");
            return;
        }
    };
    match timeout(shared.timeouts.tls, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let peer = Peer { scheme: Scheme::Https, remote };
            serve_http(Socket::Tls(Box::new(stream)), peer, shared, protocol, stopping).await;
        }
        Ok(Err(error)) => {
            shared.metrics.tls_failed();
            tracing::debug!(%remote, %error, "the TLS handshake failed");
        }
        Err(_) => {
            shared.metrics.tls_failed();
            tracing::debug!(%remote, "the TLS handshake took too long");
        }
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

async fn serve_http<H: Handler>(
    socket: Socket,
    peer: Peer,
    shared: Arc<Shared<H>>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    mut stopping: Stopping,
) {
    let pulse = Arc::new(Pulse::new());
    let stream = Stream::new(socket, Arc::clone(&pulse), Lines::new());
    let held = Arc::new(Held { shared: Arc::clone(&shared), pulse: Arc::clone(&pulse) });
    // hyper calls the service from the task of the connection alone, also for HTTP/2.
    let accepted = RefCell::new(Accepted::default());
    let service = service_fn(move |request: http::Request<Incoming>| {
        let beat = Beat::of(Holder(Arc::clone(&held)));
        if request.version() == Version::HTTP_2 {
            held.pulse.expect_other_bytes();
        }
        // hyper copies this future from place to place, so that it must stay small: what may wait is boxed, and
        // so is what is rare.
        let refused = held.shared.hosts.refuse(&request, &mut accepted.borrow_mut()).map(Box::new);
        async move {
            let Held { shared, pulse } = &*beat.holder().0;
            let answered = match refused {
                Some(refusal) => Some(*refusal),
                None => shared.handler.answer_now(&request, peer),
            };
            let response = match answered {
                Some(response) => response,
                None => {
                    let work = Box::pin(shared.handler.handle(request, peer));
                    let answer = within(shared.timeouts.request, work).await;
                    answer.unwrap_or_else(|| shared.handler.timed_out())
                }
            };
            if response.status().is_client_error() && ends_connection(&response) {
                pulse.linger();
            }
            if let Some(unsent) = response.extensions().get::<Weak<Unsent>>() {
                pulse.sending(unsent.clone());
            }
            shared.metrics.answered(response.status());
            drop(beat);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = async {
        let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended,
            () = &mut stopping => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    };
    tokio::select! {
        biased;
        ended = connection => if let Err(error) = ended {
            tracing::debug!(remote = %peer.remote, %error, "the connection ended badly");
        },
        overdue = pulse.overdue(&shared.timeouts, || shared.handler.wants_memory()) => {
            shared.metrics.connection_timed_out();
            tracing::debug!(remote = %peer.remote, ?overdue, "the connection is closed");
        }
    }
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
