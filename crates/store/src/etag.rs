//! The version of an item or resource.

/// The version of a resource or item, shown as a quoted string that clients must not interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag(pub u64);

impl Etag {
    /// A write's place in the log makes versions of one second differ; the second makes them readable.
    pub fn of(lsn: u64, n: u16, ts: u64) -> Etag {
        let place = (lsn as u32) << 7 | u32::from(n & 0x7F);
        Etag(u64::from(place) << 32 | u64::from(ts as u32))
    }

    /// The shape of the service: `"0000d1a2-0000-0700-0000-66b3f4d10000"`, quotes included.
    pub fn to_header(self) -> String {
        String::from_utf8(self.to_text().to_vec()).expect("the form is ASCII")
    }

    /// The same on the stack: every item that is shown carries one.
    pub fn to_text(self) -> [u8; 38] {
        let mut text = *b"\"00000000-0000-0700-0000-000000000000\"";
        for digit in 0..8 {
            let nibble = |shift: usize| b"0123456789abcdef"[(self.0 >> shift) as usize & 0xF];
            text[1 + digit] = nibble(60 - 4 * digit);
            text[25 + digit] = nibble(28 - 4 * digit);
        }
        text
    }

    /// Reads what a client sends back, with or without quotes; anything else matches no version.
    pub fn parse(text: &str) -> Option<Etag> {
        let text = text.trim().trim_matches('"');
        let bytes = text.as_bytes();
        if bytes.len() != 36 || &bytes[8..24] != b"-0000-0700-0000-" || &bytes[32..] != b"0000" {
            return None;
        }
        let high = u32::from_str_radix(text.get(..8)?, 16).ok()?;
        let low = u32::from_str_radix(text.get(24..32)?, 16).ok()?;
        Some(Etag(u64::from(high) << 32 | u64::from(low)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_reads_back_quoted_and_bare() {
        let etag = Etag(0x0000_d1a2_66b3_f4d1);
        assert_eq!(etag.to_header(), "\"0000d1a2-0000-0700-0000-66b3f4d10000\"");
        assert_eq!(Etag::parse(&etag.to_header()), Some(etag));
        assert_eq!(Etag::parse(etag.to_header().trim_matches('"')), Some(etag));
    }

    #[test]
    fn other_text_matches_no_version() {
        for text in ["", "*", "\"\"", "0000d1a2", "zzzzzzzz-0000-0700-0000-66b3f4d10000", "ééééééééé"]
        {
            assert_eq!(Etag::parse(text), None, "{text}");
        }
    }
}
