//! `orrery throughput`: what a database or container may use, and changing it.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::Value;

use crate::client::account::{Account, Rate};
use crate::client::{Client, Endpoint, Target, container_path, encode, on_runtime};

#[derive(Args)]
pub struct Throughput {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show what is provisioned, and how it is divided over the partitions.
    Show {
        #[command(flatten)]
        of: Of,
        /// As the server tells it.
        #[arg(long)]
        json: bool,
    },
    /// Provision so many request units a second; autoscale ends.
    Set {
        #[command(flatten)]
        of: Of,
        #[arg(value_name = "RU")]
        rate: u32,
    },
    /// Let the throughput follow the use, up to so many request units a second.
    Autoscale {
        #[command(flatten)]
        of: Of,
        #[arg(value_name = "RU")]
        most: u32,
    },
}

#[derive(Args)]
struct Of {
    #[command(flatten)]
    endpoint: Endpoint,
    #[arg(value_name = "DATABASE[/CONTAINER]")]
    target: Target,
}

pub fn run(throughput: Throughput) -> anyhow::Result<()> {
    match throughput.action {
        Action::Show { of, json } => {
            let shown = on_runtime(look(of.endpoint, &of.target))?;
            println!(
                "{}",
                if json { serde_json::to_string_pretty(&shown)? } else { text(&of.target, &shown) }
            );
        }
        Action::Set { of, rate } => provision(of, Rate::Manual(rate))?,
        Action::Autoscale { of, most } => provision(of, Rate::Autoscale(most))?,
    }
    Ok(())
}

fn provision(of: Of, rate: Rate) -> anyhow::Result<()> {
    let Of { endpoint, target } = of;
    on_runtime(async {
        Account::new(endpoint.clone()).provision(&target, rate).await?;
        println!("{}", text(&target, &look(endpoint, &target).await?));
        Ok(())
    })
}

async fn look(endpoint: Endpoint, target: &Target) -> anyhow::Result<Value> {
    let path = match &target.container {
        Some(container) => format!("{}/throughput", container_path(&target.database, container)),
        None => format!("dbs/{}/throughput", encode(&target.database)),
    };
    Client::new(endpoint).manage(Method::GET, &path, None).await
}

fn text(target: &Target, shown: &Value) -> String {
    let offer = &shown["offer"];
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let mut lines = vec![match offer["kind"].as_str() {
        None => format!("{target} has no throughput of its own"),
        Some("autoscale") => format!(
            "{target}: autoscale up to {} RU/s, now {}, at least {}",
            number(&offer["throughput"]),
            number(&offer["current"]),
            number(&offer["minimum"])
        ),
        Some(_) => {
            format!("{target}: {} RU/s, at least {}", number(&offer["throughput"]), number(&offer["minimum"]))
        }
    }];
    if offer["pending"] == true {
        lines.push("partitions are being split for it; until then it is less".to_owned());
    }
    for partition in shown["physicalPartitionThroughputInfo"].as_array().into_iter().flatten() {
        let id = partition["id"].as_str().unwrap_or_default();
        lines.push(format!("  partition {id:<6} {:>10.0} RU/s", number(&partition["throughput"])));
    }
    lines.join("\n")
}
