//! Batches whose items do not fit into one answer.

use super::*;

/// A container with an item of about 1.5 MB: two fit into an answer, three do not.
async fn with_large_item() -> World {
    let world = World::simple().await;
    let text = "x".repeat(1_500_000);
    let body = format!(r#"{{"id":"large","pk":"x","text":"{text}"}}"#);
    assert_eq!(world.create(r#"["x"]"#, &body).await.status, 201);
    world
}

const READ: &str = r#"{"operationType":"Read","partitionKey":"[\"x\"]","id":"large"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_reads_do_not_fit_writes_nothing() {
    let world = with_large_item().await;
    let create = r#"{"operationType":"Create","resourceBody":{"id":"new","pk":"x"}}"#;
    let refused = world.batch(r#"["x"]"#, &format!("[{create},{READ},{READ},{READ}]")).await;
    assert_eq!((refused.status, refused.codes()), (207, vec![424, 424, 424, 413]));
    assert!(refused.body.contains(r#""subStatusCode":3402"#), "{}", refused.body);
    assert_eq!(world.read(r#"["x"]"#, "new").await.status, 404);
    assert_eq!(world.batch(r#"["x"]"#, &format!("[{create},{READ},{READ}]")).await.codes(), [201, 200, 200]);
}

/// `BatchServerResponseTooLargeAsync` of .NET and `batchServerResponseTooLarge` of Java.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_operation_tells_that_the_reads_do_not_fit() {
    let world = with_large_item().await;
    let refused = world.batch(r#"["x"]"#, &format!("[{}]", [READ; 10].join(","))).await;
    let mut wanted = vec![424; 10];
    wanted[9] = 413;
    assert_eq!((refused.status, refused.codes()), (207, wanted));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_batch_writes_takes_no_room_from_what_it_reads() {
    let world = with_large_item().await;
    let patch =
        r#"{"operationType":"Patch","id":"large","resourceBody":[{"op":"set","path":"/n","value":1}]}"#;
    let done = world.batch(r#"["x"]"#, &format!("[{patch},{patch},{READ},{READ}]")).await;
    assert_eq!((done.status, done.codes()), (200, vec![200; 4]));
    assert_eq!(done.body.matches("resourceBody").count(), 2);
    assert_eq!(world.read(r#"["x"]"#, "large").await.field("n"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_a_bulk_request_hold_no_more_than_fits() {
    let world = with_large_item().await;
    let headers = [(BATCH, "true"), (ATOMIC, "false"), (CONTINUE, "true"), (RANGE, "0")];
    let body = vec![READ; 40].join(",");
    let bulk = world.send(Method::POST, None, &headers, &format!("[{body}]")).await;
    let shown = bulk.codes().iter().filter(|code| **code == 200).count();
    assert_eq!((bulk.status, shown), (207, 2));
    assert_eq!(bulk.body.matches(r#""statusCode":413"#).count(), 38);
}
