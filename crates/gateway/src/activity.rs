//! Activity ids: the name under which a request appears in answers, errors and logs.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A UUID, the client's own if it sent one. Unique within the process, not secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ActivityId([u8; 36]);

impl ActivityId {
    /// The client's id when it has the form of a UUID, else a new one.
    pub fn choose(sent: Option<&str>) -> ActivityId {
        sent.and_then(ActivityId::parse).unwrap_or_else(ActivityId::next)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("an activity id is made of ASCII")
    }

    /// The id in the binary form of the service, whose first three groups are little-endian.
    pub fn of_guid(guid: &[u8; 16]) -> ActivityId {
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        ActivityId::lay_out(ORDER.map(|place| guid[place]))
    }

    fn parse(text: &str) -> Option<ActivityId> {
        let bytes: [u8; 36] = text.as_bytes().try_into().ok()?;
        let is_uuid = bytes.iter().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
        is_uuid.then_some(ActivityId(bytes))
    }

    fn next() -> ActivityId {
        static SEED: OnceLock<(u64, u64)> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (seed, salt) = *SEED.get_or_init(|| {
            let state = RandomState::new();
            (state.hash_one(0u8), state.hash_one(1u8))
        });
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let high = scramble(seed.wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let low = scramble(high ^ salt);
        ActivityId::format(high, low)
    }

    /// Lays 128 bits out as a version 4 UUID.
    fn format(high: u64, low: u64) -> ActivityId {
        let bits = u128::from(high) << 64 | u128::from(low);
        let bits = bits & !(0xF << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        ActivityId::lay_out(bits.to_be_bytes())
    }

    fn lay_out(bytes: [u8; 16]) -> ActivityId {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut out = [b'-'; 36];
        for (i, byte) in bytes.into_iter().enumerate() {
            let hyphens = [4, 6, 8, 10].iter().filter(|before| i >= **before).count();
            let place = 2 * i + hyphens;
            out[place] = HEX[usize::from(byte >> 4)];
            out[place + 1] = HEX[usize::from(byte & 0xF)];
        }
        ActivityId(out)
    }
}

impl fmt::Display for ActivityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_uuid_is_kept_and_other_text_is_not() {
        let sent = "05f918e3-621c-451f-afa3-ac5d698a9331";
        assert_eq!(ActivityId::choose(Some(sent)).as_str(), sent);
        for text in ["", "05f918e3", "05f918e3-621c-451f-afa3-ac5d698a933\u{e9}", "x".repeat(36).as_str()] {
            assert_ne!(ActivityId::choose(Some(text)).as_str(), text);
        }
    }

    #[test]
    fn new_ids_are_version_4_uuids_and_differ() {
        let ids: std::collections::HashSet<String> =
            (0..1_000).map(|_| ActivityId::choose(None).to_string()).collect();
        assert_eq!(ids.len(), 1_000);
        for id in ids {
            assert!(ActivityId::parse(&id).is_some(), "{id}");
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        }
    }
}
