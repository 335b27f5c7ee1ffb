//! One request of the management API, and what is answered.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use orrery_cluster::{Container, Db};
use orrery_nosql::Denial;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::server::Server;
use super::{PREFIX, SEGMENTS_MAX, no_such_path};

/// A request whose sender has been found out and whose body is here.
pub struct Call<'c> {
    pub db: &'c Db,
    pub server: &'c Server,
    pub method: &'c Method,
    pub body: Bytes,
    segments: Vec<Cow<'c, str>>,
    query: &'c str,
}

/// What is sent back.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub kind: &'static str,
    pub body: Bytes,
}

impl<'c> Call<'c> {
    pub fn read(db: &'c Db, server: &'c Server, parts: &'c Parts, body: Bytes) -> Result<Call<'c>, Denial> {
        let path = parts.uri.path().strip_prefix(PREFIX).ok_or_else(no_such_path)?;
        let mut segments = Vec::with_capacity(8);
        for raw in path.split('/').filter(|raw| !raw.is_empty()) {
            if segments.len() == SEGMENTS_MAX {
                return Err(no_such_path());
            }
            segments.push(decode(raw)?);
        }
        let query = parts.uri.query().unwrap_or_default();
        Ok(Call { db, server, method: &parts.method, body, segments, query })
    }

    /// The path behind the prefix, names decoded.
    pub fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(AsRef::as_ref).collect()
    }

    /// The value of a parameter behind the question mark.
    pub fn parameter(&self, name: &str) -> Option<Cow<'c, str>> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.into_iter().find(|(key, _)| *key == name)?;
        percent_decode_str(value).decode_utf8().ok()
    }

    /// A parameter that is a number within bounds, or what it is when it is absent.
    pub fn number(&self, name: &str, default: usize, most: usize) -> Result<usize, Denial> {
        let Some(text) = self.parameter(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| bad_request(format!("{name} must be a number from 1 to {most}.")))
    }

    /// Refuses all other verbs.
    pub fn only(&self, allowed: &[Method]) -> Result<(), Denial> {
        if allowed.contains(self.method) {
            return Ok(());
        }
        let list: Vec<&str> = allowed.iter().map(Method::as_str).collect();
        let message = format!("{NOT_ALLOWED}{}", list.join(", "));
        Err(Denial::new(StatusCode::METHOD_NOT_ALLOWED, message))
    }

    /// The body as what it must be; an empty one is an empty object.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Denial> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body)
            .map_err(|error| bad_request(format!("The body is not what it must be: {error}")))
    }

    pub fn container(&self, database: &str, container: &str) -> Result<Arc<Container>, Denial> {
        let catalog = self.db.catalog();
        let found = catalog.database(database).and_then(|database| database.container(container));
        found.cloned().ok_or_else(|| not_found(format!("There is no container {database}/{container}.")))
    }
}

const NOT_ALLOWED: &str = "This path takes only ";

/// The verbs that a refusal by [`Call::only`] names, for its header.
pub fn allowed(denial: &Denial) -> Option<HeaderValue> {
    HeaderValue::from_str(denial.message.strip_prefix(NOT_ALLOWED)?).ok()
}

pub fn bad_request(message: impl Into<String>) -> Denial {
    Denial::new(StatusCode::BAD_REQUEST, message)
}

pub fn not_found(message: impl Into<String>) -> Denial {
    Denial::new(StatusCode::NOT_FOUND, message)
}

fn decode(raw: &str) -> Result<Cow<'_, str>, Denial> {
    percent_decode_str(raw)
        .decode_utf8()
        .map_err(|_| bad_request("The path of the request is not valid UTF-8 after decoding."))
}

impl Answer {
    pub fn json(value: serde_json::Value) -> Answer {
        Answer { status: StatusCode::OK, kind: "application/json", body: value.to_string().into() }
    }

    /// A page for a browser.
    pub fn html(text: String) -> Answer {
        Answer { status: StatusCode::OK, kind: "text/html; charset=utf-8", body: text.into() }
    }

    pub fn with_status(self, status: StatusCode) -> Answer {
        Answer { status, ..self }
    }
}
