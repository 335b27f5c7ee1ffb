//! The certificate files of a data directory.
//!
//! `ca.pem` and `ca.key` live as long as the directory. `server.pem` and `server.key` are replaced
//! when `server.toml`, which says what they were made for, no longer fits. Each file is written
//! beside its name and moved into place, so a crash leaves the old file or the new one; keys are
//! readable by their owner only. A leaf that is damaged is made again from the authority. An authority
//! that is damaged is never replaced: clients trust it, so that is for the operator to decide.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::authority::{Authority, Leaf};
use crate::modes;

const CA_CERTIFICATE: &str = "ca.pem";
const CA_KEY: &str = "ca.key";
const LEAF_CERTIFICATE: &str = "server.pem";
const LEAF_KEY: &str = "server.key";
const LEAF_FACTS: &str = "server.toml";

const OWNER_ONLY: u32 = 0o600;
const EVERYBODY_READS: u32 = 0o644;

const DAMAGED_AUTHORITY: &str = "ca.pem or ca.key is damaged or not of the other; remove both to have a new \
                                 authority made, which clients must then be told to trust";

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
    modes::keep_folder(folder)?;
    for name in [CA_KEY, LEAF_KEY] {
        modes::keep_secret(&folder.join(name))?;
    }
    if let Some(authority) = load_authority(folder)? {
        if let Some(leaf) = load_leaf(folder).filter(|leaf| leaf.serves(&names, now)) {
            match authority.check(&leaf, now) {
                Ok(()) => return Ok((authority, leaf)),
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "the server certificate is damaged; another one is made");
                }
            }
        }
        tracing::info!("renewing the server certificate");
        let leaf = authority.issue(names, now).context(DAMAGED_AUTHORITY)?;
        keep_leaf(folder, &leaf);
        return Ok((authority, leaf));
    }
    let authority = Authority::make(&names, now)?;
    let leaf = authority.issue(names, now)?;
    // The certificate comes last: its presence says that the key is complete.
    write(&folder.join(CA_KEY), &authority.key_pem(), OWNER_ONLY)?;
    write(&folder.join(CA_CERTIFICATE), authority.certificate_pem(), EVERYBODY_READS)?;
    // Clients will trust this authority, so its name must not be lost with the power, nor that of its folder.
    folder.ancestors().take(2).try_for_each(|folder| File::open(folder)?.sync_all())?;
    keep_leaf(folder, &leaf);
    Ok((authority, leaf))
}

fn load_authority(folder: &Path) -> anyhow::Result<Option<Authority>> {
    let certificate_pem = match fs::read_to_string(folder.join(CA_CERTIFICATE)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && !is_bereft(folder) => return Ok(None),
        Err(error) => return Err(error).context(CA_CERTIFICATE).context(DAMAGED_AUTHORITY),
    };
    let key_pem = fs::read_to_string(folder.join(CA_KEY)).context(CA_KEY).context(DAMAGED_AUTHORITY)?;
    Authority::load(&key_pem, certificate_pem).context(DAMAGED_AUTHORITY).map(Some)
}

