//! What the shell knows between statements: the server, what is in use, and how rows are asked for and shown.

use std::io::IsTerminal;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::properties::{Properties, SAMPLE};
use super::statement::{COMMANDS, Statement};
use crate::client::account::{Account, Headers};
use crate::client::{ContainerName, Endpoint, Target};
use crate::list;
use crate::query::{Manner, ask};
use crate::rows::{Format, Rows};
use crate::style::Style;

/// Rows that a person is shown unless they ask for more.
const ROWS_SHOWN: usize = 500;

pub struct Session {
    runtime: Runtime,
    account: Account,
    /// For people: where the server is.
    server: String,
    database: Option<String>,
    container: Option<String>,
    manner: Manner,
    is_terminal: bool,
    /// Of the container in use, once somebody has asked for them.
    properties: Option<Properties>,
}

/// Whether the shell goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Go,
    Leave,
}

impl Session {
    pub fn new(endpoint: Endpoint, mut manner: Manner, is_terminal: bool) -> anyhow::Result<Session> {
        let server = endpoint.endpoint.to_string();
        if is_terminal {
            manner.max = manner.max.or(Some(ROWS_SHOWN));
        }
        let shown = if std::io::stdout().is_terminal() { Format::Table } else { Format::Lines };
        manner.format = manner.format.or(Some(shown));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let account = Account::new(endpoint);
        let mut session = Session {
            runtime,
            account,
            server,
            database: None,
            container: None,
            manner,
            is_terminal,
            properties: None,
        };
        // A server that is not there, or another key, is better said now than at the first query.
        session.databases()?;
        Ok(session)
    }

    pub fn greeting(&self) -> String {
        format!("{}: `help` says what can be typed, Tab completes it, and Ctrl-D leaves.", self.server)
    }

    pub fn prompt(&self) -> String {
        match (&self.database, &self.container) {
            (Some(database), Some(container)) => format!("{database}/{container}> "),
            (Some(database), None) => format!("{database}> "),
            _ => "orrery> ".to_owned(),
        }
    }

    pub fn answer(&mut self, said: Statement) -> anyhow::Result<Next> {
        match said {
            Statement::Nothing => {}
            Statement::Sql(sql) => self.ask(&sql)?,
            Statement::Use(name) => self.use_named(&name)?,
            Statement::Databases => self.databases()?.iter().for_each(|name| println!("{name}")),
            Statement::Containers(database) => {
                let database = database.or_else(|| self.database.clone());
                let database = database.context("say of which database: containers DATABASE")?;
                let style = Style::of(&std::io::stdout());
                let found = self.listed(Some(&database))?;
                found.iter().for_each(|container| println!("{}", list::line(container, style)));
            }
            Statement::Format(format) => self.manner.format = Some(format),
            Statement::Limit(rows) => self.manner.max = rows,
            Statement::Set(name, value) => {
                self.manner.parameters.retain(|(known, _)| *known != name);
                self.manner.parameters.push((name, value));
            }
            Statement::Unset(name) => {
                let before = self.manner.parameters.len();
                self.manner.parameters.retain(|(known, _)| *known != name);
                anyhow::ensure!(self.manner.parameters.len() < before, "there is no parameter {name}");
            }
            Statement::Key(key) => self.manner.partition_key = key,
            Statement::Help => help(),
            Statement::Leave => return Ok(Next::Leave),
        }
        Ok(Next::Go)
    }

    fn ask(&mut self, sql: &str) -> anyhow::Result<()> {
        let container = self.in_use()?;
        let began = Instant::now();
        let stream = std::io::stdout();
        let mut out = std::io::stdout().lock();
        let format = self.manner.format.unwrap_or(Format::Lines);
        let mut rows = Rows::new(&mut out, format, &stream);
        let asked = ask(&mut self.account, &container, sql, &self.manner, &mut rows);
        let asked = interruptible(&self.runtime, self.is_terminal, asked);
        // Whoever reads our output may be gone.
        let _ = rows.finish();
        let outcome = asked?;
        let more = if outcome.is_cut { "; there are more, and `limit` shows more of them" } else { "" };
        let line = format!("{}, {} ms{more}", outcome.line(), began.elapsed().as_millis());
        eprintln!("{}", Style::of(&std::io::stderr()).faint(&line));
        Ok(())
    }

    fn in_use(&self) -> anyhow::Result<ContainerName> {
        match (&self.database, &self.container) {
            (Some(database), Some(container)) => {
                Ok(ContainerName { database: database.clone(), container: container.clone() })
            }
            _ => bail!("choose a container first: use DATABASE/CONTAINER"),
        }
    }

    /// A name alone is a container of the database in use, if it has one of that name, or else a database.
    fn use_named(&mut self, name: &str) -> anyhow::Result<()> {
        let target: Target = name.parse().map_err(anyhow::Error::msg)?;
        let inner = self.database.clone().filter(|_| target.container.is_none());
        if let Some(database) = inner {
            let inner = Target { database, container: Some(target.database.clone()) };
            if self.use_target(inner).is_ok() {
                return Ok(());
            }
        }
        self.use_target(target)
    }

    pub fn use_target(&mut self, target: Target) -> anyhow::Result<()> {
        interruptible(&self.runtime, self.is_terminal, self.account.read(&target))?;
        (self.database, self.container) = (Some(target.database), target.container);
        self.properties = None;
        Ok(())
    }

    fn listed(&mut self, database: Option<&str>) -> anyhow::Result<Vec<Value>> {
        interruptible(&self.runtime, self.is_terminal, self.account.list(database))
    }

    /// The names of all databases.
    pub fn databases(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(names(&self.listed(None)?))
    }

    /// The names of the containers of a database, or of the one in use; none where it has none.
    pub fn containers(&mut self, database: Option<&str>) -> Vec<String> {
        let Some(database) = database.map(str::to_owned).or_else(|| self.database.clone()) else {
            return Vec::new();
        };
        self.listed(Some(&database)).map(|found| names(&found)).unwrap_or_default()
    }

    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.manner.parameters.iter().map(|(name, _)| name.as_str())
    }

    /// What items of the container in use have, by a look at some of them.
    pub fn properties(&mut self) -> Option<&Properties> {
        if self.properties.is_none() {
            let container = self.in_use().ok()?;
            let query = serde_json::json!({"query": SAMPLE});
            let headers = Headers::new();
            let page = self.account.query(&container, &query, &headers, None);
            let page = interruptible(&self.runtime, self.is_terminal, page).ok()?;
            self.properties = Some(Properties::of_page(&page.reply.json()["Documents"]));
        }
        self.properties.as_ref()
    }
}

fn names(resources: &[Value]) -> Vec<String> {
    resources.iter().filter_map(|resource| resource["id"].as_str()).map(str::to_owned).collect()
}

fn help() {
    for (name, takes, what) in COMMANDS {
        println!("{:<32} {what}", format!("{name} {takes}"));
    }
    println!("{:<32} SQL; a semicolon or an empty line ends it", "SELECT …");
}

/// Runs what talks to the server. A person may interrupt it and goes on; a program is ended as any other.
fn interruptible<T>(
    runtime: &Runtime,
    is_terminal: bool,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    runtime.block_on(async {
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c(), if is_terminal => bail!("interrupted"),
        }
    })
}
