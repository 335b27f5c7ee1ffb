//! A connection in direct mode.
//!
//! ```text
//!   reader --- frame by frame ---> read of an item: answered on the spot ----.
//!      |                      '--> others: a task each ----------------------+--> queue --> writer
//!      '-- waits for a place while too many requests wait for their answers, or answers for the client
//! ```
//!
//! One writer sends all answers, so that none is cut in two by another, and lets those go together that are ready. A place
//! is taken with each frame, several with one whose headers are long, and given back when its answer is sent: a client that
//! does not read is not read from. A frame that cannot be decoded ends the connection, for nobody knows where the next one
//! begins.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use hyper::body::{Body, Frame as Piece, SizeHint};
use orrery_cluster::ErrorKind;
use orrery_cluster::limits::{
    DIRECT_CONTEXT_BYTES_MAX, DIRECT_HEADER_BYTES_MAX, DIRECT_PLACE_BYTES, DIRECT_REQUESTS_MAX,
    STREAM_UNCOUNTED_BYTES,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::frame::{HEAD_BYTES, Head, LENGTH_BYTES, Malformed};
use super::request::{Greeting, Outline, is_item_read};
use super::{Answer, Envelope, Link, reply};
use crate::errors::Refusal;
use crate::gateway::Gateway;
use orrery_gateway::ActivityId;
use orrery_gateway::Peer;
use orrery_gateway::body::{self, Limits as BodyLimits};
use orrery_gateway::{Carrier, Unsent};

/// What the server wants to know of requests.
pub trait Observer: Clone + Send + Sync + 'static {
    /// A request in progress, until dropped.
    type Request: Send + 'static;

    fn begins(&self) -> Self::Request;

    fn answered(&self, status: StatusCode, charge: f64);

    /// A large answer is handed to the connection.
    fn sending(&self, answer: Weak<Unsent>);
}

/// How long a client may take over a frame's headers, the server over a request, and both over nothing.
#[derive(Clone, Copy, Debug)]
pub struct RequestTime {
    pub header: Duration,
    pub request: Duration,
    pub idle: Duration,
    /// How long a connection may last on which nobody has asked who may.
    pub unknown: Duration,
}

/// Why a connection ended before its client ended it.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    #[error("a frame cannot be decoded: {0}")]
    Undecodable(&'static str),
    #[error(transparent)]
    Broken(#[from] io::Error),
    #[error("a frame did not arrive in time")]
    Slow,
    #[error("no request came from a client that may ask")]
    Unknown,
    #[error("a request ended badly")]
    Failed,
}

impl From<Malformed> for Ended {
    fn from(error: Malformed) -> Ended {
        tracing::debug!(%error, "a frame cannot be decoded");
        Ended::Undecodable("malformed")
    }
}

/// Whether a connection begins as one in direct mode does, if so many bytes tell: with a frame of kind 0 that is not long.
pub fn begins_as_direct(first: &[u8]) -> Option<bool> {
    let length = |byte: usize| first.get(byte).copied().map(usize::from);
    // The length is below 65,536, so that its upper bytes are 0; and no word of HTTP has a zero among its first.
    let is_zero = |from: usize, to: usize| first.iter().take(to).skip(from).all(|byte| *byte == 0);
    if !is_zero(2, 8) {
        return Some(false);
    }
    if first.len() < 8 {
        return None;
    }
    let length = length(0)? | length(1)? << 8;
    Some((HEAD_BYTES..=DIRECT_CONTEXT_BYTES_MAX).contains(&length))
}

/// An answer on its way to the writer.
struct Outgoing<R> {
    head: Vec<u8>,
    body: Bytes,
    _request: R,
    _place: Option<OwnedSemaphorePermit>,
}

/// How reading ended.
enum Reading {
    /// The client sends no more.
    Closed,
    /// The server reads no more: what was begun is answered.
    Enough,
}

impl Gateway {
    /// Speaks with a client in direct mode until either side has enough.
    pub async fn serve_direct<S, O>(
        &self,
        stream: S,
        peer: Peer,
        observer: O,
        times: RequestTime,
        stopping: impl Future<Output = ()>,
    ) -> Result<(), Ended>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
        O: Observer,
    {
        let (reader, writer) = tokio::io::split(stream);
        let (queue, answers) = mpsc::unbounded_channel();
        let mut reader = Reader { stream: reader, buffer: BytesMut::new() };
        let mut tasks = JoinSet::new();
        let mut writing = pin!(write(writer, answers));
        let mut session = Session { gateway: self, observer, times, queue, tasks: &mut tasks };
        let read = tokio::select! {
            biased;
            wrote = &mut writing => return Ok(wrote?),
            read = session.run(&mut reader, peer, stopping) => read,
        };
        drop(session);
        match read? {
            Reading::Closed => Ok(()),
            // The writer ends when the last answer is sent, since each task holds an end of the queue.
            Reading::Enough => Ok(writing.await?),
        }
    }
}

/// How a connection began.
enum Greeted {
    With(Greeting),
    /// Its client is told why.
    TurnedAway,
    Nobody,
}

/// One connection as its reader sees it.
struct Session<'c, O: Observer> {
    gateway: &'c Gateway,
    observer: O,
    times: RequestTime,
    queue: mpsc::UnboundedSender<Outgoing<O::Request>>,
    /// They end with the connection.
    tasks: &'c mut JoinSet<()>,
}

