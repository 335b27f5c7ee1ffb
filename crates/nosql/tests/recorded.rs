//! Replays exchanges that were recorded from the real service, and compares status, header names and the
//! shape of the JSON. The recordings are shared data beside the project; without them there is nothing to do.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http_body_util::{BodyExt, Full};
use orrery_cluster::store::limits::PartitionLimits;
use orrery_cluster::{Account, Consistency, Db, DbOptions, Durability, Storage};
use orrery_nosql::{Gateway, Keys, Options, Peer, Scheme};
use serde_json::{Value, json};
use sha2::Sha256;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Headers of the recordings that answers here need not have, with the reason.
const EXCUSED: [(&str, &str); 10] = [
    ("date", "added by the HTTP server around the gateway"),
    ("content-length", "added by the HTTP server around the gateway"),
    ("transfer-encoding", "added by the HTTP server around the gateway, when it is of use"),
    ("strict-transport-security", "plain HTTP is served on the same port"),
    ("x-ms-quorum-acked-lsn", "recordings have it on some reads and not on others"),
    ("x-ms-cosmos-quorum-acked-llsn", "recordings have it on some reads and not on others"),
    ("x-ms-current-replica-set-size", "recordings have it on some reads and not on others"),
    ("x-ms-current-write-quorum", "recordings have it on some reads and not on others"),
    ("x-ms-cosmos-is-partition-key-delete-pending", "purges of logical partitions are not asynchronous"),
    ("x-ms-cosmos-query-execution-info", "tells of an index scan that this engine does not do"),
];

/// Headers that tell where a partition is. The catalog does not show its own, so they are only
/// expected where a container's partition answers.
const PARTITION_STATE: [&str; 6] = [
    "lsn",
    "x-ms-session-token",
    "x-ms-cosmos-llsn",
    "x-ms-global-committed-lsn",
    "x-ms-item-lsn",
    "x-ms-cosmos-item-llsn",
];

struct Server {
    gateway: Gateway,
    continuation: Option<String>,
}

struct Answer {
    status: u64,
    headers: BTreeSet<String>,
    continuation: Option<String>,
    body: Value,
}

// Feeds leave the runtime to scan, which needs one of several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_exchanges_replay() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/nosql-recorded-gateway");
    if !folder.is_dir() {
        println!("not run: there are no recordings at {}", folder.display());
        return;
    }
    let mut count = 0;
    for scenario in ["database_operations", "document_operations", "query_operations"] {
        let mut server = Server::start();
        let files = exchanges(&folder.join(scenario));
        server.prepare(scenario, &files).await;
        for (name, exchange) in files {
            count += usize::from(server.replay(&format!("{scenario}/{name}"), &exchange).await);
        }
    }
    println!("{count} recorded exchanges replayed");
    assert!(count >= 15, "only {count} exchanges were found");
}

/// The exchanges of a scenario in the order in which they happened.
fn exchanges(folder: &Path) -> Vec<(u32, Value)> {
    let mut files: Vec<(u32, PathBuf)> = std::fs::read_dir(folder)
        .expect("the scenario is a folder")
        .map(|entry| entry.expect("a readable entry").path())
        .map(|path| (path.file_stem().expect("a name").to_string_lossy().parse().expect("a number"), path))
        .collect();
    files.sort();
    let read = |path: PathBuf| serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
    files.into_iter().map(|(number, path)| (number, read(path))).collect()
}

impl Server {
    fn start() -> Server {
        let account = Account {
            name: "orrery".into(),
            region: "Local".into(),
            consistency: Consistency::Session,
            serverless: false,
        };
        let db = Db::open(DbOptions {
            storage: Storage::Memory,
            durability: Durability::Durable,
            limits: PartitionLimits::default(),
            throttle: false,
            account,
        })
        .expect("an empty database opens");
        let keys = Keys::new([KEY], []).expect("a key");
        Server { gateway: Gateway::new(db, keys, Options::default()), continuation: None }
    }

