//! The signals that ask the server to stop: the first politely, the second without patience.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// What the signals mean, to be awaited by each port.
pub struct StopSignals {
    pub stop: Request,
    pub hurry: Request,
}

#[derive(Clone)]
pub struct Request(watch::Receiver<bool>);

impl StopSignals {
    /// Listens from now on; must be called inside the runtime.
    pub fn listen() -> std::io::Result<StopSignals> {
        let mut source = Source {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        let (stop, stopped) = watch::channel(false);
        let (hurry, hurried) = watch::channel(false);
        tokio::spawn(async move {
            let signal = source.next().await;
            tracing::info!(signal, "stopping");
            stop.send_replace(true);
            let signal = source.next().await;
            tracing::info!(signal, "stopping at once");
            hurry.send_replace(true);
            // Those who look later see it too.
            hurry.closed().await;
        });
        Ok(StopSignals { stop: Request(stopped), hurry: Request(hurried) })
    }
}

impl Request {
    pub async fn made(mut self) {
        // The sender lives as long as the runtime; without it there is nobody to wait for.
        let _ = self.0.wait_for(|made| *made).await;
    }
}

struct Source {
    terminate: Signal,
    interrupt: Signal,
}

impl Source {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
