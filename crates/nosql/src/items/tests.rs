//! Whole requests on items, against a database in memory.

mod answer_room;
mod batches;
mod change_feeds;
mod hybrid_row;
mod last_pages;
mod lifetimes;
mod patches;
mod queries;
mod refusals;
mod resume;
mod shared_places;
mod system_keys;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use orrery_cluster::{ByHand, ContainerDefinition, Db, DbOptions, Throughput};
use orrery_doc::{Doc, json};
use proptest::prelude::*;

use super::*;
use crate::access::Grant;
use crate::address;
use crate::auth::Keys;
use crate::call::Trace;
use crate::headers::RequestHeaders;
use crate::hybrid_row::is_hybrid_row;
use crate::items::told::Told;
use orrery_gateway::ActivityId;
use orrery_gateway::Scheme;

/// A database with one container.
struct World {
    db: Db,
    by_rid: bool,
}

/// What a client sees of an answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    substatus: u32,
    /// The body, when it is text.
    body: String,
    bytes: Vec<u8>,
    etag: String,
    charge: f64,
    lsn: u64,
    range: Option<u32>,
    count: Option<usize>,
    continuation: Option<String>,
    /// Headers beyond the standard ones.
    headers: Vec<(String, String)>,
}

impl World {
    /// Opens a container whose definition is `partitionKey` and whatever else is given.
    async fn new(definition: &str, throughput: u32) -> World {
        World::in_world(orrery_cluster::World::Real, definition, throughput).await
    }

