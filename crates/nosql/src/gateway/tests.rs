use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use http_body_util::BodyExt;
use orrery_cluster::copy::{ContainerName, JobState, RekeyRequest};
use orrery_cluster::{Account, DbOptions, OpenError, Storage, World};
use orrery_gateway::Scheme;
use orrery_testkit::wait_for_async;
use serde_json::{Value, json};
use sha2::Sha256;

use super::*;
use crate::binary_json::{decode, is_binary};

mod access;
mod children;
mod exchanges;
mod forms;
mod index_kinds;
mod item_ids;
mod pages;
mod ranked;
mod refused;
mod resource_memory;
mod script_memory;
mod shared_places;
mod splits;
mod system_procedures;
mod throughput;
mod told_headers;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A gateway over an empty database in memory.
struct Server(Gateway);

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
    /// Whether the body came in the binary form.
    is_binary: bool,
}

impl Server {
    fn start(serverless: bool) -> Server {
        Server::with(|options| DbOptions { account: Account { serverless, ..options.account }, ..options })
    }

    fn with(change: impl FnOnce(DbOptions) -> DbOptions) -> Server {
        Server::in_world(World::Real, change)
    }

    fn in_world(world: World, change: impl FnOnce(DbOptions) -> DbOptions) -> Server {
        Server::open(world, change).expect("an empty database opens")
    }

    fn open(world: World, change: impl FnOnce(DbOptions) -> DbOptions) -> Result<Server, OpenError> {
        let db = Db::open_in(world, change(DbOptions::in_memory("orrery", "Local")))?;
        Ok(Server(Gateway::new(db, orrery_gateway::Keys::new([KEY], []).expect("a key"), Options::default())))
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.send_text(method, path, headers, text).await
    }

    async fn send_text(&self, method: &str, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "example.test:8081")
            .header("x-ms-date", &date)
            .header("authorization", authorization(method, path, &date));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        self.answer(request).await
    }

    /// Answers as a connection does: at once if possible.
    async fn answer(&self, request: Request<Full<Bytes>>) -> Answer {
        match self.0.answer_now(&request, PEER) {
            Some(response) => answer(response).await,
            None => answer(self.0.handle(request, PEER).await).await,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], &Value::Null).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[], &body).await
    }

    async fn query(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[("x-ms-documentdb-isquery", "True")], &body).await
    }

    /// Gives `c` of `d` another partition key, and returns when it has it.
    async fn rekey(&self, key: Value) {
        let db = &self.0.0.db;
        let container = ContainerName { database: "d".into(), container: "c".into() };
        let request = RekeyRequest { container, partition_key: key, rate: None, completes_itself: true };
        let id = db.rekey_container(request).await.expect("a job").job.id.clone();
        let job = wait_for_async(|| {
            let job = db.job(&id).expect("the job is there").job;
            if job.state.is_over() { Ok(job) } else { Err(format!("the job does not come on: {job:?}")) }
        });
        let job = job.await;
        assert_eq!(job.state, JobState::Completed, "{job:?}");
    }
}

const PEER: Peer = Peer {
    scheme: Scheme::Https,
    ends_tls: true,
    remote: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1),
};

fn authorization(method: &str, path: &str, date: &str) -> String {
    authorization_with(KEY, method, path, date)
}

fn authorization_with(key: &str, method: &str, path: &str, date: &str) -> String {
    let segments: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let (kind, link) = match segments.len() {
        6 if segments[4] == "operations" => ("colls".to_owned(), segments[..4].join("/")),
        0 => (String::new(), String::new()),
        odd if odd % 2 == 1 => (segments[odd - 1].clone(), segments[..odd - 1].join("/")),
        even => (segments[even - 2].clone(), segments.join("/")),
    };
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).expect("base64")).expect("any length");
    mac.update(text.as_bytes());
    format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()))
}

