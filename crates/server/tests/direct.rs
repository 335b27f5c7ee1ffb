//! Direct mode at a real server: the bytes of RNTBD inside TLS, beside HTTP or on a port of its own.

use std::io::Write;
use std::net::TcpStream;

use orrery_testkit::Client;
use support::Server;
use support::direct::{CREATE, Frame, Place, READ, authority, greeted, hear, hello, open};
use support::http::{get, get_tls, is_closed};

mod support;

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
    assert!(own.terminate().success());
    let none = Server::start(&["--direct-port", "none"]);
    assert!(speak(&none, none.connect()).is_err());
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
}
