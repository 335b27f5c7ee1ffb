//! What a request does to what its path names.
//!
//! The same headers and methods decide in the handlers; where the two could differ, this takes the act that needs
//! more rights.

use http::Method;
use orrery_cluster::ChildKind;

use crate::headers::RequestHeaders;
use crate::router::Endpoint;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    List,
    Query,
    /// A query plan, which holds no data.
    Plan,
    Changes,
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    /// Operations of one logical partition, together.
    Batch,
    /// Operations of any logical partition, each for itself.
    Bulk,
    Execute,
    /// Nothing that the path serves.
    Other,
}

impl Act {
    pub fn of(endpoint: &Endpoint<'_>, method: &Method, headers: &RequestHeaders<'_>) -> Act {
        match endpoint {
            Endpoint::Items { .. } => on_items(method, headers),
            Endpoint::KeyDelete { .. } => Act::Delete,
            Endpoint::Script { kind: ChildKind::Procedure, .. } if *method == Method::POST => Act::Execute,
            Endpoint::Databases
            | Endpoint::Containers { .. }
            | Endpoint::Ranges { .. }
            | Endpoint::Conflicts { conflict: None, .. }
            | Endpoint::DatabaseChildren { .. }
            | Endpoint::Permissions { .. }
            | Endpoint::Scripts { .. }
            | Endpoint::Offers
            | Endpoint::Roles { .. } => on_feed(method, headers),
            Endpoint::Account
            | Endpoint::Database { .. }
            | Endpoint::Container { .. }
            | Endpoint::Item { .. }
            | Endpoint::Conflicts { .. }
            | Endpoint::DatabaseChild { .. }
            | Endpoint::Permission { .. }
            | Endpoint::Script { .. }
            | Endpoint::Offer { .. }
            | Endpoint::Role { .. }
            | Endpoint::Unsupported { .. } => on_one(method),
        }
    }

    /// Whether nothing changes.
    pub fn is_read(self) -> bool {
        matches!(self, Act::Read | Act::List | Act::Query | Act::Plan | Act::Changes)
    }
}

fn on_items(method: &Method, headers: &RequestHeaders<'_>) -> Act {
    match *method {
        Method::GET | Method::POST if headers.asks_for_changes(method) => Act::Changes,
        Method::GET | Method::HEAD => Act::List,
        Method::POST if headers.is_query_plan => Act::Plan,
        Method::POST if headers.is_query => Act::Query,
        Method::POST if headers.is_batch && headers.batch_atomic => Act::Batch,
        Method::POST if headers.is_batch => Act::Bulk,
        Method::POST if headers.is_upsert => Act::Upsert,
        Method::POST => Act::Create,
        _ => Act::Other,
    }
}

fn on_feed(method: &Method, headers: &RequestHeaders<'_>) -> Act {
    match *method {
        Method::GET | Method::HEAD => Act::List,
        Method::POST if headers.is_query => Act::Query,
        Method::POST if headers.is_upsert => Act::Upsert,
        Method::POST => Act::Create,
        _ => Act::Other,
    }
}

fn on_one(method: &Method) -> Act {
    match *method {
        Method::GET | Method::HEAD => Act::Read,
        Method::PUT => Act::Replace,
        Method::PATCH => Act::Patch,
        Method::DELETE => Act::Delete,
        _ => Act::Other,
    }
}
