//! Writes the directory: everything that is stored in a form of its own, by requests alone.

use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use orrery_store::engine::{DiskOptions, Engine, Keyspace};
use orrery_testkit::{Client, Reply, Server, eventually};
use serde_json::{Value, json};

use crate::OPTIONS;
use crate::answers::{Answers, ascii};
use crate::history;

pub const DATABASE: &str = "/dbs/old";
const MANAGE: &str = "/_orrery/dbs/old/colls";

/// All containers that the answers tell of. The one that is written to while the server is killed is the last.
pub const CONTAINERS: [&str; 15] = [
    "plain", "copied", "paused", "merged", "versions", "followed", "ttl", "unique", "scripts", "v1",
    "levels", "empty", "emptied", "building", "journal",
];

/// Queries that are answered by each partition of a container: by an index, in its order, and by looking at items.
pub const QUERIES: [(&str, &str); 11] = [
    ("plain", "SELECT * FROM c WHERE c.n = 7"),
    ("plain", "SELECT VALUE c.id FROM c WHERE c.n > 20 AND c.n < 40 ORDER BY c.n"),
    ("plain", "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 't3') ORDER BY c.name"),
    ("plain", "SELECT VALUE c.id FROM c WHERE c.nested.flag = true ORDER BY c.id DESC"),
    ("plain", "SELECT VALUE COUNT(1) FROM c WHERE c.city = 'city-3'"),
    ("merged", "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.name, 'name-1') ORDER BY c.n"),
    ("v1", "SELECT VALUE c.n FROM c WHERE c.n >= 0 ORDER BY c.n"),
    ("levels", "SELECT VALUE c.n FROM c WHERE c.tenant = 'a' ORDER BY c.n"),
    ("building", "SELECT VALUE COUNT(1) FROM c WHERE c.city = 'city-3'"),
    ("scripts", "SELECT VALUE udf.twice(c.n) FROM c WHERE c.n < 9 ORDER BY c.n"),
    ("ttl", "SELECT VALUE c.id FROM c ORDER BY c.id"),
];

/// A long key of version 1: all that begin with the same hundred bytes have one place.
fn long_key(end: &str) -> String {
    format!("{}{end}", "k".repeat(120))
}

/// Items that are read one by one; some are not there.
pub fn points() -> Vec<(&'static str, Value, String)> {
    let mut points = Vec::new();
    for n in [0, 1, 17, 59, 60, 79, 400] {
        points.push(("plain", json!([format!("p{}", n % 11)]), format!("i{n}")));
    }
    for (end, id) in [("-a", "long"), ("-b", "long-b"), ("-b", "long"), ("-a", "nobody")] {
        points.push(("v1", json!([long_key(end)]), id.to_owned()));
    }
    for (key, id) in
        [(json!([3]), "three"), (json!([null]), "null"), (json!([{}]), "none"), (json!([true]), "yes")]
    {
        points.push(("v1", key, id.to_owned()));
    }
    for id in ["mine", "never", "short", "default"] {
        points.push(("ttl", json!(["t"]), id.to_owned()));
    }
    points.push(("levels", json!(["a", "u1"]), "l1".to_owned()));
    points.push(("emptied", json!(["p1"]), "i1".to_owned()));
    points
}

/// Creates that answer 409.
pub fn refused() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("unique", json!(["u"]), json!({"id": "other", "pk": "u", "email": "a@example.org", "a": 9})),
        (
            "unique",
            json!(["u"]),
            json!({"id": "other", "pk": "u", "email": "z@example.org", "a": 1, "b": {"c": "x"}}),
        ),
        (
            "unique",
            json!(["u"]),
            json!({"id": "other", "pk": "u", "email": "l@example.org", "a": "y".repeat(400)}),
        ),
        ("v1", json!([long_key("-b")]), json!({"id": "long", "pk": long_key("-b")})),
        ("plain", json!(["p7"]), json!({"id": "i7", "pk": "p7"})),
    ]
}

/// Lets a server live, stop, live and be killed.
pub fn directory(binary: &Path, data: &Path) {
    let server = Server::start_on(binary, data, &OPTIONS);
    let mut maker = Maker(Client::new(server.port()));
    maker.first_life();
    server.stop();
    let server = Server::start_on(binary, data, &OPTIONS);
    let mut maker = Maker(Client::new(server.port()));
    maker.second_life();
    kill_under_writes(server, maker);
    assert_half_built(data);
}

