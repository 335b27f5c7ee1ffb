//! How connections learn that the server stops, and the server that they have ended.
//!
//! A connection looks for the news each time that it is woken. A receiver of a channel, asked that often, takes a lock
//! that all connections share; so it is asked once to wake the connection, and from then on one load says whether there
//! is anything to ask for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::sync::watch;

/// Tells the connections of a listener to stop.
pub struct Stop(watch::Sender<bool>);

/// Resolves when its connection should end after the requests that it has begun. While it exists, so does its connection.
pub struct Stopping {
    news: watch::Receiver<bool>,
    /// Wakes the connection; gone when it has.
    arrival: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
    /// Whom it wakes.
    waker: Option<Waker>,
}

impl Stop {
    pub fn new() -> Stop {
        Stop(watch::Sender::new(false))
    }

    pub fn stopping(&self) -> Stopping {
        let mut news = self.0.subscribe();
        let mut arriving = news.clone();
        news.mark_unchanged();
        let arrival = Box::pin(async move {
            // Without a server there is nothing to wait for either.
            let _ = arriving.wait_for(|is_stopping| *is_stopping).await;
        });
        Stopping { news, arrival: Some(arrival), waker: None }
    }

    /// Tells all connections, and waits until none is left.
    pub async fn stop(self) {
        self.0.send_replace(true);
        self.0.closed().await;
    }
}

impl Future for Stopping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(arrival) = &mut this.arrival else { return Poll::Ready(()) };
        let will_be_woken = this.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if will_be_woken && !this.news.has_changed().unwrap_or(true) {
            return Poll::Pending;
        }
        this.waker = Some(cx.waker().clone());
        ready!(arrival.as_mut().poll(cx));
        this.arrival = None;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    async fn is_stopping(stopping: &mut Stopping) -> bool {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut *stopping).poll(cx).is_ready())).await
    }

    #[tokio::test]
    async fn a_connection_that_was_asked_often_is_still_woken() {
        let stop = Stop::new();
        let mut stopping = stop.stopping();
        for _ in 0..3 {
            assert!(!is_stopping(&mut stopping).await);
        }
        let connection = tokio::spawn(async move {
            (&mut stopping).await;
            assert!(is_stopping(&mut stopping).await, "the news stays");
        });
        timeout(LONG, stop.stop()).await.expect("the connection has ended");
        connection.await.expect("no panic");
    }

    #[tokio::test]
    async fn the_server_waits_for_connections_that_have_not_ended() {
        let stop = Stop::new();
        let (quick, slow) = (stop.stopping(), stop.stopping());
        let mut stopped = Box::pin(stop.stop());
        assert!(timeout(Duration::from_millis(20), &mut stopped).await.is_err());
        drop(quick);
        assert!(timeout(Duration::from_millis(20), &mut stopped).await.is_err());
        drop(slow);
        timeout(LONG, stopped).await.expect("all have ended");
    }
}
