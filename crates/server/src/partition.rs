//! `orrery partition`: lists, splits and merges the physical partitions of a container of a running server.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, Place};
use crate::style::Style;

#[derive(Args)]
pub struct Partition {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show the partitions with what they hold and use.
    List {
        #[command(flatten)]
        place: Place,
        /// As the server tells it.
        #[arg(long)]
        json: bool,
    },
    /// Split a partition; nothing is copied, and requests go on.
    Split {
        #[command(flatten)]
        place: Place,
        /// The partition to split.
        #[arg(long, value_name = "ID")]
        range: String,
        /// How many partitions to make of it.
        #[arg(long, value_name = "N", default_value_t = 2)]
        children: u32,
    },
    /// Merge two neighbours.
    Merge {
        #[command(flatten)]
        place: Place,
        /// One of the two, the one with the lower keys.
        #[arg(long, value_name = "ID")]
        left: String,
        /// The other one.
        #[arg(long, value_name = "ID")]
        right: String,
    },
}

pub fn run(partition: Partition) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = runtime.block_on(answer(partition.action))?;
    println!("{text}");
    Ok(())
}

async fn answer(action: Action) -> anyhow::Result<String> {
    match action {
        Action::List { place, json } => {
            let path = format!("{}/partitions", place.path());
            let list = Client::new(place.endpoint).manage(Method::GET, &path, None).await?;
            Ok(if json {
                serde_json::to_string_pretty(&list["partitions"])?
            } else {
                table(&list, Style::of(&std::io::stdout()))
            })
        }
        Action::Split { place, range, children } => {
            let path = format!("{}/partitions/{range}/split", place.path());
            let body = json!({ "children": children });
            let made = Client::new(place.endpoint).manage(Method::POST, &path, Some(body)).await?;
            let ids = made["children"].as_array().into_iter().flatten().filter_map(Value::as_str);
            Ok(format!("partition {range} is now {}", ids.collect::<Vec<_>>().join(", ")))
        }
        Action::Merge { place, left, right } => {
            let path = format!("{}/partitions/merge", place.path());
            let body = json!({ "left": left, "right": right });
            let made = Client::new(place.endpoint).manage(Method::POST, &path, Some(body)).await?;
            Ok(format!("partitions {left} and {right} are now {}", made["child"].as_str().unwrap_or("one")))
        }
    }
}

fn table(list: &Value, style: Style) -> String {
    let mut lines = vec![style.bold(&format!(
        "{:<6} {:<34} {:<34} {:>12} {:>16} {:>8} {:>10} {:>8}",
        "id", "from", "to", "items", "bytes", "RU/s", "of", "429/s"
    ))];
    for partition in list["partitions"].as_array().into_iter().flatten() {
        let text = |name: &str| partition[name].as_str().unwrap_or_default().to_owned();
        let rate = |name: &str| partition["use"]["perSecond"][name].as_f64().unwrap_or_default();
        let throttled = format!("{:>8.1}", rate("throttled"));
        let throttled = if rate("throttled") > 0.0 { style.error(&throttled) } else { throttled };
        lines.push(format!(
            "{:<6} {:<34} {:<34} {:>12} {:>16} {:>8.1} {:>10} {throttled}",
            text("id"),
            text("minInclusive"),
            text("maxExclusive"),
            partition["items"].as_u64().unwrap_or_default(),
            partition["bytes"].as_u64().unwrap_or_default(),
            rate("requestUnits"),
            throughput(partition["throughput"].as_f64().unwrap_or_default()),
        ));
    }
    lines.join("\n")
}

/// RU/s, or that there is no limit.
fn throughput(rate: f64) -> String {
    if rate > 0.0 { format!("{rate:.0}") } else { "any".to_owned() }
}
