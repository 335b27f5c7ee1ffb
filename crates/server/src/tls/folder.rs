//! The certificate files of a data directory.
//!
//! `ca.pem` and `ca.key` live as long as the directory. `server.pem` and `server.key` are replaced
//! when `server.toml`, which says what they were made for, no longer fits. Each file is written
//! beside its name and moved into place, so a crash leaves the old file or the new one; keys are
//! readable by their owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Context;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::authority::{Authority, Leaf};

const CA_CERTIFICATE: &str = "ca.pem";
const CA_KEY: &str = "ca.key";
const LEAF_CERTIFICATE: &str = "server.pem";
const LEAF_KEY: &str = "server.key";
const LEAF_FACTS: &str = "server.toml";

const OWNER_ONLY: u32 = 0o600;
const EVERYBODY_READS: u32 = 0o644;

/// What the leaf certificate was made for; asked instead of parsing the certificate.
#[derive(Serialize, Deserialize)]
struct LeafFacts {
    expires_unix: i64,
    names: Vec<String>,
}

pub fn load_or_make(
    folder: &Path,
    names: Vec<String>,
    now: OffsetDateTime,
) -> anyhow::Result<(Authority, Leaf)> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if let Some(authority) = load_authority(folder)? {
        if let Some(leaf) = load_leaf(folder).filter(|leaf| leaf.serves(&names, now)) {
            return Ok((authority, leaf));
        }
        tracing::info!("renewing the server certificate");
        let leaf = authority.issue(names, now)?;
        save_leaf(folder, &leaf)?;
        return Ok((authority, leaf));
    }
    let authority = Authority::make(now)?;
    let leaf = authority.issue(names, now)?;
    // The certificate comes last: its presence says that the key is complete.
    write(&folder.join(CA_KEY), &authority.key_pem(), OWNER_ONLY)?;
    write(&folder.join(CA_CERTIFICATE), authority.certificate_pem(), EVERYBODY_READS)?;
    // Clients will trust this authority, so its name must not be lost with the power, nor that of its folder.
    folder.ancestors().take(2).try_for_each(|folder| File::open(folder)?.sync_all())?;
    save_leaf(folder, &leaf)?;
    Ok((authority, leaf))
}

fn load_authority(folder: &Path) -> anyhow::Result<Option<Authority>> {
    let certificate_pem = match fs::read_to_string(folder.join(CA_CERTIFICATE)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(CA_CERTIFICATE),
    };
    let key_pem = fs::read_to_string(folder.join(CA_KEY)).context(CA_KEY)?;
    Authority::load(&key_pem, certificate_pem)
        .context("ca.pem or ca.key is damaged; remove both to have a new authority made")
        .map(Some)
}

/// A leaf that is missing or damaged is simply made again, so any failure means "none".
fn load_leaf(folder: &Path) -> Option<Leaf> {
    let facts: LeafFacts = toml::from_str(&fs::read_to_string(folder.join(LEAF_FACTS)).ok()?).ok()?;
    let certificate_pem = fs::read_to_string(folder.join(LEAF_CERTIFICATE)).ok()?;
    let key_pem = fs::read_to_string(folder.join(LEAF_KEY)).ok()?;
    CertificateDer::from_pem_slice(certificate_pem.as_bytes()).ok()?;
    PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).ok()?;
    Some(Leaf { certificate_pem, key_pem, names: facts.names, expires_unix: facts.expires_unix })
}

pub fn save_leaf(folder: &Path, leaf: &Leaf) -> anyhow::Result<()> {
    let facts = LeafFacts { expires_unix: leaf.expires_unix, names: leaf.names.clone() };
    // Facts go first and come back last: a crash in between leaves no facts, and the leaf is made again.
    let facts_path = folder.join(LEAF_FACTS);
    match fs::remove_file(&facts_path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    write(&folder.join(LEAF_KEY), &leaf.key_pem, OWNER_ONLY)?;
    write(&folder.join(LEAF_CERTIFICATE), &leaf.certificate_pem, EVERYBODY_READS)?;
    write(&facts_path, &toml::to_string(&facts)?, EVERYBODY_READS)
}

fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let temporary = path.with_extension("new");
    // A leftover of a crash could have other permissions; start from nothing.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Some day on which all these certificates are made.
    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn names(extra: &[&str]) -> Vec<String> {
        ["localhost", "127.0.0.1"].iter().chain(extra).map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_authority_stays_and_the_leaf_follows_its_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tls");
        let (first_ca, first) = load_or_make(&path, names(&[]), NOW).expect("made");
        let (again_ca, again) = load_or_make(&path, names(&[]), NOW).expect("loaded");
        assert_eq!(first_ca.certificate_pem(), again_ca.certificate_pem());
        assert_eq!(first.certificate_pem, again.certificate_pem);

        let (renamed_ca, renamed) = load_or_make(&path, names(&["db.test"]), NOW).expect("renewed");
        assert_eq!(first_ca.certificate_pem(), renamed_ca.certificate_pem());
        assert_ne!(first.certificate_pem, renamed.certificate_pem);
    }

    #[test]
    fn an_expiring_or_damaged_leaf_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let (_, first) = load_or_make(path, names(&[]), NOW).expect("made");
        let soon = first.expires_unix - 400 * 24 * 60 * 60;
        let facts = LeafFacts { expires_unix: soon, names: names(&[]) };
        fs::write(path.join(LEAF_FACTS), toml::to_string(&facts).expect("toml")).expect("written");
        let (_, second) = load_or_make(path, names(&[]), NOW).expect("renewed");
        assert_ne!(first.certificate_pem, second.certificate_pem);

        fs::remove_file(path.join(LEAF_KEY)).expect("removed");
        let (_, third) = load_or_make(path, names(&[]), NOW).expect("renewed");
        assert_ne!(second.certificate_pem, third.certificate_pem);
    }

    #[test]
    fn a_damaged_authority_is_reported_and_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        load_or_make(folder.path(), names(&[]), NOW).expect("made");
        fs::write(folder.path().join(CA_KEY), "nonsense").expect("written");
        assert!(load_or_make(folder.path(), names(&[]), NOW).is_err());
    }

    #[test]
    fn keys_are_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().expect("a folder");
        load_or_make(folder.path(), names(&[]), NOW).expect("made");
        for name in [CA_KEY, LEAF_KEY] {
            let mode = fs::metadata(folder.path().join(name)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, OWNER_ONLY, "{name}");
        }
    }
}
