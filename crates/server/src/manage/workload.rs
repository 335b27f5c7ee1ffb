//! Recording what a container is asked to do, in the form that the advisor reads.

use std::sync::Arc;

use http::{Method, StatusCode};
use orrery_cluster::Container;
use orrery_cluster::insight::{KnownPath, Operations, Recorded, Recording};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::{Answer, Call, not_found};

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

pub fn serve(call: &Call<'_>, container: &Arc<Container>) -> Result<Answer, Denial> {
    call.only(&[Method::GET, Method::POST])?;
    if *call.method == Method::GET {
        let recording = call.db.recording(container).ok_or_else(nothing)?;
        return Ok(Answer::json(workload(call, container, &recording)));
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

fn workload(call: &Call<'_>, container: &Arc<Container>, recording: &Recording) -> Value {
    let usage = container.usage();
    let seconds = recording.seconds();
    let keys: Vec<String> = container.definition.key.paths.iter().map(ToString::to_string).collect();
    let mut workload = json!({
        "name": format!("{}/{}", container.database_id, container.resource.id),
        "description": format!("Recorded for {seconds:.0} seconds."),
        "partitions": container.ranges().len(),
        "items": { "stored": usage.items },
        "operations": recording.operations.iter().map(|one| operation(one, seconds, &keys)).collect::<Vec<_>>(),
    });
    if let Some(bytes) = usage.bytes.checked_div(usage.items) {
        workload["items"]["bytes"] = bytes.into();
    }
    let insight = call.db.container_insight(container, orrery_cluster::insight::Window::Minute);
    let throughput: f64 = insight.partitions.iter().map(|one| one.throughput).sum();
    if throughput > 0.0 {
        workload["throughput"] = throughput.into();
    }
    workload
}

fn operation(one: &Operations, seconds: f64, keys: &[String]) -> Value {
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
    Value::Object(operation)
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
