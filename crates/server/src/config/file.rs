//! Turns the TOML file into defaults of the command-line flags.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, bail};
use clap::{ArgMatches, Command};

use crate::limits;

/// The option that names the file; a file cannot name another one.
const FILE_OPTION: &str = "config";

/// Parses the command line of `command`, whose subcommand `serve` carries the options. When they name
/// a configuration file, it is read and the line is parsed once more over the file's values.
pub fn load(command: Command, line: &[OsString]) -> anyhow::Result<ArgMatches> {
    let first = command.clone().get_matches_from(line);
    let named = first.subcommand_matches("serve").and_then(|m| m.get_one::<std::path::PathBuf>(FILE_OPTION));
    let Some(path) = named else {
        return Ok(first);
    };
    let text = read_text(path)?;
    let table: toml::Table = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    let command = command.mut_subcommand("serve", |mut serve| {
        for (key, value) in &table {
            if let (Some(values), Some(id)) = (as_arguments(value), option_id(&serve, key)) {
                serve = serve.mut_arg(id, |arg| arg.default_values(values));
            }
        }
        serve
    });
    reject_unknown(&command, &table, path)?;
    Ok(command.get_matches_from(line))
}

/// Reads a small text file, refusing one that cannot be what it is meant to be.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > limits::MAX_CONFIG_FILE_BYTES {
        bail!("{} is larger than {} bytes", path.display(), limits::MAX_CONFIG_FILE_BYTES);
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn reject_unknown(command: &Command, table: &toml::Table, path: &Path) -> anyhow::Result<()> {
    let serve = command.find_subcommand("serve").context("the command line has no `serve`")?;
    for (key, value) in table {
        if option_id(serve, key).is_none() {
            bail!("{}: there is no option `{key}`", path.display());
        }
        if as_arguments(value).is_none() {
            bail!("{}: `{key}` must be a text, a number, true or false, or a list of those", path.display());
        }
    }
    Ok(())
}

fn option_id(serve: &Command, key: &str) -> Option<String> {
    if key == FILE_OPTION {
        return None;
    }
    serve.get_arguments().find(|arg| arg.get_long() == Some(key)).map(|arg| arg.get_id().to_string())
}

fn as_arguments(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::Array(list) => list.iter().map(as_argument).collect(),
        scalar => Some(vec![as_argument(scalar)?]),
    }
}

fn as_argument(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}
