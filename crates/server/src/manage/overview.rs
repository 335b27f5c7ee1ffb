//! What concerns the whole server: its containers at a glance, what came in which protocol, and its alerts.

use std::sync::Arc;

use http::Method;
use orrery_cluster::Container;
use orrery_cluster::insight::{Alert, Window};
use orrery_nosql::Denial;
use serde_json::{Value, json};

use super::call::{Answer, Call};
use super::partitions::hundredths;
use crate::metrics::Served;

pub fn containers(call: &Call<'_>) -> Result<Answer, Denial> {
    call.only(&[Method::GET])?;
    let catalog = call.db.catalog();
    let one = |container: &Arc<Container>| {
        let insight = call.db.container_insight(container, Window::Minute);
        let last = &insight.whole.ten_seconds;
        let usage = container.usage();
        json!({
            "database": container.database_id,
            "container": container.resource.id,
            "api": container.definition.api,
            "partitions": insight.partitions.len(),
            "items": usage.items,
            "bytes": usage.bytes,
            "perSecond": {
                "requests": hundredths(last.requests as f32 / 10.0),
                "requestUnits": hundredths(last.units / 10.0),
                "throttled": hundredths(last.throttled as f32 / 10.0),
            },
        })
    };
    let list: Vec<Value> = catalog.databases().flat_map(|database| database.containers()).map(one).collect();
    let protocols: Vec<Value> = call.server.metrics.served().map(|served| protocol(&served)).collect();
    Ok(Answer::json(json!({ "containers": list, "protocols": protocols })))
}

/// Since the server started: of all containers, and of what belongs to none.
fn protocol(served: &Served) -> Value {
    json!({ "protocol": served.protocol, "requests": served.requests, "requestUnits": served.units })
}

pub fn alerts(call: &Call<'_>) -> Result<Answer, Denial> {
    call.only(&[Method::GET])?;
    let list: Vec<Value> = call.db.alerts().iter().map(alert).collect();
    Ok(Answer::json(json!({ "alerts": list })))
}

pub fn alert(alert: &Alert) -> Value {
    let key = alert.key.as_deref().map(|key| serde_json::from_str(key).unwrap_or_else(|_| Value::from(key)));
    json!({
        "kind": alert.kind.name(),
        "database": alert.database,
        "container": alert.container,
        "partition": alert.range_id.to_string(),
        "partitionKey": key,
        "value": (alert.value * 100.0).round() / 100.0,
        "limit": alert.limit,
        "since": alert.since,
        "seen": alert.seen,
        "message": alert.message(),
    })
}
