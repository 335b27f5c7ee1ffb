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
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::manage;

pub mod account;
mod endpoint;
mod poster;
mod refusal;
mod target;

pub use endpoint::Endpoint;
pub use poster::{Poster, Unwilling};
pub use refusal::{Fault, Refusal};
pub use target::{ContainerName, Target};

/// How long a server may take to be reached, and to answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The version of the protocol that is spoken.
const VERSION: &str = "2020-07-15";

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

    pub fn name(&self) -> String {
        format!("{}/{}", self.database, self.container)
    }

    /// The server does not have it.
    pub fn is_missing(&self) -> anyhow::Error {
        let Place { database, container, endpoint } = self;
        anyhow::anyhow!(
            "there is no container {database}/{container} at {}; `orrery create container` makes one",
            endpoint.endpoint
        )
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

    /// The same with the whole path and the answer as it comes.
    pub async fn ask(
        &mut self,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let link = path.split('?').next().unwrap_or_default();
        let headers = [("content-type", "application/json".to_owned())];
        let ask = Ask { method, path, kind: manage::RESOURCE_TYPE, link, headers: &headers, body: &body };
        let reply = self.send(&ask, ANSWER_TIME_MAX).await?;
        Ok((reply.status, reply.body))
    }

    /// Sends a request of the protocol once, and returns whatever the server answers within this time.
    pub async fn send(&mut self, ask: &Ask<'_>, time_max: Duration) -> anyhow::Result<Reply> {
        let answer = tokio::time::timeout(time_max, self.exchange(ask)).await;
        let answer = answer.context("the server does not answer").and_then(|answer| answer);
        if answer.is_err() {
            self.connection = None;
        }
        answer
    }

    async fn exchange(&mut self, ask: &Ask<'_>) -> anyhow::Result<Reply> {
        let date = date();
        let authorization = orrery_nosql::sign_beside(&self.to.key, ask.method, ask.kind, ask.link, &date)
            .context("the key is not one of an account")?;
        let host = self.to.endpoint.authority().context("the endpoint names no host")?.as_str();
        let mut request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(HOST, host)
            .header("x-ms-date", date)
            .header("x-ms-version", VERSION)
            .header(AUTHORIZATION, authorization);
        for (name, value) in ask.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(ask.body.clone()))?;
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => connect(&self.to.endpoint, self.to.ca_file.as_deref()).await?,
        };
        connection.ready().await?;
        let (parts, body) = connection.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?.to_bytes();
        self.connection = Some(connection);
        Ok(Reply { status: parts.status, headers: parts.headers, body })
    }
}

/// A request of the protocol.
pub struct Ask<'a> {
    pub method: &'a Method,
    /// Encoded, as it is sent.
    pub path: &'a str,
    /// What is signed: the type of the resource, and its link.
    pub kind: &'a str,
    pub link: &'a str,
    pub headers: &'a [(&'static str, String)],
    pub body: &'a Bytes,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, if it is JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What went wrong, for people.
    pub fn refusal(&self) -> anyhow::Error {
        Refusal::of(self.status, &self.json()).into()
    }
}

/// Runs what talks to a server, on this thread.
pub fn on_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// A name as a path has it.
pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// The path of a container below the prefix of the management API.
pub fn container_path(database: &str, container: &str) -> String {
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
    let stream = connector.connect(ServerName::try_from(name.to_owned())?, stream).await;
    let stream = stream.map_err(|error| explain(error, to))?;
    start(stream).await
}

/// Says what to do about a certificate that nobody here trusts.
fn explain(error: std::io::Error, to: &Uri) -> anyhow::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let is_unknown = matches!(
        inner,
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::UnknownIssuer | rustls::CertificateError::BadSignature
        ))
    );
    if !is_unknown {
        return error.into();
    }
    let place = to.authority().map(ToString::to_string).unwrap_or_default();
    anyhow::anyhow!(
        "the authority that signed its certificate is not known here; name its file with --ca-file. Orrery shows its own: \
         curl -so emulator.pem http://{place}/_explorer/emulator.pem"
    )
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
