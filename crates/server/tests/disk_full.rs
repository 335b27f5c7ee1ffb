//! A full disk: writes are refused in words, nothing acknowledged is lost, and room brings everything back.
//!
//! Twice over: once with the operator's limit on disk use, and once on a file system that really is small, where
//! the machine lets us mount one. Both times the server is also killed while it is full, because the worst moment
//! to be interrupted is one without room to clean up.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use orrery_testkit::{Client, Random, Reply, Server, eventually, left_out, wait_for};
use serde_json::{Value, json};

const WRITERS: usize = 4;
/// Refusals that a writer must see before it believes that the disk is full.
const REFUSALS: usize = 20;
const DOCS: &str = "/dbs/full/colls/items/docs";
const MEGABYTE: u64 = 1024 * 1024;

#[test]
fn the_limit_on_disk_use_is_refused_cleanly_and_can_be_raised() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let data = directory.path().join("data");
    let stored = Stored::fill(&data, &["--max-disk-bytes", "24MiB"]);
    assert!(disk_bytes(&data) < 64 * MEGABYTE, "the limit was 24 MiB, {} bytes are used", disk_bytes(&data));
    stored.check_after_restart(&data, &["--max-disk-bytes", "24MiB"], Room::None);
    stored.check_after_restart(&data, &["--max-disk-bytes", "2GiB"], Room::Plenty);
}

#[test]
fn a_small_file_system_fills_up_and_grows_without_loss() {
    let Some(disk) = SmallDisk::mount() else {
        return left_out("mount a file system of its own");
    };
    let data = disk.directory.path().join("data");
    let stored = Stored::fill(&data, &[]);
    stored.check_after_restart(&data, &[], Room::None);
    disk.resize(SmallDisk::LARGE);
    stored.check_after_restart(&data, &[], Room::Plenty);
}

#[test]
fn a_server_that_was_full_works_again_as_soon_as_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return left_out("mount a file system of its own");
    };
    let data = disk.directory.path().join("data");
    let server = start(&data, &[]);
    let mut stored = Stored::default();
    stored.prepare(server.port());
    stored.write_until_refused(server.port());
    disk.resize(SmallDisk::LARGE);
    // The server looks at the disk from time to time, not before every write.
    eventually("there is room again", || ready(server.port()) == "ready\n");
    stored.check(server.port());
    assert_writes_work(server.port());
    server.stop();
}

#[test]
fn a_disk_that_others_fill_to_the_last_byte_costs_nothing_that_was_stored() {
    let Some(disk) = SmallDisk::mount() else {
        return left_out("mount a file system of its own");
    };
    let data = disk.directory.path().join("data");
    let server = start(&data, &[]);
    let mut stored = Stored::default();
    stored.prepare(server.port());
    stored.write_until_refused(server.port());
    disk.fill_completely();
    stored.check(server.port());
    assert_writes_are_refused(server.port());
    server.kill();
    // Without a single free byte a start may fail, but it must not harm anything.
    match Server::try_start_on(binary(), &data, &["--no-throttle", "--log=error"]) {
        Ok(server) => {
            stored.check(server.port());
            server.kill();
        }
        Err(said) => println!("a start without room ended with: {said}"),
    }
    disk.resize(SmallDisk::LARGE);
    stored.check_after_restart(&data, &[], Room::Plenty);
}

