//! Copying and re-keying containers of a real server while clients write, through kills; and items through files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use orrery_testkit::{Client, Crowd, Field, Model, Server, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const ITEMS: u64 = 3_000;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

/// A server that can be killed and started again on the same data.
struct World {
    folder: TempDir,
    server: Option<Server>,
    port: Arc<AtomicU16>,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut world = World { folder, server: None, port: Arc::default() };
        world.start();
        world.post("/dbs", json!({"id": "d"}));
        world
    }

    fn start(&mut self) {
        let data = self.folder.path().join("data");
        let server = Server::try_start_on(binary(), &data, &["--no-throttle"]);
        let server = server.unwrap_or_else(|said| panic!("{said}"));
        self.port.store(server.port(), Ordering::Relaxed);
        self.server = Some(server);
    }

    fn kill(&mut self) {
        self.server.take().expect("it runs").kill();
        self.start();
    }

    fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    fn ask(&self, verb: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let throughput = [("x-ms-offer-throughput", "12000")];
        let headers = if path.ends_with("/colls") { &throughput[..] } else { &[] };
        let reply = Client::new(self.port()).send(verb, path, headers, body.as_bytes());
        let reply = reply.expect("the server is there");
        (reply.status, reply.json())
    }

    fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask("POST", path, &body);
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }

    fn container(&self, id: &str, paths: &[&str]) {
        let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
        self.post(
            "/dbs/d/colls",
            json!({"id": id, "partitionKey": {"paths": paths, "kind": kind, "version": 2}}),
        );
    }

    fn job(&self, id: &str) -> Value {
        self.ask("GET", &format!("/_orrery/jobs/{id}"), &Value::Null).1
    }

    #[track_caller]
    fn wait(&self, id: &str, what: impl Fn(&Value) -> bool) -> Value {
        wait_for(|| {
            let job = self.job(id);
            if what(&job) { Ok(job) } else { Err(format!("the job does not come on: {job}")) }
        })
    }

    fn command(&self, line: &[&str]) -> Output {
        let endpoint = format!("http://127.0.0.1:{}/", self.port());
        let mut command = Command::new(binary());
        command.args(line).env("ORRERY_ENDPOINT", endpoint);
        command.output().expect("the binary runs")
    }

    fn run(&self, line: &[&str]) -> String {
        let output = self.command(line);
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn field() -> Field {
    Field { database: "d".into(), container: "c".into(), items: ITEMS }
}

fn is_over(job: &Value) -> bool {
    matches!(job["state"].as_str(), Some("completed" | "failed" | "cancelled"))
}

#[test]
fn a_copy_and_a_new_key_are_exact_under_writes_and_kills() {
    let mut world = World::new();
    let field = field();
    world.container("c", &["/pk"]);
    world.container("t", &["/city"]);
    field.load(world.port(), 4);
    let crowd = Crowd::start(&field, world.port.clone(), 4, 1_000.0);
    let body = json!({"kind": "copy", "rate": 3_000,
        "source": {"database": "d", "container": "c"}, "target": {"database": "d", "container": "t"}});
    let id = world.post("/_orrery/jobs", body)["id"].as_str().expect("an id").to_owned();
    world.wait(&id, |job| job["itemsCopied"].as_u64() > Some(ITEMS / 3));
    world.kill();
    let job = world.wait(&id, |job| job["itemsCopied"].as_u64() > Some(ITEMS / 2));
    assert_eq!(job["state"], "running", "{job}");
    world.post(&format!("/_orrery/jobs/{id}/pause"), Value::Null);
    assert_eq!(world.job(&id)["state"], "paused");
    world.post(&format!("/_orrery/jobs/{id}/resume"), Value::Null);
    world.wait(&id, |job| job["phase"] == "following");
    world.kill();
    let model = crowd.stop();
    world.post(&format!("/_orrery/jobs/{id}/complete"), Value::Null);
    let job = world.wait(&id, is_over);
    assert_eq!((&job["state"], &job["percent"]), (&json!("completed"), &json!(100.0)), "{job}");
    assert!(job["cutOver"]["lsns"][0]["lsn"].as_u64() > Some(0), "{job}");
    assert_eq!(field.compare(&field.read(world.port(), "c"), &model), Vec::<String>::new(), "the source");
    assert_eq!(field.compare(&field.read(world.port(), "t"), &model), Vec::<String>::new(), "the copy");
    rekey(&mut world, &field, model);
}

/// The same container gets another key, while clients write before, during and after.
fn rekey(world: &mut World, field: &Field, mut model: Model) {
    let before = world.ask("GET", "/dbs/d/colls/c", &Value::Null).1;
    let crowd = Crowd::start_with(field, world.port.clone(), 4, 1_000.0, &model);
    let body = json!({"kind": "rekey", "rate": 3_000, "completesItself": false,
        "container": {"database": "d", "container": "c"},
        "partitionKey": {"paths": ["/region", "/pk"], "kind": "MultiHash", "version": 2}});
    let id = world.post("/_orrery/jobs", body)["id"].as_str().expect("an id").to_owned();
    let listed = world.ask("GET", "/dbs/d/colls", &Value::Null).1;
    assert_eq!(listed["_count"], 2, "what is in the making is not listed: {listed}");
    world.wait(&id, |job| job["itemsCopied"].as_u64() > Some(ITEMS / 3));
    world.kill();
    world.post(&format!("/_orrery/jobs/{id}/complete"), Value::Null);
    let job = world.wait(&id, is_over);
    assert_eq!(job["state"], "completed", "{job}");
    std::thread::sleep(Duration::from_millis(300));
    model.extend(crowd.stop());
    let after = world.ask("GET", "/dbs/d/colls/c", &Value::Null).1;
    assert_eq!(after["partitionKey"]["paths"], json!(["/region", "/pk"]));
    assert_ne!(after["_rid"], before["_rid"]);
    assert_eq!(field.compare(&field.read(world.port(), "c"), &model), Vec::<String>::new());
    world.kill();
    let kept = world.ask("GET", "/dbs/d/colls/c", &Value::Null).1;
    assert_eq!(kept["_rid"], after["_rid"]);
    assert_eq!(field.compare(&field.read(world.port(), "c"), &model), Vec::<String>::new());
    let data = world.folder.path().join("data");
    world.server.take().expect("it runs").stop();
    let verified = Command::new(binary()).args(["verify", "--data-dir"]).arg(data).output().expect("it runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// Creates an item with the same value in the old and in the new key.
const ADD: &str = "function (id) {
    var c = getContext().getCollection();
    var ok = c.createDocument(c.getSelfLink(), { id: id, pk: 1, city: 1 }, function (e) { if (e) throw e; });
    if (!ok) throw new Error('not accepted');
}";
const STAMP: &str = "function () {
    var r = getContext().getRequest(), item = r.getBody();
    item.stamped = true;
    r.setBody(item);
}";
/// Operations that there are at least, and how often the key changes meanwhile.
const SCRIPTED_MIN: u64 = 900;
const CUT_OVERS: usize = 6;

/// Half of the clients call a procedure, half have a trigger change what they write; none may notice when the key changes.
fn run_scripts(port: u16, client: u64, is_over: &AtomicBool, done: &AtomicU64) {
    let mut connection = Client::new(port);
    let key = ("x-ms-documentdb-partitionkey", "[1]");
    let stamped = [key, ("x-ms-documentdb-pre-trigger-include", "stamp")];
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let id = format!("{client}-{number}");
        let item = json!({"id": id, "pk": 1, "city": 1}).to_string();
        let reply = match client % 2 {
            0 => connection.send(
                "POST",
                "/dbs/d/colls/c/sprocs/add",
                &[key],
                json!([id]).to_string().as_bytes(),
            ),
            _ => connection.send("POST", "/dbs/d/colls/c/docs", &stamped, item.as_bytes()),
        };
        let reply = reply.expect("the server is there");
        // A script that others overtake too often is told so; that has nothing to do with the key.
        let is_fine = matches!(reply.status, 200 | 201 | 429 | 449);
        let text = String::from_utf8_lossy(&reply.body);
        assert!(is_fine, "client {client}: {}/{} {text}", reply.status, reply.sub_status());
        done.fetch_add(u64::from(reply.status < 300), Ordering::Relaxed);
    }
}

