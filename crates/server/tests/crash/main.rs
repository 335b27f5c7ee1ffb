//! Whatever ends the server, nothing acknowledged is lost, no batch is torn, all accounts agree, and what was unique
//! still is.
//!
//! `sigkill` ends the process at any moment. `power_loss` takes the machine away from under it: the disk is put back to
//! what the file system had promised to keep, and perhaps a part of what it had not. `bad_disk` makes syncs slow, and
//! writes and syncs fail.

mod bad_disk;
mod disk;
mod power_loss;
mod sigkill;
mod trace;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use orrery_testkit::{Client, PATIENCE, has_reached};
use serde_json::json;
use writer::Writer;

/// Throughput is not what is tested here.
const OPTIONS: [&str; 1] = ["--no-throttle"];

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn create_containers(port: u16) {
    let mut client = Client::new(port);
    let reply = client.send("POST", "/dbs", &[], br#"{"id":"crash"}"#).expect("the server is up");
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    for (id, throughput) in [("one", "400"), ("four", "24000")] {
        let body = json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/unique"]}]},
            "defaultTtl": -1,
        });
        let headers = [("x-ms-offer-throughput", throughput)];
        let reply = client.send("POST", "/dbs/crash/colls", &headers, body.to_string().as_bytes());
        let reply = reply.expect("the server is up");
        assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    }
}

/// Lets all writers write for a while, and until so many more writes are acknowledged; then `end` may end the server
/// under their hands, and they stop.
fn storm(writers: &mut [Writer], port: u16, pause: Duration, writes: u64, end: impl FnOnce()) {
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let worth_it = std::thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| writer.storm(port, &stop, &acknowledged));
        }
        std::thread::sleep(pause);
        let worth_it = has_reached(&acknowledged, writes);
        end();
        stop.store(true, Ordering::Relaxed);
        worth_it
    });
    assert!(worth_it, "fewer than {writes} writes in {PATIENCE:?}");
}

/// The offline check.
fn verify(directory: &Path) -> Result<(), String> {
    orrery_testkit::verify(binary(), directory)
}
