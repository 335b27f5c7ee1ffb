//! TLS to a server under measurement, whose own authority is trusted.

use std::sync::Arc;

use anyhow::{Result, ensure};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::site::Site;

/// How connections to one server are encrypted.
#[derive(Clone)]
pub struct Tls(TlsConnector);

impl Tls {
    pub fn to(site: &Site) -> Result<Tls> {
        let reply = site.client().send("GET", "/_explorer/emulator.pem", &[], b"")?;
        ensure!(reply.status == 200, "the server shows no certificate: {}", reply.status);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&reply.body)?)?;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }

    pub async fn open(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>> {
        Ok(self.0.connect(ServerName::try_from("localhost")?, stream).await?)
    }
}
