//! What a client may do.
//!
//! Every request passes through [`check`] before a handler sees it, with its endpoint and its [`Act`]. Keys of the
//! account open everything, read-only keys all that only reads. The bearer of a resource token may do what the
//! permission says, a principal of Entra ID what its roles say. The matches over endpoints have no default arm,
//! so a new route does not compile before its author has said who may use it.
//!
//! Two things cannot be decided here: a batch carries its operations in its body, and after a change of the partition key
//! a document may go to another key than its header names. For that the answer is a [`Grant`], which the handlers of
//! batches ask for each operation, and those of writes for the key that they write to.

mod act;
mod permission;
mod roles;

use http::Method;
use orrery_cluster::Catalog;
use orrery_doc::PartitionKey;
pub(crate) use orrery_gateway::roles::{check_assignment, check_definition, is_assigned};

pub(crate) use act::Act;
pub(crate) use permission::{claim_of, key_of as permission_key};

use crate::auth::Identity;
use crate::errors::{Own, Refusal};
use crate::headers::RequestHeaders;
use crate::items;
use crate::router::Endpoint;

/// A request, as far as it matters for what it may do.
pub(crate) struct Asked<'a> {
    pub endpoint: &'a Endpoint<'a>,
    pub act: Act,
    pub method: &'a Method,
    pub path: &'a str,
    pub headers: &'a RequestHeaders<'a>,
    pub catalog: &'a Catalog,
    /// The account's name, for messages.
    pub account: &'a str,
}

/// What an operation does to its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemAct {
    Create,
    Read,
    Replace,
    Upsert,
    Delete,
}

/// What the operations of a request may do.
#[derive(Clone, Debug)]
pub(crate) enum Grant {
    Everything,
    /// Anything in one logical partition, or below a prefix of its key.
    Key(PartitionKey),
    Acts(Vec<ItemAct>),
}

/// Decides whether the request may go on.
pub(crate) fn check(identity: &Identity, asked: &Asked<'_>) -> Result<Grant, Refusal> {
    match identity {
        Identity::Account { read_only: false } => Ok(Grant::Everything),
        Identity::Account { read_only: true } => {
            // Permissions show tokens, and a token may open more than a read-only key.
            let shows_tokens =
                matches!(asked.endpoint, Endpoint::Permissions { .. } | Endpoint::Permission { .. });
            if asked.act.is_read() && !shows_tokens { Ok(Grant::Everything) } else { Err(insufficient()) }
        }
        Identity::Permission(claim) => permission::check(*claim, asked),
        Identity::Principal(principal) => roles::check(principal, asked),
    }
}

impl Grant {
    /// Whether an operation may run on an item of this key.
    pub fn check(&self, act: ItemAct, key: &PartitionKey) -> Result<(), Refusal> {
        let may = match self {
            Grant::Everything => true,
            Grant::Key(allowed) => is_within(key, allowed),
            Grant::Acts(acts) => acts.contains(&act),
        };
        if may { Ok(()) } else { Err(insufficient()) }
    }
}

/// Whether a key is the allowed one, or starts with it. An empty key allows nothing.
fn is_within(key: &PartitionKey, allowed: &PartitionKey) -> bool {
    !allowed.is_empty() && items::key_starts_with(key, allowed)
}

fn insufficient() -> Refusal {
    Own::Forbidden(
        "Insufficient permissions provided in the authorization header for the corresponding request. Please \
         retry with another authorization header."
            .into(),
    )
    .into()
}
