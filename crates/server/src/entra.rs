//! Tokens of Entra ID: whose are accepted.

use anyhow::{Context, bail};
use orrery_gateway::{Entra, EntraOptions};

use crate::config::{self, Config};
use crate::modes;

/// What the options say, if they say anything.
pub fn choose(config: &Config) -> anyhow::Result<Option<Entra>> {
    let is_named = !config.entra_issuers.is_empty() || config.entra_keys.is_some();
    if config.entra_development {
        if is_named {
            bail!("--entra-development believes every token, so it excludes --entra-issuer and --entra-keys");
        }
        if !config.bind.is_loopback() {
            bail!(
                "refusing to listen on {} with --entra-development: everybody could make a token",
                config.bind
            );
        }
        let options = EntraOptions { development: true, ..EntraOptions::default() };
        return Ok(Some(Entra::new(&options)?));
    }
    if !is_named {
        return Ok(None);
    }
    let path =
        config.entra_keys.as_ref().context("--entra-issuer needs --entra-keys, the issuer's public keys")?;
    modes::keep_unchanged(path)?;
    let options = EntraOptions {
        issuers: config.entra_issuers.clone(),
        audiences: config.entra_audiences.clone(),
        keys: config::read_text(path)?,
        development: false,
    };
    Entra::new(&options).map(Some).with_context(|| format!("in the key set {}", path.display()))
}
