//! Resource tokens: what the bearer of a permission shows.
//!
//! A token names its permission, the resource that this one opened when the token was made, and the time it is good
//! for, and carries a signature over all of it. What the permission allows is not in it: that is looked up at each request,
//! so that replacing or deleting a permission counts at once. The resource is there by its RID: a permission names it by
//! a link, and under the same link something else may have been made since.
//! The key is made from a read-write key of the account, so a change of that key ends the tokens made with it.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{KeyInit, Mac};
use orrery_cluster::Rid;

use super::{LENIENT, Signature, WRONG_SIGNATURE, not_valid_now};
use crate::errors::{Own, Refusal};

/// What the key is made for; another use of the account's keys has another text.
const PURPOSE: &[u8] = b"orrery resource token 2";
const FORMAT: u8 = 2;
/// Format, permission, resource, start and end.
const PAYLOAD_BYTES: usize = 1 + RID_BYTES + RID_BYTES + 8 + 8;
/// The longest RID; shorter ones are filled up with zeros.
const RID_BYTES: usize = 16;

/// What a token says that was signed here and is valid now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub permission: Rid,
    pub resource: Bound,
}

/// The RID of the resource that a token was made for; nothing but zeros where there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound(pub [u8; RID_BYTES]);

impl Bound {
    pub fn to(resource: Option<Rid>) -> Bound {
        let mut bytes = [0; RID_BYTES];
        if let Some(rid) = resource {
            bytes[..rid.as_bytes().len()].copy_from_slice(rid.as_bytes());
        }
        Bound(bytes)
    }
}

/// The key for tokens that belongs to a key of the account.
pub(super) fn key(account: &Signature) -> Signature {
    let mut mac = account.clone();
    mac.update(PURPOSE);
    Signature::new_from_slice(&mac.finalize().into_bytes()).expect("a key of any length is allowed")
}

pub(super) fn issue(key: &Signature, claim: Claim, now: SystemTime, seconds: u64) -> String {
    let start = seconds_of(now);
    let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
    payload.push(FORMAT);
    payload.extend_from_slice(claim.permission.as_bytes());
    payload.extend_from_slice(&claim.resource.0);
    payload.extend_from_slice(&start.to_be_bytes());
    payload.extend_from_slice(&start.saturating_add(seconds).to_be_bytes());
    let mut mac = key.clone();
    mac.update(&payload);
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    format!("type=resource&ver=1&sig={signature};{};", STANDARD.encode(payload))
}

/// Reads the part behind `sig=`; nothing of a token is believed before its signature is right.
pub(super) fn read(keys: &[Signature], text: &str, now: SystemTime) -> Result<Claim, Refusal> {
    let wrong = || Refusal::from(Own::Unauthorized(WRONG_SIGNATURE.into()));
    let mut parts = text.split(';');
    let (Some(signature), Some(payload)) = (parts.next(), parts.next()) else { return Err(wrong()) };
    let signature = LENIENT.decode(signature).map_err(|_| wrong())?;
    let payload = LENIENT.decode(payload).map_err(|_| wrong())?;
    let is_signed = keys.iter().any(|key| {
        let mut mac = key.clone();
        mac.update(&payload);
        mac.verify_slice(&signature).is_ok()
    });
    if !is_signed || payload.len() != PAYLOAD_BYTES || payload[0] != FORMAT {
        return Err(wrong());
    }
    let number = |from: usize| u64::from_be_bytes(payload[from..from + 8].try_into().expect("eight bytes"));
    let rid_at =
        |from: usize| -> [u8; RID_BYTES] { payload[from..from + RID_BYTES].try_into().expect("a RID") };
    let (permission, resource) = (rid_at(1), rid_at(1 + RID_BYTES));
    let (start, end) = (number(PAYLOAD_BYTES - 16), number(PAYLOAD_BYTES - 8));
    if seconds_of(now) >= end {
        let time = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        return Err(not_valid_now(time(start).unwrap_or(now), time(end), now));
    }
    Ok(Claim { permission: Rid::from_slice(&permission), resource: Bound(resource) })
}

fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Keys;
    use super::*;

    const ONE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const TWO: &str = "HxwdHhobGBkWFxQVEhMQEQ4PDA0KCwgJBgcEBQIDAAE=";

    fn permission() -> Claim {
        Claim { permission: Rid::from_slice(&[7; 16]), resource: Bound::to(Some(Rid::from_slice(&[9; 8]))) }
    }

    fn keys(keys: &[&'static str]) -> Keys {
        orrery_gateway::Keys::new(keys.iter().copied(), []).expect("base64").into()
    }

    fn outcome(keys: &Keys, token: &str, now: SystemTime) -> Result<Claim, u16> {
        let text = token.strip_prefix("type=resource&ver=1&sig=").expect("a token");
        read(&keys.tokens, text, now).map_err(|refusal| refusal.wire().status.as_u16())
    }

    #[test]
    fn tokens_are_good_for_their_time_and_their_key() {
        let (now, second) = (SystemTime::now(), Duration::from_secs(1));
        let (one, two) = (keys(&[ONE]), keys(&[TWO]));
        let both = keys(&[TWO, ONE]);
        let token = one.issue(permission(), now, 10);
        assert_eq!(outcome(&one, &token, now), Ok(permission()));
        assert_eq!(outcome(&both, &token, now), Ok(permission()), "the second key is valid too");
        assert_eq!(outcome(&two, &token, now), Err(401));
        assert_eq!(outcome(&one, &token, now + 9 * second), Ok(permission()));
        assert_eq!(outcome(&one, &token, now + 10 * second), Err(403));
    }

    proptest! {
        #[test]
        fn a_changed_token_is_no_token(place in 24usize..130, to in "[A-Za-z0-9+/]") {
            let keys = keys(&[ONE]);
            let now = SystemTime::now();
            let mut token = keys.issue(permission(), now, 10);
            let place = place.min(token.len() - 3);
            prop_assume!(token.is_char_boundary(place) && token[place..=place] != to && token[place..=place] != *";"
                && token[place..=place] != *"=");
            token.replace_range(place..=place, &to);
            // The last character before the padding has bits that mean nothing.
            if let Ok(rid) = outcome(&keys, &token, now) {
                prop_assert_eq!(rid, permission());
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let keys = keys(&[ONE]);
            prop_assert!(read(&keys.tokens, &text, SystemTime::now()).is_err());
        }
    }
}
