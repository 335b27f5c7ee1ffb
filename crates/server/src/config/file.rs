//! Turns the TOML file into defaults of the command-line flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgMatches, Command};

use crate::limits;

/// The option that names the file; a file cannot name another one.
const FILE_OPTION: &str = "config";

/// Parses the command line. When the options of the subcommand name a configuration file, it is read
/// and the line is parsed once more over the file's values.
pub fn load(command: Command, line: &[OsString]) -> anyhow::Result<ArgMatches> {
    let first = command.clone().get_matches_from(line);
    let Some((subcommand, path)) = named_file(&first) else {
        return Ok(first);
    };
    let text = read_text(&path)?;
    let table: toml::Table = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    let command = command.mut_subcommand(&subcommand, |mut options| {
        for (key, value) in &table {
            if let (Some(values), Some(id)) = (as_arguments(value), option_id(&options, key)) {
                options = options.mut_arg(id, |arg| arg.default_values(values));
            }
        }
        options
    });
    let options = command.find_subcommand(&subcommand).context("a subcommand does not vanish")?;
    reject_unknown(options, &table, &path)?;
    Ok(command.get_matches_from(line))
}

/// The subcommand and the file that its options name; not all subcommands have options.
fn named_file(matches: &ArgMatches) -> Option<(String, PathBuf)> {
    let (subcommand, options) = matches.subcommand()?;
    let path = options.try_get_one::<PathBuf>(FILE_OPTION).ok().flatten()?;
    Some((subcommand.to_owned(), path.clone()))
}

/// Reads a small text file, refusing one that cannot be what it is meant to be.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len();
    if size > limits::MAX_CONFIG_FILE_BYTES {
        bail!("{} is larger than {} bytes", path.display(), limits::MAX_CONFIG_FILE_BYTES);
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn reject_unknown(options: &Command, table: &toml::Table, path: &Path) -> anyhow::Result<()> {
    for (key, value) in table {
        if option_id(options, key).is_none() {
            bail!("{}: there is no option `{key}`", path.display());
        }
        if as_arguments(value).is_none() {
            bail!("{}: `{key}` must be a text, a number, true or false, or a list of those", path.display());
        }
    }
    Ok(())
}

fn option_id(options: &Command, key: &str) -> Option<String> {
    if key == FILE_OPTION {
        return None;
    }
    options.get_arguments().find(|arg| arg.get_long() == Some(key)).map(|arg| arg.get_id().to_string())
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
