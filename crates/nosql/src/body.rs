//! Reading request bodies: the size limit holds before anything is buffered, and time is limited too.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;

use crate::errors::{Own, Refusal};

/// A body over the limit is read to its end and thrown away up to this size, because many clients only
/// look at the answer after they have sent everything. Beyond it the connection is closed on them.
const DISCARD_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Reads the whole body, or refuses it.
pub(crate) async fn read<B>(body: B, bytes_max: usize, time_max: Duration) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match tokio::time::timeout(time_max, collect(body, bytes_max)).await {
        Ok(result) => result,
        Err(_) => Err(Own::BodyTimeout.into()),
    }
}

/// Reads a body that nobody wants, because its request is refused by its headers. A client that has sent its
/// head and is about to send the body would otherwise find the connection closed, and blame its next request
/// for it. False if it was given up: then the connection must not be used again.
pub(crate) async fn discard<B>(body: B, time_max: Duration) -> bool
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

async fn collect<B>(body: B, bytes_max: usize) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let declared = body.size_hint().lower();
    if declared > DISCARD_BYTES_MAX {
        return Err(Own::TooLarge.into());
    }
    let mut body = std::pin::pin!(body);
    let mut first: Option<Bytes> = None;
    let mut joined = BytesMut::new();
    let mut total = 0u64;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Own::BodyBroken(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len() as u64;
        if total.max(declared) > bytes_max as u64 {
            first = None;
            joined = BytesMut::new();
            if total > DISCARD_BYTES_MAX {
                return Err(Own::TooLarge.into());
            }
            continue;
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
        return Err(Own::TooLarge.into());
    }
    Ok(first.unwrap_or_else(|| joined.freeze()))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;

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

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn bodies_up_to_the_limit_are_read_whole() {
        for sizes in [vec![], vec![10], vec![5, 5], vec![0, 3, 0, 7], vec![1; 10]] {
            let total: usize = sizes.iter().sum();
            let read = read(pieces(&sizes), 10, SECOND).await.expect("it is within the limit");
            assert_eq!(read.len(), total, "{sizes:?}");
        }
        assert_eq!(read(Full::new(Bytes::from("abc")), 3, SECOND).await.expect("it fits"), "abc");
    }

    #[tokio::test]
    async fn bodies_over_the_limit_are_refused_however_they_come() {
        for sizes in [vec![11], vec![5, 6], vec![10, 1, 10_000_000, 30_000_000]] {
            let refused = read(pieces(&sizes), 10, SECOND).await;
            assert!(matches!(refused, Err(Refusal::Own(Own::TooLarge))), "{sizes:?}");
        }
        let declared = read(Full::new(Bytes::from(vec![0; 11])), 10, SECOND).await;
        assert!(matches!(declared, Err(Refusal::Own(Own::TooLarge))));
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = Pieces { sizes: VecDeque::from([3]), ends: false };
        let refused = read(never, 10, Duration::from_millis(20)).await;
        assert!(matches!(refused, Err(Refusal::Own(Own::BodyTimeout))));
    }
}
