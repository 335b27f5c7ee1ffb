//! Behind a proxy, in a container, and under the eyes of an orchestrator.

use orrery_testkit::{Client, Server};
use serde_json::Value;

use crate::binary;

/// The endpoint that the account document names when a proxy passes a request on with these headers.
fn advertised(server: &Server, headers: &[(&str, &str)]) -> (u16, String) {
    let reply = Client::new(server.port()).send("GET", "/", headers, b"").expect("an answer");
    let document: Value = reply.json();
    let endpoint = document["writableLocations"][0]["databaseAccountEndpoint"].as_str().unwrap_or_default();
    (reply.status, endpoint.to_owned())
}

fn start(args: &[&str]) -> Server {
    Server::start(binary(), &[&["--in-memory"], args].concat())
}

#[test]
fn a_trusted_proxy_says_what_clients_dialled() {
    let forwarded = [("x-forwarded-proto", "https"), ("x-forwarded-host", "db.localhost")];
    let server = start(&["--trusted-proxy", "127.0.0.0/8,10.0.0.0/8"]);
    assert_eq!(advertised(&server, &forwarded), (200, "https://db.localhost/".to_owned()));
    let own = format!("http://127.0.0.1:{}/", server.port());
    assert_eq!(advertised(&server, &[]), (200, own));
    // A name that anybody could rent is refused as if it had been dialled, while the well-known key opens the account.
    assert_eq!(advertised(&server, &[("x-forwarded-host", "evil.example")]).0, 421);
    let named = start(&["--trusted-proxy", "127.0.0.1", "--tls-name", "db.example.com"]);
    let forwarded = [("x-forwarded-proto", "https"), ("x-forwarded-host", "db.example.com")];
    assert_eq!(advertised(&named, &forwarded), (200, "https://db.example.com/".to_owned()));
}

#[test]
fn nobody_else_can_say_it() {
    let forwarded = [("x-forwarded-proto", "https"), ("x-forwarded-host", "db.localhost")];
    for args in [&[][..], &["--trusted-proxy", "10.0.0.0/8"]] {
        let server = start(args);
        assert_eq!(advertised(&server, &forwarded), (200, format!("http://127.0.0.1:{}/", server.port())));
    }
}

#[test]
fn one_option_names_the_whole_public_address() {
    let server = start(&["--public-url", "https://db.example.com/"]);
    let elsewhere = [("x-forwarded-proto", "http"), ("x-forwarded-host", "other.localhost")];
    for headers in [&[][..], &elsewhere] {
        assert_eq!(advertised(&server, headers), (200, "https://db.example.com/".to_owned()));
    }
    let tables = Client::new(server.port()).send_raw("GET", "/ready", &[], b"").expect("an answer");
    assert_eq!(tables.status, 200);
    let wrong = crate::refusal(crate::bare(&["serve", "--public-url", "db.example.com"]));
    assert!(wrong.contains("expected a URL such as https://db.example.com/"), "{wrong}");
}

#[test]
fn the_well_known_key_opens_other_addresses_only_where_that_is_permitted() {
    let refused =
        crate::refusal(crate::bare(&["serve", "--bind", "0.0.0.0", "--nosql-port", "0", "--in-memory"]));
    assert!(refused.contains("--allow-emulator-key"), "{refused}");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let args = ["--in-memory", "--bind", "0.0.0.0", "--allow-emulator-key"];
    let server = Server::start_logged(binary(), &args, &log);
    assert_eq!(advertised(&server, &[]).0, 200);
    let log = std::fs::read_to_string(&log).expect("the log");
    assert!(log.contains("WARN") && log.contains("a client that reaches it has everything"), "{log}");
}

#[test]
fn probes_answer_under_all_their_names() {
    let server = start(&[]);
    let mut client = Client::new(server.port());
    for path in ["/alive", "/health", "/healthz", "/ready"] {
        let reply = client.send_raw("GET", path, &[], b"").expect("an answer");
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("text/plain; charset=utf-8")),
            "{path}"
        );
    }
}

#[test]
fn a_health_check_needs_no_other_program() {
    let desk = crate::Desk::new();
    assert_eq!(desk.run(&["ready"]), "ready\n");
    let crate::Desk { server, .. } = desk;
    let endpoint = format!("http://127.0.0.1:{}/", server.port());
    server.stop();
    let said = crate::refusal(crate::bare(&["ready", "--endpoint", &endpoint]));
    assert!(said.contains("cannot connect"), "{said}");
}
