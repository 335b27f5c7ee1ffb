//! `orrery advise` and the same question asked over the management API: files, live containers, recordings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use orrery_testkit::{Client, Server};
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

/// A server with a container of orders, of which one customer has half.
struct Shop {
    server: Server,
    client: Client,
    folder: tempfile::TempDir,
}

const CONTAINER: &str = "/dbs/shop/colls/orders";

impl Shop {
    fn open(items: u32) -> Shop {
        let server = Server::start(binary(), &["--in-memory", "--no-throttle"]);
        let mut client = Client::new(server.port());
        let mut create = |path: &str, headers: &[(&str, &str)], body: Value| {
            let reply = client.send("POST", path, headers, body.to_string().as_bytes()).expect("an answer");
            assert_eq!(reply.status, 201, "{path}: {}", reply.json());
        };
        create("/dbs", &[], json!({"id": "shop"}));
        let key = json!({"paths": ["/customerId"], "kind": "Hash", "version": 2});
        let throughput = [("x-ms-offer-throughput", "24000")];
        create("/dbs/shop/colls", &throughput, json!({"id": "orders", "partitionKey": key}));
        for n in 0..items {
            let customer = if n % 2 == 0 { "reseller".to_owned() } else { format!("customer-{n}") };
            let item =
                json!({"id": format!("{n}"), "customerId": customer, "orderId": format!("o{}", n / 3)});
            let pk = json!([customer]).to_string();
            let headers = [("x-ms-documentdb-partitionkey", pk.as_str())];
            create(&format!("{CONTAINER}/docs"), &headers, item);
        }
        Shop { server, client, folder: tempfile::tempdir().expect("a folder") }
    }

    fn workload(&self) -> String {
        let workload = json!({
            "name": "shop",
            "operations": [
                {"name": "place", "kind": "create", "perSecond": 50},
                {"name": "mine", "kind": "query", "perSecond": 100, "filters": ["/customerId"], "returns": 10},
            ],
        });
        let path = self.folder.path().join("workload.json");
        std::fs::write(&path, workload.to_string()).expect("the workload is written");
        path.display().to_string()
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

#[test]
fn a_live_container_is_the_sample() {
    let shop = Shop::open(200);
    let endpoint = format!("http://127.0.0.1:{}/", shop.server.port());
    let live = ["--endpoint", &endpoint, "--database", "shop", "--container", "orders"];
    let workload = shop.workload();
    let mut args = vec!["--workload", &workload, "--format", "json", "--partitions", "4"];
    args.extend(live);
    let report: Value = serde_json::from_str(&said(&advise(&args))).expect("JSON");
    let of = |key: &str| {
        let candidates = report["candidates"].as_array().expect("candidates");
        candidates.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("{key} in {report}")).clone()
    };
    let customer = of("/customerId");
    let share = customer["largest"]["share"].as_f64().expect("a share");
    assert!((share - 0.5).abs() < 0.02, "the reseller has {share}");
    assert_eq!(customer["largest"]["key"], "reseller");
    assert!(of("/orderId").is_object(), "what nobody asks for is proposed too");
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
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(shop.ask("workload", &json!({"action": "stop"})).0, 200);
    let recorded =
        shop.client.send("GET", &format!("/_orrery{CONTAINER}/workload"), &[], b"").expect("an answer");
    let recorded = recorded.json();
    assert!(!recorded["operations"].as_array().expect("operations").is_empty(), "{recorded}");
    let (status, report, text) = shop.ask("advice", &json!({"workload": recorded}));
    assert_eq!(status, 200, "{text}");
    assert!(report["recommended"].is_string());
}
