//! Azurite as the peer: the emulator of Azure Storage, whose tables are asked in the same protocol.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use orrery_testkit::EMULATOR_KEY;
use tempfile::TempDir;

use super::requests::ACCOUNT;

/// Where `.ci/tools bench` puts it.
const USUAL: &str = ".cache/azurite/node_modules/.bin/azurite-table";
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of our own, ended when dropped.
pub struct Azurite {
    child: Child,
    port: u16,
    _folder: TempDir,
}

pub fn find(named: Option<&Path>) -> Option<PathBuf> {
    Some(named.unwrap_or(Path::new(USUAL)).to_owned()).filter(|program| program.exists())
}

impl Azurite {
    pub fn start(program: &Path) -> Result<Azurite> {
        let folder = tempfile::Builder::new().prefix("orrery-bench-azurite-").tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // Node is named, so that the process is the server and not a shell in front of it.
        let child = Command::new("node")
            .arg(program.canonicalize()?)
            .args(["--tableHost", "127.0.0.1", "--tablePort", &port.to_string(), "--location"])
            .arg(folder.path())
            .args(["--skipApiVersionCheck", "--disableTelemetry", "--silent"])
            // The same key as ours, so that both get the same requests.
            .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{EMULATOR_KEY}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut azurite = Azurite { child, port, _folder: folder };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = azurite.child.try_wait()?.is_some();
            ensure!(!has_ended && began.elapsed() < PATIENCE, "Azurite does not start");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(azurite)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        // It may have ended already, which is fine here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
