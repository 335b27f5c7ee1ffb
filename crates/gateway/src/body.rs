//! Reading request bodies: the size limit holds before anything is buffered, and time is limited too.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use orrery_cluster::Error;
use orrery_cluster::limits::{BODY_LARGE_BYTES, BODY_UNCOUNTED_BYTES};

use crate::room::{BodyHold, Carrier, Head, Room};

/// A body over the limit is read to its end and thrown away up to this size, because many clients only
/// look at the answer after they have sent everything. Beyond it the connection is closed on them.
const DISCARD_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How often a body that comes slowly is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long the body of a request that is refused for want of memory is read, so that its client looks at the answer.
const REFUSED_TIME_MAX: Duration = Duration::from_secs(2);

/// Why there is no body.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the body is too large")]
    TooLarge,
    #[error("the body did not arrive in time")]
    TimedOut,
    #[error("the body could not be read: {0}")]
    Broken(String),
    /// There is no memory for it.
    #[error("{}", .0.kind)]
    Db(Error),
}

impl From<Error> for BodyError {
    fn from(error: Error) -> BodyError {
        BodyError::Db(error)
    }
}

/// What a body may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes: usize,
    pub time: Duration,
}

/// Reads the whole body, or refuses it. What it holds is taken from a room beforehand, unless it is small.
pub async fn read<B>(body: B, limits: Limits, room: Option<(&Room, Carrier)>) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut body = std::pin::pin!(body);
    let counted = Counted { room, hold: None };
    match tokio::time::timeout(limits.time, collect(body.as_mut(), limits.bytes, counted)).await {
        Ok(Err(BodyError::Db(error))) => {
            discard(body, REFUSED_TIME_MAX).await;
            Err(BodyError::Db(error))
        }
        Ok(result) => result,
        Err(_) => Err(BodyError::TimedOut),
    }
}

/// Room for the head of a request, if it needs some.
pub fn head_of(parts: &Parts, room: &Room) -> Result<Option<Head>, Error> {
    let carrier = Carrier::of(parts.version);
    if carrier == Carrier::Connection {
        return Ok(None);
    }
    let fields = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    let path = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    room.head(fields.sum::<usize>() + path, carrier)
}

/// The memory of a body that is being read.
struct Counted<'a> {
    room: Option<(&'a Room, Carrier)>,
    hold: Option<BodyHold>,
}

impl Counted<'_> {
    /// Takes memory for so many bytes in place of what was taken.
    async fn take(&mut self, bytes: u64) -> Result<(), BodyError> {
        if let Some((room, carrier)) = self.room {
            self.hold = room.body(bytes, carrier).await?;
        }
        Ok(())
    }

    /// Takes what a body of unknown length needs that has come so far: a little, and then all that it may have.
    async fn grow(&mut self, total: u64, bytes_max: u64) -> Result<(), BodyError> {
        let uncounted = self.room.map_or(u64::MAX, |(_, carrier)| carrier.body_uncounted());
        let has = self.hold.as_ref().map_or(0, BodyHold::bytes);
        match total {
            total if total <= has.max(uncounted) => Ok(()),
            total if total <= BODY_UNCOUNTED_BYTES => self.take(BODY_UNCOUNTED_BYTES).await,
            total if total <= BODY_LARGE_BYTES => self.take(BODY_LARGE_BYTES).await,
            _ => self.take(bytes_max).await,
        }
    }

    /// The next piece, unless the body is given up because others wait for its memory.
    async fn next<B>(&self, body: &mut Pin<&mut B>) -> Option<Result<Frame<Bytes>, BodyError>>
    where
        B: Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let told = |frame: Result<Frame<Bytes>, B::Error>| {
            frame.map_err(|error| BodyError::Broken(error.to_string()))
        };
        let (Some((room, _)), Some(hold)) = (self.room, &self.hold) else {
            return body.frame().await.map(told);
        };
        loop {
            let frame = tokio::time::timeout(LOOK_EVERY, body.frame()).await;
            if !matches!(frame, Ok(None)) && room.is_overdue(hold) {
                return Some(Err(BodyError::TimedOut));
            }
            if let Ok(frame) = frame {
                return frame.map(told);
            }
        }
    }

    fn keep(self, body: Bytes) -> Bytes {
        match self.hold {
            Some(hold) => hold.keep(body),
            None => body,
        }
    }
}