    /// The same with one partition, in a world whose time passes when the test says so.
    async fn by_hand(more: &str) -> (World, Arc<ByHand>) {
        let (world, hand) = orrery_cluster::World::by_hand(Duration::from_millis(1_790_000_000_250), 1);
        let definition = format!(r#""partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{more}"#);
        (World::in_world(world, &definition, 400).await, hand)
    }

    async fn in_world(world: orrery_cluster::World, definition: &str, throughput: u32) -> World {
        let options = DbOptions::in_memory("test", "Here");
        let db = Db::open_in(world, options).expect("a database in memory opens");
        let body = |text: &str| -> Doc { json::parse(text.as_bytes(), 128).expect("a definition") };
        let database = db.create_database("db", body(r#"{"id":"db"}"#), None).await.expect("a database");
        let definition = format!("{{\"id\":\"items\",{definition}}}");
        let definition = ContainerDefinition::parse(&body(&definition)).expect("a definition");
        let throughput = Some(Throughput::Manual(throughput));
        db.create_container(database.resource.rid, definition, throughput).await.expect("a container");
        World { db, by_rid: false }
    }

    async fn simple() -> World {
        World::new(r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#, 400).await
    }

    /// Sends a request; `item` names one item, else the request is on all.
    async fn send(&self, method: Method, item: Option<&str>, headers: &[(&str, &str)], body: &str) -> Answer {
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        self.send_bytes(method, item, headers, bytes).await
    }

    async fn send_bytes(
        &self,
        method: Method,
        item: Option<&str>,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            map.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let headers = match RequestHeaders::parse(&map) {
            Ok(headers) => headers,
            Err(refusal) => return Answer::of(Err(refusal)),
        };
        let trace = Trace {
            method: &method,
            path: "/",
            host: "localhost",
            scheme: Scheme::Http,
            activity: ActivityId::choose(None),
            started: Instant::now(),
            explain_charge: false,
        };
        let (catalog, advertised_host) = (self.db.catalog(), None);
        let call = Call {
            db: &self.db,
            catalog: &catalog,
            headers: &headers,
            trace: &trace,
            keys: &ArcSwap::from_pointee(Keys::from(orrery_gateway::Keys::new(["AAAA"], []).expect("a key"))),
            grant: &Grant::Everything,
            told: &Told::default(),
            advertised_host,
            page_bytes: orrery_cluster::limits::PAGE_BYTES_MAX,
        };
        let found = address::container(call.catalog, "db", "items").expect("the container");
        let at = ContainerAddress { by_rid: self.by_rid, ..found };
        let result = match item {
            Some("partitionkeydelete!") => delete_key(&call, &at).await,
            Some(item) if method == Method::GET => read(&call, &at, item).map(|look| match look {
                Look::Done(reply) => reply,
                Look::Wait(_) => unreachable!("a node that is alone waits for nothing"),
            }),
            Some(item) => write_one(&call, &at, item, body).await,
            None => feed(&call, &at, body).await,
        };
        Answer::of(result)
    }

    async fn create(&self, key: &str, body: &str) -> Answer {
        self.send(Method::POST, None, &[(KEY, key)], body).await
    }

    async fn read(&self, key: &str, id: &str) -> Answer {
        self.send(Method::GET, Some(id), &[(KEY, key)], "").await
    }

    async fn batch(&self, key: &str, body: &str) -> Answer {
        self.send(Method::POST, None, &[(KEY, key), (BATCH, "True"), (ATOMIC, "True")], body).await
    }
}

const KEY: &str = "x-ms-documentdb-partitionkey";
const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";
const UPSERT: &str = "x-ms-documentdb-is-upsert";
const BATCH: &str = "x-ms-cosmos-is-batch-request";
const ATOMIC: &str = "x-ms-cosmos-batch-atomic";
const CONTINUE: &str = "x-ms-cosmos-batch-continue-on-error";
const QUERY: &str = "x-ms-documentdb-isquery";
const CROSS: &str = "x-ms-documentdb-query-enablecrosspartition";
const FEATURES: &str = "x-ms-cosmos-supported-query-features";
const SESSION: &str = "x-ms-session-token";
const COUNT: &str = "x-ms-max-item-count";
const CONTINUATION: &str = "x-ms-continuation";

impl Answer {
    fn of(result: Result<Reply, Refusal>) -> Answer {
        let (status, substatus, body, receipt) = match &result {
            Ok(reply) => (reply.status, 0, reply.body.to_vec(), Some(&reply.receipt)),
            Err(refusal) => {
                let wire = refusal.wire();
                (wire.status, wire.substatus, wire.body("", ""), refusal.receipt())
            }
        };
        let served = receipt.and_then(|receipt| receipt.served);
        let reply = result.as_ref().ok();
        Answer {
            status: status.as_u16(),
            substatus,
            body: match is_hybrid_row(&body) {
                true => String::new(),
                false => String::from_utf8(body.clone()).expect("answers are UTF-8"),
            },
            bytes: body,
            etag: reply.and_then(|reply| reply.etag).map_or_else(String::new, |etag| etag.to_header()),
            charge: receipt.map_or(0.0, |receipt| receipt.charge.total()),
            lsn: served.map_or(0, |served| served.lsn.0),
            range: served.map(|served| served.range_id),
            count: reply.and_then(|reply| reply.item_count),
            continuation: reply.and_then(|reply| reply.continuation.clone()),
            headers: reply.map_or_else(Vec::new, |reply| {
                let text = |value: &HeaderValue| value.to_str().expect("ASCII").to_owned();
                reply.extra.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
            }),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The part of a batch's answer that tells what became of each operation.
    fn codes(&self) -> Vec<i64> {
        let doc = json::parse(self.body.as_bytes(), 128).expect("a JSON answer");
        let list = doc.root().as_array().expect("a list of results");
        list.iter().map(|result| result.get("statusCode").as_i64().expect("a code")).collect()
    }

    /// The ids of a feed's items, in order.
    fn ids(&self) -> Vec<String> {
        let doc = json::parse(self.body.as_bytes(), 128).expect("a JSON answer");
        let list = doc.root().get("Documents").as_array().expect("documents");
        list.iter().map(|item| item.get("id").as_str().expect("an id").to_owned()).collect()
    }

    fn field(&self, name: &str) -> String {
        let doc = json::parse(self.body.as_bytes(), 128).expect("a JSON answer");
        format!("{:?}", doc.root().get(name))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_created_read_replaced_and_deleted() {
    let world = World::simple().await;
    let created = world.create(r#"["x"]"#, r#"{"id":"a","pk":"x","n":1}"#).await;
    assert_eq!((created.status, created.lsn, created.range), (201, 2, Some(0)), "{created:?}");
    assert!(created.body.starts_with(r#"{"id":"a","pk":"x","n":1,"_rid":""#), "{}", created.body);
    assert!(created.charge > 0.0 && !created.etag.is_empty());
    let read = world.read(r#"["x"]"#, "a").await;
    assert_eq!((read.status, &read.body, &read.etag), (200, &created.body, &created.etag));
    assert_eq!(world.read(r#"["y"]"#, "a").await.status, 404);
    let missing = world.read(r#"["x"]"#, "b").await;
    assert_eq!((missing.status, missing.range), (404, Some(0)), "refusals tell the session too");
    assert_eq!(world.create(r#"["x"]"#, r#"{"id":"a","pk":"x"}"#).await.status, 409);
    let put = |body: &'static str| world.send(Method::PUT, Some("a"), &[(KEY, r#"["x"]"#)], body);
    let replaced = put(r#"{"id":"a","pk":"x","n":2}"#).await;
    assert_eq!((replaced.status, replaced.lsn, replaced.field("n").as_str()), (200, 3, "2"));
    assert_eq!(replaced.field("_rid"), created.field("_rid"));
    assert_ne!(replaced.etag, created.etag);
    assert_eq!((put(r#"{"id":"a","pk":"y"}"#).await.substatus), 1001);
    let deleted = world.send(Method::DELETE, Some("a"), &[(KEY, r#"["x"]"#)], "").await;
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!(world.send(Method::DELETE, Some("a"), &[(KEY, r#"["x"]"#)], "").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replace_may_rename() {
    let mut world = World::simple().await;
    let key = (KEY, r#"["x"]"#);
    world.create(key.1, r#"{"id":"a","pk":"x"}"#).await;
    let renamed = world.send(Method::PUT, Some("a"), &[key], r#"{"id":"b","pk":"x"}"#).await;
    assert_eq!((renamed.status, renamed.field("id").as_str()), (200, "\"b\""));
    assert_eq!(world.read(key.1, "a").await.status, 404);
    let read = world.read(key.1, "b").await;
    assert_eq!(read.status, 200);
    world.create(key.1, r#"{"id":"c","pk":"x"}"#).await;
    assert_eq!(world.send(Method::PUT, Some("b"), &[key], r#"{"id":"c","pk":"x"}"#).await.status, 409);
    assert_eq!(world.read(key.1, "b").await.status, 200, "a refused rename leaves the item alone");
    // The same through the link of `_rid`s.
    world.by_rid = true;
    let rid = read.field("_rid").replace('"', "");
    let by_link = world.send(Method::PUT, Some(&rid), &[key], r#"{"id":"d","pk":"x"}"#).await;
    assert_eq!(by_link.status, 200, "{by_link:?}");
    assert_eq!(world.read(key.1, &by_link.field("_rid").replace('"', "")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_rids_name_items() {
    let mut world = World::simple().await;
    let created = world.create(r#"["x"]"#, r#"{"id":"a","pk":"x"}"#).await;
    let rid = created.field("_rid").replace('"', "");
    world.by_rid = true;
    assert_eq!(world.read(r#"["x"]"#, &rid).await.status, 200);
    assert_eq!(world.read(r#"["y"]"#, &rid).await.status, 404);
    assert_eq!(world.read(r#"["x"]"#, "a").await.status, 400);
    let other = format!("ZZZZ{}", &rid[4..]);
    assert_eq!(world.read(r#"["x"]"#, &other).await.status, 400);
    let deleted = world.send(Method::DELETE, Some(&rid), &[(KEY, r#"["x"]"#)], "").await;
    assert_eq!(deleted.status, 204);
    assert_eq!(world.read(r#"["x"]"#, &rid).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_guard_reads_and_writes() {
    let world = World::simple().await;
    let key = (KEY, r#"["x"]"#);
    let body = r#"{"id":"a","pk":"x"}"#;
    let first = world.create(key.1, body).await.etag;
    let unchanged = world.send(Method::GET, Some("a"), &[key, ("if-none-match", &first)], "").await;
    assert_eq!((unchanged.status, unchanged.body.as_str(), &unchanged.etag), (304, "", &first));
    let put = |etag: &str| {
        let headers = [key, ("if-match", etag)].map(|(name, value)| (name, value.to_owned()));
        let world = &world;
        async move {
            let headers = [(headers[0].0, headers[0].1.as_str()), (headers[1].0, headers[1].1.as_str())];
            world.send(Method::PUT, Some("a"), &headers, body).await
        }
    };
    assert_eq!(put("nonsense").await.status, 412);
    let second = put(&first).await;
    assert_eq!(second.status, 200);
    assert_eq!(put(&first).await.status, 412);
    assert_eq!(put("*").await.status, 200);
    let changed = world.send(Method::GET, Some("a"), &[key, ("if-none-match", &first)], "").await;
    assert_eq!(changed.status, 200);
    let upsert = |extra: (&'static str, String), id: &str| {
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"x\"}}");
        let world = &world;
        async move { world.send(Method::POST, None, &[key, (UPSERT, "True"), (extra.0, &extra.1)], &body).await }
    };
    assert_eq!(upsert(("if-match", first.clone()), "a").await.status, 412);
    assert_eq!(upsert(("if-match", first.clone()), "new").await.status, 201);
    assert_eq!(upsert(("if-none-match", "*".to_owned()), "new").await.status, 412);
    assert_eq!(upsert(("if-none-match", "*".to_owned()), "newer").await.status, 201);
    assert_eq!(upsert(("x-other", "1".to_owned()), "newer").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_ask_for_no_body() {
    let world = World::simple().await;
    let headers = [(KEY, r#"["x"]"#), ("prefer", "return=minimal")];
    let created = world.send(Method::POST, None, &headers, r#"{"id":"a","pk":"x"}"#).await;
    assert_eq!((created.status, created.body.as_str()), (201, ""));
    assert!(!created.etag.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_levels_are_honoured() {
    let world = World::simple().await;
    let key = (KEY, r#"["x"]"#);
    world.create(key.1, r#"{"id":"a","pk":"x"}"#).await;
    for (headers, wanted) in [
        (vec![(SESSION, "0:-1#2")], (200, 0)),
        (vec![(SESSION, "0:2")], (200, 0)),
        (vec![(SESSION, "0:-1#3")], (404, 1002)),
        (vec![(SESSION, "0:3")], (404, 1002)),
        (vec![(SESSION, "0:0#2#1=9")], (200, 0)),
        (vec![(SESSION, "0:0#3#1=9")], (404, 1002)),
        (vec![(SESSION, "0:3#1#1=1")], (404, 1002)),
        (vec![(SESSION, "0:-2#99")], (200, 0)),
        (vec![(SESSION, "7:-1#99")], (200, 0)),
        (vec![(SESSION, "nonsense")], (400, 0)),
        (vec![(SESSION, "0:-1#3"), ("x-ms-consistency-level", "Eventual")], (200, 0)),
        (vec![("x-ms-consistency-level", "Strong")], (400, 0)),
        (vec![("x-ms-cosmos-intended-collection-rid", "AAAAAIAAAAA=")], (400, 1024)),
    ] {
        let all = [vec![key], headers.clone()].concat();
        let read = world.send(Method::GET, Some("a"), &all, "").await;
        assert_eq!((read.status, read.substatus), wanted, "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_change_parts() {
    let world = World::simple().await;
    let key = (KEY, r#"["x"]"#);
    world.create(key.1, r#"{"id":"a","pk":"x","n":1,"tags":["t"]}"#).await;
    for (body, wanted, n) in [
        (r#"{"operations":[{"op":"incr","path":"/n","value":2}]}"#, 200, "3"),
        (r#"[{"op":"set","path":"/n","value":5}]"#, 200, "5"),
        (
            r#"{"condition":"from c where c.n = 5","operations":[{"op":"set","path":"/n","value":6}]}"#,
            200,
            "6",
        ),
        (
            r#"{"condition":"from c where c.n = 5","operations":[{"op":"set","path":"/n","value":7}]}"#,
            412,
            "6",
        ),
        (r#"{"condition":"what","operations":[{"op":"set","path":"/n","value":7}]}"#, 400, "6"),
        (r#"{"operations":[{"op":"replace","path":"/absent","value":7}]}"#, 400, "6"),
        (r#"{"operations":[{"op":"set","path":"/pk","value":"y"}]}"#, 400, "6"),
        (r#"{"operations":[{"op":"set","path":"/id","value":"y"}]}"#, 400, "6"),
        (r#"{"operations":[]}"#, 400, "6"),
    ] {
        let patched = world.send(Method::PATCH, Some("a"), &[key], body).await;
        assert_eq!(patched.status, wanted, "{body}: {}", patched.body);
        assert_eq!(world.read(key.1, "a").await.field("n"), n, "{body}");
    }
    let missing =
        world.send(Method::PATCH, Some("b"), &[key], r#"[{"op":"set","path":"/n","value":5}]"#).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_happen_together_or_not_at_all() {
    let world = World::simple().await;
    let key = r#"["x"]"#;
    let batch = world
        .batch(
            key,
            r#"[{"operationType":"Create","resourceBody":{"id":"a","pk":"x","n":1}},
                {"operationType":"Upsert","resourceBody":{"id":"b","pk":"x"}},
                {"operationType":"Patch","id":"a","resourceBody":{"operations":[{"op":"incr","path":"/n","value":1}]}},
                {"operationType":"Read","id":"a"},
                {"operationType":"Replace","id":"b","resourceBody":{"id":"b","pk":"x","new":true}},
                {"operationType":"Delete","id":"b"}]"#,
        )
        .await;
    assert_eq!((batch.status, batch.lsn), (200, 2), "one batch is one step of the partition: {}", batch.body);
    assert_eq!(batch.codes(), [201, 201, 200, 200, 200, 204]);
    assert_eq!(world.read(key, "a").await.field("n"), "2");
    for (body, wanted) in [
        (
            r#"[{"operationType":"Create","resourceBody":{"id":"c","pk":"x"}},
                {"operationType":"Create","resourceBody":{"id":"a","pk":"x"}}]"#,
            vec![424, 409],
        ),
        (
            r#"[{"operationType":"Create","resourceBody":{"id":"c","pk":"x"}},
                {"operationType":"Create","resourceBody":{"id":"d","pk":"y"}}]"#,
            vec![424, 400],
        ),
        (
            r#"[{"operationType":"Create","resourceBody":{"id":"c","pk":"x"}},
                {"operationType":"Replace","id":"a","ifMatch":"old","resourceBody":{"id":"a","pk":"x"}},
                {"operationType":"Read","id":"a"}]"#,
            vec![424, 412, 424],
        ),
        (
            r#"[{"operationType":"Create","resourceBody":{"id":"c","pk":"x"}},
                {"operationType":"Patch","id":"a","resourceBody":{"condition":"from c where c.n = 9",
                 "operations":[{"op":"incr","path":"/n","value":1}]}}]"#,
            vec![424, 412],
        ),
        (r#"[{"operationType":"Read","id":"zz"},{"operationType":"Read","id":"a"}]"#, vec![404, 424]),
    ] {
        let failed = world.batch(key, body).await;
        assert_eq!((failed.status, failed.codes()), (207, wanted), "{body}");
        assert_eq!(world.read(key, "c").await.status, 404, "{body}");
    }
    let empty = world.batch(key, "[]").await;
    assert_eq!(empty.status, 400);
    assert_eq!(world.batch("[1,2]", r#"[{"operationType":"Read","id":"a"}]"#).await.substatus, 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_operations_stand_alone() {
    let world = World::simple().await;
    let headers = [(BATCH, "true"), (ATOMIC, "false"), (CONTINUE, "true"), (RANGE, "0")];
    let body = r#"[
        {"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"a","pk":"x"}},
        {"operationType":"Create","partitionKey":"[\"y\"]","resourceBody":{"id":"a","pk":"y"}},
        {"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"a","pk":"x"}},
        {"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"b","pk":"y"}},
        {"operationType":"Read","partitionKey":"[\"x\"]","id":"a"},
        {"operationType":"Delete","partitionKey":"[\"x\"]","id":"a"},
        {"operationType":"Read","partitionKey":"[\"x\"]","id":"a"},
        {"operationType":"Delete","partitionKey":"[\"y\"]","id":"none"}]"#;
    let bulk = world.send(Method::POST, None, &headers, body).await;
    assert_eq!(
        (bulk.status, bulk.codes()),
        (207, vec![201, 201, 409, 400, 200, 204, 404, 404]),
        "{}",
        bulk.body
    );
    assert!(bulk.charge > 0.0);
    let stopping = [(BATCH, "true"), (ATOMIC, "false"), (RANGE, "0")];
    let body = r#"[
        {"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"c","pk":"x"}},
        {"operationType":"Read","partitionKey":"[\"x\"]","id":"none"},
        {"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"d","pk":"x"}}]"#;
    let stopped = world.send(Method::POST, None, &stopping, body).await;
    assert_eq!(stopped.codes(), [201, 404, 424]);
    assert_eq!(world.read(r#"["x"]"#, "d").await.status, 404);
    let gone = world.send(Method::POST, None, &[(BATCH, "true"), (RANGE, "77")], body).await;
    assert_eq!((gone.status, gone.substatus), (410, 1002));
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_refuses_what_another_range_has() {
    let world = World::new(r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#, 12_000).await;
    let headers = |range| [(BATCH, "true"), (ATOMIC, "false"), (CONTINUE, "true"), (RANGE, range)];
    let body: Vec<String> = (0..20)
        .map(|i| {
            format!(
                r#"{{"operationType":"Upsert","partitionKey":"[{i}]","resourceBody":{{"id":"a","pk":{i}}}}}"#
            )
        })
        .collect();
    let body = format!("[{}]", body.join(","));
    let first = world.send(Method::POST, None, &headers("0"), &body).await.codes();
    let second = world.send(Method::POST, None, &headers("1"), &body).await.codes();
    for (first, second) in first.iter().zip(&second) {
        let mut pair = [*first, *second];
        pair.sort_unstable();
        assert_eq!(pair, [201, 410], "each key is in one range");
    }
    assert!(first.contains(&201) && second.contains(&201));
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_come_in_pages() {
    let world =
        World::new(r#""partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}"#, 12_000).await;
    for i in 0..12 {
        let (a, b) = (i % 3, i % 2);
        let body = format!("{{\"id\":\"{i}\",\"a\":{a},\"b\":{b}}}");
        assert_eq!(world.create(&format!("[{a},{b}]"), &body).await.status, 201);
    }
    let walk = |headers: Vec<(&'static str, String)>| {
        let world = &world;
        async move {
            let (mut ids, mut next): (Vec<String>, Option<String>) = (vec![], None);
            loop {
                let mut all: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                all.extend(next.as_deref().map(|next| (CONTINUATION, next)));
                let page = world.send(Method::GET, None, &all, "").await;
                assert_eq!((page.status, page.count), (200, Some(page.ids().len())), "{}", page.body);
                ids.extend(page.ids());
                next = page.continuation;
                if next.is_none() {
                    ids.sort_unstable_by_key(|id| id.parse::<u32>().expect("a number"));
                    return ids.join(" ");
                }
            }
        }
    };
    let everything = "0 1 2 3 4 5 6 7 8 9 10 11";
    for count in ["-1", "1", "5"] {
        assert_eq!(walk(vec![(COUNT, count.to_owned())]).await, everything);
    }
    assert_eq!(walk(vec![(KEY, "[1,0]".to_owned()), (COUNT, "1".to_owned())]).await, "4 10");
    assert_eq!(walk(vec![(KEY, "[1]".to_owned()), (COUNT, "2".to_owned())]).await, "1 4 7 10");
    let (first, second) =
        (walk(vec![(RANGE, "0".to_owned())]).await, walk(vec![(RANGE, "1".to_owned())]).await);
    assert_eq!(first.split_whitespace().count() + second.split_whitespace().count(), 12);
    let half = "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF".to_owned();
    assert_eq!(walk(vec![("x-ms-start-epk", half.clone()), ("x-ms-end-epk", "FF".to_owned())]).await, second);
    assert_eq!(walk(vec![("x-ms-end-epk", half)]).await, first);
    let wrong = world.send(Method::GET, None, &[(CONTINUATION, "nonsense")], "").await;
    assert_eq!(wrong.status, 400);
    let gone = world.send(Method::GET, None, &[(RANGE, "9")], "").await;
    assert_eq!((gone.status, gone.substatus), (410, 1002));
    let latest = ("a-im", "Incremental feed");
    let changes = world.send(Method::GET, None, &[latest], "").await;
    assert_eq!(changes.status, 400, "changes are read range by range: {}", changes.body);
    let both = world.send(Method::GET, None, &[latest, ("x-ms-end-epk", "3F")], "").await;
    assert_eq!((both.status, both.substatus), (410, 1002), "the client asks for the parts of its range");
    let format = ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
    let page = world.send(Method::GET, None, &[latest, format, (KEY, "[1]"), (COUNT, "1")], "").await;
    let page: serde_json::Value = serde_json::from_str(&page.body).expect("JSON");
    let change = &page["Documents"][0];
    assert_eq!(
        (&change["current"]["id"], &change["metadata"]["crts"]),
        (&"1".into(), &change["current"]["_ts"])
    );
    let versions = world.send(Method::GET, None, &[("a-im", "Full-Fidelity Feed"), (RANGE, "0")], "").await;
    assert_eq!(versions.status, 400);
    assert!(versions.body.contains("must be enabled"), "{}", versions.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_answer_within_their_scope() {
    let world = World::new(r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#, 12_000).await;
    for i in 0..10 {
        let pk = i % 5;
        let body = format!("{{\"id\":\"{i}\",\"pk\":{pk},\"n\":{i}}}");
        assert_eq!(world.create(&format!("[{pk}]"), &body).await.status, 201);
    }
    let query = |headers: Vec<(&'static str, &'static str)>, text: &str| {
        let body = format!("{{\"query\":\"{text}\",\"parameters\":[{{\"name\":\"@n\",\"value\":7}}]}}");
        let world = &world;
        let headers = [vec![(QUERY, "True")], headers].concat();
        async move { world.send(Method::POST, None, &headers, &body).await }
    };
    let one = query(vec![(KEY, "[2]")], "SELECT * FROM c WHERE c.n = @n").await;
    assert_eq!((one.status, one.ids(), one.count), (200, vec!["7".to_owned()], Some(1)), "{}", one.body);
    let none = query(vec![(KEY, "[1]")], "SELECT * FROM c WHERE c.n = @n").await;
    assert_eq!((none.status, none.count), (200, Some(0)));
    let order = query(vec![(KEY, "[3]")], "SELECT VALUE c.n FROM c ORDER BY c.n DESC").await;
    assert!(order.body.contains("\"Documents\":[8,3]"), "{}", order.body);
    let refused = query(vec![], "SELECT * FROM c").await;
    assert_eq!((refused.status, refused.substatus), (400, 0));
    assert!(refused.body.contains("Cross partition query is required but disabled"), "{}", refused.body);
    let pinned = query(vec![], "SELECT * FROM c WHERE c.pk = 2 AND c.n = @n").await;
    assert_eq!((pinned.status, pinned.count), (200, Some(1)), "{}", pinned.body);
    let free = query(vec![], "SELECT VALUE 1").await;
    assert!(free.body.contains("\"Documents\":[1]"), "{}", free.body);
    for text in ["SELECT * FROM c ORDER BY c.n", "SELECT TOP 1 * FROM c", "SELECT VALUE COUNT(1) FROM c"] {
        let planned = query(vec![(CROSS, "True")], text).await;
        assert_eq!((planned.status, planned.substatus), (400, 1004), "{}", planned.body);
        assert!(planned.body.contains("additionalErrorInfo"), "{}", planned.body);
        let ranged = query(vec![(RANGE, "1")], text).await;
        assert_eq!(ranged.status, 200, "{}", ranged.body);
    }
    let wrong = query(vec![(KEY, "[1]")], "SELEC * FROM c").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("SC1001"), "{}", wrong.body);
    // Clients that said "over all partitions" get to see aggregates that they cannot merge, filter or not.
    for (text, wanted) in [
        ("SELECT COUNT(1) FROM c WHERE c.pk = 2", (400, 1004)),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 2", (200, 0)),
        ("SELECT c.n, COUNT(1) AS k FROM c WHERE c.pk = 2 GROUP BY c.n", (200, 0)),
    ] {
        let answer = query(vec![(CROSS, "True")], text).await;
        assert_eq!((answer.status, answer.substatus), wanted, "{text}");
        assert_eq!(query(vec![(KEY, "[2]")], text).await.status, 200, "{text}");
    }
    let foreign = "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8";
    let resumed = query(vec![(KEY, "[2]"), (CONTINUATION, foreign)], "SELECT * FROM c").await;
    assert_eq!((resumed.status, resumed.count), (200, Some(2)), "{}", resumed.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_walk_all_partitions_page_by_page() {
    let world = World::new(r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#, 30_000).await;
    for i in 0..40 {
        let body = format!("{{\"id\":\"{i}\",\"pk\":{i}}}");
        assert_eq!(world.create(&format!("[{i}]"), &body).await.status, 201);
    }
    let body = r#"{"query":"SELECT * FROM c WHERE c.pk >= 10"}"#;
    for count in ["-1", "1", "7"] {
        let (mut ids, mut next): (Vec<String>, Option<String>) = (vec![], None);
        loop {
            let mut headers = vec![(QUERY, "true"), (CROSS, "true"), (COUNT, count)];
            headers.extend(next.as_deref().map(|next| (CONTINUATION, next)));
            let page = world.send(Method::POST, None, &headers, body).await;
            assert_eq!(page.status, 200, "{}", page.body);
            ids.extend(page.ids());
            next = page.continuation;
            if next.is_none() {
                break;
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 30, "pages of {count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_tell_how_to_merge() {
    let world = World::simple().await;
    let plan = |features: &'static str, text: &str| {
        let body = format!("{{\"query\":\"{text}\"}}");
        let world = &world;
        async move {
            let headers = [("x-ms-cosmos-is-query-plan-request", "True"), (FEATURES, features)];
            world.send(Method::POST, None, &headers, &body).await
        }
    };
    let order = plan("OrderBy, Top", "SELECT TOP 3 * FROM c ORDER BY c.n").await;
    assert_eq!(order.status, 200, "{}", order.body);
    assert!(order.field("queryInfo").contains("\"orderBy\":[\"Ascending\"]"), "{}", order.body);
    assert!(order.field("queryRanges").contains("\"min\":\"\",\"max\":\"FF\""), "{}", order.body);
    assert_eq!(plan("Top", "SELECT * FROM c ORDER BY c.n").await.status, 400);
    assert_eq!(plan("Top", "SELECT * FRO c").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_deleted_whole() {
    let world = World::simple().await;
    for i in 0..250 {
        let body = format!("{{\"id\":\"{i}\",\"pk\":\"{}\"}}", if i % 10 == 0 { "y" } else { "x" });
        let key = if i % 10 == 0 { r#"["y"]"# } else { r#"["x"]"# };
        assert_eq!(world.create(key, &body).await.status, 201);
    }
    let deleted = world.send(Method::POST, Some("partitionkeydelete!"), &[(KEY, r#"["x"]"#)], "").await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    let left = world.send(Method::GET, None, &[], "").await;
    assert_eq!(left.count, Some(25));
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_bodies_are_items_too() {
    let world = World::simple().await;
    // {"id":"a","pk":"x"}
    let body = Bytes::from_static(&[0x80, 0xEA, 8, 0x2C, 0x81, b'a', 0x82, b'p', b'k', 0x81, b'x']);
    let created = world.send_bytes(Method::POST, None, &[(KEY, r#"["x"]"#)], body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    assert!(created.body.starts_with(r#"{"id":"a","pk":"x","_rid""#), "{}", created.body);
}

/// Values that some header or body takes, and that others must survive.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("True".to_owned()),
        Just("False".to_owned()),
        Just("*".to_owned()),
        Just(r#"["x"]"#.to_owned()),
        Just("[{}]".to_owned()),
        Just("0:-1#1".to_owned()),
        Just("Session".to_owned()),
        Just("+RID:~00#61".to_owned()),
        Just("+RID:~00#FF@1f".to_owned()),
        Just("+RID:~#05@ffffffffffffffff*".to_owned()),
        Just("+RID:~00#61#QS:00".to_owned()),
        Just("#QS:ffff".to_owned()),
        Just("EffectivePartitionKeyRange".to_owned()),
        "[0-9A-F]{0,40}",
        "-?[0-9]{1,20}",
        "[ -~]{0,24}",
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let document =
        fragment().prop_map(|text| format!("{{\"id\":\"a\",\"pk\":\"x\",\"n\":{text}}}").into_bytes());
    let operation = ("(Create|Upsert|Read|Replace|Delete|Patch|Fly)", fragment()).prop_map(|(kind, text)| {
        let body = r#"{"id":"a","pk":"x","operations":[{"op":"incr","path":"/n","value":1}]}"#;
        let text = text.replace(['"', '\\'], "'");
        format!(
            r#"[{{"operationType":"{kind}","id":"a","partitionKey":"[\"x\"]","ifMatch":"{text}","resourceBody":{body}}}]"#
        )
        .into_bytes()
    });
    let query = fragment().prop_map(|text| {
        let text = text.replace(['"', '\\'], "'");
        format!("{{\"query\":\"SELECT * FROM c WHERE c.n = {text}\"}}").into_bytes()
    });
    let patch = Just(br#"[{"op":"set","path":"/n","value":1}]"#.to_vec());
    let binary = proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| [vec![0x80], bytes].concat());
    prop_oneof![document, operation, query, patch, binary, proptest::collection::vec(any::<u8>(), 0..40)]
}

#[test]
fn hostile_requests_are_answered_and_never_break_the_server() {
    const NAMES: [&str; 22] = [
        KEY,
        RANGE,
        UPSERT,
        BATCH,
        ATOMIC,
        CONTINUE,
        QUERY,
        CROSS,
        SESSION,
        COUNT,
        CONTINUATION,
        FEATURES,
        "x-ms-cosmos-is-query-plan-request",
        "if-match",
        "if-none-match",
        "prefer",
        "x-ms-start-epk",
        "x-ms-end-epk",
        "x-ms-read-key-type",
        "x-ms-consistency-level",
        "x-ms-indexing-directive",
        "x-ms-documentdb-populatequerymetrics",
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let world = runtime.block_on(World::simple());
    let methods = proptest::sample::select(vec![
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::OPTIONS,
    ]);
    let headers = proptest::collection::vec((proptest::sample::select(NAMES.to_vec()), fragment()), 0..6);
    let item = proptest::option::of(prop_oneof![Just("a".to_owned()), "[ -~]{0,24}"]);
    proptest!(ProptestConfig::with_cases(1_500), |(method in methods, item in item, headers in headers, body in body())| {
        let mut headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Most requests should come further than the check of their key.
        headers.insert(0, (KEY, r#"["x"]"#));
        let answer = runtime.block_on(world.send_bytes(method, item.as_deref(), &headers, body.into()));
        prop_assert!((200..500).contains(&answer.status), "{answer:?}");
    });
}
