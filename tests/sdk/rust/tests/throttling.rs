//! Real throttling: the server answers 429 with a time to wait, and the SDK waits and retries.

use std::time::Duration;

use azure_data_cosmos::options::{ItemWriteOptions, OperationOptions, ThrottlingRetryOptions};
use futures::{StreamExt, TryStreamExt};
use orrery_sdk_scenario::{Outcome, container, database};
use serde_json::{Value, json};

const WRITES: usize = 40;
/// Few at once: a server may admit what arrives together.
const WRITERS: usize = 8;

fn patient() -> ItemWriteOptions {
    let mut throttling = ThrottlingRetryOptions::default();
    throttling.max_retry_count = Some(100);
    throttling.max_retry_wait_time = Some(Duration::from_secs(120));
    let mut operation = OperationOptions::default();
    operation.throttling_retry_options = Some(throttling);
    ItemWriteOptions::default().with_operation_options(operation)
}

#[tokio::test]
async fn throttling_is_seen_and_retried_by_the_sdk() -> Outcome {
    let database = database("throttling").await?;
    let slow = container(&database, "slow", "/pk", 400).await?;
    // Every property is an index term to write, so these small items are expensive ones.
    let properties: serde_json::Map<String, Value> =
        (0..500).map(|index| (format!("p{index}"), json!(index))).collect();
    let answers: Vec<_> = futures::stream::iter(0..WRITES)
        .map(|index| {
            let (slow, properties) = (&slow, &properties);
            async move {
                let (id, pk) = (format!("item-{index}"), index.to_string());
                let item = json!({"id": id, "pk": pk, "properties": properties});
                slow.create_item(pk, &id, &item, Some(patient())).await
            }
        })
        .buffer_unordered(WRITERS)
        .try_collect()
        .await?;
    assert_eq!(answers.len(), WRITES);
    let refusals = answers
        .iter()
        .flat_map(|answer| answer.diagnostics().requests().to_vec())
        .filter(|request| u16::from(request.status().status_code()) == 429)
        .inspect(|request| assert_eq!(request.status().sub_status().map(|code| code.value()), Some(3200)))
        .count();
    assert!(refusals > 0, "no request was throttled");
    database.delete(None).await?;
    Ok(())
}
