//! Requests that work, of every kind, and values that the server itself gave out: the best material to break.

use orrery_testkit::{Client, Signer};
use serde_json::{Value, json};

use crate::request::Request;
use crate::target::Target;

const KEY: &str = "x-ms-documentdb-partitionkey";
const DOCS: &str = "/dbs/fixed/colls/plain/docs";

pub struct Samples {
    pub signer: Signer,
    pub requests: Vec<Request>,
    /// Those whose body is read as JSON.
    pub with_body: Vec<Request>,
    pub queries: Vec<Request>,
    pub rids: Vec<String>,
    /// Headers that are parsed, with values that are right somewhere.
    pub headers: Vec<(&'static str, Vec<String>)>,
}

impl Samples {
    /// Makes the resources that the samples use, and keeps what the answers say about them.
    pub fn collect(target: &mut Target) -> Samples {
        let client = &mut target.client;
        let mut rids = vec![rid(&post(client, "/dbs", &json!({"id": "fixed"}), &[]))];
        let containers = [
            ("plain", json!({"paths": ["/pk"], "kind": "Hash", "version": 2}), "400"),
            ("wide", json!({"paths": ["/pk"], "kind": "Hash"}), "20000"),
            ("levels", json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}), "400"),
        ];
        for (id, key, throughput) in containers {
            let throughput = [("x-ms-offer-throughput", throughput)];
            let body = json!({"id": id, "partitionKey": key, "changeFeedPolicy": {"retentionDuration": 10}});
            rids.push(rid(&post(client, "/dbs/fixed/colls", &body, &throughput)));
        }
        let mut etag = String::new();
        for n in 0..6 {
            let key = [(KEY, "[\"k\"]")];
            let item = post(client, DOCS, &item(n), &key);
            rids.push(rid(&item));
            etag = item["_etag"].as_str().expect("an etag").to_owned();
            let value = format!("k{n}");
            let key = format!("[\"{value}\"]");
            post(client, "/dbs/fixed/colls/wide/docs", &item_of(n, &value), &[(KEY, &key)]);
        }
        let offers = client.send("GET", "/offers", &[], b"").expect("an answer").json();
        let offer = offers["Offers"][0].clone();
        rids.push(rid(&offer));
        let mut requests = item_requests();
        requests.extend(resource_requests(&offer));
        requests.extend(access_requests());
        requests.extend(management_requests());
        let queries = query_requests();
        requests.extend(queries.iter().cloned());
        let with_body = requests.iter().filter(|request| !request.body.is_empty()).cloned().collect();
        let headers = headers(continuations(client), etag, &rids);
        Samples { signer: client.signer().clone(), requests, with_body, queries, rids, headers }
    }
}

fn item(n: usize) -> Value {
    item_of(n, "k")
}

fn item_of(n: usize, key: &str) -> Value {
    json!({"id": format!("i{n}"), "pk": key, "n": n, "tags": ["a", "b"], "numbers": [1, 2, 3, 4, 5], "nested": {"x": {"y": 1.5}}})
}

fn rid(resource: &Value) -> String {
    resource["_rid"].as_str().unwrap_or_else(|| panic!("no RID in {resource}")).to_owned()
}

fn post(client: &mut Client, path: &str, body: &Value, headers: &[(&str, &str)]) -> Value {
    let reply = client.send("POST", path, headers, body.to_string().as_bytes()).expect("an answer");
    assert_eq!(reply.status, 201, "{path}: {}", reply.json());
    reply.json()
}

/// Tokens of a feed and of queries, as the server makes them.
fn continuations(client: &mut Client) -> Vec<String> {
    let mut tokens = Vec::new();
    for path in [DOCS, "/dbs/fixed/colls/wide/docs", "/dbs/fixed/colls"] {
        let feed = client.send("GET", path, &[("x-ms-max-item-count", "1")], b"").expect("an answer");
        tokens.extend(feed.header("x-ms-continuation").map(str::to_owned));
    }
    for query in ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n", "SELECT DISTINCT c.n FROM c"] {
        let headers = [
            ("x-ms-documentdb-isquery", "true"),
            ("content-type", "application/query+json"),
            ("x-ms-max-item-count", "1"),
            (KEY, "[\"k\"]"),
        ];
        let body = json!({"query": query}).to_string();
        let page = client.send("POST", DOCS, &headers, body.as_bytes()).expect("an answer");
        tokens.extend(page.header("x-ms-continuation").map(str::to_owned));
    }
    assert!(tokens.len() > 3, "feeds and queries with more to come say so");
    tokens
}

