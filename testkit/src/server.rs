//! A real server in a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::wait_for;

/// What is kept of what a server says; the reason why it does not start is among its first words.
const SAID_BYTES_MAX: u64 = 64 << 10;

pub struct Server {
    child: Child,
    port: u16,
    table_port: Option<u16>,
    started: Duration,
}

impl Server {
    /// Starts `binary serve` on any free port and waits until it says that it is ready.
    pub fn start(binary: &Path, args: &[&str]) -> Server {
        Server::run(Command::new(binary), args, Stdio::piped())
            .unwrap_or_else(|said| panic!("the server ended before it was ready: {said}"))
    }

    /// Starts on a data directory; a server that ends before it is ready is returned as what it said.
    pub fn try_start_on(binary: &Path, directory: &Path, args: &[&str]) -> Result<Server, String> {
        let directory = directory.to_str().expect("a temporary path is text");
        let args = [&["--data-dir", directory], args].concat();
        Server::run(Command::new(binary), &args, Stdio::piped())
    }

    /// Starts on a data directory as a command says that ends with the binary's name, and whose process becomes the server.
    pub fn start_as(command: Command, directory: &Path, args: &[&str]) -> Server {
        let directory = directory.to_str().expect("a temporary path is text");
        Server::run(command, &[&["--data-dir", directory], args].concat(), Stdio::piped())
            .unwrap_or_else(|said| panic!("the server ended before it was ready: {said}"))
    }

    /// The same, and what the server says on standard error goes to a file.
    pub fn start_as_logged(command: Command, directory: &Path, args: &[&str], log: File) -> Server {
        let directory = directory.to_str().expect("a temporary path is text");
        Server::run(command, &[&["--data-dir", directory], args].concat(), log.into())
            .unwrap_or_else(|said| panic!("the server ended before it was ready: {said}"))
    }

    /// Starts, and appends what the server says on standard error to a file.
    pub fn start_logged(binary: &Path, args: &[&str], log: &Path) -> Server {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        Server::run(Command::new(binary), args, file.expect("the log can be written").into())
            .unwrap_or_else(|said| panic!("the server ended before it was ready: {said}{}", log.display()))
    }

    /// Starts on a data directory, and appends what the server says on standard error to a file, also why it does not start.
    pub fn try_start_logged(
        binary: &Path,
        directory: &Path,
        args: &[&str],
        log: &Path,
    ) -> Result<Server, String> {
        let directory = directory.to_str().expect("a temporary path is text");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let errors = file.expect("the log can be written").into();
        Server::run(Command::new(binary), &[&["--data-dir", directory], args].concat(), errors)
    }

    fn run(mut command: Command, args: &[&str], errors: Stdio) -> Result<Server, String> {
        let begin = Instant::now();
        let mut child = command
            .args(["serve", "--nosql-port", "0"])
            // A test that wants another API names its port.
            .env("ORRERY_TABLE_PORT", "none")
            .args(args)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Both pipes must stay open and empty, or the server would block or fail on its next line.
        let errors = child.stderr.take().map(|pipe| std::thread::spawn(move || first_words(pipe)));
        let output = child.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(output).lines();
        let (port, table_port) = loop {
            let Some(line) = lines.next() else {
                let said = errors.map(|reader| reader.join().expect("the reader does not panic"));
                let status = child.wait().expect("the process is ours");
                return Err(format!("{status}: {}", said.unwrap_or_default().trim()));
            };
            let line = line.expect("stdout is text");
            if let Some(port) = ready_port(&line) {
                break (port, table_port(&line));
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Server { child, port, table_port, started: begin.elapsed() })
    }

    /// Starts on a data directory that outlives the process.
    pub fn start_on(binary: &Path, directory: &Path, args: &[&str]) -> Server {
        let directory = directory.to_str().expect("a temporary path is text");
        Server::start(binary, &[&["--data-dir", directory], args].concat())
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of the Table API, if it was asked for.
    pub fn table_port(&self) -> Option<u16> {
        self.table_port
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("the process is ours").is_none()
    }

    /// From `exec` to the line that says ready.
    pub fn start_time(&self) -> Duration {
        self.started
    }

    /// SIGKILL: the process gets no chance to write anything more.
    pub fn kill(mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
    }

    /// SIGTERM: a clean stop, which must end with success.
    pub fn stop(mut self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
        assert!(sent.success(), "SIGTERM could not be sent");
        let status = wait_for(|| {
            let ended = self.child.try_wait().expect("the process is ours");
            ended.ok_or_else(|| "the server does not stop".to_owned())
        });
        assert!(status.success(), "the server stopped with {status}");
    }

    /// Resident memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let path = PathBuf::from(format!("/proc/{}/status", self.child.id()));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        let kilobytes = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already ended processes make both calls fail, which is fine here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until the end, and returns how it began.
fn first_words(mut pipe: impl Read) -> String {
    let mut said = Vec::new();
    // A pipe that breaks has said all that it will say.
    let _ = pipe.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut said);
    let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    String::from_utf8_lossy(&said).into_owned()
}

fn table_port(line: &str) -> Option<u16> {
    let rest = line.split_once(" table=http://")?.1;
    let address = rest.split_whitespace().next()?;
    address.trim_end_matches('/').rsplit_once(':')?.1.parse().ok()
}

fn ready_port(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("ORRERY READY nosql=")?;
    let address = rest.split_whitespace().next()?;
    address.rsplit_once(':')?.1.parse().ok()
}