/// The volume is smaller than what the server keeps free on a large one.
#[test]
fn a_small_volume_takes_writes_and_is_emptied_by_deletes() {
    let Some(disk) = SmallDisk::mount() else {
        return left_out("mount a file system of its own");
    };
    let (data, log) = (disk.directory.path().join("data"), tempfile::NamedTempFile::new().expect("a file"));
    let options =
        ["--no-throttle", "--log=warn", "--data-dir", data.to_str().expect("a temporary path is text")];
    let server = Server::start_logged(binary(), &options, log.path());
    let port = server.port();
    assert_eq!(ready(port), "ready\n");
    let mut stored = Stored::default();
    stored.prepare(port);
    stored.write_until_refused(port);
    assert!(ready(port).contains("writes are refused"), "{}", ready(port));
    let mut client = Client::new(port);
    for id in stored.0.keys() {
        let reply =
            client.send("DELETE", &format!("{DOCS}/{id}"), &[key(id).header()], b"").expect("an answer");
        assert_eq!(reply.status, 204, "{id}: {}", reply.json());
    }
    assert!(read_all(&mut client).is_empty());
    wait_for_writes(port);
    eventually("the server is as ready as before", || ready(port) == "ready\n");
    let said = || std::fs::read_to_string(log.path()).expect("a log");
    eventually("the operator is told", || said().contains("there is room on the disk again"));
    server.stop();
    let said = said();
    let count = |words: &str| said.lines().filter(|line| line.contains(words)).count();
    assert_eq!((count("the disk is full"), count("there is room on the disk again")), (1, 1), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("WARN")).count(), 2, "{said}");
}

#[test]
fn a_dropped_container_and_a_dropped_database_make_room_on_a_full_volume() {
    let Some(disk) = SmallDisk::mount() else {
        return left_out("mount a file system of its own");
    };
    let data = disk.directory.path().join("data");
    let server = start(&data, &[]);
    let port = server.port();
    for path in ["/dbs/full/colls/items", "/dbs/full"] {
        let mut stored = Stored::default();
        stored.prepare(port);
        stored.write_until_refused(port);
        let mut client = Client::new(port);
        let reply = client.send("DELETE", path, &[], b"").expect("an answer");
        assert_eq!(reply.status, 204, "{path}: {}", reply.json());
        eventually("there is room again", || ready(port) == "ready\n");
        // What was dropped is erased in the background, also by a server that is killed meanwhile.
    }
    server.kill();
    let server = start(&data, &[]);
    Stored::default().prepare(server.port());
    wait_for_writes(server.port());
    server.stop();
}

#[test]
fn what_only_deletes_passes_at_the_limit_and_what_writes_does_not() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let server = start(&directory.path().join("data"), &["--max-disk-bytes", "16MiB"]);
    let port = server.port();
    let mut stored = Stored::default();
    stored.prepare(port);
    let mut client = Client::new(port);
    let script = "function gone(id) { var c = getContext().getCollection(); \
        c.deleteDocument(c.getAltLink() + '/docs/' + id, {}, function (error) { if (error) throw error; }); }";
    let body = json!({"id": "gone", "body": script}).to_string();
    let reply = client.send("POST", "/dbs/full/colls/items/sprocs", &[], body.as_bytes()).expect("an answer");
    assert_eq!(reply.status, 201, "{}", reply.json());
    let same = key("same");
    for n in 0..20 {
        let body = json!({"id": format!("same-{n}"), "pk": "same", "fill": "x".repeat(500)}).to_string();
        let reply = client.send("POST", DOCS, &[same.header()], body.as_bytes()).expect("an answer");
        assert_eq!(reply.status, 201, "{}", reply.json());
    }
    stored.write_until_refused(port);
    let mut batch = |operations: Value| {
        let headers =
            [same.header(), ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
        client.send("POST", DOCS, &headers, operations.to_string().as_bytes()).expect("an answer")
    };
    let delete = |n: u32| json!({"operationType": "Delete", "id": format!("same-{n}")});
    let create = json!({"operationType": "Create", "resourceBody": {"id": "new", "pk": "same"}});
    let mixed = batch(json!([delete(0), create]));
    assert_eq!(mixed.status, 503, "{}", mixed.json());
    let reply = batch(json!([delete(0), delete(1)]));
    assert_eq!(reply.status, 200, "{}", reply.json());
    let smaller = json!({"id": "same-2", "pk": "same"}).to_string();
    let reply = client.send("PUT", &format!("{DOCS}/same-2"), &[same.header()], smaller.as_bytes());
    assert_is_clean_refusal(&reply.expect("an answer"));
    let call = "/dbs/full/colls/items/sprocs/gone";
    let reply = client.send("POST", call, &[same.header()], b"[\"same-2\"]").expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.json());
    let all = "/dbs/full/colls/items/operations/partitionkeydelete";
    // It is signed as the container.
    let (signed, date) = {
        let signer = client.signer();
        (signer.authorization("POST", "/dbs/full/colls/items"), signer.date().to_owned())
    };
    let headers = [("authorization", signed.as_str()), ("x-ms-date", &date), same.header()];
    let reply = client.send_raw("POST", all, &headers, b"").expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.json());
    let left = read_all(&mut client);
    assert!(left.keys().all(|id| !id.starts_with("same-")), "{left:?}");
    stored.check(port);
    server.stop();
}

