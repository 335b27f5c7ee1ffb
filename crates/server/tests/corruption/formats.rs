//! Directories of the build before, and ends of the journal that were being written.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use orrery_testkit::{Client, Server};
use serde_json::json;

use crate::binary;
use crate::world::{KEY_HEADER, copy_all};

/// Of a server of the build before, which was killed while four clients wrote. `acknowledged` names the items.
const FIRST_FORMAT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corruption/first_format");
/// LSNs leap by at least this much when the end of the journal was torn.
const LEAP: u64 = 1 << 20;

/// Whether all acknowledged items of the fixture are there, and those that were under way are whole.
fn check_fixture(port: u16) {
    let mut client = Client::new(port);
    let text = fs::read_to_string(Path::new(FIRST_FORMAT).join("acknowledged")).expect("the list is there");
    for number in text.split_whitespace().map(|word| word.parse::<u64>().expect("a number")) {
        let key = json!([format!("key-{}", number % 17)]).to_string();
        let path = format!("/dbs/old/colls/items/docs/item-{number}");
        let reply = client.send("GET", &path, &[(KEY_HEADER, &key)], b"").expect("the server is up");
        assert_eq!(reply.status, 200, "item {number}");
        assert_eq!(reply.json()["number"], number);
    }
}

fn verify(directory: &Path) -> (bool, String) {
    let output = Command::new(binary()).args(["verify", "--data-dir"]).arg(directory).output();
    let output = output.expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn assert_sound(directory: &Path) {
    let (is_fine, text) = verify(directory);
    assert!(is_fine, "{text}");
}

#[test]
fn a_directory_of_the_build_before_that_was_killed_under_load_opens_and_gets_a_manifest() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    copy_all(Path::new(FIRST_FORMAT), &data);
    assert_sound(&data);
    assert!(!data.join("manifest").exists(), "to look changes nothing");
    for is_killed in [true, false] {
        let server = Server::start_on(binary(), &data, &[]);
        check_fixture(server.port());
        assert!(data.join("manifest").exists());
        if is_killed { server.kill() } else { server.stop() }
    }
    assert_sound(&data);
    fs::remove_file(data.join("manifest")).expect("it is there");
    let said = Server::try_start_on(binary(), &data, &[]).err().expect("a lost manifest is noticed");
    assert!(said.contains("manifest is missing") && said.contains("restore"), "{said}");
    assert!(!verify(&data).0);
}

/// A record of the build before does not say what was durable; that others follow it does.
#[test]
fn damage_in_a_journal_of_the_build_before_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    copy_all(Path::new(FIRST_FORMAT), &data);
    flip(&data.join("journal/0"), 200_000);
    let said = Server::try_start_on(binary(), &data, &[]).err().expect("damage is noticed");
    assert!(said.contains("journal/0, byte ") && said.contains("restore"), "{said}");
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the file is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it is so long");
    file.write_all_at(&[byte[0] ^ 1], at).expect("it can be written");
}

/// The power went while the last group was written: nobody was told of it, and it is reported.
#[test]
fn a_torn_end_is_reported_and_no_lsn_is_given_twice() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let server = Server::start_on(binary(), &data, &[]);
    let mut client = Client::new(server.port());
    let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    client.send("POST", "/dbs", &[], br#"{"id":"d"}"#).expect("the server is up");
    client.send("POST", "/dbs/d/colls", &[], container.to_string().as_bytes()).expect("the server is up");
    let before = create(&mut client, "before");
    server.kill();
    // What a loss of power leaves: an old mark, and bytes of a record whose head did not reach the disk.
    let mark = fs::read(data.join("mark")).expect("it is there");
    fs::remove_file(data.join("mark")).expect("it is there");
    let end = u64::from_le_bytes(mark[16..24].try_into().expect("eight bytes"));
    let journal = data.join("journal/0");
    let file = OpenOptions::new().write(true).open(&journal).expect("it is there");
    file.write_all_at(&[7; 300], end).expect("it can be written");
    drop(file);
    let (is_fine, text) = verify(&data);
    assert!(!is_fine && text.contains(&format!("journal/0, byte {end}: torn tail")), "{text}");
    let server = Server::try_start_logged(binary(), &data, &[], &log).expect("a torn end is no damage");
    let mut client = Client::new(server.port());
    let after = create(&mut client, "after");
    assert!(after > before + LEAP, "{before} {after}");
    server.stop();
    let said = fs::read_to_string(&log).expect("the log is there");
    let line =
        said.lines().find(|line| line.contains("WARN") && line.contains("journal/0")).expect("a warning");
    assert!(line.contains(&format!("offset={end}")) && line.contains("LSNs leap"), "{line}");
    assert!(line.contains(&format!("from {before} to {}", before + LEAP)), "{line}");
    assert_sound(&data);
}

/// Creates an item and returns its LSN.
fn create(client: &mut Client, id: &str) -> u64 {
    let body = json!({"id": id, "pk": "k"}).to_string();
    let reply = client.send("POST", "/dbs/d/colls/c/docs", &[(KEY_HEADER, "[\"k\"]")], body.as_bytes());
    let reply = reply.expect("the server is up");
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    reply.header("lsn").and_then(|text| text.parse().ok()).expect("a write has an LSN")
}
