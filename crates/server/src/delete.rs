//! `orrery delete`: removes databases and containers with all that is in them.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::bail;
use clap::{Args, Subcommand};

use crate::client::account::Account;
use crate::client::{ContainerName, Endpoint, Target, on_runtime};

#[derive(Args)]
pub struct Delete {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Remove a database with its containers.
    Database {
        #[arg(value_name = "DATABASE")]
        database: String,
        #[command(flatten)]
        manner: Manner,
    },
    /// Remove a container with its items.
    Container {
        #[arg(value_name = "DATABASE/CONTAINER")]
        container: ContainerName,
        #[command(flatten)]
        manner: Manner,
    },
}

#[derive(Args)]
struct Manner {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub fn run(delete: Delete) -> anyhow::Result<()> {
    let (kind, target, manner) = match delete.what {
        What::Database { database, manner } => ("database", Target { database, container: None }, manner),
        What::Container { container: ContainerName { database, container }, manner } => {
            ("container", Target { database, container: Some(container) }, manner)
        }
    };
    if !manner.yes && !confirm(&format!("delete the {kind} {target} with all that is in it?"))? {
        bail!("nothing is deleted");
    }
    on_runtime(async { Account::new(manner.endpoint).delete(&target).await })?;
    println!("{kind} {target} is deleted");
    Ok(())
}

/// Asks on a terminal; elsewhere nobody can answer.
fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("{question} Say so with --yes");
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
