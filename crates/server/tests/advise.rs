//! `orrery advise` and the same question asked over the management API: files, live containers, recordings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use orrery_testkit::{Client, EMULATOR_KEY, Server};
use serde_json::{Value, json};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn guide(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/workloads").join(name)
}

fn advise(args: &[&str]) -> Output {
    Command::new(binary()).arg("advise").args(args).output().expect("the command runs")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server with a container of orders.
struct Shop {
    server: Server,
    client: Client,
    folder: tempfile::TempDir,
    throughput: u32,
}

const CONTAINER: &str = "/dbs/shop/colls/orders";
/// A key that only reads.
const READER: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// RU/s that a new physical partition has.
const PARTITION: u32 = 6_000;

impl Shop {
    /// Of which one customer has half.
    fn open(items: u32) -> Shop {
        let order = |n: u32| {
            let customer = if n.is_multiple_of(2) { "reseller".to_owned() } else { format!("customer-{n}") };
            json!({"id": format!("{n}"), "customerId": customer, "orderId": format!("o{}", n / 3)})
        };
        Shop::with(&["/customerId"], 4, json!({}), (0..items).map(order))
    }

    /// Items under a key, in so many physical partitions.
    fn with(
        paths: &[&str],
        partitions: u32,
        policies: Value,
        items: impl IntoIterator<Item = Value>,
    ) -> Shop {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("keys");
        let text = format!("primary = {EMULATOR_KEY}\nprimary-readonly = {READER}\n");
        std::fs::write(&keys, text).expect("the keys are written");
        let keys = keys.display().to_string();
        let server = Server::start(binary(), &["--in-memory", "--no-throttle", "--key-file", &keys]);
        let mut client = Client::new(server.port());
        let mut create = |path: &str, headers: &[(&str, &str)], body: Value| {
            let reply = client.send("POST", path, headers, body.to_string().as_bytes()).expect("an answer");
            assert_eq!(reply.status, 201, "{path}: {}", reply.json());
        };
        create("/dbs", &[], json!({"id": "shop"}));
        let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
        let mut definition = policies;
        definition["id"] = "orders".into();
        definition["partitionKey"] = json!({"paths": paths, "kind": kind, "version": 2});
        let throughput = partitions * PARTITION;
        create("/dbs/shop/colls", &[("x-ms-offer-throughput", &throughput.to_string())], definition);
        for item in items {
            let values: Vec<&Value> = paths.iter().map(|path| &item[&path[1..]]).collect();
            let pk = json!(values).to_string();
            create(&format!("{CONTAINER}/docs"), &[("x-ms-documentdb-partitionkey", &pk)], item);
        }
        Shop { server, client, folder, throughput }
    }

    /// All items, in a file.
    fn export(&self) -> String {
        let path = self.folder.path().join("items.jsonl").display().to_string();
        let mut export = Command::new(binary());
        export.args(["export", "--endpoint", &self.endpoint(), "--out", &path]).args(LIVE);
        said(&export.output().expect("the command runs"));
        path
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/", self.server.port())
    }

    /// What `orrery advise` reports about the container, or about what else the arguments name.
    fn advise(&self, args: &[&str]) -> Value {
        let (endpoint, workload) = (self.endpoint(), self.workload());
        let mut all = vec!["--workload", &workload, "--format", "json", "--endpoint", &endpoint];
        all.extend(args);
        serde_json::from_str(&said(&advise(&all))).expect("JSON")
    }

    fn workload(&self) -> String {
        let workload = json!({
            "name": "shop",
            "throughput": self.throughput,
            "operations": [
                {"name": "place", "kind": "create", "perSecond": 50},
                {"name": "mine", "kind": "query", "perSecond": 100, "filters": ["/customerId"], "returns": 10},
            ],
        });
        let path = self.folder.path().join("workload.json");
        std::fs::write(&path, workload.to_string()).expect("the workload is written");
        path.display().to_string()
    }

    fn read(&mut self, order: u32, customer: &str) {
        let pk = json!([customer]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", pk.as_str())];
        let reply = self.client.send("GET", &format!("{CONTAINER}/docs/i{order}"), &headers, b"");
        assert_eq!(reply.expect("an answer").status, 200);
    }

    /// Over all partitions.
    fn query(&mut self, text: &str) {
        let headers = [
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-documentdb-query-enablecrosspartition", "True"),
            ("content-type", "application/query+json"),
        ];
        let body = json!({ "query": text }).to_string();
        let reply = self.client.send("POST", &format!("{CONTAINER}/docs"), &headers, body.as_bytes());
        assert_eq!(reply.expect("an answer").status, 200);
    }

    fn ask(&mut self, path: &str, body: &Value) -> (u16, Value, String) {
        let path = format!("/_orrery{CONTAINER}/{path}");
        let reply = self.client.send("POST", &path, &[], body.to_string().as_bytes()).expect("an answer");
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        (reply.status, serde_json::from_str(&text).unwrap_or_default(), text)
    }
}

#[test]
fn a_described_workload_is_answered_as_table_json_and_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let workload = guide("food-groups.json").display().to_string();
    let table = said(&advise(&["--workload", &workload]));
    assert!(table.starts_with("Partition keys for \"food groups\"") && table.contains("6,000 RU/s for each"));
    let json = said(&advise(&[
        "--workload",
        &workload,
        "--format",
        "json",
        "--candidate",
        "/id",
        "--partitions",
        "5",
    ]));
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&report["partitions"], &report["recommended"]), (&json!(5), &json!("/id")));
    let page = folder.path().join("advice.html");
    let nothing =
        said(&advise(&["--workload", &workload, "--format", "html", "--out", &page.display().to_string()]));
    assert_eq!(nothing, "");
    assert!(std::fs::read_to_string(&page).expect("the page is there").contains("<svg"));
}

