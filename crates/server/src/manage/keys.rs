//! Logical partitions that do or hold more than others.

use std::sync::Arc;

use http::Method;
use orrery_cluster::Container;
use orrery_cluster::insight::{HotBy, HotPartitionKey, LargePartitionKey};
use orrery_nosql::Denial;
use serde_json::{Value, json};

use super::call::{Answer, Call, bad_request};
use super::partitions::window;

const COUNT_DEFAULT: usize = 20;
const COUNT_MAX: usize = 1_000;

pub async fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::GET])?;
    let window = window(call)?;
    let count = call.number("count", COUNT_DEFAULT, COUNT_MAX)?;
    let looks_up = call.parameter("lookUp").is_some_and(|word| word == "true");
    let (largest, cut) = match looks_up {
        true => call.db.look_up_largest_keys(container, count).await?,
        false => (call.db.largest_keys(container, count), false),
    };
    let limit = call.db.options().limits.logical_partition_bytes;
    let by = match call.parameter("by").as_deref() {
        None | Some("requestUnits") => HotBy::Units,
        Some("requests") => HotBy::Requests,
        Some("throttled") => HotBy::Throttled,
        Some(_) => return Err(bad_request("by must be requestUnits, requests or throttled.")),
    };
    let hottest = call.db.hottest_keys(container, window, by, count);
    Ok(Answer::json(json!({
        "database": container.database_id,
        "container": container.resource.id,
        "window": window.name(),
        "hottest": hottest.iter().map(hot).collect::<Vec<_>>(),
        "largest": largest.iter().map(|large| self::large(large, limit)).collect::<Vec<_>>(),
        "lookedUp": looks_up,
        "cut": cut,
    })))
}

fn hot(hot: &HotPartitionKey) -> Value {
    let round = |number: f64| (number * 100.0).round() / 100.0;
    json!({
        "partition": hot.range_id.to_string(),
        "partitionKey": key(&hot.key),
        "requestUnits": round(hot.units),
        "requests": round(hot.requests),
        "throttled": round(hot.throttled),
        "error": round(hot.error),
    })
}

fn large(large: &LargePartitionKey, limit: u64) -> Value {
    json!({
        "partition": large.range_id.to_string(),
        "effectivePartitionKey": large.epk.to_hex(),
        "partitionKey": large.key.as_deref().map(key),
        "bytes": large.bytes,
        "items": large.items,
        "percentOfLimit": (large.bytes as f64 / limit.max(1) as f64 * 10_000.0).round() / 100.0,
    })
}

/// A key as the array that it is; one that was cut is no longer JSON and stays text.
fn key(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
