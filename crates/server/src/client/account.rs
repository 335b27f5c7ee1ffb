//! What commands do with an account, by the protocol, so that it may be any endpoint of it.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Ask, Client, ContainerName, Endpoint, Reply, Target, encode};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a busy server is asked again.
const BUSY_TIME_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);

pub type Headers = Vec<(&'static str, String)>;

/// Request units that are provisioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    Manual(u32),
    Autoscale(u32),
}

impl Rate {
    /// In a request that creates something.
    pub fn headers(self) -> Headers {
        match self {
            Rate::Manual(rate) => vec![("x-ms-offer-throughput", rate.to_string())],
            Rate::Autoscale(most) => {
                vec![("x-ms-cosmos-offer-autopilot-settings", json!({"maxThroughput": most}).to_string())]
            }
        }
    }

    fn content(self) -> Value {
        match self {
            Rate::Manual(rate) => json!({"offerThroughput": rate}),
            Rate::Autoscale(most) => json!({"offerAutopilotSettings": {"maxThroughput": most}}),
        }
    }
}

/// One page of an answer.
pub struct Page {
    pub reply: Reply,
    pub continuation: Option<String>,
    pub charge: f64,
}

pub struct Account {
    client: Client,
}

impl Account {
    pub fn new(endpoint: Endpoint) -> Account {
        Account { client: Client::new(endpoint) }
    }

    /// Creates what is not there; false where it is. `below` is where: nothing for databases, else a database.
    pub async fn create(
        &mut self,
        below: Option<&str>,
        body: &Value,
        rate: Option<Rate>,
    ) -> anyhow::Result<bool> {
        let (kind, link) = match below {
            None => ("dbs", String::new()),
            Some(database) => ("colls", format!("dbs/{database}")),
        };
        let headers = rate.map(Rate::headers).unwrap_or_default();
        let reply =
            self.send(&Method::POST, kind, &link, Some(kind), &headers, body.to_string().into()).await?;
        match reply.status {
            StatusCode::CONFLICT => Ok(false),
            status if status.is_success() => Ok(true),
            StatusCode::NOT_FOUND => bail!("there is no database {}", below.unwrap_or_default()),
            _ => Err(reply.refusal()),
        }
    }

    /// Creates an item; false where there is one of its id. A unique key of another item refuses it with a sub-status.
    pub async fn create_item(
        &mut self,
        to: &ContainerName,
        key: String,
        item: Bytes,
    ) -> anyhow::Result<bool> {
        let headers = vec![("x-ms-documentdb-partitionkey", key), ("prefer", "return=minimal".to_owned())];
        let reply = self.send(&Method::POST, "docs", &to.link(), Some("docs"), &headers, item).await?;
        match reply.status {
            StatusCode::CONFLICT if reply.header("x-ms-substatus").is_none() => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(reply.refusal()),
        }
    }

