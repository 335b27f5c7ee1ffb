//! Kinds of index of containers that were made before there were partition keys.

use super::*;

const OLD: (&str, &str) = ("x-ms-version", "2018-08-31");
const NEW: (&str, &str) = ("x-ms-version", "2018-12-31");
const PATH: &str = "/dbs/d/colls/old";

fn kinds() -> Value {
    json!([{"dataType": "String", "precision": -1, "kind": "Range"},
        {"dataType": "Number", "precision": -1, "kind": "Range"}])
}

fn definition() -> Value {
    json!({"id": "old", "indexingPolicy": {"includedPaths": [{"path": "/*", "indexes": kinds()}]}})
}

fn included(container: &Value) -> &Value {
    &container["indexingPolicy"]["includedPaths"][0]
}

/// A container made by an old client, `ContainerMigrationTest` of .NET.
async fn migrated() -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let made = server.send("POST", "/dbs/d/colls", &[OLD], &definition()).await.expect(201);
    assert_eq!(included(&made.body)["indexes"], kinds());
    server
}

#[tokio::test]
async fn only_clients_from_before_keys_see_kinds_of_index() {
    let server = migrated().await;
    let read = server.send("GET", PATH, &[OLD], &Value::Null).await.expect(200);
    assert_eq!(included(&read.body)["indexes"], kinds());
    let query = json!({"query": "SELECT * FROM c"});
    for version in [NEW, ("x-ms-version", "2020-07-15")] {
        let read = server.send("GET", PATH, &[version], &Value::Null).await.expect(200);
        assert_eq!(included(&read.body), &json!({"path": "/*"}));
        let listed = server.send("GET", "/dbs/d/colls", &[version], &Value::Null).await.expect(200);
        assert_eq!(included(&listed.body["DocumentCollections"][0]), &json!({"path": "/*"}));
        let headers = [version, ("x-ms-documentdb-isquery", "True")];
        let found = server.send("POST", "/dbs/d/colls", &headers, &query).await.expect(200);
        assert_eq!(included(&found.body["DocumentCollections"][0]), &json!({"path": "/*"}));
    }
    let again = server.send("GET", PATH, &[OLD], &Value::Null).await.expect(200);
    assert_eq!(included(&again.body)["indexes"], kinds(), "to look at it changes nothing");
}

#[tokio::test]
async fn a_replace_by_a_client_of_today_drops_kinds_of_index() {
    let server = migrated().await;
    let kept = server.send("PUT", PATH, &[OLD], &definition()).await.expect(200);
    assert_eq!(included(&kept.body)["indexes"], kinds());
    // An SDK may send back what it has read, kinds and all.
    let replaced = server.send("PUT", PATH, &[NEW], &definition()).await.expect(200);
    assert_eq!(included(&replaced.body), &json!({"path": "/*"}));
    for version in [OLD, NEW] {
        let read = server.send("GET", PATH, &[version], &Value::Null).await.expect(200);
        assert_eq!(included(&read.body), &json!({"path": "/*"}), "{version:?}");
    }
    let other = json!({"id": "new", "indexingPolicy": definition()["indexingPolicy"]});
    let made = server.send("POST", "/dbs/d/colls", &[NEW], &other).await.expect(201);
    assert_eq!(included(&made.body), &json!({"path": "/*"}));
}
