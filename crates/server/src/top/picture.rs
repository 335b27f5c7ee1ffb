//! What the server told at one moment.

use http::Method;
use serde_json::Value;

use crate::client::{Client, container_path};

/// How far back the heat map and the hottest keys look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    Minute,
    Hour,
}

impl Span {
    pub fn other(self) -> Span {
        match self {
            Span::Minute => Span::Hour,
            Span::Hour => Span::Minute,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Span::Minute => "minute",
            Span::Hour => "hour",
        }
    }
}

#[derive(Default)]
pub struct Picture {
    /// All containers, the busiest first.
    pub containers: Vec<(String, String)>,
    pub database: String,
    pub container: String,
    pub whole: Rates,
    pub partitions: Vec<Partition>,
    pub keys: Vec<Key>,
    pub heat: Vec<Heat>,
    pub alerts: Vec<String>,
    /// Requests by protocol since the server started.
    pub protocols: Vec<(String, f64)>,
    /// Why there is nothing newer.
    pub error: Option<String>,
}

/// Averages of the last ten seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub requests: f64,
    pub units: f64,
    pub throttled: f64,
}

pub struct Partition {
    pub id: String,
    pub share: (f64, f64),
    pub items: u64,
    pub bytes: u64,
    pub throughput: f64,
    pub rates: Rates,
}

pub struct Key {
    pub partition: String,
    pub key: String,
    pub units: f64,
    pub requests: f64,
    pub throttled: f64,
}

/// The rows of one partition: where they lie in the key space, and a value for each slot of time.
pub struct Heat {
    pub id: String,
    pub share: (f64, f64),
    pub rows: Vec<Vec<f64>>,
    pub slot_seconds: f64,
}

/// Asks for everything that a frame shows.
pub async fn take(
    client: &mut Client,
    chosen: Option<&(String, String)>,
    span: Span,
) -> anyhow::Result<Picture> {
    let overview = client.manage(Method::GET, "containers", None).await?;
    let containers = by_business(&overview);
    let Some((database, container)) = chosen.or(containers.first()).cloned() else {
        return Ok(Picture { error: Some("this server has no containers".to_owned()), ..Picture::default() });
    };
    let path = container_path(&database, &container);
    let window = span.name();
    let partitions = client.manage(Method::GET, &format!("{path}/partitions"), None).await?;
    let keys = client.manage(Method::GET, &format!("{path}/keys?window={window}"), None).await?;
    let heat = client.manage(Method::GET, &format!("{path}/heat?window={window}"), None).await?;
    let alerts = client.manage(Method::GET, "alerts", None).await?;
    Ok(Picture {
        containers,
        database,
        container,
        whole: rates(&partitions["whole"]["perSecond"]),
        partitions: list(&partitions["partitions"]).map(partition).collect(),
        keys: list(&keys["hottest"]).map(key).collect(),
        heat: list(&heat["partitions"]).map(|one| heat_of(one, number(&heat["slotSeconds"]))).collect(),
        alerts: list(&alerts["alerts"]).map(|alert| text(&alert["message"])).collect(),
        protocols: list(&overview["protocols"]).map(protocol).collect(),
        error: None,
    })
}

fn protocol(value: &Value) -> (String, f64) {
    (text(&value["protocol"]), number(&value["requests"]))
}

fn by_business(overview: &Value) -> Vec<(String, String)> {
    let mut containers: Vec<&Value> = list(&overview["containers"]).collect();
    let units = |one: &Value| number(&one["perSecond"]["requestUnits"]);
    containers.sort_by(|a, b| units(b).total_cmp(&units(a)));
    containers.into_iter().map(|one| (text(&one["database"]), text(&one["container"]))).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn share(value: &Value) -> (f64, f64) {
    (number(&value["from"]), number(&value["to"]))
}

fn rates(value: &Value) -> Rates {
    Rates {
        requests: number(&value["requests"]),
        units: number(&value["requestUnits"]),
        throttled: number(&value["throttled"]),
    }
}

fn partition(value: &Value) -> Partition {
    Partition {
        id: text(&value["id"]),
        share: share(value),
        items: value["items"].as_u64().unwrap_or_default(),
        bytes: value["bytes"].as_u64().unwrap_or_default(),
        throughput: number(&value["throughput"]),
        rates: rates(&value["use"]["perSecond"]),
    }
}

fn key(value: &Value) -> Key {
    let key = match &value["partitionKey"] {
        Value::Array(components) => components.iter().map(component).collect::<Vec<_>>().join(" / "),
        other => component(other),
    };
    Key {
        partition: text(&value["partition"]),
        key,
        units: number(&value["requestUnits"]),
        requests: number(&value["requests"]),
        throttled: number(&value["throttled"]),
    }
}

/// A component of a key for a screen: nothing in it may move the cursor.
fn component(value: &Value) -> String {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    shown.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}

fn heat_of(value: &Value, slot_seconds: f64) -> Heat {
    let rows = list(&value["requestUnits"]).map(|row| list(row).map(number).collect()).collect();
    Heat { id: text(&value["id"]), share: share(value), rows, slot_seconds: slot_seconds.max(1.0) }
}
