//! The certificate authority and the leaf certificates that it signs.
//!
//! Developers tell their machines to trust the authority, for ten years. An attacker who got hold of its key could then be any
//! site for them, so its certificate says for which names it may speak at all: those of this machine and of private networks,
//! and those that the operator has given when it was made. Clients refuse others, and they refuse a certificate that has one
//! such name among others; so a leaf gets only the names that its authority may speak for. Authorities of earlier versions
//! have no such bounds and go on as they are, because clients trust them.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData,
};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use time::{Duration, OffsetDateTime};

use crate::limits;

/// Endings of names that no public authority certifies, and that lead nowhere on the public network.
const PRIVATE_NAMES: [&str; 6] = ["localhost", "internal", "test", "local", "lan", "home.arpa"];
/// The addresses of this machine and of private networks.
const PRIVATE_ADDRESSES: [(&str, u8); 7] = [
    ("127.0.0.0", 8),
    ("::1", 128),
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("169.254.0.0", 16),
    ("fc00::", 7),
];

/// An authority: its key, and the certificate by which clients know it.
///
/// The certificate is never parsed again. What a signature needs of it (the name and the key
/// identifier) follows from the key alone, so a loaded authority signs exactly as the new one did.
pub struct Authority {
    key: KeyPair,
    certificate_pem: String,
}

/// A certificate for the server itself, with what is needed to know when it must be replaced.
pub struct Leaf {
    pub certificate_pem: String,
    pub key_pem: String,
    pub names: Vec<String>,
    pub expires_unix: i64,
}

impl Authority {
    /// An authority for these names and for private ones.
    pub fn make(names: &[String], now: OffsetDateTime) -> anyhow::Result<Authority> {
        let key = KeyPair::generate()?;
        let mut params = authority_params(&key);
        params.name_constraints =
            Some(NameConstraints { permitted_subtrees: permitted(names), excluded_subtrees: vec![] });
        params.not_before = now - Duration::DAY;
        params.not_after = now + Duration::days(limits::CA_LIFETIME_DAYS);
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Authority { key, certificate_pem })
    }

    pub fn load(key_pem: &str, certificate_pem: String) -> anyhow::Result<Authority> {
        let key = KeyPair::from_pem(key_pem)?;
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())?;
        ensure!(is_signed_by(&certificate, &key), "the certificate is not signed with the key");
        Ok(Authority { key, certificate_pem })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// A certificate for these names, as far as the authority may speak for them. Fails where clients that trust the
    /// authority would not accept it.
    pub fn issue(&self, names: Vec<String>, now: OffsetDateTime) -> anyhow::Result<Leaf> {
        let leaf = self.sign(&names, now)?;
        if self.check(&leaf, now).is_ok() {
            return Ok(leaf);
        }
        let may_speak_for = |name: &&String| {
            let alone = self.sign(std::slice::from_ref(*name), now);
            alone.is_ok_and(|leaf| self.check(&leaf, now).is_ok())
        };
        let (allowed, refused): (Vec<&String>, Vec<&String>) = names.iter().partition(may_speak_for);
        let allowed: Vec<String> = allowed.into_iter().cloned().collect();
        ensure!(!allowed.is_empty(), "clients would accept no certificate of this authority");
        tracing::warn!(
            ?refused,
            "these names are left out of the certificate, because the authority was made without them; \
             remove ca.pem and ca.key to have one made that may speak for them"
        );
        // It says that it is for all of them: asked for the same, it serves.
        let leaf = Leaf { names, ..self.sign(&allowed, now)? };
        self.check(&leaf, now)?;
        Ok(leaf)
    }

    /// Whether clients that trust this authority accept a leaf under the first of its names, and a server can use it.
    pub fn check(&self, leaf: &Leaf, now: OffsetDateTime) -> anyhow::Result<()> {
        super::server_config(self, leaf)?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate_pem.as_bytes())?)?;
        let provider = Arc::new(default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        let certificate = CertificateDer::from_pem_slice(leaf.certificate_pem.as_bytes())?;
        let name = leaf.names.first().context("a certificate has names")?.replacen('*', "any", 1);
        let now = std::time::Duration::from_secs(now.unix_timestamp().try_into()?);
        let now = UnixTime::since_unix_epoch(now);
        verifier.verify_server_cert(&certificate, &[], &ServerName::try_from(name)?, &[], now)?;
        Ok(())
    }

    fn sign(&self, names: &[String], now: OffsetDateTime) -> anyhow::Result<Leaf> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named("Orrery server");
        params.not_before = now - Duration::DAY;
        params.not_after = now + Duration::days(limits::LEAF_LIFETIME_DAYS);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let issuer_params = authority_params(&self.key);
        let issuer = Issuer::from_params(&issuer_params, &self.key);
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Leaf {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            names: names.to_vec(),
            expires_unix: params.not_after.unix_timestamp(),
        })
    }
}