#[test]
fn no_procedure_and_no_trigger_notices_a_new_key() {
    let world = World::new();
    world.container("c", &["/pk"]);
    world.post("/dbs/d/colls/c/sprocs", json!({"id": "add", "body": ADD}));
    let trigger = json!({"id": "stamp", "body": STAMP, "triggerType": "Pre", "triggerOperation": "All"});
    world.post("/dbs/d/colls/c/triggers", trigger);
    let (is_over, done, port) = (AtomicBool::new(false), AtomicU64::new(0), world.port());
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        for client in 0..8 {
            let (is_over, done) = (&is_over, &done);
            scope.spawn(move || run_scripts(port, client, is_over, done));
        }
        for path in ["/city", "/pk"].into_iter().cycle().take(CUT_OVERS) {
            let before = done.load(Ordering::Relaxed);
            let body = json!({"kind": "rekey", "container": {"database": "d", "container": "c"},
                "partitionKey": {"paths": [path], "kind": "Hash", "version": 2}});
            let id = world.post("/_orrery/jobs", body)["id"].as_str().expect("an id").to_owned();
            let job = world.wait(&id, self::is_over);
            assert_eq!(job["state"], "completed", "{job}");
            let part = SCRIPTED_MIN / CUT_OVERS as u64;
            wait_for(|| match done.load(Ordering::Relaxed) - before {
                more if more >= part => Ok(()),
                more => Err(format!("{more} operations in a round")),
            });
        }
    });
    let done = done.load(Ordering::Relaxed);
    println!("{done} operations over {CUT_OVERS} changes of the key");
    assert!(done >= SCRIPTED_MIN);
    let headers = [
        ("x-ms-documentdb-isquery", "true"),
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-partitionkey", "[1]"),
    ];
    let query = json!({"query": "SELECT VALUE COUNT(1) FROM c"}).to_string();
    let counted = Client::new(port).send("POST", "/dbs/d/colls/c/docs", &headers, query.as_bytes());
    let counted = counted.expect("the server is there").json();
    assert_eq!(counted["Documents"], json!([done]), "each was carried out once");
}