async fn answer(response: Response<Full<Bytes>>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a full body").to_bytes();
    let is_binary = is_binary(&bytes);
    let text = match is_binary {
        true => {
            let (doc, mut text) = (decode(&bytes, 128).expect("the binary form"), Vec::new());
            orrery_doc::json::write(doc.root(), &mut text);
            text
        }
        false => bytes.to_vec(),
    };
    let is_page = parts.headers.get("content-type").is_some_and(|kind| kind == "text/html");
    let body = match text.is_empty() || is_page {
        true => Value::Null,
        false => serde_json::from_slice(&text).expect("JSON"),
    };
    Answer { status: parts.status.as_u16(), headers: parts.headers, body, is_binary }
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or("")
    }

    #[track_caller]
    fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }
}

fn container(id: &str) -> Value {
    json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}})
}

#[tokio::test]
async fn the_account_advertises_what_the_client_dialled() {
    let account = Server::start(false).get("/").await.expect(200).body;
    assert_eq!(account["id"], "orrery");
    assert_eq!(account["_self"], "");
    assert!(account.get("_etag").is_none());
    for list in ["writableLocations", "readableLocations"] {
        assert_eq!(
            account[list],
            json!([{"name": "Local", "databaseAccountEndpoint": "https://example.test:8081/"}])
        );
    }
    assert_eq!(account["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    let engine = account["queryEngineConfiguration"].as_str().expect("a text");
    assert!(serde_json::from_str::<Value>(engine).expect("JSON in JSON")["maxJoinsPerSqlQuery"].is_number());
}

#[tokio::test]
async fn databases_live_from_create_to_delete() {
    let server = Server::start(false);
    let created = server.post("/dbs", json!({"id": "d é", "mine": 1})).await.expect(201);
    assert_eq!(created.header("etag"), created.body["_etag"].as_str().expect("a text"));
    let rid = created.body["_rid"].as_str().expect("a RID").to_owned();
    assert_eq!(created.body["_self"], format!("dbs/{rid}/"));
    let again = server.post("/dbs", json!({"id": "d é"})).await.expect(409);
    assert_ne!(again.header("x-ms-request-charge"), "0");
    for path in ["/dbs/d%20%C3%A9", &format!("/dbs/{rid}"), &format!("/dbs/{rid}/")] {
        let read = server.get(path).await.expect(200);
        assert_eq!((&read.body["id"], &read.body["mine"]), (&json!("d é"), &json!(1)));
        assert_eq!(read.header("x-ms-request-charge"), "1");
    }
    let etag = created.header("etag").to_owned();
    server.send("GET", &format!("/dbs/{rid}"), &[("if-none-match", &etag)], &Value::Null).await.expect(304);
    let listed = server.get("/dbs").await.expect(200);
    assert_eq!((listed.header("x-ms-item-count"), &listed.body["_count"]), ("1", &json!(1)));
    let stale = [("if-match", "\"0\"")];
    let unmet = server.send("DELETE", &format!("/dbs/{rid}"), &stale, &Value::Null).await.expect(412);
    assert_ne!(unmet.header("x-ms-request-charge"), "0");
    server.send("DELETE", &format!("/dbs/{rid}"), &[("if-match", &etag)], &Value::Null).await.expect(204);
    server.get("/dbs/d%20%C3%A9").await.expect(404);
    server.send("DELETE", "/dbs/x", &[], &Value::Null).await.expect(404);
}

#[tokio::test]
async fn malformed_resources_are_refused() {
    let server = Server::start(false);
    for body in ["", "{", "[]", "5", "{}", r#"{"id":5}"#, r#"{"id":""}"#, r#"{"id":"a/b"}"#, r#"{"id":"a "}"#]
    {
        server.send_text("POST", "/dbs", &[], body.to_owned()).await.expect(400);
    }
    let deep = format!("{{\"id\":\"d\",\"x\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    server.send_text("POST", "/dbs", &[], deep).await.expect(400);
    let large = format!("{{\"id\":\"d\",\"x\":\"{}\"}}", "x".repeat(limits::REQUEST_BYTES_MAX));
    let refused = server.send_text("POST", "/dbs", &[], large).await.expect(413);
    assert_eq!(refused.body["code"], "RequestEntityTooLarge");
}

#[tokio::test]
async fn containers_live_from_create_to_delete() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let created = server.post("/dbs/d/colls", container("c")).await.expect(201);
    assert_eq!(created.header("x-ms-alt-content-path"), "dbs/d");
    let link = created.body["_self"].as_str().expect("a link").to_owned();
    let again = server.post("/dbs/d/colls", container("c")).await.expect(409);
    assert_ne!(again.header("x-ms-request-charge"), "0");
    let missing = server.post("/dbs/none/colls", container("c")).await.expect(404);
    assert_eq!(missing.header("x-ms-substatus"), "1003");
    for path in ["/dbs/d/colls/c", &format!("/{link}")] {
        let read = server.get(path).await.expect(200);
        assert_eq!(read.body["partitionKey"], json!({"paths": ["/pk"], "kind": "Hash", "version": 2}));
        assert_eq!(read.header("x-ms-resource-usage"), "");
        assert!(read.body.get("statistics").is_none());
    }
    let wanted = [
        ("x-ms-documentdb-populatequotainfo", "True"),
        ("x-ms-documentdb-populatepartitionstatistics", "True"),
    ];
    let read = server.send("GET", "/dbs/d/colls/c", &wanted, &Value::Null).await.expect(200);
    assert!(read.header("x-ms-resource-usage").contains("documentsCount=0;"));
    assert_eq!(read.body["statistics"][0]["id"], "0");

    let mut changed = read.body.clone();
    changed["defaultTtl"] = json!(60);
    let replaced = server.send("PUT", "/dbs/d/colls/c", &[], &changed).await.expect(200);
    assert_eq!((&replaced.body["defaultTtl"], &replaced.body["_rid"]), (&json!(60), &read.body["_rid"]));
    assert_ne!(replaced.body["_etag"], read.body["_etag"]);
    changed["partitionKey"]["paths"] = json!(["/other"]);
    server.send("PUT", "/dbs/d/colls/c", &[], &changed).await.expect(400);
    server.send("PUT", "/dbs/d/colls/c", &[], &container("renamed")).await.expect(400);

    let listed = server.get("/dbs/d/colls").await.expect(200);
    assert_eq!(listed.body["DocumentCollections"][0]["id"], "c");
    server.send("DELETE", "/dbs/d/colls/c", &[], &Value::Null).await.expect(204);
    let gone = server.get("/dbs/d/colls/c").await.expect(404);
    assert_eq!(gone.header("x-ms-substatus"), "");
    for below in ["docs", "docs/x", "pkranges", "sprocs", "conflicts"] {
        let of_container = server.get(&format!("/dbs/d/colls/c/{below}")).await.expect(404);
        assert_eq!(of_container.header("x-ms-substatus"), "", "{below}");
        let of_database = server.get(&format!("/dbs/none/colls/c/{below}")).await.expect(404);
        assert_eq!(of_database.header("x-ms-substatus"), "1003", "{below}");
    }
}

#[tokio::test]
async fn names_and_rids_do_not_mix() {
    let server = Server::start(false);
    let database = server.post("/dbs", json!({"id": "d"})).await.expect(201).body;
    let rid = database["_rid"].as_str().expect("a RID");
    let collection = server.post("/dbs/d/colls", container("c")).await.expect(201).body;
    let collection_rid = collection["_rid"].as_str().expect("a RID");
    server.get(&format!("/dbs/{rid}/colls/{collection_rid}")).await.expect(200);
    server.get(&format!("/dbs/{rid}/colls/c")).await.expect(404);
    server.get(&format!("/dbs/d/colls/{collection_rid}")).await.expect(404);
    let other = server.post("/dbs", json!({"id": "other"})).await.expect(201).body;
    let other_rid = other["_rid"].as_str().expect("a RID");
    server.get(&format!("/dbs/{other_rid}/colls/{collection_rid}")).await.expect(404);
    // A name wins over a RID that reads the same.
    server.post("/dbs", json!({"id": rid})).await.expect(201);
    assert_eq!(server.get(&format!("/dbs/{rid}")).await.expect(200).body["id"], rid);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let server = Server::start(false);
    for number in 0..7 {
        server.post("/dbs", json!({"id": format!("d{number}")})).await.expect(201);
    }
    let (mut seen, mut continuation) = (Vec::new(), String::new());
    loop {
        let headers = [("x-ms-max-item-count", "3"), ("x-ms-continuation", continuation.as_str())];
        let page = server.send("GET", "/dbs", &headers, &Value::Null).await.expect(200);
        let rows = page.body["Databases"].as_array().expect("a list");
        assert!(rows.len() <= 3);
        seen.extend(rows.iter().map(|row| row["id"].as_str().expect("a text").to_owned()));
        continuation = page.header("x-ms-continuation").to_owned();
        if continuation.is_empty() {
            break;
        }
        // What goes away between two pages hides nothing else.
        server.send("DELETE", &format!("/dbs/{}", seen[0]), &[], &Value::Null).await;
    }
    assert_eq!(seen, ["d0", "d1", "d2", "d3", "d4", "d5", "d6"]);
    let bad = [("x-ms-continuation", "é")];
    server.send("GET", "/dbs", &bad[..0], &Value::Null).await.expect(200);
    server.send("GET", "/dbs", &[("x-ms-continuation", "nonsense!")], &Value::Null).await.expect(400);
}

#[tokio::test]
async fn resources_are_queried() {
    let server = Server::start(false);
    for id in ["a", "b", "c"] {
        server.post("/dbs", json!({"id": id})).await.expect(201);
    }
    let by_id = json!({"query": "SELECT * FROM root r WHERE r.id=@id", "parameters": [{"name": "@id", "value": "b"}]});
    let found = server.query("/dbs", by_id).await.expect(200);
    assert_eq!((&found.body["Databases"][0]["id"], &found.body["_count"]), (&json!("b"), &json!(1)));
    server.post("/dbs/a/colls", container("one")).await.expect(201);
    let literal = json!({"query": "SELECT VALUE r.id FROM root r WHERE r.id=\"one\""});
    let found = server.query("/dbs/a/colls", literal).await.expect(200);
    assert_eq!(found.body["DocumentCollections"], json!(["one"]));
    let headers = [("x-ms-documentdb-isquery", "true"), ("x-ms-max-item-count", "2")];
    let ordered = json!({"query": "SELECT VALUE r.id FROM r ORDER BY r.id DESC"});
    let first = server.send("POST", "/dbs", &headers, &ordered).await.expect(200);
    assert_eq!(first.body["Databases"], json!(["c", "b"]));
    let headers = [headers[0], headers[1], ("x-ms-continuation", first.header("x-ms-continuation"))];
    let second = server.send("POST", "/dbs", &headers, &ordered).await.expect(200);
    assert_eq!((&second.body["Databases"], second.header("x-ms-continuation")), (&json!(["a"]), ""));
    for wrong in [
        json!({}),
        json!({"query": 5}),
        json!({"query": "SELECT"}),
        json!({"query": "SELECT 1", "parameters": 5}),
    ] {
        server.query("/dbs", wrong).await.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn queries_over_resources_hold_one_page_of_rows() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let list: Vec<u32> = (0..1_000).collect();
    let body = json!({
        "query": "SELECT VALUE @p FROM c JOIN a IN @l JOIN b IN @l",
        "parameters": [{"name": "@p", "value": "x".repeat(1 << 20)}, {"name": "@l", "value": list}],
    });
    let found = server.query("/dbs", body.clone()).await.expect(200);
    assert_eq!(found.body["_count"], 4);
    assert_eq!(found.header("x-ms-continuation"), "4");
    let headers = [("x-ms-documentdb-isquery", "true"), ("x-ms-continuation", "6")];
    let further = server.send("POST", "/dbs", &headers, &body).await.expect(200);
    assert_eq!(further.header("x-ms-continuation"), "10");
}

#[tokio::test]
async fn offers_are_found_and_replaced() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let provisioned = [("x-ms-offer-throughput", "500")];
    let made = server.send("POST", "/dbs/d/colls", &provisioned, &container("c")).await.expect(201).body;
    let by_link = json!({
        "query": "SELECT * FROM root r WHERE r.resource=@link",
        "parameters": [{"name": "@link", "value": made["_self"]}]
    });
    let by_rid = json!({
        "query": "SELECT * FROM c WHERE c.offerResourceId = @rid",
        "parameters": [{"name": "@rid", "value": made["_rid"]}]
    });
    let mut offer = server.query("/offers", by_link).await.expect(200).body["Offers"][0].clone();
    assert_eq!(server.query("/offers", by_rid).await.expect(200).body["Offers"][0], offer);
    assert_eq!(offer["content"]["offerThroughput"], 500);
    assert_eq!((&offer["offerVersion"], &offer["offerType"]), (&json!("V2"), &json!("Invalid")));
    let path = format!("/offers/{}", offer["id"].as_str().expect("a text"));
    let read = server.get(&path).await.expect(200);
    assert_eq!((&read.body, read.header("x-ms-cosmos-min-throughput")), (&offer, "400"));

    offer["content"]["offerThroughput"] = json!(900);
    let replaced = server.send("PUT", &path, &[], &offer).await.expect(200);
    assert_eq!(replaced.body["content"]["offerThroughput"], 900);
    for wrong in [
        json!({"offerThroughput": 399}),
        json!({"offerThroughput": 450}),
        json!({}),
        json!({"offerThroughput": "x"}),
    ] {
        offer["content"] = wrong;
        server.send("PUT", &path, &[], &offer).await.expect(400);
    }
    let migrate = [("x-ms-cosmos-migrate-offer-to-autopilot", "true")];
    let autoscale = server.send("PUT", &path, &migrate, &offer).await.expect(200);
    assert_eq!(autoscale.body["content"]["offerAutopilotSettings"]["maxThroughput"], 1000);
    let migrate = [("x-ms-cosmos-migrate-offer-to-manual-throughput", "true")];
    let manual = server.send("PUT", &path, &migrate, &offer).await.expect(200);
    assert!(manual.body["content"].get("offerAutopilotSettings").is_none());
    server.get("/offers/none").await.expect(404);
    assert_eq!(server.get("/offers").await.expect(200).body["_count"], 1);
}

#[tokio::test]
async fn autoscale_settings_keep_their_increment() {
    let server = Server::start(false);
    let settings =
        r#"{"maxThroughput":5000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":0}}}"#;
    let headers = [("x-ms-cosmos-offer-autopilot-settings", settings)];
    server.send("POST", "/dbs", &headers, &json!({"id": "d"})).await.expect(201);
    let offers = server.get("/offers").await.expect(200).body;
    let content = &offers["Offers"][0]["content"];
    assert_eq!(content["offerThroughput"], 500);
    assert_eq!(content["offerAutopilotSettings"], serde_json::from_str::<Value>(settings).expect("JSON"));
    for (value, words) in [
        (
            r#"{"maxThroughput":-200}"#,
            "Requested throughput -200 is less than required minimum throughput 1000",
        ),
        (r#"{"maxThroughput":1500}"#, "increments"),
        ("{}", "maxThroughput"),
        ("nonsense", "JSON"),
    ] {
        let headers = [("x-ms-cosmos-offer-autopilot-settings", value)];
        let refused = server.send("POST", "/dbs", &headers, &json!({"id": "e"})).await.expect(400);
        assert!(refused.message().contains(words), "{}", refused.message());
    }
    let both = [headers[0], ("x-ms-offer-throughput", "400")];
    server.send("POST", "/dbs", &both, &json!({"id": "e"})).await.expect(400);
    for value in ["399", "450", "many", "-1", "99999999999999999999"] {
        let headers = [("x-ms-offer-throughput", value)];
        server.send("POST", "/dbs", &headers, &json!({"id": "e"})).await.expect(400);
    }
}

#[tokio::test]
async fn serverless_accounts_have_no_offers() {
    let server = Server::start(true);
    let headers = [("x-ms-offer-throughput", "400")];
    server.send("POST", "/dbs", &headers, &json!({"id": "d"})).await.expect(400);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    for path in ["/offers", "/offers/AAAB"] {
        let refused = server.get(path).await.expect(400);
        assert!(refused.message().contains("serverless"), "{}", refused.message());
    }
}

#[tokio::test]
async fn ranges_are_a_feed_that_ends_in_304() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let headers = [("x-ms-offer-throughput", "24000")];
    server.send("POST", "/dbs/d/colls", &headers, &container("c")).await.expect(201);
    let incremental = ("a-im", "Incremental feed");
    let path = "/dbs/d/colls/c/pkranges";
    let page = server.send("GET", path, &[incremental], &Value::Null).await.expect(200);
    let ranges = page.body["PartitionKeyRanges"].as_array().expect("a list");
    assert_eq!((ranges.len(), page.header("x-ms-item-count")), (4, "4"));
    assert_eq!((&ranges[0]["minInclusive"], &ranges[3]["maxExclusive"]), (&json!(""), &json!("FF")));
    for pair in ranges.windows(2) {
        assert_eq!(pair[0]["maxExclusive"], pair[1]["minInclusive"]);
    }
    assert_eq!(
        (&ranges[1]["id"], &ranges[1]["status"], &ranges[1]["parents"]),
        (&json!("1"), &json!("online"), &json!([]))
    );
    let seen = [incremental, ("if-none-match", page.header("etag"))];
    let end = server.send("GET", path, &seen, &Value::Null).await.expect(304);
    assert_eq!((end.header("etag"), &end.body), (page.header("etag"), &Value::Null));
}

#[tokio::test]
async fn what_is_not_there_yet_says_so() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    let refused = server.get("/dbs/d/colls/c/docs/i/attachments").await.expect(400);
    assert!(refused.message().contains("Attachments"), "{}", refused.message());
    assert_eq!(server.get("/dbs/d/colls/c/conflicts").await.expect(200).body["Conflicts"], json!([]));
    server.get("/dbs/d/colls/c/conflicts/x").await.expect(404);
    server.send("PATCH", "/dbs/d", &[], &json!({})).await.expect(405);
    server.get("/nothing").await.expect(404);
}

/// Direct mode needs TLS. A client that asks for it without must be told what to change before anything else is looked at.
#[tokio::test]
async fn direct_mode_without_tls_is_refused_by_name_before_authentication() {
    let server = Server::start(false);
    let resolve = "?$resolveFor=dbs%2fAAAAAA%3d%3d%2fcolls%2fAAAAAAAAAAA%3d%2fdocs&$filter=protocol%20eq%20rntbd\
                   &$partitionKeyRangeIds=0";
    let date = httpdate::fmt_http_date(SystemTime::now());
    let signed = authorization("GET", "/dbs/d/colls/c/docs", &date);
    let token = "type%3dresource%26ver%3d1%26sig%3dAAAA%3bAAAA%3b";
    for path in
        ["//addresses/", "/addresses/", "/addresses", "//addresses//", "/Addresses/", "/addresses/a/b"]
    {
        for headers in [
            vec![],
            vec![("authorization", signed.as_str()), ("x-ms-date", &date), ("x-ms-version", "2018-12-31")],
            vec![("authorization", token), ("x-ms-date", &date), ("x-ms-version", "2020-07-15")],
            vec![("x-ms-version", "not a date"), ("x-ms-consistency-level", "Quantum")],
        ] {
            let mut request = Request::get(format!("{path}{resolve}"));
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Full::default()).expect("a request");
            let plain = Peer { scheme: Scheme::Http, ..PEER };
            let refused = answer(server.0.handle(request, plain).await).await.expect(400);
            for words in [
                "Direct mode",
                "gateway mode",
                "new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway }",
                "new CosmosClientBuilder().gatewayMode()",
            ] {
                assert!(refused.message().contains(words), "{path} {headers:?}: {}", refused.message());
            }
        }
    }
    // A name that only begins like it is no part of the protocol.
    server.get("/addressesx/").await.expect(404);
}

#[tokio::test]
async fn requests_without_a_valid_signature_learn_nothing() {
    let server = Server::start(false);
    let bare = Request::get("/dbs/d").body(Full::<Bytes>::default()).expect("a request");
    let refused = server.answer(bare).await.expect(401);
    assert!(refused.message().contains("Required Header authorization is missing"));
    assert_eq!(refused.header("x-ms-request-charge"), "0");
    let date = httpdate::fmt_http_date(SystemTime::now());
    let wrong = Request::get("/dbs/d")
        .header("x-ms-date", &date)
        .header("authorization", authorization("GET", "/dbs/other", &date))
        .body(Full::<Bytes>::default())
        .expect("a request");
    let refused = server.answer(wrong).await.expect(401);
    assert!(refused.message().contains("can't serve the request"));
}

/// A read of an item, signed now, with these headers beside those that every request has.
fn item_request(path: &str, headers: &[(&str, &str)], body: &'static str) -> Request<Full<Bytes>> {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let request = Request::get(path)
        .header("x-ms-date", &date)
        .header("x-ms-activity-id", "05f918e3-621c-451f-afa3-ac5d698a9331")
        .header("authorization", authorization("GET", path, &date));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Full::new(Bytes::from_static(body.as_bytes()))).expect("a request")
}

