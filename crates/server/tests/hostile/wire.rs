//! Clients that lie about lengths, stop half way, or do not speak HTTP at all.

use crate::json;
use crate::request::Request;
use crate::samples::Samples;
use crate::target::Target;

const DOCS: &str = "/dbs/fixed/colls/plain/docs";
const GROUP: &str = "broken protocol";
const MEGABYTE: usize = 1024 * 1024;

pub fn break_the_protocol(target: &mut Target, samples: &Samples, rounds: usize) {
    for _ in 0..rounds {
        large_bodies(target, samples);
        half_bodies(target, samples);
        lies_about_length(target, samples);
        no_http(target);
    }
    target.check(GROUP);
    println!("{rounds} rounds: {}", target.take_statuses());
}

/// More than an item may have: refused with its own status, whatever it is made of.
fn large_bodies(target: &mut Target, samples: &Samples) {
    let bodies = [
        format!("{{\"id\":\"large\",\"pk\":\"k\",\"fill\":\"{}\"}}", "x".repeat(3 * MEGABYTE)),
        format!("{{\"id\":\"large\",\"pk\":\"k\",\"fill\":[{}1]}}", "1,".repeat(3 * MEGABYTE / 2)),
        "[".repeat(3 * MEGABYTE),
        "{\"a\":".repeat(MEGABYTE / 2),
    ];
    let headers = [("x-ms-documentdb-partitionkey", "[\"k\"]")];
    for body in bodies {
        let mut request = Request::new("POST", DOCS, &headers, &body);
        request.sign(&samples.signer);
        let reply = target.client.send_bytes(&request.to_bytes());
        target.client.disconnect();
        let reply = reply.unwrap_or_else(|error| panic!("{error}: {}", request.describe()));
        assert!(matches!(reply.status, 400 | 413), "{}: {}", reply.status, request.describe());
    }
    let many: Vec<String> = (0..60_000).map(|n| format!("\"p{n}\":{n}")).collect();
    let mut wide =
        Request::new("POST", DOCS, &headers, &format!("{{\"id\":\"wide\",\"pk\":\"k\",{}}}", many.join(",")));
    wide.set_header("x-ms-documentdb-is-upsert", b"true".to_vec());
    wide.sign(&samples.signer);
    target.send(GROUP, &wide);
}

fn half_bodies(target: &mut Target, samples: &Samples) {
    for request in &samples.with_body {
        let mut request = request.clone();
        request.sign(&samples.signer);
        let message = request.to_bytes();
        for end in [message.len() - 1, message.len() - request.body.len() / 2, message.len() / 2, 20] {
            target.client.hang_up_after(&message[..end]).expect("the server accepts connections");
        }
    }
}

/// Framing that contradicts itself. Silence would be an answer to some, so the client hangs up by itself.
fn lies_about_length(target: &mut Target, samples: &Samples) {
    let mut request = Request::new("POST", DOCS, &[("x-ms-documentdb-partitionkey", "[\"k\"]")], "");
    request.sign(&samples.signer);
    let message = request.to_bytes();
    let head = message.strip_suffix(b"content-length: 0\r\n\r\n").expect("it ends the head");
    let lies = [
        "content-length: 18446744073709551615\r\n\r\n{}",
        "content-length: 18446744073709551616\r\n\r\n{}",
        "content-length: -1\r\n\r\n{}",
        "content-length: 1000\r\n\r\n{}",
        "content-length: 33554433\r\n\r\n{}",
        "content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        "transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n{}",
        "transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n{}",
        "transfer-encoding: chunked\r\n\r\n-1\r\n{}",
        "transfer-encoding: chunked\r\n\r\n5\r\n{}\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n1\r\n{}}}}}}}\r\n",
        "transfer-encoding: chunked\r\n\r\nzz\r\n",
        "transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "transfer-encoding: identity\r\n\r\n{}",
        "expect: 100-continue\r\ncontent-length: 10\r\n\r\n",
        "upgrade: websocket\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\n{}",
    ];
    for lie in lies {
        target
            .client
            .hang_up_after(&[head, lie.as_bytes()].concat())
            .expect("the server accepts connections");
    }
    let endless = format!(
        "transfer-encoding: chunked\r\n\r\n{}",
        "100000\r\n".to_owned() + &"x".repeat(MEGABYTE) + "\r\n"
    );
    let _ = target.client.hang_up_after(&[head, endless.as_bytes()].concat());
    let honest = [head, b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"].concat();
    let reply = target.client.send_bytes(&honest).expect("chunks are a fair way to send a body");
    assert_eq!(reply.status, 400, "an item needs an id");
}

fn no_http(target: &mut Target) {
    let mut random = orrery_testkit::Random::new(7);
    let mut messages = vec![
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        [&b"\x16\x03\x01\xff\xff"[..], &[0; 4_000]].concat(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x00".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET  / HTTP/1.1\r\n\r\n".to_vec(),
        b"\r\n\r\n\r\n".to_vec(),
        [&b"GET / HTTP/1.1\r\n"[..], &b"x: y\r\n".repeat(20_000)].concat(),
        [&b"GET / HTTP/1.1\r\nx: "[..], &b"y".repeat(200_000)].concat(),
        [&b"GET /"[..], &b"y".repeat(200_000)].concat(),
        b"GET http://[::1 HTTP/1.1\r\n\r\n".to_vec(),
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
        b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n".to_vec(),
    ];
    messages.extend((0..40).map(|_| json::broken(&mut random, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")));
    for message in messages {
        // The server may hang up before everything is sent.
        let _ = target.client.hang_up_after(&message);
    }
}
