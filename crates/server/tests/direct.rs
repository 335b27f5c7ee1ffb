//! Direct mode at a real server: the bytes of RNTBD inside TLS, beside HTTP or on a port of its own.

use std::io::{Read, Write};
use std::net::TcpStream;

use support::Server;
use support::http::{get, get_tls, is_closed, tls};

mod support;

/// The first frame of a client: protocol 1, version 2020-07-15, an agent.
fn hello() -> Vec<u8> {
    let mut frame = vec![0; 4];
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&[9; 16]);
    frame.extend_from_slice(&[0, 0, 2, 1, 0, 0, 0]);
    frame.extend_from_slice(&[1, 0, 7, 10]);
    frame.extend_from_slice(b"2020-07-15");
    frame.extend_from_slice(&[2, 0, 7, 4]);
    frame.extend_from_slice(b"test");
    let length = frame.len() as u32;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame
}

/// The status of the next frame, which has no payload or one that is read with it.
fn status(stream: &mut impl Read, has_payload: bool) -> std::io::Result<u32> {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let mut head = [0; 24];
    stream.read_exact(&mut head)?;
    if head[8..] != [9; 16] {
        return Err(std::io::Error::other("this answers no frame of ours"));
    }
    let mut tokens = vec![0; number(&head[..4]) as usize - 24];
    stream.read_exact(&mut tokens)?;
    if has_payload {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        stream.read_exact(&mut vec![0; number(&length) as usize])?;
    }
    Ok(number(&head[4..8]))
}

/// The read of an item that says neither who asks nor where.
fn read() -> Vec<u8> {
    let mut frame = vec![35, 0, 0, 0, 3, 0, 3, 0];
    frame.extend_from_slice(&[9; 16]);
    frame.extend_from_slice(&[2, 0, 0, 0]);
    frame.extend_from_slice(&[0x4D, 0, 2, 7, 0, 0, 0]);
    frame
}

/// Opens a connection in direct mode and asks something there.
fn speak(server: &Server, stream: TcpStream) -> std::io::Result<u32> {
    let authority = get(server, "/_explorer/emulator.pem").body;
    let mut stream = tls(stream, "localhost", &authority)?;
    stream.write_all(&hello())?;
    stream.flush()?;
    assert_eq!(status(&mut stream, false)?, 200);
    stream.write_all(&read())?;
    stream.flush()?;
    status(&mut stream, true)
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

#[test]
fn direct_mode_can_have_a_port_or_none() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a port")
        .port();
    let mut own = Server::start(&["--direct-port", &port.to_string()]);
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    assert_eq!(speak(&own, stream).expect("an answer"), 404);
    assert!(speak(&own, own.connect()).is_err(), "the other port speaks HTTP alone");
    assert!(own.terminate().success());
    let none = Server::start(&["--direct-port", "none"]);
    assert!(speak(&none, none.connect()).is_err());
}