impl<O: Observer> Session<'_, O> {
    async fn run<S: AsyncRead + Unpin + Send>(
        &mut self,
        reader: &mut Reader<S>,
        peer: Peer,
        stopping: impl Future<Output = ()>,
    ) -> Result<Reading, Ended> {
        let mut stopping = pin!(stopping);
        let greeting = tokio::select! {
            biased;
            () = &mut stopping => return Ok(Reading::Enough),
            greeting = self.greet(reader) => greeting?,
        };
        let greeting = match greeting {
            Greeted::With(greeting) => greeting,
            Greeted::TurnedAway => return Ok(Reading::Enough),
            Greeted::Nobody => return Ok(Reading::Closed),
        };
        let link = Arc::new(Link { greeting, peer, is_known: false.into() });
        let places = Arc::new(Semaphore::new(DIRECT_REQUESTS_MAX));
        let silent_until = Instant::now() + self.times.unknown;
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await.expect("places are never closed");
                let is_there = first_bytes(reader, &link, silent_until).await?;
                Ok::<_, Ended>(is_there.then_some(place))
            };
            let place = tokio::select! {
                biased;
                () = &mut stopping => return Ok(Reading::Enough),
                Some(ended) = self.tasks.join_next() => {
                    // Its client waits for an answer that will not come.
                    ended.map_err(|_| Ended::Failed)?;
                    continue;
                }
                next = next => next?,
            };
            let Some(place) = place else { return Ok(Reading::Closed) };
            if !self.request(reader, &link, &places, place).await? {
                return Ok(Reading::Enough);
            }
        }
    }

    /// The first frame of a connection, and its answer.
    async fn greet<S: AsyncRead + Unpin + Send>(&mut self, reader: &mut Reader<S>) -> Result<Greeted, Ended> {
        let reading = async {
            if !reader.fill(HEAD_BYTES).await? {
                return Ok(None);
            }
            let head = Head::read(reader.head(), DIRECT_CONTEXT_BYTES_MAX)?;
            if (head.resource, head.operation) != (0, 0) {
                return Err(Ended::Undecodable("the first frame opens no connection"));
            }
            reader.must_fill(head.length).await?;
            Ok(Some(head))
        };
        let Some(head) = within(self.times.header, reading).await? else { return Ok(Greeted::Nobody) };
        let request = self.observer.begins();
        let frame = reader.buffer.split_to(head.length);
        let greeting = Greeting::read(&frame[HEAD_BYTES..])?;
        let checked = greeting.check();
        let answer = match &checked {
            Ok(()) => {
                let idle = u32::try_from(self.times.idle.as_secs()).unwrap_or(u32::MAX);
                let unknown = u32::try_from(self.times.unknown.as_secs()).unwrap_or(u32::MAX);
                reply::welcome(&head.activity, &greeting.version, idle, unknown)
            }
            Err(refusal) => {
                reply::turn_away(&head.activity, ActivityId::of_guid(&head.activity).as_str(), refusal)
            }
        };
        let _ =
            self.queue.send(Outgoing { head: answer, body: Bytes::new(), _request: request, _place: None });
        Ok(if checked.is_ok() { Greeted::With(greeting) } else { Greeted::TurnedAway })
    }

    /// Reads a frame that has begun, and has it answered. False if no other can be read behind it.
    async fn request<S: AsyncRead + Unpin + Send>(
        &mut self,
        reader: &mut Reader<S>,
        link: &Arc<Link>,
        places: &Arc<Semaphore>,
        mut place: OwnedSemaphorePermit,
    ) -> Result<bool, Ended> {
        let head = match reader.buffer.len() < HEAD_BYTES {
            true => within(self.times.header, reader.must_fill(HEAD_BYTES)).await,
            false => Ok(()),
        }
        .and_then(|()| Ok(Head::read(reader.head(), DIRECT_HEADER_BYTES_MAX)?))?;
        if let Some(more) = places_beyond_the_first(head.length) {
            let more = Arc::clone(places).acquire_many_owned(more).await;
            place.merge(more.expect("places are never closed"));
        }
        if reader.buffer.len() < head.length {
            within(self.times.header, reader.must_fill(head.length)).await?;
        }
        let outline = Outline::of(&reader.buffer[HEAD_BYTES..head.length])?;
        let request = self.observer.begins();
        let started = Instant::now();
        if !outline.has_payload && is_item_read(&head) {
            let answer = {
                let tokens = &reader.buffer[HEAD_BYTES..head.length];
                let envelope = Envelope { head: &head, tokens, transport: outline.transport, started };
                at_once(pin!(self.gateway.answer_frame(link, &envelope, Ok(Bytes::new()))))
            };
            if let Some(answer) = answer {
                send(&self.observer, &self.queue, answer, request, place);
                reader.buffer.advance(head.length);
                return Ok(true);
            }
        }
        let tokens = reader.buffer.split_to(head.length).freeze().slice(HEAD_BYTES..);
        let (body, left) = match outline.has_payload {
            true => self.payload(reader).await?,
            false => (Ok(Bytes::new()), 0),
        };
        let (gateway, link, queue) = (self.gateway.clone(), Arc::clone(link), self.queue.clone());
        let (observer, longest) = (self.observer.clone(), self.times.request);
        self.tasks.spawn(async move {
            let envelope = Envelope { head: &head, tokens: &tokens, transport: outline.transport, started };
            let answering = timeout(longest, gateway.answer_frame(&link, &envelope, body)).await;
            let answer = match answering {
                Ok(answer) => answer,
                Err(_) => gateway.answer_frame(&link, &envelope, Err(ErrorKind::TimedOut.into())).await,
            };
            send(&observer, &queue, answer, request, place);
        });
        // If the rest of the payload never came, the next frame would begin in its middle.
        Ok(left == 0)
    }

    /// The payload of a frame by the rules for all bodies, and how much of it was not read.
    async fn payload<S: AsyncRead + Unpin + Send>(
        &self,
        reader: &mut Reader<S>,
    ) -> Result<(Result<Bytes, Refusal>, usize), Ended> {
        if reader.buffer.len() < LENGTH_BYTES {
            within(self.times.header, reader.must_fill(LENGTH_BYTES)).await?;
        }
        let length = reader.buffer.get_u32_le() as usize;
        if length <= reader.buffer.len() && length as u64 <= STREAM_UNCOUNTED_BYTES {
            return Ok((Ok(reader.buffer.split_to(length).freeze()), 0));
        }
        let options = self.gateway.options();
        let limits = BodyLimits { bytes: options.body_bytes_max, time: options.body_time_max };
        let mut payload = Payload { reader, left: length };
        let body =
            body::read(Pin::new(&mut payload), limits, Some((self.gateway.room(), Carrier::Stream))).await;
        Ok((body.map_err(Refusal::from), payload.left))
    }
}

