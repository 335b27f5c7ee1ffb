//! The signals that ask the server to stop: the first politely, the second without patience.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What the signals mean, each to be awaited once.
pub struct StopSignals {
    pub stop: Request,
    pub hurry: Request,
}

pub struct Request(oneshot::Receiver<()>);

impl StopSignals {
    /// Listens from now on; must be called inside the runtime.
    pub fn listen() -> std::io::Result<StopSignals> {
        let mut source = Source {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        let (stop, stopped) = oneshot::channel();
        let (hurry, hurried) = oneshot::channel();
        tokio::spawn(async move {
            let signal = source.next().await;
            tracing::info!(signal, "stopping");
            let _ = stop.send(());
            let signal = source.next().await;
            tracing::info!(signal, "stopping at once");
            let _ = hurry.send(());
        });
        Ok(StopSignals { stop: Request(stopped), hurry: Request(hurried) })
    }
}

impl Request {
    pub async fn made(self) {
        // The sender lives as long as the runtime; without it there is nobody to wait for.
        let _ = self.0.await;
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
