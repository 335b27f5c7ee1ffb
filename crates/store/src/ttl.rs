//! Time to live: how long an item is there after its last write.
//!
//! The container says whether items expire at all and how long they live by default; an item may say otherwise for
//! itself. Only what the item says is stored with it, so a changed default takes effect at once and writes nothing.
//! An expired item is hidden from every reader from that very moment on, and is deleted some time later.
//!
//! To find what is to be deleted there are two queues. Items that live by the default expire in the order of their
//! writes, and that is the order of the feed. Items with a time of their own have an entry under it, whether or not the
//! container has time to live switched on, because it may be switched on later.

use orrery_doc::{Doc, Value, json};

use crate::item::TICKS_PER_SECOND;
use crate::limits::TTL_SECONDS_MAX;
use crate::{ItemHeader, OpError};

/// In a header: the item lives as long as its container says.
pub const TTL_BY_DEFAULT: u32 = 0;
/// In a header: the item never expires.
pub const TTL_NEVER: u32 = u32::MAX;

/// The property of an item that says how many seconds it lives.
const PROPERTY: &str = "ttl";
/// Letters of an illegal value that are shown to the client.
const SHOWN_MAX: usize = 64;

/// What a container says about the life of its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultTtl {
    /// Nothing expires, whatever items say.
    #[default]
    Off,
    /// Items expire that say so themselves.
    Never,
    /// Items expire after so many seconds, unless they say otherwise.
    Seconds(u32),
}

/// Which items of a container are there at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    default: DefaultTtl,
    now: u64,
}

impl Lifetimes {
    /// For those who look after the stored items themselves: everything is there.
    pub const ENDLESS: Lifetimes = Lifetimes { default: DefaultTtl::Off, now: 0 };

    /// `now` in units of 100 ns since 1970.
    pub fn at(default: DefaultTtl, now: u64) -> Lifetimes {
        Lifetimes { default, now }
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn default_ttl(&self) -> DefaultTtl {
        self.default
    }

    /// Whether any item can be expired.
    pub fn can_end(&self) -> bool {
        self.default != DefaultTtl::Off
    }

    #[inline]
    pub fn is_over(&self, header: &ItemHeader) -> bool {
        let seconds = match (self.default, header.ttl) {
            (DefaultTtl::Off, _) | (_, TTL_NEVER) | (DefaultTtl::Never, TTL_BY_DEFAULT) => return false,
            (DefaultTtl::Seconds(seconds), TTL_BY_DEFAULT) => seconds,
            (_, own) => own,
        };
        ends_at(header.time, seconds) <= self.now
    }
}

impl ItemHeader {
    /// When the item expires by what it says itself.
    pub fn own_end(&self) -> Option<u64> {
        match self.ttl {
            TTL_BY_DEFAULT | TTL_NEVER => None,
            seconds => Some(ends_at(self.time, seconds)),
        }
    }
}

/// The moment from which on an item that was written at `time` is gone.
pub(crate) fn ends_at(time: u64, seconds: u32) -> u64 {
    time.saturating_add(u64::from(seconds) * TICKS_PER_SECOND)
}

/// What an item says about its own life, as headers keep it.
pub(crate) fn own_ttl(doc: &Doc) -> Result<u32, OpError> {
    let value = doc.root().get(PROPERTY);
    match (value, value.as_i64()) {
        (Value::Undefined, _) => Ok(TTL_BY_DEFAULT),
        (_, Some(-1)) => Ok(TTL_NEVER),
        (_, Some(seconds)) if (1..=i64::from(TTL_SECONDS_MAX)).contains(&seconds) => Ok(seconds as u32),
        _ => Err(OpError::InvalidTtl(shown(value))),
    }
}

/// The value as the message shows it: text without quotes, and not all of it.
fn shown(value: Value<'_>) -> String {
    let text = match value {
        Value::Str(text) => text.to_owned(),
        other => {
            let mut text = Vec::new();
            json::write(other, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    };
    text.chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Etag, Lsn};

    fn header(time: u64, ttl: u32) -> ItemHeader {
        let time = time * TICKS_PER_SECOND;
        ItemHeader {
            flags: 0,
            lsn: Lsn(1),
            place: 0,
            time,
            etag: Etag(0),
            ttl,
            rid: 1,
            json_bytes: 1,
            origin: None,
        }
    }

    #[test]
    fn the_container_and_the_item_decide_together() {
        use DefaultTtl::{Never, Off, Seconds};
        for (default, own, seconds_later, over) in [
            (Off, TTL_BY_DEFAULT, 1_000, false),
            (Off, 5, 1_000, false),
            (Off, TTL_NEVER, 1_000, false),
            (Never, TTL_BY_DEFAULT, 1_000, false),
            (Never, TTL_NEVER, 1_000, false),
            (Never, 5, 4, false),
            (Never, 5, 5, true),
            (Seconds(10), TTL_BY_DEFAULT, 9, false),
            (Seconds(10), TTL_BY_DEFAULT, 10, true),
            (Seconds(10), TTL_NEVER, 1_000, false),
            (Seconds(10), 5, 5, true),
            (Seconds(10), 20, 10, false),
            (Seconds(10), 20, 20, true),
        ] {
            let lifetimes = Lifetimes::at(default, (100 + seconds_later) * TICKS_PER_SECOND);
            let is_over = lifetimes.is_over(&header(100, own));
            assert_eq!(is_over, over, "{default:?} {own} after {seconds_later} s");
        }
    }

    #[test]
    fn the_longest_life_does_not_overflow() {
        let lifetimes = Lifetimes::at(DefaultTtl::Seconds(TTL_SECONDS_MAX), u64::MAX - 1);
        assert!(!lifetimes.is_over(&header(u64::MAX / TICKS_PER_SECOND, TTL_BY_DEFAULT)));
        assert!(lifetimes.is_over(&header(0, TTL_SECONDS_MAX)));
    }

    #[test]
    fn an_item_may_say_how_long_it_lives() {
        let own = |text: &str| own_ttl(&json::parse(text.as_bytes(), 8).expect("JSON"));
        for (text, ttl) in [
            (r#"{"id":"a"}"#, TTL_BY_DEFAULT),
            (r#"{"ttl":-1}"#, TTL_NEVER),
            (r#"{"ttl":1}"#, 1),
            (r#"{"ttl":2147483647}"#, TTL_SECONDS_MAX),
        ] {
            assert_eq!(own(text).expect("a legal value"), ttl, "{text}");
        }
        for (text, wrong) in [
            (r#"{"ttl":0}"#, "0"),
            (r#"{"ttl":null}"#, "null"),
            (r#"{"ttl":-10}"#, "-10"),
            (r#"{"ttl":2147483648}"#, "2147483648"),
            (r#"{"ttl":1.5}"#, "1.5"),
            (r#"{"ttl":"abc"}"#, "abc"),
            (r#"{"ttl":true}"#, "true"),
            (r#"{"ttl":[1]}"#, "[1]"),
        ] {
            let refusal = own(text).expect_err(text);
            assert!(matches!(&refusal, OpError::InvalidTtl(shown) if shown == wrong), "{text}: {refusal:?}");
        }
    }
}
