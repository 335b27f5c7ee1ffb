//! What the port does: HTTP and HTTPS side by side, and no patience with peers that waste it.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use orrery_testkit::eventually;
use support::Server;
use support::http::{exchange, get, get_tls, is_closed, read_answer, request};

mod support;

/// Tight enough that a test sees a timeout, loose enough for a busy machine.
const SHORT: &str = "0.4";

#[test]
fn http_and_https_share_one_port() {
    let server = Server::start(&[]);
    assert_eq!(get(&server, "/ready").status, 200);
    let authority = get(&server, "/_explorer/emulator.pem");
    assert_eq!(authority.status, 200);
    for host in ["localhost", "127.0.0.1", "::1", "host.docker.internal"] {
        let answer = get_tls(&server, host, &authority.body, "/healthz").expect(host);
        assert_eq!((answer.status, answer.text()), (200, String::from("ok\n")), "{host}");
    }
    assert!(get_tls(&server, "elsewhere.test", &authority.body, "/healthz").is_err());
}

#[test]
fn more_names_can_be_asked_for_and_the_authority_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Server::start_on(folder.path(), &[]);
    let authority = get(&first, "/_explorer/emulator.pem").body;
    drop(first);
    let second = Server::start_on(folder.path(), &["--tls-name", "db.test", "--tls-name", "10.1.2.3"]);
    assert_eq!(get(&second, "/_explorer/emulator.pem").body, authority);
    for host in ["db.test", "10.1.2.3", "localhost"] {
        assert_eq!(get_tls(&second, host, &authority, "/ready").expect(host).status, 200);
    }
}

#[test]
fn certificates_are_kept_across_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str| std::fs::read(folder.path().join("tls").join(name)).expect(name);
    let files = ["ca.pem", "ca.key", "server.pem", "server.key"];
    let start = || {
        let server = Server::start_on(folder.path(), &[]);
        let authority = get(&server, "/_explorer/emulator.pem").body;
        get_tls(&server, "localhost", &authority, "/ready").expect("HTTPS works");
        files.map(read)
    };
    assert_eq!(start(), start());
}

#[test]
fn a_damaged_server_certificate_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = folder.path().join("tls");
    let first = Server::start_on(folder.path(), &[]);
    let authority = get(&first, "/_explorer/emulator.pem").body;
    get_tls(&first, "localhost", &authority, "/ready").expect("HTTPS works");
    drop(first);
    for name in ["server.pem", "server.key"] {
        let text = std::fs::read_to_string(tls.join(name)).expect("there");
        // Still base64, and still a certificate or a key to a reader of the outside only.
        let changed =
            if text.contains('M') { text.replacen('M', "N", 3) } else { text.replacen('A', "B", 3) };
        std::fs::write(tls.join(name), changed).expect("written");
        let server = Server::start_on(folder.path(), &[]);
        assert_eq!(get(&server, "/_explorer/emulator.pem").body, authority, "the authority stays");
        let answer = get_tls(&server, "localhost", &authority, "/ready").expect(name);
        assert_eq!(answer.status, 200, "{name}");
    }
    std::fs::write(tls.join("ca.key"), "nonsense").expect("written");
    let server = Server::start_on(folder.path(), &[]);
    assert_eq!(get(&server, "/_explorer/emulator.pem").status, 503);
    assert!(get_tls(&server, "localhost", &authority, "/ready").is_err());
    eventually("the log says what to do", || server.log().contains("remove both"));
    assert_eq!(get(&server, "/ready").status, 200, "HTTP goes on");
}

#[test]
fn a_server_in_memory_writes_no_certificates() {
    let server = Server::start(&["--in-memory"]);
    let authority = get(&server, "/_explorer/emulator.pem").body;
    assert_eq!(get_tls(&server, "localhost", &authority, "/ready").expect("HTTPS works").status, 200);
    assert!(!server.data_dir().exists());
}

#[test]
fn http2_is_spoken_without_tls_too() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    let empty_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("sent");
    stream.write_all(&empty_settings).expect("sent");
    let mut frame = [0u8; 9];
    stream.read_exact(&mut frame).expect("a frame");
    assert_eq!(frame[3], 4, "the server's first frame is SETTINGS");
}

#[test]
fn connections_are_kept_alive_and_pipelined() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    for _ in 0..3 {
        assert_eq!(exchange(&mut stream, &request("/ready")).expect("an answer").status, 200);
    }
    stream.write_all((request("/ready") + &request("/healthz")).as_bytes()).expect("sent");
    assert_eq!(read_answer(&mut stream).expect("first").text(), "ready\n");
    assert_eq!(read_answer(&mut stream).expect("second").text(), "ok\n");
}

#[test]
fn headers_that_never_end_are_cut_off() {
    let server = Server::start(&["--header-timeout-seconds", SHORT]);
    // The last two look like the start of HTTP/2 and must not be waited for any longer than others.
    for beginning in ["G", "GET /ready HTTP/1.1\r\nhost: local", "P", "PRI * HTTP/2.0\r\n"] {
        let started = Instant::now();
        let mut stream = server.connect();
        stream.write_all(beginning.as_bytes()).expect("sent");
        assert!(is_closed(&mut stream), "{beginning:?}");
        assert!(started.elapsed() > Duration::from_millis(300), "{beginning:?} was not given its time");
    }
    assert_eq!(get(&server, "/ready").status, 200);
}

