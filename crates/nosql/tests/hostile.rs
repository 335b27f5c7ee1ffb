//! Signed requests that make no sense, at every path: the answer is never a 500, and nothing panics.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use orrery_cluster::store::limits::PartitionLimits;
use orrery_cluster::{Account, Consistency, Db, DbOptions, Durability, Storage};
use orrery_nosql::{Gateway, Keys, Options, Peer, Scheme};
use proptest::prelude::*;
use sha2::Sha256;
use tokio::runtime::Runtime;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const PATHS: [&str; 13] = [
    "/",
    "/dbs",
    "/dbs/d",
    "/dbs/d/colls",
    "/dbs/d/colls/c",
    "/dbs/d/colls/c/docs",
    "/dbs/d/colls/c/docs/i",
    "/dbs/d/colls/c/pkranges",
    "/dbs/d/colls/c/conflicts",
    "/dbs/d/colls/c/operations/partitionkeydelete",
    "/offers",
    "/offers/AAAB",
    "/dbs/d/colls/h/docs",
];

const HEADERS: [&str; 32] = [
    "x-ms-documentdb-partitionkey",
    "x-ms-documentdb-partitionkeyrangeid",
    "x-ms-documentdb-isquery",
    "x-ms-documentdb-is-upsert",
    "x-ms-documentdb-query-enablecrosspartition",
    "x-ms-documentdb-populatequerymetrics",
    "x-ms-cosmos-is-query-plan-request",
    "x-ms-cosmos-supported-query-features",
    "x-ms-cosmos-is-batch-request",
    "x-ms-cosmos-batch-atomic",
    "x-ms-cosmos-batch-continue-on-error",
    "x-ms-cosmos-intended-collection-rid",
    "x-ms-cosmos-offer-autopilot-settings",
    "x-ms-cosmos-migrate-offer-to-autopilot",
    "x-ms-cosmos-read-consistency-strategy",
    "x-ms-start-epk",
    "x-ms-end-epk",
    "x-ms-read-key-type",
    "x-ms-max-item-count",
    "x-ms-continuation",
    "x-ms-session-token",
    "x-ms-consistency-level",
    "x-ms-indexing-directive",
    "x-ms-offer-throughput",
    "x-ms-activity-id",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "a-im",
    "prefer",
    "content-type",
    "x-orrery-explain-charge",
];

/// Values that are right for some header, and so get further than noise does.
const VALUES: [&str; 22] = [
    "true",
    "True",
    "[\"k\"]",
    "[]",
    "[{}]",
    "[null]",
    "[1,2]",
    "0",
    "1",
    "-1",
    "*",
    "00",
    "FF",
    "0:-1#1",
    "7:-1#99999",
    "Incremental feed",
    "return=minimal",
    "application/query+json",
    "Strong",
    "Exclude",
    "AAAAAQ==",
    "EffectivePartitionKeyRange",
];

const BODIES: [&str; 16] = [
    "",
    "{}",
    "[]",
    "null",
    "{\"id\":\"i\",\"pk\":\"k\"}",
    "{\"id\":\"x\"}",
    "{\"id\":5}",
    "{\"query\":\"SELECT * FROM c\"}",
    "{\"query\":\"SELECT c.id, COUNT(1) FROM c GROUP BY c.id ORDER BY c.x\"}",
    "{\"query\":\"SELECT TOP 5 * FROM c WHERE c.pk = @p\",\"parameters\":[{\"name\":\"@p\",\"value\":[1]}]}",
    "{\"operations\":[{\"op\":\"incr\",\"path\":\"/n\",\"value\":1}]}",
    "[{\"operationType\":\"Create\",\"resourceBody\":{\"id\":\"b\",\"pk\":\"k\"}}]",
    "[{\"operationType\":\"Read\",\"id\":\"i\",\"partitionKey\":\"[\\\"k\\\"]\"},{}]",
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/a/[\"}]}}",
    "{\"content\":{\"offerThroughput\":1e300}}",
    "\u{80}",
];

fn text_or<'a>(known: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> + use<'a> {
    prop_oneof![
        3 => (0..known.len()).prop_map(|place| known[place].as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..64),
        1 => "[\\[\\]{}\",:0-9a-z\\\\#=.-]{0,40}".prop_map(String::into_bytes),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let noise = "[a-zA-Z0-9%/=+._-]{1,40}";
    prop_oneof![
        5 => (0..PATHS.len()).prop_map(|place| PATHS[place].to_owned()),
        1 => (0..PATHS.len(), noise).prop_map(|(place, tail)| format!("{}/{tail}", PATHS[place])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_answered_with_500(
        method in 0..METHODS.len(),
        path in path(),
        headers in proptest::collection::vec((0..HEADERS.len(), text_or(&VALUES)), 0..5),
        body in text_or(&BODIES),
    ) {
        let (runtime, gateway) = server();
        prepare(runtime, gateway);
        let mut request = signed(METHODS[method], &path);
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                request = request.header(HeaderName::from_static(HEADERS[name]), value);
            }
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        let response = runtime.block_on(gateway.handle(request, PEER));
        prop_assert!(response.status().as_u16() < 500, "{}", response.status());
        let bytes = runtime.block_on(response.into_body().collect()).expect("a full body").to_bytes();
        prop_assert!(bytes.is_empty() || serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
    }
}

const PEER: Peer = Peer { scheme: Scheme::Http, remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1) };

/// One server for all cases.
fn server() -> &'static (Runtime, Gateway) {
    static SERVER: OnceLock<(Runtime, Gateway)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let db = {
            let _inside = runtime.enter();
            Db::open(DbOptions {
                storage: Storage::Memory,
                durability: Durability::Durable,
                limits: PartitionLimits::default(),
                throttle: false,
                account: Account {
                    name: "orrery".into(),
                    region: "Local".into(),
                    consistency: Consistency::Session,
                    serverless: false,
                },
            })
            .expect("an empty database opens")
        };
        let gateway = Gateway::new(db, Keys::new([KEY], []).expect("a key"), Options::default());
        (runtime, gateway)
    })
}

/// Makes what the cases aim at; a case may have deleted it.
fn prepare(runtime: &Runtime, gateway: &Gateway) {
    for (path, body) in [
        ("/dbs", "{\"id\":\"d\"}"),
        ("/dbs/d/colls", "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}"),
        (
            "/dbs/d/colls",
            "{\"id\":\"h\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\"}}",
        ),
    ] {
        let request = signed("POST", path).body(Full::new(Bytes::from(body))).expect("a request");
        let status = runtime.block_on(gateway.handle(request, PEER)).status();
        assert!(matches!(status.as_u16(), 201 | 409), "{status}");
    }
}

fn signed(method: &str, path: &str) -> http::request::Builder {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (kind, link) = match segments.len() {
        0 => ("", String::new()),
        6.. if segments[4] == "operations" => ("colls", segments[..4].join("/")),
        odd if odd % 2 == 1 => (segments[odd - 1], segments[..odd - 1].join("/")),
        even => (segments[even - 2], segments.join("/")),
    };
    let text =
        format!("{}\n{}\n{link}\n{}\n\n", method.to_lowercase(), kind.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).expect("base64")).expect("any length");
    mac.update(text.as_bytes());
    let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
    Request::builder().method(method).uri(path).header("authorization", token).header("x-ms-date", date)
}
