//! `orrery create`: makes databases and containers.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use crate::client::account::{Account, Rate};
use crate::client::{ContainerName, Endpoint, on_runtime};
use crate::config::read_text;

#[derive(Args)]
pub struct Create {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Make a database.
    Database {
        #[command(flatten)]
        endpoint: Endpoint,
        #[arg(value_name = "DATABASE")]
        database: String,
        #[command(flatten)]
        provisioned: Provisioned,
        /// Be content with one that is there.
        #[arg(long)]
        if_missing: bool,
    },
    /// Make a container.
    Container(Container),
}

#[derive(Args)]
struct Container {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(value_name = "DATABASE/CONTAINER")]
    container: ContainerName,
    /// A path of the partition key, such as `/customer`; several make it hierarchical.
    #[arg(long = "key-path", required = true, value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    provisioned: Provisioned,
    /// Seconds after which items expire; -1 lets only those expire that say so themselves.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    default_ttl: Option<i32>,
    /// Paths whose values are unique together in a logical partition, such as `/mail` or `/first,/last`.
    #[arg(long = "unique-key", value_name = "PATHS")]
    unique_keys: Vec<String>,
    /// A file with the indexing policy, as JSON.
    #[arg(long, value_name = "FILE")]
    indexing_policy: Option<PathBuf>,
    /// Be content with one that is there.
    #[arg(long)]
    if_missing: bool,
}

/// What it may use, in request units a second.
#[derive(Args)]
#[command(group = ArgGroup::new("provisioned").multiple(false))]
struct Provisioned {
    /// Request units a second, provisioned.
    #[arg(long, value_name = "RU", group = "provisioned")]
    throughput: Option<u32>,
    /// Request units a second at most, with autoscale.
    #[arg(long, value_name = "RU", group = "provisioned")]
    autoscale: Option<u32>,
}

impl Provisioned {
    fn rate(&self) -> Option<Rate> {
        self.throughput.map(Rate::Manual).or(self.autoscale.map(Rate::Autoscale))
    }
}

pub fn run(create: Create) -> anyhow::Result<()> {
    match create.what {
        What::Database { endpoint, database, provisioned, if_missing } => {
            let made = on_runtime(async {
                Account::new(endpoint).create(None, &json!({"id": database}), provisioned.rate()).await
            })?;
            report(made, if_missing, &format!("database {database}"))
        }
        What::Container(container) => {
            let body = container.body()?;
            let (name, rate, if_missing) =
                (container.container, container.provisioned.rate(), container.if_missing);
            let made = on_runtime(async {
                Account::new(container.endpoint).create(Some(&name.database), &body, rate).await
            })?;
            report(made, if_missing, &format!("container {name}"))
        }
    }
}

fn report(is_new: bool, if_missing: bool, what: &str) -> anyhow::Result<()> {
    match (is_new, if_missing) {
        (true, _) => println!("{what} is made"),
        (false, true) => println!("{what} is there already"),
        (false, false) => bail!("{what} is there already"),
    }
    Ok(())
}

impl Container {
    fn body(&self) -> anyhow::Result<Value> {
        let mut body = json!({"id": self.container.container, "partitionKey": partition_key(&self.paths)});
        if let Some(seconds) = self.default_ttl {
            body["defaultTtl"] = seconds.into();
        }
        if !self.unique_keys.is_empty() {
            let keys: Vec<Value> = self
                .unique_keys
                .iter()
                .map(|paths| json!({"paths": paths.split(',').collect::<Vec<_>>()}))
                .collect();
            body["uniqueKeyPolicy"] = json!({"uniqueKeys": keys});
        }
        if let Some(file) = &self.indexing_policy {
            let policy = serde_json::from_str(&read_text(file)?);
            body["indexingPolicy"] = policy.with_context(|| format!("{} is not JSON", file.display()))?;
        }
        Ok(body)
    }
}

/// A partition key over these paths.
pub fn partition_key(paths: &[String]) -> Value {
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    json!({"paths": paths, "kind": kind, "version": 2})
}
