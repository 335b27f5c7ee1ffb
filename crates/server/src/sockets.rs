//! The sockets that the server listens on, bound before anything else is touched.

use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};

use crate::config::{Config, DirectPort, PortChoice};
use crate::limits;

pub struct Sockets {
    pub nosql: TcpListener,
    /// The port that direct mode has to itself, if it does.
    pub direct: Option<TcpListener>,
    /// Absent when the server does without the Table API.
    pub table: Option<TcpListener>,
}

impl Sockets {
    pub fn bind(config: &Config) -> anyhow::Result<Sockets> {
        Ok(Sockets { nosql: nosql(config)?, direct: direct(config)?, table: table(config)? })
    }
}

/// The number that a port was given, which may have been left to the system.
pub fn port_of(socket: Option<&TcpListener>) -> anyhow::Result<Option<u16>> {
    Ok(socket.map(TcpListener::local_addr).transpose()?.map(|address| address.port()))
}

fn nosql(config: &Config) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(config.bind, config.nosql_port);
    let send_buffer = limits::send_buffer_bytes(config.database().memory.budget);
    listen(address, send_buffer).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} on {} is in use, perhaps by another orrery; stop it or choose another with --nosql-port",
            config.nosql_port,
            config.bind
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    })
}

fn direct(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let DirectPort::Own(port) = config.direct_port else { return Ok(None) };
    let address = SocketAddr::new(config.bind, port);
    let send_buffer = limits::send_buffer_bytes(config.database().memory.budget);
    let socket = listen(address, send_buffer);
    socket.map(Some).with_context(|| format!("cannot listen on {address}; choose another with --direct-port"))
}

/// The port of the Table API. The default one may be taken: then the server does without.
fn table(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let (port, is_named) = match config.table_port {
        Some(PortChoice::Off) => return Ok(None),
        Some(PortChoice::Number(port)) => (port, true),
        None => (limits::TABLE_PORT, false),
    };
    let address = SocketAddr::new(config.bind, port);
    let send_buffer = limits::send_buffer_bytes(config.database().memory.budget);
    match listen(address, send_buffer) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if is_named => {
            Err(anyhow::Error::new(error).context(format!("cannot listen on {address} (--table-port)")))
        }
        Err(error) => {
            tracing::warn!(%address, %error, "the Table API is left out; choose a port with --table-port");
            Ok(None)
        }
    }
}

/// Connections inherit what the socket is told that they come from.
fn listen(address: SocketAddr, send_buffer: Option<u32>) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.bind(address)?;
    socket.listen(limits::LISTEN_BACKLOG)
}
