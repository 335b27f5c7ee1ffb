//! The stream of a connection, plain or through TLS: its pulse is noted here, and what arrives is checked.
//!
//! All of it is one layer. A read of a small request passes through it twice, and each layer more would be one more
//! call with a buffer to wrap and unwrap.
//!
//! The pulse is noted above TLS. What a peer sends to keep TLS going is no beginning of a request, and bytes that wait
//! inside TLS for a peer that does not read are seen when they are flushed.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::pulse::Pulse;
use crate::limits;

/// What carries the bytes. TLS has much to remember, and few connections have it; the others should stay small.
pub enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Looks at all bytes that arrive, in order, before the reader gets them.
pub trait Check: Unpin {
    /// What the reader gets in place of bytes that are refused, and of all that follow them; then the stream ends.
    const INSTEAD: &'static [u8];

    /// Where among the bytes that come next is the first that the reader must not get.
    fn wrong_end(&mut self, bytes: &[u8]) -> Option<usize>;
}

/// A socket that notes in the pulse what its peer does, and gives its reader what passes the check.
pub struct Stream<C> {
    socket: Socket,
    pulse: Arc<Pulse>,
    check: C,
    /// What the reader gets instead of bytes from the socket, once some were refused.
    instead: Option<&'static [u8]>,
    /// Nothing more will be sent.
    is_shut: bool,
    /// Bytes that were taken in since then.
    taken: usize,
}

impl<C: Check> Stream<C> {
    pub fn new(socket: Socket, pulse: Arc<Pulse>, check: C) -> Stream<C> {
        Stream { socket, pulse, check, instead: None, is_shut: false, taken: 0 }
    }

    /// Gives the reader the rest of what stands in place of refused bytes; when all of it is given, this is the end of
    /// the stream.
    fn give_instead(&mut self, buf: &mut ReadBuf<'_>) {
        let instead = self.instead.unwrap_or_default();
        let (now, later) = instead.split_at(instead.len().min(buf.remaining()));
        buf.put_slice(now);
        self.instead = Some(later);
    }

    /// Reads what the peer still sends and forgets it, within a bound. How long that may take is the pulse's to say.
    fn take_in_the_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [const { MaybeUninit::uninit() }; limits::LINGER_READ_BYTES];
        while self.taken < limits::LINGER_BYTES_MAX {
            let mut piece = ReadBuf::uninit(&mut room);
            match ready!(Pin::new(self.socket.below_tls()).poll_read(cx, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => self.taken += piece.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl Socket {
    /// What nobody will look at need not be decrypted.
    fn below_tls(&mut self) -> &mut TcpStream {
        match self {
            Socket::Plain(stream) => stream,
            Socket::Tls(stream) => stream.get_mut().0,
        }
    }
}

impl<C: Check> AsyncRead for Stream<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.instead.is_some() {
            this.give_instead(buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let outcome = match &mut this.socket {
            Socket::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        let bytes = &buf.filled()[before..];
        if bytes.is_empty() {
            return outcome;
        }
        this.pulse.received();
        if let Some(at) = this.check.wrong_end(bytes) {
            buf.set_filled(before + at);
            this.instead = Some(C::INSTEAD);
            this.give_instead(buf);
            return Poll::Ready(Ok(()));
        }
        outcome
    }
}

impl<C: Check> AsyncWrite for Stream<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = match &mut self.socket {
            Socket::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        self.pulse.sent(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = match &mut self.socket {
            Socket::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Socket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        };
        self.pulse.sent(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        match &self.socket {
            Socket::Plain(stream) => stream.is_write_vectored(),
            Socket::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            // TCP has nothing to flush.
            Socket::Plain(_) => Poll::Ready(Ok(())),
            Socket::Tls(stream) => {
                let outcome = Pin::new(stream).poll_flush(cx);
                self.pulse.sent(&outcome);
                outcome
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            let outcome = match &mut self.socket {
                Socket::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
                Socket::Tls(stream) => {
                    let outcome = Pin::new(stream).poll_shutdown(cx);
                    self.pulse.sent(&outcome);
                    outcome
                }
            };
            ready!(outcome)?;
            self.is_shut = true;
        }
        if self.pulse.lingers() {
            ready!(self.take_in_the_rest(cx));
        }
        Poll::Ready(Ok(()))
    }
}
