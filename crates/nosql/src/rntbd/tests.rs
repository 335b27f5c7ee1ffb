//! A client in direct mode, frame by frame, at a gateway over an empty database in memory.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use http::Request;
use http_body_util::{BodyExt, Full};

use orrery_cluster::{Db, DbOptions};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::time::timeout;

use super::frame::{HEAD_BYTES, LENGTH_BYTES, Tokens};
use super::token::{Asked, Hello, Kind, Numbered, Told, Welcome};
use super::*;
use crate::auth::sign;
use crate::gateway::{Direct, Options};
use orrery_gateway::Unsent;

mod asked;
mod moved;
mod outlived;
mod recorded;
mod served;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Nothing that is waited for takes so long, on any machine.
const LONG: Duration = orrery_testkit::PATIENCE;
const ACTIVITY: [u8; 16] = [7; 16];

#[derive(Clone)]
struct Unobserved;

impl Observer for Unobserved {
    type Request = ();

    fn begins(&self) {}

    fn answered(&self, _: StatusCode, _: f64) {}

    fn sending(&self, _: Weak<Unsent>) {}
}

fn peer(scheme: Scheme) -> Peer {
    Peer::of(scheme, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1))
}

fn gateway(direct: Direct) -> Gateway {
    gateway_with(direct, KEY)
}

fn gateway_with(direct: Direct, key: &str) -> Gateway {
    let options = DbOptions::in_memory("orrery", "Local");
    let db = Db::open(options).expect("an empty database opens");
    Gateway::new(
        db,
        orrery_gateway::Keys::new([key], []).expect("a key"),
        Options { direct, ..Options::default() },
    )
}

/// A request over HTTP, signed for a link.
async fn http(
    gateway: &Gateway,
    scheme: Scheme,
    asked: (&str, &str),
    signed: (&str, &str),
    headers: &[(&str, &str)],
    body: Json,
) -> (u16, Json) {
    http_with(KEY, gateway, scheme, asked, signed, headers, body).await
}

async fn http_with(
    key: &str,
    gateway: &Gateway,
    scheme: Scheme,
    (method, uri): (&str, &str),
    (kind, link): (&str, &str),
    headers: &[(&str, &str)],
    body: Json,
) -> (u16, Json) {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let signature = sign(key, &method, kind, link, &date).expect("a key");
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "db.example.test:8081")
        .header("x-ms-date", &date)
        .header("authorization", signature);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let request = request.body(Full::new(Bytes::from(text))).expect("a request");
    let (parts, body) = gateway.handle(request, peer(scheme)).await.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Json::Null))
}

/// A gateway with a container, and the RID of that.
async fn world() -> (Gateway, String) {
    let gateway = gateway(Direct::SamePort);
    let made = http(&gateway, Scheme::Https, ("POST", "/dbs"), ("dbs", ""), &[], json!({"id": "d"})).await;
    assert_eq!(made.0, 201);
    let rid = make_container(&gateway).await;
    (gateway, rid)
}

async fn make_container(gateway: &Gateway) -> String {
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let (status, made) =
        http(gateway, Scheme::Https, ("POST", "/dbs/d/colls"), ("colls", "dbs/d"), &[], body).await;
    assert_eq!(status, 201);
    made["_rid"].as_str().expect("a RID").to_owned()
}

fn path_of(rid: &str, range: u32) -> String {
    let container = orrery_cluster::Rid::parse(rid).expect("a RID");
    Place::Range { container, range }.replica(true).trim_end_matches('/').to_owned()
}

/// A frame that is written piece by piece, right or wrong.
#[derive(Clone)]
struct Asking {
    resource: u16,
    operation: u16,
    tokens: Vec<u8>,
    payload: Option<Vec<u8>>,
}

impl Asking {
    fn new(resource: u16, operation: u16) -> Asking {
        Asking { resource, operation, tokens: Vec::new(), payload: None }
    }

    fn token(mut self, token: impl Numbered, value: &[u8]) -> Asking {
        self.tokens.extend_from_slice(&token.id().to_le_bytes());
        self.tokens.push(token.kind() as u8);
        if let super::token::Size::Counted(width) = token.kind().size() {
            self.tokens.extend_from_slice(&value.len().to_le_bytes()[..width]);
        }
        self.tokens.extend_from_slice(value);
        self
    }

