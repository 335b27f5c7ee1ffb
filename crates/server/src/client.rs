//! A client of a running server, for the subcommands that talk to one.
//!
//! One connection, one request at a time. It is opened when it is first needed and again when it has broken; what is
//! asked a second time then is only what reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::keys::EMULATOR_KEY;
use crate::manage;

/// How long a server may take to be reached, and to answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Where a server is, and the key to it.
#[derive(Args, Clone, Debug)]
pub struct Endpoint {
    /// The server to talk to.
    #[arg(long, env = "ORRERY_ENDPOINT", value_name = "URL", default_value = "http://localhost:8081/")]
    pub endpoint: Uri,

    /// A key of its account; by default the well-known one of the emulator.
    #[arg(long, env = "ORRERY_KEY", value_name = "KEY", default_value = EMULATOR_KEY, hide_default_value = true,
          hide_env_values = true)]
    pub key: String,

    /// The authority that signs the server's certificate, in PEM, for HTTPS; by default those that the machine trusts.
    /// A server shows its own at `/_explorer/emulator.pem`.
    #[arg(long, env = "ORRERY_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// A container of a running server.
#[derive(Args, Clone)]
pub struct Place {
    #[command(flatten)]
    pub endpoint: Endpoint,
    /// The database of the container.
    #[arg(long, value_name = "NAME")]
    pub database: String,
    #[arg(long, value_name = "NAME")]
    pub container: String,
}

impl Place {
    /// Its path in the management API.
    pub fn path(&self) -> String {
        container_path(&self.database, &self.container)
    }
}

pub struct Client {
    to: Endpoint,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub fn new(to: Endpoint) -> Client {
        Client { to, connection: None }
    }

    /// Asks the management API; the path is the one behind its prefix.
    pub async fn manage(
        &mut self,
        method: Method,
        path: &str,
        body: Option<serde_json::Value>,
    ) -> anyhow::Result<serde_json::Value> {
        let path = format!("{}{path}", manage::PREFIX);
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let asked = self.ask(&method, &path, body.clone()).await;
        let (status, answer) = match asked {
            Err(_) if method == Method::GET => self.ask(&method, &path, body).await?,
            asked => asked?,
        };
        let json: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        if !status.is_success() {
            let why = json["message"].as_str().unwrap_or("no reason given");
            bail!("the server answered {}: {why}", status.as_u16());
        }
        Ok(json)
    }

    async fn ask(&mut self, method: &Method, path: &str, body: Bytes) -> anyhow::Result<(StatusCode, Bytes)> {
        let date = date();
        let signed = path.split('?').next().unwrap_or_default();
        let authorization =
            orrery_nosql::sign_beside(&self.to.key, method, manage::RESOURCE_TYPE, signed, &date)
                .context("the key is not one of an account")?;
        let host = self.to.endpoint.authority().context("the endpoint names no host")?.as_str();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header("x-ms-date", date)
            .header(AUTHORIZATION, authorization)
            .body(Full::new(body))?;
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(request)).await;
        let answer = answer.context("the server does not answer").and_then(|answer| answer);
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)> {
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => connect(&self.to.endpoint, self.to.ca_file.as_deref()).await?,
        };
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?.to_bytes();
        self.connection = Some(connection);
        Ok((status, body))
    }
}

/// The path of a container below the prefix of the management API.
pub fn container_path(database: &str, container: &str) -> String {
    let encode = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    format!("dbs/{}/colls/{}", encode(database), encode(container))
}

/// Now, in the form that requests are signed with.
fn date() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

/// Opens a connection to where a URL points.
pub async fn connect(to: &Uri, ca_file: Option<&Path>) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    tokio::time::timeout(CONNECT_TIME_MAX, open(to, ca_file))
        .await
        .with_context(|| format!("{to} does not answer"))?
        .with_context(|| format!("cannot connect to {to}"))
}

async fn open(to: &Uri, ca_file: Option<&Path>) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let host = to.host().context("the URL names no host")?;
    let secure = match to.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => bail!("the URL must start with http:// or https://"),
    };
    let port = to.port_u16().unwrap_or(if secure { 443 } else { 80 });
    // An address of version 6 stands in brackets.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((name, port)).await?;
    stream.set_nodelay(true)?;
    if !secure {
        return start(stream).await;
    }
    let connector = TlsConnector::from(Arc::new(tls(ca_file)?));
    let stream = connector.connect(ServerName::try_from(name.to_owned())?, stream).await?;
    start(stream).await
}

async fn start<S>(stream: S) -> anyhow::Result<SendRequest<Full<Bytes>>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It ends when the sender is dropped; the caller that waits for an answer learns of errors.
    tokio::spawn(connection);
    Ok(sender)
}

/// The authorities that this machine trusts, where systems keep them.
fn system_authorities() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let usual =
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
    named.into_iter().chain(usual.map(PathBuf::from)).find(|file| file.is_file())
}

fn tls(ca_file: Option<&Path>) -> anyhow::Result<rustls::ClientConfig> {
    let file = ca_file.map(Path::to_owned).or_else(system_authorities);
    let file = file.context("HTTPS needs --ca-file, the authority that signs the server's certificate")?;
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