/// What a server of the same build answers about a copy.
pub fn expect(binary: &Path, data: &Path, copy: &Path) -> Value {
    let history = history::read(data);
    crate::run(std::process::Command::new("cp").arg("-r").arg(data).arg(copy));
    let server = Server::start_on(binary, copy, &OPTIONS);
    // The short lives are over, and the index is whole.
    std::thread::sleep(Duration::from_secs(3));
    let answers = Answers::record(server.port());
    server.stop();
    fs::remove_dir_all(copy).expect("our own folder");
    json!({"history": history, "answers": answers})
}

/// Some index must be under construction, and have come somewhere.
pub fn assert_half_built(data: &Path) {
    let engine = Engine::inspect(&DiskOptions::new(data)).engine.expect("the directory opens");
    let bounds = (Bound::Included(&b"B"[..]), Bound::Excluded(&b"C"[..]));
    let mut builds = engine.snapshot().range(Keyspace::Meta, bounds.0, bounds.1, false);
    let is_half = |value: &[u8]| value.get(12) == Some(&1);
    assert!(builds.any(|entry| is_half(&entry.expect("it reads back").1)), "no index is half-built");
}

struct Maker(Client);

impl Maker {
    fn send(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.0.send(verb, path, headers, body.as_bytes()).expect("the server is up");
        assert!(
            reply.status < 300,
            "{verb} {path}: {} {}",
            reply.status,
            String::from_utf8_lossy(&reply.body)
        );
        reply
    }

    fn container(&mut self, id: &str, throughput: &str, more: Value) {
        let mut body = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let more = more.as_object().expect("members").clone();
        body.as_object_mut().expect("an object").extend(more);
        let headers = [("x-ms-offer-throughput", throughput)];
        self.send("POST", &format!("{DATABASE}/colls"), &headers, &body);
    }

    fn put(&mut self, container: &str, key: &Value, body: &Value) -> Reply {
        let key = ascii(key);
        let headers = [("x-ms-documentdb-partitionkey", &key[..]), ("x-ms-documentdb-is-upsert", "true")];
        self.send("POST", &format!("{DATABASE}/colls/{container}/docs"), &headers, body)
    }

    fn delete(&mut self, container: &str, key: &Value, id: &str) {
        let key = ascii(key);
        let headers = [("x-ms-documentdb-partitionkey", &key[..])];
        self.send("DELETE", &format!("{DATABASE}/colls/{container}/docs/{id}"), &headers, &Value::Null);
    }

    /// Items of many kinds of values.
    fn fill(&mut self, container: &str, numbers: std::ops::Range<u64>) {
        for n in numbers {
            let pk = format!("p{}", n % 11);
            let body = json!({
                "id": format!("i{n}"), "pk": pk, "n": n, "name": format!("name-{n}"), "city": format!("city-{}", n % 7),
                "nested": {"flag": n % 2 == 0, "half": n as f64 / 2.0, "none": null}, "tags": [format!("t{}", n % 5), n, {}],
                "text": format!("é\u{1F680}\u{0}\"{n}"), "large": 9_007_199_254_740_993_u64 + n, "small": -1.5e-300,
            });
            self.put(container, &json!([pk]), &body);
        }
    }

    fn split(&mut self, container: &str, range: &str) {
        let path = format!("{MANAGE}/{container}/partitions/{range}/split");
        self.send("POST", &path, &[], &json!({"children": 2}));
    }

    fn wait_for_job(&mut self, id: &str, state: &str, phase: &str) {
        eventually("the job comes so far", || {
            let job = self.send("GET", &format!("/_orrery/jobs/{id}"), &[], &Value::Null).json();
            job["state"] == state && (phase.is_empty() || job["phase"] == phase)
        });
    }

    fn first_life(&mut self) {
        self.send("POST", "/dbs", &[], &json!({"id": "old"}));
        self.definitions();
        self.fill("plain", 0..60);
        self.split("plain", "0");
        self.fill("plain", 50..80);
        self.fill("merged", 0..40);
        self.split("merged", "0");
        self.fill("merged", 40..60);
        self.send(
            "POST",
            &format!("{MANAGE}/merged/partitions/merge"),
            &[],
            &json!({"left": "1", "right": "2"}),
        );
        self.fill("emptied", 0..5);
        (0..5).for_each(|n| self.delete("emptied", &json!([format!("p{n}")]), &format!("i{n}")));
        self.split("empty", "0");
        self.keys();
        self.scripts_and_users();
        self.fill("versions", 0..12);
        self.split("versions", "0");
        let copy = json!({"kind": "copy", "source": {"database": "old", "container": "plain"},
            "target": {"database": "old", "container": "copied"}, "completesItself": true});
        let job = self.send("POST", "/_orrery/jobs", &[], &copy).json();
        self.wait_for_job(job["id"].as_str().expect("an id"), "completed", "");
        self.load("building", 0..4_000);
    }