#[test]
fn questions_that_make_no_sense_are_refused_in_words() {
    let workload = guide("food-groups.json").display().to_string();
    for (args, words) in [
        (vec!["--workload", "/nowhere/at-all.json"], "cannot read"),
        (vec!["--workload", &workload, "--candidate", "foodGroup"], "foodGroup"),
        (vec!["--workload", &workload, "--candidate", "/nothing"], "/nothing is neither"),
        (vec!["--workload", &workload, "--database", "d"], "--container"),
    ] {
        let output = advise(&args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(words), "{args:?}: {error}");
    }
}

const LIVE: [&str; 4] = ["--database", "shop", "--container", "orders"];

fn candidate<'a>(report: &'a Value, key: &str) -> &'a Value {
    let candidates = report["candidates"].as_array().expect("candidates");
    candidates.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("{key} in {report}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_live_container_is_the_sample() {
    let shop = Shop::open(200);
    let report = shop.advise(&[&LIVE[..], &["--partitions", "4"]].concat());
    let customer = candidate(&report, "/customerId");
    let share = number(&customer["largest"]["share"]);
    assert!((share - 0.5).abs() < 0.02, "the reseller has {share}");
    assert_eq!(customer["largest"]["key"], "reseller");
    assert!(candidate(&report, "/orderId").is_object(), "what nobody asks for is proposed too");
}

/// Orders of customers of whom one has seven of ten, and of the others each loaded at once.
fn orders_of_a_giant(count: u32) -> impl Iterator<Item = Value> {
    (0..count).map(move |n| {
        let is_giant = n < count / 10 * 7;
        let customer = if is_giant { "giant".to_owned() } else { format!("c{}", n / 10) };
        json!({
            "id": format!("i{n}"), "customerId": customer, "user": format!("{customer}/u{}", n % 500),
            "region": format!("r{}", n * 7 % 800), "status": n % 3,
        })
    })
}

