//! `orrery serve`: puts the rooms together, runs them, and takes them apart in order.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use orrery_cluster::Db;
use orrery_gateway::Entra;
use orrery_nosql::Gateway;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket};

use crate::admin::Admin;
use crate::config::{Config, DirectPort, Durability, PortChoice};
use crate::front::Front;
use crate::gateways::{Gateways, TableFront};
use crate::hosts::Hosts;
use crate::keys::AccountKeys;
use crate::listener::direct::Direct;
use crate::listener::http::{Handler, Http, Shared};
use crate::listener::protocol::Protocols;
use crate::listener::{self, Port, Timeouts};
use crate::manage::Manage;
use crate::metrics::Metrics;
use crate::signals::StopSignals;
use crate::tls::Tls;
use crate::{entra, limits, logs, modes, rotation, webhook};

pub fn run(config: Config, started: Instant) -> anyhow::Result<()> {
    logs::start(&config)?;
    // Noted before the keys are read: they may change while the database opens.
    let seen = rotation::Seen::now(&config);
    let keys = AccountKeys::choose(config.bind, config.key_file.as_deref())?;
    allow_open_files(config.max_connections);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("orrery").build()?;
    let outcome = runtime.block_on(serve(config, keys, seen, started));
    // Everything that matters has been closed; a task that hangs must not keep the process alive.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn serve(
    config: Config,
    keys: AccountKeys,
    seen: rotation::Seen,
    started: Instant,
) -> anyhow::Result<()> {
    let StopSignals { stop, hurry } = StopSignals::listen()?;
    let hangups = rotation::hangups()?;
    // The port comes first: when it is taken, the data directory has not been touched.
    let socket = bind(&config)?;
    let address = socket.local_addr()?;
    let table_socket = bind_table(&config)?;
    let table_port = table_socket.as_ref().map(|socket| socket.local_addr()).transpose()?.map(|at| at.port());
    if !config.in_memory {
        modes::keep_folder(&config.data_dir)?;
    }
    let tls_folder = (!config.in_memory).then(|| config.data_dir.join("tls"));
    let tls = Arc::new(Tls::new(tls_folder, &config.tls_names)?);
    let metrics = Arc::new(Metrics::new(started));
    let db = open_database(&config).await?;
    watch_partitions(&db, &config);
    let entra = entra::choose(&config)?;
    let direct_socket = direct_socket(&config)?;
    let direct_port =
        direct_socket.as_ref().map(TcpListener::local_addr).transpose()?.map(|address| address.port());
    let gateways = Gateways {
        nosql: Gateway::new(db.clone(), keys.for_gateway()?, gateway_options(&config, entra, direct_port)),
        table: match &table_socket {
            Some(_) => {
                let options = orrery_table::Options {
                    body_time_max: config.body_timeout_seconds,
                    ..orrery_table::Options::default()
                };
                Some(orrery_table::Gateway::new(db.clone(), keys.for_gateway()?, options))
            }
            None => None,
        },
    };
    let hosts = Arc::new(Hosts::new(config.names(), keys.uses_emulator_key() || config.entra_development));
    rotation::watch(&config, &gateways, Arc::clone(&hosts), seen, hangups);
    let admin = Arc::new(Admin::new(
        db.clone(),
        Arc::clone(&metrics),
        Arc::clone(&tls),
        address.ip().is_loopback() || config.metrics_names,
    ));
    let manage = Manage::new(db.clone(), gateways.nosql.clone(), config.body_timeout_seconds);
    announce(&config, &keys, address, table_port, started);
    keep_tls(Arc::clone(&tls));

    let window = limits::http2_window_bytes(db.memory().shares().bodies);
    let ports = Ports { config: &config, hosts, metrics, tls, window };
    let direct = ports.direct(gateways.nosql.clone());
    let http = ports.http(Front::new(Arc::clone(&admin), manage, gateways.nosql.clone()));
    let (nosql, direct) = match config.direct_port {
        DirectPort::Same => (Protocols::one(direct).and(http), None),
        DirectPort::Own(_) => (Protocols::one(http), direct_socket.zip(Some(direct))),
        DirectPort::None => (Protocols::one(http), None),
    };
    let patience = || async {
        tokio::select! {
            () = tokio::time::sleep(config.drain_timeout_seconds) => {}
            () = hurry.clone().made() => {}
        }
    };
    let on_nosql = async {
        let stop_all = async {
            stop.clone().made().await;
            admin.stop();
        };
        listener::run(socket, ports.speaking(nosql), stop_all, patience()).await;
    };
    let on_direct = async {
        if let Some((socket, direct)) = direct {
            let port = ports.speaking(Protocols::one(direct));
            listener::run(socket, port, stop.clone().made(), patience()).await;
        }
    };
    let on_table = async {
        if let Some((socket, table)) = table_socket.zip(gateways.table) {
            let http = ports.http(TableFront { table, nosql: gateways.nosql });
            let port = ports.speaking(Protocols::one(http));
            listener::run(socket, port, stop.clone().made(), patience()).await;
        }
    };
    tokio::join!(on_nosql, on_direct, on_table);
    db.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// What all ports have in common.
struct Ports<'c> {
    config: &'c Config,
    hosts: Arc<Hosts>,
    metrics: Arc<Metrics>,
    tls: Arc<Tls>,
    window: u32,
}

