//! What runs on the ports: which protocols each speaks, and how all of them stop together.

use std::sync::Arc;

use orrery_nosql::Gateway;
use tokio::net::TcpListener;

use crate::admin::Admin;
use crate::config::{Config, DirectPort};
use crate::front::Front;
use crate::gateways::{Gateways, TableFront};
use crate::hosts::Hosts;
use crate::listener::direct::Direct;
use crate::listener::http::{Handler, Http, Shared};
use crate::listener::protocol::Protocols;
use crate::listener::{self, Port, Timeouts};
use crate::metrics::Metrics;
use crate::otlp::Tracer;
use crate::signals::StopSignals;
use crate::sockets::Sockets;
use crate::tls::Tls;

/// What all ports have in common.
pub struct Ports<'c> {
    pub config: &'c Config,
    pub hosts: Arc<Hosts>,
    pub metrics: Arc<Metrics>,
    pub tls: Arc<Tls>,
    pub tracer: Option<Arc<Tracer>>,
    /// Window of a connection of HTTP/2.
    pub window: u32,
    pub signals: StopSignals,
}

impl Ports<'_> {
    /// Serves until the server is told to stop and the requests in progress are answered.
    pub async fn run(&self, sockets: Sockets, front: Front, gateways: Gateways, admin: &Admin) {
        let direct = self.direct(gateways.nosql.clone());
        let http = self.http(front);
        let (nosql, direct) = match self.config.direct_port {
            DirectPort::Same => (Protocols::one(direct).and(http), None),
            DirectPort::Own(_) => (Protocols::one(http), sockets.direct.zip(Some(direct))),
            DirectPort::None => (Protocols::one(http), None),
        };
        let on_nosql = async {
            let stopped = async {
                self.signals.stop.clone().made().await;
                admin.stop();
            };
            self.serve(sockets.nosql, nosql, stopped).await;
        };
        let on_direct = async {
            if let Some((socket, direct)) = direct {
                self.serve(socket, Protocols::one(direct), self.signals.stop.clone().made()).await;
            }
        };
        let on_table = async {
            if let Some((socket, table)) = sockets.table.zip(gateways.table) {
                let direct = self.direct(gateways.nosql.clone());
                let http = self.http(TableFront { table, nosql: gateways.nosql });
                // Clients are sent to the port that they have dialled, unless direct mode has one of its own.
                let protocols = match self.config.direct_port {
                    DirectPort::Same => Protocols::one(direct).and(http),
                    DirectPort::Own(_) | DirectPort::None => Protocols::one(http),
                };
                self.serve(socket, protocols, self.signals.stop.clone().made()).await;
            }
        };
        tokio::join!(on_nosql, on_direct, on_table);
    }

    async fn serve(&self, socket: TcpListener, protocols: Protocols, stopped: impl Future<Output = ()>) {
        let port = Port {
            protocols,
            tls: Arc::clone(&self.tls),
            metrics: Arc::clone(&self.metrics),
            timeouts: Timeouts::of(self.config),
            max_connections: self.config.max_connections,
        };
        let patience = async {
            tokio::select! {
                () = tokio::time::sleep(self.config.drain_timeout_seconds) => {}
                () = self.signals.hurry.clone().made() => {}
            }
        };
        listener::run(socket, port, stopped, patience).await;
    }

    fn http<H: Handler>(&self, handler: H) -> Http<H> {
        Http::new(Shared {
            handler,
            hosts: Arc::clone(&self.hosts),
            proxies: self.config.proxies(),
            metrics: Arc::clone(&self.metrics),
            tracer: self.tracer.clone(),
            request_time_max: self.config.request_timeout_seconds,
            http2_window_bytes: self.window,
        })
    }

    fn direct(&self, gateway: Gateway) -> Direct {
        let timeouts = Timeouts::of(self.config);
        Direct::new(gateway, Arc::clone(&self.metrics), timeouts, self.config.request_timeout_seconds)
    }
}
