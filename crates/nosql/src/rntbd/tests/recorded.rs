//! Recorded requests of .NET clients, sent to a gateway of ours, whose answers must say what the recorded ones say.
//!
//! A request goes as it was recorded, but for what no other server can understand: who signed it and when, which replica
//! it is for, resource ids, and how far its session is. Answers are compared token by token and member by member, but for
//! what is different in each (resource ids, etags, times).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};

use super::super::request::Said;
use super::*;
use crate::binary_json;

mod outcomes;

/// What is read of a recorded case.
struct Case {
    name: String,
    described: Json,
    frame: Vec<u8>,
}

impl Case {
    fn read(name: &str) -> Option<Case> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/nosql-rntbd");
        if !folder.is_dir() {
            println!("not run: the recorded frames (shared/vectors/nosql-rntbd) are not here");
            return None;
        }
        let text = std::fs::read(folder.join(format!("{name}.json"))).expect("a description");
        Some(Case {
            name: name.to_owned(),
            described: serde_json::from_slice(&text).expect("JSON"),
            frame: std::fs::read(folder.join(format!("{name}.request.bin"))).expect("a frame"),
        })
    }

    fn token(&self, direction: &str, name: &str) -> Option<Json> {
        let tokens = self.described[direction]["tokens"].as_array().expect("tokens");
        tokens.iter().find(|token| token["name"] == name).map(|token| token["value"].clone())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.token("request", name).and_then(|value| value.as_str().map(str::to_owned))
    }

    fn head(&self) -> Head {
        Head::read(self.frame.first_chunk().expect("a head"), self.frame.len()).expect("a frame")
    }
}

/// A gateway that knows the key of the recorded clients, and what their requests are about.
struct World {
    gateway: Gateway,
    client: Client,
    /// RIDs as they are here, by those that were recorded.
    rids: BTreeMap<String, String>,
    /// What stands in requests in the place of a recorded value, by the name of the token.
    instead: BTreeMap<&'static str, String>,
    resource_token: Option<String>,
}

const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

impl World {
    async fn new() -> World {
        let gateway = gateway_with(Direct::SamePort, EMULATOR_KEY);
        let client = Client::of(&gateway).await;
        World { gateway, client, rids: BTreeMap::new(), instead: BTreeMap::new(), resource_token: None }
    }

    async fn make(&self, path: &str, kind: &str, headers: &[(&str, &str)], body: Json) -> Json {
        let link = path.trim_start_matches('/').trim_end_matches(kind).trim_end_matches('/').to_owned();
        let link = percent_encoding::percent_decode_str(&link).decode_utf8().expect("text").into_owned();
        let made = http_with(
            EMULATOR_KEY,
            &self.gateway,
            Scheme::Https,
            ("POST", path),
            (kind, &link),
            headers,
            body,
        );
        let (status, made) = made.await;
        assert_eq!(status, 201, "{path}: {made}");
        made
    }

    /// A container of so many partitions, whose clients knew it by this RID.
    async fn container(&mut self, database: &str, body: Json, units: &str, recorded: &str) {
        let headers = [("x-ms-offer-throughput", units)];
        let made = self.make(&format!("/dbs/{database}/colls"), "colls", &headers, body).await;
        self.rids.insert(recorded.to_owned(), made["_rid"].as_str().expect("a RID").to_owned());
    }

    async fn make_item(&self, database: &str, container: &str, item: Json) {
        let key = item.get("pk").map_or_else(|| "[{}]".to_owned(), |key| json!([key]).to_string());
        let path = format!("/dbs/{database}/colls/{container}/docs");
        self.make(&path, "docs", &[("x-ms-documentdb-partitionkey", &key)], item).await;
    }

