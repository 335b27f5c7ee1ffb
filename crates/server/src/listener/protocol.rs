//! What a port speaks.
//!
//! The listener accepts connections, counts them, opens TLS, watches the pulse and tells when the server stops, and knows
//! nothing of what is said. That is the business of the protocols that a port is given, in the order in which they
//! are asked whether a connection is theirs:
//!
//! ```text
//!   first byte  ---- 0x16: TLS handshake ----.
//!       |                                    |
//!       '------------- first bytes ----------'
//!                           |
//!           one protocol: no look at them     several: each says yes, no, or not yet
//! ```

use std::pin::Pin;
use std::sync::Arc;

use super::Peer;
use super::pulse::Pulse;
use super::stop::Stopping;
use super::stream::{Anything, Stream};

/// Whether a connection belongs to a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    /// The bytes so far begin like this protocol, and like others.
    NeedMore,
}

/// One protocol on a port.
pub trait Protocol: Send + Sync + 'static {
    /// Judges the first bytes of a connection, of which there is at least one. Not asked where it is alone on its port.
    /// One that still needs more after [`crate::limits::RECOGNITION_BYTES_MAX`] does not get the connection. In the
    /// clear, a first byte of 0x16 is TLS and never comes here.
    fn recognises(&self, first: &[u8]) -> Verdict;

    /// Speaks until the connection ends. The stream begins with the first byte, even if the listener has looked at it before.
    fn serve(&self, connection: Connection) -> Serving<'_>;

    /// Whether requests wait for memory that answers hold which are not sent yet.
    fn wants_memory(&self) -> bool {
        false
    }
}

pub type Serving<'p> = Pin<Box<dyn Future<Output = ()> + Send + 'p>>;

/// A connection as its protocol gets it.
pub struct Connection {
    pub stream: Stream<Anything>,
    pub peer: Peer,
    /// The protocol says here when a request has arrived and when it is answered. Bytes that come in between are the
    /// beginning of the next request, which must be whole within the time for headers.
    pub pulse: Arc<Pulse>,
    /// Kept for as long as the connection lasts: the server waits for it.
    pub stopping: Stopping,
}

/// The protocols of a port; there is at least one.
pub struct Protocols(Vec<Box<dyn Protocol>>);

impl Protocols {
    pub fn one(protocol: impl Protocol) -> Protocols {
        Protocols(vec![Box::new(protocol)])
    }

    /// Where several recognise the same bytes, the one that was registered first gets the connection.
    pub fn and(mut self, protocol: impl Protocol) -> Protocols {
        self.0.push(Box::new(protocol));
        self
    }

    pub fn only(&self) -> Option<&dyn Protocol> {
        match &*self.0 {
            [only] => Some(&**only),
            _ => None,
        }
    }

    /// Whose connection this is, when all of its bytes so far are these: an error when it is nobody's.
    pub fn recognise(&self, first: &[u8]) -> Result<Option<&dyn Protocol>, Unknown> {
        for protocol in &self.0 {
            match protocol.recognises(first) {
                Verdict::Yes => return Ok(Some(&**protocol)),
                // One that was registered before others is heard before them.
                Verdict::NeedMore => return Ok(None),
                Verdict::No => {}
            }
        }
        Err(Unknown)
    }

    pub fn wants_memory(&self) -> bool {
        self.0.iter().any(|protocol| protocol.wants_memory())
    }
}

/// No protocol of the port begins like this.
#[derive(Debug)]
pub struct Unknown;
