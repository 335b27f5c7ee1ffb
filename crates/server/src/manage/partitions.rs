//! The physical partitions of a container: what they hold and use, and splitting and merging them on request.

use std::sync::Arc;

use http::Method;
use orrery_cluster::Container;
use orrery_cluster::insight::{PartitionInsight, Slot, Use, Window};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Answer, Call, bad_request, not_found};
use super::no_such_path;

pub async fn serve(call: &Call<'_>, container: &Arc<Container>, rest: &[&str]) -> Result<Answer, Denial> {
    match rest {
        [] => {
            call.only(&[Method::GET])?;
            list(call, container)
        }
        ["merge"] => {
            call.only(&[Method::POST])?;
            merge(call, container).await
        }
        [range, "split"] => {
            call.only(&[Method::POST])?;
            split(call, container, range).await
        }
        _ => Err(no_such_path()),
    }
}

fn list(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    let window = window(call)?;
    let insight = call.db.container_insight(container, window);
    let partitions: Vec<Value> = insight.partitions.iter().map(partition).collect();
    Ok(Answer::json(json!({
        "database": container.database_id,
        "container": container.resource.id,
        "window": window.name(),
        "slotSeconds": window.slot_seconds(),
        "until": insight.until,
        "whole": use_of(&insight.whole),
        "partitions": partitions,
    })))
}

/// Which window is asked for; without a word, the last minute.
pub fn window(call: &Call<'_>) -> Result<Window, Denial> {
    let Some(name) = call.parameter("window") else { return Ok(Window::Minute) };
    Window::named(&name).ok_or_else(|| bad_request("window must be minute, hour or day."))
}

fn partition(partition: &PartitionInsight) -> Value {
    let parents: Vec<String> = partition.parents.iter().map(u32::to_string).collect();
    json!({
        "id": partition.id.to_string(),
        "minInclusive": partition.range.min.to_hex(),
        "maxExclusive": partition.range.max.to_hex(),
        "from": partition.share.0,
        "to": partition.share.1,
        "parents": parents,
        "lsn": partition.lsn.0,
        "items": partition.items,
        "bytes": partition.bytes,
        "throughput": partition.throughput,
        "use": use_of(&partition.use_of),
    })
}

fn use_of(used: &Use) -> Value {
    let rate = |slot: &Slot, seconds: f32| {
        json!({
            "requests": hundredths(slot.requests as f32 / seconds),
            "requestUnits": hundredths(slot.units / seconds),
            "throttled": hundredths(slot.throttled as f32 / seconds),
        })
    };
    let slots = &used.window;
    json!({
        "total": {
            "requests": used.requests_total,
            "requestUnits": used.units_total,
            "throttled": used.throttled_total,
        },
        "perSecond": rate(&used.ten_seconds, 10.0),
        "perSecondOfMinute": rate(&used.minute, 60.0),
        "slots": {
            "requests": slots.iter().map(|slot| slot.requests).collect::<Vec<_>>(),
            "requestUnits": slots.iter().map(|slot| hundredths(slot.units)).collect::<Vec<_>>(),
            "highestRequestUnits": slots.iter().map(|slot| hundredths(slot.highest)).collect::<Vec<_>>(),
            "throttled": slots.iter().map(|slot| slot.throttled).collect::<Vec<_>>(),
            "bytes": slots.iter().map(|slot| slot.bytes).collect::<Vec<_>>(),
        },
    })
}

/// Request units have two digits behind the point; more would be noise of floating point.
pub fn hundredths(number: f32) -> f64 {
    (f64::from(number) * 100.0).round() / 100.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    #[serde(default = "two")]
    children: u32,
}

fn two() -> u32 {
    2
}

async fn split(call: &Call<'_>, container: &Arc<Container>, range: &str) -> Result<Answer, Denial> {
    let Split { children } = call.json()?;
    let (db, container, range) = (call.db.clone(), container.clone(), known(container, range)?);
    let made = db.split(&container, range, children).await?;
    let made: Vec<String> = made.iter().map(u32::to_string).collect();
    Ok(Answer::json(json!({ "children": made })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    left: String,
    right: String,
}

async fn merge(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    let Merge { left, right } = call.json()?;
    let (left, right) = (known(container, &left)?, known(container, &right)?);
    let (db, container) = (call.db.clone(), container.clone());
    let made = db.merge(&container, left, right).await?;
    Ok(Answer::json(json!({ "child": made.to_string() })))
}

/// The id of a partition that the container has now. To clients of the protocol one that is gone answers 410, so that they
/// look again; an operator who names it here wants to know which there are.
fn known(container: &Container, text: &str) -> Result<u32, Denial> {
    let id: u32 = text.parse().map_err(|_| bad_request(format!("{text:?} is not the id of a partition.")))?;
    let ids: Vec<u32> = container.partition_budgets().iter().map(|budget| budget.id).collect();
    if ids.contains(&id) {
        return Ok(id);
    }
    let shown: Vec<String> = ids.iter().take(IDS_SHOWN_MAX).map(u32::to_string).collect();
    let more = if ids.len() > IDS_SHOWN_MAX { ", …" } else { "" };
    Err(not_found(format!(
        "{}/{} has no partition {id}; it has {}{more}.",
        container.database_id,
        container.resource.id,
        shown.join(", ")
    )))
}

/// Partitions that a refusal names.
const IDS_SHOWN_MAX: usize = 20;
