//! Session tokens: how a client tells what it has already seen.
//!
//! A token is a list of `{range}:{version}#{lsn}#{region}={local lsn}...`, joined by commas.
//! Accounts with one region show the short form `{range}:-1#{lsn}`, and so do we.
//! Old clients send `{range}:{lsn}`.
//!
//! The version counts changes of the account's regions, and ours never has one.
//! A token of a higher version therefore names a state that this server has not reached,
//! which no LSN of a partition can express: it becomes the highest LSN there is.

use orrery_cluster::SessionToken;
use orrery_cluster::store::Lsn;

/// The version of an account whose regions never changed.
const VERSION: i64 = -1;

/// Text that is not a session token; it names the part that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The session token provided '{0}' is invalid.")]
pub struct SessionTokenError(String);

/// Reads what a client sends. An empty token says nothing and is legal.
pub fn parse(text: &str) -> Result<SessionToken, SessionTokenError> {
    let mut ranges = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        ranges.push(parse_range(part).ok_or_else(|| SessionTokenError(shorten(part)))?);
    }
    Ok(SessionToken { ranges })
}

fn parse_range(part: &str) -> Option<(u32, Lsn)> {
    let (range, state) = part.split_once(':')?;
    let range = range.parse().ok()?;
    let mut fields = state.split('#');
    let first: i64 = fields.next()?.parse().ok()?;
    let Some(second) = fields.next() else {
        return Some((range, lsn(first)));
    };
    let reached: i64 = second.parse().ok()?;
    for region in fields.filter(|region| !region.is_empty()) {
        let (id, local) = region.split_once('=')?;
        id.parse::<u64>().ok()?;
        local.parse::<i64>().ok()?;
    }
    // Some clients normalise the version of the short form to zero.
    let is_ahead = first > VERSION && first != 0;
    Some((range, if is_ahead { Lsn(u64::MAX) } else { lsn(reached) }))
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
    use proptest::prelude::*;

    use super::*;

    fn ranges(text: &str) -> Vec<(u32, u64)> {
        parse(text).expect(text).ranges.iter().map(|(range, lsn)| (*range, lsn.0)).collect()
    }

    #[test]
    fn every_form_of_the_token_is_read() {
        let ahead = u64::MAX;
        for (text, wanted) in [
            ("", vec![]),
            ("0:-1#12", vec![(0, 12)]),
            ("0:12", vec![(0, 12)]),
            ("0:-1#-1", vec![(0, 0)]),
            ("0:0#7#1=3", vec![(0, 7)]),
            ("0:-1#7#999=-1", vec![(0, 7)]),
            ("1:5#100#4=90", vec![(1, ahead)]),
            ("1:5#100#4=90#", vec![(1, ahead)]),
            ("0:-1#12, 1:-1#3,", vec![(0, 12), (1, 3)]),
            ("0:-1#12,999999:-1#12", vec![(0, 12), (999_999, 12)]),
        ] {
            assert_eq!(ranges(text), wanted, "{text}");
        }
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