/// Lets the clients go home, also where the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_command_line_shows_jobs_and_refuses_collisions() {
    let world = World::new();
    world.container("c", &["/pk"]);
    world.container("t", &["/city"]);
    for (pk, id) in [("a", "1"), ("b", "1"), ("a", "2")] {
        let key = json!([pk]).to_string();
        let body = json!({"id": id, "pk": pk, "city": "x"}).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        let reply = Client::new(world.port()).send("POST", "/dbs/d/colls/c/docs", &headers, body.as_bytes());
        assert_eq!(reply.expect("the server is there").status, 201);
    }
    let refused = world.command(&["rekey", "d/c", "--key-path", "/city"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("\"count\": 1") && said.contains("sameId"), "{said}");
    let done = world.run(&["rekey", "d/c", "--key-path", "/city", "--key-path", "/pk"]);
    assert!(done.contains("completed: 3 of 3 items") && done.contains("heldMs"), "{done}");
    let failed = world.command(&["job", "create", "--from", "d/c", "--to", "d/t", "--rate", "100"]);
    assert!(!failed.status.success(), "two items have the same id and city");
    world.container("u", &["/pk"]);
    let waiting = world.run(&["job", "create", "--from", "d/c", "--to", "d/u"]);
    assert!(waiting.contains("waiting: orrery job complete job-000004"), "{waiting}");
    let done = world.run(&["job", "complete", "job-000004", "--watch"]);
    assert!(done.contains("completed") && done.contains("lsns"), "{done}");
    let list = world.run(&["job", "list"]);
    assert_eq!(list.lines().count(), 5, "{list}");
    assert!(list.contains("rekey") && list.contains("failed") && list.contains("d/c -> d/u"), "{list}");
    world.run(&["job", "delete", "job-000001"]);
    assert!(!world.command(&["job", "show", "job-000001"]).status.success());
    let (status, answer) = world.ask("POST", "/_orrery/jobs", &json!({"kind": "copy", "source": 1}));
    assert_eq!((status, answer["code"].as_str()), (400, Some("BadRequest")), "{answer}");
}

