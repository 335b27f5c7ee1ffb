//! HTTPS without asking anybody for a certificate.
//!
//! The server is its own certificate authority. The authority is made once per data directory and
//! kept, so a developer who trusts it (it is offered at `/_explorer/emulator.pem`) trusts the server
//! for good; the leaf certificate is cheap and replaced whenever its names or its age ask for it.
//! Nothing here happens before the listener is up: the first TLS connection, the first download of
//! the authority or the background task after start-up, whichever comes first, makes or loads the
//! files, and everyone else waits for that one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::OnceCell;
use tokio_rustls::TlsAcceptor;

use crate::limits;

mod authority;
mod folder;

use authority::{Authority, Leaf};

/// The names every certificate carries: how clients on this machine and in containers on it say "here".
const BUILT_IN_NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", "host.docker.internal"];

/// The server's certificates, made or loaded when first asked for.
pub struct Tls {
    folder: Option<PathBuf>,
    names: Vec<String>,
    ready: OnceCell<Ready>,
}

struct Ready {
    acceptor: TlsAcceptor,
    authority_pem: String,
}

impl Tls {
    /// Certificates kept in `folder`, or only in memory when there is none.
    pub fn new(folder: Option<PathBuf>, extra_names: &[String]) -> anyhow::Result<Tls> {
        anyhow::ensure!(
            extra_names.len() <= limits::MAX_TLS_NAMES,
            "at most {} --tls-name options are allowed",
            limits::MAX_TLS_NAMES
        );
        Ok(Tls { folder, names: certificate_names(extra_names)?, ready: OnceCell::new() })
    }

    pub async fn acceptor(&self) -> anyhow::Result<&TlsAcceptor> {
        Ok(&self.ready().await?.acceptor)
    }

    /// The authority's certificate, for clients to trust.
    pub async fn authority_pem(&self) -> anyhow::Result<&str> {
        Ok(&self.ready().await?.authority_pem)
    }

    async fn ready(&self) -> anyhow::Result<&Ready> {
        let make = || async {
            let (folder, names) = (self.folder.clone(), self.names.clone());
            tokio::task::spawn_blocking(move || make_ready(folder, names)).await?
        };
        self.ready.get_or_try_init(make).await
    }
}

fn certificate_names(extra: &[String]) -> anyhow::Result<Vec<String>> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut names: Vec<String> = BUILT_IN_NAMES.iter().map(|name| (*name).to_owned()).collect();
    for name in std::iter::once(&host).chain(extra) {
        // A host name that no certificate can carry must not keep the server from starting.
        let fits = authority::is_certificate_name(name);
        anyhow::ensure!(fits || name == &host, "`{name}` cannot stand in a certificate");
        if fits && !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

fn make_ready(folder: Option<PathBuf>, names: Vec<String>) -> anyhow::Result<Ready> {
    let (authority, leaf) = match folder {
        Some(folder) => folder::load_or_make(&folder, names)
            .with_context(|| format!("certificates in {}", folder.display()))?,
        None => {
            let authority = Authority::make()?;
            let leaf = authority.issue(names)?;
            (authority, leaf)
        }
    };
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&authority, &leaf)?));
    Ok(Ready { acceptor, authority_pem: authority.certificate_pem().to_owned() })
}

fn server_config(authority: &Authority, leaf: &Leaf) -> anyhow::Result<ServerConfig> {
    let chain = vec![
        CertificateDer::from_pem_slice(leaf.certificate_pem.as_bytes())?,
        CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes())?,
    ];
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes())?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = ring::Ticketer::new()?;
    Ok(config)
}
