//! Which server a command talks to, and with which key.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use http::Uri;

use crate::keys::EMULATOR_KEY;

const LOCAL: &str = "http://localhost:8081/";

/// Where a server is, and the key to it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub endpoint: Uri,
    pub key: String,
    pub ca_file: Option<PathBuf>,
}

/// What the command line and the environment say about it.
#[derive(Args)]
struct Options {
    /// The server to talk to; by default the one of the connection string, or else http://localhost:8081/.
    #[arg(long, env = "ORRERY_ENDPOINT", value_name = "URL")]
    endpoint: Option<Uri>,

    /// A key of its account; by default the one of the connection string, or else the well-known one of emulators.
    #[arg(long, env = "ORRERY_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,

    /// `AccountEndpoint=URL;AccountKey=KEY;`, as SDKs take it. It counts where neither an endpoint nor a key is named.
    #[arg(long, env = "AZURE_COSMOS_CONNECTION_STRING", value_name = "TEXT", hide_env_values = true)]
    connection_string: Option<String>,

    /// The authority that signs the server's certificate, in PEM, for HTTPS; by default those that the machine trusts.
    /// A server shows its own at `/_explorer/emulator.pem`.
    #[arg(long, env = "ORRERY_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl Endpoint {
    /// A server on this machine, reached over plain HTTP.
    pub fn here(endpoint: Uri, key: String) -> Endpoint {
        Endpoint { endpoint, key, ca_file: None }
    }
}

impl Options {
    fn resolve(self) -> Result<Endpoint, String> {
        let is_named = self.endpoint.is_some() || self.key.is_some();
        let connection = self.connection_string.filter(|text| !is_named && !text.trim().is_empty());
        let (endpoint, key) = match connection {
            Some(text) => parse(&text)?,
            None => (
                self.endpoint.unwrap_or_else(|| Uri::from_static(LOCAL)),
                self.key.unwrap_or_else(|| EMULATOR_KEY.to_owned()),
            ),
        };
        Ok(Endpoint { endpoint, key, ca_file: self.ca_file })
    }
}

/// Reads the parts of a connection string; what else it says concerns SDKs.
fn parse(text: &str) -> Result<(Uri, String), String> {
    let part = |wanted: &str| {
        let mut parts = text.split(';').filter_map(|part| part.split_once('='));
        parts.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let wrong =
        |what: &str| format!("the connection string has no {what}: AccountEndpoint=URL;AccountKey=KEY;");
    let endpoint =
        part("AccountEndpoint").and_then(|url| url.parse().ok()).ok_or_else(|| wrong("AccountEndpoint"))?;
    let key = part("AccountKey").filter(|key| !key.is_empty()).ok_or_else(|| wrong("AccountKey"))?;
    Ok((endpoint, key.to_owned()))
}

impl Args for Endpoint {
    fn augment_args(command: Command) -> Command {
        Options::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Options::augment_args_for_update(command)
    }
}

impl FromArgMatches for Endpoint {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Endpoint, clap::Error> {
        let resolved = Options::from_arg_matches(matches)?.resolve();
        resolved.map_err(|why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why + "\n"))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Endpoint::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: Option<&str>, key: Option<&str>, connection: Option<&str>) -> Options {
        Options {
            endpoint: endpoint.map(|url| url.parse().expect("a URL")),
            key: key.map(str::to_owned),
            connection_string: connection.map(str::to_owned),
            ca_file: None,
        }
    }

    #[test]
    fn the_connection_string_counts_where_nothing_else_is_named() {
        let connection = Some("AccountEndpoint=https://a.example:443/;AccountKey=a2V5PT0=;");
        let resolved = |options: Options| {
            let endpoint = options.resolve().expect("it is right");
            (endpoint.endpoint.to_string(), endpoint.key)
        };
        let own = |url: &str, key: &str| (url.to_owned(), key.to_owned());
        assert_eq!(resolved(options(None, None, connection)), own("https://a.example:443/", "a2V5PT0="));
        assert_eq!(resolved(options(None, None, None)), own(LOCAL, EMULATOR_KEY));
        assert_eq!(resolved(options(None, None, Some(" "))), own(LOCAL, EMULATOR_KEY));
        // The key of an account is not for a server that the account is not on.
        assert_eq!(resolved(options(Some("http://b/"), None, connection)), own("http://b/", EMULATOR_KEY));
        assert_eq!(resolved(options(None, Some("k"), connection)), own(LOCAL, "k"));
        for wrong in ["AccountKey=k", "AccountEndpoint=http://a/", "AccountEndpoint=a b;AccountKey=k", "x"] {
            assert!(options(None, None, Some(wrong)).resolve().is_err(), "{wrong}");
        }
    }
}