fn item_requests() -> Vec<Request> {
    let key = (KEY, "[\"k\"]");
    let upsert = ("x-ms-documentdb-is-upsert", "true");
    let path = format!("{DOCS}/i1");
    let patch = json!({"condition": "FROM c WHERE c.n >= 0", "operations": [
        {"op": "add", "path": "/tags/0", "value": "z"}, {"op": "set", "path": "/nested/x/z", "value": {"a": [1]}},
        {"op": "incr", "path": "/n", "value": 1}, {"op": "replace", "path": "/n", "value": 2},
        {"op": "remove", "path": "/tags/0"}, {"op": "move", "from": "/nested/x/z", "path": "/moved"}]});
    let batch = json!([
        {"operationType": "Upsert", "resourceBody": item(1)}, {"operationType": "Read", "id": "i1"},
        {"operationType": "Replace", "id": "i1", "resourceBody": item(1), "ifMatch": "*"},
        {"operationType": "Patch", "id": "i1", "resourceBody": patch}, {"operationType": "Create", "resourceBody": item(7)},
        {"operationType": "Delete", "id": "i7"}]);
    let atomic = [key, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let bulk = [
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-cosmos-batch-continue-on-error", "True"),
    ];
    let mut bulk_body = batch.clone();
    bulk_body
        .as_array_mut()
        .expect("an array")
        .iter_mut()
        .for_each(|op| op["partitionKey"] = json!("[\"k\"]"));
    let levels = json!({"id": "i1", "a": "x", "b": 2});
    let range = ("x-ms-documentdb-partitionkeyrangeid", "1");
    let seen = ("if-none-match", "\"0\"");
    vec![
        Request::new("POST", DOCS, &[key], &item(9).to_string()),
        Request::new("POST", DOCS, &[key, upsert], &item(1).to_string()),
        Request::new("PUT", &path, &[key], &item(1).to_string()),
        Request::new(
            "PATCH",
            &path,
            &[key, ("content-type", "application/json_patch+json")],
            &patch.to_string(),
        ),
        Request::new("GET", &path, &[key], ""),
        Request::new("DELETE", &format!("{DOCS}/i9"), &[key], ""),
        Request::new("GET", DOCS, &[("x-ms-max-item-count", "2")], ""),
        Request::new("GET", "/dbs/fixed/colls/wide/docs", &[("a-im", "Incremental feed"), range], ""),
        Request::new("GET", "/dbs/fixed/colls/wide/docs", &[("a-im", "Full-Fidelity Feed"), range, seen], ""),
        Request::new("POST", DOCS, &atomic, &batch.to_string()),
        Request::new("POST", DOCS, &bulk, &bulk_body.to_string()),
        Request::new(
            "POST",
            "/dbs/fixed/colls/levels/docs",
            &[(KEY, "[\"x\",2]"), upsert],
            &levels.to_string(),
        ),
        Request::new("GET", "/dbs/fixed/colls/levels/docs", &[(KEY, "[\"x\"]")], ""),
        Request::new(
            "POST",
            "/dbs/fixed/colls/plain/operations/partitionkeydelete",
            &[(KEY, "[\"none\"]")],
            "",
        ),
    ]
}

fn resource_requests(offer: &Value) -> Vec<Request> {
    let offer_path = format!("/offers/{}", offer["_rid"].as_str().expect("a RID"));
    let container = json!({"id": "made", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"indexingMode": "consistent", "automatic": true,
            "includedPaths": [{"path": "/*"}, {"path": "/a/[]/b/?"}], "excludedPaths": [{"path": "/\"_etag\"/?"}],
            "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
            "spatialIndexes": [{"path": "/p/*", "types": ["Point", "Polygon"]}],
            "vectorIndexes": [{"path": "/v", "type": "quantizedFlat"}], "fullTextIndexes": [{"path": "/t"}]},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 4, "distanceFunction": "cosine"}]},
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": "en-US"}]},
        "computedProperties": [{"name": "lower", "query": "SELECT VALUE LOWER(c.id) FROM c"}],
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}, "defaultTtl": 60,
        "conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts"},
        "changeFeedPolicy": {"retentionDuration": 10}, "geospatialConfig": {"type": "Geography"}});
    let plain = json!({"id": "plain", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"indexingMode": "consistent", "includedPaths": [{"path": "/*"}]}});
    vec![
        Request::new("GET", "/", &[], ""),
        Request::new("GET", "/dbs", &[("x-ms-max-item-count", "1")], ""),
        Request::new("POST", "/dbs", &[], "{\"id\":\"other\"}"),
        Request::new("GET", "/dbs/fixed", &[], ""),
        Request::new("DELETE", "/dbs/other", &[], ""),
        Request::new("POST", "/dbs/other/colls", &[("x-ms-offer-throughput", "400")], &container.to_string()),
        Request::new("GET", "/dbs/fixed/colls/plain", &[("x-ms-documentdb-populatequotainfo", "true")], ""),
        Request::new("PUT", "/dbs/fixed/colls/plain", &[], &plain.to_string()),
        Request::new("DELETE", "/dbs/other/colls/made", &[], ""),
        Request::new("GET", "/dbs/fixed/colls/wide/pkranges", &[("a-im", "Incremental feed")], ""),
        Request::new("GET", "/offers", &[], ""),
        Request::new("GET", &offer_path, &[], ""),
        Request::new("PUT", &offer_path, &[], &offer.to_string()),
    ]
}

