//! What the server tells of its partitions: by the management API, the metrics page, alerts, and in a terminal.

mod collector;
mod otlp;
mod terminal;
mod world;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use orrery_testkit::{Client, PATIENCE};
use serde_json::{Value, json};
use terminal::Terminal;
use world::{Load, World, binary};

fn sum(values: &Value) -> f64 {
    values.as_array().into_iter().flatten().filter_map(Value::as_f64).sum()
}

#[test]
fn requests_of_the_management_api_are_signed_and_refused_like_others() {
    let mut world = World::start(&[]);
    world.container("c d ä", 400);
    let unsigned = world.client.send_raw("GET", "/_orrery/containers", &[], b"").expect("an answer");
    assert_eq!((unsigned.status, unsigned.json()["code"].as_str()), (401, Some("Unauthorized")));
    let long = format!("/_orrery/{}", "x".repeat(20_000));
    for (verb, path, body, status, code) in [
        ("GET", "/_orrery/nothing", "", 404, "NotFound"),
        ("GET", "/_orrery/dbs/db/colls/none/partitions", "", 404, "NotFound"),
        ("GET", "/_orrery/dbs/none/colls/c/keys", "", 404, "NotFound"),
        ("DELETE", "/_orrery/containers", "", 405, "MethodNotAllowed"),
        ("POST", "/_orrery/alerts", "", 405, "MethodNotAllowed"),
        ("POST", "/_orrery/server", "", 405, "MethodNotAllowed"),
        ("GET", "/_orrery/dbs/db/colls/c%20d%20%C3%A4/heat?window=day", "", 400, "BadRequest"),
        ("GET", "/_orrery/dbs/db/colls/c%20d%20%C3%A4/keys?count=0", "", 400, "BadRequest"),
        ("POST", "/_orrery/dbs/db/colls/c%20d%20%C3%A4/partitions/0/split", "[1", 400, "BadRequest"),
        ("POST", "/_orrery/dbs/db/colls/c%20d%20%C3%A4/partitions/x/split", "", 400, "BadRequest"),
        (
            "POST",
            "/_orrery/dbs/db/colls/c%20d%20%C3%A4/partitions/0/split",
            r#"{"children":1}"#,
            400,
            "BadRequest",
        ),
        (
            "POST",
            "/_orrery/dbs/db/colls/c%20d%20%C3%A4/partitions/merge",
            r#"{"left":"0"}"#,
            400,
            "BadRequest",
        ),
        ("GET", "/_orrery/%FF", "", 400, "BadRequest"),
        ("GET", long.as_str(), "", 400, "BadRequest"),
    ] {
        let reply = world.client.send(verb, path, &[], body.as_bytes()).expect("an answer");
        let (code_sent, message) = (&reply.json()["code"], &reply.json()["message"]);
        assert_eq!((reply.status, code_sent.as_str()), (status, Some(code)), "{verb} {path}: {message}");
        assert!(message.is_string() && !message.as_str().unwrap_or_default().is_empty(), "{verb} {path}");
        assert_eq!(reply.header("allow").is_some(), status == 405, "{verb} {path}");
    }
    let list = world.get("/_orrery/dbs/db/colls/c%20d%20%C3%A4/partitions");
    assert_eq!(list["container"], "c d ä");
}

#[test]
fn the_server_tells_its_ports_and_budgets() {
    let mut world = World::start(&["--partition-throughput", "2000", "--account-name", "mine"]);
    let told = world.get("/_orrery/server");
    assert_eq!(told["account"], "mine");
    assert_eq!(told["limits"]["partitionThroughput"], 2_000);
    // What a container of this throughput gets: 1,200 for each of its partitions.
    assert_eq!(told["limits"]["newPartitionThroughput"], 1_200.0);
    world.container("c", 2_500);
    let partitions = world.get("/_orrery/dbs/db/colls/c/partitions");
    assert_eq!(partitions["partitions"].as_array().map(Vec::len), Some(3));
    assert!(told["ports"]["nosql"].as_u64().is_some_and(|port| port > 0), "{told}");
}

