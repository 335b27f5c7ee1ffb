//! What the service refuses: versions, formats and limits that it does not know, and definitions that name nothing.

use super::*;

async fn status(server: &Server, header: &str, value: &str) -> (u16, String) {
    let answer = server.send("GET", "/dbs", &[(header, value)], &Value::Null).await;
    let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
    (answer.status, message)
}

#[tokio::test]
async fn versions_of_the_api_are_known_or_later() {
    let server = Server::start(false);
    let header = "x-ms-version";
    // Java, JavaScript, Python, .NET and Rust; Go; what REST clients copy from the reference; what is still to come.
    for version in
        ["2020-07-15", "2020-11-05", "2018-12-31", "2018-09-17", "2015-04-08", "2021-01-01", "2035-12-31", ""]
    {
        assert_eq!(status(&server, header, version).await.0, 200, "{version}");
    }
    for version in [
        "2015-01-01",
        "2018-12-30",
        "2020-07-16",
        "1999-01-01",
        "not a date",
        "2021-13-01",
        "2021-02-30",
        "2021-00-10",
        "2021-1-1",
        "2021-01-01T00:00:00Z",
        "20210101",
        "latest",
        "3000",
    ] {
        let (status, message) = status(&server, header, version).await;
        assert_eq!(status, 400, "{version}");
        assert!(message.contains("Invalid API version. Ensure a valid x-ms-version header"), "{message}");
    }
}

#[tokio::test]
async fn a_limit_that_no_continuation_keeps_is_refused() {
    let server = Server::start(false);
    let header = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    for (limit, expected) in [
        ("1", None),
        ("500", None),
        ("99999999999", None),
        ("0", Some("continuation token limit specified is not large enough")),
        ("-1", Some("valid continuation token size limit which must be a positive integer")),
        ("many", Some("valid continuation token size limit which must be a positive integer")),
    ] {
        let (status, message) = status(&server, header, limit).await;
        assert_eq!(status, if expected.is_some() { 400 } else { 200 }, "{limit}");
        assert!(message.contains(expected.unwrap_or_default()), "{message}");
    }
}

#[tokio::test]
async fn content_is_serialized_in_known_formats() {
    let server = Server::start(false);
    let header = "x-ms-documentdb-content-serialization-format";
    for (format, expected) in [
        ("JsonText", 200),
        ("jsontext", 200),
        ("CosmosBinary", 200),
        ("HybridRow", 200),
        ("Not a valid value", 400),
        ("JsonText, CosmosBinary", 400),
    ] {
        assert_eq!(status(&server, header, format).await.0, expected, "{format}");
    }
}

#[tokio::test]
async fn an_offer_is_the_one_that_it_says() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    let offer = server.get("/offers").await.expect(200).body["Offers"][0].clone();
    let path = format!("/offers/{}", offer["id"].as_str().expect("an id"));
    let with = |id: Value, rid: Value| {
        let mut sent = offer.clone();
        sent["id"] = id;
        sent["_rid"] = rid;
        sent
    };
    let mut without_id = offer.clone();
    without_id.as_object_mut().expect("an object").remove("id");
    for (body, expected) in [
        (offer.clone(), 200),
        (without_id, 200),
        (with(offer["id"].clone(), Value::Null), 200),
        (with(offer["id"].clone(), json!("InvalidRid")), 400),
        (with(json!("NotAllowed"), offer["_rid"].clone()), 400),
        (with(offer["id"].clone(), json!(7)), 400),
        (with(Value::Null, Value::Null), 400),
    ] {
        server.send("PUT", &path, &[], &body).await.expect(expected);
    }
    server.send("PUT", &format!("/offers{path}/"), &[], &offer).await.expect(400);
    server.get(&format!("{path}/")).await.expect(200);
}

fn key(id: &str) -> Value {
    json!({"id": id, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAAA",
        "keyWrapMetadata": {"name": "k", "type": "t", "value": "v"}})
}

