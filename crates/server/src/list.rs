//! `orrery list`: which databases and containers there are.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::account::Account;
use crate::client::{Endpoint, on_runtime};
use crate::style::Style;

#[derive(Args)]
pub struct List {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The databases of the account.
    Databases {
        #[command(flatten)]
        manner: Manner,
    },
    /// The containers of a database, with their partition keys.
    Containers {
        #[arg(value_name = "DATABASE")]
        database: String,
        #[command(flatten)]
        manner: Manner,
    },
}

#[derive(Args)]
struct Manner {
    #[command(flatten)]
    endpoint: Endpoint,
    /// As the server tells it.
    #[arg(long)]
    json: bool,
}

pub fn run(list: List) -> anyhow::Result<()> {
    let (database, manner) = match list.what {
        What::Databases { manner } => (None, manner),
        What::Containers { database, manner } => (Some(database), manner),
    };
    let found = on_runtime(async { Account::new(manner.endpoint).list(database.as_deref()).await })?;
    if manner.json {
        println!("{}", serde_json::to_string_pretty(&found)?);
        return Ok(());
    }
    let style = Style::of(&std::io::stdout());
    found.iter().for_each(|resource| println!("{}", line(resource, style)));
    Ok(())
}

pub fn line(resource: &Value, style: Style) -> String {
    let id = resource["id"].as_str().unwrap_or_default();
    let paths = resource["partitionKey"]["paths"].as_array();
    match paths {
        None => id.to_owned(),
        Some(paths) => {
            let paths: Vec<&str> = paths.iter().filter_map(Value::as_str).collect();
            format!("{id:<30} {}", style.faint(&paths.join(", ")))
        }
    }
}
