//! Starts real servers for tests and talks to them over bare sockets.
//!
//! Each test file uses the part that it needs, hence the allowance for unused parts.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use orrery_testkit::wait_for;
use tempfile::TempDir;

pub mod direct;
pub mod http;

/// How long a test waits for bytes or for the end of a connection. Servers allow longer for bodies and for answers, so a
/// limit that a test has set is not taken for one that would have ended the connection anyway.
pub const SOCKET_PATIENCE: Duration = Duration::from_secs(29);

/// A running server with a data directory of its own, on a port of its own. Dropping it kills it.
pub struct Server {
    child: Child,
    port: u16,
    data: Data,
    log: Arc<Mutex<String>>,
    log_reader: Option<JoinHandle<()>>,
}

/// The data directory: one that lives as long as the server, or one that outlives it.
enum Data {
    Own(TempDir),
    Lent(PathBuf),
}

impl Server {
    /// Starts a server on a fresh data directory and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("data");
        Self::launch(on_any_port(&path, arguments), Data::Own(folder))
    }

    /// Starts a server on a given data directory, which stays when the server is dropped.
    pub fn start_on(data_dir: &Path, arguments: &[&str]) -> Server {
        Self::launch(on_any_port(data_dir, arguments), Data::Lent(data_dir.to_owned()))
    }

    /// Starts a server as `command` says; its data directory is only known to the command.
    pub fn start_as(command: Command) -> Server {
        Self::launch(command, Data::Lent(PathBuf::new()))
    }

    /// Starts a server that must refuse to start; returns its exit status and what it said.
    pub fn start_refused(arguments: &[&str]) -> (ExitStatus, String) {
        let output = command().args(arguments).output().expect("the binary runs");
        (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn launch(mut command: Command, data: Data) -> Server {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let (log, log_reader) = collect(child.stderr.take().expect("stderr is piped"));
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut server = Server { child, port: 0, data, log, log_reader: Some(log_reader) };
        let mut ready = String::new();
        BufReader::new(stdout).read_line(&mut ready).expect("standard output is text");
        match port_in(&ready) {
            Some(port) => server.port = port,
            None => panic!("no ready line in `{ready}`; the log: {}", server.log()),
        }
        server
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn data_dir(&self) -> PathBuf {
        match &self.data {
            Data::Own(folder) => folder.path().join("data"),
            Data::Lent(path) => path.clone(),
        }
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("not poisoned").clone()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("the server accepts");
        stream.set_read_timeout(Some(SOCKET_PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// Ends the server as a power failure would.
    pub fn kill9(&mut self) {
        self.child.kill().expect("the server can be killed");
        self.wait();
    }

    /// Asks the server to stop and waits until it has.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(status.expect("kill runs").success());
    }

    pub fn wait(&mut self) -> ExitStatus {
        let status = wait_for(|| {
            let ended = self.child.try_wait().expect("the child is ours");
            ended.ok_or_else(|| format!("the server does not end; its log: {}", self.log()))
        });
        self.end_log();
        status
    }

    /// Waits for the last lines of the log, which may arrive after the server has ended.
    fn end_log(&mut self) {
        if let Some(reader) = self.log_reader.take() {
            reader.join().expect("the reader does not panic");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test, in an environment in which only the test configures it.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orrery"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ORRERY_") {
            command.env_remove(name);
        }
    }
    // A test that wants another API names its port.
    command.env("ORRERY_TABLE_PORT", "none");
    command
}

fn on_any_port(data_dir: &Path, arguments: &[&str]) -> Command {
    let mut command = command();
    command.args(["serve", "--nosql-port", "0", "--data-dir"]).arg(data_dir).args(arguments);
    command
}

fn port_in(line: &str) -> Option<u16> {
    line.split_whitespace().find_map(|word| word.strip_prefix("port=")?.parse().ok())
}

fn collect(mut pipe: impl Read + Send + 'static) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let log = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&log);
    let reader = std::thread::spawn(move || {
        let mut chunk = [0u8; 4096];
        while let Ok(n) = pipe.read(&mut chunk) {
            if n == 0 {
                break;
            }
            let _ = std::io::stderr().write_all(&chunk[..n]);
            kept.lock().expect("not poisoned").push_str(&String::from_utf8_lossy(&chunk[..n]));
        }
    });
    (log, reader)
}
