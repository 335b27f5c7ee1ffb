//! A second protocol, beside HTTP and on a port of its own: the listener treats both alike.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::http::{Handler, Http, Shared};
use super::protocol::{Connection, Protocol, Protocols, Serving, Verdict};
use super::pulse::Beat;
use super::{Peer, Port, Timeouts, run};
use crate::hosts::Hosts;
use crate::metrics::{Metrics, Speech};
use crate::tls::Tls;

/// Nothing that is waited for takes so long, on any machine.
const LONG: Duration = orrery_testkit::PATIENCE;
const SHORT: Duration = Duration::from_millis(300);

/// Answers each line that begins with `+ ` with the rest of it. `+ wait` takes a while and says so at once.
struct Lines;

impl Protocol for Lines {
    fn recognises(&self, first: &[u8]) -> Verdict {
        match first {
            [b'+'] => Verdict::NeedMore,
            [b'+', b' ', ..] => Verdict::Yes,
            _ => Verdict::No,
        }
    }

    fn serve(&self, connection: Connection) -> Serving<'_> {
        Box::pin(async move {
            let _ = echo(connection).await;
        })
    }
}

async fn echo(Connection { stream, pulse, mut stopping, .. }: Connection) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        tokio::select! {
            read = stream.read_line(&mut line) => if read? == 0 { return Ok(()) },
            () = &mut stopping => return Ok(()),
        }
        let beat = Beat::of(Arc::clone(&pulse));
        if line == "+ wait\n" {
            stream.write_all(b"later\n").await?;
            stream.flush().await?;
            tokio::time::sleep(SHORT).await;
        }
        stream.write_all(line.strip_prefix("+ ").unwrap_or("?\n").as_bytes()).await?;
        stream.flush().await?;
        drop(beat);
    }
}

#[derive(Clone)]
struct Answers;

impl Handler for Answers {
    fn answer_now(&self, _: &Request<Incoming>, _: Peer) -> Option<Response<Full<Bytes>>> {
        None
    }

    async fn handle(&self, _: Request<Incoming>, _: Peer) -> Response<Full<Bytes>> {
        Response::new(Full::from("hello"))
    }

    fn speech<B>(&self, _: &Request<B>) -> Speech {
        Speech::Http
    }

    fn wants_memory(&self) -> bool {
        false
    }

    fn timed_out(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
        response
    }
}

fn http() -> Http<Answers> {
    Http::new(Shared {
        handler: Answers,
        hosts: Arc::new(Hosts::new(std::iter::empty(), true)),
        proxies: crate::proxies::Proxies::default(),
        metrics: Arc::new(Metrics::new(Instant::now())),
        tracer: None,
        request_time_max: LONG,
        http2_window_bytes: 1 << 20,
    })
}

fn beside() -> Protocols {
    Protocols::one(Lines).and(http())
}

struct World {
    address: SocketAddr,
    tls: Arc<Tls>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

const PATIENT: Timeouts = Timeouts { tls: LONG, header: LONG, write: LONG, idle: LONG };

async fn start(protocols: Protocols, timeouts: Timeouts, max_connections: usize) -> World {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");
    let tls = Arc::new(Tls::new(None, &[]).expect("TLS"));
    let metrics = Arc::new(Metrics::new(Instant::now()));
    let port = Port { protocols, tls: Arc::clone(&tls), metrics, timeouts, max_connections };
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(run(
        socket,
        port,
        async {
            let _ = stopped.await;
        },
        tokio::time::sleep(LONG),
    ));
    World { address, tls, stop, running }
}

trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

impl World {
    async fn plain(&self) -> Box<dyn Wire> {
        Box::new(TcpStream::connect(self.address).await.expect("connected"))
    }

    async fn secure(&self) -> Box<dyn Wire> {
        Box::new(self.tls().await)
    }

    async fn tls(&self) -> TlsStream<TcpStream> {
        let pem = self.tls.authority_pem().await.expect("an authority");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")).expect("added");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.expect("connected");
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("TLS")
    }

    async fn open(&self, is_secure: bool) -> Box<dyn Wire> {
        if is_secure { self.secure().await } else { self.plain().await }
    }

    async fn both(&self) -> [Box<dyn Wire>; 2] {
        [self.plain().await, self.secure().await]
    }
}

/// Sends bytes one by one, so that each is judged by itself, and reads as many as are wanted.
async fn says(stream: &mut Box<dyn Wire>, bytes: &str, wanted: &str) {
    for byte in bytes.as_bytes() {
        stream.write_all(&[*byte]).await.expect("sent");
        stream.flush().await.expect("sent");
        tokio::task::yield_now().await;
    }
    hears(stream, wanted).await;
}

/// Sends bytes at once, and reads as many as are wanted.
async fn asks(stream: &mut Box<dyn Wire>, bytes: &str, wanted: &str) {
    stream.write_all(bytes.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    hears(stream, wanted).await;
}

async fn hears(stream: &mut Box<dyn Wire>, wanted: &str) {
    let mut answer = vec![0; wanted.len()];
    timeout(LONG, stream.read_exact(&mut answer)).await.expect("in time").expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), wanted);
}

