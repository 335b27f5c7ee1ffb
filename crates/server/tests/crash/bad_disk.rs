//! A disk that takes its time, and one that fails.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orrery_testkit::{Client, Server, eventually};
use serde_json::json;

use crate::{OPTIONS, binary, create_containers, storm, trace, verify, writer};

/// How long every sync takes in addition.
const DELAY: Duration = Duration::from_millis(700);
/// Writes before the disk fails, and after.
const WRITES: u64 = 40;

fn upsert(client: &mut Client, version: u64) -> u16 {
    let body = json!({"id": "1", "pk": "a", "unique": "u", "version": version}).to_string();
    let headers = [("x-ms-documentdb-partitionkey", "[\"a\"]"), ("x-ms-documentdb-is-upsert", "True")];
    let reply = client.send("POST", "/dbs/crash/colls/one/docs", &headers, body.as_bytes());
    reply.expect("the server is up").status
}

fn read(client: &mut Client) -> u64 {
    let headers = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
    let reply = client.send("GET", "/dbs/crash/colls/one/docs/1", &headers, b"").expect("the server is up");
    reply.json()["version"].as_u64().expect("a version")
}

#[test]
fn nobody_hears_of_a_write_or_reads_it_before_it_is_on_disk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let slow = format!("inject=fdatasync:delay_enter={}", DELAY.as_micros());
    let server =
        trace::start(directory.path(), &["-e", "trace=fdatasync", "-e", &slow], Path::new("/dev/null"));
    create_containers(server.port());
    let (mut writing, mut reading) = (Client::new(server.port()), Client::new(server.port()));
    assert_eq!(upsert(&mut writing, 1), 201);
    let (sent, is_answered) = (Instant::now(), AtomicBool::new(false));
    let mut reads = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(upsert(&mut writing, 2), 200);
            assert!(sent.elapsed() >= DELAY, "the answer came before the sync");
            is_answered.store(true, Ordering::Relaxed);
        });
        while !is_answered.load(Ordering::Relaxed) && sent.elapsed() < DELAY {
            let version = read(&mut reading);
            if sent.elapsed() < DELAY {
                assert_eq!(version, 1, "a reader saw what a loss of power could still undo");
                reads += 1;
            }
        }
    });
    assert!(reads > 0, "nothing was read during the sync");
    assert_eq!(read(&mut reading), 2);
}

#[test]
fn a_disk_that_fails_ends_the_server_and_takes_nothing_with_it() {
    for call in ["fdatasync", "pwrite64"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut writers = writer::some(1);
        let server = Server::start_on(binary(), directory.path(), &OPTIONS);
        create_containers(server.port());
        storm(&mut writers, server.port(), Duration::ZERO, WRITES, || {});
        server.stop();

        // From the first commits on, every call fails.
        let fails = format!("inject={call}:error=EIO:when={WRITES}+");
        let trace = format!("trace={call}");
        let mut server =
            trace::start(directory.path(), &["-e", &trace, "-e", &fails], Path::new("/dev/null"));
        let port = server.port();
        storm(&mut writers, port, Duration::ZERO, 0, || {
            eventually("the server ends itself", || !server.is_alive());
        });

        verify(directory.path()).expect("all accounts agree");
        let server = Server::start_on(binary(), directory.path(), &OPTIONS);
        let mut client = Client::new(server.port());
        for writer in &mut writers {
            writer.settle(&mut client).unwrap_or_else(|finding| panic!("{call}: {finding}"));
        }
        storm(&mut writers, server.port(), Duration::ZERO, WRITES, || {});
    }
}
