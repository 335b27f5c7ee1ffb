//! PostgreSQL as the peer: the same items in a JSONB table with a GIN index, as durable as ours.

use std::cell::RefCell;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use futures_util::SinkExt;
use tempfile::TempDir;
use tokio::task::LocalSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use crate::item::{self, Address};
use crate::latency::Latency;
use crate::load::{self, Outcome};

/// The account that Debian's package makes; the server refuses to run as root.
const ACCOUNT: &str = "postgres";
const PATIENCE: Duration = Duration::from_secs(30);
const TABLE: &str = "create table items (pk text, id text, doc jsonb not null, primary key (pk, id))";
const GENERAL_INDEX: &str = "create index items_doc on items using gin (doc)";
/// Bytes of items sent at once while a table is filled.
const COPY_BYTES: usize = 256 * 1024;
pub const INSERT: &str = "insert into items values ($1, $2, $3::text::jsonb)";
pub const SELECT: &str = "select doc::text from items where pk = $1 and id = $2";

/// A server of our own, ended when dropped.
pub struct Postgres {
    child: Child,
    port: u16,
    _folder: TempDir,
    clients: Vec<(Rc<Client>, Statement, Statement)>,
    runtime: tokio::runtime::Runtime,
    tasks: LocalSet,
}

/// What the clients do.
#[derive(Clone, Copy)]
pub enum Work {
    /// Inserts the items from this number on.
    Insert(u64),
    /// Reads items below this number.
    Select(u64),
}

