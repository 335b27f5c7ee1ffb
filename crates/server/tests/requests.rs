//! What becomes of requests whose client is slow, or whose server is stopping.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use orrery_testkit::{EMULATOR_KEY, Signer, eventually};
use support::Server;
use support::http::{exchange, get, read_answer, request};

mod support;

const BODY: &str = r#"{"id":"slow"}"#;

/// Sends the head of a signed request that creates a database, and waits until the server asks for the
/// body: from then on the request is in progress.
fn create_database(stream: &mut TcpStream, body_bytes: usize) {
    let signer = Signer::new(EMULATOR_KEY);
    let head = format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2020-07-15\r\nx-ms-date: {}\r\n\
         authorization: {}\r\ncontent-type: application/json\r\ncontent-length: {body_bytes}\r\n\
         expect: 100-continue\r\n\r\n",
        signer.date(),
        signer.authorization("POST", "/dbs"),
    );
    stream.write_all(head.as_bytes()).expect("sent");
    assert_eq!(read_answer(stream).expect("an answer").status, 100);
}

#[test]
fn a_body_in_two_halves_is_one_body() {
    let server = Server::start(&["--in-memory"]);
    let mut stream = server.connect();
    create_database(&mut stream, BODY.len());
    let (first, second) = BODY.split_at(4);
    stream.write_all(first.as_bytes()).expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    stream.write_all(second.as_bytes()).expect("sent");
    assert_eq!(read_answer(&mut stream).expect("an answer").status, 201);
}

/// A request that its headers refuse: nobody signed it.
fn unsigned(body_bytes: usize, more: &str) -> String {
    format!("POST /dbs HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {body_bytes}\r\n\r\n")
}

/// Many clients send the head and the body apart. If the server closes because it has refused the head, the next
/// request on the connection fails, and not every client may repeat it.
#[test]
fn a_refused_request_leaves_the_connection_usable() {
    let server = Server::start(&["--in-memory"]);
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(unsigned(BODY.len(), "").as_bytes()).expect("sent");
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(BODY.as_bytes()).expect("sent");
        assert_eq!(read_answer(&mut stream).expect("an answer").status, 401);
    }
}

#[test]
fn a_refused_request_that_waits_to_send_its_body_is_answered_at_once() {
    let server = Server::start(&["--in-memory"]);
    let mut stream = server.connect();
    stream.write_all(unsigned(BODY.len(), "expect: 100-continue\r\n").as_bytes()).expect("sent");
    let answer = read_answer(&mut stream).expect("an answer");
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn a_body_that_never_ends_is_answered_with_408() {
    let server = Server::start(&["--in-memory", "--body-timeout-seconds", "0.4"]);
    let mut stream = server.connect();
    create_database(&mut stream, BODY.len());
    stream.write_all(&BODY.as_bytes()[..4]).expect("sent");
    assert_eq!(read_answer(&mut stream).expect("an answer").status, 408);
}

#[test]
fn a_request_in_progress_is_finished_before_the_server_stops() {
    let mut server = Server::start(&[]);
    let mut stream = server.connect();
    create_database(&mut stream, BODY.len());
    server.signal("TERM");
    eventually("the port closes", || TcpStream::connect(server.address()).is_err());
    stream.write_all(BODY.as_bytes()).expect("sent");
    assert_eq!(read_answer(&mut stream).expect("an answer").status, 201);
    assert!(server.wait().success());
}

#[test]
fn a_request_that_hangs_does_not_keep_the_server_from_stopping() {
    let mut server = Server::start(&["--drain-timeout-seconds", "0.3"]);
    let mut stream = server.connect();
    create_database(&mut stream, BODY.len());
    assert!(server.terminate().success());
    assert!(server.log().contains("cut off"));
}

#[test]
fn a_second_signal_ends_the_waiting() {
    let mut server = Server::start(&["--drain-timeout-seconds", "3600"]);
    let mut stream = server.connect();
    create_database(&mut stream, BODY.len());
    server.signal("TERM");
    eventually("the port closes", || TcpStream::connect(server.address()).is_err());
    assert!(server.terminate().success());
}

#[test]
fn a_client_that_does_not_read_its_answers_is_cut_off() {
    let server = Server::start(&["--in-memory", "--write-timeout-seconds", "0.5"]);
    let mut stream = server.connect();
    stream.set_write_timeout(Some(support::SOCKET_PATIENCE)).expect("a timeout can be set");
    // Answers to thousands of pipelined requests fill the buffers of both sides, and then the server waits.
    let many = request("/metrics").repeat(200);
    let mut sent = 0;
    while stream.write_all(many.as_bytes()).is_ok() {
        sent += 1;
        assert!(sent < 10_000, "the server keeps answering a client that does not read");
    }
    let timed_out = "orrery_connections_timed_out_total 1";
    eventually("it is counted", || get(&server, "/metrics").text().contains(timed_out));
}

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let server = Server::start(&["--in-memory"]);
    for _ in 0..50 {
        let mut stream = server.connect();
        create_database(&mut stream, BODY.len());
    }
    let mut last = server.connect();
    eventually("only this connection is open", || {
        let metrics = exchange(&mut last, &request("/metrics")).expect("an answer").text();
        metrics.contains("orrery_connections_open 1\n")
    });
    let mut rest = [0u8; 1];
    last.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout can be set");
    assert!(last.read(&mut rest).is_err(), "the connection stays open and silent");
}

/// The head of a signed request that creates a database.
fn signed(more: &str) -> String {
    let signer = Signer::new(EMULATOR_KEY);
    let (date, authorization) = (signer.date(), signer.authorization("POST", "/dbs"));
    format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2020-07-15\r\nx-ms-date: {date}\r\n\
         authorization: {authorization}\r\n{more}\r\n\r\n"
    )
}

/// Most clients look at the answer when they have sent everything: the server must not close on them before that.
#[test]
fn a_body_far_over_the_limit_is_answered_so_that_its_client_can_read_it() {
    const MIB: usize = 1024 * 1024;
    let server = Server::start(&["--in-memory"]);
    let piece = vec![b'x'; MIB];
    for (mebibytes, is_chunked, head, status) in [
        (50, false, signed(&format!("content-length: {}", 50 * MIB)), 413),
        (90, true, signed("transfer-encoding: chunked"), 413),
        (50, false, unsigned(50 * MIB, ""), 401),
    ] {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).expect("sent");
        for _ in 0..mebibytes {
            if is_chunked {
                stream.write_all(format!("{MIB:x}\r\n").as_bytes()).expect("sent");
            }
            stream.write_all(&piece).expect("the server takes in what it is sent");
            if is_chunked {
                stream.write_all(b"\r\n").expect("sent");
            }
        }
        let answer = read_answer(&mut stream).expect("an answer that can be read");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert_eq!(get(&server, "/ready").status, 200);
}
