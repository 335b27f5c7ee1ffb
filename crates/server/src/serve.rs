//! `orrery serve`: puts the rooms together, runs them, and takes them apart in order.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use orrery_cluster::Db;
use orrery_gateway::Entra;
use orrery_nosql::Gateway;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::admin::Admin;
use crate::allocator;
use crate::config::{Config, DirectPort};
use crate::endpoints;
use crate::front::Front;
use crate::gateways::Gateways;
use crate::greeting::Greeting;
use crate::hosts::Hosts;
use crate::keys::AccountKeys;
use crate::manage::{self, Manage};
use crate::metrics::Metrics;
use crate::ports::Ports;
use crate::signals::StopSignals;
use crate::sockets::{Sockets, port_of};
use crate::tls::Tls;
use crate::{entra, limits, logs, modes, otlp, rotation, seed, webhook};

pub fn run(config: Config, started: Instant) -> anyhow::Result<()> {
    logs::start(&config)?;
    allocator::take_small_pages(limits::is_small(config.database().memory.budget));
    // Noted before the keys are read: they may change while the database opens.
    let seen = rotation::Seen::now(&config);
    let keys = AccountKeys::choose(config.bind, config.key_file.as_deref(), config.allow_emulator_key)?;
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
    let signals = StopSignals::listen()?;
    let hangups = rotation::hangups()?;
    // The ports come first: when one is taken, the data directory has not been touched.
    let sockets = Sockets::bind(&config)?;
    let address = sockets.nosql.local_addr()?;
    let table_port = port_of(sockets.table.as_ref())?;
    if !config.in_memory {
        modes::keep_folder(&config.data_dir)?;
    }
    let tls = open_tls(&config)?;
    let metrics = Arc::new(Metrics::new(started));
    let db = open_database(&config).await?;
    watch_partitions(&db, &config);
    let entra = entra::choose(&config)?.map(Arc::new);
    let gateways = open_gateways(&config, &db, &keys, &sockets, entra)?;
    let hosts = Arc::new(Hosts::new(config.names(), keys.uses_emulator_key() || config.entra_development));
    rotation::watch(&config, &gateways, Arc::clone(&hosts), seen, hangups);
    let admin = Arc::new(Admin::new(
        db.clone(),
        Arc::clone(&metrics),
        Arc::clone(&tls),
        address.ip().is_loopback() || config.metrics_names,
    ));
    let server = manage::Server {
        account: config.account_name.clone(),
        nosql_port: address.port(),
        table_port,
        metrics: Arc::clone(&metrics),
    };
    let manage = Manage::new(db.clone(), gateways.nosql.clone(), server, config.body_timeout_seconds);
    keep_tls(Arc::clone(&tls));
    let (tracer, exporter) = otlp::set_up(&config.otlp, &metrics, address.port()).unzip();
    let telling = exporter.map(|exporter| exporter.start(Arc::clone(&admin)));

    let window = limits::http2_window_bytes(db.memory().shares().bodies);
    let front = Front::new(Arc::clone(&admin), manage, gateways.nosql.clone());
    let ports = Ports { config: &config, hosts, metrics, tls, tracer, window, signals };
    let endpoints = endpoints::all(&config, address, table_port);
    let greeting = Greeting { config: &config, keys: &keys, address, endpoints };
    admin.seed(!config.seeds.is_empty());
    let beginning = async {
        seed::plant(&config, &keys, address, &admin).await?;
        greeting.announce(started);
        anyhow::Ok(())
    };
    let mut running = pin!(ports.run(sockets, front, gateways, &admin));
    let begun = tokio::select! {
        () = &mut running => None,
        begun = beginning => Some(begun),
    };
    if let Some(Ok(())) = begun {
        running.await;
    }
    otlp::end(telling).await;
    db.close().await;
    begun.unwrap_or(Ok(()))?;
    tracing::info!("stopped");
    Ok(())
}

fn open_gateways(
    config: &Config,
    db: &Db,
    keys: &AccountKeys,
    sockets: &Sockets,
    entra: Option<Arc<Entra>>,
) -> anyhow::Result<Gateways> {
    let options = gateway_options(config, entra.clone(), port_of(sockets.direct.as_ref())?);
    let nosql = Gateway::new(db.clone(), keys.for_gateway()?, options);
    let table = match &sockets.table {
        Some(_) => {
            let options = table_options(config, entra);
            Some(orrery_table::Gateway::new(db.clone(), keys.for_gateway()?, options))
        }
        None => None,
    };
    Ok(Gateways { nosql, table })
}

fn open_tls(config: &Config) -> anyhow::Result<Arc<Tls>> {
    let folder = (!config.in_memory).then(|| config.data_dir.join("tls"));
    Ok(Arc::new(Tls::new(folder, &config.tls_names)?))
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

fn table_options(config: &Config, entra: Option<Arc<Entra>>) -> orrery_table::Options {
    orrery_table::Options {
        body_time_max: config.body_timeout_seconds,
        shared_throughput: config.table_shared_throughput,
        entra,
        ..orrery_table::Options::default()
    }
}

fn gateway_options(
    config: &Config,
    entra: Option<Arc<Entra>>,
    direct_port: Option<u16>,
) -> orrery_nosql::Options {
    orrery_nosql::Options {
        direct: match (config.direct_port, direct_port) {
            (DirectPort::None, _) => orrery_nosql::Direct::Off,
            (_, Some(port)) => orrery_nosql::Direct::Port(port),
            _ => orrery_nosql::Direct::SamePort,
        },
        body_time_max: config.body_timeout_seconds,
        advertised_host: config.advertised_host.as_deref().map(Into::into),
        entra,
        ..orrery_nosql::Options::default()
    }
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
