//! A request body that must arrive in time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Sleep;

/// The error of a body that ended before it was complete.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request. The clock starts when the handler first has to wait for bytes, so requests
/// without a body, and those whose body came with the headers, never see a timer.
pub struct TimedBody {
    incoming: Incoming,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub fn new(incoming: Incoming, limit: Duration) -> TimedBody {
        TimedBody { incoming, limit, deadline: None }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)));
        }
        let deadline = this.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(this.limit)));
        match Future::poll(deadline.as_mut(), cx) {
            Poll::Ready(()) => {
                let late =
                    std::io::Error::new(std::io::ErrorKind::TimedOut, "the request body took too long");
                Poll::Ready(Some(Err(late.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