    /// Some recordings begin with resources that existed before.
    async fn prepare(&mut self, scenario: &str, files: &[(u32, Value)]) {
        if scenario == "database_operations" {
            self.send("POST", "/dbs", &json!({}), &json!({"id": "test-cosmos-db-attachment"})).await;
        }
        if scenario != "query_operations" {
            return;
        }
        self.send("POST", "/dbs", &json!({}), &json!({"id": "database1"})).await;
        let container = json!({"id": "container1", "partitionKey": {"paths": ["/none"], "kind": "Hash"}});
        self.send("POST", "/dbs/database1/colls", &json!({}), &container).await;
        for (_, exchange) in files {
            for item in exchange["response"]["body"]["Documents"].as_array().expect("a list") {
                // One logical partition keeps its items in the order in which they were made.
                let key = json!({"x-ms-documentdb-partitionkey": "[{}]"});
                let made = self.send("POST", "/dbs/database1/colls/container1/docs", &key, item).await;
                assert_eq!(made.status, 201, "{}", made.body);
            }
        }
    }

    /// Sends a recorded request and compares; false when there was nothing to compare.
    async fn replay(&mut self, name: &str, exchange: &Value) -> bool {
        let (request, expected) = (&exchange["request"], &exchange["response"]);
        let mut headers = request["headers"].clone();
        if headers.get("x-ms-continuation").is_some() {
            let Some(continuation) = self.continuation.take() else { return false };
            headers["x-ms-continuation"] = Value::from(continuation);
        }
        if headers.get("if-match").is_some() {
            // The version is ours, not the recorded one.
            headers["if-match"] = json!("*");
        }
        let method = request["method"].as_str().expect("a method");
        let path = request["uri"].as_str().expect("a path");
        let answer = self.send(method, path, &headers, &request["body"]).await;
        assert_eq!(Some(answer.status), expected["status"].as_u64(), "{name}: {}", answer.body);
        let in_container = path.contains("/docs");
        for header in expected["headers"].as_object().expect("headers").keys() {
            let excused = EXCUSED.iter().any(|(excused, _)| excused == header)
                || !in_container && PARTITION_STATE.contains(&header.as_str())
                || header == "x-ms-continuation";
            assert!(excused || answer.headers.contains(header), "{name}: the header {header} is missing");
        }
        compare_shape(name, &expected["body"], &answer.body);
        self.continuation = answer.continuation;
        true
    }

    async fn send(&self, method: &str, path: &str, headers: &Value, body: &Value) -> Answer {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8081");
        for (name, value) in headers.as_object().expect("headers") {
            if !["authorization", "x-ms-date"].contains(&name.as_str()) {
                request = request.header(name, value.as_str().expect("a text"));
            }
        }
        request =
            request.header("authorization", authorization(method, path, &date)).header("x-ms-date", date);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Full::new(Bytes::from(text))).expect("a request");
        let remote = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
        let response = self.gateway.handle(request, Peer { scheme: Scheme::Https, remote }).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a full body").to_bytes();
        let text =
            |name: &str| parts.headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned());
        Answer {
            status: u64::from(parts.status.as_u16()),
            continuation: text("x-ms-continuation"),
            headers: parts.headers.keys().map(|name| name.as_str().to_owned()).collect(),
            body: if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("JSON") },
        }
    }
}

fn authorization(method: &str, path: &str, date: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (kind, link) = match segments.len() {
        odd if odd % 2 == 1 => (segments[odd - 1], segments[..odd - 1].join("/")),
        even => (segments[even - 2], segments.join("/")),
    };
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).expect("base64")).expect("any length");
    mac.update(text.as_bytes());
    format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Every property of the recording must be there, with a value of the same type.
fn compare_shape(place: &str, expected: &Value, actual: &Value) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (name, value) in expected {
                let place = format!("{place}.{name}");
                let found = actual.get(name).unwrap_or_else(|| panic!("{place} is missing"));
                compare_shape(&place, value, found);
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            if let (Some(expected), Some(actual)) = (expected.first(), actual.first()) {
                compare_shape(&format!("{place}[0]"), expected, actual);
            }
        }
        _ => assert_eq!(
            std::mem::discriminant(expected),
            std::mem::discriminant(actual),
            "{place}: {expected} was recorded, {actual} came"
        ),
    }
}