async fn is_closed(stream: &mut Box<dyn Wire>) -> bool {
    let mut rest = Vec::new();
    // A reset is an end as well.
    timeout(LONG, stream.read_to_end(&mut rest)).await.is_ok() && rest.is_empty()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn two_protocols_share_a_port_and_lose_no_byte() {
    let world = start(beside(), PATIENT, 10).await;
    for mut stream in world.both().await {
        says(&mut stream, "+ one\n+ two\n", "one\ntwo\n").await;
    }
    for mut stream in world.both().await {
        says(&mut stream, GET, "HTTP/1.1 200 OK\r\n").await;
    }
    for mut stream in world.both().await {
        // The check of line ends belongs to HTTP, and sees the bytes that were looked at before it.
        asks(&mut stream, "GET / HTTP/1.1\nHost: localhost\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n").await;
    }
    for mut stream in world.both().await {
        stream.write_all(b"neither").await.expect("sent");
        assert!(is_closed(&mut stream).await);
    }
}

#[tokio::test]
async fn a_protocol_has_a_port_of_its_own() {
    let world = start(Protocols::one(Lines), PATIENT, 10).await;
    for mut stream in world.both().await {
        // Nobody else could be meant, so nobody is asked.
        says(&mut stream, "x\n+ y\n", "?\ny\n").await;
    }
}

#[tokio::test]
async fn slow_first_bytes_and_unfinished_requests_are_cut_off() {
    let world = start(beside(), Timeouts { header: SHORT, ..PATIENT }, 10).await;
    for beginning in ["+", "G", "+ begun"] {
        for is_secure in [false, true] {
            let started = Instant::now();
            let mut stream = world.open(is_secure).await;
            stream.write_all(beginning.as_bytes()).await.expect("sent");
            stream.flush().await.expect("sent");
            assert!(is_closed(&mut stream).await, "{beginning:?}");
            assert!(started.elapsed() >= SHORT, "{beginning:?} was not given its time");
        }
    }
    assert!(is_closed(&mut world.secure().await).await, "nothing is said inside TLS");
}

/// The record could be the beginning of a request; a peer that says nothing may stay for longer.
#[tokio::test]
async fn an_unfinished_record_of_tls_is_cut_off_as_an_unfinished_request_is() {
    let world =
        start(Protocols::one(Lines), Timeouts { header: SHORT, idle: LONG * 100, ..PATIENT }, 10).await;
    let mut stream = world.tls().await;
    let (socket, _) = stream.get_mut();
    socket.write_all(&[0x17, 3, 3, 0, 100, 1]).await.expect("sent");
    let closed = timeout(LONG, socket.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "it waits for the rest of the record");
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_that_works_is_not() {
    let world = start(beside(), Timeouts { idle: SHORT / 3, ..PATIENT }, 10).await;
    for mut stream in world.both().await {
        asks(&mut stream, "+ wait\n", "later\nwait\n").await;
        assert!(is_closed(&mut stream).await);
    }
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_cut_off() {
    let world = start(beside(), Timeouts { write: SHORT, ..PATIENT }, 10).await;
    for mut stream in world.both().await {
        let line = format!("+ {}\n", "x".repeat(64 * 1024));
        let sending = async { while stream.write_all(line.as_bytes()).await.is_ok() {} };
        timeout(LONG, sending).await.expect("the server ends it");
    }
}

#[tokio::test]
async fn the_limit_of_connections_holds_for_all_protocols() {
    let world = start(beside(), PATIENT, 2).await;
    let mut lines = world.plain().await;
    let mut requests = world.plain().await;
    says(&mut lines, "+ in\n", "in\n").await;
    says(&mut requests, GET, "HTTP/1.1 200 OK\r\n").await;
    assert!(is_closed(&mut world.plain().await).await);
    says(&mut lines, "+ still\n", "still\n").await;
}

#[tokio::test]
async fn a_stop_ends_idle_connections_and_waits_for_requests() {
    let world = start(beside(), PATIENT, 10).await;
    let [mut idle, mut busy] = world.both().await;
    let mut requests = world.plain().await;
    says(&mut idle, "+ in\n", "in\n").await;
    says(&mut busy, "+ in\n", "in\n").await;
    says(&mut requests, GET, "HTTP/1.1 200 OK\r\n").await;
    asks(&mut busy, "+ wait\n", "later\n").await;
    world.stop.send(()).expect("it runs");
    assert!(is_closed(&mut idle).await);
    hears(&mut busy, "wait\n").await;
    timeout(LONG, world.running).await.expect("in time").expect("no panic");
}
