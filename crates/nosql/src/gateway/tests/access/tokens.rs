//! Resource tokens at work.

use super::*;

async fn server() -> Server {
    let server = Server::guarded(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server.post("/dbs/d/users", json!({"id": "u"})).await.expect(201);
    for (id, key) in [("1", "mine"), ("2", "mine"), ("3", "theirs")] {
        let key_header = format!("[\"{key}\"]");
        let headers = [("x-ms-documentdb-partitionkey", key_header.as_str())];
        server.send("POST", "/dbs/d/colls/c/docs", &headers, &json!({"id": id, "pk": key})).await.expect(201);
    }
    server
}

const MINE: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["mine"]"#);
const THEIRS: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["theirs"]"#);
const QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "True");
const ACROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_of_a_key_sees_that_key_alone() {
    let server = server().await;
    let token = server
        .token(
            "k",
            json!({"permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": ["mine"]}),
        )
        .await;
    let docs = "/dbs/d/colls/c/docs";
    let query = json!({"query": "SELECT VALUE c.id FROM c"});
    let rows = server.send_as(&token, "POST", docs, &[MINE, QUERY], &query).await.expect(200);
    assert_eq!(rows.body["Documents"], json!(["1", "2"]));
    for headers in [
        vec![THEIRS, QUERY],
        vec![QUERY, ACROSS],
        vec![QUERY, ACROSS, ("x-ms-documentdb-partitionkeyrangeid", "0")],
        vec![QUERY, ACROSS, ("x-ms-documentdb-partitionkey", "[]")],
        vec![QUERY, ACROSS, ("x-ms-documentdb-partitionkey", "[[]]")],
        vec![QUERY, ACROSS, ("x-orrery-query-merge", "True")],
        vec![QUERY, ACROSS, ("x-ms-start-epk", ""), ("x-ms-end-epk", "FF")],
    ] {
        let refused = server.send_as(&token, "POST", docs, &headers, &query).await;
        assert!(matches!(refused.status, 400 | 403), "{headers:?}: {} {}", refused.status, refused.body);
    }
    // A key and a range: what is read is the key.
    let both = [MINE, QUERY, ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let rows = server.send_as(&token, "POST", docs, &both, &query).await.expect(200);
    assert_eq!(rows.body["Documents"], json!(["1", "2"]));
    let all = [MINE, ("x-ms-start-epk", "00"), ("x-ms-end-epk", "FF")];
    let listed = server.send_as(&token, "GET", docs, &all, &Value::Null).await.expect(200);
    assert_eq!(listed.body["_count"], 2);
    let changes = [MINE, ("a-im", "Incremental Feed"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let changed = server.send_as(&token, "GET", docs, &changes, &Value::Null).await.expect(200);
    let owners: Vec<&Value> =
        changed.body["Documents"].as_array().expect("rows").iter().map(|row| &row["pk"]).collect();
    assert!(owners.iter().all(|owner| **owner == "mine"), "{owners:?}");

    // A document of another key does not get in under the header of this one.
    let stray = json!({"id": "4", "pk": "theirs"});
    server.send_as(&token, "POST", docs, &[MINE], &stray).await.expect(400);
    let batch = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-continue-on-error", "True")];
    let operations = json!([
        {"operationType": "Create", "partitionKey": "[\"mine\"]", "resourceBody": {"id": "5", "pk": "mine"}},
        {"operationType": "Create", "partitionKey": "[\"theirs\"]", "resourceBody": {"id": "6", "pk": "theirs"}},
    ]);
    let done = server.send_as(&token, "POST", docs, &batch, &operations).await;
    assert_eq!((&done.body[0]["statusCode"], &done.body[1]["statusCode"]), (&json!(201), &json!(403)));
}

/// Clients name the key that a container had before for a while, and then the document alone says where it goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_key_writes_nothing_elsewhere_after_the_key_has_changed() {
    let server = server().await;
    let permission =
        json!({"permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": ["mine"]});
    let token = server.token("k", permission).await;
    let docs = "/dbs/d/colls/c/docs";
    let stored = json!({"id": "9", "pk": "mine", "city": "theirs"});
    server.send("POST", docs, &[MINE], &stored).await.expect(201);
    server.rekey(json!({"paths": ["/city"], "kind": "Hash", "version": 2})).await;
    let stray = json!({"id": "8", "pk": "mine", "city": "theirs"});
    let upsert = ("x-ms-documentdb-is-upsert", "True");
    server.send_as(&token, "POST", docs, &[MINE], &stray).await.expect(403);
    server.send_as(&token, "POST", docs, &[MINE, upsert], &stray).await.expect(403);
    server.send_as(&token, "PUT", &format!("{docs}/9"), &[MINE], &stored).await.expect(403);
    // A token that may write anywhere still may name the old key, and the bearer still may write to the own one.
    server.send("PUT", &format!("{docs}/9"), &[MINE], &stored).await.expect(200);
    let own = json!({"id": "8", "pk": "mine", "city": "mine"});
    server.send_as(&token, "POST", docs, &[MINE], &own).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_permission_counts_as_it_is_now() {
    let server = server().await;
    let permission = json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c/docs/1"});
    let token = server.token("p", permission.clone()).await;
    let (item, path) = ("/dbs/d/colls/c/docs/1", "/dbs/d/users/u/permissions/p");
    server.send_as(&token, "GET", item, &[MINE], &Value::Null).await.expect(200);
    server.send_as(&token, "DELETE", item, &[MINE], &Value::Null).await.expect(403);
    let mut all = permission;
    all["permissionMode"] = json!("All");
    server.send("PUT", path, &[], &all).await.expect(200);
    server.send_as(&token, "DELETE", item, &[MINE], &Value::Null).await.expect(204);
    server.send("DELETE", path, &[], &Value::Null).await.expect(204);
    server.send_as(&token, "GET", item, &[MINE], &Value::Null).await.expect(403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn links_of_rids_are_as_good_as_links_of_names() {
    let server = server().await;
    let link =
        server.get("/dbs/d/colls/c").await.expect(200).body["_self"].as_str().expect("a link").to_owned();
    let token = server.token("r", json!({"permissionMode": "Read", "resource": link})).await;
    for path in ["/dbs/d/colls/c".to_owned(), format!("/{link}"), format!("/{link}docs")] {
        server.send_as(&token, "GET", &path, &[], &Value::Null).await.expect(200);
    }
    // A user holds nothing outside the own database.
    server.post("/dbs", json!({"id": "e"})).await.expect(201);
    server.post("/dbs/e/colls", container("c")).await.expect(201);
    let token = server.token("e", json!({"permissionMode": "Read", "resource": "dbs/e/colls/c"})).await;
    server.send_as(&token, "GET", "/dbs/e/colls/c", &[], &Value::Null).await.expect(403);
    let token = server.token("whole", json!({"permissionMode": "Read", "resource": "dbs/d"})).await;
    server.send_as(&token, "GET", "/dbs/d/colls/c/docs", &[], &Value::Null).await.expect(200);
    server.send_as(&token, "GET", "/dbs/d", &[], &Value::Null).await.expect(200);
    server.send_as(&token, "GET", "/dbs/d/users", &[], &Value::Null).await.expect(403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tokens_live_as_long_as_asked_within_limits() {
    let server = server().await;
    let body = json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
    server.post("/dbs/d/users/u/permissions", body).await.expect(201);
    let path = "/dbs/d/users/u/permissions/p";
    for (seconds, wanted) in
        [("10", 200), ("86400", 200), ("9", 400), ("86401", 400), ("-1", 400), ("x", 400)]
    {
        let headers = [("x-ms-documentdb-expiry-seconds", seconds)];
        let shown = server.send("GET", path, &headers, &Value::Null).await;
        assert_eq!(shown.status, wanted, "{seconds}");
        assert_eq!(shown.body["_token"].is_string(), wanted == 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tokens_outlive_a_change_of_the_other_key() {
    let server = server().await;
    let token = server.token("p", json!({"permissionMode": "Read", "resource": "dbs/d/colls/c"})).await;
    let path = "/dbs/d/colls/c";
    let rotate =
        |keys: [&'static str; 2]| server.0.set_keys(orrery_gateway::Keys::new(keys, []).expect("keys"));
    rotate([SECOND, KEY]);
    server.send_as(&token, "GET", path, &[], &Value::Null).await.expect(200);
    server.send_as(&Token::Key(KEY), "GET", path, &[], &Value::Null).await.expect(200);
    rotate([SECOND, READ_ONLY]);
    server.send_as(&token, "GET", path, &[], &Value::Null).await.expect(401);
    server.send_as(&Token::Key(KEY), "GET", path, &[], &Value::Null).await.expect(401);
    server.send_as(&Token::Key(SECOND), "GET", path, &[], &Value::Null).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn keys_are_told_apart_as_the_hash_tells_them_apart() {
    let server = server().await;
    let header = |value: &'static str| [("x-ms-documentdb-partitionkey", value)];
    for (held, asked, status) in [
        (json!(["mine"]), r#"["mine"]"#, 200),
        (json!("mine"), r#"["mine"]"#, 200),
        (json!([0]), "[0]", 200),
        (json!([0]), "[-0.0]", 403),
        (json!([null]), "[null]", 200),
        (json!([null]), "[{}]", 403),
        (json!([]), "[]", 403),
        (json!([]), r#"["mine"]"#, 403),
    ] {
        let permission =
            json!({"permissionMode": "Read", "resource": "dbs/d/colls/c", "resourcePartitionKey": held});
        let token = server.token("key", permission).await;
        let listed = server.send_as(&token, "GET", "/dbs/d/colls/c/docs", &header(asked), &Value::Null).await;
        assert_eq!(listed.status, status, "{held} {asked}: {}", listed.body);
        server.send("DELETE", "/dbs/d/users/u/permissions/key", &[], &Value::Null).await.expect(204);
    }
}

/// A container of the same name is another container, and its owner has given no one a token for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_does_not_open_what_was_made_anew_under_its_name() {
    let server = server().await;
    let script = json!({"id": "f", "body": "function () { getContext().getResponse().setBody(1); }"});
    server.post("/dbs/d/colls/c/sprocs", script.clone()).await.expect(201);
    let held = [
        ("container", json!({"permissionMode": "All", "resource": "dbs/d/colls/c"}), "/dbs/d/colls/c/docs"),
        (
            "item",
            json!({"permissionMode": "Read", "resource": "dbs/d/colls/c/docs/1"}),
            "/dbs/d/colls/c/docs/1",
        ),
        (
            "script",
            json!({"permissionMode": "All", "resource": "dbs/d/colls/c/sprocs/f"}),
            "/dbs/d/colls/c/sprocs/f",
        ),
    ];
    let mut tokens = Vec::new();
    for (id, permission, path) in &held {
        let token = server.token(id, permission.clone()).await;
        server.send_as(&token, "GET", path, &[MINE], &Value::Null).await.expect(200);
        tokens.push(token);
    }
    let whole = server.token("whole", json!({"permissionMode": "Read", "resource": "dbs/d"})).await;
    // A script of the same name is another one, too.
    server.send("DELETE", "/dbs/d/colls/c/sprocs/f", &[], &Value::Null).await.expect(204);
    server.post("/dbs/d/colls/c/sprocs", script.clone()).await.expect(201);
    server.send_as(&tokens[2], "GET", held[2].2, &[], &Value::Null).await.expect(403);
    server.send_as(&tokens[0], "GET", held[2].2, &[], &Value::Null).await.expect(200);

    server.send("DELETE", "/dbs/d/colls/c", &[], &Value::Null).await.expect(204);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server.post("/dbs/d/colls/c/sprocs", script).await.expect(201);
    server.send("POST", "/dbs/d/colls/c/docs", &[MINE], &json!({"id": "1", "pk": "mine"})).await.expect(201);
    for (token, (id, _, path)) in tokens.iter().zip(&held) {
        for path in [*path, "/dbs/d/colls/c"] {
            let answer = server.send_as(token, "GET", path, &[MINE], &Value::Null).await;
            assert_eq!(answer.status, 403, "{id} at {path}");
        }
        // The permission names it still; a client that may read the permission gets a token for what is there now.
        let shown = server.get(&format!("/dbs/d/users/u/permissions/{id}")).await.expect(200);
        let token = Token::Text(shown.body["_token"].as_str().expect("a token").to_owned());
        server.send_as(&token, "GET", path, &[MINE], &Value::Null).await.expect(200);
    }
    // The database is the same, whatever is in it.
    server.send_as(&whole, "GET", "/dbs/d/colls/c/docs/1", &[MINE], &Value::Null).await.expect(200);
}

/// As .NET's documentation of `ResourcePartitionKey` has it: an absent key is a superset of all keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_item_permission_without_a_key_is_for_that_id_in_every_logical_partition() {
    let server = server().await;
    server
        .send("POST", "/dbs/d/colls/c/docs", &[THEIRS], &json!({"id": "1", "pk": "theirs"}))
        .await
        .expect(201);
    let resource = "dbs/d/colls/c/docs/1";
    let any = server.token("any", json!({"permissionMode": "Read", "resource": resource})).await;
    let one = json!({"permissionMode": "Read", "resource": resource, "resourcePartitionKey": ["mine"]});
    let one = server.token("one", one).await;
    for (token, key, wanted) in
        [(&any, MINE, 200), (&any, THEIRS, 200), (&one, MINE, 200), (&one, THEIRS, 403)]
    {
        let path = format!("/{resource}");
        server.send_as(token, "GET", &path, &[key], &Value::Null).await.expect(wanted);
    }
    server.send_as(&any, "GET", "/dbs/d/colls/c/docs/2", &[MINE], &Value::Null).await.expect(403);
}
