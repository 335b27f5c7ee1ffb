//! Requests to a container by the protocol, with the retries that the protocol asks for.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;

use super::Place;
use super::items::KeyPaths;
use crate::client::{Ask, Client, Reply, container_path};

/// How long a server may take to answer, and how long it may be away before a transfer gives up.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
const ABSENCE_MAX: Duration = Duration::from_secs(60);
/// Waiting times when the server names none.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// One connection to a container, which asks one thing at a time.
pub struct Wire {
    place: Place,
    client: Client,
    /// Whether the server has answered before. One that never did is not waited for: its name, port or certificate may be wrong.
    is_known: bool,
}

/// A physical partition as the server lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionRange {
    pub id: String,
    pub min_inclusive: String,
    pub max_exclusive: String,
}

impl Wire {
    pub fn new(place: &Place) -> Wire {
        Wire { place: place.clone(), client: Client::new(place.endpoint.clone()), is_known: false }
    }

    /// To a server that has answered on another connection.
    pub fn to_known(place: &Place) -> Wire {
        Wire { is_known: true, ..Wire::new(place) }
    }

    /// The paths of the partition key.
    pub async fn key_paths(&mut self) -> anyhow::Result<KeyPaths> {
        let reply = self.send(&Method::GET, "", "colls", &[], Bytes::new()).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Err(self.place.is_missing());
        }
        if !reply.status.is_success() {
            return Err(reply.refusal());
        }
        let body: serde_json::Value = serde_json::from_slice(&reply.body)?;
        KeyPaths::of(&body["partitionKey"])
    }

    pub async fn ranges(&mut self) -> anyhow::Result<Vec<PartitionRange>> {
        #[derive(Deserialize)]
        struct Listed {
            #[serde(rename = "PartitionKeyRanges")]
            ranges: Vec<PartitionRange>,
        }
        let reply = self.send(&Method::GET, "/pkranges", "pkranges", &[], Bytes::new()).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Err(self.place.is_missing());
        }
        if !reply.status.is_success() {
            return Err(reply.refusal());
        }
        let mut listed: Listed = serde_json::from_slice(&reply.body)?;
        listed.ranges.sort_by(|a, b| a.min_inclusive.cmp(&b.min_inclusive));
        Ok(listed.ranges)
    }

    /// How many items there are, if the server says so.
    pub async fn count(&mut self) -> Option<u64> {
        let quota = [("x-ms-documentdb-populatequotainfo", String::from("true"))];
        let reply = self.send(&Method::GET, "", "colls", &quota, Bytes::new()).await.ok()?;
        let usage = reply.header("x-ms-resource-usage")?;
        let count = usage.split(';').find_map(|part| part.strip_prefix("documentsCount="))?;
        count.parse().ok()
    }

    /// Sends a request that may be repeated. Waits and repeats as the server asks; any other answer is the caller's.
    pub async fn send(
        &mut self,
        method: &Method,
        below: &str,
        kind: &str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> anyhow::Result<Reply> {
        let (mut pause, mut absent_since) = (PAUSE_FIRST, None);
        loop {
            let reply = match self.ask(method, below, kind, headers, &body).await {
                Ok(reply) => reply,
                Err(error) => {
                    let since = *absent_since.get_or_insert_with(Instant::now);
                    if !self.is_known || since.elapsed() >= ABSENCE_MAX {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
            };
            (absent_since, self.is_known) = (None, true);
            match reply.status.as_u16() {
                // Too fast, a conflict that passes, or nobody there for the moment.
                408 | 429 | 449 | 503 => {
                    let named = reply.header("x-ms-retry-after-ms").and_then(|text| text.parse().ok());
                    let wait = named.map_or(pause, Duration::from_millis);
                    pause = (pause * 2).min(PAUSE_MAX);
                    tokio::time::sleep(wait).await;
                }
                _ => return Ok(reply),
            }
        }
    }

    async fn ask(
        &mut self,
        method: &Method,
        below: &str,
        kind: &str,
        headers: &[(&'static str, String)],
        body: &Bytes,
    ) -> anyhow::Result<Reply> {
        let (database, container) = (&self.place.database, &self.place.container);
        let link = format!("dbs/{database}/colls/{container}");
        let path = format!("/{}{below}", container_path(database, container));
        let ask = Ask { method, path: &path, kind, link: &link, headers, body };
        self.client.send(&ask, ANSWER_TIME_MAX).await
    }
}