/// What lies beside the API.
fn management_requests() -> Vec<Request> {
    let plain = "/_orrery/dbs/fixed/colls/plain";
    vec![
        Request::new("GET", "/_orrery/server", &[], ""),
        Request::new("GET", "/_orrery/containers", &[], ""),
        Request::new("GET", "/_orrery/alerts", &[], ""),
        Request::new("GET", &format!("{plain}/partitions?window=hour"), &[], ""),
        Request::new("GET", &format!("{plain}/keys?window=day&by=requests&count=7&lookUp=true"), &[], ""),
        Request::new("GET", &format!("{plain}/heat?window=minute"), &[], ""),
        Request::new("POST", &format!("{plain}/workload"), &[], "{\"action\":\"start\"}"),
        Request::new("GET", &format!("{plain}/workload"), &[], ""),
        Request::new("POST", &format!("{plain}/partitions/9/split"), &[], "{\"children\":2}"),
        Request::new("POST", &format!("{plain}/partitions/merge"), &[], "{\"left\":\"8\",\"right\":\"9\"}"),
    ]
}

/// Users, permissions, keys and roles.
fn access_requests() -> Vec<Request> {
    let permission = json!({"id": "p", "permissionMode": "All", "resource": "dbs/fixed/colls/plain",
        "resourcePartitionKey": ["k", 1, null]});
    let wrapped = json!({"id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AAAA", "keyWrapMetadata": {"name": "n", "type": "t", "value": "v"}});
    let role = json!({"id": "r", "roleName": "r", "assignableScopes": ["/", "/dbs/fixed"], "permissions": [
        {"dataActions": ["Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/*"]}]});
    let assignment = json!({"id": "a", "principalId": "p", "roleDefinitionId": "r", "scope": "/dbs/fixed"});
    let users = "/dbs/fixed/users";
    let upsert = ("x-ms-documentdb-is-upsert", "true");
    vec![
        Request::new("POST", users, &[upsert], "{\"id\":\"u\"}"),
        Request::new("GET", users, &[("x-ms-max-item-count", "1")], ""),
        Request::new("PUT", "/dbs/fixed/users/u", &[("if-match", "*")], "{\"id\":\"u\"}"),
        Request::new("POST", "/dbs/fixed/users/u/permissions", &[upsert], &permission.to_string()),
        Request::new(
            "GET",
            "/dbs/fixed/users/u/permissions/p",
            &[("x-ms-documentdb-expiry-seconds", "3600")],
            "",
        ),
        Request::new("POST", "/dbs/fixed/clientencryptionkeys", &[upsert], &wrapped.to_string()),
        Request::new("POST", "/roledefinitions", &[upsert], &role.to_string()),
        Request::new("POST", "/roleassignments", &[upsert], &assignment.to_string()),
        Request::new("GET", "/roleassignments", &[], ""),
    ]
}

fn query_requests() -> Vec<Request> {
    let query =
        json!({"query": "SELECT * FROM c WHERE c.n > @n", "parameters": [{"name": "@n", "value": 1}]})
            .to_string();
    let is_query = ("x-ms-documentdb-isquery", "true");
    let kind = ("content-type", "application/query+json");
    let everywhere = ("x-ms-documentdb-query-enablecrosspartition", "true");
    let wide = "/dbs/fixed/colls/wide/docs";
    let plan = [
        ("x-ms-cosmos-is-query-plan-request", "True"),
        (
            "x-ms-cosmos-supported-query-features",
            "Aggregate, Distinct, GroupBy, OrderBy, Top, OffsetAndLimit, NonValueAggregate",
        ),
        kind,
    ];
    vec![
        Request::new("POST", DOCS, &[is_query, kind, (KEY, "[\"k\"]")], &query),
        Request::new("POST", DOCS, &[is_query, kind, everywhere], &query),
        Request::new("POST", wide, &[is_query, kind, everywhere, ("x-ms-max-item-count", "1")], &query),
        Request::new("POST", wide, &[is_query, kind, ("x-ms-documentdb-partitionkeyrangeid", "1")], &query),
        Request::new("POST", DOCS, &plan, &query),
        Request::new("POST", "/dbs", &[is_query, kind], &query),
        Request::new("POST", "/offers", &[is_query, kind], &query),
    ]
}