    /// The frame as a client of this gateway sends it.
    fn translate(&self, case: &Case) -> Asking {
        let head = case.head();
        let mut asking = Asking::new(head.resource, head.operation);
        let tokens = &case.frame[HEAD_BYTES..head.length];
        for token in Tokens::of(tokens) {
            let token = token.expect("well-formed");
            let Some(known) = Asked::of(token.id) else { panic!("{}: {token:?}", case.name) };
            asking = match known {
                Asked::PayloadPresent
                | Asked::TransportRequestId
                | Asked::Date
                | Asked::AuthorizationToken => asking,
                Asked::ReplicaPath => asking.text(known, &self.place(token.text().expect("a path"))),
                Asked::ResourceId => asking.token(known, &self.rid_bytes(token.bytes().expect("bytes"))),
                Asked::SessionToken if !self.instead.contains_key("SessionToken") => {
                    asking.text(known, &started(token.text().expect("a token")))
                }
                Asked::CollectionRid => asking.text(known, &self.rid(token.text().expect("a RID"))),
                Asked::PartitionKeyRangeId => {
                    let text = token.text().expect("a range");
                    match text.split_once(',') {
                        Some((rid, range)) => asking.text(known, &format!("{},{range}", self.rid(rid))),
                        None => asking.text(known, text),
                    }
                }
                _ => match self.instead.get(format!("{known:?}").as_str()) {
                    Some(value) => asking.text(known, value),
                    None => asking.raw_token(&token),
                },
            };
        }
        if head.length < case.frame.len() {
            asking.payload = Some(case.frame[head.length + LENGTH_BYTES..].to_vec());
        }
        self.sign(case, asking)
    }

    fn rid(&self, recorded: &str) -> String {
        self.rids.get(recorded).cloned().unwrap_or_else(|| panic!("nobody made {recorded}"))
    }

    fn rid_bytes(&self, recorded: &[u8]) -> Vec<u8> {
        let text = orrery_cluster::Rid::from_slice(recorded).to_string();
        orrery_cluster::Rid::parse(&self.rid(&text)).expect("a RID").as_bytes().to_vec()
    }

    /// The recorded paths were `.../partitions/{rid with _ for =}-{range}/...` or `.../partitions/master/...`.
    fn place(&self, path: &str) -> String {
        let partition = path.split('/').nth(6).expect("a partition");
        match partition.rsplit_once('-') {
            Some((rid, range)) => {
                path_of(&self.rid(&rid.replace('_', "=")), range.parse().expect("a number"))
            }
            None => Place::Master.replica(true),
        }
    }

    /// Signs what the recorded client signed, and checks that this makes the recorded signature at the recorded time.
    fn sign(&self, case: &Case, asking: Asking) -> Asking {
        let Some(date) = case.text("Date") else {
            let token = self.resource_token.as_ref().expect("a resource token");
            return asking.text(Asked::AuthorizationToken, token);
        };
        let head = case.head();
        let greeting = Greeting::default();
        let said = Said::read(&head, &case.frame[HEAD_BYTES..head.length], &greeting).expect("understood");
        let words = said.words().expect("a path");
        let words: Vec<&str> = words.as_strs().collect();
        let (kind, link) = match words.len() % 2 {
            0 => (words[words.len() - 2], words.join("/")),
            _ => (words[words.len() - 1], words[..words.len() - 1].join("/")),
        };
        // Those who name nothing but a RID sign it alone, in lower case.
        let (link, here) = match said.is_named() {
            true => (link.clone(), link),
            false if words.len() == 1 => (String::new(), String::new()),
            false => {
                let rid = words.last().expect("a RID");
                (rid.to_lowercase(), self.rid(rid).to_lowercase())
            }
        };
        let signature =
            |link: &str, date: &str| sign(EMULATOR_KEY, &said.method, kind, link, date).expect("a key");
        let recorded = case.text("AuthorizationToken").expect("a signature");
        let decoded =
            |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().expect("text").into_owned();
        assert_eq!(decoded(&signature(&link, &date)), decoded(&recorded), "{}: {kind} {link}", case.name);
        let date = httpdate::fmt_http_date(SystemTime::now());
        asking.text(Asked::AuthorizationToken, &signature(&here, &date)).text(Asked::Date, &date)
    }

