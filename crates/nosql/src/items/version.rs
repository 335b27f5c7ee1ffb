//! The version of an item or resource as clients see it.
//!
//! Items have a version of the store's making. An entity of a table shows the time of its write in its place, in the form of the
//! service: clients of tables read the time out of it, and send back what they make of the time alone.

use orrery_cluster::store::{Etag, ItemHeader, Precondition};
use orrery_cluster::{Api, Container};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Etag(Etag),
    /// In units of 100 ns since 1970.
    Written(u64),
}

impl From<Etag> for Version {
    fn from(etag: Etag) -> Version {
        Version::Etag(etag)
    }
}

/// Units of 100 ns between 1601, from which the times of entities are counted, and 1970.
const FROM_1601: u64 = 116_444_736_000_000_000;

/// What the form of a time begins with.
const TIME: &str = "00000000-0000-0000-";

/// Whether a container's items show the times of their writes as versions.
pub(crate) fn is_by_time(container: &Container) -> bool {
    container.definition.api == Api::Table
}

impl Version {
    pub fn of(container: &Container, header: &ItemHeader) -> Version {
        Version::of_item(is_by_time(container), header)
    }

    pub fn of_item(by_time: bool, header: &ItemHeader) -> Version {
        if by_time { Version::Written(header.time) } else { Version::Etag(header.etag) }
    }

    pub fn to_header(self) -> String {
        String::from_utf8(self.to_text().to_vec()).expect("the form is ASCII")
    }

    /// The same on the stack: every item that is shown carries one.
    pub fn to_text(self) -> [u8; 38] {
        let time = match self {
            Version::Etag(etag) => return etag.to_text(),
            Version::Written(time) => time + FROM_1601,
        };
        let mut text = *b"\"00000000-0000-0000-0000-000000000000\"";
        // The upper two bytes come last.
        for (place, shift) in [(20, 32), (25, 0), (33, 48)].into_iter().flat_map(digits) {
            text[place] = b"0123456789abcdef"[(time >> shift) as usize & 0xF];
        }
        text
    }

    /// The condition that a client names; none if it is no version at all.
    pub fn condition(text: &str) -> Option<Precondition> {
        match written(text) {
            Some(time) => Some(Precondition::IfWrittenAt(time)),
            None => Etag::parse(text).map(|etag| Precondition::IfMatch(Some(etag))),
        }
    }
}

/// Places of digits, and how far up each of them is: four of 16 bits or eight of 32.
fn digits((place, shift): (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let count = if place == 25 { 8 } else { 4 };
    (0..count).map(move |digit| (place + digit, shift + 4 * (count - 1 - digit)))
}

/// The time that a version names.
fn written(text: &str) -> Option<u64> {
    let rest = text.trim().trim_matches('"').strip_prefix(TIME)?;
    let is_form = rest.len() == 17 && rest.is_ascii() && rest.as_bytes()[4] == b'-';
    let number = |from: usize, to: usize| u64::from_str_radix(rest.get(from..to)?, 16).ok();
    let (middle, low, high) = (number(0, 4)?, number(5, 13)?, number(13, 17)?);
    is_form.then_some(high << 48 | middle << 32 | low)?.checked_sub(FROM_1601)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_form_of_the_service_and_reads_back() {
        // 2022-05-06T00:47:47.9267336Z
        let version = Version::Written(16_517_980_679_267_336);
        let text = version.to_header();
        assert_eq!(text, "\"00000000-0000-0000-60e2-e809e40801d8\"");
        assert_eq!(Version::condition(&text), Some(Precondition::IfWrittenAt(16_517_980_679_267_336)));
    }

    #[test]
    fn versions_of_the_store_are_as_they_were() {
        let etag = Etag(0x0000_d1a2_66b3_f4d1);
        assert_eq!(Version::from(etag).to_header(), etag.to_header());
        assert_eq!(Version::condition(&etag.to_header()), Some(Precondition::IfMatch(Some(etag))));
        for text in [
            "",
            "x",
            "00000000-0000-0000-",
            "00000000-0000-0000-60e2-e809e40801dé",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(Version::condition(text), None, "{text}");
        }
    }
}
