//! Session tokens: how a client tells what it has already seen.
//!
//! A token is a list of `{range}:{version}#{lsn}#{region}={local lsn}...`, joined by commas.
//! Accounts with one region show the short form `{range}:-1#{lsn}`, and so do we.
//! Old clients send `{range}:{lsn}`.
//!
//! What the parts mean, and when a token names a state that this server has not reached, is `orrery_cluster::session`'s.

use std::fmt::Write as _;

use orrery_cluster::store::Lsn;
use orrery_cluster::{RangeToken, SessionToken};

use crate::respond::push_number;

/// Text that is not a session token; it names the part that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The session token provided '{0}' is invalid.")]
pub struct SessionTokenError(String);

/// Writes what a client is sent of one range.
pub fn write(token: &RangeToken, out: &mut String) {
    push_number(out, u64::from(token.range));
    out.push(':');
    write_state(token, out);
}

/// The same without the range, for answers that name it elsewhere.
pub fn write_state(token: &RangeToken, out: &mut String) {
    if let Some(version) = token.version {
        write!(out, "{version}#").expect("writing to a string cannot fail");
    }
    push_number(out, token.lsn.0);
    for (region, lsn) in &token.regions {
        write!(out, "#{region}={lsn}").expect("writing to a string cannot fail");
    }
}

/// Reads what a client sends. An empty token says nothing and is legal.
pub fn parse(text: &str) -> Result<SessionToken, SessionTokenError> {
    let mut ranges = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        ranges.push(parse_range(part).ok_or_else(|| SessionTokenError(shorten(part)))?);
    }
    Ok(SessionToken { ranges })
}

fn parse_range(part: &str) -> Option<RangeToken> {
    let (range, state) = part.split_once(':')?;
    let range = range.parse().ok()?;
    let mut fields = state.split('#');
    let first: i64 = fields.next()?.parse().ok()?;
    let Some(second) = fields.next() else {
        return Some(RangeToken { range, version: None, lsn: lsn(first), regions: Vec::new() });
    };
    let reached: i64 = second.parse().ok()?;
    let mut regions = Vec::new();
    for region in fields.filter(|region| !region.is_empty()) {
        let (id, local) = region.split_once('=')?;
        regions.push((id.parse().ok()?, local.parse().ok()?));
    }
    Some(RangeToken { range, version: Some(first), lsn: lsn(reached), regions })
}

/// Clients write -1 for "nothing seen yet".
fn lsn(number: i64) -> Lsn {
    Lsn(u64::try_from(number).unwrap_or(0))
}

/// Tokens come back in error texts, and must not make those as long as a header may be.
fn shorten(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use orrery_cluster::SINGLE_REGION_VERSION;
    use proptest::prelude::*;

    use super::*;

    fn token(range: u32, version: Option<i64>, lsn: u64, regions: &[(u64, i64)]) -> RangeToken {
        RangeToken { range, version, lsn: Lsn(lsn), regions: regions.to_vec() }
    }

    #[test]
    fn every_form_of_the_token_is_read() {
        for (text, wanted) in [
            ("", vec![]),
            ("0:-1#12", vec![token(0, Some(-1), 12, &[])]),
            ("0:12", vec![token(0, None, 12, &[])]),
            ("0:-1#-1", vec![token(0, Some(-1), 0, &[])]),
            ("0:0#7#1=3", vec![token(0, Some(0), 7, &[(1, 3)])]),
            ("0:-1#7#999=-1", vec![token(0, Some(-1), 7, &[(999, -1)])]),
            ("1:5#100#4=90#7=3", vec![token(1, Some(5), 100, &[(4, 90), (7, 3)])]),
            ("1:5#100#4=90#", vec![token(1, Some(5), 100, &[(4, 90)])]),
            ("0:-1#12, 1:-1#3,", vec![token(0, Some(-1), 12, &[]), token(1, Some(-1), 3, &[])]),
            ("0:-1#12,999999:-1#12", vec![token(0, Some(-1), 12, &[]), token(999_999, Some(-1), 12, &[])]),
        ] {
            assert_eq!(parse(text).expect(text).ranges, wanted, "{text}");
        }
    }

    #[test]
    fn what_a_server_shows_reads_back() {
        for token in
            [token(0, Some(-1), 12, &[]), token(7, Some(3), 9, &[(2, 5), (4, -1)]), token(1, None, 4, &[])]
        {
            assert_eq!(parse(&text(&token)).expect("a token").ranges, [token]);
        }
    }

    fn text(token: &RangeToken) -> String {
        let mut out = String::new();
        write(token, &mut out);
        out
    }

    #[test]
    fn one_region_shows_the_short_form() {
        assert_eq!(text(&token(3, Some(SINGLE_REGION_VERSION), 12, &[])), "3:-1#12");
        assert_eq!(text(&token(3, Some(2), 12, &[(2, 5), (4, -1)])), "3:2#12#2=5#4=-1");
        assert_eq!(text(&token(3, None, 12, &[])), "3:12");
    }

    #[test]
    fn other_text_is_refused_and_named() {
        for text in [
            "not-a-session-token",
            "0",
            "0:",
            ":1",
            "-1:5",
            "0:-1#",
            "0:a#1",
            "0:1#b",
            "0:1#2#3",
            "0:1#2#3=x",
            "0:1#2#x=3",
            "99999999999:1#2",
            "0:99999999999999999999",
            "0:-1#1,é",
        ] {
            let bad = text.rsplit(',').next().expect("a last part");
            assert_eq!(parse(text).expect_err(text), SessionTokenError(bad.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn near_tokens_do_not_panic(text in "[0-9:#=,-]{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn errors_are_short(text in "[a-z]{0,300}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.to_string().len() < 120);
            }
        }
    }
}