#[test]
fn items_come_back_from_files_as_they_were() {
    let world = World::new();
    let field = field();
    world.container("c", &["/pk"]);
    world.container("t", &["/city", "/pk"]);
    field.load(world.port(), 4);
    let file = |name: &str| -> PathBuf { world.folder.path().join(name) };
    let (lines, array) = (file("items.jsonl"), file("items.json"));
    let place = ["--database", "d", "--container", "c"];
    let export = |out: &Path, format: &str| {
        let out = out.to_str().expect("a path is text");
        world.run(&[&["export", "--out", out, "--format", format], &place[..]].concat());
    };
    export(&lines, "jsonl");
    export(&array, "array");
    let text = std::fs::read_to_string(&lines).expect("the file is there");
    assert_eq!(text.lines().count() as u64, ITEMS);
    assert!(!text.contains("_rid"), "what the server adds stays there");
    let parsed: Vec<Value> =
        serde_json::from_slice(&std::fs::read(&array).expect("it is there")).expect("JSON");
    assert_eq!(parsed.len() as u64, ITEMS);
    // An import that broke off behind the first thousand lines goes on there.
    let offset: usize = text.lines().take(1_000).map(|line| line.len() + 1).sum();
    let before =
        ring::digest::digest(&ring::digest::SHA256, &text.as_bytes()[offset.saturating_sub(4096)..offset]);
    let before: String = before.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let endpoint = format!("http://127.0.0.1:{}/", world.port());
    let state =
        json!({"endpoint": endpoint, "database": "d", "container": "t", "offset": offset, "before": before});
    std::fs::write(file("items.jsonl.import-state"), state.to_string()).expect("it can be written");
    let import = |file: &Path| {
        let file = file.to_str().expect("a path is text");
        world.run(&["import", "--database", "d", "--container", "t", file]);
    };
    import(&lines);
    assert_eq!(field.read(world.port(), "t").len() as u64, ITEMS - 1_000);
    assert!(!file("items.jsonl.import-state").exists(), "a complete import needs no state");
    import(&array);
    assert_eq!(field.compare(&field.read(world.port(), "t"), &Model::new()), Vec::<String>::new());
    // An export that broke off is cut to what counts and goes on.
    let half: usize = text.lines().take(500).map(|line| line.len() + 1).sum();
    let everything = json!([{"number": 0, "min": "", "max": "FF", "continuation": null, "is_done": false}]);
    let state = json!({"endpoint": endpoint, "database": "d", "container": "c", "is_array": false, "bytes": half, "items": 500, "parts": everything});
    std::fs::write(file("items.jsonl.export-state"), state.to_string()).expect("it can be written");
    export(&lines, "jsonl");
    let again = std::fs::read_to_string(&lines).expect("the file is there");
    assert_eq!(again.lines().count() as u64, ITEMS + 500);
    assert!(again.starts_with(&text[..half]));
    let missing = world.command(&["export", "--database", "d", "--container", "none", "--out", "-"]);
    assert!(!missing.status.success());
}
