//! A client that does nothing wrong, beside those that do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use orrery_testkit::Client;
use serde_json::json;

use crate::site;

/// How often what was throttled is sent again, as the SDKs do.
const RETRIES: u32 = 9;

#[derive(Default)]
pub struct Report {
    pub requests: u64,
    pub retried: u64,
    pub errors: Vec<String>,
    micros: Vec<u64>,
}

impl Report {
    /// The time, in milliseconds, that this part of the requests took at most.
    pub fn percentile_ms(&mut self, part: f64) -> f64 {
        self.micros.sort_unstable();
        let place = (self.micros.len() as f64 * part) as usize;
        self.micros
            .get(place.min(self.micros.len().saturating_sub(1)))
            .map_or(0.0, |micros| *micros as f64 / 1000.0)
    }
}

/// Creates, reads and queries small items until it is told to stop.
pub fn run(port: u16, stop: &AtomicBool) -> Report {
    let (mut client, mut report) = (Client::new(port), Report::default());
    let mut round = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let id = (round % 1_000).to_string();
        let key = json!([id]).to_string();
        let item = json!({"id": id, "key": id, "round": round, "text": "x".repeat(1_000)}).to_string();
        let path = site::docs("healthy");
        let upsert = [(site::KEY, key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
        ask(&mut client, &mut report, "POST", &path, &upsert, &item);
        ask(&mut client, &mut report, "GET", &format!("{path}/{id}"), &[(site::KEY, key.as_str())], "");
        let query = json!({"query": format!("SELECT * FROM c WHERE c.id = '{id}'")}).to_string();
        let headers = [
            (site::KEY, key.as_str()),
            ("x-ms-documentdb-isquery", "true"),
            ("content-type", "application/query+json"),
        ];
        ask(&mut client, &mut report, "POST", &path, &headers, &query);
        round += 1;
        thread::sleep(Duration::from_millis(5));
    }
    report
}

fn ask(
    client: &mut Client,
    report: &mut Report,
    verb: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) {
    let began = Instant::now();
    let mut last = String::new();
    report.requests += 1;
    for _ in 0..=RETRIES {
        match client.send(verb, path, headers, body.as_bytes()) {
            Ok(reply) if (200..300).contains(&reply.status) => {
                report.micros.push(began.elapsed().as_micros() as u64);
                return;
            }
            Ok(reply) if reply.status == 429 => {
                last = format!("429/{}", reply.sub_status());
                report.retried += 1;
                let wait = reply.header("x-ms-retry-after-ms").and_then(|wait| wait.parse().ok());
                thread::sleep(Duration::from_millis(wait.unwrap_or(100)));
            }
            Ok(reply) => {
                last = format!("{}/{}", reply.status, reply.sub_status());
                break;
            }
            Err(error) => {
                last = error.to_string();
                break;
            }
        }
    }
    report.errors.push(format!("{verb} {path}: {last}"));
}
