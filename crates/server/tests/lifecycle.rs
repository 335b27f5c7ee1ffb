//! How the server starts, refuses to start, and stops.

use std::path::Path;

use orrery_testkit::{Client, eventually};
use support::http::{exchange, get, request};
use support::{Server, command};

mod support;

#[test]
fn sigterm_and_sigint_stop_the_server_cleanly() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        let mut kept_alive = server.connect();
        exchange(&mut kept_alive, &request("/ready")).expect("an answer");
        server.signal(signal);
        assert!(server.wait().success(), "{signal}");
        assert!(std::net::TcpStream::connect(server.address()).is_err(), "the port is free");
    }
}

/// The JavaScript SDK takes an account of that name for an emulator without regions, and reads the account document
/// again before every request.
#[test]
fn the_account_is_not_called_localhost() {
    for (args, wanted) in
        [(&["--in-memory"][..], "orrery"), (&["--in-memory", "--account-name", "shop"], "shop")]
    {
        let server = Server::start(args);
        let account = Client::new(server.port()).send("GET", "/", &[], b"").expect("an answer").json();
        assert_eq!(account["id"], wanted);
        assert_eq!(account["readableLocations"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_server_is_ready_soon_and_small() {
    let server = Server::start(&[]);
    assert_eq!(get(&server, "/ready").status, 200);
    let metrics = get(&server, "/metrics").text();
    let resident = metrics.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let bytes: u64 = resident.expect("the metric is there").parse().expect("a number");
    assert!(bytes < 60 << 20, "{bytes} bytes");
    // The line comes after the one that says ready, and another thread reads it.
    let field = || server.log().split("ready_after_ms=").nth(1).map(str::to_owned);
    eventually("the log says when", || field().is_some_and(|text| text.contains('\n')));
    let number: String = field().expect("seen").chars().take_while(char::is_ascii_digit).collect();
    // It is far less; but each of its writes to the disk may have to wait for those of others.
    assert!(number.parse::<u64>().expect("a number") < 30_000, "{number} ms");
}

#[test]
fn a_second_server_on_the_same_data_is_refused_and_the_first_goes_on() {
    let server = Server::start(&[]);
    let data = server.data_dir();
    let data = data.to_str().expect("a text path");
    let (status, said) = Server::start_refused(&["--data-dir", data, "--nosql-port", "0"]);
    assert!(!status.success());
    assert!(said.contains(data) && said.contains("in use by another process"), "{said}");
    assert_eq!(get(&server, "/ready").status, 200);
}

#[test]
fn the_gateway_answers_what_is_not_a_page_of_the_server() {
    let server = Server::start(&["--in-memory"]);
    for path in ["/", "/dbs", "/readying", "/_explorers"] {
        let answer = get(&server, path);
        assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
    }
}

#[test]
fn verify_checks_a_data_directory_that_nobody_uses() {
    let mut server = Server::start(&[]);
    let data = server.data_dir();
    let verify = |path: &Path| {
        let output = command().args(["verify", "--data-dir"]).arg(path).output().expect("the binary runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (verified, said) = verify(&data);
    assert!(!verified && said.contains("in use"), "{said}");
    server.terminate();
    let (verified, said) = verify(&data);
    assert!(verified, "{said}");
    assert!(!verify(&data.join("nothing")).0);
}

#[test]
fn the_port_of_another_server_is_refused_by_name() {
    let server = Server::start(&[]);
    let port = server.port().to_string();
    let (status, said) = Server::start_refused(&["--in-memory", "--nosql-port", &port]);
    assert!(!status.success());
    assert!(said.contains(&port) && said.contains("in use") && said.contains("--nosql-port"), "{said}");
}

#[test]
fn off_loopback_the_emulator_key_is_refused() {
    let (status, said) = Server::start_refused(&["--in-memory", "--bind", "0.0.0.0", "--nosql-port", "0"]);
    assert!(!status.success());
    assert!(said.contains("--key-file") && said.contains("primary ="), "{said}");

    // Writing the emulator key into a file does not make it secret.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    let known = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    std::fs::write(&file, format!("primary = \"{known}\"\n")).expect("written");
    let path = file.to_str().expect("a text path");
    let (status, _) =
        Server::start_refused(&["--in-memory", "--bind", "0.0.0.0", "--nosql-port", "0", "--key-file", path]);
    assert!(!status.success());
}

#[test]
fn keys_of_ones_own_open_the_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    std::fs::write(&file, "primary = AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").expect("written");
    let server = Server::start(&["--bind", "0.0.0.0", "--key-file", file.to_str().expect("a text path")]);
    assert_eq!(get(&server, "/ready").status, 200);
}

#[test]
fn relaxed_durability_is_said_in_the_log() {
    let mut server = Server::start(&["--durability", "relaxed"]);
    server.terminate();
    assert!(server.log().contains("WARN") && server.log().contains("durability is relaxed"));
}

#[test]
fn logs_can_be_json() {
    let mut server = Server::start(&["--log-format", "json"]);
    server.terminate();
    for line in server.log().lines() {
        assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
    }
}

#[test]
fn flags_beat_variables_and_variables_beat_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("orrery.toml");
    let text = "in-memory = true\nnosql-port = 0\nlog-format = \"json\"\nbind = \"10.255.255.1\"\n";
    std::fs::write(&file, text).expect("written");
    // The file's address and the variable's address belong to nobody here, so each would fail.
    let mut launch = command();
    launch
        .args(["--config", file.to_str().expect("a text path"), "--bind", "127.0.0.1"])
        .env("ORRERY_BIND", "10.255.255.2")
        .env("ORRERY_LOG_FORMAT", "text");
    let mut server = Server::start_as(launch);
    assert_eq!(get(&server, "/ready").status, 200);
    server.terminate();
    let log = server.log();
    assert!(log.contains("data=\"memory\"") && !log.starts_with('{'), "{log}");
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("orrery.toml");
    for (text, named) in [
        ("no-such-option = 1\n", "no-such-option"),
        ("data-dir = { a = 1 }\n", "data-dir"),
        ("nosql-port = 70000\n", "nosql-port"),
        ("config = \"other.toml\"\n", "config"),
        ("not toml", "TOML"),
    ] {
        std::fs::write(&file, text).expect("written");
        let (status, said) = Server::start_refused(&["--config", file.to_str().expect("a text path")]);
        assert!(!status.success() && said.contains(named), "{text}: {said}");
    }
}

#[test]
fn the_command_line_knows_its_subcommands() {
    for (arguments, expected) in [
        (vec!["version"], concat!("orrery ", env!("CARGO_PKG_VERSION"))),
        (vec!["--version"], concat!("orrery ", env!("CARGO_PKG_VERSION"))),
        (vec!["--help"], "serve"),
        (vec!["serve", "--help"], "ORRERY_DATA_DIR"),
    ] {
        let output = command().args(&arguments).output().expect("the binary runs");
        assert!(output.status.success(), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
