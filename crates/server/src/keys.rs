//! The account's keys: where they come from, and when the publicly known one may be used.
//!
//! Official SDKs and tools ship with one well-known key for local emulators. Anybody on the network
//! knows it, so it opens the account only while the server listens on loopback.

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use orrery_gateway::{Keys, KeysError};

use crate::{config, limits, modes};

/// The key that every emulator of this protocol accepts; it is published in the vendor's documentation.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Keys in the base64 form that connection strings carry.
#[derive(Clone, Default)]
pub struct AccountKeys {
    pub primary: String,
    pub secondary: Option<String>,
    pub primary_readonly: Option<String>,
    pub secondary_readonly: Option<String>,
}

impl AccountKeys {
    /// The keys for a server bound to `bind`: those of the file, or the emulator key on loopback.
    pub fn choose(
        bind: IpAddr,
        key_file: Option<&Path>,
        allow_emulator_key: bool,
    ) -> anyhow::Result<AccountKeys> {
        let keys = match key_file {
            Some(path) => {
                modes::keep_secret(path)?;
                let text = config::read_text(path)?;
                parse(&text).with_context(|| format!("in the key file {}", path.display()))?
            }
            None => AccountKeys { primary: EMULATOR_KEY.to_owned(), ..AccountKeys::default() },
        };
        if !bind.is_loopback() && keys.uses_emulator_key() {
            if allow_emulator_key {
                tracing::warn!(%bind, "the well-known emulator key opens this account: a client that reaches it has everything");
                return Ok(keys);
            }
            bail!("{}", off_loopback_message(bind));
        }
        Ok(keys)
    }

    pub fn uses_emulator_key(&self) -> bool {
        self.all().any(|key| key == EMULATOR_KEY)
    }

    /// The keys in the form in which the gateway verifies with them.
    pub fn for_gateway(&self) -> Result<Keys, KeysError> {
        let read_write = std::iter::once(self.primary.as_str()).chain(self.secondary.as_deref());
        let read_only =
            self.primary_readonly.as_deref().into_iter().chain(self.secondary_readonly.as_deref());
        Keys::new(read_write, read_only)
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let optional = [&self.secondary, &self.primary_readonly, &self.secondary_readonly];
        std::iter::once(self.primary.as_str()).chain(optional.into_iter().filter_map(|key| key.as_deref()))
    }

    fn slot(&mut self, name: &str) -> Option<KeySlot<'_>> {
        match name {
            "primary" => Some(KeySlot::Required(&mut self.primary)),
            "secondary" => Some(KeySlot::Optional(&mut self.secondary)),
            "primary-readonly" => Some(KeySlot::Optional(&mut self.primary_readonly)),
            "secondary-readonly" => Some(KeySlot::Optional(&mut self.secondary_readonly)),
            _ => None,
        }
    }
}

enum KeySlot<'a> {
    Required(&'a mut String),
    Optional(&'a mut Option<String>),
}

fn off_loopback_message(bind: IpAddr) -> String {
    format!(
        "refusing to listen on {bind} with the well-known emulator key: everybody knows it.\n\
         Where nobody else can reach it, --allow-emulator-key permits that.\n\
         Make keys of your own and name their file, for example:\n\
         \n    printf 'primary = \"%s\"\\nsecondary = \"%s\"\\n' \"$(openssl rand -base64 64 | tr -d '\\n')\" \
         \"$(openssl rand -base64 64 | tr -d '\\n')\" > keys.toml && chmod 600 keys.toml\
         \n    orrery serve --bind {bind} --key-file keys.toml\n\n\
         The file may also hold primary-readonly and secondary-readonly keys. \
         ORRERY_KEY_FILE and `key-file` in the configuration file do the same."
    )
}

/// Reads `name = key` lines; quotes around the key are optional, so both TOML and plain lines work.
fn parse(text: &str) -> anyhow::Result<AccountKeys> {
    let mut keys = AccountKeys::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let (name, value) =
            line.split_once('=').with_context(|| format!("line {number}: expected `name = key`"))?;
        let value = value.trim().trim_matches('"');
        check(value).with_context(|| format!("line {number}"))?;
        match keys.slot(name.trim()) {
            Some(KeySlot::Required(slot)) if slot.is_empty() => *slot = value.to_owned(),
            Some(KeySlot::Optional(slot)) if slot.is_none() => *slot = Some(value.to_owned()),
            Some(_) => bail!("line {number}: `{}` is given twice", name.trim()),
            None => bail!(
                "line {number}: expected primary, secondary, primary-readonly or secondary-readonly, not `{}`",
                name.trim()
            ),
        }
    }
    if keys.primary.is_empty() {
        bail!("there is no `primary` key");
    }
    Ok(keys)
}

fn check(key: &str) -> anyhow::Result<()> {
    let bytes = STANDARD.decode(key).context("the key is not base64")?;
    if !(limits::MIN_KEY_BYTES..=limits::MAX_KEY_BYTES).contains(&bytes.len()) {
        bail!("a key must have {} to {} bytes", limits::MIN_KEY_BYTES, limits::MAX_KEY_BYTES);
    }
    let mut values = [false; 256];
    bytes.iter().for_each(|byte| values[usize::from(*byte)] = true);
    let different = values.iter().filter(|is_there| **is_there).count();
    if different < limits::MIN_KEY_VALUES {
        bail!(
            "the key has only {different} different bytes and can be guessed; make one with `openssl rand -base64 64`"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn plain_lines_and_toml_name_the_same_keys() {
        for text in [
            format!("# mine\nprimary={KEY}\nsecondary-readonly = {KEY}\n"),
            format!("primary = \"{KEY}\"\n\nsecondary-readonly = \"{KEY}\""),
        ] {
            let keys = parse(&text).expect("the file is right");
            assert_eq!(keys.primary, KEY);
            assert_eq!(keys.secondary_readonly.as_deref(), Some(KEY));
            assert!(keys.secondary.is_none() && keys.primary_readonly.is_none());
        }
    }

    #[test]
    fn broken_key_files_are_refused() {
        let cases = [
            String::new(),
            format!("secondary = {KEY}"),
            String::from("primary = not base64"),
            String::from("primary = AAAA"),
            String::from("primary"),
            format!("tertiary = {KEY}"),
            format!("primary = {KEY}\nprimary = {KEY}"),
        ];
        for text in cases {
            assert!(parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_that_can_be_guessed_are_refused() {
        let repeated = |text: &str, times: usize| STANDARD.encode(text.repeat(times));
        for key in [
            STANDARD.encode([0; 16]),
            STANDARD.encode([0; 64]),
            STANDARD.encode([255; 64]),
            STANDARD.encode([0; 1024]),
            repeated("ab", 32),
            repeated("1234567", 9),
            STANDARD.encode([1; 15]),
        ] {
            let error = parse(&format!("primary = {KEY}\nsecondary = {key}\n")).err();
            assert!(error.is_some(), "{key}");
        }
        assert!(check(EMULATOR_KEY).is_ok() && check(KEY).is_ok());
    }

    #[test]
    fn the_emulator_key_opens_loopback_only() {
        for (bind, allowed) in [("127.0.0.1", true), ("::1", true), ("127.9.9.9", true), ("0.0.0.0", false)] {
            let bind = bind.parse().expect("an address");
            assert_eq!(AccountKeys::choose(bind, None, false).is_ok(), allowed, "{bind}");
            assert!(AccountKeys::choose(bind, None, true).is_ok(), "{bind}");
        }
    }
}
