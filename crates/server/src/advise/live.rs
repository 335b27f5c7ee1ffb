//! Advice on a container of an endpoint. An Orrery is asked itself, since it sees all items; of any other endpoint, and
//! with a key that only reads, a sample is taken through the public API: single items at many places of the change feed.

use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use orrery_advisor::limits::{SAMPLE_BYTES_MAX, SEED};
use orrery_advisor::{Chance, Existing, Workload, advise};
use orrery_cluster::limits::PartitionLimits;
use orrery_cluster::shares;
use serde_json::{Value, json};

use super::sampling::Walk;
use super::{Advise, render};
use crate::client::account::Account;
use crate::client::{Ask, Client, Place, Reply, Target, encode};
use crate::manage;

/// Items of a sample when nobody says how many: each is a request.
const ITEMS_DEFAULT: u32 = 2_000;
/// Physical partitions that are asked, items of a page where all are wanted, and how often a busy server is asked again.
const RANGES_MAX: usize = 1_000;
const PAGE_ITEMS: usize = 1_000;
const TRIES_MAX: usize = 20;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// The header that names a partition.
const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";

/// The report as text.
pub async fn answer(asked: &Advise, mut workload: Workload, place: &Place) -> anyhow::Result<String> {
    let mut client = Client::new(place.endpoint.clone());
    if is_orrery(&mut client).await?
        && let Some(report) = ask(&mut client, asked, &workload, place).await?
    {
        return Ok(report);
    }
    let mut source = Source::new(client, place);
    let found = source.sample(asked.sample.unwrap_or(ITEMS_DEFAULT) as usize).await?;
    let target = Target { database: place.database.clone(), container: Some(place.container.clone()) };
    let throughput = Account::new(place.endpoint.clone()).throughput(&target).await?;
    let existing = Existing { items: found.stored, partitions: found.partitions as u32, throughput };
    existing.complete(&mut workload, &PartitionLimits::default());
    let report = advise(&workload, &found.items, &asked.settings())?;
    render(&report, asked.format)
}

/// Whether the endpoint has a management API.
async fn is_orrery(client: &mut Client) -> anyhow::Result<bool> {
    let path = format!("{}server", manage::PREFIX);
    let (status, body) = client.ask(&Method::GET, &path, Bytes::new()).await?;
    let about: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(status.is_success() && about.is_object())
}

/// The server's own report; none where our key may only read.
async fn ask(
    client: &mut Client,
    asked: &Advise,
    workload: &Workload,
    place: &Place,
) -> anyhow::Result<Option<String>> {
    let mut question =
        json!({ "workload": workload, "candidates": asked.candidates, "format": asked.format });
    if let Some(sample) = asked.sample {
        question["sample"] = sample.into();
    }
    if let Some(partitions) = asked.partitions {
        question["partitions"] = partitions.into();
    }
    let path = format!("{}{}/advice", manage::PREFIX, place.path());
    let (status, body) = client.ask(&Method::POST, &path, question.to_string().into()).await?;
    if status == StatusCode::FORBIDDEN {
        return Ok(None);
    }
    if status.is_success() {
        return String::from_utf8(body.to_vec()).map(Some).context("the report is no text");
    }
    let refusal: Value = serde_json::from_slice(&body).unwrap_or_default();
    let why = refusal["message"].as_str().unwrap_or("no reason given");
    bail!("the server answered {}: {why}", status.as_u16())
}

/// What can be learned of a container through the public API.
struct Found {
    items: Vec<Value>,
    stored: u64,
    partitions: usize,
}

struct Source {
    client: Client,
    name: String,
    link: String,
    path: String,
}

impl Source {
    fn new(client: Client, place: &Place) -> Source {
        let (database, container) = (&place.database, &place.container);
        Source {
            client,
            name: place.name(),
            link: format!("dbs/{database}/colls/{container}"),
            path: format!("/dbs/{}/colls/{}", encode(database), encode(container)),
        }
    }

    async fn sample(&mut self, wanted: usize) -> anyhow::Result<Found> {
        let ranges = self.ranges().await?;
        let mut counts = Vec::with_capacity(ranges.len());
        for range in &ranges {
            counts.push(self.count(range).await?);
        }
        let mut chance = Chance::new(SEED);
        let mut items = Vec::new();
        for ((range, count), share) in ranges.iter().zip(&counts).zip(shares(&counts, wanted)) {
            let last = lsn_of(self.changes(range, "*", 1).await?.1).unwrap_or(0);
            // Each partition has its part of the bytes too, so that none is left out.
            let bytes_max = SAMPLE_BYTES_MAX / wanted.max(1) * share;
            let found = match share as u64 >= *count {
                true => self.all_of(range, last, bytes_max).await?,
                false => self.some_of(range, Walk::over(last, share, &mut chance), bytes_max).await?,
            };
            items.extend(found);
        }
        if items.is_empty() {
            bail!("{} has no items", self.name);
        }
        Ok(Found { items, stored: counts.iter().sum(), partitions: ranges.len() })
    }

