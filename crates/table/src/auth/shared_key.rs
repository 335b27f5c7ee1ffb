//! SharedKey and SharedKeyLite: signatures over a few lines of the request, made with a key of the account.
//!
//! ```text
//! full: VERB \n Content-MD5 \n Content-Type \n date \n resource        lite: date \n resource
//! resource: / account path-as-sent [?comp=value]
//! ```

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use orrery_gateway::{KeyKind, Keys, Signature};

use super::{Shown, invalid};
use crate::errors::{Own, Refusal};
use crate::limits::{DATE_WINDOW, SIGNED_HEADER_BYTES_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Full,
    Lite,
}

/// The account that an authorization header names: `SharedKey <account>:<signature>`.
pub(crate) fn account_of(header: &str) -> Option<&str> {
    let (scheme, rest) = header.split_once(' ')?;
    let is_shared = scheme.eq_ignore_ascii_case("SharedKey") || scheme.eq_ignore_ascii_case("SharedKeyLite");
    rest.trim().split_once(':').map(|(account, _)| account).filter(|_| is_shared)
}

/// Which kind of key has signed the request.
pub(super) fn verify(
    keys: &Keys,
    shown: &Shown<'_>,
    credential: &str,
    form: Form,
    now: SystemTime,
) -> Result<KeyKind, Refusal> {
    let headers = shown.headers;
    let (account, signature) =
        credential.split_once(':').ok_or_else(|| invalid("The authorization header has no signature."))?;
    if credential.len() > SIGNED_HEADER_BYTES_MAX {
        return Err(invalid("The authorization header is too long."));
    }
    let signature = STANDARD.decode(signature).map_err(|_| wrong())?;
    let date = headers.x_ms_date.or(headers.date).ok_or_else(|| invalid("The request has no date."))?;
    check_date(date, now)?;
    let signed = |key: &Signature| {
        let mut mac = key.clone();
        if form == Form::Full {
            for line in [Some(shown.method.as_str()), headers.content_md5, headers.content_type] {
                mac.update(line.unwrap_or_default().as_bytes());
                mac.update(b"\n");
            }
        }
        for piece in [date, "\n/", account, shown.path] {
            mac.update(piece.as_bytes());
        }
        if let Some(comp) = shown.parameters.get("comp") {
            mac.update(b"?comp=");
            mac.update(comp.as_bytes());
        }
        mac.verify_slice(&signature).is_ok()
    };
    keys.kind_of(signed).ok_or_else(wrong)
}

fn check_date(date: &str, now: SystemTime) -> Result<(), Refusal> {
    let sent =
        httpdate::parse_http_date(date.trim()).map_err(|_| invalid("The date of the request is no date."))?;
    let apart = now.duration_since(sent).unwrap_or_else(|error| error.duration());
    match apart <= DATE_WINDOW {
        true => Ok(()),
        false => Err(invalid("The date of the request is not within 15 minutes of the server's time.")),
    }
}

fn wrong() -> Refusal {
    Own::Unauthorized(
        "The input authorization token can't serve the request. The wrong key is being used or the expected payload is \
         not built as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized."
            .into(),
    )
    .into()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::Method;
    use orrery_gateway::keys::prepare;
    use orrery_gateway::{Peer, Scheme};

    use super::*;
    use crate::auth::{Authority, authenticate};
    use crate::headers::Headers;
    use crate::parameters::Parameters;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const DATE: &str = "Fri, 06 May 2022 00:47:47 GMT";

    fn sign(text: &str) -> String {
        STANDARD.encode(prepare(KEY).expect("a key").chain_update(text).finalize().into_bytes())
    }

    fn outcome(authorization: &str, path: &str, query: Option<&str>, late: u64) -> Result<(), u16> {
        let now = UNIX_EPOCH + Duration::from_secs(1_651_798_067 + late);
        let parameters = Parameters::read(query).expect("well formed");
        let headers = Headers {
            authorization: Some(authorization),
            x_ms_date: Some(DATE),
            content_type: Some("application/json"),
            ..Headers::default()
        };
        let peer = Peer::of(Scheme::Http, ([127, 0, 0, 1], 1).into());
        let shown = Shown {
            method: &Method::POST,
            path,
            parameters: &parameters,
            headers: &headers,
            peer,
            accounts: &[],
        };
        let keys = Keys::new([KEY], []).expect("a key");
        let authority = Authority { keys: &keys, entra: None, policy: &|_, _| None };
        authenticate(&authority, &shown, now).map(|_| ()).map_err(|refusal| refusal.wire().status.as_u16())
    }

    #[test]
    fn both_forms_are_verified_over_the_path_as_it_was_sent() {
        let path = "/t(PartitionKey='A%27%27b',RowKey='r')";
        let full = sign(&format!("POST\n\napplication/json\n{DATE}\n/acct{path}"));
        let lite = sign(&format!("{DATE}\n/acct{path}"));
        let by = |form: &str, signature: &str| format!("{form} acct:{signature}");
        assert_eq!(outcome(&by("SharedKey", &full), path, None, 0), Ok(()));
        assert_eq!(outcome(&by("SharedKeyLite", &lite), path, Some("$top=1"), 0), Ok(()));
        assert_eq!(outcome(&by("SharedKeyLite", &full), path, None, 0), Err(401));
        assert_eq!(outcome(&by("SharedKey", &full), "/t()", None, 0), Err(401));
        assert_eq!(outcome(&by("SharedKey", &full), path, Some("comp=acl"), 0), Err(401));
        let acl = sign(&format!("POST\n\napplication/json\n{DATE}\n/acct/t?comp=acl"));
        assert_eq!(outcome(&by("SharedKey", &acl), "/t", Some("comp=acl"), 0), Ok(()));
    }

    #[test]
    fn late_requests_and_broken_headers_are_refused() {
        let lite = sign(&format!("{DATE}\n/acct/t"));
        let right = format!("SharedKeyLite acct:{lite}");
        assert_eq!(outcome(&right, "/t", None, 14 * 60), Ok(()));
        assert_eq!(outcome(&right, "/t", None, 16 * 60), Err(403));
        for header in [
            "",
            "SharedKey",
            "SharedKey acct",
            "SharedKey acct:*",
            "Else acct:x",
            ":",
            "SharedKeyLite other:",
        ] {
            assert!(outcome(header, "/t", None, 0).is_err(), "{header}");
        }
    }
}
