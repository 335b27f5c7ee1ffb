//! The one place where an option is named, documented and given its default.
//!
//! Every field of [`Config`] is at once a command-line flag (`--data-dir`), an environment variable
//! (`ORRERY_DATA_DIR`) and a key of the TOML file named by `--config` (`data-dir`). A flag beats the
//! variable, the variable beats the file, the file beats the default. The file is not a second
//! structure: its values become the defaults of the flags before the command line is parsed, so the
//! same parser checks them and the same documentation describes them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use orrery_cluster::limits::RETENTION_MINUTES_MAX;

use crate::limits;
use crate::proxies::{Network, Proxies, PublicUrl};

mod alerts;
mod data_dir;
mod database;
mod file;
mod memory;
mod otlp;
mod ports;
mod units;

pub use alerts::AlertOptions;
pub use file::{load, read_text};
pub use otlp::OtlpOptions;
pub use ports::PortChoice;

#[derive(Args, Clone, Debug)]
pub struct Config {
    /// A TOML file with any of these options, named as the flags are, without the dashes in front.
    #[arg(long, env = "ORRERY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where items, certificates and the catalog are kept. By default `$XDG_DATA_HOME/orrery`, which mostly is
    /// `~/.local/share/orrery`; an `./orrery-data` that is there is used instead.
    #[arg(long, env = "ORRERY_DATA_DIR", value_name = "DIR", default_value_os_t = data_dir::by_default(),
          hide_default_value = true)]
    pub data_dir: PathBuf,

    /// Keep everything in memory; nothing is read from or written to the data directory.
    #[arg(long, env = "ORRERY_IN_MEMORY", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub in_memory: bool,

    /// The address to listen on. Addresses other than loopback need `--key-file` or `--allow-emulator-key`.
    #[arg(long, env = "ORRERY_BIND", value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: IpAddr,

    /// The port of the NoSQL API, for HTTP and HTTPS alike; 0 takes any free port and prints it.
    #[arg(long, env = "ORRERY_NOSQL_PORT", value_name = "PORT", default_value_t = 8081)]
    pub nosql_port: u16,

    /// Where clients in direct mode (RNTBD over TLS) are served: `same` is the port of the NoSQL API, a number is a port of
    /// their own, `none` switches direct mode off.
    #[arg(long, env = "ORRERY_DIRECT_PORT", value_name = "same|PORT|none", default_value = "same",
          value_parser = units::direct_port)]
    pub direct_port: DirectPort,

    /// The port of the Table API, for HTTP and HTTPS alike; 0 takes any free port and prints it, `none` leaves the API out.
    /// Without this it is 8902, and if that is taken the server does without and says so.
    #[arg(long, env = "ORRERY_TABLE_PORT", value_name = "PORT")]
    pub table_port: Option<PortChoice>,

    /// Request units a second that tables share which ask for none of their own. Without this each new table gets 400. It counts
    /// when the first table is made; later the throughput of the database `TablesDB` says it.
    #[arg(long, env = "ORRERY_TABLE_SHARED_THROUGHPUT", value_name = "RU", value_parser = ports::shared_throughput)]
    pub table_shared_throughput: Option<u32>,

    /// A file with the account's keys: lines of `primary = "<base64>"`, and optionally `secondary`,
    /// `primary-readonly` and `secondary-readonly`. Without it the well-known emulator key is used.
    /// The file is read again when it changes and on SIGHUP.
    #[arg(long, env = "ORRERY_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,

    /// Let the well-known emulator key open the account also where the server does not listen on loopback, as in a
    /// container. That key is public: a client that reaches the port has everything.
    #[arg(long, env = "ORRERY_ALLOW_EMULATOR_KEY", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_emulator_key: bool,

    /// Files of databases, containers, throughput and items that are made at the start where they are missing, or a folder
    /// of such files; `docs/command-line.md` describes them.
    #[arg(long = "seed", env = "ORRERY_SEED", value_name = "FILE|FOLDER", value_delimiter = ',')]
    pub seeds: Vec<PathBuf>,

    /// An issuer of Entra ID tokens that is trusted, as the `iss` claim names it; may be given several times.
    #[arg(long = "entra-issuer", env = "ORRERY_ENTRA_ISSUER", value_name = "URL", value_delimiter = ',')]
    pub entra_issuers: Vec<String>,

    /// An audience that tokens may be issued for, as the `aud` claim names it; may be given several times.
    #[arg(long = "entra-audience", env = "ORRERY_ENTRA_AUDIENCE", value_name = "URL", value_delimiter = ',')]
    pub entra_audiences: Vec<String>,

    /// A file with the issuers' public keys, a JSON Web Key Set. It is read again when it changes.
    #[arg(long, env = "ORRERY_ENTRA_KEYS", value_name = "FILE")]
    pub entra_keys: Option<PathBuf>,

    /// Accept every Entra ID token that is neither expired nor early, whatever key signed it. For development, on loopback only.
    #[arg(long, env = "ORRERY_ENTRA_DEVELOPMENT", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub entra_development: bool,

    /// Whether a write is answered after it is on disk (durable) or before (relaxed).
    #[arg(long, env = "ORRERY_DURABILITY", value_enum, default_value_t = Durability::Durable)]
    pub durability: Durability,

    /// What to log: a level (error, warn, info, debug, trace) or filters such as `info,orrery_nosql=debug`.
    #[arg(long, env = "ORRERY_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,

    /// The form of log lines on standard error.
    #[arg(long, env = "ORRERY_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Say in one line for programs that the server is ready, also on a terminal. Where standard output is not a
    /// terminal this line comes anyway.
    #[arg(long, env = "ORRERY_READY_LINE", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub ready_line: bool,

    /// Count request units but never answer 429.
    #[arg(long, env = "ORRERY_NO_THROTTLE", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub no_throttle: bool,

    /// Behave as a serverless account: no provisioned throughput and no offers.
    #[arg(long, env = "ORRERY_SERVERLESS", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub serverless: bool,

    /// The account's name, as the account document shows it. An account called `localhost` has no regions for the
    /// JavaScript SDK, which then reads the account document again before every request.
    #[arg(long, env = "ORRERY_ACCOUNT_NAME", value_name = "NAME", default_value = "orrery")]
    pub account_name: String,

    /// The account's default consistency level.
    #[arg(long, env = "ORRERY_CONSISTENCY", value_enum, ignore_case = true, default_value_t = Consistency::Session)]
    pub consistency: Consistency,

    /// The name of the account's region, as the account document shows it.
    #[arg(long, env = "ORRERY_REGION", value_name = "NAME", default_value = "South Central US")]
    pub region: String,

    /// The host name that clients are told to dial, without a port. By default it is the one that they dialled;
    /// 127.0.0.1 does as the emulator does. Requests may name it while the well-known key is in use.
    #[arg(long, env = "ORRERY_ADVERTISED_HOST", value_name = "HOST")]
    pub advertised_host: Option<String>,

    /// The whole address that clients dial, `https://db.example.com/`, where a proxy stands between them and the server.
    /// Answers name it. Direct mode does not work through such a proxy.
    #[arg(long, env = "ORRERY_PUBLIC_URL", value_name = "URL", conflicts_with = "advertised_host")]
    pub public_url: Option<PublicUrl>,

    /// An address or network (`10.0.0.0/8`) of proxies whose `X-Forwarded-Proto` and `X-Forwarded-Host` say what clients
    /// dialled; may be given several times.
    #[arg(long = "trusted-proxy", env = "ORRERY_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',')]
    pub trusted_proxies: Vec<Network>,

    /// One more host name or address for the HTTPS certificate; may be given several times. Requests may name it while the
    /// well-known key is in use.
    #[arg(long = "tls-name", env = "ORRERY_TLS_NAME", value_name = "NAME", value_delimiter = ',')]
    pub tls_names: Vec<String>,

    /// Let `/metrics` name databases and containers also when the server does not listen on loopback, where anybody
    /// may read that page. Otherwise containers go by their RIDs there.
    #[arg(long, env = "ORRERY_METRICS_NAMES", default_value = "false", action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub metrics_names: bool,

    /// Connections served at once; further ones are closed on arrival.
    #[arg(long, env = "ORRERY_MAX_CONNECTIONS", value_name = "N", default_value_t = limits::MAX_CONNECTIONS)]
    pub max_connections: usize,

    /// The largest logical partition; writes past it are refused with 403/1014. Takes units: 64KiB, 20GiB.
    #[arg(long, env = "ORRERY_LOGICAL_PARTITION_BYTES", value_name = "BYTES", default_value = "20GiB", value_parser = units::bytes)]
    pub logical_partition_bytes: u64,

    /// The storage budget of one physical partition: at this size it splits. Takes units: 64MiB, 50GiB.
    #[arg(long, env = "ORRERY_PARTITION_BYTES", value_name = "BYTES", default_value = "50GiB", value_parser = units::bytes)]
    pub partition_bytes: u64,

    /// The throughput ceiling of one physical partition, in request units per second.
    #[arg(long, env = "ORRERY_PARTITION_THROUGHPUT", value_name = "RU", default_value_t = 10_000)]
    pub partition_throughput: u32,

    /// How long the partitions of a container may be provisioned with less than a tenth of what they can give before
    /// two of them are merged.
    #[arg(long, env = "ORRERY_MERGE_AFTER_SECONDS", value_name = "SECONDS", default_value = "600", value_parser = units::seconds)]
    pub merge_after_seconds: Duration,

    /// How many minutes every version and delete of items is kept in containers that do not say it themselves, as an
    /// account with continuous backup does, so that all can be read in the change feed. Each takes the room of an item
    /// for that long, and partitions are not merged meanwhile. 0 leaves it to the containers; 43200 are thirty days.
    #[arg(long, env = "ORRERY_CHANGE_FEED_RETENTION_MINUTES", value_name = "MINUTES", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=RETENTION_MINUTES_MAX))]
    pub change_feed_retention_minutes: u32,

    /// The most disk space the data directory may take; 0 leaves it to the disk.
    #[arg(long, env = "ORRERY_MAX_DISK_BYTES", value_name = "BYTES", default_value = "0", value_parser = units::bytes)]
    pub max_disk_bytes: u64,

    /// The memory that the server may use: its budget, from which queries, scripts, bodies, answers, write buffers and the
    /// block cache take. By default three quarters of what the container allows, or half of what the machine has.
    #[arg(long, env = "ORRERY_MEMORY_BYTES", value_name = "BYTES", value_parser = units::memory_bytes)]
    pub memory_bytes: Option<u64>,

    /// The memory given to the storage engine's block cache, beside the rest of the budget. By default it may grow to
    /// what the budget leaves for it.
    #[arg(long, env = "ORRERY_CACHE_BYTES", value_name = "BYTES", value_parser = units::bytes)]
    pub cache_bytes: Option<u64>,

    /// The size of a write buffer of the storage engine, and of its files in proportion. For tests.
    #[arg(long, env = "ORRERY_WRITE_BUFFER_BYTES", value_name = "BYTES", value_parser = units::bytes, hide = true)]
    pub write_buffer_bytes: Option<u64>,

    /// How long a client may take to send the headers of a request, in seconds.
    #[arg(long, env = "ORRERY_HEADER_TIMEOUT_SECONDS", value_name = "S", default_value = "10", value_parser = units::seconds)]
    pub header_timeout_seconds: Duration,

    /// How long a client may take to send the body of a request, in seconds.
    #[arg(long, env = "ORRERY_BODY_TIMEOUT_SECONDS", value_name = "S", default_value = "30", value_parser = units::seconds)]
    pub body_timeout_seconds: Duration,

    /// How long the server may work on one request before it answers 408, in seconds.
    #[arg(long, env = "ORRERY_REQUEST_TIMEOUT_SECONDS", value_name = "S", default_value = "65", value_parser = units::seconds)]
    pub request_timeout_seconds: Duration,

    /// How long a client may stop reading an answer before it is cut off, in seconds.
    #[arg(long, env = "ORRERY_WRITE_TIMEOUT_SECONDS", value_name = "S", default_value = "30", value_parser = units::seconds)]
    pub write_timeout_seconds: Duration,

    /// How long a kept-alive connection may stay silent, in seconds.
    #[arg(long, env = "ORRERY_IDLE_TIMEOUT_SECONDS", value_name = "S", default_value = "600", value_parser = units::seconds)]
    pub idle_timeout_seconds: Duration,

    /// How long a TLS handshake may take, in seconds.
    #[arg(long, env = "ORRERY_TLS_TIMEOUT_SECONDS", value_name = "S", default_value = "10", value_parser = units::seconds)]
    pub tls_timeout_seconds: Duration,

    /// How long a stopping server waits for requests in progress, in seconds.
    #[arg(long, env = "ORRERY_DRAIN_TIMEOUT_SECONDS", value_name = "S", default_value = "10", value_parser = units::seconds)]
    pub drain_timeout_seconds: Duration,

    #[command(flatten)]
    pub alerts: AlertOptions,

    #[command(flatten)]
    pub otlp: OtlpOptions,
}

impl Config {
    /// The names that the operator has given this server.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.advertised_host.iter().chain(&self.tls_names).map(String::as_str);
        own.chain(self.public_url.as_ref().map(PublicUrl::name))
    }

    /// What stands between clients and the server.
    pub fn proxies(&self) -> Proxies {
        Proxies::new(self.public_url.clone(), self.trusted_proxies.clone())
    }
}

/// Where direct mode is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectPort {
    Same,
    None,
    Own(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    Durable,
    Relaxed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Spelled as the account document spells them; the command line takes any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Consistency {
    Strong,
    BoundedStaleness,
    Session,
    ConsistentPrefix,
    Eventual,
}
