//! The metrics page as OTLP.
//!
//! There is one list of metrics, the page that Prometheus reads. What a collector gets is read from it, so that the two can never
//! differ; a page has a few hundred lines, and this is done twice a minute.

use std::time::Duration;

use serde::Serialize;

use super::message::{Resource, SCOPE, Scope, as_text};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metrics<'a> {
    resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    resource: &'a Resource<'a>,
    scope_metrics: [ScopeMetrics<'a>; 1],
}

#[derive(Serialize)]
struct ScopeMetrics<'a> {
    scope: Scope,
    metrics: Vec<Metric<'a>>,
}

#[derive(Serialize)]
struct Metric<'a> {
    name: &'a str,
    description: &'a str,
    unit: &'static str,
    #[serde(flatten)]
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Data<'a> {
    #[serde(rename_all = "camelCase")]
    Sum { data_points: Vec<Point<'a>>, aggregation_temporality: u8, is_monotonic: bool },
    #[serde(rename_all = "camelCase")]
    Gauge { data_points: Vec<Point<'a>> },
}

/// Counters tell what came together since the server started.
const CUMULATIVE: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Point<'a> {
    attributes: Vec<Label<'a>>,
    #[serde(serialize_with = "as_text")]
    start_time_unix_nano: u128,
    #[serde(serialize_with = "as_text")]
    time_unix_nano: u128,
    as_double: f64,
}

/// Names of containers are unescaped, so they are owned.
#[derive(Serialize)]
struct Label<'a> {
    key: &'a str,
    value: Owned,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Owned {
    string_value: String,
}

/// The body of a request to the collector. Both times are since the epoch.
pub fn metrics(page: &str, resource: &Resource<'_>, started: Duration, now: Duration) -> Vec<u8> {
    let scopes = [ScopeMetrics { scope: SCOPE, metrics: read(page, started, now) }];
    let whole = Metrics { resource_metrics: [ResourceMetrics { resource, scope_metrics: scopes }] };
    serde_json::to_vec(&whole).expect("texts and numbers are JSON")
}

fn read(page: &str, started: Duration, now: Duration) -> Vec<Metric<'_>> {
    let mut found: Vec<Metric<'_>> = Vec::new();
    let mut help = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let data = match kind {
                "counter" => Data::Sum {
                    data_points: Vec::new(),
                    aggregation_temporality: CUMULATIVE,
                    is_monotonic: true,
                },
                _ => Data::Gauge { data_points: Vec::new() },
            };
            found.push(Metric { name, description: help, unit: unit(name), data });
        } else if let (Some(metric), Some(point)) = (found.last_mut(), point(line, started, now)) {
            let (Data::Sum { data_points, .. } | Data::Gauge { data_points }) = &mut metric.data;
            data_points.push(point);
        }
    }
    found
}

fn point(line: &str, started: Duration, now: Duration) -> Option<Point<'_>> {
    // The last blank, since labels may have others.
    let (series, value) = line.rsplit_once(' ')?;
    let labels = series.split_once('{').map_or("", |(_, labels)| labels.strip_suffix('}').unwrap_or(labels));
    Some(Point {
        attributes: labels_of(labels),
        start_time_unix_nano: started.as_nanos(),
        time_unix_nano: now.as_nanos(),
        as_double: value.parse().ok()?,
    })
}

/// Reads `name="value",…`; a value may hold anything, some of it escaped.
fn labels_of(mut text: &str) -> Vec<Label<'_>> {
    let mut labels = Vec::new();
    while let Some((key, rest)) = text.split_once("=\"") {
        let (mut value, mut end, mut is_escaped) = (String::new(), rest.len(), false);
        for (at, c) in rest.char_indices() {
            match c {
                'n' if is_escaped => value.push('\n'),
                _ if is_escaped => value.push(c),
                '\\' => {}
                '"' => {
                    end = at + 1;
                    break;
                }
                _ => value.push(c),
            }
            is_escaped = c == '\\' && !is_escaped;
        }
        labels.push(Label { key: key.trim_start_matches(','), value: Owned { string_value: value } });
        text = &rest[end..];
    }
    labels
}

/// As UCUM writes it.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name {
        _ if name.ends_with("_bytes") => "By",
        _ if name.ends_with("_microseconds") => "us",
        _ if name.ends_with("_seconds") => "s",
        _ => "1",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_page_is_read_with_labels_of_any_text() {
        let page = "\
# HELP orrery_requests_total Requests answered.
# TYPE orrery_requests_total counter
orrery_requests_total{protocol=\"http\",class=\"2xx\"} 17
# HELP orrery_partition_bytes Bytes held.
# TYPE orrery_partition_bytes gauge
orrery_partition_bytes{database=\"a \\\"b\\\", c=\\\\\",container=\"x\\ny}\",range=\"0\"} 2.5
orrery_partition_bytes 3
";
        let started = Duration::from_secs(1);
        let body = metrics(page, &Resource { attributes: Vec::new() }, started, Duration::from_secs(2));
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let read = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let label = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let point = |labels: Vec<Value>, value: f64| json!({"attributes": labels, "startTimeUnixNano": "1000000000", "timeUnixNano": "2000000000", "asDouble": value});
        let counted = point(vec![label("protocol", "http"), label("class", "2xx")], 17.0);
        assert_eq!(
            read[0],
            json!({"name": "orrery_requests_total", "description": "Requests answered.", "unit": "1",
                "sum": {"dataPoints": [counted], "aggregationTemporality": 2, "isMonotonic": true}})
        );
        let labels =
            vec![label("database", "a \"b\", c=\\"), label("container", "x\ny}"), label("range", "0")];
        assert_eq!(read[1]["gauge"]["dataPoints"], json!([point(labels, 2.5), point(vec![], 3.0)]));
        assert_eq!(read[1]["unit"], "By");
    }
}