#[test]
fn what_expires_makes_room_by_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let server = start(&directory.path().join("data"), &["--max-disk-bytes", "12MiB"]);
    let port = server.port();
    let mut stored = Stored::default();
    stored.prepare_with(port, json!({"defaultTtl": 15}));
    stored.write_until_refused(port);
    wait_for_writes(port);
    server.stop();
}

enum Room {
    None,
    Plenty,
}

/// What was acknowledged: the version of each item.
#[derive(Default)]
struct Stored(BTreeMap<String, u64>);

impl Stored {
    /// Fills a new server up, checks that it still answers, and kills it.
    fn fill(data: &Path, options: &[&str]) -> Stored {
        let mut server = start(data, options);
        let mut stored = Stored::default();
        stored.prepare(server.port());
        stored.write_until_refused(server.port());
        stored.check(server.port());
        assert!(server.is_alive());
        server.kill();
        stored
    }

    fn prepare(&self, port: u16) {
        self.prepare_with(port, json!({}));
    }

    /// As soon as there is room for it; what is there already stays.
    fn prepare_with(&self, port: u16, more: Value) {
        let mut client = Client::new(port);
        let mut container =
            json!({"id": "items", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let more = more.as_object().expect("an object").clone();
        container.as_object_mut().expect("an object").extend(more);
        for (path, body) in [("/dbs", json!({"id": "full"})), ("/dbs/full/colls", container)] {
            let reply = wait_for(|| {
                let reply = client.send("POST", path, &[], body.to_string().as_bytes()).expect("an answer");
                if reply.status == 503 { Err(reply.json().to_string()) } else { Ok(reply) }
            });
            assert!(matches!(reply.status, 201 | 409), "{path}: {} {}", reply.status, reply.json());
        }
    }

    fn write_until_refused(&mut self, port: u16) {
        let seed = Random::from_environment().seed();
        let refusals = AtomicUsize::new(0);
        let written = std::thread::scope(|scope| {
            let write = |name| write_until_refused(port, name, seed + name as u64, &refusals);
            let writers: Vec<_> = (0..WRITERS).map(|name| scope.spawn(move || write(name))).collect();
            let joined = writers.into_iter().map(|writer| writer.join().expect("no writer failed"));
            joined.collect::<Vec<_>>()
        });
        written.into_iter().for_each(|acknowledged| self.0.extend(acknowledged));
        println!("{} items stored, {} writes refused", self.0.len(), refusals.into_inner());
        assert!(self.0.len() > 100, "only {} items were stored before the disk was full", self.0.len());
    }

    /// Starts the server on what a kill left, compares everything, and kills it again.
    fn check_after_restart(&self, data: &Path, options: &[&str], room: Room) {
        let server = start(data, options);
        self.check(server.port());
        match room {
            Room::None => assert_writes_are_refused(server.port()),
            Room::Plenty => assert_writes_work(server.port()),
        }
        server.kill();
    }

    /// Point reads of some, and a query over all.
    fn check(&self, port: u16) {
        let mut client = Client::new(port);
        for (place, (id, version)) in self.0.iter().enumerate() {
            if place % 7 != 0 {
                continue;
            }
            let path = format!("{DOCS}/{id}");
            let reply = client.send("GET", &path, &[key(id).header()], b"").expect("an answer");
            assert_eq!(reply.status, 200, "{id}: {}", reply.json());
            assert_eq!(reply.json()["version"], json!(version), "{id}");
        }
        let stored = read_all(&mut client);
        let missing: Vec<&String> = self.0.keys().filter(|id| !stored.contains_key(*id)).collect();
        assert!(
            missing.is_empty(),
            "{} acknowledged items are gone, such as {:?}",
            missing.len(),
            missing[0]
        );
        for (id, version) in &self.0 {
            // A later version would be one that was refused.
            assert_eq!(stored[id], *version, "{id}");
        }
    }
}

/// Creates and replaces items until the server has refused often enough.
fn write_until_refused(port: u16, name: usize, seed: u64, refusals: &AtomicUsize) -> BTreeMap<String, u64> {
    let mut client = Client::new(port);
    let mut random = Random::new(seed);
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut refused = 0;
    for version in 1.. {
        // One write in four replaces an item, unless the server has refused to store it.
        let earlier = format!("w{name}-{}", 1 + random.below(version as usize));
        let replaces = random.one_in(4) && acknowledged.contains_key(&earlier);
        let id = if replaces { earlier } else { format!("w{name}-{version}") };
        let reply = write(&mut client, &id, version, &mut random);
        match reply.status {
            200 | 201 => drop(acknowledged.insert(id, version)),
            _ => {
                assert_is_clean_refusal(&reply);
                refused += 1;
                refusals.fetch_add(1, Ordering::Relaxed);
            }
        }
        if refused == REFUSALS {
            return acknowledged;
        }
    }
    unreachable!("versions do not end")
}

fn write(client: &mut Client, id: &str, version: u64, random: &mut Random) -> Reply {
    static NOISE: LazyLock<String> = LazyLock::new(noise);
    let noise = NOISE.as_str();
    // Text that compresses little, so that the disk fills as fast as it is written to.
    let start = random.below(noise.len() / 2);
    let fill = &noise[start..start + 2_000 + random.below(6_000)];
    let body = json!({"id": id, "pk": id, "version": version, "fill": fill}).to_string();
    let key = key(id);
    let headers = [key.header(), ("x-ms-documentdb-is-upsert", "true")];
    client.send("POST", DOCS, &headers, body.as_bytes()).expect("a full server still answers")
}

/// Printable chance, made once: without optimization, making it is slower than storing it.
fn noise() -> String {
    let mut random = Random::new(3);
    (0..MEGABYTE).map(|_| (b'#' + random.below(57) as u8) as char).collect()
}

fn assert_is_clean_refusal(reply: &Reply) {
    let body = reply.json();
    assert_eq!(reply.status, 503, "{body}");
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.contains("disk") && message.contains("full"), "{body}");
    assert!(reply.header("x-ms-request-charge").is_some() && reply.header("x-ms-activity-id").is_some());
}

fn assert_writes_are_refused(port: u16) {
    let mut client = Client::new(port);
    let mut random = Random::new(1);
    // Restarting may have freed a little by merging files, but never much.
    let replies = (0..8_000).map(|n| write(&mut client, &format!("after-{n}"), n, &mut random));
    let refusal = replies.into_iter().find(|reply| !matches!(reply.status, 200 | 201));
    assert_is_clean_refusal(&refusal.expect("a disk that was full before the kill is full after it"));
    let reply = client.send("POST", "/dbs", &[], b"{\"id\":\"more\"}").expect("an answer");
    assert!(matches!(reply.status, 201 | 503), "{}", reply.json());
}

fn assert_writes_work(port: u16) {
    let mut client = Client::new(port);
    let mut random = Random::new(2);
    for n in 0..500 {
        let reply = write(&mut client, &format!("room-{n}"), n, &mut random);
        assert!(matches!(reply.status, 200 | 201), "{}: {}", reply.status, reply.json());
    }
    let reply = client.send("POST", "/dbs", &[], b"{\"id\":\"room\"}").expect("an answer");
    assert_eq!(reply.status, 201, "{}", reply.json());
    let reply = client.send("DELETE", "/dbs/room", &[], b"").expect("an answer");
    assert_eq!(reply.status, 204, "{}", reply.json());
}

/// What was freed becomes available by itself: merges need a moment for it.
fn wait_for_writes(port: u16) {
    let mut client = Client::new(port);
    let mut random = Random::new(4);
    for n in 0..500 {
        let reply = wait_for(|| {
            let reply = write(&mut client, &format!("again-{n}"), n, &mut random);
            if reply.status == 503 { Err(reply.json().to_string()) } else { Ok(reply) }
        });
        assert!(matches!(reply.status, 200 | 201), "{}", reply.json());
    }
}

fn ready(port: u16) -> String {
    let reply = Client::new(port).send("GET", "/ready", &[], b"").expect("an answer");
    assert_eq!(reply.status, 200, "reads and deletes are served");
    String::from_utf8(reply.body).expect("text")
}

/// Every item with its version.
fn read_all(client: &mut Client) -> BTreeMap<String, u64> {
    let mut stored = BTreeMap::new();
    let mut continuation: Option<String> = None;
    loop {
        let mut headers = vec![
            ("content-type", "application/query+json"),
            ("x-ms-documentdb-isquery", "true"),
            ("x-ms-documentdb-query-enablecrosspartition", "true"),
            ("x-ms-max-item-count", "1000"),
        ];
        if let Some(token) = &continuation {
            headers.push(("x-ms-continuation", token));
        }
        let query = br#"{"query": "SELECT c.id, c.version FROM c"}"#;
        let reply = client.send("POST", DOCS, &headers, query).expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.json());
        for item in reply.json()["Documents"].as_array().expect("a page of items") {
            let id = item["id"].as_str().expect("an id").to_owned();
            stored.insert(id, item["version"].as_u64().expect("a version"));
        }
        continuation = reply.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return stored;
        }
    }
}

