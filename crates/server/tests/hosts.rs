//! Under which names the server answers: while anybody could sign a request, a page of a foreign name must read nothing.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use orrery_testkit::eventually;
use support::Server;
use support::http::{Answer, exchange};

mod support;

const OWN_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const EMULATOR_KEY: &str = orrery_testkit::EMULATOR_KEY;

/// The routes of every part of the server: probes, pages, the management API, the API itself.
const ROUTES: [&str; 10] = [
    "/",
    "/ready",
    "/healthz",
    "/metrics",
    "/_explorer",
    "/_explorer/emulator.pem",
    "/_orrery/containers",
    "/dbs",
    "/dbs/d/colls/c/docs/i",
    "/nowhere",
];

fn ask(server: &Server, target: &str, host: &str) -> Answer {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    exchange(&mut server.connect(), &request).expect("an answer")
}

#[test]
fn a_foreign_name_opens_no_route_while_the_emulator_key_is_in_use() {
    let server = Server::start(&["--in-memory"]);
    for route in ROUTES {
        for host in ["rebound.example", "rebound.example:8081", "localhost.rebound.example", "user@localhost"]
        {
            let answer = ask(&server, route, host);
            assert_eq!(answer.status, 421, "{route} {host}: {}", answer.text());
        }
        for host in
            ["localhost", "127.0.0.1:8081", "[::1]:8081", "a.localhost", "orrery", "host.docker.internal"]
        {
            assert_ne!(ask(&server, route, host).status, 421, "{route} {host}");
        }
        let absolute = ask(&server, &format!("http://rebound.example{route}"), "localhost");
        assert_eq!(absolute.status, 421, "{route}");
    }
    let said = ask(&server, "/", "rebound.example:8081");
    for option in ["--tls-name rebound.example\n", "--advertised-host rebound.example\n", "--key-file"] {
        assert!(said.text().contains(option), "{}", said.text());
    }
    assert_eq!(said.header("content-type"), Some("text/plain; charset=utf-8"));
    eventually("the log says so", || server.log().contains("rebound.example"));
}

#[test]
fn a_connection_that_was_accepted_is_not_trusted_with_another_name() {
    let server = Server::start(&["--in-memory"]);
    let mut stream = server.connect();
    let request = |host: &str| format!("GET /ready HTTP/1.1\r\nhost: {host}\r\n\r\n");
    assert_eq!(exchange(&mut stream, &request("localhost")).expect("an answer").status, 200);
    assert_eq!(exchange(&mut stream, &request("LOCALHOST")).expect("an answer").status, 200);
    assert_eq!(exchange(&mut stream, &request("rebound.example")).expect("an answer").status, 421);
}

#[test]
fn names_of_the_operator_are_served() {
    let server = Server::start(&[
        "--in-memory",
        "--advertised-host",
        "db.example.com",
        "--tls-name",
        "Other.example.com",
        "--tls-name",
        "*.wild.example.com",
    ]);
    for (host, status) in [
        ("db.example.com:8081", 200),
        ("other.example.com", 200),
        ("a.wild.example.com", 200),
        ("third.example.com", 421),
    ] {
        assert_eq!(ask(&server, "/ready", host).status, status, "{host}");
    }
}

#[test]
fn with_keys_of_its_own_a_server_answers_to_any_name_and_rotation_counts_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let write = |text: String| std::fs::write(&file, text).expect("the file can be written");
    let key_file = file.to_str().expect("text").to_owned();
    write(format!("primary = {OWN_KEY}\n"));
    let server = Server::start(&["--in-memory", "--key-file", &key_file]);
    for route in ROUTES {
        assert_ne!(ask(&server, route, "rebound.example").status, 421, "{route}");
    }
    write(format!("primary = {OWN_KEY}\nsecondary-readonly = {EMULATOR_KEY}\n"));
    eventually("the guard is back", || ask(&server, "/ready", "rebound.example").status == 421);
    write(format!("primary = {OWN_KEY}\n# and no other\n"));
    eventually("the guard is gone", || ask(&server, "/ready", "rebound.example").status == 200);
    drop(server);
    let open = Server::start(&["--in-memory", "--key-file", &key_file, "--entra-development"]);
    assert_eq!(ask(&open, "/ready", "rebound.example").status, 421, "anybody can make a token");
}

/// One GET over HTTP/2 without TLS.
async fn ask_http2(server: &Server, authority: &str, host: Option<&str>) -> Response<Bytes> {
    let stream = tokio::net::TcpStream::connect(server.address()).await.expect("the server accepts");
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("HTTP/2");
    tokio::spawn(connection);
    let mut request = Request::get(format!("http://{authority}/ready"));
    if let Some(host) = host {
        request = request.header("host", host);
    }
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    let (parts, body) = client.send_request(request).await.expect("an answer").into_parts();
    Response::from_parts(parts, body.collect().await.expect("a body").to_bytes())
}

#[test]
fn the_authority_of_http2_is_checked_as_well() {
    let server = Server::start(&["--in-memory"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        assert_eq!(ask_http2(&server, "localhost:8081", None).await.status(), StatusCode::OK);
        let refused = ask_http2(&server, "rebound.example:8081", None).await;
        assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST);
        assert!(String::from_utf8_lossy(refused.body()).contains("--tls-name"), "{refused:?}");
        let disguised = ask_http2(&server, "localhost:8081", Some("rebound.example")).await;
        assert_eq!(disguised.status(), StatusCode::MISDIRECTED_REQUEST);
    });
}
