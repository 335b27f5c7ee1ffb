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
            page_bytes: limits::PAGE_BYTES_MAX,
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

const PROCEDURE: &str = "/dbs/d/colls/c/sprocs/add";
/// Writes an item under the id that it is given.
const ADD: &str = "function (id, city) {
    var c = getContext().getCollection();
    var ok = c.createDocument(c.getSelfLink(), { id: id, pk: 1, city: city }, function (e) {
        if (e) throw e;
        getContext().getResponse().setBody(id);
    });
    if (!ok) throw new Error('not accepted');
}";
const STAMP: &str = "function () {
    var r = getContext().getRequest(), item = r.getBody();
    item.stamped = true;
    r.setBody(item);
}";

async fn with_scripts(server: &Server) {
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server.post("/dbs/d/colls/c/sprocs", json!({"id": "add", "body": ADD})).await.expect(201);
    let trigger = json!({"id": "stamp", "body": STAMP, "triggerType": "Pre", "triggerOperation": "All"});
    server.post("/dbs/d/colls/c/triggers", trigger).await.expect(201);
}

/// Like all other operations, scripts that began before the exchange are answered by the container that is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn procedures_and_triggered_writes_run_in_the_container_that_is_there() {
    let server = Server::start(false);
    with_scripts(&server).await;
    let before = server.0.0.db.catalog();
    server.rekey(json!({"paths": ["/city"], "kind": "Hash", "version": 2})).await;
    let arguments = json!(["by procedure", "here"]);
    let done = server.send_late(&before, (Method::POST, PROCEDURE), &[NEW_KEY], arguments).await;
    assert_eq!(body_of(done), "by procedure");
    let headers = [OLD_KEY, ("x-ms-documentdb-pre-trigger-include", "stamp")];
    let item = json!({"id": "by trigger", "pk": 1, "city": "here"});
    let made = server.send_late(&before, (Method::POST, DOCS), &headers, item.clone()).await;
    assert_eq!(body_of(made)["stamped"], true);
    let path = format!("{DOCS}/by%20trigger");
    let replaced = server.send_late(&before, (Method::PUT, &path), &headers, item).await;
    assert_eq!(body_of(replaced)["stamped"], true);
    assert_eq!(server.get(DOCS).await.expect(200).body["_count"], 2);
}

/// Clients that go on while the key changes: none of them may notice the moment in which it does. The new key has the value
/// of the old one in every item, so that what they send is right before and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_script_notices_the_moment_of_the_exchange() {
    let server = Arc::new(Server::start(false));
    with_scripts(&server).await;
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut clients = Vec::new();
    for client in 0..8 {
        let (server, is_over) = (server.clone(), is_over.clone());
        clients.push(tokio::spawn(async move {
            let (key, mut sent) = (("x-ms-documentdb-partitionkey", "[1]"), 0);
            loop {
                let id = format!("{client}-{sent}");
                let answer = match client % 2 {
                    0 => server.send("POST", PROCEDURE, &[key], &json!([id, 1])).await,
                    _ => {
                        let headers = [key, ("x-ms-documentdb-pre-trigger-include", "stamp")];
                        server.send("POST", DOCS, &headers, &json!({"id": id, "pk": 1, "city": 1})).await
                    }
                };
                // A script may be overtaken by others; that has nothing to do with the exchange.
                let is_fine = matches!(answer.status, 200 | 201 | 429 | 449);
                assert!(is_fine, "client {client}: {} {}", answer.status, answer.body);
                sent += 1;
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return sent;
                }
            }
        }));
    }
    for path in ["/city", "/pk", "/city", "/pk"] {
        server.rekey(json!({"paths": [path], "kind": "Hash", "version": 2})).await;
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    for client in clients {
        assert!(client.await.expect("no client fails") > 0);
    }
}
