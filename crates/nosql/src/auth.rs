//! Who sends a request: a client with a key of the account, with a resource token, or with a token of Entra ID.
//!
//! With a key, a client signs `verb \n type \n link \n x-ms-date \n date \n` with one of four keys. What exactly it takes
//! for the link differs between clients: names as they are or as they stand in the URL, and for RIDs only
//! the last one, in lower case. So the signature is compared with each form that a client is known to send,
//! the most common first. No form leaves the request less determined than the protocol itself does.
//! Comparing takes constant time, and the line that is signed is never put together: its pieces go
//! straight into the hash.

mod resource_token;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::Mac;
use http::Method;
use orrery_gateway::entra::not_configured;
use orrery_gateway::keys::prepare;
use orrery_gateway::{Entra, KeyKind, KeysError, Signature};

use crate::address::rid_of_length;
use crate::errors::{Own, Refusal};
use crate::headers::RequestHeaders;
use crate::router::{Segment, Signed};

/// How far a client's clock may be off.
const DATE_WINDOW: Duration = Duration::from_secs(15 * 60);
/// Bytes of a date; those of the protocol have 29.
const DATE_BYTES_MAX: usize = 64;
/// Bytes of an authorization header that can be a master token, and of any: Entra tokens may list many groups.
const TOKEN_BYTES_MAX: usize = 512;
const LONG_TOKEN_BYTES_MAX: usize = 32 * 1024;

pub(crate) use orrery_gateway::Principal;
pub(crate) use resource_token::{Bound, Claim};

/// Who a request comes from. What that one may do is for [`crate::access`] to say.
#[derive(Debug)]
pub(crate) enum Identity {
    /// Has one of the account's keys.
    Account { read_only: bool },
    /// Has the token of a permission.
    Permission(Claim),
    /// Has a token of Entra ID.
    Principal(Principal),
}

impl Identity {
    /// As the audit log names it.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Identity::Account { read_only: false } => "account key".into(),
            Identity::Account { read_only: true } => "read-only account key".into(),
            Identity::Permission(claim) => format!("permission {}", claim.permission).into(),
            Identity::Principal(principal) => format!("principal {}", principal.id).into(),
        }
    }
}

/// The account's keys, and those that tokens are signed with.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    account: orrery_gateway::Keys,
    /// One for each read-write key, made from it.
    tokens: Vec<Signature>,
}

impl Keys {
    /// The token of a permission for so many seconds from now.
    pub(crate) fn issue(&self, claim: Claim, now: SystemTime, seconds: u64) -> String {
        resource_token::issue(&self.tokens[0], claim, now, seconds)
    }
}

impl From<orrery_gateway::Keys> for Keys {
    fn from(account: orrery_gateway::Keys) -> Keys {
        let tokens = account.read_write().iter().map(resource_token::key).collect();
        Keys { account, tokens }
    }
}

/// The header with which one of the account's keys signs a link, as a client of the server does.
pub(crate) fn sign(
    key: &str,
    method: &Method,
    resource_type: &str,
    link: &str,
    date: &str,
) -> Result<String, KeysError> {
    let mut mac = prepare(key)?;
    update_lower(&mut mac, method.as_str());
    mac.update(b"\n");
    update_lower(&mut mac, resource_type);
    mac.update(b"\n");
    mac.update(link.as_bytes());
    mac.update(b"\n");
    update_lower(&mut mac, date);
    mac.update(b"\n\n");
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    Ok(percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC).to_string())
}

/// Finds out who sent the request.
pub(crate) fn authenticate(
    keys: &Keys,
    entra: Option<&Entra>,
    method: &Method,
    signed: &Signed<'_>,
    headers: &RequestHeaders<'_>,
    now: SystemTime,
) -> Result<Identity, Refusal> {
    let header = headers.authorization.ok_or(Own::Unauthorized(MISSING_HEADER.into()))?;
    let mut buffer = [0u8; TOKEN_BYTES_MAX];
    let text = percent_decode(header.trim(), &mut buffer).ok_or_else(invalid_token)?;
    let token = Token::read(&text)?;
    let signature = match token.kind {
        TokenKind::Master => master_signature(token.signature)?,
        TokenKind::Resource => {
            return resource_token::read(&keys.tokens, token.signature, now).map(Identity::Permission);
        }
        TokenKind::Entra => {
            let entra = entra.ok_or_else(not_configured)?;
            return Ok(Identity::Principal(entra.verify(token.signature, now)?));
        }
    };
    let dates = Dates::read(headers)?;
    dates.check_window(now)?;
    let line = Line { method, signed, dates };
    match keys.account.kind_of(|key| line.is_signed_by(key, &signature)) {
        Some(kind) => Ok(Identity::Account { read_only: kind == KeyKind::ReadOnly }),
        None => Err(Own::Unauthorized(WRONG_SIGNATURE.into()).into()),
    }
}

