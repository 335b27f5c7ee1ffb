//! What all gateways share, whatever they speak: who asks ([`keys`], [`entra`]) and what
//! roles allow ([`roles`]), how a body is read within its limits
//! ([`body`]), the memory that bodies and answers take ([`room`]), the names of requests ([`activity`]), and
//! the items that more than one gateway writes ([`shapes`], [`merge`]).
//!
//! Nothing here knows a protocol. What goes wrong is told as it is, and each gateway maps it to its wire.

pub mod activity;
pub mod body;
pub mod entra;
pub mod keys;
pub mod merge;
pub mod roles;
pub mod room;
pub mod shapes;

use std::net::SocketAddr;

pub use activity::ActivityId;
pub use body::BodyError;
pub use entra::{Entra, EntraError, EntraOptions, Principal, TokenError};
pub use keys::{KeyKind, Keys, KeysError, Signature};
pub use room::{Carrier, Held, Page, Room, Unsent};

/// How the client reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// What the client dialled, be it a proxy.
    pub scheme: Scheme,
    /// The client's own TLS ends in this server, as far as that can be known: what is not HTTP comes through as well.
    pub ends_tls: bool,
    pub remote: SocketAddr,
}

impl Peer {
    /// A peer as its connection shows it; a proxy may tell more of the client with each request.
    pub fn of(scheme: Scheme, remote: SocketAddr) -> Peer {
        Peer { scheme, ends_tls: scheme == Scheme::Https, remote }
    }
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}
