//! Procedures that every container has.

use super::*;

const DOCS: &str = "/dbs/d/colls/c/docs";
const ECHO: &str = "/dbs/d/colls/c/sprocs/__.sys.echo";
const INSERT: &str = "/dbs/d/colls/c/sprocs/__.sys.commonBulkInsert";
const KEY_HEADER: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"k\"]");
const RANGE_HEADER: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");

async fn server() -> Server {
    let server = Server::start(false);
    server.post("/dbs", json!({"id": "d"})).await.expect(201);
    server.post("/dbs/d/colls", container("c")).await.expect(201);
    server
}

fn item(id: &str, key: &str) -> Value {
    json!({"id": id, "pk": key})
}

async fn ids(server: &Server) -> Vec<String> {
    let rows = server.get(DOCS).await.expect(200).body["Documents"].clone();
    let mut ids: Vec<String> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["id"].as_str().expect("an id").to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn echo_answers_its_first_argument() {
    let server = server().await;
    for (arguments, said) in [
        (json!(["foobar"]), json!("foobar")),
        (json!([{"a": [1, null]}, 2]), json!({"a": [1, null]})),
        (json!([]), Value::Null),
        (json!([null]), Value::Null),
    ] {
        let answer = server.send("POST", ECHO, &[KEY_HEADER], &arguments).await.expect(200);
        assert_eq!(answer.body, said, "{arguments}");
        assert!(!answer.header("x-ms-session-token").is_empty());
    }
    server.send("POST", ECHO, &[], &json!(["x"])).await.expect(400);
    server.send("GET", ECHO, &[], &Value::Null).await.expect(404);
    server.send("POST", "/dbs/d/colls/c/sprocs/__.sys.other", &[KEY_HEADER], &json!([])).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_insert_takes_all_keys_of_a_range() {
    let server = server().await;
    let items = json!([item("1", "a"), item("2", "b"), item("3", "a"), item("4", "c")]);
    let options = json!({"disableAutomaticIdGeneration": true, "softStopOnConflict": true,
        "systemCollectionId": null, "enableBsonSchema": false, "enableUpsert": false});
    let done = server.send("POST", INSERT, &[RANGE_HEADER], &json!([items, options])).await.expect(200);
    assert_eq!(done.body, json!({"count": 4, "errorCode": 0}));
    assert!(done.header("x-ms-request-charge").parse::<f64>().expect("a charge") > 4.0);
    assert_eq!(ids(&server).await, ["1", "2", "3", "4"]);
    let more = json!([item("5", "a"), item("2", "b"), item("6", "a")]);
    let done = server.send("POST", INSERT, &[RANGE_HEADER], &json!([more, options])).await.expect(200);
    assert_eq!(done.body, json!({"count": 1, "errorCode": 409}), "it says how far it came");
    assert_eq!(ids(&server).await, ["1", "2", "3", "4", "5"]);
    let mut upsert = options.clone();
    upsert["enableUpsert"] = json!(true);
    let done = server.send("POST", INSERT, &[RANGE_HEADER], &json!([more, upsert])).await.expect(200);
    assert_eq!(done.body, json!({"count": 3, "errorCode": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_insert_that_may_not_stop_is_whole_or_nothing() {
    let server = server().await;
    let both = |ids: [&str; 2]| json!([ids.map(|id| item(id, "k")), {}]);
    let done = server.send("POST", INSERT, &[KEY_HEADER], &both(["1", "2"])).await.expect(200);
    assert_eq!(done.body, json!({"count": 2, "errorCode": 0}));
    server.send("POST", INSERT, &[KEY_HEADER], &both(["3", "1"])).await.expect(409);
    assert_eq!(ids(&server).await, ["1", "2"], "the third was undone");
    let made = server.send("POST", INSERT, &[KEY_HEADER], &json!([[{"pk": "k"}]])).await.expect(200);
    assert_eq!(made.body["count"], 1, "it gets an id");
    let strict = json!([[{"pk": "k"}], {"disableAutomaticIdGeneration": true}]);
    server.send("POST", INSERT, &[KEY_HEADER], &strict).await.expect(400);
    let keys = json!([[item("8", "k"), item("9", "other")], {}]);
    server.send("POST", INSERT, &[KEY_HEADER], &keys).await.expect(400);
    let refused = server.send("POST", INSERT, &[RANGE_HEADER], &keys).await.expect(400);
    assert!(refused.message().contains("softStopOnConflict"), "{}", refused.message());
    for (headers, arguments) in [
        (vec![], both(["8", "9"])),
        (vec![KEY_HEADER], json!([])),
        (vec![KEY_HEADER], json!(["items"])),
        (vec![KEY_HEADER], json!([[1]])),
        (vec![KEY_HEADER], json!([[], {"enableBsonSchema": true}])),
    ] {
        server.send("POST", INSERT, &headers, &arguments).await.expect(400);
    }
    let empty = server.send("POST", INSERT, &[RANGE_HEADER], &json!([[], {}])).await.expect(200);
    assert_eq!(empty.body["count"], 0);
    let gone = ("x-ms-documentdb-partitionkeyrangeid", "77");
    server.send("POST", INSERT, &[gone], &json!([[], {}])).await.expect(410);
}
