//! Requests that began before their container was exchanged for one with another partition key.

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";
const OLD_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "[1]");
const NEW_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["here"]"#);

/// A server whose container had `/pk` as its key when the catalog was looked at, and has `/city` by now. One of its two
/// items was written since.
async fn exchanged_server() -> (Server, Arc<Catalog>) {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    let item = |id: &str| json!({"id": id, "pk": 1, "city": "here"});
    server.send("POST", DOCS, &[OLD_KEY], &item("old")).await.expect(201);
    let catalog = server.0.0.db.catalog();
    server.rekey(json!({"paths": ["/city"], "kind": "Hash", "version": 2})).await;
    server.send("POST", DOCS, &[NEW_KEY], &item("new")).await.expect(201);
    (server, catalog)
}

impl Server {
    /// Sends a request that has looked at the catalog already.
    async fn send_late(
        &self,
        catalog: &Catalog,
        (method, path): (Method, &str),
        headers: &[(&'static str, &str)],
        body: Value,
    ) -> Result<Reply, Refusal> {
        let value = |text: &str| HeaderValue::from_str(text).expect("a value");
        let map: HeaderMap =
            headers.iter().map(|(name, text)| (http::HeaderName::from_static(name), value(text))).collect();
        let headers = RequestHeaders::parse(&map)?;
        let trace = Trace {
            method: &method,
            path,
            host: "localhost",
            scheme: Scheme::Http,
            activity: ActivityId::choose(None),
            started: Instant::now(),
            explain_charge: false,
        };
        let inner = &self.0.0;
        let call = Call {
            db: &inner.db,
            catalog,
            headers: &headers,
            trace: &trace,
            keys: &inner.keys,
            grant: &Grant::Everything,
            told: &inner.told,
            advertised_host: None,
        };
        dispatch(&call, router::route(path)?.endpoint, Bytes::from(body.to_string())).await
    }
}

fn body_of(reply: Result<Reply, Refusal>) -> Value {
    serde_json::from_slice(&reply.expect("an answer").body).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feeds_answer_from_the_container_that_is_there() {
    let (server, before) = exchanged_server().await;
    let listed = server.send_late(&before, (Method::GET, DOCS), &[], Value::Null).await;
    assert_eq!(body_of(listed)["_count"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_reads_answer_from_the_container_that_is_there() {
    let (server, before) = exchanged_server().await;
    let path = format!("{DOCS}/new");
    let read = server.send_late(&before, (Method::GET, &path), &[NEW_KEY], Value::Null).await;
    assert_eq!(body_of(read)["id"], "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_a_bulk_request_are_told_to_ask_again() {
    let (server, before) = exchanged_server().await;
    let headers = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-continue-on-error", "True")];
    let operations = json!([{"operationType": "Read", "partitionKey": "[1]", "id": "old"}]);
    let done = body_of(server.send_late(&before, (Method::POST, DOCS), &headers, operations).await);
    assert_eq!((&done[0]["statusCode"], &done[0]["subStatusCode"]), (&json!(410), &json!(1002)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_not_deleted_in_a_container_where_it_names_other_items() {
    let (server, before) = exchanged_server().await;
    let path = "/dbs/d/colls/c/operations/partitionkeydelete";
    let refused = server.send_late(&before, (Method::POST, path), &[NEW_KEY], Value::Null).await;
    assert!(
        refused.is_err_and(|refusal| refusal.wire().status == 410),
        "the container that was meant is gone"
    );
    assert_eq!(server.get(DOCS).await.expect(200).body["_count"], 2);
}