    fn definitions(&mut self) {
        for plain in
            ["plain", "copied", "paused", "merged", "followed", "scripts", "emptied", "building", "journal"]
        {
            self.container(plain, "400", json!({}));
        }
        self.container("empty", "12000", json!({}));
        self.container("versions", "400", json!({"changeFeedPolicy": {"retentionDuration": 43_200}}));
        self.container("ttl", "400", json!({"defaultTtl": 2_000_000_000}));
        let unique = json!({"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/a", "/b/c"]}]});
        self.container("unique", "400", json!({"uniqueKeyPolicy": unique}));
        self.container(
            "v1",
            "400",
            json!({"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 1}}),
        );
        let levels = json!({"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2});
        self.container("levels", "400", json!({"partitionKey": levels}));
    }

    /// Keys of all kinds, unique values, and lives of all lengths.
    fn keys(&mut self) {
        for (n, end) in ["-a", "-b"].into_iter().enumerate() {
            let id = if n == 0 { "long" } else { "long-b" };
            self.put("v1", &json!([long_key(end)]), &json!({"id": id, "pk": long_key(end), "n": n}));
        }
        for (n, (key, id)) in
            [(json!(3), "three"), (json!(null), "null"), (json!(true), "yes"), (json!("é"), "text")]
                .into_iter()
                .enumerate()
        {
            self.put("v1", &json!([key]), &json!({"id": id, "pk": key, "n": 10 + n}));
        }
        self.put("v1", &json!([{}]), &json!({"id": "none", "n": 20}));
        for n in 0..10 {
            let (tenant, user) = (if n < 6 { "a" } else { "b" }, format!("u{}", n % 3));
            self.put(
                "levels",
                &json!([tenant, user]),
                &json!({"id": format!("l{n}"), "tenant": tenant, "user": user, "n": n}),
            );
        }
        self.put(
            "unique",
            &json!(["u"]),
            &json!({"id": "one", "pk": "u", "email": "a@example.org", "a": 1, "b": {"c": "x"}}),
        );
        self.put(
            "unique",
            &json!(["u"]),
            &json!({"id": "two", "pk": "u", "email": "b@example.org", "a": "y".repeat(400)}),
        );
        self.put(
            "unique",
            &json!(["w"]),
            &json!({"id": "one", "pk": "w", "email": "a@example.org", "a": 1, "b": {"c": "x"}}),
        );
        for (id, ttl) in [("mine", json!(2_000_000_000)), ("never", json!(-1)), ("short", json!(1))] {
            self.put("ttl", &json!(["t"]), &json!({"id": id, "pk": "t", "ttl": ttl}));
        }
        self.put("ttl", &json!(["t"]), &json!({"id": "default", "pk": "t"}));
    }

    fn scripts_and_users(&mut self) {
        let procedure = "function (key) { var c = getContext().getCollection(); c.queryDocuments(c.getSelfLink(), \
            'SELECT VALUE c.id FROM c', {}, function (error, found) { getContext().getResponse().setBody(found); }); }";
        let base = format!("{DATABASE}/colls/scripts");
        self.fill("scripts", 0..30);
        self.send("POST", &format!("{base}/sprocs"), &[], &json!({"id": "count", "body": procedure}));
        self.send(
            "POST",
            &format!("{base}/udfs"),
            &[],
            &json!({"id": "twice", "body": "function (x) { return 2 * x; }"}),
        );
        let trigger = json!({"id": "before", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"});
        self.send("POST", &format!("{base}/triggers"), &[], &trigger);
        self.send("POST", &format!("{DATABASE}/users"), &[], &json!({"id": "anna"}));
        let permission = json!({"id": "reads", "permissionMode": "Read", "resource": "dbs/old/colls/plain"});
        self.send("POST", &format!("{DATABASE}/users/anna/permissions"), &[], &permission);
    }

    /// Many small items, in batches.
    fn load(&mut self, container: &str, numbers: std::ops::Range<u64>) {
        let path = format!("{DATABASE}/colls/{container}/docs");
        let numbers: Vec<u64> = numbers.collect();
        for (key, numbers) in numbers.chunks(100).enumerate() {
            let pk = format!("b{key}");
            let item =
                |n: &u64| json!({"id": format!("i{n}"), "pk": pk, "n": n, "city": format!("city-{}", n % 7)});
            let op = |n| json!({"operationType": "Create", "resourceBody": item(n)});
            let header = json!([pk]).to_string();
            let headers = [
                ("x-ms-documentdb-partitionkey", header.as_str()),
                ("x-ms-cosmos-is-batch-request", "True"),
                ("x-ms-cosmos-batch-atomic", "True"),
            ];
            self.send("POST", &path, &headers, &numbers.iter().map(op).collect());
        }
    }

    /// What only the journal holds in the end.
    fn second_life(&mut self) {
        self.fill("plain", 70..100);
        self.split("plain", "2");
        self.fill("plain", 95..110);
        self.fill("versions", 6..20);
        (6..9).for_each(|n| self.delete("versions", &json!([format!("p{}", n % 11)]), &format!("i{n}")));
        self.fill("followed", 0..60);
        let copy = json!({"kind": "copy", "source": {"database": "old", "container": "followed"},
            "target": {"database": "old", "container": "paused"}, "rate": 40});
        let job = self.send("POST", "/_orrery/jobs", &[], &copy).json();
        let id = job["id"].as_str().expect("an id").to_owned();
        self.wait_for_job(&id, "running", "");
        self.send("POST", &format!("/_orrery/jobs/{id}/pause"), &[], &Value::Null);
        self.wait_for_job(&id, "paused", "");
        self.fill("followed", 50..70);
        self.put("ttl", &json!(["t"]), &json!({"id": "shortest", "pk": "t", "ttl": 1}));
    }

    /// Asks for another index, which is built from then on.
    fn change_policy(&mut self) {
        let policy = json!({"indexingMode": "consistent", "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/n/?"}], "compositeIndexes": [[{"path": "/city"}, {"path": "/n"}]]});
        let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
        let body = json!({"id": "building", "partitionKey": key, "indexingPolicy": policy});
        self.send("PUT", &format!("{DATABASE}/colls/building"), &[], &body);
    }
}

/// Kills the server while an index is built and four clients write, and checks that what they were told is true.
fn kill_under_writes(server: Server, mut maker: Maker) {
    let (port, stop) = (server.port(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let stop = &stop;
            scope.spawn(move || {
                let mut client = Client::new(port);
                for n in 0.. {
                    let n = n * 4 + writer;
                    let key = format!("p{}", n % 11);
                    let body = json!({"id": format!("i{n}"), "pk": key, "n": n}).to_string();
                    let key = json!([key]).to_string();
                    let headers = [("x-ms-documentdb-partitionkey", &key[..])];
                    let path = format!("{DATABASE}/colls/journal/docs");
                    if client.send("POST", &path, &headers, body.as_bytes()).is_err() {
                        return;
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(150));
        maker.change_policy();
        // A few steps of sixteen.
        std::thread::sleep(Duration::from_millis(10));
        server.kill();
        stop.store(true, Ordering::Relaxed);
    });
}

/// Writes to what was stored, and splits and merges it further.
pub fn go_on(port: u16) {
    let mut maker = Maker(Client::new(port));
    maker.fill("plain", 40..120);
    maker.delete("plain", &json!(["p3"]), "i3");
    maker.split("plain", "1");
    maker.fill("merged", 50..65);
    maker.split("merged", "3");
    maker.fill("merged", 0..5);
    maker.fill("empty", 0..30);
    maker.fill("emptied", 0..5);
    maker.fill("versions", 15..25);
    maker.put("unique", &json!(["u"]), &json!({"id": "one", "pk": "u", "email": "c@example.org", "a": 2}));
    maker.put("unique", &json!(["u"]), &json!({"id": "three", "pk": "u", "email": "a@example.org", "a": 3}));
    maker.put("v1", &json!([long_key("-b")]), &json!({"id": "long-b", "pk": long_key("-b"), "n": 99}));
}

/// Whether what was written on top is there.
pub fn went_on(port: u16) {
    let mut client = Client::new(port);
    let mut read = |container: &str, key: &str, id: &str| {
        let key = json!([key]).to_string();
        let path = format!("{DATABASE}/colls/{container}/docs/{id}");
        let reply = client.send("GET", &path, &[("x-ms-documentdb-partitionkey", &key)], b"");
        reply.expect("the server is up")
    };
    for n in 0..120_u64 {
        let status = read("plain", &format!("p{}", n % 11), &format!("i{n}")).status;
        assert_eq!(status, if n == 3 { 404 } else { 200 }, "item {n}");
    }
    for (container, items) in [("merged", 65), ("empty", 30), ("emptied", 5)] {
        for n in 0..items {
            assert_eq!(
                read(container, &format!("p{}", n % 11), &format!("i{n}")).status,
                200,
                "{container} {n}"
            );
        }
    }
    assert_eq!(read("unique", "u", "three").json()["email"], "a@example.org");
    assert_eq!(read("v1", &long_key("-b"), "long-b").json()["n"], 99);
    assert_eq!(read("v1", &long_key("-a"), "long").json()["n"], 0);
}
