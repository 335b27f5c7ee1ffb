//! The account's keys: what HTTP gateways verify signatures with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit};
use sha2::Sha256;

/// A key, ready to sign or to verify with: a clone takes what is signed, piece by piece.
pub type Signature = Hmac<Sha256>;

/// The account's keys, ready to verify with.
#[derive(Clone)]
pub struct Keys {
    read_write: Vec<Signature>,
    read_only: Vec<Signature>,
}

/// What the bearer of a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    ReadWrite,
    ReadOnly,
}

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("an account key is not base64")]
    NotBase64,
    #[error("an account needs at least one read-write key")]
    NoKey,
}

impl Keys {
    /// Takes keys in the base64 form of connection strings: one or two of each kind.
    pub fn new<'k>(
        read_write: impl IntoIterator<Item = &'k str>,
        read_only: impl IntoIterator<Item = &'k str>,
    ) -> Result<Keys, KeysError> {
        let read_write = read_write.into_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        if read_write.is_empty() {
            return Err(KeysError::NoKey);
        }
        let read_only = read_only.into_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
        Ok(Keys { read_write, read_only })
    }

    /// The keys that may write; there is at least one.
    pub fn read_write(&self) -> &[Signature] {
        &self.read_write
    }

    /// Which kind of key made a signature, given how one is checked.
    pub fn kind_of(&self, is_signed_by: impl Fn(&Signature) -> bool) -> Option<KeyKind> {
        if self.read_write.iter().any(&is_signed_by) {
            return Some(KeyKind::ReadWrite);
        }
        self.read_only.iter().any(is_signed_by).then_some(KeyKind::ReadOnly)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(hidden)")
    }
}

/// A key in its base64 form, ready to sign with.
pub fn prepare(key: &str) -> Result<Signature, KeysError> {
    let bytes = STANDARD.decode(key).map_err(|_| KeysError::NotBase64)?;
    Ok(Signature::new_from_slice(&bytes).expect("a key of any length is allowed"))
}

#[cfg(test)]
mod tests {
    use hmac::Mac;

    use super::*;

    #[test]
    fn a_signature_tells_the_kind_of_its_key() {
        let keys = Keys::new(["Zmlyc3Q=", "c2Vjb25k"], ["cmVhZGVy"]).expect("base64");
        for (key, wanted) in [
            ("Zmlyc3Q=", Some(KeyKind::ReadWrite)),
            ("c2Vjb25k", Some(KeyKind::ReadWrite)),
            ("cmVhZGVy", Some(KeyKind::ReadOnly)),
            ("b3RoZXI=", None),
        ] {
            let signed = prepare(key).expect("base64").chain_update("text").finalize().into_bytes();
            let is_signed_by =
                |key: &Signature| key.clone().chain_update("text").verify_slice(&signed).is_ok();
            assert_eq!(keys.kind_of(is_signed_by), wanted, "{key}");
        }
    }

    #[test]
    fn keys_are_base64_and_at_least_one_writes() {
        assert!(matches!(Keys::new([], ["cmVhZGVy"]), Err(KeysError::NoKey)));
        assert!(matches!(Keys::new(["%"], []), Err(KeysError::NotBase64)));
        assert!(matches!(Keys::new(["Zmlyc3Q="], ["%"]), Err(KeysError::NotBase64)));
    }
}
