//! Keys that change while the server runs.
//!
//! The key file and the key set of the token issuers are read again when they change and when the process gets
//! SIGHUP. A file that cannot be read or makes no sense leaves the keys as they are: an operator who edits it must not lock
//! everybody out. A request that is under way ends with the keys that it began with.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
use crate::entra;
use crate::gateways::Gateways;
use crate::hosts::Hosts;
use crate::keys::AccountKeys;

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// What tells one content of a file from another without reading it.
type Version = Option<(SystemTime, u64)>;

/// The versions of the key file and of the key set that the server works with. They are noted before the files are
/// read: a change in between is then seen as one, and at worst a file is read twice.
pub struct Seen([Version; 2]);

impl Seen {
    pub fn now(config: &Config) -> Seen {
        Seen([&config.key_file, &config.entra_keys].map(|path| path.as_deref().and_then(version)))
    }

    /// Which of the two have changed since the last look.
    fn changes(&mut self, config: &Config) -> [bool; 2] {
        let before = std::mem::replace(self, Seen::now(config));
        [self.0[0] != before.0[0], self.0[1] != before.0[1]]
    }
}

/// Takes SIGHUP from now on, so that one during a long recovery does not end the process; must be called inside the
/// runtime.
pub fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Watches the files from now on; does nothing when there are none.
pub fn watch(config: &Config, gateways: &Gateways, hosts: Arc<Hosts>, mut seen: Seen, mut hangup: Signal) {
    let (config, gateways) = (config.clone(), gateways.clone());
    tokio::spawn(async move {
        loop {
            let asked = tokio::select! {
                signal = hangup.recv() => signal.is_some(),
                () = tokio::time::sleep(PERIOD), if config.key_file.is_some() || config.entra_keys.is_some() => false,
            };
            let changed = seen.changes(&config);
            if asked || changed[0] {
                read_keys(&config, &gateways, &hosts);
            }
            if asked || changed[1] {
                read_entra(&config, &gateways);
            }
        }
    });
}

fn version(path: &Path) -> Version {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read_keys(config: &Config, gateways: &Gateways, hosts: &Hosts) {
    if config.key_file.is_none() {
        return;
    }
    let keys = AccountKeys::choose(config.bind, config.key_file.as_deref(), config.allow_emulator_key);
    let is_open = |keys: &AccountKeys| keys.uses_emulator_key() || config.entra_development;
    match keys.and_then(|keys| Ok((is_open(&keys), keys.for_gateway()?))) {
        Ok((is_open, keys)) => {
            // The guard is there before the key that needs it, and goes after it.
            hosts.guard(true);
            gateways.set_keys(keys);
            hosts.guard(is_open);
            tracing::info!(target: "audit", who = "operator", what = "account keys", "keys were read again");
        }
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "the key file is not usable; the keys stay as they are");
        }
    }
}

fn read_entra(config: &Config, gateways: &Gateways) {
    if config.entra_keys.is_none() {
        return;
    }
    match entra::choose(config) {
        Ok(entra) => {
            gateways.set_entra(entra.map(Arc::new));
            tracing::info!(target: "audit", who = "operator", what = "issuer keys", "keys were read again");
        }
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "the key set of the issuers is not usable; it stays as it is");
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Serve {
        #[command(flatten)]
        config: Config,
    }

    #[test]
    fn a_key_file_that_changes_before_it_is_watched_is_seen_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys.toml");
        std::fs::write(&path, "primary").expect("written");
        let config = Config { key_file: Some(path.clone()), ..Serve::parse_from(["orrery"]).config };
        let mut seen = Seen::now(&config);
        assert_eq!(seen.changes(&config), [false, false]);
        // Between the first look at the file and the first turn of the watch the database opens.
        std::fs::write(&path, "another primary").expect("written");
        assert_eq!(seen.changes(&config), [true, false]);
        assert_eq!(seen.changes(&config), [false, false]);
    }
}
