//! Tokens of Entra ID: JSON Web Tokens that an issuer signs, for an audience, for a while.
//!
//! The operator says which issuers and audiences are right and gives the issuers' public keys. The server fetches
//! nothing: a database should start and answer without the network. Only RS256 is accepted, whatever a token claims
//! about itself. In development mode signatures, issuers and audiences are not checked; emulators do the same.
//!
//! A claim in another form than the standard gives it is not a claim that is missing: `nbf` as a text would else be no
//! limit at all, and of a list of issuers any one would do. Such tokens are refused in both modes, and so are those
//! whose header names parameters that a reader must understand (`crit`), since this one understands none.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::{Deserialize, Deserializer};

mod provider;

/// How far the clocks of issuers may be from ours, in seconds.
const LEEWAY: u64 = 60;

/// Groups of a principal that are looked at.
const GROUPS_MAX: usize = 256;

/// What an operator says about tokens of Entra ID.
#[derive(Clone, Debug, Default)]
pub struct EntraOptions {
    pub issuers: Vec<String>,
    pub audiences: Vec<String>,
    /// A JSON Web Key Set with the issuers' public RSA keys.
    pub keys: String,
    /// Believe every token that is neither expired nor early.
    pub development: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum EntraError {
    #[error("the key set is not a JSON Web Key Set: {0}")]
    NotAKeySet(String),
    #[error("the key set has no RSA key")]
    NoKey,
    #[error("at least one issuer and one audience are needed")]
    NobodyToTrust,
}

/// Why a token is not accepted, with the service's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TokenError {
    pub substatus: u32,
    pub message: &'static str,
}

/// Checks tokens of Entra ID.
pub struct Entra {
    keys: Vec<(Option<String>, DecodingKey)>,
    validation: Validation,
    development: bool,
}

/// Who a token was issued to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The object id.
    pub id: String,
    pub groups: Vec<String>,
    /// Nobody has checked the token.
    pub is_development: bool,
}

#[derive(Deserialize)]
struct Claims {
    oid: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    exp: f64,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<f64>,
    // Read for its type alone: the library takes lists as well.
    #[serde(default, deserialize_with = "present")]
    #[expect(dead_code, reason = "the value is checked by the library")]
    iss: Option<String>,
}

/// What the header of a token says that a reader must understand.
#[derive(Deserialize)]
struct Critical {
    crit: Option<serde_json::Value>,
}

/// A claim that is there has a value; null is none.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl Entra {
    pub fn new(options: &EntraOptions) -> Result<Entra, EntraError> {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_issuer(&options.issuers);
        validation.set_audience(&options.audiences);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY;
        provider::install();
        if options.development {
            return Ok(Entra { keys: vec![], validation, development: true });
        }
        if options.issuers.is_empty() || options.audiences.is_empty() {
            return Err(EntraError::NobodyToTrust);
        }
        let set: JwkSet =
            serde_json::from_str(&options.keys).map_err(|error| EntraError::NotAKeySet(error.to_string()))?;
        let is_rsa = |algorithm: &AlgorithmParameters| matches!(algorithm, AlgorithmParameters::RSA(_));
        let mut keys = Vec::new();
        for key in set.keys.iter().filter(|key| is_rsa(&key.algorithm)) {
            let decoding =
                DecodingKey::from_jwk(key).map_err(|error| EntraError::NotAKeySet(error.to_string()))?;
            keys.push((key.common.key_id.clone(), decoding));
        }
        if keys.is_empty() {
            Err(EntraError::NoKey)
        } else {
            Ok(Entra { keys, validation, development: false })
        }
    }

    pub fn verify(&self, token: &str, now: SystemTime) -> Result<Principal, TokenError> {
        let claims = if self.development { believe(token, now)? } else { self.check(token)? };
        let id = claims.oid.filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| refusal(5011, "The token names no object identifier (oid)."))?;
        let groups = claims.groups.into_iter().take(GROUPS_MAX).collect();
        Ok(Principal { id, groups, is_development: self.development })
    }

    fn check(&self, token: &str) -> Result<Claims, TokenError> {
        let header = decode_header(token).map_err(|error| wrong(&error))?;
        if header.crit.is_some() {
            return Err(critical());
        }
        // Keys without a name serve for all tokens; a token that names a key is checked with no other.
        let candidates = self.keys.iter().filter(|(name, _)| match (name, &header.kid) {
            (Some(name), Some(wanted)) => name == wanted,
            _ => true,
        });
        let mut failure = refusal(5200, "The token is signed with a key that this account does not know.");
        for (_, key) in candidates {
            match decode::<Claims>(token, key, &self.validation) {
                Ok(token) => return Ok(token.claims),
                Err(error) => failure = wrong(&error),
            }
        }
        Err(failure)
    }
}

/// Development mode: the claims of a token as they stand.
fn believe(token: &str, now: SystemTime) -> Result<Claims, TokenError> {
    let malformed = || refusal(5003, "The token is not a JSON Web Token.");
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    let decode = |part: &str| URL_SAFE.decode(part.trim_end_matches('='));
    let header = decode(header).map_err(|_| malformed())?;
    let header: Critical = serde_json::from_slice(&header).map_err(|_| malformed())?;
    if header.crit.is_some() {
        return Err(critical());
    }
    let claims = decode(claims).map_err(|_| malformed())?;
    let claims: Claims = serde_json::from_slice(&claims).map_err(|_| malformed())?;
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    if claims.exp <= seconds {
        return Err(refusal(5006, EXPIRED));
    }
    match claims.nbf {
        Some(begin) if begin < 0.0 => Err(malformed()),
        Some(begin) if begin > seconds + LEEWAY as f64 => Err(refusal(5005, TOO_EARLY)),
        _ => Ok(claims),
    }
}

const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

const EXPIRED: &str = "The token is expired. Get another one and try again.";
const TOO_EARLY: &str = "The token is not valid yet.";

fn critical() -> TokenError {
    refusal(
        5003,
        "The header of the token has critical parameters (crit) that this account does not understand.",
    )
}

pub fn not_configured() -> TokenError {
    refusal(5002, "Tokens of Microsoft Entra ID are not accepted by this account: no issuer is configured.")
}

fn wrong(error: &Error) -> TokenError {
    let (substatus, message) = match error.kind() {
        ErrorKind::InvalidSignature => (5004, "The signature of the token is not valid."),
        ErrorKind::ImmatureSignature => (5005, TOO_EARLY),
        ErrorKind::ExpiredSignature => (5006, EXPIRED),
        ErrorKind::InvalidIssuer => {
            (5007, "The token was issued by an authority that this account does not trust.")
        }
        ErrorKind::InvalidAudience => (5008, "The token was issued for another audience than this account."),
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => {
            (5004, "The token is not signed with RS256.")
        }
        _ => (5003, "The token is not a JSON Web Token with the claims that are needed."),
    };
    refusal(substatus, message)
}

fn refusal(substatus: u32, message: &'static str) -> TokenError {
    TokenError { substatus, message }
}
