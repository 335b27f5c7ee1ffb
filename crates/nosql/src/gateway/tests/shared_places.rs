//! Keys that have one place are one logical partition, and different keys: those of version 1 that begin alike, and those of
//! version 2 where a string was made that has the hash of a given key.

use orrery_cluster::limits::PartitionLimits;

use super::access::Token;
use super::*;

fn long(end: &str) -> String {
    format!("{}{end}", "k".repeat(100))
}

/// A key of ordinary length, a short one, and for each of them a string with the same hash of 128 bits.
const SAME_HASH: [[&str; 2]; 2] = [
    ["victim-user-name-0123456789abcd", r#"toh6nzmhqhx83gozLB"t@}IQFbb^3/M"#],
    ["a", "YM73YNh4yoWSgYf|p9^;g>k0>]_'K>1"],
];

/// Definitions of the key `/pk`, each with two keys that share a place under it, both ways round.
fn pairs() -> Vec<(Value, [String; 2])> {
    let definition = |kind: &str, version: u32| json!({"paths": ["/pk"], "kind": kind, "version": version});
    let mut pairs = vec![(definition("Hash", 1), [long("a"), long("b")])];
    for keys in SAME_HASH {
        let keys = keys.map(str::to_owned);
        pairs.push((definition("Hash", 2), keys.clone()));
        pairs.push((definition("MultiHash", 2), keys));
    }
    let turned = pairs.clone().into_iter().map(|(definition, [a, b])| (definition, [b, a]));
    turned.chain(pairs).collect()
}

/// A server with the container `c`, and how requests name the two keys.
async fn with_pair(server: Server, definition: Value, keys: &[String; 2]) -> (Server, [String; 2]) {
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", json!({"id": "c", "partitionKey": definition})).await.expect(201);
    (server, keys.each_ref().map(|key| json!([key]).to_string()))
}

const DOCS: &str = "/dbs/d/colls/c/docs";

async fn ids(server: &Server, headers: &[(&str, &str)], query: &str) -> Value {
    let headers = [headers, &[("x-ms-documentdb-isquery", "True")]].concat();
    let answer = server.send("POST", DOCS, &headers, &json!({"query": query})).await.expect(200);
    answer.body["Documents"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_under_one_key_concerns_an_item_of_another_in_its_place() {
    for (definition, keys) in pairs() {
        let (server, [mine, other]) = with_pair(Server::start(false), definition, &keys).await;
        let (mine, other) = (
            ("x-ms-documentdb-partitionkey", mine.as_str()),
            ("x-ms-documentdb-partitionkey", other.as_str()),
        );
        let item = |id: &str, pk: &str| json!({"id": id, "pk": pk, "n": 1});
        server.send("POST", DOCS, &[mine], &item("secret", &keys[0])).await.expect(201);

        let path = format!("{DOCS}/secret");
        let patch = json!({"operations": [{"op": "set", "path": "/n", "value": 2}]});
        for (method, body) in [
            ("GET", Value::Null),
            ("PUT", item("secret", &keys[1])),
            ("PATCH", patch),
            ("DELETE", Value::Null),
        ] {
            let answer = server.send(method, &path, &[other], &body).await;
            assert_eq!(answer.status, 404, "{keys:?} {method} {}", answer.body);
        }
        for upsert in [("x-ms-documentdb-is-upsert", "True"), ("x-ms-documentdb-is-upsert", "False")] {
            let answer = server.send("POST", DOCS, &[other, upsert], &item("secret", &keys[1])).await;
            assert_eq!(answer.status, 409, "{keys:?} {}", answer.body);
        }
        let batch = [other, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
        for operation in ["Read", "Delete"] {
            let body = json!([{"operationType": operation, "id": "secret"}]);
            let answer = server.send("POST", DOCS, &batch, &body).await;
            assert_eq!(answer.body[0]["statusCode"], 404, "{keys:?} {operation} {}", answer.body);
        }
        let delete_key = "/dbs/d/colls/c/operations/partitionkeydelete";
        server.send("POST", delete_key, &[other], &Value::Null).await.expect(200);
        assert_eq!(server.send("GET", &path, &[mine], &Value::Null).await.expect(200).body["n"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_of_one_key_shows_nothing_of_another_in_its_place() {
    for (definition, keys) in pairs() {
        let (server, names) = with_pair(Server::start(false), definition, &keys).await;
        let name = |which: usize| ("x-ms-documentdb-partitionkey", names[which].as_str());
        for (which, own) in [(0, vec!["a1", "a2"]), (1, vec!["b"])] {
            for id in own {
                let body = json!({"id": id, "pk": keys[which], "n": 1});
                server.send("POST", DOCS, &[name(which)], &body).await.expect(201);
            }
        }
        for (which, own) in [(0, json!(["a1", "a2"])), (1, json!(["b"]))] {
            let count = own.as_array().map(Vec::len);
            for merge in ["False", "True"] {
                let headers = [name(which), ("x-orrery-query-merge", merge)];
                for (query, rows) in [
                    ("SELECT VALUE c.id FROM c ORDER BY c.id", own.clone()),
                    ("SELECT VALUE COUNT(1) FROM c", json!([count])),
                    ("SELECT VALUE COUNT(1) FROM c WHERE c.n = 1", json!([count])),
                    ("SELECT VALUE MAX(c.id) FROM c", json!([own[own.as_array().map_or(0, Vec::len) - 1]])),
                    ("SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", json!([{"n": 1, "k": count}])),
                ] {
                    assert_eq!(ids(&server, &headers, query).await, rows, "{keys:?} {which} {merge} {query}");
                }
            }
            for feed in [("a-im", "Incremental feed"), ("x-ms-max-item-count", "10")] {
                let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
                let page =
                    server.send("GET", DOCS, &[name(which), feed, range], &Value::Null).await.expect(200);
                assert_eq!(page.body["_count"], json!(count), "{keys:?} {which} {feed:?} {}", page.body);
            }
        }
    }
}

/// The first levels of a hierarchical key are hashed one by one, so that each of them may have the place of another.
#[tokio::test(flavor = "multi_thread")]
async fn what_lies_below_one_prefix_is_not_shown_below_another_in_its_place() {
    for keys in SAME_HASH.map(|keys| keys.map(str::to_owned)) {
        let definition = json!({"paths": ["/pk", "/sk"], "kind": "MultiHash", "version": 2});
        let (server, prefixes) = with_pair(Server::start(false), definition, &keys).await;
        for (which, id) in [(0, "a"), (1, "b")] {
            for level in ["x", "y"] {
                let key = json!([keys[which], level]).to_string();
                let body = json!({"id": format!("{id}{level}"), "pk": keys[which], "sk": level});
                server.send("POST", DOCS, &[("x-ms-documentdb-partitionkey", &key)], &body).await.expect(201);
            }
        }
        let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
        for (which, own) in [(0, json!(["ax", "ay"])), (1, json!(["bx", "by"]))] {
            let prefix = ("x-ms-documentdb-partitionkey", prefixes[which].as_str());
            for headers in [vec![prefix], vec![prefix, range], vec![prefix, ("x-ms-end-epk", "FF")]] {
                for (query, rows) in [
                    ("SELECT VALUE c.id FROM c ORDER BY c.id", &own),
                    ("SELECT VALUE COUNT(1) FROM c", &json!([2])),
                ] {
                    assert_eq!(ids(&server, &headers, query).await, *rows, "{keys:?} {headers:?} {query}");
                }
            }
        }
    }
}

/// A token that is limited to a key is not made one for another by writing a key with the same hash.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_key_opens_nothing_of_another_in_its_place() {
    for (definition, keys) in pairs() {
        let (server, names) = with_pair(Server::guarded(false), definition, &keys).await;
        server.post("/dbs/d/users", json!({"id": "u"})).await.expect(201);
        let name = |which: usize| ("x-ms-documentdb-partitionkey", names[which].as_str());
        let body = json!({"id": "secret", "pk": keys[0]});
        server.send("POST", DOCS, &[name(0)], &body).await.expect(201);
        let held =
            json!({"permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": [keys[1]]});
        let token: Token = server.token("p", held).await;
        let path = format!("{DOCS}/secret");
        for method in ["GET", "DELETE"] {
            server.send_as(&token, method, &path, &[name(1)], &Value::Null).await.expect(404);
            server.send_as(&token, method, &path, &[name(0)], &Value::Null).await.expect(403);
        }
        server.send("GET", &path, &[name(0)], &Value::Null).await.expect(200);
    }
}

async fn with_container(server: Server) -> Server {
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 1}});
    server.post("/dbs/d/colls", definition).await.expect(201);
    server
}

async fn create(server: &Server, key: &str, body: Value) -> Answer {
    let key = json!([key]).to_string();
    server.send("POST", "/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkey", &key)], &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_of_a_logical_partition_is_that_of_all_keys_in_its_place() {
    let limits = PartitionLimits { logical_partition_bytes: 2_000, ..PartitionLimits::default() };
    let server = with_container(Server::with(|options| DbOptions { limits, ..options })).await;
    let text = "x".repeat(1_000);
    let item = |id: &str, pk: &str| json!({"id": id, "pk": pk, "text": text});
    create(&server, &long("a"), item("1", &long("a"))).await.expect(201);
    let full = create(&server, &long("b"), item("2", &long("b"))).await.expect(403);
    assert_eq!(full.header("x-ms-substatus"), "1014");
    create(&server, "b", item("2", "b")).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_keep_to_their_keys_when_a_container_gets_a_key_of_long_values() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    for (pk, owner) in [("x", long("a")), ("y", long("b"))] {
        create(&server, pk, json!({"id": pk, "pk": pk, "owner": owner})).await.expect(201);
    }
    server.rekey(json!({"paths": ["/owner"], "kind": "Hash", "version": 1})).await;
    for (id, key, status) in [("x", "a", 200), ("x", "b", 404), ("y", "b", 200), ("y", "a", 404)] {
        let key = json!([long(key)]).to_string();
        let headers = [("x-ms-documentdb-partitionkey", key.as_str())];
        server.send("GET", &format!("/dbs/d/colls/c/docs/{id}"), &headers, &Value::Null).await.expect(status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_see_nothing_of_other_keys_in_their_place() {
    for (definition, keys) in pairs() {
        let (server, names) = with_pair(Server::start(false), definition, &keys).await;
        a_script_sees_its_own_key(&server, &keys, &names).await;
    }
}

async fn a_script_sees_its_own_key(
    server: &Server,
    [mine, other]: &[String; 2],
    [my_key, other_key]: &[String; 2],
) {
    for (id, pk, key) in [("mine", mine, my_key), ("other", other, other_key)] {
        let key = [("x-ms-documentdb-partitionkey", key.as_str())];
        server.send("POST", "/dbs/d/colls/c/docs", &key, &json!({"id": id, "pk": pk})).await.expect(201);
    }
    // Asks before and after a write of its own, reads the other item, and tries to take its id and to write under its key.
    let body = "function (mine, other) { var context = getContext(), items = context.getCollection(), told = []; \
        var link = items.getSelfLink(); \
        function ids(then) { items.queryDocuments(link, 'SELECT VALUE c.id FROM c', function (error, rows) { \
            told.push(rows.slice().sort().join()); then(); }); } \
        function tell(name) { return function (error) { told.push(name + (error ? error.number : ' done')); }; } \
        ids(function () { items.createDocument(link, {id: 'new', pk: mine}, function () { ids(function () { \
            items.readDocument(items.getAltLink() + '/docs/other', tell('read ')); \
            items.createDocument(link, {id: 'other', pk: mine}, tell('create ')); \
            items.createDocument(link, {id: 'alien', pk: other}, tell('under ')); \
            context.getResponse().setBody(told); }); }); }); }";
    server.post("/dbs/d/colls/c/sprocs", json!({"id": "s", "body": body})).await.expect(201);
    let key = [("x-ms-documentdb-partitionkey", my_key.as_str())];
    let told = server.send("POST", "/dbs/d/colls/c/sprocs/s", &key, &json!([mine, other])).await.expect(200);
    let told: Vec<&str> = told.body.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(told[..2], ["mine", "mine,new"]);
    for (told, refused) in told[2..].iter().zip(["read 404", "create 409", "under 4"]) {
        assert!(told.starts_with(refused), "{told}");
    }
    let key = [("x-ms-documentdb-partitionkey", other_key.as_str())];
    server.send("GET", "/dbs/d/colls/c/docs/other", &key, &Value::Null).await.expect(200);
}