/// The verdicts and the largest shares on a container, by the key.
fn told(report: &Value) -> Vec<(String, String)> {
    let candidates = report["candidates"].as_array().expect("candidates").iter();
    let mut told: Vec<_> = candidates
        .map(|one| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&one["key"]), text(&one["verdict"]))
        })
        .collect();
    told.sort();
    told
}

#[test]
fn the_verdict_on_a_live_container_is_that_on_its_export() {
    const ITEMS: u32 = 3_000;
    let keys = ["/customerId", "/customerId,/user", "/region", "/status", "/id"];
    let candidates: Vec<&str> = keys.iter().flat_map(|key| ["--candidate", key]).collect();
    for (paths, partitions) in
        [(vec!["/customerId"], 8), (vec!["/customerId", "/user"], 8), (vec!["/region"], 5)]
    {
        let shop = Shop::with(&paths, partitions, json!({}), orders_of_a_giant(ITEMS));
        let export = shop.export();
        let count = partitions.to_string();
        let whole = ["--items", &export, "--partitions", &count];
        let whole = shop.advise(&[&whole[..], &candidates].concat());
        let sampled = [&LIVE[..], &["--sample", "600"], &candidates].concat();
        let live = shop.advise(&sampled);
        assert_eq!(told(&live), told(&whole), "{paths:?} in {partitions} partitions");
        assert_eq!(live["partitions"], partitions, "{live}");
        assert_eq!(number(&live["throughput"]), f64::from(partitions * PARTITION));
        let giant = candidate(&live, "/customerId");
        assert_eq!(giant["verdict"], "hot", "{giant}");
        assert!((number(&giant["largest"]["share"]) - 0.7).abs() < 0.06, "{giant}");
        // With a key that only reads the sample comes over the feed.
        let fed = shop.advise(&[&sampled[..], &["--key", READER]].concat());
        assert_eq!(told(&fed), told(&whole), "over the feed: {paths:?} in {partitions} partitions");
        for report in [&live, &fed] {
            for (key, real) in [("/region", 800.0), ("/customerId", 91.0)] {
                let distinct = number(&candidate(report, key)["distinct"]);
                assert!((0.66..1.5).contains(&(distinct / real)), "{key} has {distinct} values");
            }
        }
    }
}

#[test]
fn a_single_collision_among_many_items_is_told() {
    let mut orders: Vec<Value> = orders_of_a_giant(2_000).collect();
    // Two customers have an order with the same id, of the same region.
    (orders[1_999]["id"], orders[1_999]["region"]) = (orders[5]["id"].clone(), orders[5]["region"].clone());
    // Two customers have users of one mail address, which must be unique among those of one customer.
    orders.iter_mut().enumerate().for_each(|(n, order)| order["mail"] = format!("m{n}").into());
    (orders[1_000]["mail"], orders[1_000]["status"]) =
        (orders[1_900]["mail"].clone(), orders[1_900]["status"].clone());
    let unique = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}});
    let shop = Shop::with(&["/customerId"], 3, unique, orders);
    let keys = ["--candidate", "/region", "--candidate", "/status", "--candidate", "/user"];
    let report = shop.advise(&[&LIVE[..], &["--sample", "50"], &keys].concat());
    for (key, words) in [("/region", "have the same id"), ("/status", "at a unique key")] {
        let found = candidate(&report, key);
        let told = found["words"].as_str().is_some_and(|told| told.contains(words));
        assert!(told && found["verdict"] == "collides", "{key}: {found}");
    }
    assert_ne!(candidate(&report, "/user")["verdict"], "collides");
    assert!(!report.to_string().contains("looked for among"), "all items were looked at: {report}");
}