    /// A token as it stands in another frame.
    fn raw_token(mut self, token: &frame::Token<'_>) -> Asking {
        token.write(&mut self.tokens);
        self
    }

    fn text(self, token: impl Numbered, text: &str) -> Asking {
        self.token(token, text.as_bytes())
    }

    fn body(mut self, body: &str) -> Asking {
        self.payload = Some(body.as_bytes().to_vec());
        self
    }

    fn signed(self, verb: &str, kind: &str, link: &str) -> Asking {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let method = Method::from_bytes(verb.as_bytes()).expect("a verb");
        let signature = sign(KEY, &method, kind, link, &date).expect("a key");
        self.text(Asked::AuthorizationToken, &signature).text(Asked::Date, &date)
    }

    /// An operation on the items of `c`, of the key `k`.
    fn on_items(operation: u16, verb: &str, item: Option<&str>, rid: &str) -> Asking {
        let link = item.map_or("dbs/d/colls/c".to_owned(), |item| format!("dbs/d/colls/c/docs/{item}"));
        let asking = Asking::new(3, operation).signed(verb, "docs", &link);
        let asking = asking.text(Asked::DatabaseName, "d").text(Asked::CollectionName, "c");
        let asking = asking.text(Asked::ReplicaPath, &path_of(rid, 0)).text(Asked::CollectionRid, rid);
        match item {
            Some(item) => asking.text(Asked::DocumentName, item),
            None => asking,
        }
    }

    fn key(self) -> Asking {
        self.text(Asked::PartitionKey, "[\"k\"]")
    }

    fn bytes(&self, transport: u32) -> Vec<u8> {
        let whole = self
            .clone()
            .token(Asked::PayloadPresent, &[u8::from(self.payload.is_some())])
            .token(Asked::TransportRequestId, &transport.to_le_bytes());
        whole.raw()
    }

    fn raw(&self) -> Vec<u8> {
        let mut out = ((HEAD_BYTES + self.tokens.len()) as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&self.resource.to_le_bytes());
        out.extend_from_slice(&self.operation.to_le_bytes());
        out.extend_from_slice(&ACTIVITY);
        out.extend_from_slice(&self.tokens);
        if let Some(payload) = &self.payload {
            out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            out.extend_from_slice(payload);
        }
        out
    }
}

fn hello() -> Vec<u8> {
    Asking::new(0, 0)
        .token(Hello::ProtocolVersion, &1u32.to_le_bytes())
        .text(Hello::ClientVersion, "2020-07-15")
        .text(Hello::UserAgent, "test")
        .raw()
}

/// An answer, with its tokens as they came.
#[derive(Debug)]
struct Heard {
    status: u32,
    tokens: Vec<u8>,
    body: Vec<u8>,
}

impl Heard {
    fn token(&self, wanted: Told) -> Option<Vec<u8>> {
        let found = Tokens::of(&self.tokens)
            .map(|token| token.expect("well-formed"))
            .find(|token| token.id == wanted.id())?;
        assert_eq!(found.kind, wanted.kind(), "{wanted:?}");
        Some(match found.kind {
            Kind::Byte => vec![found.byte().expect("a byte")],
            Kind::ULong => found.number().expect("a number").to_le_bytes().to_vec(),
            Kind::String | Kind::SmallString => found.text().expect("a text").as_bytes().to_vec(),
            // What is left here are positions, whose bytes are the end of their token.
            _ => {
                let id = wanted.id().to_le_bytes();
                let at =
                    self.tokens.windows(3).position(|three| three == [id[0], id[1], Kind::LongLong as u8]);
                self.tokens[at.expect("it was found") + 3..][..8].to_vec()
            }
        })
    }

    fn text(&self, wanted: Told) -> String {
        String::from_utf8(self.token(wanted).unwrap_or_default()).expect("text")
    }