/// How many places more than one a request takes whose headers are so long: they stay in memory until it is carried out, and
/// a connection has hundreds of requests.
fn places_beyond_the_first(header_bytes: usize) -> Option<u32> {
    let more = header_bytes.div_ceil(DIRECT_PLACE_BYTES).saturating_sub(1);
    u32::try_from(more).ok().filter(|more| *more > 0)
}

/// Waits for a frame to begin: for as long as the client likes, once it is known. Until then a client that never pauses is cut off
/// like one that is silent: bytes that wait do not count.
async fn first_bytes<S: AsyncRead + Unpin + Send>(
    reader: &mut Reader<S>,
    link: &Link,
    silent_until: Instant,
) -> Result<bool, Ended> {
    let is_known = || link.is_known.load(Ordering::Relaxed);
    if !is_known() {
        let left = silent_until.saturating_duration_since(Instant::now());
        let filled = match left.is_zero() {
            true => None,
            false => timeout(left, reader.fill(1)).await.ok(),
        };
        match filled {
            Some(filled) => return filled,
            // A request that was under way has been admitted meanwhile.
            None if is_known() => {}
            None => return Err(Ended::Unknown),
        }
    }
    reader.fill(1).await
}

/// Hands an answer to the writer.
fn send<O: Observer>(
    observer: &O,
    queue: &mpsc::UnboundedSender<Outgoing<O::Request>>,
    answer: Answer,
    request: O::Request,
    place: OwnedSemaphorePermit,
) {
    observer.answered(answer.framed.status, answer.framed.charge);
    if let Some(unsent) = answer.held.0 {
        observer.sending(unsent);
    }
    let (head, body) = (answer.framed.head, answer.framed.body);
    // Without a writer there is nobody who would read it.
    let _ = queue.send(Outgoing { head, body, _request: request, _place: Some(place) });
}