#[test]
fn a_server_answers_about_its_own_containers() {
    let mut shop = Shop::open(120);
    let workload = json!({"operations": [{"name": "mine", "kind": "query", "perSecond": 10, "filters": ["/customerId"]}]});
    let question =
        json!({"workload": workload, "candidates": ["/customerId", "/customerId,/orderId"], "sample": 100});
    let (status, report, text) = shop.ask("advice", &question);
    assert_eq!(status, 200, "{text}");
    assert_eq!(report["candidates"].as_array().map(Vec::len), Some(2));
    let (status, _, page) = shop.ask("advice", &json!({"workload": workload, "format": "html"}));
    assert_eq!((status, page.contains("<svg")), (200, true));
    for (body, words) in [
        (json!({}), "workload"),
        (json!({"workload": workload, "candidates": ["nonsense"]}), "nonsense"),
        (json!({"workload": {"operations": [{"name": "x", "kind": "read", "perSecond": -1}]}}), "perSecond"),
    ] {
        let (status, report, text) = shop.ask("advice", &body);
        assert_eq!(status, 400, "{text}");
        assert!(report["message"].as_str().is_some_and(|message| message.contains(words)), "{text}");
    }
}

#[test]
fn what_the_server_recorded_is_a_workload() {
    let mut shop = Shop::open(60);
    assert_eq!(shop.ask("workload", &json!({"action": "start"})).0, 200);
    for n in 0..20 {
        let pk = json!([format!("customer-{}", 2 * n + 1)]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", pk.as_str())];
        let reply = shop.client.send("GET", &format!("{CONTAINER}/docs/{}", 2 * n + 1), &headers, b"");
        assert_eq!(reply.expect("an answer").status, 200);
    }
    assert_eq!(shop.ask("workload", &json!({"action": "stop"})).0, 200);
    let recorded =
        shop.client.send("GET", &format!("/_orrery{CONTAINER}/workload"), &[], b"").expect("an answer");
    let recorded = recorded.json();
    assert!(!recorded["operations"].as_array().expect("operations").is_empty(), "{recorded}");
    let (status, report, text) = shop.ask("advice", &json!({"workload": recorded}));
    assert_eq!(status, 200, "{text}");
    assert!(report["recommended"].is_string());
}

#[test]
fn storage_alone_is_judged_in_the_partitions_that_there_are() {
    let mut shop = Shop::with(&["/id"], 8, json!({}), orders_of_a_giant(400));
    let (status, report, text) = shop.ask("advice", &json!({"workload": {}, "candidates": ["/customerId"]}));
    assert_eq!(status, 200, "{text}");
    assert_eq!((&report["partitions"], number(&report["throughput"])), (&json!(8), 48_000.0));
    assert_eq!(report["candidates"][0]["verdict"], "uneven", "{text}");
}

#[test]
fn a_customer_who_is_asked_for_most_of_the_time_is_hot_however_few_items_there_are() {
    let order = |n: u32| json!({"id": format!("i{n}"), "customerId": format!("c{}", n % 100)});
    // By the items that are read, and by queries that know the customer.
    for (key, kind) in [("/customerId", "read"), ("/id", "query")] {
        let mut shop = Shop::with(&[key], 8, json!({}), (0..800).map(order));
        assert_eq!(shop.ask("workload", &json!({"action": "start"})).0, 200);
        for n in 0..300u32 {
            let customer = if n.is_multiple_of(5) { n % 100 } else { 7 };
            match kind {
                "read" => shop.read(customer + n % 8 * 100, &format!("c{customer}")),
                _ => shop.query(&format!("SELECT c.id FROM c WHERE c.customerId = 'c{customer}'")),
            }
        }
        assert_eq!(shop.ask("workload", &json!({"action": "stop"})).0, 200);
        let path = format!("/_orrery{CONTAINER}/workload");
        let workload = shop.client.send("GET", &path, &[], b"").expect("an answer").json();
        let question = json!({"workload": workload, "candidates": ["/customerId"]});
        let (status, report, text) = shop.ask("advice", &question);
        assert_eq!(status, 200, "{text}");
        let found = &report["candidates"][0];
        assert_eq!(
            (&found["verdict"], &found["load"]["busiestKey"]["key"]),
            (&json!("hot"), &json!("c7")),
            "{kind}"
        );
    }
}
