//! `orrery job` and `orrery rekey`: copies containers of a running server, and gives them another partition key.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::client::{Client, ContainerName, Endpoint, on_runtime};
use crate::style::Style;

/// Between two looks at a job that the operator watches.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The progress bar has tenths of a percent.
const BAR_LENGTH: u64 = 1_000;

#[derive(Args)]
pub struct Job {
    #[command(flatten)]
    endpoint: Endpoint,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Copy a container into another, which may have another partition key or policy.
    Create(Create),
    /// List all jobs.
    List {
        /// As the server tells it.
        #[arg(long)]
        json: bool,
    },
    /// Show a job, on request with a progress bar until it is over.
    Show {
        id: String,
        /// Stay until the job is over or waits for its cut-over.
        #[arg(long)]
        watch: bool,
    },
    /// Let a job rest.
    Pause { id: String },
    /// Let a paused job go on.
    Resume { id: String },
    /// End a job; what it has copied into a container of a name stays there.
    Cancel { id: String },
    /// Cut over as soon as the copy has caught up: writes to the source wait for a moment, and the job is done.
    Complete {
        id: String,
        #[arg(long)]
        watch: bool,
    },
    /// Forget a job that is over.
    Delete { id: String },
}

#[derive(Args)]
struct Create {
    /// The container to copy, as DATABASE/CONTAINER.
    #[arg(long, value_name = "DATABASE/CONTAINER")]
    from: ContainerName,
    /// The container to copy into, which must exist.
    #[arg(long, value_name = "DATABASE/CONTAINER")]
    to: ContainerName,
    /// Whether changes are followed until the cut-over.
    #[arg(long, value_enum, default_value_t = Mode::Online)]
    mode: Mode,
    #[command(flatten)]
    manner: Manner,
    /// Cut over as soon as the copy has caught up.
    #[arg(long)]
    complete: bool,
}

#[derive(Args)]
pub struct Rekey {
    #[command(flatten)]
    endpoint: Endpoint,
    /// The container that gets another key, as DATABASE/CONTAINER.
    #[arg(value_name = "DATABASE/CONTAINER")]
    container: ContainerName,
    /// The paths of the new key, such as `/tenant`; several make it hierarchical.
    #[arg(long = "key-path", required = true, value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    manner: Manner,
    /// Do not cut over by itself; `orrery job complete` does it.
    #[arg(long)]
    wait: bool,
}

/// How a job works.
#[derive(Args)]
struct Manner {
    /// Items in a second at most.
    #[arg(long, value_name = "ITEMS")]
    rate: Option<u32>,
    /// Return at once instead of showing a progress bar.
    #[arg(long)]
    detach: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Offline,
    Online,
}

pub fn run(job: Job) -> anyhow::Result<()> {
    let mut client = Client::new(job.endpoint);
    on_runtime(async move {
        let text = match job.action {
            Action::Create(create) => {
                let mode = if matches!(create.mode, Mode::Offline) { "offline" } else { "online" };
                let body = json!({
                    "kind": "copy",
                    "source": create.from.json(),
                    "target": create.to.json(),
                    "mode": mode,
                    "rate": create.manner.rate,
                    "completesItself": create.complete,
                });
                start(&mut client, body, &create.manner).await?
            }
            Action::List { json } => {
                let list = client.manage(Method::GET, "jobs", None).await?;
                if json { pretty(&list["jobs"]) } else { table(&list, Style::of(&std::io::stdout())) }
            }
            Action::Show { id, watch: true } => watch(&mut client, &id).await?,
            Action::Show { id, .. } => pretty(&client.manage(Method::GET, &path(&id)?, None).await?),
            Action::Pause { id } => change(&mut client, &id, "pause").await?,
            Action::Resume { id } => change(&mut client, &id, "resume").await?,
            Action::Cancel { id } => change(&mut client, &id, "cancel").await?,
            Action::Complete { id, watch: is_watched } => {
                let line = change(&mut client, &id, "complete").await?;
                if is_watched { watch(&mut client, &id).await? } else { line }
            }
            Action::Delete { id } => {
                client.manage(Method::DELETE, &path(&id)?, None).await?;
                format!("job {id} is forgotten")
            }
        };
        println!("{text}");
        Ok(())
    })
}

pub fn rekey(rekey: Rekey) -> anyhow::Result<()> {
    let mut client = Client::new(rekey.endpoint);
    on_runtime(async move {
        let kind = if rekey.paths.len() > 1 { "MultiHash" } else { "Hash" };
        let body = json!({
            "kind": "rekey",
            "container": rekey.container.json(),
            "partitionKey": {"paths": rekey.paths, "kind": kind, "version": 2},
            "rate": rekey.manner.rate,
            "completesItself": !rekey.wait,
        });
        println!("{}", start(&mut client, body, &rekey.manner).await?);
        Ok(())
    })
}