    fn number(&self, wanted: Told) -> u32 {
        self.token(wanted).map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn position(&self, wanted: Told) -> i64 {
        self.token(wanted).map_or(0, |bytes| i64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    fn json(&self) -> Json {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// What clients insist on in every answer of a partition.
    fn checked(self, status: u32, substatus: u32) -> Heard {
        assert_eq!((self.status, self.number(Told::SubStatus)), (status, substatus), "{self:?}");
        for position in [Told::Lsn, Told::LocalLsn, Told::QuorumAckedLocalLsn, Told::GlobalCommittedLsn] {
            assert!(self.position(position) > 0, "{position:?} of {self:?}");
        }
        assert_eq!(self.number(Told::CurrentReplicaSetSize), 1);
        assert!(self.text(Told::SessionToken).starts_with("-1#"), "{self:?}");
        self
    }
}

struct Client {
    stream: DuplexStream,
    next: u32,
}

impl Client {
    fn silent(gateway: &Gateway) -> Client {
        let (stream, other) = tokio::io::duplex(64 * 1024);
        let gateway = gateway.clone();
        let header = Duration::from_millis(300);
        let times = RequestTime { header, request: LONG, idle: LONG, unknown: LONG };
        tokio::spawn(async move {
            let stopping = std::future::pending();
            let _ = gateway.serve_direct(other, peer(Scheme::Https), Unobserved, times, stopping).await;
        });
        Client { stream, next: 0 }
    }

    async fn of(gateway: &Gateway) -> Client {
        let mut client = Client::silent(gateway);
        client.send(&hello()).await;
        let welcome = client.hear().await.expect("a welcome");
        assert_eq!((welcome.0, welcome.1.status), (None, 200));
        client
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("sent");
    }

    /// The next answer, and which request it is to; none if the server has ended the connection.
    async fn hear(&mut self) -> Option<(Option<u32>, Heard)> {
        let mut head = [0; HEAD_BYTES];
        timeout(LONG, self.stream.read_exact(&mut head)).await.expect("in time").ok()?;
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        assert_eq!(head[8..], ACTIVITY);
        let mut tokens = vec![0; number(0) as usize - HEAD_BYTES];
        self.stream.read_exact(&mut tokens).await.expect("tokens");
        let mut heard = Heard { status: number(4), tokens, body: Vec::new() };
        let is_context = heard.token_kind(0) == Some(Kind::ULong);
        if is_context && heard.status < 300 {
            return Some((None, heard));
        }
        if is_context || heard.token(Told::PayloadPresent) == Some(vec![1]) {
            let mut length = [0; LENGTH_BYTES];
            self.stream.read_exact(&mut length).await.expect("a length");
            heard.body = vec![0; u32::from_le_bytes(length) as usize];
            self.stream.read_exact(&mut heard.body).await.expect("a payload");
        }
        Some(((!is_context).then(|| heard.number(Told::TransportRequestId)), heard))
    }

    async fn ask(&mut self, asking: Asking) -> Heard {
        self.next += 1;
        let bytes = asking.bytes(self.next);
        self.send(&bytes).await;
        let (transport, heard) = self.hear().await.expect("an answer");
        assert_eq!(transport, Some(self.next));
        heard
    }

    async fn is_closed(&mut self) -> bool {
        self.hear().await.is_none()
    }
}

impl Heard {
    fn token_kind(&self, id: u16) -> Option<Kind> {
        Tokens::of(&self.tokens).flatten().find(|token| token.id == id).map(|token| token.kind)
    }
}

const CREATE: u16 = 1;
const READ: u16 = 3;
const READ_FEED: u16 = 4;
const DELETE: u16 = 5;
const REPLACE: u16 = 6;
const QUERY: u16 = 0x0F;
const HEAD: u16 = 0x11;
const UPSERT: u16 = 0x13;
const BATCH: u16 = 0x25;

#[tokio::test]
async fn items_are_made_read_changed_and_deleted() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let ask = |operation, verb: &'static str, item| Asking::on_items(operation, verb, item, &rid).key();
    let made =
        client.ask(ask(CREATE, "post", None).body(r#"{"id":"a%20#ü 1","pk":"k"}"#)).await.checked(201, 0);
    let etag = made.text(Told::Etag);
    assert_eq!(
        (made.json()["_etag"].as_str(), made.text(Told::PartitionKeyRangeId)),
        (Some(&*etag), "0".into())
    );
    assert_eq!(
        (made.text(Told::OwnerFullName), made.text(Told::OwnerId)),
        ("dbs/d/colls/c".into(), rid.clone())
    );
    client.ask(ask(CREATE, "post", None).body(r#"{"id":"a%20#ü 1","pk":"k"}"#)).await.checked(409, 0);
    let read = client.ask(ask(READ, "get", Some("a%20#ü 1"))).await.checked(200, 0);
    assert_eq!(read.json()["id"], "a%20#ü 1");
    assert_eq!(read.position(Told::ItemLsn), read.position(Told::Lsn));
    client.ask(ask(READ, "get", Some("a%20#ü 1")).text(Asked::Match, &etag)).await.checked(304, 0);
    client.ask(ask(READ, "get", Some("none"))).await.checked(404, 0);
    let stale = ask(REPLACE, "put", Some("a%20#ü 1"))
        .text(Asked::Match, "\"x\"")
        .body(r#"{"id":"a%20#ü 1","pk":"k"}"#);
    client.ask(stale).await.checked(412, 0);
    let quiet = ask(UPSERT, "post", None).token(Asked::ReturnPreference, &[1]).body(r#"{"id":"b","pk":"k"}"#);
    assert!(client.ask(quiet).await.checked(201, 0).body.is_empty());
    client.ask(ask(CREATE, "post", None).body(r#"{"id":"c","pk":"other"}"#)).await.checked(400, 1001);
    client.ask(ask(DELETE, "delete", Some("b"))).await.checked(204, 0);
    let big = format!(r#"{{"id":"big","pk":"k","text":"{}"}}"#, "x".repeat(500_000));
    client.ask(ask(CREATE, "post", None).body(&big)).await.checked(201, 0);
    assert!(client.ask(ask(READ, "get", Some("big"))).await.checked(200, 0).body.len() > 500_000);
    let huge = ask(CREATE, "post", None).body(&"x".repeat(3_000_000));
    client.ask(huge).await.checked(413, 0);
    client.ask(ask(READ, "get", Some("a%20#ü 1"))).await.checked(200, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_and_queries_come_in_pages() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    for id in ["1", "2", "3"] {
        let body = json!({"id": id, "pk": "k"}).to_string();
        client.ask(Asking::on_items(CREATE, "post", None, &rid).key().body(&body)).await.checked(201, 0);
    }
    let feed = || Asking::on_items(READ_FEED, "get", None, &rid).token(Asked::PageSize, &2u32.to_le_bytes());
    let first = client.ask(feed().text(Asked::PartitionKeyRangeId, "0")).await.checked(200, 0);
    assert_eq!((first.number(Told::ItemCount), first.json()["_count"].as_u64()), (2, Some(2)));
    let continuation = first.text(Told::ContinuationToken);
    assert!(!continuation.is_empty() && !continuation.contains(';'));
    // One that names no range is about that of the replica.
    let rest = client.ask(feed().text(Asked::ContinuationToken, &continuation)).await.checked(200, 0);
    assert_eq!((rest.number(Told::ItemCount), rest.text(Told::ContinuationToken)), (1, String::new()));
    let query = |text: &str| {
        let body = json!({"query": text, "parameters": []}).to_string();
        let asking = Asking::on_items(QUERY, "post", None, &rid).body(&body);
        asking.text(Asked::PartitionKeyRangeId, "0").token(Asked::PopulateQueryMetrics, &[1])
    };
    let found = client.ask(query("SELECT VALUE c.id FROM c ORDER BY c.id DESC")).await.checked(200, 0);
    assert_eq!(found.json()["Documents"], json!(["3", "2", "1"]));
    assert!(found.text(Told::QueryMetrics).contains("retrievedDocumentCount=3"), "{found:?}");
    client.ask(query("SELECT FROM")).await.checked(400, 0);
    let changes = Asking::on_items(READ_FEED, "get", None, &rid).text(Asked::AIm, "Incremental Feed");
    let changed = client.ask(changes.clone()).await.checked(200, 0);
    let etag = changed.text(Told::Etag);
    let none = client.ask(changes.text(Asked::Match, &etag)).await.checked(304, 0);
    assert_eq!((none.token(Told::ItemCount), none.text(Told::Etag)), (Some(vec![0; 4]), etag));
}

#[tokio::test]
async fn the_catalog_is_read_in_the_master_partition() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let master = Place::Master.replica(true);
    let read = Asking::new(1, READ).signed("get", "dbs", "dbs/d").text(Asked::DatabaseName, "d");
    let read = client.ask(read.text(Asked::ReplicaPath, &master)).await.checked(200, 0);
    assert_eq!((read.json()["id"].as_str(), read.token(Told::PartitionKeyRangeId)), (Some("d"), None));
    let feed = Asking::new(1, READ_FEED).signed("get", "dbs", "").text(Asked::ReplicaPath, &master);
    assert_eq!(client.ask(feed).await.checked(200, 0).number(Told::ItemCount), 1);
    let query = Asking::new(2, QUERY).signed("post", "colls", "dbs/d").text(Asked::DatabaseName, "d");
    let query = query.text(Asked::ReplicaPath, &master).body(r#"{"query":"SELECT VALUE c.id FROM c"}"#);
    assert_eq!(client.ask(query).await.checked(200, 0).json()["DocumentCollections"], json!(["c"]));
    let barrier =
        Asking::new(2, HEAD).signed("head", "colls", "dbs/d/colls/c").text(Asked::DatabaseName, "d");
    let barrier = barrier.text(Asked::CollectionName, "c").text(Asked::ReplicaPath, &path_of(&rid, 0));
    assert!(client.ask(barrier).await.checked(200, 0).body.is_empty());
}

/// Old clients name what they have a self link of by its RID alone, and sign that in lower case.
#[tokio::test]
async fn resources_are_named_by_rid() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let body = r#"{"id":"a","pk":"k"}"#;
    let made =
        client.ask(Asking::on_items(CREATE, "post", None, &rid).key().body(body)).await.checked(201, 0);
    let item = made.json()["_rid"].as_str().expect("a RID").to_owned();
    let bytes = orrery_cluster::Rid::parse(&item).expect("a RID");
    let by_rid = |kind: &str| {
        let asking = Asking::new(3, READ).signed("get", kind, &item.to_lowercase()).key();
        asking.token(Asked::ResourceId, bytes.as_bytes()).text(Asked::ReplicaPath, &path_of(&rid, 0))
    };
    assert_eq!(client.ask(by_rid("docs")).await.checked(200, 0).json()["id"], "a");
    client.ask(by_rid("colls")).await.checked(401, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_at_the_wrong_place_are_sent_to_look_anew() {
    let (gateway, old) = world().await;
    let mut client = Client::of(&gateway).await;
    let read = |rid: &str, path: &str| {
        let asking = Asking::new(3, READ).signed("get", "docs", "dbs/d/colls/c/docs/a").key();
        let asking = asking.text(Asked::DatabaseName, "d").text(Asked::CollectionName, "c");
        asking.text(Asked::DocumentName, "a").text(Asked::CollectionRid, rid).text(Asked::ReplicaPath, path)
    };
    let gone = |heard: Heard| (heard.status, heard.number(Told::SubStatus));
    assert_eq!(gone(client.ask(read(&old, &path_of(&old, 7))).await), (410, 1007));
    assert_eq!(gone(client.ask(read(&old, "/apps/a/services/b/partitions/c/replicas/1p")).await), (410, 0));
    assert_eq!(gone(client.ask(read(&old, &Place::Master.replica(true))).await), (410, 0));
    let feed = Asking::on_items(READ_FEED, "get", None, &old).text(Asked::PartitionKeyRangeId, "7");
    assert_eq!(gone(client.ask(feed).await), (410, 1002));
    let delete = ("DELETE", "/dbs/d/colls/c");
    let signed = ("colls", "dbs/d/colls/c");
    assert_eq!(http(&gateway, Scheme::Https, delete, signed, &[], Json::Null).await.0, 204);
    assert_eq!(gone(client.ask(read(&old, &path_of(&old, 0))).await), (410, 0));
    let new = make_container(&gateway).await;
    assert_eq!(gone(client.ask(read(&old, &path_of(&old, 0))).await), (410, 1000));
    assert_eq!(gone(client.ask(read(&new, &path_of(&old, 0))).await), (410, 0));
    client.ask(read(&new, &path_of(&new, 0))).await.checked(404, 0);
}

#[tokio::test]
async fn each_frame_says_who_asks() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let unsigned = Asking::new(3, READ).text(Asked::DatabaseName, "d").text(Asked::CollectionName, "c");
    let unsigned = unsigned.text(Asked::DocumentName, "a").text(Asked::ReplicaPath, &path_of(&rid, 0)).key();
    let refused = client.ask(unsigned.clone()).await.checked(401, 0);
    assert!(refused.json()["message"].as_str().is_some_and(|text| text.contains("authorization")));
    client.ask(unsigned.clone().signed("get", "docs", "dbs/d/colls/c/docs/a")).await.checked(404, 0);
    client.ask(unsigned.signed("get", "docs", "dbs/d/colls/c/docs/b")).await.checked(401, 0);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_and_the_next_is_answered() {
    let (gateway, rid) = world().await;
    let mut client = Client::of(&gateway).await;
    let read = || Asking::on_items(READ, "get", Some("a"), &rid).key();
    let mut wrong_kind = read();
    wrong_kind.tokens.extend_from_slice(&[0x10, 0, Kind::ULong as u8, 0, 0, 0, 0]);
    for (asking, word) in [
        (wrong_kind, "ConsistencyLevel"),
        (read().token(Asked::ConsistencyLevel, &[9]), "ConsistencyLevel"),
        (read().token(Asked::IsBatchAtomic, &[2]), "IsBatchAtomic"),
        (read().token(Asked::SessionToken, &[0xFF]), "SessionToken"),
        (read().token(Asked::StartEpk, b"00"), "read key type"),
        (read().token(Asked::ThroughputBucket, &[6]), "throughput-bucket"),
        (Asking { operation: 99, ..read() }, "99"),
        (Asking { resource: 15, ..read() }, "15"),
    ] {
        let refused = client.ask(asking).await;
        let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == 400 && message.contains(word), "{word}: {refused:?} {message}");
    }
    // What nobody knows is skipped.
    let mut unknown = read();
    unknown.tokens.extend_from_slice(&[0xFF, 0x7F, Kind::SmallString as u8, 2, b'h', b'i']);
    client.ask(unknown).await.checked(404, 0);
}

#[tokio::test]
async fn bytes_that_are_no_frame_end_the_connection() {
    let (gateway, rid) = world().await;
    let read = Asking::on_items(READ, "get", Some("a"), &rid).key();
    let whole = read.bytes(1);
    let with_length = |length: u32| {
        let mut bytes = whole.clone();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    let transport = |asking: Asking| asking.token(Asked::TransportRequestId, &[1, 0, 0, 0]);
    for (bytes, what) in [
        (with_length(0), "a length of nothing"),
        (with_length(23), "shorter than its head"),
        (with_length(u32::MAX), "longer than all memory"),
        (with_length(whole.len() as u32 - 1), "an end within a token"),
        (read.raw(), "neither payload nor number"),
        (transport(read.clone()).raw(), "no word about a payload"),
        (read.clone().token(Asked::PayloadPresent, &[0]).raw(), "no number"),
        (read.clone().token(Asked::PayloadPresent, &[1]).bytes(1), "said twice"),
        (read.clone().text(Asked::DatabaseName, "e").bytes(1), "named twice"),
        (hello(), "a second beginning"),
    ] {
        let mut client = Client::of(&gateway).await;
        client.send(&bytes).await;
        assert!(client.is_closed().await, "{what}");
    }
    for first in [whole.clone(), b"GET / HTTP/1.1\r\n\r\n".to_vec(), Asking::new(0, 0).raw()] {
        let mut client = Client::silent(&gateway);
        client.send(&first).await;
        assert!(client.is_closed().await, "it began with something else");
    }
    // What does not come to its end is given up.
    for end in [1, HEAD_BYTES - 1, HEAD_BYTES + 5, whole.len() - 1] {
        let mut client = Client::of(&gateway).await;
        client.send(&whole[..end]).await;
        assert!(client.is_closed().await, "{end} bytes");
    }
    let mut client = Client::of(&gateway).await;
    client.ask(read).await.checked(404, 0);
}

/// The answer names what the client should have spoken.
#[tokio::test]
async fn a_client_that_speaks_another_version_is_turned_away() {
    let (gateway, _) = world().await;
    for (protocol, version, words) in [
        (1u32, "2001-01-01", "Invalid API version"),
        (2, "2020-07-15", "Version 2 of the protocol RNTBD"),
        (0, "2020-07-15", "Version 0 of the protocol RNTBD"),
    ] {
        let mut client = Client::silent(&gateway);
        let hello = Asking::new(0, 0).token(Hello::ProtocolVersion, &protocol.to_le_bytes());
        client.send(&hello.text(Hello::ClientVersion, version).raw()).await;
        let (_, refused) = client.hear().await.expect("an answer");
        assert_eq!(refused.status, 400, "{protocol} {version}");
        assert!(String::from_utf8_lossy(&refused.body).contains(words), "{protocol} {version}");
        let told: Vec<frame::Token<'_>> = Tokens::of(&refused.tokens).flatten().collect();
        let told = |wanted: Welcome| *told.iter().find(|token| token.id == wanted.id()).expect("it is told");
        assert_eq!(told(Welcome::ProtocolVersion).number(), Ok(1));
        assert_eq!(told(Welcome::ClientVersion).text(), Ok(crate::headers::NEWEST_VERSION));
        assert!(client.is_closed().await);
    }
}

/// More requests than a connection may have at once wait in the socket, and all are answered.
#[tokio::test]
async fn many_requests_are_in_flight_on_one_connection() {
    let (gateway, rid) = world().await;
    let client = Client::of(&gateway).await;
    let (reading, mut writing) = tokio::io::split(client.stream);
    const COUNT: u32 = 700;
    let sending = async {
        for transport in 1..=COUNT {
            let asking = match transport % 2 {
                0 => Asking::on_items(READ, "get", Some("a"), &rid).key(),
                _ => {
                    let body = json!({"id": transport.to_string(), "pk": "k"}).to_string();
                    Asking::on_items(CREATE, "post", None, &rid).key().body(&body)
                }
            };
            writing.write_all(&asking.bytes(transport)).await.expect("sent");
        }
    };
    let mut reading = tokio::io::BufReader::new(reading);
    let hearing = async {
        let mut heard = std::collections::BTreeMap::new();
        while heard.len() < COUNT as usize {
            let mut head = [0; HEAD_BYTES];
            reading.read_exact(&mut head).await.expect("a head");
            let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
            let mut tokens = vec![0; number(0) as usize - HEAD_BYTES];
            reading.read_exact(&mut tokens).await.expect("tokens");
            let answer = Heard { status: number(4), tokens, body: Vec::new() };
            let length = reading.read_u32_le().await.expect("all have a payload");
            let mut body = vec![0; length as usize];
            reading.read_exact(&mut body).await.expect("a payload");
            let transport = answer.number(Told::TransportRequestId);
            assert_eq!(heard.insert(transport, answer.status), None, "{transport} is answered twice");
        }
        heard
    };
    let ((), heard) = timeout(LONG, async { tokio::join!(sending, hearing) }).await.expect("in time");
    assert!(heard.iter().all(|(transport, status)| *status == if transport % 2 == 0 { 404 } else { 201 }));
}

/// A stream that notes what is written at once.
struct Noted {
    stream: DuplexStream,
    writes: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = outcome {
            self.writes.lock().expect("nobody panicked").push(bytes[..count].to_vec());
        }
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The Java client reads only one answer of a TLS record, and a record is made of each write.
#[tokio::test]
async fn no_two_answers_are_written_at_once() {
    let (gateway, rid) = world().await;
    let (stream, other) = tokio::io::duplex(64 * 1024);
    let writes = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let noted = Noted { stream: other, writes: Arc::clone(&writes) };
    let times = RequestTime { header: LONG, request: LONG, idle: LONG, unknown: LONG };
    tokio::spawn(async move {
        let stopping = std::future::pending();
        let _ = gateway.serve_direct(noted, peer(Scheme::Https), Unobserved, times, stopping).await;
    });
    let mut client = Client { stream, next: 0 };
    const COUNT: u32 = 20;
    let read = |transport| Asking::on_items(READ, "get", Some("none"), &rid).key().bytes(transport);
    let together: Vec<u8> = std::iter::once(hello()).chain((1..=COUNT).map(read)).flatten().collect();
    client.send(&together).await;
    for _ in 0..=COUNT {
        client.hear().await.expect("an answer");
    }
    let writes = writes.lock().expect("nobody panicked");
    for written in &*writes {
        let length = u32::from_le_bytes(written[..4].try_into().expect("four bytes")) as usize;
        let rest = &written[length..];
        let payload =
            rest.first_chunk().map_or(0, |length| LENGTH_BYTES + u32::from_le_bytes(*length) as usize);
        assert_eq!(rest.len(), payload, "{} writes", writes.len());
    }
}

#[tokio::test]
async fn addresses_are_told_over_https() {
    let (gateway, rid) = world().await;
    let database =
        orrery_cluster::Rid::parse(&rid).and_then(|rid| rid.database_part()).expect("a RID").to_string();
    let lower = rid.to_lowercase();
    let ask = async |slashes: &str, ranges: &str, rid: &str, lower: &str| {
        let uri = format!(
            "{slashes}addresses/?$resolveFor=dbs%2f{database}%2fcolls%2f{rid}%2fdocs&$filter=protocol%20eq%20rntbd\
             &$partitionKeyRangeIds={ranges}"
        );
        http(&gateway, Scheme::Https, ("GET", &uri), ("docs", lower), &[], Json::Null).await
    };
    for slashes in ["/", "//"] {
        let (status, told) = ask(slashes, "0", &rid, &lower).await;
        assert_eq!((status, told["_count"].as_u64()), (200, Some(2)), "{told}");
        let replicas = told["Addresss"].as_array().expect("a list");
        let of = |name: &str| replicas.iter().map(|replica| replica[name].clone()).collect::<Vec<Json>>();
        assert_eq!(of("isPrimary"), [json!(true), json!(false)]);
        assert_eq!(of("partitionKeyRangeId"), [json!("0"), json!("0")]);
        assert_eq!(of("protocol"), [json!("rntbd"), json!("rntbd")]);
        let prefix = "rntbd://db.example.test:8081/apps/";
        assert!(of("physcialUri").iter().all(|uri| uri.as_str().is_some_and(|uri| uri.starts_with(prefix))));
    }
    assert_eq!(ask("//", "0,1,2", &rid, &lower).await.1["_count"], 2);
    assert_eq!(ask("//", "5", &rid, &lower).await.0, 410);
    assert_eq!(ask("//", "0", &rid, "other").await.0, 401);
    assert_eq!(ask("//", "0", "AAAAAYAAAAk=", "aaaaayaaaak=").await.0, 404);
    let master = "//addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd";
    let told = http(&gateway, Scheme::Https, ("GET", master), ("dbs", ""), &[], Json::Null).await;
    assert_eq!((told.0, told.1["Addresss"][0]["partitionKeyRangeId"].as_str()), (200, Some("M")));
    let refused = http(&gateway, Scheme::Http, ("GET", master), ("dbs", ""), &[], Json::Null).await;
    let words =
        |refused: &Json, word: &str| refused["message"].as_str().is_some_and(|text| text.contains(word));
    assert!(refused.0 == 400 && words(&refused.1, "https") && words(&refused.1, "gateway mode"));
    let off = self::gateway(Direct::Off);
    let refused = http(&off, Scheme::Https, ("GET", master), ("dbs", ""), &[], Json::Null).await;
    assert!(refused.0 == 400 && words(&refused.1, "--direct-port") && words(&refused.1, "gateway mode"));
}

proptest! {
    /// Frames that are made wrong in one place, or in many, or cut: the server answers or ends the connection, and the
    /// next client is served.
    #[test]
    fn mutated_frames_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (gateway, rid) = world().await;
            let body = r#"{"id":"a","pk":"k"}"#;
            let mut bytes = Asking::on_items(CREATE, "post", None, &rid).key().body(body).bytes(1);
            for (place, byte) in &changes {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            if let Some(cut) = &cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let mut client = Client::of(&gateway).await;
            client.send(&bytes).await;
            client.stream.shutdown().await.expect("shut");
            let mut rest = Vec::new();
            timeout(LONG, client.stream.read_to_end(&mut rest)).await.expect("it ends").expect("read");
            let mut other = Client::of(&gateway).await;
            other.ask(Asking::on_items(READ, "get", Some("b"), &rid).key()).await.checked(404, 0);
        });
    }
}
