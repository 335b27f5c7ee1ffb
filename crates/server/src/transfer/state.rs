//! The state file of a transfer: written anew beside the old one and then renamed, so that it is always whole.

use std::fmt;
use std::fs::{File, remove_file, rename};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Place;

/// The container that a transfer reads or fills, as its state remembers it: a state is good for no other.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    endpoint: String,
    database: String,
    container: String,
}

impl Origin {
    pub fn of(place: &Place) -> Origin {
        Origin {
            endpoint: place.endpoint.endpoint.to_string(),
            database: place.database.clone(),
            container: place.container.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} at {}", self.database, self.container, self.endpoint)
    }
}

pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// Beside a data file.
    pub fn beside(data: &Path, what: &str) -> StateFile {
        let mut name = data.as_os_str().to_owned();
        name.push(format!(".{what}-state"));
        StateFile { path: name.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What an interrupted transfer left, if there was one.
    pub fn read<T: DeserializeOwned>(&self) -> anyhow::Result<Option<T>> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| self.path.display().to_string()),
        };
        let state = serde_json::from_slice(&text).with_context(|| {
            format!("{} is not the state of a transfer; delete it to start anew", self.path.display())
        })?;
        Ok(Some(state))
    }

    pub fn write<T: Serialize>(&self, state: &T) -> anyhow::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&beside)?;
            file.write_all(&serde_json::to_vec(state)?)?;
            file.sync_all()?;
            rename(&beside, &self.path)
        };
        write().with_context(|| self.path.display().to_string())
    }

    /// The transfer is complete.
    pub fn remove(&self) -> anyhow::Result<()> {
        match remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}