#[tokio::test]
async fn a_container_is_encrypted_with_keys_of_its_database() {
    let server = Server::start(false);
    for database in ["d", "e"] {
        server.post("/dbs", json!({"id": database})).await.expect(201);
    }
    server.post("/dbs/d/clientencryptionkeys", key("known")).await.expect(201);
    let encrypted = |keys: &[&str]| {
        let path = |key: &&str| {
            json!({"path": format!("/{key}"), "clientEncryptionKeyId": key, "encryptionType": "Deterministic",
                "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"})
        };
        let paths: Vec<Value> = keys.iter().map(path).collect();
        let mut body = container("c");
        body["clientEncryptionPolicy"] = json!({"includedPaths": paths, "policyFormatVersion": 1});
        body
    };
    for (database, keys, missing) in
        [("d", &["known", "other"][..], "other"), ("e", &["known"], "known"), ("d", &["x", "x"], "x")]
    {
        let refused = server.post(&format!("/dbs/{database}/colls"), encrypted(keys)).await.expect(400);
        let words = format!("ClientEncryptionKey with id '[{missing}]' does not exist.");
        assert!(refused.message().contains(&words), "{}", refused.message());
    }
    let made = server.post("/dbs/d/colls", encrypted(&["known"])).await.expect(201);
    server.send("PUT", "/dbs/d/colls/c", &[], &made.body).await.expect(200);
    let refused = server.send("PUT", "/dbs/d/colls/c", &[], &container("c")).await.expect(400);
    assert!(
        refused.message().contains("'clientEncryptionPolicy' cannot be changed"),
        "{}",
        refused.message()
    );
}

#[tokio::test]
async fn encryption_keys_say_when_they_were_made() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    let feed = "/dbs/d/clientencryptionkeys";
    let mut claimed = key("k");
    claimed["_cts"] = json!(1);
    let made = server.post(feed, claimed.clone()).await.expect(201).body;
    let created = made["_cts"].as_u64().expect("a time");
    assert!(created > 1_600_000_000, "the server says when: {made}");
    let mut wrapped = key("k");
    wrapped["wrappedDataEncryptionKey"] = json!("BBBB");
    for (method, path, headers) in [
        ("PUT", "/dbs/d/clientencryptionkeys/k", &[][..]),
        ("POST", feed, &[("x-ms-documentdb-is-upsert", "True")]),
    ] {
        let replaced = server.send(method, path, headers, &wrapped).await.expect(200).body;
        assert_eq!(replaced["_cts"].as_u64(), Some(created), "{method}");
    }
    assert_eq!(server.get(feed).await.expect(200).body["ClientEncryptionKeys"][0]["_cts"], created);
}

/// `performBulkOnDeletedContainer` of Java's `CosmosNotFoundTests`, in gateway mode.
#[tokio::test]
async fn batches_and_bulks_on_a_container_that_is_gone_are_404_without_a_sub_status() {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server.send("DELETE", "/dbs/d/colls/c", &[], &Value::Null).await.expect(204);
    let operations = json!([{"operationType": "Read", "id": "a", "partitionKey": "[\"x\"]"}]);
    for container in ["c", "never"] {
        for (atomic, (name, value)) in [
            ("True", ("x-ms-documentdb-partitionkey", "[\"x\"]")),
            ("False", ("x-ms-documentdb-partitionkeyrangeid", "0")),
        ] {
            let headers = [
                (name, value),
                ("x-ms-cosmos-is-batch-request", "True"),
                ("x-ms-cosmos-batch-atomic", atomic),
                ("x-ms-cosmos-batch-continue-on-error", "True"),
            ];
            let path = format!("/dbs/d/colls/{container}/docs");
            let refused = server.send("POST", &path, &headers, &operations).await.expect(404);
            assert_eq!(refused.header("x-ms-substatus"), "", "{container} {atomic}");
        }
    }
}