#[test]
fn partitions_keys_and_heat_tell_what_was_done() {
    let mut world = World::start(&["--no-throttle"]);
    world.container("c", 24_000);
    for n in 0..40 {
        assert_eq!(world.create("c", &format!("k{n}"), "a", 100).status, 201);
    }
    for n in 0..100 {
        let key = if n % 2 == 0 { "k7".to_owned() } else { format!("k{}", n % 40) };
        assert_eq!(world.read("c", &key, "a").status, 200);
    }
    let at = "/_orrery/dbs/db/colls/c";
    let seen =
        world.wait_for(&format!("{at}/partitions"), |answer| answer["whole"]["total"]["requests"] == 140);
    let partitions = seen["partitions"].as_array().expect("partitions");
    assert_eq!(partitions.len(), 4);
    let total =
        |name: &str| partitions.iter().map(|one| sum(&json!([one["use"]["total"][name]]))).sum::<f64>();
    assert_eq!(total("requests"), 140.0);
    assert!((total("requestUnits") - sum(&json!([seen["whole"]["total"]["requestUnits"]]))).abs() < 0.01);
    assert_eq!(partitions.iter().filter_map(|one| one["items"].as_u64()).sum::<u64>(), 40);
    assert_eq!((partitions[0]["from"].as_f64(), partitions[3]["to"].as_f64()), (Some(0.0), Some(1.0)));
    for window in ["minute", "hour", "day"] {
        let seen = world.get(&format!("{at}/partitions?window={window}"));
        assert_eq!(sum(&seen["whole"]["slots"]["requests"]), 140.0, "{window}");
    }
    // Of an hour, since a slow machine may have begun in the minute before, of which only a part counts.
    let keys = world.get(&format!("{at}/keys?window=hour"));
    assert_eq!(keys["hottest"][0]["partitionKey"], json!(["k7"]), "{keys}");
    // 51, less a part of those in the hour before if that has just ended.
    assert!(keys["hottest"][0]["requests"].as_f64() > Some(40.0), "{keys}");
    assert_eq!(world.get(&format!("{at}/keys"))["hottest"][0]["partitionKey"], json!(["k7"]));
    assert_eq!(keys["largest"].as_array().map(Vec::len), Some(20));
    assert!(keys["largest"][0]["bytes"].as_u64() > Some(100), "{keys}");
    for window in ["minute", "hour"] {
        let heat = world.get(&format!("{at}/heat?window={window}"));
        let partitions = heat["partitions"].as_array().expect("partitions");
        let rows = partitions.iter().flat_map(|one| one["requests"].as_array().expect("rows"));
        assert_eq!(rows.map(sum).sum::<f64>(), 140.0, "{window}");
    }
    let listed = Command::new(binary())
        .args(["partition", "list", "--endpoint", &world.endpoint(), "--database", "db", "--container", "c"])
        .output()
        .expect("the binary runs");
    let table = String::from_utf8_lossy(&listed.stdout);
    assert_eq!(table.lines().count(), 5, "{table}{}", String::from_utf8_lossy(&listed.stderr));
}

/// Takes webhooks and hands on their bodies.
fn webhook() -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/alerts?from=test", listener.local_addr().expect("an address"));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                request.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&request).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).expect("a body");
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("an answer");
            assert!(head.starts_with("post /alerts?from=test "), "{head}");
            if sender.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

