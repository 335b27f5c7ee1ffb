//! What the server offers beside this API keeps its rules: who may ask, how bodies are read, how refusals look.
//!
//! Requests to such a path are signed as all others are. The resource type is one word for all of them, and the link
//! is the path as it was sent, so that nobody need know which of its segments are names.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use hyper::body::Body;
use orrery_cluster::Error;

use crate::auth::{self, Identity};
use crate::errors::{Own, Refusal, Voice, Wire};
use crate::gateway::Gateway;
use crate::headers::RequestHeaders;
use crate::router::Signed;
use orrery_gateway::body;

/// A refusal in the terms of the wire, for answers that are written elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub status: StatusCode,
    /// Zero when there is none.
    pub substatus: u32,
    pub code: &'static str,
    pub message: String,
}

impl Gateway {
    /// Whether a request comes from a client with a key of the account that allows its method. Tokens of permissions
    /// and of Entra ID say nothing about what lies beside the API, so they are refused.
    pub fn admit_beside(&self, parts: &Parts, resource_type: &str) -> Result<(), Denial> {
        let headers = RequestHeaders::parse(&parts.headers).map_err(Denial::from)?;
        let link = parts.uri.path().trim_start_matches('/');
        let signed = Signed::whole(resource_type, link);
        let identity = self.identify(&parts.method, &signed, &headers, SystemTime::now())?;
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        match identity {
            Identity::Account { read_only: false } => Ok(()),
            Identity::Account { read_only: true } if reads => Ok(()),
            Identity::Account { read_only: true } => Err(forbidden("A read-only key may only read.")),
            _ => Err(forbidden("This needs a key of the account.")),
        }
    }
}

fn forbidden(message: &'static str) -> Denial {
    Refusal::from(Own::Forbidden(Cow::Borrowed(message))).into()
}

/// Reads a body as the API does: within so many bytes and so much time.
pub async fn read_body<B>(body: B, bytes_max: usize, time_max: Duration) -> Result<Bytes, Denial>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let limits = body::Limits { bytes: bytes_max, time: time_max };
    body::read(body, limits, None).await.map_err(|error| Refusal::from(error).into())
}

/// Reads a body that nobody wants; false if it was given up, and the connection with it.
pub async fn discard_body<B>(body: B, time_max: Duration) -> bool
where
    B: Body<Data = Bytes>,
{
    body::discard(body, time_max).await
}

impl Denial {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Denial {
        Denial { status, substatus: 0, code: crate::errors::code(status), message: message.into() }
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Denial {
        let Wire { status, substatus, code, voice, .. } = refusal.wire();
        let message = match voice {
            Voice::Partition(text) | Voice::Gateway(text) => text.into_owned(),
            Voice::PartitionJson(json) => json,
        };
        Denial { status, substatus, code, message }
    }
}

impl From<Error> for Denial {
    fn from(error: Error) -> Denial {
        Refusal::from(error).into()
    }
}

/// The `authorization` header of a request to such a path, for our own clients.
pub fn sign_beside(
    key: &str,
    method: &Method,
    resource_type: &str,
    path: &str,
    date: &str,
) -> Result<String, orrery_gateway::KeysError> {
    auth::sign(key, method, resource_type, path.trim_start_matches('/'), date)
}
