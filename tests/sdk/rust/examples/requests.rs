//! The program of this SDK for tests/sdk/requests, told what to do line by line.

use std::io::BufRead;

use orrery_sdk_scenario::{Outcome, container, database};
use serde_json::json;

#[tokio::main]
async fn main() -> Outcome {
    let database = database("requests").await?;
    let container = container(&database, "items", "/pk", 24_000).await?;
    container.create_item("a", "first", &json!({"id": "first", "pk": "a"}), None).await?;
    container.read_item("a", "first", None).await?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let is_reads = line?.trim() == "reads";
        for number in 0..100 {
            if is_reads {
                container.read_item("a", "first", None).await?;
            } else {
                let (pk, id) = (format!("p{}", number % 10), format!("i{number}"));
                container.create_item(pk.clone(), &id, &json!({"id": id, "pk": pk}), None).await?;
            }
        }
        println!("done");
    }
    Ok(())
}