/// Ids are made by the server; one that is not goes nowhere.
fn path(id: &str) -> anyhow::Result<String> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        bail!("{id:?} is not the id of a job");
    }
    Ok(format!("jobs/{id}"))
}

async fn start(client: &mut Client, body: Value, manner: &Manner) -> anyhow::Result<String> {
    let job = client.manage(Method::POST, "jobs", Some(body)).await?;
    let id = job["id"].as_str().context("the server named no job")?.to_owned();
    if manner.detach {
        return Ok(format!("job {id} has begun"));
    }
    eprintln!("job {id}; it goes on when this ends (orrery job show {id} --watch)");
    watch(client, &id).await
}

async fn change(client: &mut Client, id: &str, action: &str) -> anyhow::Result<String> {
    let job = client.manage(Method::POST, &format!("{}/{action}", path(id)?), None).await?;
    Ok(format!("job {id} is {}", job["state"].as_str().unwrap_or_default()))
}

/// Shows a progress bar until the job is over or waits to be told.
async fn watch(client: &mut Client, id: &str) -> anyhow::Result<String> {
    let bar = progress_bar(BAR_LENGTH);
    loop {
        let job = client.manage(Method::GET, &path(id)?, None).await?;
        let state = job["state"].as_str().unwrap_or_default().to_owned();
        bar.set_position((job["percent"].as_f64().unwrap_or_default() * 10.0) as u64);
        bar.set_message(line(&job));
        let waits = state == "paused" || state == "running" && job["phase"] == "following";
        match state.as_str() {
            "completed" => {
                bar.finish_and_clear();
                return Ok(format!("{}\n{}", line(&job), pretty(&job["cutOver"])));
            }
            "failed" => {
                bar.abandon();
                bail!(
                    "job {id} has failed: {}\n{}",
                    job["failure"].as_str().unwrap_or_default(),
                    pretty(&job["collisions"])
                );
            }
            "cancelled" => {
                bar.abandon();
                return Ok(format!("job {id} was cancelled"));
            }
            _ if waits => {
                bar.finish_and_clear();
                return Ok(format!("{}; waiting: orrery job complete {id}", line(&job)));
            }
            _ => tokio::time::sleep(LOOK_INTERVAL).await,
        }
    }
}

/// A bar on the terminal; nothing where there is none.
pub fn progress_bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}").expect("a fixed template");
    ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(8)).with_style(style)
}

/// What moves on the terminal while nobody knows how much is left.
pub fn spinner(what: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}").expect("a fixed template");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8)).with_style(style);
    bar.set_message(what);
    bar.enable_steady_tick(LOOK_INTERVAL);
    bar
}

fn line(job: &Value) -> String {
    let number = |name: &str| job[name].as_u64().unwrap_or_default();
    let mut line = format!(
        "{} {}: {} of {} items, {} changes",
        job["id"].as_str().unwrap_or_default(),
        job["state"].as_str().unwrap_or_default(),
        number("itemsCopied"),
        number("itemsTotal"),
        number("changesApplied"),
    );
    let rate = job["itemsPerSecond"].as_f64().unwrap_or_default();
    if rate > 0.0 {
        line += &format!(", {rate:.0} items/s");
    }
    if let Some(seconds) = job["secondsRemaining"].as_u64() {
        line += &format!(", {seconds} s left");
    }
    line
}

fn table(list: &Value, style: Style) -> String {
    let mut lines = vec![style.bold(&format!(
        "{:<12} {:<6} {:<8} {:<10} {:<10} {:>6} {:>12}  containers",
        "id", "kind", "mode", "state", "phase", "%", "items"
    ))];
    for job in list["jobs"].as_array().into_iter().flatten() {
        let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
        let name = |side: &str| {
            let part = |name: &str| job[side][name].as_str().unwrap_or_default();
            format!("{}/{}", part("database"), part("container"))
        };
        let state = text("state");
        let padded = format!("{state:<10}");
        let state = match state.as_str() {
            "completed" => style.good(&padded),
            "failed" => style.error(&padded),
            "running" => style.link(&padded),
            _ => style.warning(&padded),
        };
        lines.push(format!(
            "{:<12} {:<6} {:<8} {state} {:<10} {:>6.1} {:>12}  {} -> {}",
            text("id"),
            text("kind"),
            text("mode"),
            text("phase"),
            job["percent"].as_f64().unwrap_or_default(),
            job["itemsCopied"].as_u64().unwrap_or_default(),
            name("source"),
            name("target"),
        ));
    }
    lines.join("\n")
}

fn pretty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}
