//! Requests to a container by the protocol, with the retries that the protocol asks for.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::Place;
use crate::client::connect;

/// How long a server may take to answer, and how long it may be away before a transfer gives up.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
const ABSENCE_MAX: Duration = Duration::from_secs(60);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const VERSION: &str = "2020-07-15";
/// Waiting times when the server names none.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// One connection to a container, which asks one thing at a time.
pub struct Wire {
    place: Place,
    connection: Option<SendRequest<Full<Bytes>>>,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A physical partition as the server lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionRange {
    pub id: String,
    pub min_inclusive: String,
    pub max_exclusive: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What went wrong, for people.
    pub fn refusal(&self) -> anyhow::Error {
        let json: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let why = json["message"].as_str().unwrap_or("no reason given");
        anyhow::anyhow!("the server answered {}: {why}", self.status.as_u16())
    }
}

impl Wire {
    pub fn new(place: &Place) -> Wire {
        Wire { place: place.clone(), connection: None }
    }

    /// The paths of the partition key.
    pub async fn key_paths(&mut self) -> anyhow::Result<Vec<String>> {
        let reply = self.send(&Method::GET, "", "colls", &[], Bytes::new()).await?;
        if !reply.status.is_success() {
            return Err(reply.refusal());
        }
        let body: serde_json::Value = serde_json::from_slice(&reply.body)?;
        let paths =
            body["partitionKey"]["paths"].as_array().context("the container names no partition key")?;
        Ok(paths.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect())
    }

    pub async fn ranges(&mut self) -> anyhow::Result<Vec<PartitionRange>> {
        #[derive(Deserialize)]
        struct Listed {
            #[serde(rename = "PartitionKeyRanges")]
            ranges: Vec<PartitionRange>,
        }
        let reply = self.send(&Method::GET, "/pkranges", "pkranges", &[], Bytes::new()).await?;
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
            let asked = tokio::time::timeout(ANSWER_TIME_MAX, self.ask(method, below, kind, headers, &body));
            let reply = match asked.await.context("the server does not answer").and_then(|reply| reply) {
                Ok(reply) => reply,
                Err(error) => {
                    self.connection = None;
                    let since = *absent_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= ABSENCE_MAX {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
            };
            absent_since = None;
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
        let endpoint = &self.place.endpoint;
        let link = format!("dbs/{}/colls/{}", self.place.database, self.place.container);
        let date = httpdate::fmt_http_date(SystemTime::now());
        let authorization = orrery_nosql::sign_beside(&endpoint.key, method, kind, &link, &date)
            .context("the key is not one of an account")?;
        let encode = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
        let path =
            format!("/dbs/{}/colls/{}{below}", encode(&self.place.database), encode(&self.place.container));
        let host = endpoint.endpoint.authority().context("the endpoint names no host")?.as_str();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            .header("x-ms-date", date)
            .header("x-ms-version", VERSION)
            .header(AUTHORIZATION, authorization);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => connect(&endpoint.endpoint, endpoint.ca_file.as_deref()).await?,
        };
        connection.ready().await?;
        let response = connection.send_request(request.body(Full::new(body.clone()))?).await?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let Ok(body) = body else { bail!("the answer broke off") };
        self.connection = Some(connection);
        Ok(Reply { status: parts.status, headers: parts.headers, body: body.to_bytes() })
    }
}
