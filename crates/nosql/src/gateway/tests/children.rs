//! Users, permissions, keys and scripts all live the same life.

use super::*;

/// A feed, the word of its array, and a body that its kind accepts.
fn kinds() -> [(&'static str, &'static str, Value); 6] {
    let key = json!({"id": "a", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AAAA", "keyWrapMetadata": {"name": "k", "type": "t", "value": "v"}});
    let trigger =
        json!({"id": "a", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"});
    [
        ("/dbs/d/users", "Users", json!({"id": "a"})),
        ("/dbs/d/clientencryptionkeys", "ClientEncryptionKeys", key),
        (
            "/dbs/d/users/someone/permissions",
            "Permissions",
            json!({"id": "a", "permissionMode": "Read", "resource": "dbs/d/colls/c"}),
        ),
        ("/dbs/d/colls/c/sprocs", "StoredProcedures", json!({"id": "a", "body": "function () {}"})),
        ("/dbs/d/colls/c/triggers", "Triggers", trigger),
        ("/dbs/d/colls/c/udfs", "UserDefinedFunctions", json!({"id": "a", "body": "function () {}"})),
    ]
}

async fn server() -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server.post("/dbs/d/users", json!({"id": "someone"})).await.expect(201);
    server
}

#[tokio::test]
async fn children_are_made_read_replaced_listed_queried_and_deleted() {
    let server = server().await;
    for (feed, array, body) in kinds() {
        let before = server.get(feed).await.expect(200).body["_count"].as_u64().expect("a count");
        let made = server.post(feed, body.clone()).await.expect(201);
        let path = format!("{feed}/a");
        assert_eq!(made.header("etag"), made.body["_etag"], "{feed}");
        server.post(feed, body.clone()).await.expect(409);
        for (name, value) in body.as_object().expect("an object") {
            assert_eq!(made.body[name], *value, "{feed}");
        }

        let read = server.get(&path).await.expect(200);
        assert_eq!(read.body["_rid"], made.body["_rid"]);
        let by_rid = format!("/{}", made.body["_self"].as_str().expect("a link"));
        assert_eq!(server.get(&by_rid).await.expect(200).body["id"], "a", "{by_rid}");
        server.send("GET", &path, &[("if-none-match", made.header("etag"))], &Value::Null).await.expect(304);

        let stale = [("if-match", "\"0000d1a2-0000-0000-0000-000000000000\"")];
        server.send("PUT", &path, &stale, &body).await.expect(412);
        server.send("DELETE", &path, &stale, &Value::Null).await.expect(412);
        let mut renamed = read.body.clone();
        renamed["id"] = json!("b");
        renamed["note"] = json!(7);
        let replaced =
            server.send("PUT", &path, &[("if-match", made.header("etag"))], &renamed).await.expect(200);
        assert_eq!(replaced.body["note"], 7);
        assert_eq!(replaced.body["_rid"], made.body["_rid"], "a replaced resource is the same resource");
        assert_ne!(replaced.body["_etag"], made.body["_etag"]);
        server.get(&path).await.expect(404);

        let upsert = [("x-ms-documentdb-is-upsert", "True")];
        server.send("POST", feed, &upsert, &body).await.expect(201);
        server.send("POST", feed, &upsert, &body).await.expect(200);
        server.send("PUT", &format!("{feed}/b"), &[], &body).await.expect(409);

        let listed = server.get(feed).await.expect(200);
        assert_eq!(listed.body["_count"], before + 2, "{feed}");
        let rows = server.query(feed, json!({"query": "SELECT VALUE r.id FROM r WHERE r.note = 7"})).await;
        assert_eq!(rows.expect(200).body[array], json!(["b"]));

        let mut seen = Vec::new();
        let mut continuation = String::new();
        loop {
            let headers = [("x-ms-max-item-count", "1"), ("x-ms-continuation", &continuation)];
            let page = server.send("GET", feed, &headers, &Value::Null).await.expect(200);
            seen.extend(page.body[array].as_array().expect("rows").iter().map(|row| row["id"].clone()));
            continuation = page.header("x-ms-continuation").to_owned();
            if continuation.is_empty() {
                break;
            }
        }
        assert_eq!(seen.len() as u64, before + 2, "{seen:?}");
        assert_eq!(seen[seen.len() - 2..], [json!("b"), json!("a")], "in the order of creation");

        server.send("DELETE", &format!("{feed}/b"), &[], &Value::Null).await.expect(204);
        server.send("DELETE", &format!("{feed}/b"), &[], &Value::Null).await.expect(404);
        assert_eq!(server.get(feed).await.expect(200).body["_count"], before + 1);
    }
}

#[tokio::test]
async fn children_go_with_their_owner() {
    let server = server().await;
    for (feed, _, body) in kinds() {
        server.post(feed, body).await.expect(201);
    }
    server.send("DELETE", "/dbs/d/colls/c", &[], &Value::Null).await.expect(204);
    server.get("/dbs/d/colls/c/udfs/a").await.expect(404);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    assert_eq!(server.get("/dbs/d/colls/c/udfs").await.expect(200).body["_count"], 0);
    server.send("DELETE", "/dbs/d/users/someone", &[], &Value::Null).await.expect(204);
    assert_eq!(
        server.get("/dbs/d/users/someone/permissions").await.expect(404).header("x-ms-substatus"),
        "1003"
    );
    server.send("DELETE", "/dbs/d", &[], &Value::Null).await.expect(204);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    assert_eq!(server.get("/dbs/d/users").await.expect(200).body["_count"], 0);
}

#[tokio::test]
async fn malformed_children_are_refused() {
    let server = server().await;
    for (feed, body) in [
        ("/dbs/d/users", json!({})),
        ("/dbs/d/users", json!({"id": "a/b"})),
        ("/dbs/d/users", json!({"id": ""})),
        ("/dbs/d/users", json!([])),
        (
            "/dbs/d/users/someone/permissions",
            json!({"id": "a", "permissionMode": "Write", "resource": "dbs/d"}),
        ),
        ("/dbs/d/users/someone/permissions", json!({"id": "a", "permissionMode": "Read"})),
        ("/dbs/d/colls/c/sprocs", json!({"id": "a"})),
        ("/dbs/d/colls/c/udfs", json!({"id": "a", "body": 7})),
        ("/dbs/d/colls/c/triggers", json!({"id": "a", "body": "", "triggerType": "Pre"})),
        ("/dbs/d/clientencryptionkeys", json!({"id": "a"})),
    ] {
        server.post(feed, body.clone()).await.expect(400);
    }
    server.post("/dbs/d/users/nobody/permissions", json!({"id": "a"})).await.expect(404);
    server.post("/dbs/nothing/users", json!({"id": "a"})).await.expect(404);
    let long = json!({"id": "a", "note": "x".repeat(limits::CHILD_BYTES_MAX)});
    server.post("/dbs/d/users", long).await.expect(413);
}

#[tokio::test]
async fn owners_have_so_many_children_and_no_more() {
    let server = server().await;
    for place in 0..limits::TRIGGERS_MAX {
        let trigger =
            json!({"id": format!("t{place}"), "body": "", "triggerType": "Pre", "triggerOperation": "All"});
        server.post("/dbs/d/colls/c/triggers", trigger).await.expect(201);
    }
    let one_more = json!({"id": "more", "body": "", "triggerType": "Pre", "triggerOperation": "All"});
    server.post("/dbs/d/colls/c/triggers", one_more).await.expect(403);
    let in_place = json!({"id": "t0", "body": "1", "triggerType": "Pre", "triggerOperation": "All"});
    server.send("PUT", "/dbs/d/colls/c/triggers/t0", &[], &in_place).await.expect(200);
}