impl Leaf {
    /// Whether this certificate still serves a host with these names.
    pub fn serves(&self, names: &[String], now: OffsetDateTime) -> bool {
        let renew_at = self.expires_unix - limits::LEAF_RENEWAL_MARGIN_DAYS * 24 * 60 * 60;
        self.names == names && now.unix_timestamp() < renew_at
    }
}

/// Whether a text can stand in a certificate as a host name or an address.
pub fn is_certificate_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '*');
    name.parse::<IpAddr>().is_ok() || (!name.is_empty() && name.len() <= 253 && name.chars().all(letters))
}

/// Whether a certificate is whole and was made with this key. Clients do not check the signature of an authority that they
/// trust, so damage in it would show only later, and elsewhere.
fn is_signed_by(certificate: &[u8], key: &KeyPair) -> bool {
    // A certificate is a sequence of what is signed, the name of the algorithm, and the signature: bits, with how many
    // of the last byte do not count in front.
    let parts = || {
        let (_, parts, _) = element(certificate)?;
        let (signed, _, rest) = element(parts)?;
        let (_, _, rest) = element(rest)?;
        let (_, signature, _) = element(rest)?;
        Some((signed, signature.strip_prefix(&[0])?))
    };
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.public_key_raw());
    parts().is_some_and(|(signed, signature)| public.verify(signed, signature).is_ok())
}

/// The first element of DER: all of it, its content, and what follows.
fn element(der: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, length) = match *der.get(1)? {
        short @ 0..=0x7f => (2, usize::from(short)),
        0x81 => (3, usize::from(*der.get(2)?)),
        0x82 => (4, usize::from(u16::from_be_bytes(der.get(2..4)?.try_into().ok()?))),
        _ => return None,
    };
    let (whole, rest) = der.split_at_checked(head + length)?;
    Some((whole, &whole[head..], rest))
}

/// What an authority may speak for: private names, and those it is made for with all below them.
fn permitted(names: &[String]) -> Vec<GeneralSubtree> {
    let private = PRIVATE_NAMES.iter().map(|name| GeneralSubtree::DnsName((*name).to_owned()));
    let addresses = PRIVATE_ADDRESSES.iter().filter_map(|(address, bits)| {
        let address: IpAddr = address.parse().ok()?;
        Some(GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, *bits)))
    });
    let named = names.iter().map(|name| match name.parse::<IpAddr>() {
        Ok(address) => {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, bits))
        }
        Err(_) => GeneralSubtree::DnsName(name.trim_start_matches("*.").to_owned()),
    });
    let mut permitted: Vec<GeneralSubtree> = private.chain(addresses).collect();
    for subtree in named {
        if !permitted.contains(&subtree) {
            permitted.push(subtree);
        }
    }
    permitted
}

fn authority_params(key: &KeyPair) -> CertificateParams {
    // Two data directories have two authorities; the key's own bytes keep their names apart, because
    // trust stores get confused by different keys under one name.
    let tail: String = key.der_bytes().iter().rev().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    params.distinguished_name = named(&format!("Orrery local authority {tail}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Orrery");
    name.push(DnType::CommonName, common_name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_authority_may_speak_only_for_private_names_and_its_own() {
        let authority =
            Authority::make(&names(&["localhost", "db.example.com", "*.wild.example.org", "8.8.8.8"]), now());
        let authority = authority.expect("made");
        for (name, is_accepted) in [
            ("localhost", true),
            ("a.localhost", true),
            ("host.docker.internal", true),
            ("db.test", true),
            ("127.0.0.1", true),
            ("127.1.2.3", true),
            ("::1", true),
            ("192.168.1.2", true),
            ("db.example.com", true),
            ("a.wild.example.org", true),
            ("*.wild.example.org", true),
            ("8.8.8.8", true),
            ("example.com", false),
            ("www.example.com", false),
            ("wild.example.com", false),
            ("com", false),
            ("1.1.1.1", false),
            ("2001:4860:4860::8888", false),
        ] {
            let leaf = authority.sign(&names(&[name]), now()).expect("signed");
            assert_eq!(authority.check(&leaf, now()).is_ok(), is_accepted, "{name}");
        }
    }

    #[test]
    fn names_that_came_later_do_not_spoil_a_certificate() {
        let authority = Authority::make(&names(&["localhost"]), now()).expect("made");
        let wanted = names(&["localhost", "www.example.com", "10.1.2.3"]);
        let leaf = authority.issue(wanted.clone(), now()).expect("issued");
        authority.check(&leaf, now()).expect("clients accept it");
        assert_eq!(leaf.names, wanted, "it is not made again for the same names");
    }

    #[test]
    fn authorities_without_bounds_go_on() {
        let key = KeyPair::generate().expect("a key");
        let mut params = authority_params(&key);
        params.not_before = now() - Duration::DAY;
        params.not_after = now() + Duration::DAY;
        let certificate = params.self_signed(&key).expect("signed").pem();
        let old = Authority::load(&key.serialize_pem(), certificate).expect("loaded");
        let leaf = old.issue(names(&["www.example.com", "localhost"]), now()).expect("issued");
        old.check(&leaf, now()).expect("clients accept it");
    }
}
