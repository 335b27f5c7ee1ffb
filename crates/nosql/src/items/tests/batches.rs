//! What batches cost, what they show, and in which order they fail.

use super::*;

const X: &str = r#"["x"]"#;
const BULK: [(&str, &str); 4] = [(BATCH, "true"), (ATOMIC, "false"), (CONTINUE, "true"), (RANGE, "0")];

fn charges(answer: &Answer) -> Vec<f64> {
    let doc = json::parse(answer.body.as_bytes(), 128).expect("a JSON answer");
    let list = doc.root().as_array().expect("a list of results");
    list.iter().map(|result| result.get("requestCharge").as_f64().expect("a charge")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_batch_charges_what_it_tried() {
    let world = World::simple().await;
    world.create(X, r#"{"id":"a","pk":"x"}"#).await;
    let fresh = r#"{"operationType":"Create","resourceBody":{"id":"b","pk":"x"}}"#;
    let later = r#"{"operationType":"Create","resourceBody":{"id":"c","pk":"x"}}"#;
    for (failing, wanted) in [
        (r#"{"operationType":"Create","resourceBody":{"id":"a","pk":"x"}}"#, 409),
        (r#"{"operationType":"Create","resourceBody":{"id":"z","pk":"y"}}"#, 400),
        (r#"{"operationType":"Create","resourceBody":{"pk":"x"}}"#, 400),
        (r#"{"operationType":"Read","id":"z"}"#, 404),
        (r#"{"operationType":"Replace","id":"a","ifMatch":"stale","resourceBody":{"id":"a","pk":"x"}}"#, 412),
        (r#"{"operationType":"Delete","id":"z"}"#, 404),
    ] {
        let failed = world.batch(X, &format!("[{fresh},{failing},{later}]")).await;
        assert_eq!((failed.status, failed.codes()), (207, vec![424, wanted, 424]), "{failing}");
        let each = charges(&failed);
        assert!(each[0] > 4.0 && each[1] == 1.0 && each[2] == 0.0, "{failing} {each:?}");
        assert!((failed.charge - each.iter().sum::<f64>()).abs() < 0.1, "{failing} {each:?}");
        assert!(failed.range.is_some() && failed.lsn == 2, "the session is told too");
    }
    assert_eq!(world.read(X, "b").await.status, 404, "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_failure_is_told_whoever_finds_it() {
    let world = World::simple().await;
    world.create(X, r#"{"id":"a","pk":"x"}"#).await;
    let conflict = r#"{"operationType":"Create","resourceBody":{"id":"a","pk":"x"}}"#;
    let misplaced = r#"{"operationType":"Create","resourceBody":{"id":"b","pk":"y"}}"#;
    assert_eq!(world.batch(X, &format!("[{conflict},{misplaced}]")).await.codes(), [409, 424]);
    let failed = world.batch(X, &format!("[{misplaced},{conflict}]")).await;
    assert_eq!(failed.codes(), [400, 424]);
    assert!(failed.body.contains("\"subStatusCode\":1001"), "{}", failed.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_operations_of_a_bulk_are_charged() {
    let world = World::simple().await;
    let body = r#"[{"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"b","pk":"y"}},
                   {"operationType":"Create","partitionKey":"[\"x\"]","resourceBody":{"id":"b","pk":"x"}}]"#;
    let bulk = world.send(Method::POST, None, &BULK, body).await;
    assert_eq!(bulk.codes(), [400, 201]);
    assert_eq!(charges(&bulk)[0], 1.0);
    assert!(bulk.body.contains("\"subStatusCode\":1001"), "{}", bulk.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_say_that_they_want_no_item_back_or_their_request_does() {
    let world = World::simple().await;
    let create = |id: &str, minimal: &str| {
        format!(
            r#"{{"operationType":"Create","partitionKey":"[\"x\"]"{minimal},"resourceBody":{{"id":"{id}","pk":"x"}}}}"#
        )
    };
    let shown = |answer: &Answer| answer.body.matches("resourceBody").count();
    let of_itself = |wish: bool| format!(r#","minimalReturnPreference":{wish}"#);
    let read = r#"{"operationType":"Read","partitionKey":"[\"x\"]","id":"old"}"#;
    world.create(X, r#"{"id":"old","pk":"x"}"#).await;
    for (name, ids, wanted) in [("prefer", ["a", "b", "c"], 2), ("none", ["d", "e", "f"], 3)] {
        let [first, second, third] = ids;
        let body = format!(
            "[{},{},{},{read}]",
            create(first, ""),
            create(second, &of_itself(true)),
            create(third, &of_itself(false))
        );
        let atomic = [(KEY, X), (BATCH, "True"), (ATOMIC, "True"), (name, "return=minimal")];
        let batch = world.send(Method::POST, None, &atomic, &body).await;
        assert_eq!(
            (batch.codes(), shown(&batch)),
            (vec![201, 201, 201, 200], wanted),
            "{name} {}",
            batch.body
        );
        let body = body.replace("{\"id\":\"", "{\"id\":\"bulk-");
        let headers = [BULK.as_slice(), &[(name, "return=minimal")]].concat();
        let bulk = world.send(Method::POST, None, &headers, &body).await;
        assert_eq!((bulk.codes(), shown(&bulk)), (vec![201, 201, 201, 200], wanted), "{name} {}", bulk.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_reads_keeps_its_session() {
    let world = World::simple().await;
    world.create(X, r#"{"id":"a","pk":"x"}"#).await;
    let write = r#"{"operationType":"Upsert","resourceBody":{"id":"b","pk":"x"}}"#;
    let read = r#"{"operationType":"Read","id":"a"}"#;
    let send = |body: String| {
        let world = &world;
        let headers = [(KEY, X), (BATCH, "True"), (ATOMIC, "True"), (SESSION, "0:-1#2000")];
        async move { world.send(Method::POST, None, &headers, &body).await }
    };
    let refused = send(format!("[{write},{read}]")).await;
    assert_eq!((refused.status, refused.substatus), (404, 1002), "{}", refused.body);
    assert_eq!(world.read(X, "b").await.status, 404);
    assert_eq!(send(format!("[{write}]")).await.status, 200, "writes go to the newest state in any case");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_asks_for_less_than_its_session_gets_that() {
    let world = World::simple().await;
    world.create(X, r#"{"id":"a","pk":"x"}"#).await;
    for (level, wanted) in [("Eventual", 200), ("Session", 404), ("Strong", 400)] {
        let ahead = [(SESSION, "0:-1#2000"), ("x-ms-consistency-level", level)];
        let headers = [&[(KEY, X), (BATCH, "True"), (ATOMIC, "True")], &ahead[..]].concat();
        let read = world.send(Method::POST, None, &headers, r#"[{"operationType":"Read","id":"a"}]"#).await;
        assert_eq!(read.status, wanted, "{level} {}", read.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_a_batch_take_either_condition_for_what_they_have() {
    let world = World::simple().await;
    let etag = world.create(X, r#"{"id":"a","pk":"x"}"#).await.etag.replace('"', "\\\"");
    for name in ["ifMatch", "ifNoneMatch"] {
        for (version, wanted) in [(etag.as_str(), 304), ("other", 200)] {
            let body = format!(
                r#"[{{"operationType":"Read","id":"a","partitionKey":"[\"x\"]","{name}":"{version}"}}]"#
            );
            assert_eq!(world.batch(X, &body).await.codes(), [wanted], "{name} {version}");
            let bulk = world.send(Method::POST, None, &BULK, &body).await;
            assert_eq!(bulk.codes(), [wanted], "{name} {version}");
        }
    }
}
