//! HTTPS without asking anybody for a certificate.
//!
//! The server is its own certificate authority. The authority is made once per data directory and
//! kept, so a developer who trusts it (it is offered at `/_explorer/emulator.pem`) trusts the server
//! for good, and nobody else: it may speak for private names and those of the operator only; the leaf certificate is cheap and replaced whenever its names or its age ask for it,
//! also while the server runs.
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
use time::OffsetDateTime;
use tokio::sync::{OnceCell, RwLock};
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
    ready: OnceCell<RwLock<Arc<Ready>>>,
}

struct Ready {
    acceptor: TlsAcceptor,
    authority: Authority,
    leaf: Leaf,
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

    pub async fn acceptor(&self) -> anyhow::Result<TlsAcceptor> {
        Ok(self.ready().await?.acceptor.clone())
    }

    /// The authority's certificate, for clients to trust.
    pub async fn authority_pem(&self) -> anyhow::Result<String> {
        Ok(self.ready().await?.authority.certificate_pem().to_owned())
    }

    /// Sees to it that there is a leaf certificate that serves for a while: makes the first one, or another one when
    /// the present one comes to its end. Connections that are open keep the one that they began with.
    pub async fn renew(&self, now: OffsetDateTime) -> anyhow::Result<()> {
        let ready = self.ready_at(now).await?;
        let old = Arc::clone(&*ready.read().await);
        if old.leaf.serves(&self.names, now) {
            return Ok(());
        }
        tracing::info!("renewing the server certificate");
        let (folder, names) = (self.folder.clone(), self.names.clone());
        let renewed = tokio::task::spawn_blocking(move || renewed(&old, folder, names, now)).await??;
        *ready.write().await = Arc::new(renewed);
        Ok(())
    }

    async fn ready(&self) -> anyhow::Result<Arc<Ready>> {
        let ready = self.ready_at(OffsetDateTime::now_utc()).await?;
        Ok(Arc::clone(&*ready.read().await))
    }

    async fn ready_at(&self, now: OffsetDateTime) -> anyhow::Result<&RwLock<Arc<Ready>>> {
        let make = || async {
            let (folder, names) = (self.folder.clone(), self.names.clone());
            let ready = tokio::task::spawn_blocking(move || make_ready(folder, names, now)).await??;
            anyhow::Ok(RwLock::new(Arc::new(ready)))
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

fn make_ready(folder: Option<PathBuf>, names: Vec<String>, now: OffsetDateTime) -> anyhow::Result<Ready> {
    let (authority, leaf) = match folder {
        Some(folder) => folder::load_or_make(&folder, names, now)
            .with_context(|| format!("certificates in {}", folder.display()))?,
        None => {
            let authority = Authority::make(&names, now)?;
            let leaf = authority.issue(names, now)?;
            (authority, leaf)
        }
    };
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&authority, &leaf)?));
    Ok(Ready { acceptor, authority, leaf })
}

/// The same authority with a new leaf.
fn renewed(
    old: &Ready,
    folder: Option<PathBuf>,
    names: Vec<String>,
    now: OffsetDateTime,
) -> anyhow::Result<Ready> {
    let authority = Authority::load(&old.authority.key_pem(), old.authority.certificate_pem().to_owned())?;
    let leaf = authority.issue(names, now)?;
    if let Some(folder) = folder {
        folder::keep_leaf(&folder, &leaf);
    }
    let acceptor = TlsAcceptor::from(Arc::new(server_config(&authority, &leaf)?));
    Ok(Ready { acceptor, authority, leaf })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_running_server_renews_its_leaf_and_keeps_its_authority() {
        let folder = tempfile::tempdir().expect("a folder");
        for folder in [None, Some(folder.path().join("tls"))] {
            let tls = Tls::new(folder.clone(), &[]).expect("names");
            let start = OffsetDateTime::now_utc();
            tls.renew(start).await.expect("made");
            let (first, authority) =
                (tls.ready().await.expect("ready"), tls.authority_pem().await.expect("ready"));

            let early = limits::LEAF_LIFETIME_DAYS - limits::LEAF_RENEWAL_MARGIN_DAYS - 1;
            tls.renew(start + time::Duration::days(early)).await.expect("nothing to do");
            assert!(Arc::ptr_eq(&first, &tls.ready().await.expect("ready")), "it serves on");

            tls.renew(start + time::Duration::days(early + 2)).await.expect("renewed");
            let second = tls.ready().await.expect("ready");
            assert_ne!(first.leaf.certificate_pem, second.leaf.certificate_pem);
            assert!(second.leaf.expires_unix > first.leaf.expires_unix);
            assert_eq!(authority, tls.authority_pem().await.expect("ready"));
            if let Some(folder) = folder {
                let kept = std::fs::read_to_string(folder.join("server.pem")).expect("there is a leaf");
                assert_eq!(kept, second.leaf.certificate_pem, "the next start finds the new one");
            }
        }
    }
}
