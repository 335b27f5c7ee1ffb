//! One connection from its first byte to its end, whatever it speaks.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::protocol::{Connection, Protocol};
use super::pulse::Pulse;
use super::stop::Stopping;
use super::stream::{Anything, Socket, Stream, Watched};
use super::{Peer, Port, Scheme};
use crate::limits;

/// A TLS connection opens with a handshake record; no HTTP method starts with this byte.
const TLS_HANDSHAKE: u8 = 0x16;

pub async fn serve(stream: TcpStream, remote: SocketAddr, port: Arc<Port>, stopping: Stopping) {
    let _open = port.metrics.connection_opened();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%remote, %error, "cannot set TCP_NODELAY");
    }
    let deadline = Instant::now() + port.timeouts.header;
    let mut first = [0u8; 1];
    match timeout_at(deadline, stream.peek(&mut first)).await {
        Ok(Ok(1)) => {}
        Ok(Ok(_)) | Ok(Err(_)) => return,
        Err(_) => return port.metrics.connection_timed_out(),
    }
    let pulse = Arc::new(Pulse::new());
    let (socket, scheme, deadline) = if first[0] == TLS_HANDSHAKE {
        let stream = Watched::new(stream, Arc::clone(&pulse));
        let Some(socket) = open_tls(stream, remote, &port).await else { return };
        pulse.begin();
        (socket, Scheme::Https, Instant::now() + port.timeouts.header)
    } else {
        (Socket::Plain(stream), Scheme::Http, deadline)
    };
    let peer = Peer::of(scheme, remote);
    let mut stream = Stream::new(socket, Arc::clone(&pulse));
    let protocol = match port.protocols.only() {
        Some(only) => only,
        None => match recognise(&mut stream, deadline, peer, &port).await {
            Some(protocol) => protocol,
            None => return,
        },
    };
    let serving = protocol.serve(Connection { stream, peer, pulse: Arc::clone(&pulse), stopping });
    tokio::select! {
        biased;
        () = serving => {}
        overdue = pulse.overdue(&port.timeouts, || port.protocols.wants_memory()) => {
            port.metrics.connection_timed_out();
            tracing::debug!(%remote, ?overdue, "the connection is closed");
        }
    }
}

async fn open_tls(stream: Watched, remote: SocketAddr, port: &Port) -> Option<Socket> {
    let acceptor = match port.tls.acceptor().await {
        Ok(acceptor) => acceptor,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "HTTPS is not available");
            return None;
        }
    };
    match timeout(port.timeouts.tls, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(Socket::Tls(Box::new(stream))),
        Ok(Err(error)) => tracing::debug!(%remote, %error, "the TLS handshake failed"),
        Err(_) => tracing::debug!(%remote, "the TLS handshake took too long"),
    }
    port.metrics.tls_failed();
    None
}

/// Reads until one of several protocols takes the connection. Its peer may be slow, or speak none of them.
async fn recognise<'p>(
    stream: &mut Stream<Anything>,
    deadline: Instant,
    peer: Peer,
    port: &'p Port,
) -> Option<&'p dyn Protocol> {
    let mut seen = Vec::with_capacity(limits::RECOGNITION_BYTES_MAX);
    let reading = async {
        loop {
            stream.look_ahead(&mut seen, limits::RECOGNITION_BYTES_MAX).await.ok()?;
            match port.protocols.recognise(&seen) {
                Ok(Some(protocol)) => {
                    stream.begins_with(seen);
                    return Some(protocol);
                }
                Ok(None) if seen.len() < limits::RECOGNITION_BYTES_MAX => {}
                Ok(None) | Err(_) => {
                    tracing::debug!(remote = %peer.remote, "no protocol of this port begins like this");
                    return None;
                }
            }
        }
    };
    timeout_at(deadline, reading).await.unwrap_or_else(|_| {
        port.metrics.connection_timed_out();
        None
    })
}
