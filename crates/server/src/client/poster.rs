//! Sends JSON to a URL of the operator's choice, over a connection that is kept.

use std::path::PathBuf;

use anyhow::bail;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;

use super::connect;

/// Bytes that are read of an answer; nothing in it matters but that it ends.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

pub struct Poster {
    to: Uri,
    ca_file: Option<PathBuf>,
    headers: Vec<(HeaderName, HeaderValue)>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

/// The receiver has answered, and not with success.
#[derive(Debug, thiserror::Error)]
#[error("it answered {0}")]
pub struct Unwilling(pub StatusCode);

impl Poster {
    pub fn new(to: Uri, ca_file: Option<PathBuf>) -> Poster {
        Poster { to, ca_file, headers: Vec::new(), connection: None }
    }

    /// Further headers for each request; those that are none are left out.
    pub fn with_headers(mut self, headers: &[(String, String)]) -> Poster {
        let parsed =
            headers.iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
        self.headers.extend(parsed);
        self
    }

    pub fn to(&self) -> &Uri {
        &self.to
    }

    /// Sends it once, to the URL and what is behind it.
    pub async fn post(&mut self, behind: &str, body: Bytes) -> anyhow::Result<()> {
        // Taken away, so that a request which is given up leaves no connection that waits for its answer.
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => connect(&self.to, self.ca_file.as_deref()).await?,
        };
        let own = self.to.path_and_query().map_or("/", |path| path.as_str());
        let path =
            if behind.is_empty() { own.to_owned() } else { format!("{}{behind}", own.trim_end_matches('/')) };
        let host = self.to.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        request.headers_mut().extend(self.headers.iter().cloned());
        connection.ready().await?;
        let (parts, body) = connection.send_request(request).await?.into_parts();
        if Limited::new(body, ANSWER_BYTES_MAX).collect().await.is_ok() {
            self.connection = Some(connection);
        }
        if !parts.status.is_success() {
            bail!(Unwilling(parts.status));
        }
        Ok(())
    }
}