/// Whether an authority without its certificate is one that clients may trust. Its key alone is what a crash left of the first
/// start, since leaves are written after it; and an operator who wants another authority removes the key too.
fn is_bereft(folder: &Path) -> bool {
    let is_there = |name: &&str| folder.join(name).exists();
    is_there(&CA_KEY) && [LEAF_FACTS, LEAF_KEY, LEAF_CERTIFICATE].iter().any(is_there)
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

/// Saves a leaf if that is possible. A full disk must not take HTTPS away: the next start makes a leaf of its own.
pub fn keep_leaf(folder: &Path, leaf: &Leaf) {
    if let Err(error) = save_leaf(folder, leaf) {
        tracing::warn!(error = format!("{error:#}"), "the new server certificate is not kept");
    }
}

fn save_leaf(folder: &Path, leaf: &Leaf) -> anyhow::Result<()> {
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

    /// Some day on which all these certificates are made, long after the first that certificates can name.
    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(time::Duration::days(20_000));

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

    /// Text with one character in the middle of its base64 changed.
    fn flipped(text: &str) -> String {
        let middle = text.len() / 2;
        let other = if text.as_bytes()[middle] == b'A' { "B" } else { "A" };
        format!("{}{other}{}", &text[..middle], &text[middle + 1..])
    }

    #[test]
    fn a_leaf_that_clients_would_refuse_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let (authority, mut last) = load_or_make(path, names(&[]), NOW).expect("made");
        let stranger =
            Authority::make(&names(&[]), NOW).expect("made").issue(names(&[]), NOW).expect("issued");
        let damages: [(&str, String); 7] = [
            (LEAF_CERTIFICATE, stranger.certificate_pem.clone()),
            (LEAF_KEY, stranger.key_pem.clone()),
            (LEAF_CERTIFICATE, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
            (LEAF_KEY, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned()),
            (LEAF_CERTIFICATE, "flip".to_owned()),
            (LEAF_KEY, "flip".to_owned()),
            (LEAF_CERTIFICATE, authority.certificate_pem().to_owned()),
        ];
        for (name, damage) in damages {
            let file = path.join(name);
            let whole = fs::read_to_string(&file).expect("there");
            fs::write(&file, if damage == "flip" { flipped(&whole) } else { damage }).expect("written");
            let (kept, made) = load_or_make(path, names(&[]), NOW).expect("made again");
            assert_eq!(kept.certificate_pem(), authority.certificate_pem(), "the authority stays");
            assert_ne!(made.certificate_pem, last.certificate_pem, "{name}");
            authority.check(&made, NOW).expect("clients accept it");
            last = made;
        }
    }

    #[test]
    fn a_damaged_authority_is_reported_and_never_replaced() {
        for (name, is_damage) in [
            (CA_KEY, "nonsense"),
            (CA_KEY, "flip"),
            (CA_CERTIFICATE, "flip"),
            (CA_KEY, "gone"),
            (CA_CERTIFICATE, "gone"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            load_or_make(folder.path(), names(&[]), NOW).expect("made");
            let file = folder.path().join(name);
            let whole = fs::read_to_string(&file).expect("there");
            match is_damage {
                "gone" => fs::remove_file(&file).expect("removed"),
                "flip" => fs::write(&file, flipped(&whole)).expect("written"),
                other => fs::write(&file, other).expect("written"),
            }
            let before = fs::read(folder.path().join(CA_CERTIFICATE)).ok();
            let error = load_or_make(folder.path(), names(&[]), NOW).err().expect("it is refused");
            assert!(format!("{error:#}").contains("remove both"), "{name} {is_damage}: {error:#}");
            assert_eq!(fs::read(folder.path().join(CA_CERTIFICATE)).ok(), before);
        }
    }

    #[test]
    fn an_authority_of_which_nothing_is_left_or_that_was_never_whole_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, _) = load_or_make(folder.path(), names(&[]), NOW).expect("made");
        for name in [CA_CERTIFICATE, CA_KEY] {
            fs::remove_file(folder.path().join(name)).expect("removed");
        }
        let (second, _) = load_or_make(folder.path(), names(&[]), NOW).expect("made as the refusal says");
        assert_ne!(first.certificate_pem(), second.certificate_pem());
        // A crash between the key and the certificate of the first start.
        for name in [CA_CERTIFICATE, LEAF_FACTS, LEAF_KEY, LEAF_CERTIFICATE] {
            fs::remove_file(folder.path().join(name)).expect("removed");
        }
        load_or_make(folder.path(), names(&[]), NOW).expect("made");
    }

    #[test]
    fn loose_modes_of_keys_are_tightened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tls");
        load_or_make(&path, names(&[]), NOW).expect("made");
        let set =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        set(&path, 0o755);
        set(&path.join(CA_KEY), 0o644);
        set(&path.join(LEAF_KEY), 0o666);
        load_or_make(&path, names(&[]), NOW).expect("loaded");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(
            [mode(&path), mode(&path.join(CA_KEY)), mode(&path.join(LEAF_KEY))],
            [0o700, 0o600, 0o600]
        );
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