    /// The items of a partition from its beginning to its end.
    async fn all_of(&mut self, range: &str, last: u64, bytes_max: usize) -> anyhow::Result<Vec<Value>> {
        let (mut items, mut bytes, mut reached) = (Vec::new(), 0, 0);
        while reached < last && bytes < bytes_max {
            let (found, at) = self.changes(range, &behind(reached), PAGE_ITEMS).await?;
            reached = lsn_of(at).filter(|at| *at > reached).unwrap_or(last);
            bytes += found.iter().map(length).sum::<usize>();
            items.extend(found);
        }
        Ok(items)
    }

    /// One item at each place of a walk.
    async fn some_of(
        &mut self,
        range: &str,
        mut walk: Walk<'_>,
        bytes_max: usize,
    ) -> anyhow::Result<Vec<Value>> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while let Some(after) = walk.next_place().filter(|_| bytes < bytes_max) {
            let (found, at) = self.changes(range, &behind(after), 1).await?;
            walk.came_to(lsn_of(at).unwrap_or(after + 1));
            // Those that were written together come together.
            let item = found.into_iter().next();
            bytes += item.iter().map(length).sum::<usize>();
            items.extend(item);
        }
        Ok(items)
    }

    async fn ranges(&mut self) -> anyhow::Result<Vec<String>> {
        let reply = self.send(&Method::GET, "pkranges", &[], Bytes::new()).await?;
        let body = reply.json();
        let ranges = body["PartitionKeyRanges"].as_array().context("the answer names no partitions")?;
        let ids = ranges.iter().filter_map(|range| range["id"].as_str().map(str::to_owned));
        let ids: Vec<String> = ids.take(RANGES_MAX).collect();
        if ids.is_empty() { bail!("the container has no partitions") } else { Ok(ids) }
    }

    /// Items of a partition.
    async fn count(&mut self, range: &str) -> anyhow::Result<u64> {
        let query = json!({ "query": "SELECT VALUE COUNT(1) FROM c", "parameters": [] }).to_string();
        let (mut sum, mut continuation) = (0, None);
        loop {
            let mut headers = vec![
                ("x-ms-documentdb-isquery", "True".to_owned()),
                ("x-ms-documentdb-query-enablecrosspartition", "True".to_owned()),
                ("content-type", "application/query+json".to_owned()),
                (RANGE, range.to_owned()),
            ];
            headers.extend(continuation.map(|at| ("x-ms-continuation", at)));
            let reply = self.send(&Method::POST, "docs", &headers, query.clone().into()).await?;
            let body = reply.json();
            let counts = body["Documents"].as_array().into_iter().flatten();
            sum += counts.filter_map(Value::as_u64).sum::<u64>();
            continuation = reply.header("x-ms-continuation").map(str::to_owned);
            if continuation.is_none() {
                return Ok(sum);
            }
        }
    }

    /// Some changes behind a place, and the place that was reached.
    async fn changes(
        &mut self,
        range: &str,
        after: &str,
        count: usize,
    ) -> anyhow::Result<(Vec<Value>, Option<String>)> {
        let mut headers = vec![
            ("a-im", "Incremental feed".to_owned()),
            ("x-ms-max-item-count", count.to_string()),
            (RANGE, range.to_owned()),
        ];
        if !after.is_empty() {
            headers.push(("if-none-match", after.to_owned()));
        }
        let reply = self.send(&Method::GET, "docs", &headers, Bytes::new()).await?;
        let items = match reply.json()["Documents"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        Ok((items, reply.header("etag").map(str::to_owned)))
    }

    async fn send(
        &mut self,
        method: &Method,
        kind: &str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> anyhow::Result<Reply> {
        let path = format!("{}/{kind}", self.path);
        let ask = Ask { method, path: &path, kind, link: &self.link, headers, body: &body };
        for _ in 0..TRIES_MAX {
            let reply = self.client.send(&ask, ANSWER_TIME_MAX).await?;
            if reply.status == StatusCode::TOO_MANY_REQUESTS {
                let wait =
                    reply.header("x-ms-retry-after-ms").and_then(|wait| wait.parse().ok()).unwrap_or(100);
                tokio::time::sleep(Duration::from_millis(u64::min(wait, 5_000))).await;
                continue;
            }
            if !reply.status.is_success() && reply.status != StatusCode::NOT_MODIFIED {
                return Err(reply.refusal());
            }
            return Ok(reply);
        }
        bail!("the server is too busy to give a sample")
    }
}

/// The place behind an LSN, as a request names it.
fn behind(lsn: u64) -> String {
    if lsn == 0 { String::new() } else { format!("\"{lsn}\"") }
}

fn length(item: &Value) -> usize {
    item.to_string().len()
}

/// The LSN that the etag of a page names.
fn lsn_of(etag: Option<String>) -> Option<u64> {
    etag?.trim_start_matches("W/").trim_matches('"').parse().ok()
}