    /// Sends a recorded request and holds the answer against the recorded one.
    async fn replay(&mut self, name: &str) -> Option<Heard> {
        let case = Case::read(name)?;
        let asking = self.translate(&case);
        let heard = self.client.ask(asking).await;
        compare(&case, &heard);
        Some(heard)
    }
}

/// What our answers do not say, and no client needs: see the reference of direct mode.
const INFORMATIVE: [&str; 6] = [
    "ServerDateTimeUtc",
    "LastStateChangeDateTime",
    "SchemaVersion",
    "BackendRequestDurationMilliseconds",
    "PendingPKDelete",
    "QueryExecutionInfo",
];
/// What the translator said of a container when a client asked only how far its partition is, and of the item in a refusal.
const BEYOND: [&str; 9] = [
    "NumberOfReadRegions",
    "CurrentReplicaSetSize",
    "ETag",
    "OwnerFullName",
    "OwnerId",
    "StorageMaxResoureQuota",
    "StorageResourceQuotaUsage",
    "CollectionUpdateProgress",
    "CollectionLazyIndexProgress",
];
/// Pages of what comes in no order that anybody asked for: which items are on them is the server's choice.
const PAGES: [&str; 3] = ["query-range", "query-range-continued", "read-feed-range"];
/// Tokens whose values are the same in both.
const EQUAL: [&str; 9] = [
    "SubStatus",
    "ItemCount",
    "CurrentWriteQuorum",
    "CurrentReplicaSetSize",
    "NumberOfReadRegions",
    "XPRole",
    "LogResults",
    "PayloadPresent",
    "IndexUtilization",
];

fn compare(case: &Case, heard: &Heard) {
    let name = &case.name;
    let shown = String::from_utf8_lossy(&heard.body).into_owned();
    assert_eq!(
        Some(u64::from(heard.status)),
        case.described["response"]["status"].as_u64(),
        "{name}: {shown}"
    );
    let said: BTreeMap<u16, String> = Tokens::of(&heard.tokens)
        .map(|token| token.expect("well-formed"))
        .map(|token| (token.id, value(&token)))
        .collect();
    for token in case.described["response"]["tokens"].as_array().expect("tokens") {
        let (kind, id) = (token["name"].as_str().expect("a name"), token["id"].as_str().expect("an id"));
        let id = u16::from_str_radix(id.trim_start_matches("0x"), 16).expect("a number");
        let is_beyond = name.starts_with("head-") && BEYOND.contains(&kind)
            || heard.status >= 400 && kind.starts_with("ItemL")
            // The recorded server named the owner of a batch that failed too.
            || heard.status == 207 && kind.starts_with("Owner");
        if INFORMATIVE.contains(&kind) || is_beyond {
            continue;
        }
        let Some(here) = said.get(&id) else { panic!("{name}: no {kind}") };
        let recorded = token["value"].as_str().map_or_else(|| token["value"].to_string(), str::to_owned);
        if EQUAL.contains(&kind) {
            assert_eq!(*here, recorded, "{name}: {kind}");
        } else if kind == "PartitionKeyRangeId" {
            // The translator gave back what an old client had written.
            assert_eq!(Some(here.as_str()), recorded.rsplit(',').next(), "{name}: {kind}");
        } else if kind == "OwnerFullName" {
            // Names in tokens are as they are; the recorded one had been a header.
            let decoded = percent_encoding::percent_decode_str(&recorded).decode_utf8().expect("text");
            assert_eq!(*here, decoded, "{name}: {kind}");
        } else if kind.ends_with("LSN") {
            assert!(here.parse::<u64>().is_ok_and(|lsn| lsn > 0), "{name}: {kind} {here}");
        } else if kind == "SessionToken" {
            assert!(here.starts_with("-1#"), "{name}: {here}");
        }
    }
    let recorded = &case.described["response"]["body"];
    if recorded.is_null() {
        assert!(heard.body.is_empty(), "{name}: {shown}");
        return;
    }
    let Some(text) = recorded.as_str().filter(|text| !text.contains('…')) else { return };
    let Ok(recorded) = serde_json::from_str::<Json>(text) else { return };
    let (here, recorded) = (meaning(document(&heard.body)), meaning(recorded));
    if PAGES.contains(&name.as_str()) {
        let shape = |page: &Json| {
            let rows = page["Documents"].as_array().expect("rows").clone();
            let names = |row: &Json| row.as_object().expect("a row").keys().cloned().collect::<Vec<String>>();
            (rows.len(), rows.iter().map(names).collect::<BTreeSet<Vec<String>>>())
        };
        assert_eq!(shape(&here).0, shape(&recorded).0, "{name}");
        assert!(shape(&here).1.intersection(&shape(&recorded).1).next().is_some(), "{name}: {here}");
        return;
    }
    assert_eq!(here, recorded, "{name}");
}

