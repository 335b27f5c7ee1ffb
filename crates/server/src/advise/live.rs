//! A sample of a container of any endpoint, through the public API: a few items at many places of its change feed.

use anyhow::{Context, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, ETAG, HOST, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use orrery_advisor::limits::SAMPLE_BYTES_MAX;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::time::{Duration, SystemTime};

use super::sampling;
use crate::client::{Endpoint, connect};

/// Bytes of an answer, physical partitions that are asked, and how often a busy server is asked again.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const RANGES_MAX: usize = 1_000;
const TRIES_MAX: usize = 20;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

const RANGE: HeaderName = HeaderName::from_static("x-ms-documentdb-partitionkeyrangeid");
const COUNT: HeaderName = HeaderName::from_static("x-ms-max-item-count");
const A_IM: HeaderName = HeaderName::from_static("a-im");

pub async fn sample(
    endpoint: &Endpoint,
    database: &str,
    container: &str,
    wanted: usize,
) -> anyhow::Result<Vec<Value>> {
    let mut source = Source {
        endpoint,
        link: format!("dbs/{database}/colls/{container}"),
        path: format!("/dbs/{}/colls/{}", encode(database), encode(container)),
        connection: connect(&endpoint.endpoint, endpoint.ca_file.as_deref()).await?,
    };
    let ranges = source.ranges().await?;
    let each = wanted.div_ceil(ranges.len());
    let (mut items, mut bytes) = (Vec::new(), 0);
    for range in ranges {
        let now = source.changes(&range, "*", 1).await?.1;
        let mut walk = sampling::Walk::over(lsn_of(now).unwrap_or(0), each);
        while let Some(after) = walk.next_place() {
            let after = if after == 0 { String::new() } else { format!("\"{after}\"") };
            let (found, reached) = source.changes(&range, &after, each.min(sampling::PAGE_ITEMS)).await?;
            walk.came_to(lsn_of(reached).unwrap_or(0));
            for item in found {
                bytes += item.to_string().len();
                if bytes > SAMPLE_BYTES_MAX || items.len() == wanted {
                    return Ok(items);
                }
                items.push(item);
            }
        }
    }
    if items.is_empty() {
        bail!("{database}/{container} has no items");
    }
    Ok(items)
}

/// The LSN that the etag of a page names.
fn lsn_of(etag: Option<String>) -> Option<u64> {
    etag.and_then(|etag| etag.trim_matches('"').parse().ok())
}

struct Source<'a> {
    endpoint: &'a Endpoint,
    link: String,
    path: String,
    connection: SendRequest<Full<Bytes>>,
}

impl Source<'_> {
    async fn ranges(&mut self) -> anyhow::Result<Vec<String>> {
        let (_, _, body) = self.get("pkranges", &[]).await?;
        let ranges = body["PartitionKeyRanges"].as_array().context("the answer names no partitions")?;
        let ids = ranges.iter().filter_map(|range| range["id"].as_str().map(str::to_owned));
        let ids: Vec<String> = ids.take(RANGES_MAX).collect();
        if ids.is_empty() { bail!("the container has no partitions") } else { Ok(ids) }
    }

    /// Some changes behind a place, and the place that was reached.
    async fn changes(
        &mut self,
        range: &str,
        after: &str,
        count: usize,
    ) -> anyhow::Result<(Vec<Value>, Option<String>)> {
        let mut headers = vec![
            (A_IM, HeaderValue::from_static("Incremental feed")),
            (COUNT, HeaderValue::from(count)),
            (RANGE, HeaderValue::from_str(range)?),
        ];
        if !after.is_empty() {
            headers.push((IF_NONE_MATCH, HeaderValue::from_str(after)?));
        }
        let (_, etag, mut body) = self.get("docs", &headers).await?;
        let items = match body["Documents"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        Ok((items, etag))
    }

    async fn get(
        &mut self,
        kind: &str,
        headers: &[(HeaderName, HeaderValue)],
    ) -> anyhow::Result<(StatusCode, Option<String>, Value)> {
        for _ in 0..TRIES_MAX {
            let response = tokio::time::timeout(ANSWER_TIME_MAX, self.send(kind, headers)).await;
            let response = response.context("the server does not answer")??;
            let status = response.status();
            let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
            if status == StatusCode::TOO_MANY_REQUESTS {
                let wait = response.headers().get("x-ms-retry-after-ms").and_then(|wait| wait.to_str().ok());
                let wait = wait.and_then(|wait| wait.parse().ok()).unwrap_or(100);
                body_of(response).await?;
                tokio::time::sleep(Duration::from_millis(u64::min(wait, 5_000))).await;
                continue;
            }
            let body = body_of(response).await?;
            if !status.is_success() && status != StatusCode::NOT_MODIFIED {
                let why = body["message"].as_str().unwrap_or("no reason given");
                bail!("the server answered {}: {why}", status.as_u16());
            }
            return Ok((status, etag, body));
        }
        bail!("the server is too busy to give a sample")
    }

    async fn send(
        &mut self,
        kind: &str,
        headers: &[(HeaderName, HeaderValue)],
    ) -> anyhow::Result<Response<hyper::body::Incoming>> {
        let endpoint = &self.endpoint.endpoint;
        let date = httpdate::fmt_http_date(SystemTime::now());
        let signature = orrery_nosql::sign_beside(&self.endpoint.key, &Method::GET, kind, &self.link, &date)
            .context("the key is not one of an account")?;
        let mut request = Request::builder()
            .uri(format!("{}/{kind}", self.path))
            .header(HOST, endpoint.authority().context("the endpoint names no host")?.as_str())
            .header("x-ms-date", date)
            .header("x-ms-version", "2018-12-31")
            .header(AUTHORIZATION, signature);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if self.connection.is_closed() {
            self.connection = connect(endpoint, self.endpoint.ca_file.as_deref()).await?;
        }
        self.connection.ready().await?;
        Ok(self.connection.send_request(request.body(Full::default())?).await?)
    }
}

async fn body_of(response: Response<hyper::body::Incoming>) -> anyhow::Result<Value> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?.to_bytes();
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

fn encode(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}
