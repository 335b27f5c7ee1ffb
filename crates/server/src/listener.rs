//! Accepts connections on one port and sees to it that none of them outstays its welcome.
//!
//! A port speaks one protocol or several, in the clear and through TLS, all told apart by the first bytes. Limits, timeouts
//! and stopping are the same for all; what is said is the business of each [`protocol::Protocol`].

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use orrery_gateway::{Peer, Scheme};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::limits;
use crate::metrics::Metrics;
use crate::tls::Tls;
use protocol::Protocols;
use stop::Stop;

mod connection;
pub mod direct;
pub mod http;
pub mod protocol;
mod pulse;
mod stop;
mod stream;
#[cfg(test)]
mod tests;

/// How long a peer may take over each step of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub tls: Duration,
    pub header: Duration,
    pub write: Duration,
    pub idle: Duration,
}

impl Timeouts {
    pub fn of(config: &Config) -> Timeouts {
        Timeouts {
            tls: config.tls_timeout_seconds,
            header: config.header_timeout_seconds,
            write: config.write_timeout_seconds,
            idle: config.idle_timeout_seconds,
        }
    }
}

/// What all connections of a port share.
pub struct Port {
    pub protocols: Protocols,
    pub tls: Arc<Tls>,
    pub metrics: Arc<Metrics>,
    pub timeouts: Timeouts,
    pub max_connections: usize,
}

/// Accepts until `stop` resolves, then lets requests in progress end until `patience` does.
pub async fn run(
    socket: TcpListener,
    port: Port,
    stop: impl Future<Output = ()>,
    patience: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(port.max_connections));
    let port = Arc::new(port);
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
            refuse(stream, remote, &port.metrics);
            continue;
        };
        let serving = connection::serve(stream, remote, Arc::clone(&port), connections.stopping());
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