struct Key(String);

impl Key {
    fn header(&self) -> (&str, &str) {
        ("x-ms-documentdb-partitionkey", &self.0)
    }
}

fn key(id: &str) -> Key {
    Key(Value::from(vec![id]).to_string())
}

fn start(data: &Path, options: &[&str]) -> Server {
    let options = [&["--no-throttle", "--log=error"], options].concat();
    Server::start_on(binary(), data, &options)
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn disk_bytes(path: &Path) -> u64 {
    let output = Command::new("du").args(["-s", "--block-size=1"]).arg(path).output().expect("du is there");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("du prints a number")
}

/// A file system in memory, mounted for one test and gone with it.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// Less than the server keeps free where there is much; half of it can be filled.
    const SMALL: &str = "64m";
    const LARGE: &str = "400m";

    fn mount() -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let size = format!("size={}", SmallDisk::SMALL);
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory.path()).output();
        mount.is_ok_and(|output| output.status.success()).then_some(SmallDisk { directory })
    }

    /// Another process takes all that is left.
    fn fill_completely(&self) {
        let mut file =
            std::fs::File::create(self.directory.path().join("others")).expect("a file can be made");
        let block = vec![7; MEGABYTE as usize];
        for size in [block.len(), 4096, 1] {
            while file.write_all(&block[..size]).is_ok() {}
        }
    }

    fn resize(&self, size: &str) {
        let size = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &size]).arg(self.directory.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "what was mounted can be resized");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A server that a failed test left behind may still hold files; then the mount goes with the last of them.
        let path: PathBuf = self.directory.path().to_owned();
        let _ = Command::new("umount").arg("--lazy").arg(path).status();
    }
}