/// The outcome of what has no need to wait.
fn at_once<F: Future>(work: Pin<&mut F>) -> Option<F::Output> {
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
    timeout(limit, work).await.unwrap_or(Err(Ended::Slow))
}

/// Sends answers until there can be no more. Each is written by itself, so that TLS makes a record of it, or several: the Java
/// client, which is given one record at a time, moves the bytes of a second answer in it over those of the first before
/// it has read them. They leave together all the same, as far as what is below gathers writes until it is flushed.
async fn write<S, R>(
    mut stream: WriteHalf<S>,
    mut answers: mpsc::UnboundedReceiver<Outgoing<R>>,
) -> Result<(), io::Error>
where
    S: AsyncRead + AsyncWrite,
{
    let mut ready = Vec::new();
    while answers.recv_many(&mut ready, TOGETHER_MAX).await > 0 {
        for Outgoing { head, body, .. } in &mut ready {
            if body.len() <= COPIED_BYTES_MAX {
                head.extend_from_slice(body);
                body.clear();
            }
            stream.write_all(head).await?;
            stream.write_all(body).await?;
        }
        stream.flush().await?;
        ready.clear();
    }
    stream.shutdown().await
}

/// So many answers leave together.
const TOGETHER_MAX: usize = 64;
/// A larger payload is not copied to stand in a record with its head.
const COPIED_BYTES_MAX: usize = 15 * 1024;
/// What is asked of the socket at once.
const READ_BYTES: usize = 8 * 1024;

/// The bytes of a client that are not understood yet.
struct Reader<S> {
    stream: ReadHalf<S>,
    buffer: BytesMut,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    /// Reads until so many bytes are there; false if the client ends before the first of them. Room is made only for what
    /// comes, whatever a frame says of its length.
    async fn fill(&mut self, bytes: usize) -> Result<bool, Ended> {
        while self.buffer.len() < bytes {
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(false),
                    false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                };
            }
        }
        Ok(true)
    }

    async fn must_fill(&mut self, bytes: usize) -> Result<(), Ended> {
        match self.fill(bytes).await? {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    fn head(&self) -> &[u8; HEAD_BYTES] {
        self.buffer.first_chunk().expect("the caller has waited for it")
    }
}

/// A payload as a body of known length.
struct Payload<'r, S> {
    reader: &'r mut Reader<S>,
    left: usize,
}

impl<S: AsyncRead + Unpin> Body for Payload<'_, S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let Reader { stream, buffer } = &mut *this.reader;
        if buffer.is_empty() {
            buffer.reserve(READ_BYTES);
            let read = pin!(stream.read_buf(buffer)).poll(cx);
            match std::task::ready!(read) {
                Ok(0) => return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into()))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let piece = buffer.split_to(buffer.len().min(this.left)).freeze();
        this.left -= piece.len();
        Poll::Ready(Some(Ok(Piece::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