    pub async fn delete(&mut self, target: &Target) -> anyhow::Result<()> {
        let kind = if target.container.is_some() { "colls" } else { "dbs" };
        let reply =
            self.send(&Method::DELETE, kind, &target.link(), None, &Headers::new(), Bytes::new()).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(missing(target)),
            status if status.is_success() => Ok(()),
            _ => Err(reply.refusal()),
        }
    }

    pub async fn read(&mut self, target: &Target) -> anyhow::Result<Value> {
        let kind = if target.container.is_some() { "colls" } else { "dbs" };
        let reply =
            self.send(&Method::GET, kind, &target.link(), None, &Headers::new(), Bytes::new()).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Err(missing(target)),
            status if status.is_success() => Ok(reply.json()),
            _ => Err(reply.refusal()),
        }
    }

    /// All databases, or all containers of one.
    pub async fn list(&mut self, database: Option<&str>) -> anyhow::Result<Vec<Value>> {
        let (kind, link, name) = match database {
            None => ("dbs", String::new(), "Databases"),
            Some(database) => ("colls", format!("dbs/{database}"), "DocumentCollections"),
        };
        let (mut found, mut headers) = (Vec::new(), Headers::new());
        loop {
            let reply = self.send(&Method::GET, kind, &link, Some(kind), &headers, Bytes::new()).await?;
            if reply.status == StatusCode::NOT_FOUND {
                bail!("there is no database {}", database.unwrap_or_default());
            }
            if !reply.status.is_success() {
                return Err(reply.refusal());
            }
            let listed = reply.json();
            found.extend(listed[name].as_array().into_iter().flatten().cloned());
            match reply.header("x-ms-continuation") {
                Some(token) => headers = vec![("x-ms-continuation", token.to_owned())],
                None => return Ok(found),
            }
        }
    }

    /// A page of a query. Our server merges what several partitions answer; other endpoints ignore that wish.
    pub async fn query(
        &mut self,
        of: &ContainerName,
        query: &Value,
        further: &Headers,
        continuation: Option<&str>,
    ) -> anyhow::Result<Page> {
        let mut headers = vec![
            ("x-ms-documentdb-isquery", "True".to_owned()),
            ("content-type", "application/query+json".to_owned()),
            ("x-ms-documentdb-query-enablecrosspartition", "True".to_owned()),
            ("x-orrery-query-merge", "true".to_owned()),
        ];
        headers.extend(further.iter().cloned());
        headers.extend(continuation.map(|token| ("x-ms-continuation", token.to_owned())));
        let body = query.to_string().into();
        let reply = self.send(&Method::POST, "docs", &of.link(), Some("docs"), &headers, body).await?;
        match reply.status {
            StatusCode::NOT_FOUND => {
                let container = Some(of.container.clone());
                Err(missing(&Target { database: of.database.clone(), container }))
            }
            status if status.is_success() => Ok(Page {
                continuation: reply.header("x-ms-continuation").map(str::to_owned),
                charge: reply.header("x-ms-request-charge").and_then(|text| text.parse().ok()).unwrap_or(0.0),
                reply,
            }),
            _ => Err(reply.refusal()),
        }
    }

    /// RU/s that a database or container has of its own, with autoscale the most.
    pub async fn throughput(&mut self, target: &Target) -> anyhow::Result<Option<f64>> {
        let offer = self.offer(target).await?;
        let content = &offer["content"];
        let most = content["offerAutopilotSettings"]["maxThroughput"].as_f64();
        Ok(most.or(content["offerThroughput"].as_f64()))
    }

    /// What says how much is provisioned; null where nothing is.
    async fn offer(&mut self, target: &Target) -> anyhow::Result<Value> {
        let resource = self.read(target).await?;
        let own = resource["_self"].as_str().context("the server names no link of it")?;
        let query = json!({
            "query": "SELECT * FROM root r WHERE r.resource = @own",
            "parameters": [{"name": "@own", "value": own}],
        });
        let headers = vec![
            ("x-ms-documentdb-isquery", "True".to_owned()),
            ("content-type", "application/query+json".to_owned()),
        ];
        let reply = self
            .send(&Method::POST, "offers", "", Some("offers"), &headers, query.to_string().into())
            .await?;
        if !reply.status.is_success() {
            return Err(reply.refusal());
        }
        // Indexing to read gives null where nothing is; indexing to take would panic.
        Ok(reply.json()["Offers"][0].clone())
    }

    /// Changes what is provisioned for a database or container, from one kind of throughput to the other if need be.
    pub async fn provision(&mut self, target: &Target, rate: Rate) -> anyhow::Result<()> {
        let mut offer = self.offer(target).await?;
        let Some(rid) = offer["_rid"].as_str().map(str::to_owned) else {
            bail!("{target} has no throughput of its own");
        };
        let is_autoscale = !offer["content"]["offerAutopilotSettings"].is_null();
        let headers = match rate {
            Rate::Autoscale(_) if !is_autoscale => {
                vec![("x-ms-cosmos-migrate-offer-to-autopilot", "true".to_owned())]
            }
            Rate::Manual(_) if is_autoscale => {
                vec![("x-ms-cosmos-migrate-offer-to-manual-throughput", "true".to_owned())]
            }
            _ => Headers::new(),
        };
        if headers.is_empty() {
            offer["content"] = rate.content();
            return self.replace_offer(&rid, &headers, &offer).await;
        }
        // The service takes the change of the kind alone, and the figure with a second request.
        self.replace_offer(&rid, &headers, &offer).await?;
        offer["content"] = rate.content();
        self.replace_offer(&rid, &Headers::new(), &offer).await
    }

    async fn replace_offer(&mut self, rid: &str, headers: &Headers, offer: &Value) -> anyhow::Result<()> {
        let (path, signed) = (format!("/offers/{}", encode(rid)), rid.to_lowercase());
        let body = offer.to_string().into();
        let ask =
            Ask { method: &Method::PUT, path: &path, kind: "offers", link: &signed, headers, body: &body };
        let reply = self.patiently(&ask).await?;
        if reply.status.is_success() { Ok(()) } else { Err(reply.refusal()) }
    }

    /// Sends a request to a link, or with `feed` to what is below it.
    async fn send(
        &mut self,
        method: &Method,
        kind: &str,
        link: &str,
        feed: Option<&str>,
        headers: &Headers,
        body: Bytes,
    ) -> anyhow::Result<Reply> {
        let parts = link.split('/').filter(|part| !part.is_empty()).chain(feed);
        let path: String = parts.map(|part| format!("/{}", encode(part))).collect();
        self.patiently(&Ask { method, path: &path, kind, link, headers, body: &body }).await
    }

    /// Comes again as a busy server asks for.
    async fn patiently(&mut self, ask: &Ask<'_>) -> anyhow::Result<Reply> {
        let began = Instant::now();
        loop {
            let reply = self.client.send(ask, ANSWER_TIME_MAX).await?;
            let is_busy = matches!(reply.status.as_u16(), 408 | 429 | 449 | 503);
            if !is_busy || began.elapsed() >= BUSY_TIME_MAX {
                return Ok(reply);
            }
            let named = reply.header("x-ms-retry-after-ms").and_then(|text| text.parse().ok());
            tokio::time::sleep(named.map_or(PAUSE, Duration::from_millis)).await;
        }
    }
}

fn missing(target: &Target) -> anyhow::Error {
    let kind = if target.container.is_some() { "container" } else { "database" };
    anyhow::anyhow!("there is no {kind} {target}")
}