const MISSING_HEADER: &str =
    "Required Header authorization is missing. Ensure a valid Authorization token is passed.";
const MISSING_DATE: &str = "Required Header x-ms-date is missing. Ensure a valid date is passed.";
const INVALID_DATE: &str = "The value of the x-ms-date or date header is not a date as RFC 1123 defines it.";
const INVALID_TOKEN: &str =
    "The authorization header is not of the form type={type}&ver={version}&sig={signature}.";
const WRONG_SIGNATURE: &str = "The input authorization token can't serve the request. The wrong key is being used or \
     the expected payload is not built as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized.";

/// An authorization header in pieces.
struct Token<'t> {
    kind: TokenKind,
    signature: &'t str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Master,
    Resource,
    Entra,
}

impl<'t> Token<'t> {
    /// Reads `type=master&ver=1.0&sig=...`.
    fn read(text: &'t str) -> Result<Token<'t>, Refusal> {
        let (mut kind, mut version, mut signature) = ("", "", "");
        // The signature is last and may itself contain `=`, so only the first one separates.
        for part in text.splitn(3, '&') {
            match part.split_once('=') {
                Some(("type", value)) => kind = value,
                Some(("ver", value)) => version = value,
                Some(("sig", value)) => signature = value.trim_end(),
                _ => return Err(invalid_token()),
            }
        }
        let kind = match kind {
            "master" => TokenKind::Master,
            "resource" => TokenKind::Resource,
            "aad" => TokenKind::Entra,
            _ => return Err(invalid_token()),
        };
        // The service itself writes version 1 into resource tokens.
        let is_known = version == "1.0" || kind == TokenKind::Resource && version == "1";
        if is_known { Ok(Token { kind, signature }) } else { Err(invalid_token()) }
    }
}

fn invalid_token() -> Refusal {
    Own::Unauthorized(INVALID_TOKEN.into()).into()
}

fn master_signature(signature: &str) -> Result<[u8; 32], Refusal> {
    let mut bytes = [0u8; 48];
    match LENIENT.decode_slice(signature, &mut bytes) {
        Ok(32) => Ok(bytes[..32].try_into().expect("32 bytes were taken")),
        // Well-formed but of the wrong length: no key makes such a signature.
        _ => Err(Own::Unauthorized(WRONG_SIGNATURE.into()).into()),
    }
}

/// Decodes into a buffer on the stack when it fits, as every master token does. `None` is what is not UTF-8.
fn percent_decode<'t>(text: &'t str, buffer: &'t mut [u8; TOKEN_BYTES_MAX]) -> Option<Cow<'t, str>> {
    if text.len() > LONG_TOKEN_BYTES_MAX {
        return None;
    }
    if text.len() > buffer.len() {
        return percent_encoding::percent_decode_str(text).decode_utf8().ok();
    }
    let hex = |digit: u8| (digit as char).to_digit(16);
    let (mut rest, mut len) = (text.as_bytes(), 0);
    while let [first, after @ ..] = rest {
        let encoded = match after {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        (buffer[len], rest) = match encoded {
            Some((high, low)) => ((high << 4 | low) as u8, &after[2..]),
            None => (*first, after),
        };
        len += 1;
    }
    std::str::from_utf8(&buffer[..len]).ok().map(Cow::Borrowed)
}

/// Base64 with or without its padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The two date lines of what is signed.
#[derive(Clone, Copy)]
struct Dates<'a> {
    x_ms_date: Option<&'a str>,
    date: Option<&'a str>,
}

impl<'a> Dates<'a> {
    fn read(headers: &RequestHeaders<'a>) -> Result<Dates<'a>, Refusal> {
        let dates = Dates { x_ms_date: headers.x_ms_date, date: headers.date };
        let longest = dates.x_ms_date.map_or(0, str::len).max(dates.date.map_or(0, str::len));
        if longest > DATE_BYTES_MAX {
            return Err(Own::Unauthorized(INVALID_DATE.into()).into());
        }
        Ok(dates)
    }

    fn check_window(&self, now: SystemTime) -> Result<(), Refusal> {
        let text = self.x_ms_date.or(self.date).ok_or(Own::Unauthorized(MISSING_DATE.into()))?;
        let date =
            httpdate::parse_http_date(text.trim()).map_err(|_| Own::Unauthorized(INVALID_DATE.into()))?;
        let apart = now.duration_since(date).unwrap_or_else(|error| error.duration());
        if apart <= DATE_WINDOW {
            return Ok(());
        }
        Err(not_valid_now(date, date.checked_add(DATE_WINDOW), now))
    }

    /// Which values a client may have put on its two lines. A `date` beside `x-ms-date` is often added below
    /// the client, after signing.
    fn lines(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let main = match (self.x_ms_date, self.date) {
            (Some(x_ms_date), _) => (x_ms_date, ""),
            (None, date) => ("", date.unwrap_or("")),
        };
        let both = self.x_ms_date.zip(self.date);
        std::iter::once(main).chain(both)
    }
}

/// The refusal of a token that is not valid yet or not any more.
fn not_valid_now(start: SystemTime, end: Option<SystemTime>, now: SystemTime) -> Refusal {
    let message = format!(
        "The authorization token is not valid at the current time. Please create another token and retry \
         (token start time: {}, token expiry time: {}, current server time: {}).",
        httpdate::fmt_http_date(start),
        end.map_or_else(String::new, httpdate::fmt_http_date),
        httpdate::fmt_http_date(now),
    );
    Own::Forbidden(message.into()).into()
}

/// What the client has signed, in all forms it may have.
struct Line<'a> {
    method: &'a Method,
    signed: &'a Signed<'a>,
    dates: Dates<'a>,
}

/// The forms of a resource link.
#[derive(Clone, Copy)]
enum Link {
    /// Names decoded: what nearly all clients sign.
    Names,
    /// Names as they stand in the URL.
    RawNames,
    /// The last RID alone, in lower case.
    LowerRid,
    /// The last RID alone, as it is.
    Rid,
}

impl Line<'_> {
    fn is_signed_by(&self, key: &Signature, signature: &[u8; 32]) -> bool {
        let types = std::iter::once(self.signed.resource_type).chain(self.signed.other_type);
        types.into_iter().any(|resource_type| {
            self.links().any(|link| {
                self.dates.lines().any(|dates| self.matches(key, resource_type, link, dates, signature))
            })
        })
    }

