//! Patches as requests: what their conditions are told.

use super::*;

const X: (&str, &str) = (KEY, r#"["x"]"#);

/// A lock that is free once its time is over is taken by a patch with such a condition, alone or in a batch.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_told_the_time_of_the_request_and_not_of_the_last_write() {
    let (world, hand) = World::by_hand("").await;
    assert_eq!(world.create(X.1, r#"{"id":"a","pk":"x","n":0}"#).await.status, 201);
    for function in ["GetCurrentTimestamp()", "GetCurrentTicks() / 10000"] {
        for in_batch in [false, true] {
            hand.advance(Duration::from_millis(20));
            // The item was last written before, and the request comes after.
            let condition = format!("from c where {function} >= {}", hand.unix_time().as_millis());
            let operations = r#"[{"op":"incr","path":"/n","value":1}]"#;
            let patch = format!(r#"{{"condition":"{condition}","operations":{operations}}}"#);
            let batch = format!(r#"[{{"operationType":"Patch","id":"a","resourceBody":{patch}}}]"#);
            let done = match in_batch {
                false => world.send(Method::PATCH, Some("a"), &[X], &patch).await,
                true => world.batch(X.1, &batch).await,
            };
            assert_eq!(done.status, 200, "{condition}: {}", done.body);
        }
    }
}