impl Ports<'_> {
    fn http(&self, handler: impl Handler) -> Http<impl Handler> {
        Http::new(Shared {
            handler,
            hosts: Arc::clone(&self.hosts),
            metrics: Arc::clone(&self.metrics),
            request_time_max: self.config.request_timeout_seconds,
            http2_window_bytes: self.window,
        })
    }

    fn direct(&self, gateway: Gateway) -> Direct {
        let timeouts = Timeouts::of(self.config);
        Direct::new(gateway, Arc::clone(&self.metrics), timeouts, self.config.request_timeout_seconds)
    }

    fn speaking(&self, protocols: Protocols) -> Port {
        Port {
            protocols,
            tls: Arc::clone(&self.tls),
            metrics: Arc::clone(&self.metrics),
            timeouts: Timeouts::of(self.config),
            max_connections: self.config.max_connections,
        }
    }
}

async fn open_database(config: &Config) -> anyhow::Result<Db> {
    let options = config.database();
    let place = config.data_dir.display();
    // Recovery reads files; it must happen inside the runtime, but not on its own threads.
    let opened = tokio::task::spawn_blocking(move || Db::open(options)).await?;
    opened.with_context(|| format!("cannot open the database in {place}"))
}

/// Whether partitions are accounted for, and who is told when one needs attention.
fn watch_partitions(db: &Db, config: &Config) {
    Db::switch_insight(config.alerts.insight == "on");
    db.set_alerts(config.alerts.settings());
    webhook::start(db, &config.alerts);
}

/// The port that direct mode has to itself, if it does.
fn direct_socket(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let DirectPort::Own(port) = config.direct_port else { return Ok(None) };
    let address = SocketAddr::new(config.bind, port);
    let send_buffer = limits::send_buffer_bytes(config.database().memory.budget);
    let socket = listen(address, send_buffer);
    socket.map(Some).with_context(|| format!("cannot listen on {address}; choose another with --direct-port"))
}

fn gateway_options(config: &Config, entra: Option<Entra>, direct_port: Option<u16>) -> orrery_nosql::Options {
    orrery_nosql::Options {
        direct: match (config.direct_port, direct_port) {
            (DirectPort::None, _) => orrery_nosql::Direct::Off,
            (_, Some(port)) => orrery_nosql::Direct::Port(port),
            _ => orrery_nosql::Direct::SamePort,
        },
        body_time_max: config.body_timeout_seconds,
        advertised_host: config.advertised_host.as_deref().map(Into::into),
        entra: entra.map(Arc::new),
        ..orrery_nosql::Options::default()
    }
}

fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(config.bind, config.nosql_port);
    let send_buffer = limits::send_buffer_bytes(config.database().memory.budget);
    listen(address, send_buffer).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} on {} is in use, perhaps by another orrery; stop it or choose another with --nosql-port",
            config.nosql_port,
            config.bind
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    })
}

/// The port of the Table API. The default one may be taken: then the server does without.
fn bind_table(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let (port, is_named) = match config.table_port {
        Some(PortChoice::Off) => return Ok(None),
        Some(PortChoice::Number(port)) => (port, true),
        None => (limits::TABLE_PORT, false),
    };
    let address = SocketAddr::new(config.bind, port);
    let send_buffer = limits::send_buffer_bytes(config.database().memory.budget);
    match listen(address, send_buffer) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if is_named => {
            Err(anyhow::Error::new(error).context(format!("cannot listen on {address} (--table-port)")))
        }
        Err(error) => {
            tracing::warn!(%address, %error, "the Table API is left out; choose a port with --table-port");
            Ok(None)
        }
    }
}

/// Connections inherit what the socket is told that they come from.
fn listen(address: SocketAddr, send_buffer: Option<u32>) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.bind(address)?;
    socket.listen(limits::LISTEN_BACKLOG)
}

/// Makes the certificates while nobody waits for them, and new ones before they expire, however long the server runs.
/// HTTP works without, so a failure is only said.
fn keep_tls(tls: Arc<Tls>) {
    tokio::spawn(async move {
        loop {
            if let Err(error) = tls.renew(SystemTime::now().into()).await {
                tracing::error!(error = format!("{error:#}"), "HTTPS is not available or soon will not be");
            }
            tokio::time::sleep(limits::LEAF_CHECK_PERIOD).await;
        }
    });
}

/// Says on standard output, in one line that programs can rely on, where the server is.
fn announce(
    config: &Config,
    keys: &AccountKeys,
    address: SocketAddr,
    table_port: Option<u16>,
    started: Instant,
) {
    let port = address.port();
    let host = if address.ip().is_loopback() { "localhost".to_owned() } else { address.ip().to_string() };
    let key = if keys.uses_emulator_key() { "emulator" } else { "key-file" };
    let data = if config.in_memory { "memory".to_owned() } else { config.data_dir.display().to_string() };
    let table = table_port.map_or_else(|| "none".to_owned(), |port| format!("http://{host}:{port}/"));
    let line = format!(
        "ORRERY READY nosql={address} port={port} endpoint=http://{host}:{port}/ \
         secure=https://{host}:{port}/ table={table} key={key} data={data}\n"
    );
    let mut stdout = std::io::stdout().lock();
    // Whoever closed our standard output does not want the line.
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    drop(stdout);
    if config.durability == Durability::Relaxed {
        tracing::warn!("durability is relaxed: writes are acknowledged before they are on disk");
    }
    if table_port.is_some() {
        // The well-known key is no secret; another one is not written to a log.
        let shown = if keys.uses_emulator_key() { keys.primary.as_str() } else { "<key>" };
        let account = &config.account_name;
        tracing::info!(
            "table connection string: DefaultEndpointsProtocol=http;AccountName={account};AccountKey={shown};\
             TableEndpoint={table}{account};"
        );
    }
    tracing::info!(%address, key, data, ready_after_ms = started.elapsed().as_millis() as u64, "ready");
}

/// Raises the limit of open files to what the connections and the engine can use, as far as allowed.
fn allow_open_files(max_connections: usize) {
    let wanted = max_connections as u64 + limits::RESERVED_OPEN_FILES;
    let needed = max_connections as u64 + limits::MIN_RESERVED_OPEN_FILES;
    let now = getrlimit(Resource::Nofile);
    let Some(current) = now.current.filter(|current| *current < wanted) else {
        return;
    };
    let allowed = now.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: now.maximum });
    let open = if raised.is_ok() { allowed } else { current };
    if open < needed {
        tracing::warn!(open, needed, "few open files are allowed; connections may be refused");
    }
}