    /// The forms that the link may have. Whether a form applies is asked only when those before it did not match.
    fn links(&self) -> impl Iterator<Item = Link> {
        [Link::Names, Link::RawNames, Link::LowerRid, Link::Rid]
            .into_iter()
            .filter(|link| self.applies(*link))
    }

    fn applies(&self, link: Link) -> bool {
        let segments = self.signed.link();
        match link {
            Link::Names => true,
            Link::RawNames => segments.iter().any(|segment| segment.raw != segment.text),
            Link::LowerRid | Link::Rid => segments.last().is_some_and(|last| is_any_rid(last)),
        }
    }

    fn matches(
        &self,
        key: &Signature,
        resource_type: &str,
        link: Link,
        (x_ms_date, date): (&str, &str),
        signature: &[u8; 32],
    ) -> bool {
        let mut mac = key.clone();
        update_lower(&mut mac, self.method.as_str());
        mac.update(b"\n");
        update_lower(&mut mac, resource_type);
        mac.update(b"\n");
        update_link(&mut mac, self.signed.link(), link);
        mac.update(b"\n");
        update_lower(&mut mac, x_ms_date);
        mac.update(b"\n");
        update_lower(&mut mac, date);
        mac.update(b"\n");
        mac.verify_slice(signature).is_ok()
    }
}

fn update_link(mac: &mut Signature, segments: &[Segment<'_>], link: Link) {
    let last = segments.last().map_or("", |segment| segment.text.as_ref());
    match link {
        Link::LowerRid => return update_lower(mac, last),
        Link::Rid => return mac.update(last.as_bytes()),
        Link::Names | Link::RawNames => {}
    }
    for (place, segment) in segments.iter().enumerate() {
        if place > 0 {
            mac.update(b"/");
        }
        let text = if matches!(link, Link::Names) { segment.text.as_ref() } else { segment.raw };
        mac.update(text.as_bytes());
    }
}

fn is_any_rid(segment: &Segment<'_>) -> bool {
    [3, 4, 8, 16].into_iter().any(|bytes| rid_of_length(&segment.text, bytes).is_some())
}

/// Hashes ASCII text in lower case; verbs, types, dates and RIDs are short.
fn update_lower(mac: &mut Signature, text: &str) {
    for chunk in text.as_bytes().chunks(64) {
        let mut lower = [0u8; 64];
        let lower = &mut lower[..chunk.len()];
        lower.copy_from_slice(chunk);
        lower.make_ascii_lowercase();
        mac.update(lower);
    }
}

#[cfg(test)]
mod tests;
