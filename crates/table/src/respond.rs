//! Answers: what handlers say, and the headers that all have.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use orrery_cluster::{Charge, Receipt};
use orrery_gateway::ActivityId;

use crate::errors::Refusal;

/// What a handler answers.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
    pub content_type: &'static str,
    pub receipt: Receipt,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reply {
    pub fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply { status, body: body.into(), content_type, receipt: Receipt::default(), headers: Vec::new() }
    }

    /// Without a body.
    pub fn empty(status: StatusCode) -> Reply {
        Reply::new(status, "application/json", Bytes::new())
    }

    pub fn receipt(self, receipt: Receipt) -> Reply {
        Reply { receipt, ..self }
    }

    /// Adds a header; a value that no header may carry is left out.
    pub fn header(mut self, name: HeaderName, value: &str) -> Reply {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub fn etag(self, etag: &str) -> Reply {
        self.header(ETAG, etag)
    }

    pub fn location(self, address: &str) -> Reply {
        self.header(LOCATION, address)
    }

    /// Says whether the client got the entity back, if it had a wish about that.
    pub fn preference(self, asked: Option<&str>) -> Reply {
        let known = [NO_CONTENT, CONTENT];
        match known.into_iter().find(|known| asked.is_some_and(|asked| asked.eq_ignore_ascii_case(known))) {
            Some(known) => self.header(PREFERENCE, known),
            None => self,
        }
    }
}

/// The receipt of what costs the same each time.
pub(crate) fn receipt(what: &'static str, units: f64) -> Receipt {
    Receipt { charge: Charge::flat(what, units), served: None }
}

/// What clients prefer.
pub(crate) const NO_CONTENT: &str = "return-no-content";
const CONTENT: &str = "return-content";
const PREFERENCE: HeaderName = HeaderName::from_static("preference-applied");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-request-id");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const CHARGE: HeaderName = HeaderName::from_static("x-ms-request-charge");
const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const ERROR_CODE: HeaderName = HeaderName::from_static("x-ms-error-code");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("x-ms-retry-after-ms");
pub(crate) const NEXT_PARTITION_KEY: HeaderName =
    HeaderName::from_static("x-ms-continuation-nextpartitionkey");
pub(crate) const NEXT_ROW_KEY: HeaderName = HeaderName::from_static("x-ms-continuation-nextrowkey");
pub(crate) const NEXT_TABLE_NAME: HeaderName = HeaderName::from_static("x-ms-continuation-nexttablename");

/// What answers repeat of their requests.
pub(crate) struct Repeated<'a> {
    pub request: ActivityId,
    pub version: Option<&'a str>,
    pub client_request: Option<&'a str>,
}

pub(crate) fn respond(repeated: &Repeated<'_>, result: Result<Reply, Refusal>) -> Response<Full<Bytes>> {
    let reply = result.unwrap_or_else(|refusal| refused(repeated, &refusal));
    let mut response = Response::new(Full::new(reply.body));
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let charge = reply.receipt.charge.total();
    let told = [
        (REQUEST_ID, Some(repeated.request.as_str())),
        (CLIENT_REQUEST_ID, repeated.client_request),
        (VERSION, repeated.version),
        (CHARGE, Some(&*charge.to_string())),
    ];
    for (name, value) in told {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
    for (name, value) in reply.headers {
        headers.insert(name, value);
    }
    response
}

fn refused(repeated: &Repeated<'_>, refusal: &Refusal) -> Reply {
    let wire = refusal.wire();
    let body = match wire.status {
        StatusCode::NOT_MODIFIED => Vec::new(),
        _ => wire.body(repeated.request.as_str(), None),
    };
    let mut reply = Reply::new(wire.status, crate::metadata::Metadata::Minimal.content_type(), body)
        .header(ERROR_CODE, wire.code);
    if let Some(receipt) = refusal.receipt() {
        reply = reply.receipt(receipt.clone());
    }
    if let Some(after) = wire.retry_after_ms {
        // Whole seconds are all that the first of the two can say.
        reply = reply
            .header(RETRY_AFTER, &after.div_ceil(1000).max(1).to_string())
            .header(RETRY_AFTER_MS, &after.to_string());
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wishes_that_are_known_are_said_to_be_met() {
        for (asked, wanted) in [
            (None, None),
            (Some("return-content"), Some("return-content")),
            (Some("Return-No-Content"), Some("return-no-content")),
            (Some("respond-async"), None),
            (Some(""), None),
        ] {
            let reply = Reply::empty(StatusCode::NO_CONTENT).preference(asked);
            let told = reply.headers.iter().find(|(name, _)| *name == PREFERENCE);
            assert_eq!(told.and_then(|(_, value)| value.to_str().ok()), wanted, "{asked:?}");
        }
    }
}
