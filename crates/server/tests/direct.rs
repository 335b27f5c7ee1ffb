//! Direct mode at a real server: the bytes of RNTBD inside TLS, beside HTTP or on a port of its own.

use std::io::Write;
use std::net::TcpStream;

use orrery_testkit::{Client, EMULATOR_KEY, Signer};
use serde_json::Value as Json;
use support::Server;
use support::direct::{CREATE, Frame, Place, READ, authority, greeted, hear, hello, open};
use support::http::{Answer, exchange, get, get_tls, is_closed};

mod support;

/// How a client asks where the catalog is.
const MASTER: &str = "//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd";

/// Opens a connection in direct mode and asks something there.
fn speak(server: &Server, stream: TcpStream) -> std::io::Result<u32> {
    let authority = get(server, "/_explorer/emulator.pem").body;
    let mut stream = open(stream, &authority)?;
    stream.write_all(&hello())?;
    stream.flush()?;
    assert_eq!(hear(&mut stream)?.status, 200);
    // The read of an item that says neither who asks nor where.
    stream.write_all(&Frame::new(3, READ).numbered(7))?;
    stream.flush()?;
    Ok(hear(&mut stream)?.status)
}

#[test]
fn direct_mode_shares_the_port_with_https() {
    let server = Server::start(&[]);
    // Who asks for nothing that can be named is told so.
    assert_eq!(speak(&server, server.connect()).expect("an answer"), 404);
    let authority = get(&server, "/_explorer/emulator.pem").body;
    assert_eq!(get_tls(&server, "localhost", &authority, "/healthz").expect("HTTPS").status, 200);
    let counted = get(&server, "/metrics").text();
    assert!(counted.contains("orrery_requests_total{protocol=\"direct\",class=\"4xx\"} 1"), "{counted}");
    let mut plain = server.connect();
    plain.write_all(&hello()).expect("sent");
    assert!(is_closed(&mut plain), "direct mode needs TLS");
}

/// Where the catalog is, as a client is told that dials this port over HTTPS.
fn told_on(server: &Server, port: u16) -> Answer {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let mut stream = open(stream, &authority(server)).expect("TLS");
    let signer = Signer::new(EMULATOR_KEY);
    let request = format!(
        "GET {MASTER} HTTP/1.1\r\nhost: localhost:{port}\r\nauthorization: {}\r\nx-ms-date: {}\r\n\r\n",
        signer.authorization("GET", "/dbs"),
        signer.date()
    );
    exchange(&mut stream, &request).expect("an answer")
}

/// The ports of the replicas that a client is told of.
fn ports_told_on(server: &Server, port: u16) -> Vec<String> {
    let told = told_on(server, port);
    assert_eq!(told.status, 200, "{}", told.text());
    let told: Json = serde_json::from_slice(&told.body).expect("JSON");
    let replicas = told["Addresss"].as_array().expect("a list").iter();
    let port = |uri: &str| uri.strip_prefix("rntbd://localhost:")?.split('/').next().map(str::to_owned);
    replicas.map(|replica| port(replica["physcialUri"].as_str().expect("text")).expect("a port")).collect()
}

fn free_port() -> u16 {
    let bound = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    bound.expect("a port").port()
}

#[test]
fn older_clients_of_tables_find_direct_mode_on_their_port() {
    let port = free_port();
    let server = Server::start(&["--table-port", &port.to_string()]);
    let table = || TcpStream::connect(("127.0.0.1", port)).expect("connected");
    assert_eq!(speak(&server, table()).expect("an answer"), 404);
    assert_eq!(ports_told_on(&server, port), [port.to_string(), port.to_string()]);
    let own = server.port().to_string();
    assert_eq!(ports_told_on(&server, server.port()), [own.clone(), own]);
    let none = Server::start(&["--table-port", &free_port().to_string(), "--direct-port", "none"]);
    assert!(speak(&none, none.connect()).is_err());
}

#[test]
fn direct_mode_can_have_a_port_or_none() {
    let port = free_port();
    let mut own = Server::start(&["--direct-port", &port.to_string()]);
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    assert_eq!(speak(&own, stream).expect("an answer"), 404);
    assert!(speak(&own, own.connect()).is_err(), "the other port speaks HTTP alone");
    assert_eq!(ports_told_on(&own, own.port()), [port.to_string(), port.to_string()]);
    assert!(own.terminate().success());
    let none = Server::start(&["--direct-port", "none"]);
    assert!(speak(&none, none.connect()).is_err());
    let refused = told_on(&none, none.port());
    assert!(refused.status == 400 && refused.text().contains("--direct-port none"), "{}", refused.text());
}

/// A proxy that ends TLS passes HTTP alone: its clients are told so at once, and do not wait for a port that says nothing.
#[test]
fn direct_mode_is_refused_through_a_proxy_that_ends_tls() {
    let forwarded = |server: &Server, headers: &str| {
        let request = format!("GET {MASTER} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        exchange(&mut server.connect(), &request).expect("an answer")
    };
    let is_refused = |answer: &Answer, word: &str| {
        answer.status == 400 && answer.text().contains("choose gateway mode") && answer.text().contains(word)
    };
    let public = Server::start(&["--public-url", "https://localhost/"]);
    let answer = forwarded(&public, "");
    assert!(is_refused(&answer, "a proxy"), "{}", answer.text());
    // What passes bytes as they are is no obstacle.
    assert_eq!(told_on(&public, public.port()).status, 200);
    let trusting = Server::start(&["--trusted-proxy", "127.0.0.1"]);
    let answer = forwarded(&trusting, "x-forwarded-proto: https\r\n");
    assert!(is_refused(&answer, "a proxy"), "{}", answer.text());
    let answer = forwarded(&trusting, "");
    assert!(is_refused(&answer, "https endpoint"), "{}", answer.text());
    assert_eq!(told_on(&trusting, trusting.port()).status, 200);
}

#[test]
fn requests_and_their_units_are_counted_by_protocol() {
    let server = Server::start(&[]);
    let mut client = Client::new(server.port());
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    for (path, body) in [("/dbs", r#"{"id":"d"}"#), ("/dbs/d/colls", container)] {
        assert_eq!(client.send("POST", path, &[], body.as_bytes()).expect("an answer").status, 201);
    }
    let place = Place::of(&server, "/dbs/d/colls/c/docs");
    let mut direct = greeted(&server, &authority(&server)).expect("a connection");
    direct
        .write_all(&place.ask(CREATE, "post", None).body(r#"{"id":"a","pk":"k"}"#).numbered(1))
        .and_then(|()| direct.flush())
        .expect("sent");
    assert_eq!(hear(&mut direct).expect("an answer").status, 201);
    let counted = get(&server, "/metrics").text();
    assert!(counted.contains("orrery_requests_total{protocol=\"direct\",class=\"2xx\"} 1"), "{counted}");
    for protocol in ["http", "direct"] {
        let name = format!("orrery_request_units_total{{protocol=\"{protocol}\"}} ");
        let units = counted.lines().find_map(|line| line.strip_prefix(&name)?.parse::<f64>().ok());
        assert!(units.is_some_and(|units| units > 1.0), "{protocol}: {units:?}");
    }
    let overview = client.send("GET", "/_orrery/containers", &[], b"").expect("an answer").json();
    let of_direct =
        overview["protocols"].as_array().expect("a list").iter().find(|one| one["protocol"] == "direct");
    let of_direct = of_direct.expect("direct mode is among them");
    assert_eq!(of_direct["requests"], 1);
    assert!(of_direct["requestUnits"].as_f64().is_some_and(|units| units > 1.0), "{of_direct}");
}
