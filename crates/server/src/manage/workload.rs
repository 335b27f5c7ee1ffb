//! Recording what a container is asked to do, in the form that the advisor reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Method, StatusCode};
use orrery_advisor::limits::SAMPLE_DEPTH_MAX;
use orrery_cluster::insight::{KnownPath, Operations, Recorded, Recording, Touch};
use orrery_cluster::{Container, Db};
use orrery_doc::partition_key::MAX_KEY_BYTES;
use orrery_doc::{KeyComponent, Path, Segment};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::{Answer, Call, not_found};

/// Bytes of all touched items of a recording: it is sent back as part of a question, whose size is limited.
const TOUCHED_BYTES_MAX: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    action: Action,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Start,
    Stop,
}

pub async fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::GET, Method::POST])?;
    if *call.method == Method::GET {
        let recording = call.db.recording(container).ok_or_else(nothing)?;
        let (db, container) = (call.db.clone(), container.clone());
        // Thousands of items may be read.
        let told = tokio::task::spawn_blocking(move || workload(&db, &container, &recording)).await;
        return Ok(Answer::json(told.map_err(|_| broken())??));
    }
    match call.json::<Order>()?.action {
        Action::Start if !call.db.start_recording(container) => {
            let message = "Too many containers are being recorded; stop another recording first.";
            return Err(Denial::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        Action::Start => {}
        Action::Stop => call.db.stop_recording(container),
    }
    let recording = call.db.recording(container).ok_or_else(nothing)?;
    let state = if recording.is_running() { "recording" } else { "stopped" };
    Ok(Answer::json(json!({
        "state": state,
        "seconds": recording.seconds(),
        "operations": recording.operations.iter().map(|one| one.count).sum::<u64>(),
        "missed": recording.missed,
    })))
}

fn nothing() -> Denial {
    not_found("Nothing was recorded of this container.")
}

fn broken() -> Denial {
    Denial::new(StatusCode::INTERNAL_SERVER_ERROR, "The recording could not be read.")
}

/// RU/s that a container was provisioned with, or that its partitions may use of what its database shares; none where
/// they may use any.
pub(super) fn throughput_of(db: &Db, container: &Arc<Container>) -> Option<f64> {
    if let Some(offer) = db.catalog().offer_of(container.resource.rid) {
        return Some(f64::from(offer.throughput.ceiling()));
    }
    let throughput: f64 = container.partition_budgets().iter().map(|budget| budget.rate).sum();
    (throughput > 0.0).then_some(throughput)
}

fn workload(db: &Db, container: &Arc<Container>, recording: &Recording) -> Result<Value, Denial> {
    let usage = container.usage();
    let seconds = recording.seconds();
    let keys: Vec<String> = container.definition.key.paths.iter().map(ToString::to_string).collect();
    let bytes_max = TOUCHED_BYTES_MAX / recording.operations.len().max(1);
    let told = |one: &Operations| {
        let mut operation = operation(one, seconds, &keys);
        let touched = touched(db, container, one, bytes_max)?;
        if !touched.is_empty() {
            operation.insert("touched".to_owned(), touched.into());
        }
        Ok(Value::Object(operation))
    };
    let operations: Vec<Value> = recording.operations.iter().map(told).collect::<Result<_, Denial>>()?;
    let mut workload = json!({
        "name": format!("{}/{}", container.database_id, container.resource.id),
        "description": format!("Recorded for {seconds:.0} seconds."),
        "partitions": container.ranges().len(),
        "items": { "stored": usage.items },
        "operations": operations,
    });
    if let Some(bytes) = usage.bytes.checked_div(usage.items) {
        workload["items"]["bytes"] = bytes.into();
    }
    if let Some(throughput) = throughput_of(db, container) {
        workload["throughput"] = throughput.into();
    }
    Ok(workload)
}

/// The items that requests touched, each once and with how often it was.
fn touched(db: &Db, container: &Container, one: &Operations, bytes_max: usize) -> Result<Vec<Value>, Denial> {
    let mut times: BTreeMap<String, (Value, u32)> = BTreeMap::new();
    let mut bytes = 0;
    // Requests stand there in no order, so those that come before the limit are a fair part of them.
    for touch in &one.touched.by {
        let item = match touch {
            Touch::Item(rid) => db.item_of_rid(container, *rid)?.map(|item| super::advice::json(&item)),
            Touch::Values(values) => item_with(values),
        };
        // Some items are gone by now.
        let Some(item) = item.map(|item| brief(&item, SAMPLE_DEPTH_MAX)) else { continue };
        let text = item.to_string();
        bytes += if times.contains_key(&text) { 0 } else { text.len() };
        if bytes > bytes_max {
            break;
        }
        times.entry(text).or_insert((item, 0)).1 += 1;
    }
    let told = times.into_values().map(|(item, times)| json!({ "times": times, "item": item }));
    Ok(told.collect())
}

/// An item that has values at some paths and nothing else.
fn item_with(values: &[(String, KeyComponent)]) -> Option<Value> {
    let mut item = json!({});
    for (path, value) in values {
        let path = Path::parse_property(path).ok()?;
        let mut place = &mut item;
        for segment in path.segments() {
            let Segment::Name(name) = segment else { return None };
            // A value above another one is nothing that an item could have.
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[name.as_str()];
        }
        *place = match value {
            KeyComponent::Str(text) => text.as_str().into(),
            KeyComponent::Number(number) => (*number).into(),
            KeyComponent::Bool(truth) => (*truth).into(),
            KeyComponent::Null => Value::Null,
            KeyComponent::Undefined | KeyComponent::Exact(_) | KeyComponent::Infinity => continue,
        };
    }
    Some(item)
}

/// As much of an item as can be a partition key.
fn brief(item: &Value, depth: usize) -> Value {
    let Value::Object(members) = item else { return item.clone() };
    let can_be_key = |member: &Value| match member {
        Value::Array(_) => false,
        Value::Object(_) => depth > 1,
        Value::String(text) => text.len() <= MAX_KEY_BYTES,
        _ => true,
    };
    let kept = members.iter().filter(|(_, member)| can_be_key(member));
    Value::Object(kept.map(|(name, member)| (name.clone(), brief(member, depth - 1))).collect())
}

fn operation(one: &Operations, seconds: f64, keys: &[String]) -> Map<String, Value> {
    let mut operation = Map::new();
    let mut put = |name: &str, value: Value| drop(operation.insert(name.to_owned(), value));
    let mean = |sum: u64| sum as f64 / one.count.max(1) as f64;
    put("name", name(one).into());
    put("kind", one.kind.name().into());
    put("perSecond", (one.count as f64 / seconds).into());
    if !one.filters.is_empty() {
        put("filters", one.filters.iter().map(filter).collect());
    }
    match one.kind {
        Recorded::Query => put("returns", mean(one.items).into()),
        Recorded::Transaction => {
            put("together", keys.into());
            put("writes", (mean(one.items).round() as u32).into());
            put("bytes", (one.bytes as f64 / one.items.max(1) as f64).into());
        }
        _ => put("bytes", mean(one.bytes).into()),
    }
    operation
}

fn name(one: &Operations) -> String {
    let paths: Vec<&str> = one.filters.iter().map(|known| known.path.as_str()).collect();
    match paths.is_empty() {
        true => one.kind.name().to_owned(),
        false => format!("{} by {}", one.kind.name(), paths.join(", ")),
    }
}

fn filter(known: &KnownPath) -> Value {
    match known.values {
        1 => known.path.as_str().into(),
        values => json!({ "path": known.path, "values": values }),
    }
}