#[test]
fn a_trickle_of_headers_does_not_buy_time() {
    let server = Server::start(&["--header-timeout-seconds", SHORT]);
    let mut stream = server.connect();
    stream.write_all(b"GET /ready HTTP/1.1\r\n").expect("sent");
    let started = Instant::now();
    while stream.write_all(b"a: b\r\n").is_ok() {
        assert!(started.elapsed() < Duration::from_secs(20), "still open");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_connection_that_says_nothing_is_cut_off() {
    let server = Server::start(&["--header-timeout-seconds", SHORT]);
    assert!(is_closed(&mut server.connect()));
}

#[test]
fn an_idle_connection_outlives_the_header_timeout_but_not_its_own() {
    let server = Server::start(&["--header-timeout-seconds", "1", "--idle-timeout-seconds", "15"]);
    let mut stream = server.connect();
    exchange(&mut stream, &request("/ready")).expect("an answer");
    std::thread::sleep(Duration::from_secs(3));
    exchange(&mut stream, &request("/ready")).expect("still open");
    assert!(is_closed(&mut stream));
}

#[test]
fn half_a_tls_handshake_is_cut_off() {
    let server = Server::start(&["--tls-timeout-seconds", SHORT]);
    let mut stream = server.connect();
    stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).expect("sent");
    assert!(is_closed(&mut stream));
    let mut nonsense = server.connect();
    nonsense.write_all(&[0x16; 64]).expect("sent");
    assert!(is_closed(&mut nonsense));
    eventually("failures are counted", || {
        get(&server, "/metrics").text().contains("orrery_tls_failures_total 2")
    });
}

#[test]
fn oversized_headers_are_refused() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    let huge = format!("GET /ready HTTP/1.1\r\nhost: localhost\r\nx-huge: {}\r\n\r\n", "x".repeat(200_000));
    // The server may answer and close before everything is sent.
    let _ = stream.write_all(huge.as_bytes());
    match read_answer(&mut stream) {
        Ok(answer) => assert_eq!(answer.status, 431),
        Err(_) => assert!(is_closed(&mut stream)),
    }
    let roomy = format!("GET /ready HTTP/1.1\r\nhost: localhost\r\nx-large: {}\r\n\r\n", "x".repeat(32_000));
    assert_eq!(exchange(&mut server.connect(), &roomy).expect("an answer").status, 200);
}

#[test]
fn connections_over_the_limit_are_closed_and_room_is_given_back() {
    let server = Server::start(&["--max-connections", "2"]);
    let mut kept = [server.connect(), server.connect()];
    for stream in &mut kept {
        exchange(stream, &request("/ready")).expect("within the limit");
    }
    assert!(is_closed(&mut server.connect()));
    drop(kept);
    eventually("room again", || {
        exchange(&mut server.connect(), &request("/ready")).is_ok_and(|answer| answer.status == 200)
    });
    eventually("the log says why", || server.log().contains("too many connections"));
}

/// What a proxy in front may read in another way than this server must not get through: one request could hide in another.
#[test]
fn requests_that_others_may_read_differently_are_refused() {
    let server = Server::start(&["--in-memory"]);
    for bytes in [
        "GET /ready HTTP/1.1\nHost: localhost\r\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: localhost\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: localhost\r\n\n",
        "GET /ready HTTP/1.1\nHost: localhost\n\n",
        "\nGET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: localhost\r\nX-A: b\nX-C: d\r\n\r\n",
        "POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\nX-A: b\r\n\r\nabc",
        "GET /ready HTTP/1.1\r\n\r\n",
        "GET http://localhost/ready HTTP/1.1\r\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: localhost\r\nHost: 127.0.0.1\r\n\r\n",
        "GET /ready HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    ] {
        let mut stream = server.connect();
        let answer = exchange(&mut stream, bytes).expect(bytes);
        assert_eq!(answer.status, 400, "{bytes:?}");
        assert!(is_closed(&mut stream), "{bytes:?}");
    }
    // A second request on a connection is held to the same.
    let mut stream = server.connect();
    assert_eq!(exchange(&mut stream, &request("/ready")).expect("an answer").status, 200);
    let bare = "GET /ready HTTP/1.1\nHost: localhost\r\n\r\n";
    assert_eq!(exchange(&mut stream, bare).expect("an answer").status, 400);
    assert!(is_closed(&mut stream));
}

#[test]
fn line_feeds_in_bodies_are_the_clients_own_business() {
    let server = Server::start(&["--in-memory"]);
    let mut stream = server.connect();
    let body = "{\n\n\"id\":\n\"x\"\n}\n";
    let chunked: String = body
        .as_bytes()
        .chunks(3)
        .map(|part| format!("{:x}\r\n{}\r\n", part.len(), String::from_utf8_lossy(part)))
        .collect();
    let length = body.len();
    for sent in [
        format!("POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!(
            "POST /dbs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}0\r\n\r\n"
        ),
    ] {
        // Nobody signed it; what matters is that it was read, and that the connection goes on.
        assert_eq!(exchange(&mut stream, &sent).expect("an answer").status, 401, "{sent:?}");
        assert_eq!(exchange(&mut stream, &request("/ready")).expect("an answer").status, 200, "{sent:?}");
    }
}

#[test]
fn nonsense_is_answered_or_closed_and_does_no_harm() {
    let server = Server::start(&[]);
    let cases: [&[u8]; 6] = [
        b"\r\n\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /ready HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /ready HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\ntransfer-encoding: x\r\n\r\n",
    ];
    for bytes in cases {
        let mut stream = server.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert!(is_closed(&mut stream), "{}", bytes.escape_ascii());
    }
    assert_eq!(get(&server, "/ready").status, 200);
}