fn value(token: &frame::Token<'_>) -> String {
    match token.kind {
        Kind::Byte => token.byte().expect("a byte").to_string(),
        Kind::ULong => token.number().expect("a number").to_string(),
        Kind::LongLong => token.position().expect("a position").to_string(),
        Kind::String | Kind::SmallString => token.text().expect("a text").to_owned(),
        _ => String::new(),
    }
}

/// JSON, in whichever of its forms.
fn document(body: &[u8]) -> Json {
    if body.first() != Some(&binary_json::PREAMBLE) {
        return serde_json::from_slice(body).expect("JSON");
    }
    let mut text = Vec::new();
    orrery_doc::json::write(binary_json::decode(body, 100).expect("binary JSON").root(), &mut text);
    serde_json::from_slice(&text).expect("JSON")
}

/// What is the same wherever and whenever a request is answered. Documents of a feed come in an order of the server's.
fn meaning(value: Json) -> Json {
    match value {
        Json::Object(members) => Json::Object(members.into_iter().map(member).collect::<Map<_, _>>()),
        Json::Array(values) => {
            let mut values: Vec<Json> = values.into_iter().map(meaning).collect();
            if values.iter().all(|value| value.get("id").is_some() || value.get("groupByItems").is_some()) {
                values.sort_by_key(Json::to_string);
            }
            Json::Array(values)
        }
        other => other,
    }
}

fn member((name, value): (String, Json)) -> (String, Json) {
    let value = match (name.as_str(), value) {
        ("_rid" | "_self" | "_etag" | "_token", Json::String(_)) => json!("text"),
        ("_ts" | "_lsn", Json::Number(_)) => json!("number"),
        // Messages name the request, its path and its number behind what they say; the links before that came later.
        ("message", Json::String(text)) => {
            let said = text.split("\r\n").next().unwrap_or_default();
            json!(said.split(" Learn more: ").next().unwrap_or_default().trim_end_matches("\"]}"))
        }
        (_, value) => meaning(value),
    };
    (name, value)
}

/// The session token of a client that has just begun.
fn started(recorded: &str) -> String {
    let (range, _) = recorded.split_once(':').expect("a range");
    format!("{range}:-1#1")
}