/// The programs of the newest version that is installed where Debian puts it.
pub fn find(named: Option<&Path>) -> Option<PathBuf> {
    if let Some(folder) = named {
        return folder.join("postgres").exists().then(|| folder.to_owned());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.retain(|folder| folder.join("postgres").exists() && folder.join("initdb").exists());
    folders.sort();
    folders.pop()
}

impl Postgres {
    /// With a table for items and an index that serves every path.
    pub fn start(programs: &Path, clients: usize) -> Result<Postgres> {
        let server = Postgres::start_empty(programs, clients)?;
        server.execute(GENERAL_INDEX)?;
        Ok(server)
    }

    /// With a table for items and no index but that of its key.
    pub fn start_empty(programs: &Path, clients: usize) -> Result<Postgres> {
        let folder = tempfile::Builder::new().prefix("orrery-bench-pg-").tempdir()?;
        let is_root = fs::metadata("/proc/self")?.uid() == 0;
        if is_root {
            let given = Command::new("chown").arg(ACCOUNT).arg(folder.path()).status()?;
            ensure!(given.success(), "the account {ACCOUNT} is not there");
        }
        let data = folder.path().join("data");
        let made = unprivileged(is_root, &programs.join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C"])
            .stdout(Stdio::null())
            .status()?;
        ensure!(made.success(), "initdb failed");
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = unprivileged(is_root, &programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string()])
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "synchronous_commit=on", "-c", "fsync=on"])
            .args(["-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB", "-c", "log_min_messages=fatal"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let runtime = load::runtime()?;
        let mut server =
            Postgres { child, port, _folder: folder, clients: Vec::new(), runtime, tasks: LocalSet::new() };
        server.prepare(clients)?;
        Ok(server)
    }

    fn prepare(&mut self, clients: usize) -> Result<()> {
        let began = Instant::now();
        let first = loop {
            match self.connect() {
                Ok(client) => break client,
                Err(error) if began.elapsed() > PATIENCE => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        };
        self.tasks.block_on(&self.runtime, first.batch_execute(TABLE))?;
        for _ in 0..clients {
            let client = self.connect()?;
            let insert = self.tasks.block_on(&self.runtime, client.prepare(INSERT))?;
            let select = self.tasks.block_on(&self.runtime, client.prepare(SELECT))?;
            self.clients.push((Rc::new(client), insert, select));
        }
        Ok(())
    }

    fn connect(&self) -> Result<Client> {
        let address = format!("host=127.0.0.1 port={} user=bench dbname=postgres", self.port);
        self.tasks.block_on(&self.runtime, async {
            let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
            tokio::task::spawn_local(async move {
                // It ends with an error when the server is stopped, which is the end we want.
                let _ = connection.await;
            });
            Ok(client)
        })
    }

    fn execute(&self, statements: &str) -> Result<()> {
        let (client, ..) = self.clients.first().context("no client is connected")?;
        Ok(self.tasks.block_on(&self.runtime, client.batch_execute(statements))?)
    }

    /// Puts the items below this number there, as batches load them, then makes the indexes; returns the seconds.
    pub fn fill(&self, items: u64, indexes: &[&str]) -> Result<f64> {
        let began = Instant::now();
        let (client, ..) = self.clients.first().context("no client is connected")?;
        self.tasks.block_on(&self.runtime, async {
            let sink = client.copy_in("copy items (pk, id, doc) from stdin").await?;
            let mut sink = std::pin::pin!(sink);
            let mut text = String::with_capacity(COPY_BYTES + 4096);
            for number in 0..items {
                let address = item::loaded(number);
                text.push_str(&format!("{}\t{}\t", address.key, address.id));
                // Generated items hold no backslash, tab or line end, which this format would have to escape.
                item::write_json(&address, number, &mut text);
                text.push('\n');
                if text.len() >= COPY_BYTES {
                    sink.send(Bytes::from(std::mem::take(&mut text))).await?;
                }
            }
            sink.send(Bytes::from(text)).await?;
            sink.finish().await?;
            anyhow::Ok(())
        })?;
        for index in indexes {
            self.execute(index)?;
        }
        self.execute("vacuum analyze items")?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// One statement, once, to its last row.
    pub fn time_statement(&self, statement: &str) -> Result<Duration> {
        let (client, ..) = self.clients.first().context("no client is connected")?;
        let began = Instant::now();
        self.tasks.block_on(&self.runtime, client.query(statement, &[]))?;
        Ok(began.elapsed())
    }

    /// So many clients at once, each with one statement under way; turns are numbered for the arguments.
    pub fn measure_statement(
        &self,
        statement: &str,
        arguments: impl Fn(u64) -> Vec<String> + Clone + 'static,
        clients: usize,
        time: Duration,
    ) -> Result<Outcome> {
        let latency = Rc::new(RefCell::new(Latency::default()));
        let next = Rc::new(RefCell::new(0));
        let mut prepared = Vec::new();
        for (client, ..) in self.clients.iter().take(clients) {
            let statement = self.tasks.block_on(&self.runtime, client.prepare(statement))?;
            prepared.push((Rc::clone(client), statement));
        }
        let began = Instant::now();
        let end = began + time;
        self.tasks.block_on(&self.runtime, async {
            let mut running = Vec::new();
            for (client, statement) in prepared {
                let (next, latency, arguments) = (Rc::clone(&next), Rc::clone(&latency), arguments.clone());
                running.push(tokio::task::spawn_local(async move {
                    let mut sent = Instant::now();
                    while sent < end {
                        let turn = next.replace_with(|turn| *turn + 1);
                        let arguments = arguments(turn);
                        let arguments: Vec<&(dyn ToSql + Sync)> =
                            arguments.iter().map(|text| text as &(dyn ToSql + Sync)).collect();
                        client.query(&statement, &arguments).await?;
                        let now = Instant::now();
                        latency.borrow_mut().record(now - sent);
                        sent = now;
                    }
                    anyhow::Ok(())
                }));
            }
            for task in running {
                task.await.context("a client panicked")??;
            }
            anyhow::Ok(())
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let latency = latency.take();
        Ok(Outcome { requests: latency.count(), seconds, latency })
    }

    /// All clients at once, one statement of each under way.
    pub fn measure(&self, work: Work, time: Duration) -> Result<Outcome> {
        let latency = Rc::new(RefCell::new(Latency::default()));
        let next = Rc::new(RefCell::new(match work {
            Work::Insert(first) => first,
            Work::Select(_) => 0,
        }));
        let began = Instant::now();
        let end = began + time;
        self.tasks.block_on(&self.runtime, async {
            let mut running = Vec::new();
            for (client, insert, select) in &self.clients {
                let statement = if matches!(work, Work::Insert(_)) { insert } else { select };
                let turns = Turns { work, next: Rc::clone(&next), latency: Rc::clone(&latency) };
                running.push(tokio::task::spawn_local(turns.run(Rc::clone(client), statement.clone(), end)));
            }
            for task in running {
                task.await.context("a client panicked")??;
            }
            anyhow::Ok(())
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let latency = latency.take();
        Ok(Outcome { requests: latency.count(), seconds, latency })
    }
}

struct Turns {
    work: Work,
    next: Rc<RefCell<u64>>,
    latency: Rc<RefCell<Latency>>,
}

impl Turns {
    async fn run(self, client: Rc<Client>, statement: Statement, end: Instant) -> Result<()> {
        let mut text = String::new();
        let mut sent = Instant::now();
        while sent < end {
            let turn = self.next.replace_with(|turn| *turn + 1);
            match self.work {
                Work::Insert(_) => {
                    let Address { key, id } = item::created(turn);
                    text.clear();
                    item::write_json(&Address { key: key.clone(), id: id.clone() }, turn, &mut text);
                    client.execute(&statement, &[&key, &id, &text]).await?;
                }
                Work::Select(below) => {
                    let Address { key, id } = item::created(item::mix(turn) % below);
                    let rows = client.query(&statement, &[&key, &id]).await?;
                    if rows.len() != 1 {
                        bail!("{id} is not there");
                    }
                }
            }
            let now = Instant::now();
            self.latency.borrow_mut().record(now - sent);
            sent = now;
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.clients.clear();
        // SIGINT is PostgreSQL's fast stop: it ends its own children, which a kill would orphan.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program as a user who is not root; it keeps its process id.
fn unprivileged(is_root: bool, program: &Path) -> Command {
    let mut command;
    if is_root {
        command = Command::new("setpriv");
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]).arg(program);
    } else {
        command = Command::new(program);
    }
    command.current_dir("/");
    command
}
