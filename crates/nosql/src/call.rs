//! One request on its way through the gateway: what every handler may look at.

use std::time::Instant;

use arc_swap::ArcSwap;
use http::Method;
use orrery_cluster::{Catalog, Db};

use crate::access::Grant;
use crate::auth::Keys;
use crate::headers::RequestHeaders;
use crate::items::told::Told;
use orrery_gateway::ActivityId;
use orrery_gateway::Scheme;

/// A request that has been parsed and authenticated; its body is handed over beside it.
pub(crate) struct Call<'a> {
    pub db: &'a Db,
    /// One snapshot of the catalog for the whole request.
    pub catalog: &'a Catalog,
    pub headers: &'a RequestHeaders<'a>,
    pub trace: &'a Trace<'a>,
    /// The account's keys, to make tokens of permissions with.
    pub keys: &'a ArcSwap<Keys>,
    /// What the operations of a batch may do.
    pub grant: &'a Grant,
    /// Queries that know that a range is gone.
    pub told: &'a Told,
    /// The host that clients are told to dial, when it is not the one they dialled.
    pub advertised_host: Option<&'a str>,
    /// How large a page may be.
    pub page_bytes: usize,
}

/// What identifies a request in answers, errors and logs; known before anything is checked.
pub(crate) struct Trace<'a> {
    pub method: &'a Method,
    /// The path as the client sent it.
    pub path: &'a str,
    /// The host that the client dialled, port included.
    pub host: &'a str,
    pub scheme: Scheme,
    pub activity: ActivityId,
    pub started: Instant,
    /// The client wants the charge explained.
    pub explain_charge: bool,
}