fn headers(continuations: Vec<String>, etag: String, rids: &[String]) -> Vec<(&'static str, Vec<String>)> {
    let list = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<String>>();
    let flags = || list(&["true", "True", "false", "1", ""]);
    let keys = [
        "[\"k\"]",
        "[]",
        "[{}]",
        "[null]",
        "[true]",
        "[1.5]",
        "[-0]",
        "[\"x\",2]",
        "[\"\\u00e9\"]",
        "[\"a\",\"b\",\"c\",\"d\"]",
        "[[1]]",
    ];
    vec![
        (KEY, list(&keys)),
        (
            "x-ms-documentdb-partitionkeyrangeid",
            list(&["0", "1", "4", "999", "M", &format!("{},0", rids[1])]),
        ),
        (
            "x-ms-session-token",
            list(&["0:-1#2", "0:1#9#4=8#5=7", "0:-1#1,1:-1#1", "0:-1#99999999", "1:0#5#1=2", "0:5"]),
        ),
        ("x-ms-continuation", continuations),
        ("x-ms-start-epk", list(&["", "00", "05C1DFFFFFFFFC", "FF", "3F", "G", "0"])),
        ("x-ms-end-epk", list(&["", "FF", "05C1DFFFFFFFFC", "00", "7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"])),
        ("x-ms-read-key-type", list(&["EffectivePartitionKeyRange", "EffectivePartitionKey", "ResourceId"])),
        ("x-ms-max-item-count", list(&["-1", "0", "1", "100", "2147483648"])),
        ("x-ms-documentdb-responsecontinuationtokenlimitinkb", list(&["0", "1", "64"])),
        ("x-ms-consistency-level", list(&["Strong", "BoundedStaleness", "Session", "Eventual", "Linear"])),
        ("x-ms-cosmos-read-consistency-strategy", list(&["Session", "LatestCommitted", "GlobalStrong"])),
        ("x-ms-offer-throughput", list(&["400", "100", "1000000", "20000", "401", "-400", "4e2"])),
        (
            "x-ms-cosmos-offer-autopilot-settings",
            list(&["{\"maxThroughput\":4000}", "{\"maxThroughput\":1}", "{}"]),
        ),
        ("x-ms-cosmos-migrate-offer-to-autopilot", flags()),
        ("x-ms-cosmos-migrate-offer-to-manual-throughput", flags()),
        ("x-ms-indexing-directive", list(&["Include", "Exclude", "Default"])),
        ("x-ms-activity-id", list(&["00000000-0000-0000-0000-000000000000", "x"])),
        ("x-ms-cosmos-intended-collection-rid", rids.to_vec()),
        ("x-ms-cosmos-supported-serialization-formats", list(&["CosmosBinary", "JsonText, CosmosBinary"])),
        ("x-ms-cosmos-supported-query-features", list(&["None", "Aggregate", "OrderBy, Top"])),
        ("x-ms-cosmos-is-query-plan-request", flags()),
        ("x-ms-cosmos-is-batch-request", flags()),
        ("x-ms-cosmos-batch-atomic", flags()),
        ("x-ms-documentdb-isquery", flags()),
        ("x-ms-documentdb-is-upsert", flags()),
        ("x-ms-documentdb-populatequerymetrics", flags()),
        ("x-ms-cosmos-throughput-bucket", list(&["1", "5", "0", "6"])),
        ("x-ms-cosmos-priority-level", list(&["Low", "High"])),
        (
            "content-type",
            list(&[
                "application/json",
                "application/query+json",
                "application/json_patch+json",
                "text/plain",
            ]),
        ),
        ("if-match", list(&["*", "\"\"", &etag, "etag"])),
        (
            "if-none-match",
            list(&["*", "\"7\"", "0", "\"18446744073709551615\"", "\"2.65535\"", "\"3.1\"", &etag]),
        ),
        ("if-modified-since", list(&["Sun, 06 Nov 1994 08:49:37 GMT", "never"])),
        ("a-im", list(&["Incremental feed", "Full-Fidelity Feed"])),
        ("x-ms-cosmos-changefeed-wire-format-version", list(&["2021-09-15", "1"])),
        ("prefer", list(&["return=minimal", "return=representation"])),
        ("x-orrery-explain-charge", flags()),
    ]
}