/// The container in which nearly all was recorded, with four partitions.
async fn world_of_c1() -> World {
    let mut world = World::new().await;
    world.make("/dbs", "dbs", &[], json!({"id": "db1"})).await;
    let body = json!({"id": "c1", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
    world.container("db1", body, "24000", "AAAAAYAAAAE=").await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_for_items_get_the_recorded_answers() {
    if Case::read("item-create").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    for name in
        ["item-create", "item-create-conflict", "item-create-bad-request", "item-create-wrong-partition-key"]
    {
        world.replay(name).await;
    }
    for name in ["item-read", "item-read-binary", "item-read-not-found"] {
        world.replay(name).await;
    }
    let etag = world.replay("item-read").await.expect("recorded").text(Told::Etag);
    world.instead.insert("Match", etag);
    world.replay("item-read-not-modified").await;
    world.instead.clear();
    for name in [
        "item-upsert",
        "item-upsert-minimal",
        "item-replace-precondition",
        "item-replace",
        "item-patch",
        "item-delete",
        "item-create-partition-key-none",
        "item-read-partition-key-none",
        "item-upsert-partition-key-number",
        "item-upsert-partition-key-true",
        "item-upsert-partition-key-null",
    ] {
        world.replay(name).await;
    }
}

/// The items over which queries and feeds were recorded; the first one is there from before.
async fn fill(world: &World) {
    world.make_item("db1", "c1", json!({"id": "a 1", "pk": "p1", "n": 1, "s": "hellö"})).await;
    world.make_item("db1", "c1", json!({"id": "nopk"})).await;
    for n in 0..200 {
        let item = json!({"id": format!("i{n}"), "pk": format!("k{}", n % 50), "n": n, "name": format!("name{}", n * 7 % 200)});
        world.make_item("db1", "c1", item).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_queries_and_feeds_get_the_recorded_answers() {
    if Case::read("query-range").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    fill(&world).await;
    for name in ["query-aggregate", "query-feed-range", "query-group-by", "query-index-metrics"] {
        world.replay(name).await;
    }
    for name in ["query-one-partition-key", "query-order-by", "read-many", "read-feed-partition-key"] {
        world.replay(name).await;
    }
    for name in ["read-feed-range", "conflicts-feed", "change-feed-beginning", "change-feed-partition-key"] {
        world.replay(name).await;
    }
    let first = world.replay("query-range").await.expect("recorded");
    world.instead.insert("ContinuationToken", first.text(Told::ContinuationToken));
    let second = world.replay("query-range-continued").await.expect("recorded");
    let ids = |heard: &Heard| {
        let rows = document(&heard.body)["Documents"].as_array().expect("rows").clone();
        rows.iter().map(|row| row["id"].to_string()).collect::<BTreeSet<String>>()
    };
    assert!(ids(&first).is_disjoint(&ids(&second)));
    world.replay("change-feed-now").await;
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    world.instead.insert("IfModifiedSince", httpdate::fmt_http_date(hour_ago));
    world.replay("change-feed-time").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_to_the_master_partition_get_the_recorded_answers() {
    if Case::read("databases-feed").is_none() {
        return;
    }
    let mut world = World::new().await;
    world.replay("v2-databases-feed").await;
    world.make("/dbs", "dbs", &[], json!({"id": "db1"})).await;
    let body = json!({"id": "c1", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
    world.container("db1", body, "24000", "AAAAAYAAAAE=").await;
    let leases = json!({"id": "leases", "partitionKey": {"paths": ["/id"], "kind": "Hash"}});
    world.make("/dbs/db1/users", "users", &[], json!({"id": "us1"})).await;
    let may = json!({"id": "pp", "permissionMode": "All", "resource": "dbs/db1/colls/c1"});
    let made = world.make("/dbs/db1/users/us1/permissions", "permissions", &[], may).await;
    world.resource_token = made["_token"].as_str().map(str::to_owned);
    for name in ["database-read", "databases-feed", "databases-query", "user-read", "users-feed"] {
        world.replay(name).await;
    }
    world.container("db1", leases, "400", "AAAAAYAAAAI=").await;
    world.replay("containers-query").await;
    world.replay("permission-read").await;
    world.replay("permissions-feed").await;
    let may = json!({"id": "p2", "permissionMode": "Read", "resource": "dbs/db1/colls/c1"});
    world.make("/dbs/db1/users/us1/permissions", "permissions", &[], may).await;
    for name in ["user-replace", "permission-replace", "permission-delete"] {
        world.replay(name).await;
    }
    world.make_item("db1", "c1", json!({"id": "i1", "pk": "k1", "n": 1, "name": "name7"})).await;
    world.replay("item-read-resource-token").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_with_scripts_and_batches_get_the_recorded_answers() {
    if Case::read("stored-procedure").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    let procedures = [
        ("sp", "function (v) { console.log('hi'); getContext().getResponse().setBody({ got: v }); }"),
        ("se", "function(){throw new Error('boom');}"),
    ];
    for (id, body) in procedures {
        world.make("/dbs/db1/colls/c1/sprocs", "sprocs", &[], json!({"id": id, "body": body})).await;
    }
    let body =
        "function () { const r = getContext().getRequest(); const b = r.getBody(); b.tr = 1; r.setBody(b); }";
    let trigger = json!({"id": "t1", "triggerType": "Pre", "triggerOperation": "All", "body": body});
    world.make("/dbs/db1/colls/c1/triggers", "triggers", &[], trigger).await;
    for name in ["stored-procedure", "stored-procedure-error", "item-create-trigger"] {
        world.replay(name).await;
    }
    world.replay("batch-hybridrow-accepted").await;
    world.replay("batch-hybridrow-conflict").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_names_and_keys_are_understood() {
    if Case::read("item-read-escaped-id").is_none() {
        return;
    }
    let mut world = world_of_c1().await;
    world.make_item("db1", "c1", json!({"id": "ü b%41+", "pk": "k1"})).await;
    world.replay("item-read-escaped-id").await;
    let paths = json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2});
    world.container("db1", json!({"id": "h1", "partitionKey": paths}), "400", "AAAAAYAAAAY=").await;
    world.replay("item-upsert-hierarchical").await;
    world.replay("query-prefix-key").await;
    world.make("/dbs", "dbs", &[], json!({"id": "dbé x"})).await;
    let body = json!({"id": "c ö", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
    world.container("db%C3%A9%20x", body, "400", "AAAAAoAAAAU=").await;
    world.make_item("db%C3%A9%20x", "c%20%C3%B6", json!({"id": "日本 1", "pk": "a"})).await;
    world.replay("item-read-unicode-names").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_of_the_older_client_get_the_recorded_answers() {
    if Case::read("v2-item-create").is_none() {
        return;
    }
    let mut world = World::new().await;
    world.make("/dbs", "dbs", &[], json!({"id": "v2db"})).await;
    let body = json!({"id": "c1", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
    world.container("v2db", body, "24000", "AAAAAYAAAAE=").await;
    let made = world.replay("v2-item-create").await.expect("recorded");
    let rid = made.json()["_rid"].as_str().expect("a RID").to_owned();
    world.rids.insert("AAAAAYAAAAEBAAAAAAEAAA==".to_owned(), rid);
    world.replay("v2-item-read-by-rid").await;
    world.replay("v2-item-replace-by-rid").await;
    let body = "function (n) { getContext().getResponse().setBody(n + 1); }";
    world.make("/dbs/v2db/colls/c1/sprocs", "sprocs", &[], json!({"id": "sp", "body": body})).await;
    world.replay("v2-stored-procedure").await;
    for n in 0..50 {
        world.make_item("v2db", "c1", json!({"id": format!("i{n}"), "pk": format!("k{n}"), "n": n})).await;
    }
    world.replay("v2-query-order-by").await;
    world.replay("v2-change-feed").await;
    let mut barriers = World::new().await;
    barriers.make("/dbs", "dbs", &[], json!({"id": "dbx"})).await;
    let body = json!({"id": "c1", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
    barriers.container("dbx", body, "24000", "AAAAAYAAAAE=").await;
    barriers.replay("head-read-barrier").await;
    barriers.replay("head-write-barrier").await;
}