/// Reads a body that nobody wants, because its request is refused by its headers. A client that has sent its
/// head and is about to send the body would otherwise find the connection closed, and blame its next request
/// for it. False if it was given up: then the connection must not be used again.
pub async fn discard<B>(body: B, time_max: Duration) -> bool
where
    B: Body<Data = Bytes>,
{
    if body.is_end_stream() {
        return true;
    }
    if body.size_hint().lower() > DISCARD_BYTES_MAX {
        return false;
    }
    let to_its_end = async {
        let mut body = std::pin::pin!(body);
        let mut total = 0u64;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            total += frame.data_ref().map_or(0, |data| data.len() as u64);
            if total > DISCARD_BYTES_MAX {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(time_max, to_its_end).await.unwrap_or(false)
}

async fn collect<B>(
    mut body: Pin<&mut B>,
    bytes_max: usize,
    mut counted: Counted<'_>,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let declared = body.size_hint().lower();
    if declared > DISCARD_BYTES_MAX {
        return Err(BodyError::TooLarge);
    }
    if declared <= bytes_max as u64 {
        counted.take(declared).await?;
    }
    let is_declared = body.size_hint().exact().is_some();
    let mut first: Option<Bytes> = None;
    let mut joined = BytesMut::new();
    let mut total = 0u64;
    while let Some(frame) = counted.next(&mut body).await {
        let Ok(data) = frame?.into_data() else { continue };
        total += data.len() as u64;
        if total.max(declared) > bytes_max as u64 {
            first = None;
            joined = BytesMut::new();
            if total > DISCARD_BYTES_MAX {
                return Err(BodyError::TooLarge);
            }
            continue;
        }
        if !is_declared {
            counted.grow(total, bytes_max as u64).await?;
        }
        // Nearly all bodies come in one piece, which is then passed on without copying.
        match (&first, joined.is_empty()) {
            (None, true) => first = Some(data),
            (Some(head), _) => {
                joined.reserve((declared as usize).max(head.len() + data.len()));
                joined.extend_from_slice(head);
                joined.extend_from_slice(&data);
                first = None;
            }
            (None, false) => joined.extend_from_slice(&data),
        }
    }
    if total > bytes_max as u64 {
        return Err(BodyError::TooLarge);
    }
    Ok(counted.keep(first.unwrap_or_else(|| joined.freeze())))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use http_body_util::Full;
    use orrery_cluster::limits::STREAM_UNCOUNTED_BYTES;
    use orrery_cluster::{Consumer, Memory, MemoryShares};

    /// A body of pieces, whose length is not known beforehand; without an end it never comes.
    struct Pieces {
        sizes: VecDeque<usize>,
        ends: bool,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.sizes.pop_front() {
                Some(size) => Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; size]))))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn pieces(sizes: &[usize]) -> Pieces {
        Pieces { sizes: sizes.iter().copied().collect(), ends: true }
    }

    fn limits(bytes: usize) -> Limits {
        Limits { bytes, time: Duration::from_secs(1) }
    }

    #[tokio::test]
    async fn bodies_up_to_the_limit_are_read_whole() {
        for sizes in [vec![], vec![10], vec![5, 5], vec![0, 3, 0, 7], vec![1; 10]] {
            let total: usize = sizes.iter().sum();
            let read = read(pieces(&sizes), limits(10), None).await.expect("it is within the limit");
            assert_eq!(read.len(), total, "{sizes:?}");
        }
        assert_eq!(read(Full::new(Bytes::from("abc")), limits(3), None).await.expect("it fits"), "abc");
    }

    #[tokio::test]
    async fn bodies_over_the_limit_are_refused_however_they_come() {
        for sizes in [vec![11], vec![5, 6], vec![10, 1, 10_000_000, 30_000_000]] {
            let refused = read(pieces(&sizes), limits(10), None).await;
            assert!(matches!(refused, Err(BodyError::TooLarge)), "{sizes:?}");
        }
        let declared = read(Full::new(Bytes::from(vec![0; 11])), limits(10), None).await;
        assert!(matches!(declared, Err(BodyError::TooLarge)));
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = Pieces { sizes: VecDeque::from([3]), ends: false };
        let refused = read(never, Limits { time: Duration::from_millis(20), ..limits(10) }, None).await;
        assert!(matches!(refused, Err(BodyError::TimedOut)));
    }

    /// A connection of HTTP/2 carries many bodies at once, so that little of each is uncounted.
    #[tokio::test]
    async fn bodies_of_unknown_length_take_memory_as_they_come() {
        let memory = Memory::new(MemoryShares::of(128 << 20));
        let room = Room::new(memory.clone());
        let held = || memory.usage()[Consumer::Bodies as usize].used_bytes;
        let uncounted = STREAM_UNCOUNTED_BYTES as usize;
        for (carrier, size, counted) in [
            (Carrier::Stream, uncounted, 0),
            (Carrier::Stream, uncounted + 1, BODY_UNCOUNTED_BYTES),
            (Carrier::Stream, BODY_UNCOUNTED_BYTES as usize + 1, BODY_LARGE_BYTES),
            (Carrier::Connection, BODY_UNCOUNTED_BYTES as usize, 0),
            (Carrier::Connection, BODY_UNCOUNTED_BYTES as usize + 1, BODY_LARGE_BYTES),
        ] {
            let unfinished = Pieces { sizes: VecDeque::from([size]), ends: false };
            let mut reading = std::pin::pin!(read(unfinished, limits(1 << 20), Some((&room, carrier))));
            assert!(reading.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert_eq!(held(), counted, "{size} bytes over {carrier:?}");
        }
    }
}
