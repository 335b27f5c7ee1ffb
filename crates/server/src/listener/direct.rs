//! Direct mode as a protocol of a port. It needs TLS: clients look for it nowhere else.

use std::sync::{Arc, Weak};

use http::StatusCode;
use orrery_cluster::limits::DIRECT_SILENT_TIME_MAX;
use orrery_gateway::Unsent;
use orrery_nosql::{Gateway, Observer, RequestTime, begins_as_direct};

use super::protocol::{Connection, Protocol, Serving, Verdict};
use super::pulse::{Beat, Pulse};
use super::{Scheme, Timeouts};
use crate::metrics::{Metrics, Speech};

pub struct Direct {
    gateway: Gateway,
    metrics: Arc<Metrics>,
    times: RequestTime,
}

impl Direct {
    pub fn new(
        gateway: Gateway,
        metrics: Arc<Metrics>,
        timeouts: Timeouts,
        request: std::time::Duration,
    ) -> Direct {
        let times = RequestTime {
            header: timeouts.header,
            request,
            idle: timeouts.idle,
            unknown: DIRECT_SILENT_TIME_MAX,
        };
        Direct { gateway, metrics, times }
    }
}

impl Protocol for Direct {
    fn recognises(&self, first: &[u8]) -> Verdict {
        match begins_as_direct(first) {
            None => Verdict::NeedMore,
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
        }
    }

    fn serve(&self, connection: Connection) -> Serving<'_> {
        Box::pin(serve(self, connection))
    }

    fn wants_memory(&self) -> bool {
        self.gateway.wants_memory()
    }
}

async fn serve(direct: &Direct, Connection { mut stream, peer, pulse, stopping }: Connection) {
    if peer.scheme == Scheme::Http {
        tracing::debug!(remote = %peer.remote, "direct mode needs TLS");
        return;
    }
    stream.gather_writes();
    let watcher = Watcher { pulse, metrics: Arc::clone(&direct.metrics) };
    let served = direct.gateway.serve_direct(stream, peer, watcher, direct.times, stopping).await;
    if let Err(error) = served {
        tracing::debug!(remote = %peer.remote, %error, "the connection in direct mode ended badly");
    }
}

/// Notes requests in the pulse of their connection, and counts them.
#[derive(Clone)]
struct Watcher {
    pulse: Arc<Pulse>,
    metrics: Arc<Metrics>,
}

impl Observer for Watcher {
    type Request = Beat<Arc<Pulse>>;

    fn begins(&self) -> Beat<Arc<Pulse>> {
        Beat::of(Arc::clone(&self.pulse))
    }

    fn answered(&self, status: StatusCode, charge: f64) {
        self.metrics.answered(Speech::Direct, status);
        self.metrics.charged(Speech::Direct, charge);
    }

    fn sending(&self, answer: Weak<Unsent>) {
        self.pulse.sending(answer);
    }
}
