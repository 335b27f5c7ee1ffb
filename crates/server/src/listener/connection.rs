//! One connection from its first byte to its end.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use http::header::CONNECTION;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use orrery_nosql::Unsent;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::pulse::{Pulse, Watched};
use super::strict::Strict;
use super::{Handler, Peer, Scheme, Shared};
use crate::hosts::Accepted;

/// A TLS connection opens with a handshake record; no HTTP method starts with this byte.
const TLS_HANDSHAKE: u8 = 0x16;

pub async fn serve<H: Handler>(
    stream: TcpStream,
    remote: SocketAddr,
    shared: Arc<Shared<H>>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    watcher: Watcher,
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
    let pulse = Arc::new(Pulse::new());
    let stream = Watched::new(stream, Arc::clone(&pulse));
    if first[0] != TLS_HANDSHAKE {
        return serve_http(stream, Peer { scheme: Scheme::Http, remote }, shared, protocol, pulse, watcher)
            .await;
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
            let stream = Box::new(stream);
            let peer = Peer { scheme: Scheme::Https, remote };
            serve_http(stream, peer, Arc::clone(&shared), protocol, pulse, watcher).await;
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

async fn serve_http<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    shared: Arc<Shared<H>>,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    pulse: Arc<Pulse>,
    watcher: Watcher,
) {
    pulse.begin();
    // Requests hold this. If they were counted where all connections are, processors would wait for each other.
    let held = Arc::new(Arc::clone(&shared));
    // hyper calls the service from the task of the connection alone, also for HTTP/2.
    let accepted = RefCell::new(Accepted::default());
    let service = service_fn({
        let pulse = &pulse;
        move |request: http::Request<Incoming>| {
            let beat = pulse.request(request.version());
            let shared = Arc::clone(&held);
            // hyper copies this future from place to place, so that it must stay small: what may wait is boxed, and
            // so is what is rare.
            let refused = shared.hosts.refuse(&request, &mut accepted.borrow_mut()).map(Box::new);
            async move {
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
                    beat.ends_early();
                }
                if let Some(unsent) = response.extensions().get::<Weak<Unsent>>() {
                    beat.sending(unsent.clone());
                }
                shared.metrics.answered(response.status());
                drop(beat);
                Ok::<_, Infallible>(response)
            }
        }
    });
    let connection = watcher.watch(protocol.serve_connection(TokioIo::new(Strict::new(stream)), service));
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
