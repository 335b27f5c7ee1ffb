//! Headers that tell what an answer's body does not.

use super::*;

const PROGRESS: &str = "x-ms-documentdb-collection-index-transformation-progress";
const QUOTA: (&str, &str) = ("x-ms-documentdb-populatequotainfo", "True");

async fn with_container() -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server
}

#[tokio::test]
async fn the_progress_of_an_index_is_told_who_asks_for_quotas() {
    let server = with_container().await;
    let definition = server.get("/dbs/d/colls/c").await.expect(200);
    assert_eq!((definition.header(PROGRESS), definition.header("x-ms-resource-quota")), ("", ""));
    let asked = server.send("GET", "/dbs/d/colls/c", &[QUOTA], &Value::Null).await.expect(200);
    assert_eq!(asked.header(PROGRESS), "100");
    let size = "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";
    assert_eq!(asked.header("x-ms-resource-quota"), size);
    let replaced = server.send("PUT", "/dbs/d/colls/c", &[], &container("c")).await.expect(200);
    assert_eq!(replaced.header(PROGRESS), "");
    let replaced = server.send("PUT", "/dbs/d/colls/c", &[QUOTA], &container("c")).await.expect(200);
    assert_ne!(replaced.header(PROGRESS), "");
}

#[tokio::test]
async fn reads_of_containers_name_a_write() {
    let server = with_container().await;
    let read = server.get("/dbs/d/colls/c").await.expect(200);
    for name in ["x-ms-item-lsn", "x-ms-cosmos-item-llsn"] {
        let (item, all): (u64, u64) = match (read.header(name).parse(), read.header("lsn").parse()) {
            (Ok(item), Ok(all)) => (item, all),
            _ => panic!("{name} is {:?} and lsn {:?}", read.header(name), read.header("lsn")),
        };
        assert!(item <= all, "{name}");
    }
}

#[tokio::test]
async fn a_deleted_container_leaves_the_count_of_the_others() {
    let server = with_container().await;
    server.post("/dbs/d/colls", container("other")).await.expect(201);
    let deleted = server.send("DELETE", "/dbs/d/colls/c", &[], &Value::Null).await.expect(204);
    assert_eq!(deleted.header("x-ms-resource-usage"), "collections=1;");
    assert_eq!(deleted.header("x-ms-resource-quota"), "collections=5000;");
}

#[tokio::test]
async fn the_account_tells_how_much_media_it_has() {
    let account = Server::start(false).get("/").await.expect(200);
    assert_eq!(account.header("x-ms-max-media-storage-usage-mb"), "10240");
    assert_eq!(account.header("x-ms-media-storage-usage-mb"), "0");
}

#[tokio::test]
async fn query_metrics_tell_what_took_time() {
    let server = with_container().await;
    let headers = [
        ("x-ms-documentdb-isquery", "True"),
        ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ("x-ms-documentdb-populatequerymetrics", "True"),
        ("content-type", "application/query+json"),
    ];
    let query = json!({"query": "SELECT * FROM c WHERE c.n > 3 AND c.name = 'x'"});
    let found = server.send("POST", "/dbs/d/colls/c/docs", &headers, &query).await.expect(200);
    let metrics = found.header("x-ms-documentdb-query-metrics");
    for name in ["totalExecution", "queryCompile", "queryLogicalPlanBuild", "VMExecution", "writeOutput"] {
        let time = metrics.split(';').find_map(|pair| pair.strip_prefix(&format!("{name}TimeInMs=")));
        let time: f64 = time.and_then(|time| time.parse().ok()).expect(metrics);
        assert!(time > 0.0, "{name}: {metrics}");
    }
}

/// `BatchErrorSessionTokenTestAsync` and `BatchSessionTokenPropertiesTestAsync` of .NET.
#[tokio::test]
async fn a_batch_names_its_owner_unless_it_failed() {
    let server = with_container().await;
    let headers = [
        ("x-ms-documentdb-partitionkey", "[\"x\"]"),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-atomic", "True"),
    ];
    let send =
        async |operations: Value| server.send("POST", "/dbs/d/colls/c/docs", &headers, &operations).await;
    let create = json!({"operationType": "Create", "resourceBody": {"id": "a", "pk": "x"}});
    let made = send(json!([create])).await.expect(200);
    let rid = made.header("x-ms-content-path").to_owned();
    assert!(!rid.is_empty());
    let known = json!({"operationType": "Read", "id": "a", "ifNoneMatch": made.body[0]["eTag"]});
    let unchanged = send(json!([known])).await.expect(207);
    assert_eq!(unchanged.header("x-ms-content-path"), rid, "{}", unchanged.body);
    let missing = json!({"operationType": "Read", "id": "none"});
    for failing in [json!([missing]), json!([create]), json!([known, missing])] {
        let failed = send(failing).await.expect(207);
        assert_eq!(failed.header("x-ms-content-path"), "", "{}", failed.body);
        assert_eq!(failed.header("x-ms-alt-content-path"), "");
        assert!(!failed.header("x-ms-session-token").is_empty());
    }
}

/// `ValidateTriggers` of .NET's `GatewayTests`.
#[tokio::test(flavor = "multi_thread")]
async fn post_triggers_are_told_the_quotas() {
    let server = with_container().await;
    let body = "function () {
        var response = getContext().getResponse(), item = response.getBody(), refused = 0;
        item.used = response.getResourceQuotaCurrentUsage();
        item.most = response.getMaxResourceQuota();
        try { response.setValue('MaxResourceQuota', 'more'); } catch (error) { refused = error.number; }
        item.refused = refused;
        response.setBody(item);
    }";
    let trigger = json!({"id": "t", "body": body, "triggerType": "Post", "triggerOperation": "All"});
    server.post("/dbs/d/colls/c/triggers", trigger).await.expect(201);
    let headers =
        [("x-ms-documentdb-partitionkey", "[\"x\"]"), ("x-ms-documentdb-post-trigger-include", "t")];
    let item = json!({"id": "a", "pk": "x"});
    let made = server.send("POST", "/dbs/d/colls/c/docs", &headers, &item).await.expect(201);
    assert_eq!(made.body["most"], made.header("x-ms-resource-quota"));
    assert!(
        made.body["used"].as_str().is_some_and(|used| used.contains(";collectionSize=")),
        "{}",
        made.body
    );
    assert_eq!(made.body["refused"], 403, "{}", made.body);
}
