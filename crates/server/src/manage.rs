//! The management API under `/_orrery/`: what the server knows and does beyond the protocol of the service.
//!
//! Requests are signed with a key of the account like all others; JSON goes in and out, and refusals have the shape
//! that the NoSQL API gives them. This file routes; each feature lives in a file of its own, which gets a [`Call`] and
//! returns an [`Answer`]. `docs/management-api.md` describes every path.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use orrery_cluster::Db;
use orrery_cluster::limits::REQUEST_BYTES_MAX;
use orrery_nosql::{Denial, Gateway, discard_body, read_body};

mod advice;
mod call;
mod heat;
mod jobs;
mod keys;
mod overview;
mod partitions;
mod server;
mod throughput;
mod workload;

pub use call::{Answer, Call};
pub use overview::alert as alert_json;
pub use server::Server;

/// Where all of it lies, and the word that signatures name as its resource type.
pub const PREFIX: &str = "/_orrery/";
pub const RESOURCE_TYPE: &str = "orrery";

/// Bytes that a path may have; three names of 255 characters of four bytes each, encoded, fit.
const PATH_BYTES_MAX: usize = 12 * 1024;
/// Segments of the longest path, and room for wrong ones.
const SEGMENTS_MAX: usize = 16;

const SUBSTATUS: HeaderName = HeaderName::from_static("x-ms-substatus");

pub struct Manage {
    db: Db,
    gateway: Gateway,
    server: Server,
    body_time_max: Duration,
}

impl Manage {
    pub fn new(db: Db, gateway: Gateway, server: Server, body_time_max: Duration) -> Arc<Manage> {
        Arc::new(Manage { db, gateway, server, body_time_max })
    }

    pub fn serves(path: &str) -> bool {
        path.starts_with(PREFIX)
    }

    /// Answers a request; refusals are answers too.
    pub async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        if let Err(denial) = self.admit(&parts) {
            let whole = match parts.headers.contains_key(EXPECT) {
                true => body.is_end_stream(),
                false => discard_body(body, self.body_time_max).await,
            };
            return closing(refuse(denial), !whole);
        }
        let body = match read_body(body, REQUEST_BYTES_MAX, self.body_time_max).await {
            Ok(body) => body,
            Err(denial) => return closing(refuse(denial), true),
        };
        let answer = match Call::read(&self.db, &self.server, &parts, body) {
            Ok(call) => route(&call).await,
            Err(denial) => Err(denial),
        };
        answer.map_or_else(refuse, respond)
    }

    fn admit(&self, parts: &Parts) -> Result<(), Denial> {
        if parts.uri.path().len() > PATH_BYTES_MAX {
            return Err(Denial::new(StatusCode::BAD_REQUEST, "The path of the request is too long."));
        }
        self.gateway.admit_beside(parts, RESOURCE_TYPE)
    }
}

/// Finds who answers. All are boxed: none of them is on the path of point operations, which share this future.
async fn route(call: &Call<'_>) -> Result<Answer, Denial> {
    match call.segments().as_slice() {
        ["jobs", rest @ ..] => Box::pin(jobs::serve(call, rest)).await,
        ["alerts"] => overview::alerts(call),
        ["server"] => server::about(call),
        ["containers"] => overview::containers(call),
        ["dbs", database, "throughput"] => throughput::shared(call, database),
        ["dbs", database, "colls", container, rest @ ..] => {
            let container = call.container(database, container)?;
            match rest {
                ["partitions", rest @ ..] => Box::pin(partitions::serve(call, &container, rest)).await,
                ["keys"] => Box::pin(keys::serve(call, &container)).await,
                ["throughput"] => Box::pin(throughput::serve(call, &container)).await,
                ["heat"] => heat::serve(call, &container),
                ["workload"] => Box::pin(workload::serve(call, &container)).await,
                ["advice"] => Box::pin(advice::serve(call, &container)).await,
                _ => Err(no_such_path()),
            }
        }
        _ => Err(no_such_path()),
    }
}

pub fn no_such_path() -> Denial {
    Denial::new(StatusCode::NOT_FOUND, "There is nothing at this path of the management API.")
}

fn respond(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answer.kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn refuse(denial: Denial) -> Response<Full<Bytes>> {
    let code = match denial.status {
        StatusCode::NOT_IMPLEMENTED => "NotImplemented",
        _ => denial.code,
    };
    let body = serde_json::json!({ "code": code, "message": denial.message });
    let mut response = respond(Answer::json(body).with_status(denial.status));
    if denial.substatus != 0 {
        response.headers_mut().insert(SUBSTATUS, HeaderValue::from(denial.substatus));
    }
    if let (StatusCode::METHOD_NOT_ALLOWED, Some(allowed)) = (denial.status, call::allowed(&denial)) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

fn closing(mut response: Response<Full<Bytes>>, closes: bool) -> Response<Full<Bytes>> {
    if closes {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