#[test]
fn alerts_are_listed_counted_and_sent() {
    let (url, sent) = webhook();
    let mut world = World::start(&[
        "--logical-partition-bytes",
        "64KiB",
        "--alert-logical-partition-percent",
        "50",
        "--alert-webhook",
        &url,
    ]);
    world.container("c", 400);
    // It nearly fills the logical partition, and costs so much that the debt outlasts the requests that follow.
    let op = |n: u32| {
        let body = json!({"id": n.to_string(), "pk": "big", "fill": "x".repeat(400)});
        json!({"operationType": "Upsert", "resourceBody": body})
    };
    let batch = Value::from((0..100).map(op).collect::<Vec<_>>()).to_string();
    let headers = [
        ("x-ms-documentdb-partitionkey", "[\"big\"]"),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-atomic", "True"),
    ];
    let mut refused = 0;
    for _ in 0..400 {
        let reply = world.client.send("POST", "/dbs/db/colls/c/docs", &headers, batch.as_bytes());
        refused += u32::from(reply.expect("an answer").status == 429);
        if refused == 60 {
            break;
        }
    }
    assert_eq!(refused, 60, "so many writes cost more than 400 RU");
    world.wait_for("/_orrery/alerts", |answer| {
        answer["alerts"].as_array().is_some_and(|list| list.len() == 2)
    });
    let mut received = Vec::new();
    for _ in 0..2 {
        let alert = sent.recv_timeout(PATIENCE).expect("the webhook is called");
        assert_eq!((alert["state"].as_str(), alert["container"].as_str()), (Some("raised"), Some("c")));
        received.push((alert["kind"].as_str().unwrap_or_default().to_owned(), alert["partitionKey"].clone()));
    }
    received.sort_by(|a, b| a.0.cmp(&b.0));
    let expected =
        [("logical-partition-near-limit".to_owned(), json!(["big"])), ("throttling".to_owned(), Value::Null)];
    assert_eq!(received, expected);
    let page = world.client.send("GET", "/metrics", &[], b"").expect("an answer");
    let page = String::from_utf8_lossy(&page.body).into_owned();
    for line in [
        "orrery_alerts{kind=\"throttling\"} 1",
        "orrery_alerts{kind=\"hot-partition\"} 0",
        "orrery_alerts_raised_total{kind=\"logical-partition-near-limit\"} 1",
        "orrery_partitions_without_metrics 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let labels = "{database=\"db\",container=\"c\",range=\"0\"}";
    let requests = page.lines().find_map(|line| {
        line.strip_prefix(&format!("orrery_partition_requests_total{labels} "))?.parse::<u64>().ok()
    });
    assert!(requests > Some(0), "{page}");
}

#[test]
fn accounting_can_be_switched_off() {
    let mut world = World::start(&["--insight", "off"]);
    world.container("c", 400);
    assert_eq!(world.create("c", "k", "a", 10).status, 201);
    std::thread::sleep(Duration::from_millis(1_200));
    let seen = world.get("/_orrery/dbs/db/colls/c/partitions");
    assert_eq!(seen["whole"]["total"]["requests"], 0);
    assert_eq!(seen["partitions"][0]["items"], 1);
}

#[test]
fn top_shows_a_server_under_load_in_a_terminal() {
    let mut world = World::start(&[]);
    world.container("first", 400);
    world.container("c", 24_000);
    let _load = Load::on(&world, "c");
    world.wait_for("/_orrery/dbs/db/colls/c/partitions", |answer| {
        answer["whole"]["perSecond"]["requests"].as_f64() > Some(1.0)
    });
    let mut top = Terminal::run(binary(), &["top", "--endpoint", &world.endpoint()], 80, 24);
    // All of it is waited for at once: a screen may be looked at while it is drawn.
    let parts =
        ["partitions", "RU/s", "429/s", "hottest keys, last minute", "key space, last minute", "q quit"];
    top.wait_for("the busiest container with its hot key and its budget", |screen| {
        screen.contains("db/c")
            && screen.contains("hot ")
            && screen.contains('█')
            && (screen.contains("24k") || screen.contains("24000"))
            && parts.iter().all(|part| screen.contains(part))
    });
    top.wait_for("the axes of the heat map", |screen| screen.contains("-60 s") && screen.contains("now"));
    top.press("\u{1b}[F");
    top.wait_for("the last partition", |screen| screen.contains("partition 4 of 4"));
    top.press("\u{1b}[5~");
    top.wait_for("the first partition", |screen| screen.contains("partition 1 of 4"));
    top.press("\u{1b}[C");
    top.wait_for("the last hour", |screen| screen.contains("key space, last hour"));
    top.press("c");
    top.wait_for("the list of containers", |screen| {
        screen.contains("choose a container") && screen.contains("db/first")
    });
    top.press("\u{1b}[B");
    top.press("\r");
    top.wait_for("the other container", |screen| {
        screen.lines().next().is_some_and(|title| title.contains("db/first")) && !screen.contains("choose")
    });
    top.press("q");
    assert!(top.ends_well(), "q ends it");
}

#[test]
fn top_once_prints_a_frame() {
    let mut world = World::start(&[]);
    world.container("c", 400);
    let once = |key: &str| {
        let endpoint = world.endpoint();
        let args = ["top", "--once", "--size", "100x30", "--endpoint", &endpoint, "--key", key];
        Command::new(binary()).args(args).output().expect("the binary runs")
    };
    let frame = once(orrery_testkit::EMULATOR_KEY);
    let text = String::from_utf8_lossy(&frame.stdout).into_owned();
    assert!(frame.status.success() && text.contains("db/c") && text.contains("hottest keys"), "{text}");
    assert!(text.contains(" requests since the start  http "), "{text}");
    assert_eq!(text.lines().count(), 30, "{text}");
    let refused = once("d3Jvbmc=");
    assert!(!refused.status.success(), "a wrong key is an error");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("401"), "{refused:?}");
    drop(Client::new(world.server.port()));
}

#[test]
fn partitions_split_and_merge_on_request() {
    let mut world = World::start(&["--no-throttle"]);
    world.container("c", 400);
    for n in 0..200 {
        assert_eq!(world.create("c", &format!("k{n}"), "a", 50).status, 201);
    }
    let at = "/_orrery/dbs/db/colls/c/partitions";
    let split =
        world.client.send("POST", &format!("{at}/0/split"), &[], b"{\"children\":3}").expect("an answer");
    assert_eq!(split.status, 200, "{}", String::from_utf8_lossy(&split.body));
    let ids = |list: &Value| -> Vec<String> {
        let partitions = list["partitions"].as_array().expect("partitions");
        partitions.iter().filter_map(|one| one["id"].as_str().map(str::to_owned)).collect()
    };
    let list = world.get(at);
    assert_eq!(json!(ids(&list)), split.json()["children"]);
    assert_eq!(list["partitions"][0]["parents"], json!(["0"]));
    let gone = world.client.send("POST", &format!("{at}/0/split"), &[], b"").expect("an answer");
    assert_eq!(gone.status, 404, "{}", String::from_utf8_lossy(&gone.body));
    let run = |world: &World, args: &[&str]| {
        let place = ["--endpoint", &world.endpoint(), "--database", "db", "--container", "c"];
        let output = Command::new(binary()).args(args).args(place).output().expect("the binary runs");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let (left, right) = (ids(&list)[0].clone(), ids(&list)[1].clone());
    let (done, said) = run(&world, &["partition", "merge", "--left", &left, "--right", &right]);
    assert!(done && said.starts_with(&format!("partitions {left} and {right} are now ")), "{said}");
    assert_eq!(ids(&world.get(at)).len(), 2);
    let first = ids(&world.get(at))[0].clone();
    let (done, said) = run(&world, &["partition", "split", "--range", &first]);
    assert!(done, "{said}");
    assert_eq!(ids(&world.get(at)).len(), 3);
    let (done, said) = run(&world, &["partition", "split", "--range", "99"]);
    assert!(!done && said.contains("404") && said.contains("has no partition 99"), "{said}");
    let list = world.get(at);
    let items = list["partitions"].as_array().expect("partitions").iter().map(|one| one["items"].clone());
    assert_eq!(sum(&items.collect()), 200.0, "nothing is lost");
}

#[test]
fn a_workload_is_recorded_between_start_and_stop() {
    let mut world = World::start(&[]);
    world.container("c", 400);
    let at = "/_orrery/dbs/db/colls/c/workload";
    let none = world.client.send("GET", at, &[], b"").expect("an answer");
    assert_eq!(none.status, 404);
    for (body, state) in [(r#"{"action":"start"}"#, "recording"), (r#"{"action":"stop"}"#, "stopped")] {
        let reply = world.client.send("POST", at, &[], body.as_bytes()).expect("an answer");
        assert_eq!((reply.status, reply.json()["state"].as_str()), (200, Some(state)));
        if state == "recording" {
            assert_eq!(world.create("c", "k", "a", 10).status, 201);
            assert_eq!(world.read("c", "k", "a").status, 200);
            let query =
                [("x-ms-documentdb-isquery", "true"), ("x-ms-documentdb-query-enablecrosspartition", "true")];
            let text = br#"{"query":"SELECT * FROM c WHERE c.city IN ('a','b')"}"#;
            let reply = world.client.send("POST", "/dbs/db/colls/c/docs", &query, text).expect("an answer");
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        }
    }
    let workload = world.get(at);
    let read =
        orrery_advisor::Workload::from_json(workload.to_string().as_bytes()).expect("the advisor reads it");
    read.check().expect("the advisor takes it");
    let kinds: Vec<_> =
        workload["operations"].as_array().expect("operations").iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, [&json!("create"), &json!("read"), &json!("query")], "{workload}");
    assert_eq!(workload["operations"][1]["filters"], json!(["/pk", "/id"]));
    assert_eq!(workload["operations"][2]["filters"], json!([{"path": "/city", "values": 2}]));
    assert!(workload["operations"][1]["perSecond"].as_f64() > Some(0.0));
    let wrong = world.client.send("POST", at, &[], br#"{"action":"dance"}"#).expect("an answer");
    assert_eq!(wrong.status, 400);
}

#[test]
fn read_only_keys_may_look_and_not_touch() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys.toml");
    let keys = format!("primary = \"{}\"\nprimary-readonly = \"{key}\"\n", orrery_testkit::EMULATOR_KEY);
    std::fs::write(&file, keys).expect("the file can be written");
    let mut world = World::start(&["--key-file", file.to_str().expect("text")]);
    world.container("c", 400);
    *world.client.signer() = orrery_testkit::Signer::new(key);
    assert_eq!(world.get("/_orrery/dbs/db/colls/c/partitions")["container"], "c");
    let split = world.client.send("POST", "/_orrery/dbs/db/colls/c/partitions/0/split", &[], b"");
    assert_eq!(split.expect("an answer").status, 403);
}
