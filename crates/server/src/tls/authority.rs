//! The certificate authority and the leaf certificates that it signs.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData,
};
use time::{Duration, OffsetDateTime};

use crate::limits;

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
    pub fn make(now: OffsetDateTime) -> anyhow::Result<Authority> {
        let key = KeyPair::generate()?;
        let mut params = authority_params(&key);
        params.not_before = now - Duration::DAY;
        params.not_after = now + Duration::days(limits::CA_LIFETIME_DAYS);
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Authority { key, certificate_pem })
    }

    pub fn load(key_pem: &str, certificate_pem: String) -> anyhow::Result<Authority> {
        Ok(Authority { key: KeyPair::from_pem(key_pem)?, certificate_pem })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    pub fn issue(&self, names: Vec<String>, now: OffsetDateTime) -> anyhow::Result<Leaf> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.clone())?;
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
            names,
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
