//! Keys that change while the server runs.
//!
//! The key file and the key set of the token issuers are read again when they change and when the process gets
//! SIGHUP. A file that cannot be read or makes no sense leaves the keys as they are: whoever edits it must not lock
//! everybody out. A request that is under way ends with the keys that it began with.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use orrery_nosql::Gateway;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Config;
use crate::entra;
use crate::keys::AccountKeys;

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// What tells one content of a file from another without reading it.
type Version = Option<(SystemTime, u64)>;

/// Watches the files from now on; does nothing when there are none.
pub fn watch(config: &Config, gateway: &Gateway) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (config, gateway) = (config.clone(), gateway.clone());
    let versions = move |config: &Config| {
        [&config.key_file, &config.entra_keys].map(|path| path.as_deref().and_then(version))
    };
    let mut seen = versions(&config);
    tokio::spawn(async move {
        loop {
            let asked = tokio::select! {
                signal = hangup.recv() => signal.is_some(),
                () = tokio::time::sleep(PERIOD), if config.key_file.is_some() || config.entra_keys.is_some() => false,
            };
            let now = versions(&config);
            if asked || now[0] != seen[0] {
                read_keys(&config, &gateway);
            }
            if asked || now[1] != seen[1] {
                read_entra(&config, &gateway);
            }
            seen = now;
        }
    });
    Ok(())
}

fn version(path: &Path) -> Version {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read_keys(config: &Config, gateway: &Gateway) {
    if config.key_file.is_none() {
        return;
    }
    let keys = AccountKeys::choose(config.bind, config.key_file.as_deref());
    match keys.and_then(|keys| Ok(keys.for_gateway()?)) {
        Ok(keys) => {
            gateway.set_keys(keys);
            tracing::info!(target: "audit", who = "operator", what = "account keys", "keys were read again");
        }
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "the key file is not usable; the keys stay as they are");
        }
    }
}

fn read_entra(config: &Config, gateway: &Gateway) {
    if config.entra_keys.is_none() {
        return;
    }
    match entra::choose(config) {
        Ok(entra) => {
            gateway.set_entra(entra.map(Arc::new));
            tracing::info!(target: "audit", who = "operator", what = "issuer keys", "keys were read again");
        }
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "the key set of the issuers is not usable; it stays as it is");
        }
    }
}
