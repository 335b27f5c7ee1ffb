//! Keys of version 1 that begin alike have one place: one logical partition, and different keys.

use super::*;

fn long(end: &str) -> String {
    format!("{}{end}", "k".repeat(100))
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
    let server = with_container(Server::start(false)).await;
    let (mine, other) = (long("a"), long("b"));
    let (my_key, other_key) = (json!([mine]).to_string(), json!([other]).to_string());
    for (id, pk, key) in [("mine", &mine, &my_key), ("other", &other, &other_key)] {
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
