//! A small HTTP/1.1 client over any stream, and TLS for it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{SOCKET_PATIENCE, Server};

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One GET over plain HTTP on a connection of its own.
pub fn get(server: &Server, path: &str) -> Answer {
    exchange(&mut server.connect(), &request(path)).expect("an answer")
}

/// One GET over HTTPS, trusting the given authority only.
pub fn get_tls(server: &Server, host: &str, authority_pem: &[u8], path: &str) -> io::Result<Answer> {
    exchange(&mut tls(server.connect(), host, authority_pem)?, &request(path))
}

pub fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// Sends a request as it is and reads one answer, leaving the connection open.
pub fn exchange(stream: &mut (impl Read + Write), request: &str) -> io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    read_answer(stream)
}

/// Reads one answer with a content length. The reader must not hold back bytes of a next answer, so
/// the head is read byte by byte.
pub fn read_answer(stream: &mut impl Read) -> io::Result<Answer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0u8; 1];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut lines = BufReader::new(head.as_slice()).lines();
    let first = lines.next().ok_or_else(bad_answer)??;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(bad_answer)?;
    let mut headers = Vec::new();
    for line in lines {
        if let Some((name, value)) = line?.split_once(':') {
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    let length: u64 = answer.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    stream.take(length).read_to_end(&mut answer.body)?;
    Ok(answer)
}

/// Whether the peer has closed the connection, waiting for it with patience.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(SOCKET_PATIENCE)).expect("a timeout can be set");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
    }
}

/// Wraps a connection in TLS; the handshake happens with the first bytes sent.
pub fn tls(
    stream: TcpStream,
    host: &str,
    authority_pem: &[u8],
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority_pem).map_err(io::Error::other)?;
    roots.add(authority).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, stream))
}

fn bad_answer() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer")
}
