//! The stream of a connection, plain or through TLS: its pulse is noted here, and what arrives is checked.
//!
//! All of it is one layer. A read of a small request passes through it twice, and each layer more would be one more
//! call with a buffer to wrap and unwrap.
//!
//! Below TLS the pulse is noted as well ([`Watched`]): a peer that begins a record and never ends it has begun a request, and
//! one takes bytes only when the system has them, not when TLS does. What TLS has read ahead is noted when it comes out.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::pulse::Pulse;
use crate::limits;

/// What carries the bytes. TLS has much to remember, and few connections have it; the others should stay small.
pub enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<Watched>>),
}

/// What TLS reads from and writes to.
pub struct Watched {
    stream: TcpStream,
    pulse: Arc<Pulse>,
    /// Records that go to the socket together, once they are flushed or are many; none if each goes by itself.
    gathered: Option<Gathered>,
}

/// Bytes for the socket, and how many of them it has.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    sent: usize,
}

impl Watched {
    pub fn new(stream: TcpStream, pulse: Arc<Pulse>) -> Watched {
        Watched { stream, pulse, gathered: None }
    }

    /// Sends what was gathered. The room for it is given back: most connections are silent most of the time.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(gathered) = &mut self.gathered else { return Poll::Ready(Ok(())) };
        while let Some(left) = gathered.bytes.get(gathered.sent..).filter(|left| !left.is_empty()) {
            let outcome = Pin::new(&mut self.stream).poll_write(cx, left);
            self.pulse.sent(&outcome);
            match ready!(outcome)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => gathered.sent += sent,
            }
        }
        *gathered = Gathered::default();
        Poll::Ready(Ok(()))
    }

    /// Keeps bytes for later, or nothing if they are to go by themselves.
    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.gathered.as_ref()?.bytes.len() >= limits::GATHERED_BYTES_MAX {
            match self.poll_send(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Some(Poll::Ready(Err(error))),
                Poll::Pending => return Some(Poll::Pending),
            }
        }
        let kept = &mut self.gathered.as_mut()?.bytes;
        let before = kept.len();
        slices.iter().for_each(|slice| kept.extend_from_slice(slice));
        Some(Poll::Ready(Ok(kept.len() - before)))
    }
}

/// Looks at all bytes that arrive, in order, before the reader gets them.
pub trait Check: Unpin {
    /// What the reader gets in place of bytes that are refused, and of all that follow them; then the stream ends.
    const INSTEAD: &'static [u8];

    /// Where among the bytes that come next is the first that the reader must not get.
    fn wrong_end(&mut self, bytes: &[u8]) -> Option<usize>;
}

/// The check of a stream whose bytes are its reader's business alone.
pub struct Anything;

impl Check for Anything {
    const INSTEAD: &'static [u8] = b"";

    fn wrong_end(&mut self, _: &[u8]) -> Option<usize> {
        None
    }
}

/// Bytes that do not come from the socket. Nearly all reads find none, and look no further.
enum Aside {
    /// They were looked at before there was a reader; from so many on, it gets them.
    Seen(Vec<u8>, usize),
    /// Some were refused.
    Instead(&'static [u8]),
}

/// A socket that notes in the pulse what its peer does, and gives its reader what passes the check.
pub struct Stream<C> {
    socket: Socket,
    pulse: Arc<Pulse>,
    check: C,
    /// What the reader gets before bytes from the socket, or in place of them.
    aside: Option<Aside>,
    /// Nothing more will be sent.
    is_shut: bool,
    /// Bytes that were taken in since then.
    taken: usize,
}

impl Stream<Anything> {
    pub fn new(socket: Socket, pulse: Arc<Pulse>) -> Stream<Anything> {
        Stream { socket, pulse, check: Anything, aside: None, is_shut: false, taken: 0 }
    }

    /// Waits for at least one more byte and adds what has come to `seen`, up to so many. The reader will get them too.
    pub async fn look_ahead(&mut self, seen: &mut Vec<u8>, bytes_max: usize) -> io::Result<()> {
        debug_assert!(seen.len() < bytes_max, "there must be room for one more");
        let mut more = (&mut self.socket).take((bytes_max - seen.len()) as u64);
        match more.read_buf(seen).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Lets what is written within TLS go to the socket together when it is flushed. Records stay what they are: one for each
    /// write of up to 16 KiB.
    pub fn gather_writes(&mut self) {
        if let Socket::Tls(stream) = &mut self.socket {
            stream.get_mut().0.gathered = Some(Gathered::default());
        }
    }

    /// Gives the reader these bytes first: they were looked at before there was one.
    pub fn begins_with(&mut self, seen: Vec<u8>) {
        self.aside = Some(Aside::Seen(seen, 0));
    }

    /// The same stream with a check, before anything was read from it.
    pub fn checked_by<C: Check>(self, check: C) -> Stream<C> {
        let Stream { socket, pulse, aside, is_shut, taken, .. } = self;
        debug_assert!(!matches!(aside, Some(Aside::Seen(_, 1..))), "the check must see the first byte");
        Stream { socket, pulse, check, aside, is_shut, taken }
    }
}

impl<C: Check> Stream<C> {
    fn read_aside(&mut self, buf: &mut ReadBuf<'_>) {
        match &mut self.aside {
            None => {}
            Some(Aside::Seen(bytes, at)) => {
                let end = bytes.len().min(*at + buf.remaining());
                buf.put_slice(&bytes[*at..end]);
                *at = end;
                if end == bytes.len() {
                    self.aside = None;
                }
            }
            // When all of it is given, this is the end of the stream.
            Some(Aside::Instead(instead)) => {
                let (now, later) = instead.split_at(instead.len().min(buf.remaining()));
                buf.put_slice(now);
                *instead = later;
            }
        }
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
            Socket::Tls(stream) => &mut stream.get_mut().0.stream,
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
        let before = buf.filled().len();
        let outcome = match &this.aside {
            None => Pin::new(&mut this.socket).poll_read(cx, buf),
            Some(Aside::Seen(..)) => {
                this.read_aside(buf);
                Poll::Ready(Ok(()))
            }
            Some(Aside::Instead(_)) => {
                this.read_aside(buf);
                return Poll::Ready(Ok(()));
            }
        };
        let bytes = &buf.filled()[before..];
        if bytes.is_empty() {
            return outcome;
        }
        this.pulse.received();
        if let Some(at) = this.check.wrong_end(bytes) {
            buf.set_filled(before + at);
            this.aside = Some(Aside::Instead(C::INSTEAD));
            this.read_aside(buf);
            return Poll::Ready(Ok(()));
        }
        outcome
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl<C: Check> AsyncWrite for Stream<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Plain(stream) => {
                let outcome = Pin::new(stream).poll_write(cx, bytes);
                self.pulse.sent(&outcome);
                outcome
            }
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Plain(stream) => {
                let outcome = Pin::new(stream).poll_write_vectored(cx, slices);
                self.pulse.sent(&outcome);
                outcome
            }
            Socket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
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
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(match &mut self.socket {
                Socket::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
                Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            })?;
            self.is_shut = true;
        }
        if self.pulse.lingers() {
            ready!(self.take_in_the_rest(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.pulse.received();
        }
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(outcome) = self.poll_gather(cx, &[IoSlice::new(bytes)]) {
            return outcome;
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.pulse.sent(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(outcome) = self.poll_gather(cx, slices) {
            return outcome;
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.pulse.sent(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