#[tokio::test]
async fn reads_are_answered_at_once_as_they_are_when_they_wait() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    let key = ("x-ms-documentdb-partitionkey", "[\"k\"]");
    let item = json!({"id": "i", "pk": "k"});
    let made = server.send("POST", "/dbs/d/colls/c/docs", &[key], &item).await.expect(201);
    let etag = made.header("etag").to_owned();
    let other_key = ("x-ms-documentdb-partitionkey", "no key");
    for (path, headers, status) in [
        ("/dbs/d/colls/c/docs/i", vec![key], 200),
        ("/dbs/d/colls/c/docs/i", vec![key, ("x-ms-cosmos-priority-level", "Low")], 200),
        ("/dbs/d/colls/c/docs/i", vec![key, ("if-none-match", &etag)], 304),
        ("/dbs/d/colls/c/docs/i", vec![], 400),
        ("/dbs/d/colls/c/docs/i", vec![other_key], 400),
        ("/dbs/d/colls/c/docs/other", vec![key], 404),
        ("/dbs/d/colls/other/docs/i", vec![key], 404),
    ] {
        let request = item_request(path, &headers, "");
        let at_once = answer(server.0.answer_now(&request, PEER).expect("a read")).await;
        let mut waited = answer(server.0.handle(request, PEER).await).await;
        assert_eq!((at_once.status, &at_once.body), (status, &waited.body), "{path} {headers:?}");
        for changing in ["x-ms-transport-request-id", "x-ms-request-duration-ms"] {
            waited.headers.insert(changing, at_once.headers[changing].clone());
        }
        assert_eq!((waited.status, waited.headers), (status, at_once.headers), "{path} {headers:?}");
    }
    // Of a request whose headers cannot be read nothing is known, not even its activity.
    let malformed = item_request("/dbs/d/colls/c/docs/i", &[("x-ms-max-item-count", "many")], "");
    let refused = answer(server.0.answer_now(&malformed, PEER).expect("a read")).await.expect(400);
    assert!(refused.message().contains("x-ms-max-item-count"), "{}", refused.message());
    assert_ne!(refused.header("x-ms-activity-id"), "05f918e3-621c-451f-afa3-ac5d698a9331");
}

#[tokio::test]
async fn only_reads_of_items_without_a_body_are_answered_at_once() {
    let server = Server::start(false);
    let now = |request: &Request<Full<Bytes>>| server.0.answer_now(request, PEER).is_some();
    assert!(now(&item_request("/dbs/d/colls/c/docs/i", &[], "")));
    assert!(!now(&item_request("/dbs/d/colls/c/docs/i", &[], "a body")));
    for path in ["/", "/dbs", "/dbs/d/colls/c", "/dbs/d/colls/c/docs", "/nothing", "/dbs/d/colls/c/docs/%ff"]
    {
        assert!(!now(&item_request(path, &[], "")), "{path}");
    }
    let mut delete = item_request("/dbs/d/colls/c/docs/i", &[], "");
    *delete.method_mut() = Method::DELETE;
    assert!(!now(&delete));
}
